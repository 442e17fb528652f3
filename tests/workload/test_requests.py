"""Reading workloads: both line formats, and every kind of bad file named by line."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pandas as pd
import pytest

from prefixkit.errors import ParamsError
from prefixkit.workload import count_requests, from_column, read_requests, write_requests
from prefixkit.workload.requests import digest, find_workload

PLAIN = {"messages": [{"role": "user", "content": "how deep is the lake"}]}


def file_of(folder: Path, *lines: str | bytes) -> Path:
    path = folder / "mine.jsonl"
    path.write_bytes(b"\n".join(line.encode() if isinstance(line, str) else line for line in lines))
    return path


def test_plain_and_batch_lines_are_both_read(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "look"}}]
    batch = {"custom_id": "7", "method": "POST", "url": "/v1/chat/completions", "body": {**PLAIN, "tools": tools}}
    path = file_of(tmp_path, "\ufeff" + json.dumps(PLAIN), "", json.dumps(batch) + "\r", "")
    plain, other = read_requests(path)
    assert plain.messages == other.messages == PLAIN["messages"]
    assert (plain.line, other.line) == (1, 3)
    assert plain.tools is None
    assert other.tools == tools


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"messages": [', "not JSON"),
        ("[1, 2]", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ('{"prompt": "x"}', "no `messages`"),
        ('{"messages": []}', "no `messages`"),
        ('{"messages": ["x"]}', "message 1 has no role"),
        ('{"messages": [{"role": "user", "content": "x"}, {"role": "user"}]}', "message 2 has no content"),
        ('{"messages": [{"role": "user", "content": "\\ud800"}]}', "half of a surrogate pair"),
        ('{"body": 3}', "not a JSON object"),
        (b'{"messages": "\xff"}', "not UTF-8 (byte 15 of the line)"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_malformed_line_is_named_with_its_file_and_number(tmp_path: Path, line: str | bytes, reason: str) -> None:
    path = file_of(tmp_path, json.dumps(PLAIN), line, json.dumps(PLAIN))
    with pytest.raises(ParamsError) as caught:
        count_requests(path)
    assert caught.value.message.startswith(f"{path}: line 2: ")
    assert reason in caught.value.message


@pytest.mark.parametrize("content", [b"", b"\n\n \n"])
def test_a_file_without_requests_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ParamsError, match="holds no request"):
        count_requests(file_of(tmp_path, content))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParamsError, match="no such file"):
        find_workload(tmp_path / "none.jsonl")


def test_a_large_file_is_streamed_with_progress(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    line = json.dumps({"messages": [{"role": "user", "content": "x" * 4000}]}) + "\n"
    with path.open("w") as file:
        for _ in range(10):
            file.write(line * 900)
    notes: list[str] = []
    tracemalloc.start()
    assert count_requests(path, progress=notes.append) == 9000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000
    assert len(notes) == 2
    assert "lines read, 4" in notes[0]


def test_prompts_come_from_a_pandas_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"prompt": ["one", "two"]}, index=["a", "b"])
    requests = from_column(frame["prompt"], system="Be brief.")
    assert [r.messages[-1]["content"] for r in requests] == ["one", "two"]
    assert requests[0].messages[0] == {"role": "system", "content": "Be brief."}
    assert write_requests(tmp_path / "w.jsonl", requests) == 2
    assert list(read_requests(tmp_path / "w.jsonl")) == requests


@pytest.mark.parametrize("value", [None, float("nan"), "", 3])
def test_a_row_without_a_prompt_is_named_by_its_label(value: object) -> None:
    with pytest.raises(ParamsError, match="row 'b'"):
        from_column(pd.Series(["one", value], index=["a", "b"], dtype=object))


def test_the_digest_follows_the_bytes(tmp_path: Path) -> None:
    before = digest(file_of(tmp_path, json.dumps(PLAIN)))
    assert digest(file_of(tmp_path, json.dumps(PLAIN))) == before
    assert digest(file_of(tmp_path, json.dumps(PLAIN), json.dumps(PLAIN))) != before
