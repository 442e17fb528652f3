"""One arm's measurement: its server, its record file, and the helpers that experiments are written with."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from prefixkit.errors import ProbeError, ServerError
from prefixkit.experiments import overhead
from prefixkit.experiments.counting import Sent, Window, between, compare, predict, read_or_say
from prefixkit.experiments.ledger import WARMUP as WARMUP
from prefixkit.experiments.ledger import Ledger
from prefixkit.experiments.registry import EXPERIMENTS, ONLY_ON, OWN_SERVERS, belongs
from prefixkit.metrics import HitRate
from prefixkit.params import Params
from prefixkit.probe import Client, Probe
from prefixkit.prompts import Message, Prompts, chat
from prefixkit.provenance import gpu_details
from prefixkit.records import Record
from prefixkit.server import Server

Status = Literal["open", "complete", "skipped", "refused", "closed"]
Scope = Literal["all", "shared", "own"]
LEFT_FOR_OWN = "left for servers of their own"


class Session(Ledger):
    """An open measurement of one arm; `status` other than `open` means that there is nothing to run and `reason` why.

    Everything measured is on disk as soon as it is known. `rounds` limits how many rounds `length` makes this time;
    `scope` says which experiments run: all, those on the arm's server, or those on servers of their own.
    """

    def __init__(
        self,
        params: Params,
        arm: str,
        path: Path,
        *,
        profile: str = "",
        progress: Callable[[str], object] = print,
        rounds: int | None = None,
        scope: Scope = "all",
        status: Status = "open",
        reason: str = "",
    ) -> None:
        super().__init__(path, arm=arm, profile=profile, progress=progress)
        self.params, self.rounds, self.status, self.reason = params, rounds, status, reason
        self.scope = scope
        self.server: Server | None = None
        self._client: Client | None = None
        self._prompts: Prompts | None = None
        self._windows: list[Window] = []
        self._history: list[Sent] = []
        self._timed: list[overhead.Timed] = []
        self._ran: set[str] = set()
        self._unfinished = ""
        self._left_for_own: list[str] = []
        self.on_close: list[Callable[[], object]] = []

    @property
    def client(self) -> Client:
        """The client of the arm's server."""
        if self._client is None:
            raise ServerError(f"arm {self.arm}: no server is attached", "open the session anew")
        return self._client

    @property
    def prompts(self) -> Prompts:
        """Texts of exact length, counted by the server's own tokenizer."""
        if self._prompts is None:
            raise ServerError(f"arm {self.arm}: no server is attached", "open the session anew")
        return self._prompts

    def attach(self, server: Server) -> None:
        """Measure on `server` from now on."""
        self.server = server
        client = Client(server.url, server.model, server.api_key)
        self.use(client, lambda text: len(client.tokenize(text)))

    def use(self, client: Client, count: Callable[[str], int]) -> None:
        """Send requests through `client` from now on, and build texts whose tokens `count` counts."""
        self._client = client
        self._prompts = Prompts(count, self.params.experiments.language, nonce=self.nonce)

    def detach(self) -> None:
        """Stop the server; experiments that start servers of their own call this first."""
        client, server = self._client, self.server
        self._client = self.server = None
        if client is not None:
            client.close()
        if server is not None:
            server.stop()

    # Running

    def run_all(self) -> None:
        """Run every experiment of this arm."""
        for name in EXPERIMENTS:
            self.run(name)

    def run(self, name: str) -> None:
        """Run one experiment; finished cells are not measured again."""
        if not belongs(name, self.arm) or self.status != "open":
            return
        self._ran.add(name)
        if name != "cloud" and getattr(self.params.experiments, name) is False:
            self.skip(name, "switched off in the parameters")
        elif name in ONLY_ON and self.arm != "on":
            self.skip(name, "measured on arm on only")
        elif name in OWN_SERVERS and self.scope == "shared":
            self._left_for_own.append(name)
        elif name not in OWN_SERVERS and self.scope == "own":
            self.progress(f"{name}: measured on the arm's server")
        else:
            self._measure(importlib.import_module(EXPERIMENTS[name]).run)

    def _measure(self, experiment: Callable[[Session], None]) -> None:
        try:
            experiment(self)
        except ProbeError:
            # What a dead server leaves behind says less than its log does.
            if self.server is not None:
                self.server.check()
            raise

    def leave_unfinished(self, reason: str) -> None:
        """Note that the arm is not complete when this session ends, without its being an error."""
        self._unfinished = self._unfinished or reason

    def close(self, status: str = "ok", reason: str = "") -> str:
        """Stop the server, record how the run ended, and return that; a second call does nothing.

        `ok` becomes `paused` when something is left to measure, and `failed` when no request succeeded.
        """
        if self.status != "open":
            return self.status
        self.status = "closed"
        try:
            self.detach()
            if status == "ok" and not self._unfinished:
                overhead.measure(self, self._timed)
        finally:
            if status == "ok":
                status, reason = self._how_it_ended()
            self.reason = reason
            self.append("end", status=status, reason=reason, gpu_details=gpu_details())
            self.writer.close()
            for action in self.on_close:
                action()
        return status

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:
            self.close("ok")
        elif isinstance(error, Exception):
            self.close("failed", " ".join(str(error).split())[:500])
        else:
            self.close("interrupted", kind.__name__ if kind else "")

    def _how_it_ended(self) -> tuple[str, str]:
        if left := [name for name in EXPERIMENTS if belongs(name, self.arm) and name not in self._ran]:
            return "paused", f"not run: {', '.join(left)}"
        if self._unfinished:
            return "paused", self._unfinished
        measured = [r for r in self.records if r.get("record") == "probe" and r.get("phase") != WARMUP]
        if measured and all(r.get("error") for r in measured):
            return "failed", f"all {len(measured)} requests failed: {measured[-1]['error'].get('message', '')}"
        if self._left_for_own:
            return "paused", f"{LEFT_FOR_OWN}: {', '.join(self._left_for_own)}"
        return "ok", ""

    # Requests

    def probe(
        self,
        messages: list[Message],
        *,
        experiment: str,
        phase: str,
        condition: dict[str, Any] | None = None,
        target_tokens: int | None = None,
        **request: Any,
    ) -> Probe:
        """Send one request and record it; keyword arguments beyond these go to the client."""
        probe = self.client.probe(messages, **request)
        self.record(
            probe,
            experiment=experiment,
            phase=phase,
            condition=condition,
            target_tokens=target_tokens,
            messages=messages,
            cache_salt=request.get("cache_salt"),
        )
        return probe

    def record(
        self,
        probe: Probe,
        *,
        experiment: str,
        phase: str,
        condition: dict[str, Any] | None = None,
        target_tokens: int | None = None,
        messages: list[Message] | None = None,
        cache_salt: str | None = None,
    ) -> Record:
        """Record a request that was sent elsewhere; give `messages` where block arithmetic is to cover it."""
        entry = self.write_probe(probe, experiment, phase, condition or {}, target_tokens)
        self._history.append(Sent(messages, cache_salt, probe.error is not None))
        self._timed += overhead.timed(entry, messages or [])
        for window in self._windows:
            window.probes.append(entry)
        if probe.error is not None and self.server is not None:
            # Raises when the server is gone: the cell under way is then repeated another time.
            self.server.check()
        return entry

    def warm_up(self, experiment: str, tokens: int, *, max_tokens: int = 1) -> None:
        """Send the unmeasured requests that come before a prompt length: one text, so that on warms its hit path."""
        requests = self.params.experiments.warmup_requests
        if not requests:
            return
        self.progress(f"{experiment}: warming up {tokens} tokens")
        messages = chat(self.prompts.warmup(tokens), self.prompts.texts.warmup_words[0])
        for _ in range(requests):
            self.probe(messages, experiment=experiment, phase=WARMUP, target_tokens=tokens, max_tokens=max_tokens)

    # Counters

    @contextmanager
    def counted(self, experiment: str, scope: str = "all", **fields: Any) -> Iterator[Window]:
        """Read the server's counters before and after and write them, unless an exception ends the stretch."""
        if not self._windows:
            self._history = []
        window = Window(experiment, scope, self._read_counters(), first=len(self._history))
        self._windows.append(window)
        try:
            yield window
        finally:
            self._windows.remove(window)
        after = self._read_counters()
        rate = between(window.before, after)
        predicted = self._predict(window) if window.predicted_tokens is None else window.predicted_tokens
        self.append(
            "counters",
            cell=self._cell,
            experiment=experiment,
            scope=scope,
            requests=len(window.probes),
            **fields,
            **rate.record(),
            predicted_tokens=predicted,
            reconciliation=compare(rate, window, predicted, after),
        )
        if self.arm == "off" and rate.hits:
            self._refuse_hits(rate.hits)

    def sample(self, experiment: str, request: int, **fields: Any) -> None:
        """Record the counters at this moment, counted from the beginning of the stretch that is being counted."""
        now = self._read_counters()
        rate = between(self._windows[0].before if self._windows else now, now)
        self.append(
            "sample",
            cell=self._cell,
            experiment=experiment,
            request=request,
            queries=rate.queries,
            hits=rate.hits,
            unit=rate.unit,
            status=rate.status,
            **fields,
        )

    def _read_counters(self) -> list[str] | HitRate:
        server = self.server
        return read_or_say(server.metrics_urls, server.api_key) if server else read_or_say([])

    def _predict(self, window: Window) -> int | None:
        if self.arm == "off":
            return 0
        effective = self.server.effective if self.server else None
        if effective is None or (effective.engines or 1) > 1:
            return None
        return predict(self._history, window.first, effective.block_size, self.client.tokenize)

    def _refuse_hits(self, hits: int) -> None:
        reason = f"arm off: the server counted {hits} hits, so its cache is on"
        self.skip(None, reason)
        self.close("refused", reason)
        raise ServerError(reason, "look at server.command and server.engine_args, and at what else uses this server")
