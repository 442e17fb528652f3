import pytest

from prefixkit.probe import sse
from prefixkit.probe.sse import Events
from prefixkit.probe.wire import WireError


def read(*pieces):
    events, found = Events(), []
    for stamp, piece in enumerate(pieces, 1):
        found += events.feed(piece, stamp)
    return found + list(events.end())


def test_an_event_arrives_with_the_piece_that_holds_its_last_byte():
    assert read(b"data: a\n\ndata: b", b"c\n", b"\n") == [(b"a", 1), (b"bc", 2)]


def test_a_newline_that_comes_late_does_not_delay_its_event():
    assert read(b"data: a", b"\n\ndata: b", b"\r\n") == [(b"a", 1), (b"b", 2)]


def test_line_ends_of_every_kind_and_a_cut_in_crlf():
    assert read(b"data:a\r", b"\n\r\ndata: b\rdata: c\n") == [(b"a", 1), (b"b", 2), (b"c", 2)]


def test_a_last_line_without_newline_is_an_event():
    assert read(b"data: a\n\nda", b"ta: b") == [(b"a", 1), (b"b", 2)]


def test_comments_are_told_apart_and_other_fields_left_out():
    assert read(b": ping\n\nevent: x\nid: 1\nretry: 5\ndata: a\n\n") == [(None, 1), (b"a", 1)]


def test_unicode_line_separators_inside_an_event_do_not_split_it():
    assert read("data: a\u2028b\x85c\n".encode()) == [("a\u2028b\x85c".encode(), 1)]


def test_an_endless_line_is_refused_rather_than_kept(monkeypatch):
    monkeypatch.setattr(sse, "LINE_LIMIT", 100)
    with pytest.raises(WireError, match="longer"):
        read(b"data: " + b"x" * 101)
