"""Read a workload: one request a line, as plain `{"messages": [...]}` or as a line of an OpenAI batch file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixkit import paths
from prefixkit.errors import ParamsError

Messages = list[dict[str, Any]]
_REMEDY = 'each line is {"messages": [{"role": ..., "content": ...}]} or an OpenAI batch line'
_BYTES_PER_NOTE = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a workload; `line` is its line in the file, `tools` its tool definitions if it had any."""

    line: int
    messages: Messages
    tools: list[dict[str, Any]] | None = None


def find_workload(name: str | Path) -> Path:
    """Return the file that `name` means, relative to the project root unless absolute."""
    path = paths.ROOT / Path(name).expanduser()
    if not path.is_file():
        raise ParamsError(f"workload {path}: no such file", "mend experiments.workload.path")
    return path


def read_requests(path: Path, *, progress: Callable[[str], object] | None = None) -> Iterator[Request]:
    """Yield the requests of a file one at a time; a line that is none raises ParamsError with its number."""
    size, done, noted = path.stat().st_size, 0, 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            done += len(raw)
            if progress and done - noted >= _BYTES_PER_NOTE:
                noted = done
                progress(f"{path.name}: {number:,} lines read, {done / size:.0%}")
            if request := _parse(raw, f"{path}: line {number}", number):
                yield request


def count_requests(path: Path, *, progress: Callable[[str], object] | None = None) -> int:
    """Return how many requests a file holds, having checked every line; none at all raises ParamsError."""
    count = sum(1 for _ in read_requests(path, progress=progress))
    if not count:
        raise ParamsError(f"{path}: holds no request", _REMEDY)
    return count


def digest(path: Path) -> str:
    """Return a short hash of a file's bytes, which tells one workload from its edited successor."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def from_column(column: Iterable[Any], *, system: str | None = None) -> list[Request]:
    """Return requests from a pandas column (or any iterable) of prompt texts or message lists, in order.

    `system` is put before each. An empty or missing prompt raises ParamsError with its row label.
    """
    items = column.items() if hasattr(column, "items") else enumerate(column)
    requests = []
    for ordinal, (label, value) in enumerate(items, 1):
        messages = [{"role": "user", "content": value}] if isinstance(value, str) else value
        if fault := "an empty prompt" if value == "" else _fault(messages):
            raise ParamsError(f"row {label!r}: {fault}", "give a text or a list of messages in every row")
        head = [{"role": "system", "content": system}] if system else []
        requests.append(Request(ordinal, [*head, *messages]))
    return requests


def write_requests(path: str | Path, requests: Iterable[Request]) -> int:
    """Write requests as JSONL, which `experiments.workload.path` can then name; return how many."""
    count = 0
    with Path(path).open("w", encoding="utf-8") as file:
        for request in requests:
            line: dict[str, Any] = {"messages": request.messages}
            if request.tools:
                line["tools"] = request.tools
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            count += 1
    return count


def _parse(raw: bytes, where: str, number: int) -> Request | None:
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
    except UnicodeDecodeError as error:
        raise ParamsError(f"{where}: not UTF-8 (byte {error.start + 1} of the line)", "save it as UTF-8") from None
    if not text:
        return None
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        reason = (
            f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else "nested too deep"
        )
        raise ParamsError(f"{where}: not JSON ({reason})", _REMEDY) from None
    body = data.get("body", data) if isinstance(data, dict) else data
    if not isinstance(body, dict):
        raise ParamsError(f"{where}: not a JSON object", _REMEDY)
    if fault := _fault(body.get("messages")):
        raise ParamsError(f"{where}: {fault}", _REMEDY)
    tools = body.get("tools")
    return Request(number, body["messages"], tools if isinstance(tools, list) and tools else None)


def _fault(messages: Any) -> str | None:
    if not isinstance(messages, list) or not messages:
        return "no `messages`"
    for place, message in enumerate(messages, 1):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return f"message {place} has no role"
        content = message.get("content")
        if not isinstance(content, str | list) and not (content is None and message.get("tool_calls")):
            return f"message {place} has no content"
        if not _encodable(content):
            return f"message {place} holds half of a surrogate pair"
    return None


def _encodable(content: Any) -> bool:
    try:
        (content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)).encode()
    except UnicodeEncodeError:
        return False
    return True
