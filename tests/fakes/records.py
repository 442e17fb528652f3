"""Simulated record files of complete and degraded runs with a known truth, for tests of everything that reads them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixkit.params import load_arm, params_hash
from prefixkit.records import SCHEMA, Record

LENGTHS = (256, 512, 1024, 2048, 3072)
SHORT = (32, 64)
QUESTION_TOKENS = 38


@dataclass(frozen=True, slots=True)
class World:
    """The true machine: ttft = alpha + beta * uncached + gamma * uncached * all + cached_cost * cached, in ms."""

    alpha_ms: float = 18.0
    beta_ms: float = 0.52
    gamma_ms: float = 0.0
    cached_cost_ms: float = 0.011
    tpot_ms: float = 14.0
    noise: float = 0.02
    block: int = 32
    helps: bool = True

    def ttft(self, rng: random.Random, prompt: int, cached: int) -> float:
        """Return one simulated TTFT in ms."""
        if not self.helps:
            cached = 0
        new = prompt - cached
        mean = self.alpha_ms + self.beta_ms * new + self.gamma_ms * new * prompt + self.cached_cost_ms * cached
        return mean * (1 + rng.gauss(0, self.noise))


class Arm:
    """The records of one arm, in the order in which a real run appends them."""

    def __init__(self, name: str, world: World, *, seed: int = 0, model: str | None = None) -> None:
        self.name, self.world = name, world
        self.rng = random.Random(f"{seed}/{name}")
        self.records: list[Record] = []
        self.order = 0
        self.clock = 0
        self.queries = 4096
        self.hits = 640 if name == "on" else 0
        self.model = model

    def append(self, record: str, **fields: Any) -> Record:
        """Append one record."""
        self.clock += 1
        at = f"2026-03-02T10:{self.clock // 60 % 60:02}:{self.clock % 60:02}.000Z"
        entry = {"record": record, "schema": SCHEMA, "arm": self.name, "profile": "cpu", **fields}
        entry.setdefault("at", at)
        self.records.append(entry)
        return entry

    def probe(
        self, experiment: str, phase: str, prompt: int, cached: int, *, tokens: int = 1, cell: str = "", **fields: Any
    ) -> Record:
        """Append one probe of `prompt` tokens, `cached` of them from the cache."""
        on = self.name == "on"
        cached = cached if on else 0
        ttft = self.world.ttft(self.rng, prompt, cached)
        e2e = ttft + (tokens - 1) * self.world.tpot_ms * (1 + self.rng.gauss(0, self.world.noise / 2))
        self.order += 1
        self.queries += prompt if on else 0
        self.hits += cached
        condition = fields.pop("condition", {})
        known: dict[str, Any] = {
            "experiment": experiment, "phase": phase, "cell": cell or f"{experiment}/{self.order}",
            "order": self.order, "condition": condition, "target_tokens": fields.pop("target_tokens", prompt),
            "prompt_tokens": prompt, "cached_tokens": cached, "ttft_ms": round(ttft, 3), "content_ms": round(ttft, 3),
            "e2e_ms": round(e2e, 3), "completion_tokens": tokens,
            "timings": {"connect": 0.3, "headers": 3.0, "first_byte": round(ttft - 0.2, 3)},
            "server": {"queue_ms": 0.1, "ttft_ms": round(max(ttft - 4.0 - 0.002 * prompt, 0.1), 3)},
            "attempt": 1, "warnings": [], "error": None, "superseded": False,
        }  # fmt: skip
        return self.append("probe", **{**known, **fields})

    def fail(self, experiment: str, phase: str, kind: str, message: str, **fields: Any) -> Record:
        """Append one failed probe."""
        empty = dict.fromkeys(("ttft_ms", "content_ms", "e2e_ms", "completion_tokens", "server"))
        return self.probe(
            experiment, phase, 0, 0,
            **{"prompt_tokens": None, "cached_tokens": None, **empty, "timings": {}, **fields},
            error={"kind": kind, "message": message},
        )  # fmt: skip

    def cell(self, name: str) -> None:
        """Close a cell."""
        self.append("cell", cell=name)

    @contextmanager
    def counted(self, experiment: str, scope: str = "all", **fields: Any) -> Iterator[None]:
        """Append the counters of the requests made inside this block."""
        queries, hits, order = self.queries, self.hits, self.order
        yield
        if self.name == "cloud":
            return
        on = self.name == "on"
        asked, hit = self.queries - queries, self.hits - hits
        rate = hit / asked if asked else None
        rates = {"counters": rate, "requests": rate, "prediction": rate}
        self.append(
            "counters", experiment=experiment, scope=scope, requests=self.order - order, family="prefix_cache",
            unit="tokens", queries=asked if on else 0, hits=hit, hit_rate=rate, tokens_saved=hit,
            per_engine={"0": {"queries": asked, "hits": hit, "hit_rate": rate}}, status="ok" if on else "disabled",
            message="", predicted_tokens=hit, **fields,
            reconciliation={"rates": rates, "agree": True, "reason": ""},
        )  # fmt: skip

    def sample(self, experiment: str, request: int, since: tuple[int, int], **fields: Any) -> None:
        """Append the counters of this moment, counted from `since`."""
        if self.name == "on":
            self.append("sample", experiment=experiment, request=request, queries=self.queries - since[0],
                        hits=self.hits - since[1], unit="tokens", status="ok", **fields)  # fmt: skip

    def floor(self, shared: int, total: int) -> int:
        """Return the tokens that block arithmetic can hit."""
        block = self.world.block
        return min(shared, total - 1) // block * block


def begin(arm: Arm, **changes: Any) -> None:
    """Append the `run` record of an arm."""
    params = load_arm("cpu", arm.name)
    local = arm.name != "cloud"
    run = {
        "params": params.model_dump(mode="json"), "params_hash": params_hash(params),
        "git": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": False}, "prefixkit": "0.1.0",
        "vllm": "0.32.0" if local else None,
        "argv": [".venv-vllm/bin/python", "-m", "vllm.entrypoints.openai.api_server", "--block-size", "32",
                 "--enable-prefix-caching" if arm.name == "on" else "--no-enable-prefix-caching"] if local else [],
        "model": {"name": params.model.name, "weights": "real"},
        "enable_prefix_caching": {"on": True, "off": False}.get(arm.name),
        "block_size": 32 if local else None, "kv_capacity_tokens": 46592 if local else None,
        "cpu": "Simulated CPU, 2 cores", "gpu": None, "driver": None, "os": "Debian 12", "python": "3.11.9",
        "started_at": f"2026-03-02T1{0 if local else 2}:00:00.000Z", **changes,
    }  # fmt: skip
    arm.append("run", **run)


def warmups(arm: Arm, experiment: str, prompt: int) -> None:
    """Append two warm-up probes."""
    for _ in range(2):
        arm.probe(experiment, "warmup", prompt, 0, cell=f"warmup/{experiment}")


def switch(arm: Arm, *, system: int = 1488, questions: int = 8, tokens: int = 64, repeats: int = 1) -> None:
    """Run the switch experiment: one shared system prompt, the first request cold."""
    warmups(arm, "switch", 1500)
    for repeat in range(repeats):
        cell, start = f"switch/r{repeat}", (arm.queries, arm.hits)

        def ask(question: int, repeat: int = repeat, cell: str = cell, start: tuple[int, int] = start) -> None:
            prompt = system + 20 + question
            cached = arm.floor(system, prompt) if question > 1 else 0
            phase = "warm" if arm.name == "on" and question > 1 else "cold"
            arm.probe("switch", phase, prompt, cached, tokens=tokens, cell=cell, target_tokens=system,
                      condition={"question": question, "repeat": repeat})  # fmt: skip
            arm.sample("switch", question, start, repeat=repeat, cell=cell)

        with arm.counted("switch", "all", repeat=repeat, cell=cell):
            ask(1)
            with arm.counted("switch", f"requests 2-{questions}", repeat=repeat, cell=cell):
                for question in range(2, questions + 1):
                    ask(question)
        arm.cell(cell)


def length(arm: Arm, *, lengths: Sequence[int] = SHORT + LENGTHS, repeats: int = 5, control: bool = True) -> None:
    """Run the length experiment: rounds in random order; on = cold, warm, control; off = cold."""
    for tokens in lengths:
        warmups(arm, "length", tokens + QUESTION_TOKENS)
    with arm.counted("length"):
        for number in range(repeats):
            for position, tokens in enumerate(arm.rng.sample(list(lengths), len(lengths))):
                cell = f"length/{tokens}/r{number}"
                prompt = tokens + QUESTION_TOKENS
                condition = {"round": number, "position": position}
                common: dict[str, Any] = {"cell": cell, "condition": condition, "target_tokens": tokens}
                arm.probe("length", "cold", prompt, 0, **common)
                if arm.name == "on":
                    arm.probe("length", "warm", prompt, arm.floor(prompt, prompt), **common)
                    if control:
                        arm.probe("length", "control", prompt, 0, **common)
                arm.cell(cell)


def cloud(models: Sequence[str] = ("gpt-4o-mini",), *, seed: int = 0) -> Arm:
    """Return the cloud arm: eight questions and two lengths for each model."""
    world = World(alpha_ms=420, beta_ms=0.05, cached_cost_ms=0.01, noise=0.08)
    arm = Arm("cloud", world, seed=seed)
    begin(arm)
    for model in models:
        for question in range(1, 9):
            prompt = 1500 + question
            arm.probe("switch", "cold", prompt, 0, tokens=64, cell=f"switch/{model}", server=None,
                      cached_tokens=1024 if question > 2 else 0, timings={"connect": 88.0, "first_byte": 400.0},
                      condition={"question": question, "model": model})  # fmt: skip
        for tokens in (256, 1024):
            for _ in range(2):
                arm.probe("length", "cold", tokens + 12, 0, cell=f"length/{model}/{tokens}", target_tokens=tokens,
                          server=None, timings={"connect": 90.0, "first_byte": 400.0},
                          condition={"model": model})  # fmt: skip
    arm.append("end", status="ok", reason="")
    return arm


def calibrated(arm: Arm, *, bottleneck: bool = False) -> None:
    """Measure what the client adds: alone with a short and a long prompt, and four at once."""
    for size, together, ms in ((12_000, 1, 0.42), (12_000, 4, 1.3), (150, 1, 0.38)):
        arm.append("calibration", prompt_bytes=size, concurrency=together, n=20, overhead_p50_ms=ms,
                   overhead_p99_ms=3 * ms, ttft_p50_ms=50.0, bottleneck=bottleneck and together > 1)  # fmt: skip


Experiment = Callable[[Arm], None]
CORE: tuple[Experiment, ...] = (switch, length)


def local(name: str, experiments: Sequence[Experiment] = CORE, *, world: World | None = None, seed: int = 0) -> Arm:
    """Return the arm `on` or `off` after `experiments`."""
    arm = Arm(name, world or World(), seed=seed)
    begin(arm)
    for experiment in experiments:
        experiment(arm)
    calibrated(arm)
    arm.append("end", status="ok", reason="")
    return arm


def skipped(name: str, reason: str = "TAOTOKEN_API_KEY is not set in this process") -> Arm:
    """Return an arm that was skipped as a whole."""
    arm = Arm(name, World())
    arm.append("skip", experiment=None, reason=reason)
    arm.append("end", status="skipped", reason=reason)
    return arm


def write(folder: Path, *arms: Arm) -> Path:
    """Write each arm's records to `folder`/ARM.jsonl and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for arm in arms:
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in arm.records]
        (folder / f"{arm.name}.jsonl").write_text("".join(lines), "utf-8")
    return folder


def complete(folder: Path, experiments: Sequence[Experiment] = CORE, *, seed: int = 0) -> Path:
    """Write a complete run with all three arms."""
    arms = [local(name, experiments, seed=seed) for name in ("off", "on")]
    return write(folder, *arms, cloud(seed=seed))
