"""The client: chat completions through the `openai` SDK, timed in the transport."""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NoReturn, Self, Unpack

import httpx
import openai

from prefixkit.errors import ProbeError
from prefixkit.probe.background import BackgroundLoop
from prefixkit.probe.failures import Context, failure, http_failure, parsed, server_text, wire_failure
from prefixkit.probe.keys import clean_key
from prefixkit.probe.reading import Reading
from prefixkit.probe.request import Messages, Options, Prompt, TokenIds, body_of
from prefixkit.probe.result import Probe
from prefixkit.probe.transport import TAP, StampedTransport
from prefixkit.probe.urls import endpoints
from prefixkit.probe.verdict import probe_of
from prefixkit.probe.wire import WireError

MAX_WAIT_S = 60.0
SECRET_LENGTH = 6


class Client:
    """Times chat completions of one model on one server; safe to use from several threads and inside a running loop.

    A throttled request (429) is sent again, at most `max_attempts` times in all; its times are the last attempt's.
    """

    def __init__(
        self,
        url: str,
        model: str,
        api_key: str | None = None,
        *,
        timeout_s: float = 600.0,
        max_tokens_field: str = "max_tokens",
        key_page: str | None = None,
        key_source: str = "api_key",
        max_attempts: int = 3,
    ) -> None:
        if not model.strip():
            raise ProbeError("the model name is empty", "give one of the ids of GET /v1/models")
        self.endpoints = endpoints(url)
        self.model = model
        self.timeout_s = timeout_s
        self.max_attempts = max_attempts
        self._field = max_tokens_field
        self._key_page = key_page
        self._key = None if api_key is None else clean_key(api_key, key_source)
        self.loop = BackgroundLoop()
        transport = StampedTransport()
        self._turns = transport.turns
        self._http = httpx.AsyncClient(transport=transport, trust_env=False, timeout=None)
        self._headers: dict[str, Any] = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
        if self._key is None:
            self._headers["Authorization"] = openai.Omit()
        self._sdk = openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self.endpoints.base,
            max_retries=0,
            timeout=None,
            http_client=self._http,  # type: ignore[arg-type]
        )

    @property
    def url(self) -> str:
        """The API base that requests go to."""
        return self.endpoints.base

    def probe(self, messages: Messages, **options: Unpack[Options]) -> Probe:
        """Send one chat completion, wait for its end and return its times; a failure is in `Probe.error`.

        Options: max_tokens (1), temperature (0), seed, cache_salt, ignore_eos, extra_body, extra_headers.
        """
        return self.loop.run(self.timed(messages, **options))[0]

    async def aprobe(self, messages: Messages, **options: Unpack[Options]) -> Probe:
        """Do what `probe` does, awaitable from any loop."""
        return (await self.loop.submit(self.timed(messages, **options)))[0]

    async def timed(self, messages: Prompt, *, due: int = 0, **options: Unpack[Options]) -> tuple[Probe, int]:
        """Probe on the client's own `loop`; also return when the first byte left (perf_counter_ns, 0 if it did not).

        The request is made ready at once and leaves when it is `due` (perf_counter_ns).
        """
        body = body_of(self._field, **options)
        headers = {**self._headers, **(options.get("extra_headers") or {})}
        throttled: list[float] = []
        for attempt in range(1, self.max_attempts + 1):
            reading = Reading(due)
            error, wait_s = await self._attempt(reading, messages, body, headers)
            if wait_s is None or attempt == self.max_attempts or wait_s > MAX_WAIT_S:
                break
            throttled.append(wait_s)
            await asyncio.sleep(wait_s)
        notes = []
        if throttled:
            notes.append(
                f"throttled: {len(throttled)} earlier attempts answered 429 (waited {sum(throttled):.1f} s);"
                f" times are those of attempt {attempt}"
            )
        if reading.resent:
            notes.append("the server had closed the idle connection: the request was sent again on a new one")
        attempts = attempt + reading.resent
        probe = probe_of(reading, self._context(messages), attempt=attempts, error=error, notes=tuple(notes))
        return probe, reading.start

    def tokenize(self, messages: Messages | str) -> list[int]:
        """Return the server's token ids of a text (no special tokens added) or of a chat as the template renders it."""
        if isinstance(messages, str):
            body: dict[str, Any] = {"prompt": messages, "add_special_tokens": False}
        else:
            body = {"messages": list(messages), "add_generation_prompt": True}
        answer = self._json("POST", f"{self.endpoints.root}/tokenize", {"model": self.model, **body})
        return [int(token) for token in answer["tokens"]]

    def detokenize(self, ids: Sequence[int]) -> str:
        """Return the text of token ids."""
        answer = self._json("POST", f"{self.endpoints.root}/detokenize", {"model": self.model, "tokens": list(ids)})
        return str(answer["prompt"])

    def models(self) -> list[dict[str, Any]]:
        """Return what the server says of its models (`id`, with vLLM also `max_model_len`)."""
        answer = self._json("GET", f"{self.endpoints.base}/models")
        return [entry for entry in answer.get("data") or [] if isinstance(entry, dict)]

    def version(self) -> str | None:
        """Return vLLM's version, or None where the server does not tell."""
        try:
            return str(self._json("GET", f"{self.endpoints.root}/version")["version"])
        except (ProbeError, KeyError, TypeError):
            return None

    def close(self) -> None:
        """Close connections and thread."""
        self.loop.run(self._http.aclose())
        self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _attempt(
        self, reading: Reading, messages: Prompt, body: dict[str, Any], headers: dict[str, Any]
    ) -> tuple[dict[str, str] | None, float | None]:
        """Send once; return the error if any, and how long to wait before the next attempt if one makes sense."""
        try:
            async with asyncio.timeout(self.timeout_s + reading.left_s()):
                await self._stream(reading, messages, body, headers)
        except TimeoutError:
            return self._timed_out(reading, messages), None
        except openai.APIStatusError as error:
            return await self._refused(error, messages)
        except (WireError, openai.APIConnectionError) as error:
            cause = error if isinstance(error, WireError) else error.__cause__
            if not isinstance(cause, WireError):
                cause = WireError("disconnected", " ".join(str(cause or error).split()))
            if cause.kind == "truncated" and (reading.done or reading.finish_reason or reading.error):
                reading.on_end(reading.last)
                return None, None
            return self._clean(wire_failure(cause, self._context(messages))), None
        return None, None

    async def _stream(self, reading: Reading, messages: Prompt, body: dict[str, Any], headers: dict[str, Any]) -> None:
        await self._turns.take()
        token = TAP.set(reading)
        name = "prompt" if isinstance(messages, TokenIds) else "messages"
        whole = {
            name: list(messages),
            "model": self.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            **body,
        }
        try:
            # Not `create`, which would walk through every message: a quarter of what a request costs.
            await self._sdk.post(
                f"/{_path(messages)}", cast_to=httpx.Response, body=whole, options={"headers": headers}
            )
        finally:
            TAP.reset(token)

    async def _refused(self, error: openai.APIStatusError, messages: Prompt) -> tuple[dict[str, str], float | None]:
        status, headers = error.status_code, error.response.headers
        models = None
        if status == 404:
            models = await self._ids()
        context = self._context(messages, models)
        found = http_failure(status, error.response.content, headers.get("content-type", ""), context)
        wait_s = retry_after(headers.get("retry-after")) if status == 429 else None
        return self._clean(found), wait_s

    def _timed_out(self, reading: Reading, messages: Prompt) -> dict[str, str]:
        if not reading.start:
            state = "the connection was not open yet"
        elif not reading.head:
            state = "the request was sent and nothing came back"
        else:
            state = f"{reading.deltas} deltas had arrived"
        return failure(
            "timeout",
            f"POST {self._context(messages).url}: no end within {self.timeout_s:g} s ({state})",
            "a longer timeout, a shorter prompt, or see the server's log: it may be loading or overloaded",
        )

    def _context(self, messages: Prompt = (), models: tuple[str, ...] | None = None) -> Context:
        return Context(f"{self.url}/{_path(messages)}", self.model, self._key is not None, self._key_page, models)

    def _clean(self, error: dict[str, str]) -> dict[str, str]:
        return {**error, "message": self._without_key(error["message"])}

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key and len(self._key) >= SECRET_LENGTH else text

    async def _ids(self) -> tuple[str, ...] | None:
        try:
            answer = await self._ajson("GET", f"{self.endpoints.base}/models")
            return tuple(str(entry["id"]) for entry in answer["data"])
        except (ProbeError, KeyError, TypeError):
            return None

    def _json(self, method: str, url: str, body: dict[str, Any] | None = None) -> Any:
        return self.loop.run(self._ajson(method, url, body))

    async def _ajson(self, method: str, url: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            async with asyncio.timeout(self.timeout_s):
                response = await self._http.request(method, url, json=body, headers=headers)
        except TimeoutError:
            raise ProbeError(f"{method} {url}: no answer within {self.timeout_s:g} s", "is the server up?") from None
        except httpx.RequestError as error:
            self._give_up(method, url, error)
        value = parsed(response.content)
        if response.status_code == 200 and isinstance(value, dict):
            return value
        found = http_failure(
            response.status_code, response.content, response.headers.get("content-type", ""), self._context()
        )
        remedy = found["message"].rpartition(" -> ")[2]
        said = server_text(value) if value is not None else "no JSON"
        raise ProbeError(self._without_key(f"{method} {url} answered {response.status_code}: {said}"), remedy)

    def _give_up(self, method: str, url: str, error: httpx.RequestError) -> NoReturn:
        wire = error if isinstance(error, WireError) else WireError("disconnected", str(error))
        remedy = wire_failure(wire, self._context())["message"].rpartition(" -> ")[2]
        raise ProbeError(f"{method} {url}: {wire}", remedy) from None


def _path(messages: Prompt) -> str:
    return "completions" if isinstance(messages, TokenIds) else "chat/completions"


def retry_after(value: str | None) -> float:
    """Return how many seconds a `Retry-After` header asks to wait: a number or a date; 1 when it says nothing."""
    if value is None:
        return 1.0
    try:
        return max(0.0, float(value))
    except ValueError:
        date = email.utils.parsedate_to_datetime(value) if _is_date(value) else None
        return max(0.0, date.timestamp() - time.time()) if date is not None else 1.0


def _is_date(value: str) -> bool:
    return email.utils.parsedate(value) is not None
