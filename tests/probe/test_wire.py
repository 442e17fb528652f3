import gzip
import itertools

import pytest

from prefixkit.probe.wire import AnswerParser, WireError


class Record:
    def __init__(self):
        self.status, self.body, self.stamps, self.ended, self.reusable = None, b"", [], None, None

    def on_head(self, status, headers, first, stamp):
        self.status, self.headers, self.first, self.head = status, headers, first, stamp

    def on_body(self, data, stamp):
        self.body += data
        self.stamps.append(stamp)

    def on_end(self, stamp, *, reusable):
        self.ended, self.reusable = stamp, reusable


def parse(*pieces, eof=False):
    record = Record()
    parser = AnswerParser(record)
    stamps = itertools.count(1)
    for piece in pieces:
        parser.feed(piece, next(stamps))
    if eof:
        parser.eof(next(stamps))
    return record


CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nT: t\r\n\r\n"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_chunked_answer_is_read_whatever_its_pieces(size):
    record = parse(*[CHUNKED[i : i + size] for i in range(0, len(CHUNKED), size)])
    assert (record.status, record.body, record.reusable) == (200, b"hello world", True)
    assert (b"X", b"y") in record.headers and record.ended


def test_every_part_keeps_the_arrival_of_its_piece():
    head, rest = CHUNKED.split(b"5\r\n", 1)
    first, second = (b"5\r\n" + rest).split(b"6;", 1)
    record = parse(head[:9], head[9:], first, b"6;" + second)
    assert (record.first, record.head, record.stamps, record.ended) == (1, 2, [3, 4], 4)


def test_a_sized_answer_ends_at_its_length():
    record = parse(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab", b"cd")
    assert (record.body, record.ended, record.reusable) == (b"abcd", 2, True)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nContent-Length: 0", b"HTTP/1.1 204 No Content"])
def test_an_answer_without_body_ends_with_its_head(head):
    assert parse(head + b"\r\n\r\n").ended == 1


def test_an_interim_answer_is_skipped():
    record = parse(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    assert record.status == 200


@pytest.mark.parametrize("line", [b"HTTP/1.0 200 OK", b"HTTP/1.1 200 OK\r\nConnection: close"])
def test_an_answer_without_framing_ends_with_its_connection(line):
    record = parse(line + b"\r\n\r\nabc", b"def", eof=True)
    assert (record.body, record.ended, record.reusable) == (b"abcdef", 3, False)


def test_a_closing_connection_is_not_used_again():
    assert not parse(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na").reusable


def test_a_compressed_answer_is_decoded():
    body = gzip.compress(b"data: x\n\n")
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert parse(head, body[:5], body[5:]).body == b"data: x\n\n"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "disconnected"),
        (b"HTTP/1.1 200", "disconnected"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab", "truncated"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "truncated"),
        (b"SSH-2.0-OpenSSH\r\n", "bad_response"),
        (b"\x15\x03\x01\x00\x02", "bad_response"),
        (b"HTTP/1.1 abc\r\n\r\n", "bad_response"),
        (b"HTTP/2 200\r\n\r\n", "bad_response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "bad_response"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabcd", "bad_response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "bad_response"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n", "bad_response"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", "bad_response"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000, "bad_response"),
    ],
)
def test_what_is_no_complete_answer_is_named(data, kind):
    with pytest.raises(WireError) as caught:
        parse(data, eof=True)
    assert caught.value.kind == kind
