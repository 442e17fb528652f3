"""Provenance of every run, and the count of every probe, failure and skip."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Any

from prefixkit.article.data import ORDER, Arm, Data
from prefixkit.article.rerun import commit, visits
from prefixkit.article.section import Context, Section, Table, joined, reason
from prefixkit.claims import Claims
from prefixkit.export.markdown import fence
from prefixkit.export.show import literal
from prefixkit.records import Record
from prefixkit.scrub import Scrubber

COUNTS = ("sent", "failed", "retried", "superseded")
ITEMS = (
    "status", "started_at", "servers", "visits", "probes", "prefixkit", "git", "params_hash", "vllm", "model",
    "weights", "caching", "block_size", "kv_capacity", "max_model_len", "dtype", "cpu", "gpu", "driver", "gpu_start",
    "gpu_end", "os", "python", "executable",
)  # fmt: skip
SHOWN = 120
HEAT = "temperature.gpu"
NOTHING = ("none", "unknown", "")
PARALLEL = {"tensor_parallel_size": "TP", "pipeline_parallel_size": "PP", "data_parallel_size": "DP"}


def _name(part: object) -> str:
    """Return a word fit for a claim's name."""
    return "".join(c if c.isalnum() else "_" for c in str(part)) or "none"


def _groups(arm: Arm) -> dict[tuple[str, str], list[Record]]:
    groups: dict[tuple[str, str], list[Record]] = {}
    for r in arm.of("probe"):
        groups.setdefault((str(r.get("experiment")), str(r.get("phase"))), []).append(r)
    return groups


def _counts(rows: list[Record]) -> dict[str, int]:
    live = [r for r in rows if not r.get("superseded")]
    return {
        "sent": len(rows),
        "failed": sum(bool(r.get("error")) for r in live),
        "retried": sum(int(r.get("attempt") or 1) > 1 for r in live),
        "superseded": len(rows) - len(live),
    }


def _servers(arm: Arm) -> int:
    """Return how many servers were started; several visits may have attached to one."""
    return len({" ".join(r["argv"]) if r.get("attached") else str(number) for number, r in enumerate(arm.runs)})


def _gpu_state(record: Record) -> str | None:
    """Return clocks, power and temperature of each GPU as a record holds them."""
    fields = ("clocks.sm", "clocks.mem", "power.draw")
    states = [
        ", ".join([*(str(gpu[f]) for f in fields if f in gpu), *([f"{gpu[HEAT]} °C"] if HEAT in gpu else [])])
        for gpu in record.get("gpu_details") or []
    ]
    return "; ".join(states) or None


def _items(arm: Arm) -> dict[str, tuple[Any, str]]:
    """Return each fact of an arm's last run with its unit."""
    run = arm.run
    model, params = run.get("model") or {}, run.get("params") or {}
    cloud = run.get("cloud") or params.get("cloud") or {}
    engine = (params.get("server") or {}).get("engine_args") or {}
    engine = engine if isinstance(engine, dict) and arm.name != "cloud" else {}
    caching = run.get("enable_prefix_caching")
    return {
        "status": (arm.status, "text"),
        "started_at": (arm.runs[0].get("started_at") if arm.runs else None, "text"),
        "servers": (_servers(arm), "count"),
        "visits": (len(visits(arm)) or None, "count"),
        "probes": (len(arm.of("probe")), "count"),
        "prefixkit": (run.get("prefixkit"), "text"),
        "git": (commit(run) if run else None, "text"),
        "params_hash": (run.get("params_hash"), "text"),
        "vllm": (run.get("vllm"), "text"),
        "model": (model.get("name") if arm.name != "cloud" else ", ".join(cloud.get("models") or []) or None, "text"),
        "weights": (model.get("weights") if arm.name != "cloud" else None, "text"),
        "caching": (None if caching is None else str(caching), "text"),
        "block_size": (run.get("block_size"), "tokens"),
        "kv_capacity": (run.get("kv_capacity_tokens"), "tokens"),
        "max_model_len": (run.get("max_model_len") or engine.get("max_model_len"), "tokens"),
        "dtype": (run.get("dtype") or engine.get("dtype"), "text"),
        "cpu": (run.get("cpu"), "text"),
        "gpu": (run.get("gpu"), "text"),
        "driver": (run.get("driver"), "text"),
        "gpu_start": (_gpu_state(arm.runs[0]) if arm.runs else None, "text"),
        "gpu_end": (_gpu_state(arm.of("end")[-1]) if arm.of("end") else None, "text"),
        "os": (run.get("os"), "text"),
        "python": (run.get("python"), "text"),
        "executable": (Scrubber.here()(str(run["executable"])) if run.get("executable") else None, "text"),
    }


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of provenance and of counts."""
    for name in ORDER:
        if not (arm := data.arm(name)).records:
            continue
        for item, (value, unit) in _items(arm).items():
            known = value if value is None or unit != "text" else str(value)
            claims.add(f"run_{name}_{item}", known, unit, source=f"{name}: run and end records")
        for (experiment, phase), rows in _groups(arm).items():
            for count, number in _counts(rows).items():
                claims.add(f"count_{name}_{_name(experiment)}_{_name(phase)}_{count}", number, "count",
                           source=f"{name}: {experiment} {phase} probes")  # fmt: skip
    _totals(data, claims)
    _front(data, claims)


def _totals(data: Data, claims: Claims) -> None:
    totals = Counter(dict.fromkeys(COUNTS, 0))
    for name in ORDER:
        totals.update(_counts(data.arm(name).of("probe")))
    for count in COUNTS:
        claims.add(f"probes_{count}", totals[count], "count", source="all arms: probe records")
    claims.add("skips", sum(len(data.arm(n).skips) for n in ORDER), "count", source="all arms: skip records")


def _front(data: Data, claims: Claims) -> None:
    """Add the words of the title, the byline and the foot of each page."""
    run: Record = next((r for name in ("on", "off", "cloud") if (r := data.arm(name).run)), {})
    model = run.get("model") or {}
    claims.add("model_name", str(model.get("name") or "?"), "text", source="run: model.name")
    claims.add("model_weights", str(model.get("weights") or "real"), "text", source="run: model.weights")
    gpu = str(run.get("gpu") or "none")
    machine = gpu.replace(" x ", " × ") if gpu not in NOTHING else str(run.get("cpu") or "?")
    args = ((run.get("params") or {}).get("server") or {}).get("engine_args") or {}
    ways = [f"{short} {args[name]}" for name, short in PARALLEL.items() if args.get(name, 1) != 1]
    machine += f" ({', '.join(ways)})" if ways else ""
    claims.add("machine_name", machine, "text", source="run: gpu, cpu")
    claims.add("vllm_version", str(run.get("vllm") or "?"), "text", source="run: vllm")
    claims.add("profile", data.profile, "text", source="all arms: profile")
    started = [str(r.get("started_at")) for name in ORDER for r in data.arm(name).runs if r.get("started_at")]
    claims.add("measured_at", min(started) if started else None, "text", source="run: started_at, the first")
    claims.add("measured_on", min(started)[:10] if started else None, "text", source="run: started_at, the first")
    hashes = " ".join(f"{n} {data.arm(n).run['params_hash']}" for n in ORDER if data.arm(n).run.get("params_hash"))
    commit = str((run.get("git") or {}).get("commit") or "unknown")[:12]
    parts = (f"prefixkit {run.get('prefixkit') or '?'}", commit, f"vLLM {run.get('vllm') or '?'}", data.profile, hashes)
    claims.add(
        "stamp", " · ".join(part for part in parts if part), "text", source="run: prefixkit, git, vllm, params_hash"
    )
    claims.add("block_size", run.get("block_size"), "tokens", source="run: block_size, as the server says")
    claims.add("kv_capacity_tokens", run.get("kv_capacity_tokens"), "tokens", source="run: kv_capacity_tokens")
    claims.add("control_margin", data.settings.control_margin, "fraction", source="params: report.control_margin")


def _provenance(ctx: Context) -> Table | None:
    arms = [name for name in ORDER if ctx.data.arm(name).records]
    rows = [
        (ctx.words(f"provenance.{item}"), *(ctx.cell(f"run_{name}_{item}") for name in arms))
        for item in ITEMS
        if any(ctx.has(f"run_{name}_{item}") for name in arms)
    ]
    return Table(("item", *(f"arm_{name}" for name in arms)), tuple(rows))


def _probes(ctx: Context) -> Table | None:
    rows = []
    for name in ORDER:
        for experiment, phase in _groups(ctx.data.arm(name)):
            key = f"count_{name}_{_name(experiment)}_{_name(phase)}"
            rows.append((ctx.words.arm(name), experiment, phase, *(ctx.cell(f"{key}_{count}") for count in COUNTS)))
    return Table(("arm", "experiment", "phase", *COUNTS), tuple(rows)) if rows else None


def _failures(ctx: Context) -> Table | None:
    found: dict[tuple[str, str, str], list[str]] = {}
    for name in ORDER:
        for r in ctx.data.arm(name).of("probe"):
            if (error := r.get("error")) and not r.get("superseded"):
                found.setdefault((name, str(r.get("experiment")), str(error.get("kind"))), []).append(
                    " ".join(str(error.get("message")).split())[:SHOWN]
                )
    rows = [(ctx.words.arm(a), e, kind, str(len(texts)), texts[0]) for (a, e, kind), texts in found.items()]
    return Table(("arm", "experiment", "kind", "n", "message"), tuple(rows)) if rows else None


def _skips(ctx: Context) -> Table | None:
    rows = [
        (ctx.words.arm(name), str(s.get("experiment") or ctx.words("skip.all")), reason(ctx, s))
        for name in ORDER
        for s in ctx.data.arm(name).skips
    ]
    return Table(("arm", "experiment", "reason"), tuple(rows)) if rows else None


def _warnings(ctx: Context) -> Table | None:
    found = Counter(
        (name, " ".join(str(w).split())[:SHOWN])
        for name in ORDER
        for r in ctx.data.arm(name).of("probe")
        if not r.get("superseded")
        for w in r.get("warnings") or []
    )
    rows = [(ctx.words.arm(name), text, str(n)) for (name, text), n in found.items()]
    return Table(("arm", "warning", "n"), tuple(rows)) if rows else None


def _missing(ctx: Context) -> str:
    """Say which arms are missing, unfinished or skipped."""
    said = []
    for name in ORDER:
        arm = ctx.data.arm(name)
        if not arm.records:
            said.append(ctx.say("missing.arm", arm=ctx.words.arm(name)))
        elif arm.skips and not arm.probes():
            reasons = "; ".join(literal(reason(ctx, s)) for s in arm.skips)
            said.append(ctx.say("missing.skipped", arm=ctx.words.arm(name), reason=reasons))
        elif not arm.probes():
            said.append(ctx.say("missing.no_probe", arm=ctx.words.arm(name), status=literal(arm.status)))
        elif arm.status != "ok":
            said.append(ctx.say("missing.partial", arm=ctx.words.arm(name), status=literal(arm.status)))
    return joined(*said)


def _sentences(ctx: Context) -> str:
    if not ctx.number("probes_sent"):
        return joined(ctx.say("appendix.none"), ctx.say("appendix.skips") if _skips(ctx) else "")
    extra = [key for key in ("failed", "retried", "superseded") if ctx.number(f"probes_{key}")]
    return joined(
        ctx.say("appendix.sent"),
        *(ctx.say(f"appendix.{key}") for key in extra),
        ctx.say("appendix.clean") if not ctx.number("probes_failed") else "",
        ctx.say("appendix.skips") if _skips(ctx) else "",
        ctx.say("appendix.warnings") if _warnings(ctx) else "",
    )


def _commands(ctx: Context) -> str:
    """Show the command line of each server as it was started."""
    blocks = []
    for name in ORDER:
        if argv := ctx.data.arm(name).run.get("argv"):
            line = Scrubber.here()(shlex.join(str(a) for a in argv))
            blocks.append(f"{ctx.say('provenance.command', arm=ctx.words.arm(name))}\n\n{fence(line, '')}")
    return "\n\n".join(blocks)


SECTION = Section(
    claim,
    tables={
        "provenance": _provenance, "probes": _probes, "failures": _failures, "skips": _skips, "warnings": _warnings,
    },
    sentences={
        "missing": _missing, "appendix": _sentences, "commands": _commands,
        "provenance": lambda ctx: ctx.say("provenance.intro"),
    },
)  # fmt: skip
