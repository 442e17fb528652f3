"""The baseline through a gateway: one row per model, connect time apart."""

from __future__ import annotations

import pandas as pd

from prefixkit.article.data import Data
from prefixkit.article.estimates import mean
from prefixkit.article.section import Context, Section, Table, joined, reason
from prefixkit.claims import Claims
from prefixkit.export.show import literal
from prefixkit.figures import cloud as figures
from prefixkit.figures.style import Picture
from prefixkit.records import Record, probes
from prefixkit.stats.quantiles import quantile


def model(record: Record, data: Data) -> str:
    """Return the model id that a probe of the cloud arm was sent to."""
    named = (record.get("condition") or {}).get("model")
    return str(named or (data.arm("cloud").run.get("model") or {}).get("name") or "?")


def models(data: Data) -> list[str]:
    """Return the models asked, those that only failed among them, in order."""
    return list(dict.fromkeys(model(r, data) for r in probes(data.arm("cloud").records)))


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the cloud arm; `cloud_ttft_p50_ms` is the first model's."""
    names = models(data)
    for index, name in enumerate(names, 1):
        prefix, rows = f"cloud_{index}", [r for r in data.probes("cloud") if model(r, data) == name]
        behind = [r for r in rows if r.get("experiment") == "switch"] or rows
        claims.add(f"{prefix}_model", name, "text", source="cloud: model id asked for")
        failed = [r for r in probes(data.arm("cloud").records) if r.get("error") and model(r, data) == name]
        claims.add(f"{prefix}_n", len(behind), "count", source=f"cloud: {name}, switch probes answered")
        claims.add(f"{prefix}_failed", len(failed), "count", source=f"cloud: {name}, probes with an error")
        p50 = quantile([float(r["ttft_ms"]) for r in behind], 0.5)
        claims.estimate(f"{prefix}_ttft_p50_ms", p50, "ms", f"cloud: {name}, switch, median ttft_ms")
        e2e = quantile([float(r["e2e_ms"]) for r in behind if r.get("e2e_ms") is not None], 0.5)
        claims.estimate(f"{prefix}_e2e_p50_ms", e2e, "ms", f"cloud: {name}, switch, median e2e_ms")
        opened = [c for r in rows if (c := (r.get("timings") or {}).get("connect"))]
        claims.add(f"{prefix}_connect_p50_ms", quantile(opened, 0.5).value, "ms",
                   source=f"cloud: {name}, median timings.connect of new connections")  # fmt: skip
        cached = [r["cached_tokens"] for r in behind if r.get("cached_tokens") is not None]
        claims.add(f"{prefix}_cached_tokens", mean(cached).value, "tokens", source=f"cloud: {name}, mean cached_tokens")
        sent = [r["prompt_tokens"] for r in behind if r.get("prompt_tokens")]
        claims.add(f"{prefix}_prompt_tokens", mean(sent).value, "tokens", source=f"cloud: {name}, mean prompt_tokens")
        for target in sorted({int(r["target_tokens"]) for r in rows if r.get("experiment") == "length"}):
            same = [
                float(r["ttft_ms"]) for r in rows if r.get("experiment") == "length" and r["target_tokens"] == target
            ]
            claims.add(f"{prefix}_length_{target}_ttft_p50_ms", quantile(same, 0.5).value, "ms",
                       source=f"cloud: {name}, length {target}, median ttft_ms")  # fmt: skip
    claims.add("cloud_models", len(names) or None, "count", source="cloud: models asked")
    first = claims.get("cloud_1_ttft_p50_ms")
    claims.add("cloud_ttft_p50_ms", first.value if first else None, "ms", first.ci if first else None,
               first.source if first else "cloud: no answered probe")  # fmt: skip


def _table(ctx: Context) -> Table | None:
    names = models(ctx.data)
    if not names:
        return None
    columns = ("model", "n", "failed", "ttft_p50_ms", "e2e_p50_ms", "connect_p50_ms", "prompt_tokens", "cached_tokens")
    rows = tuple(
        tuple(ctx.ci(f"cloud_{i}_{c}") if c == "ttft_p50_ms" else ctx.cell(f"cloud_{i}_{c}") for c in columns)
        for i in range(1, len(names) + 1)
    )
    return Table(("model", "n", "failed", "ttft_p50", "e2e_p50", "connect_p50", "prompt_tokens", "cached_tokens"), rows)


def _picture(ctx: Context) -> Picture | None:
    rows = [
        {"model": model(r, ctx.data), "experiment": r["experiment"], "prompt_tokens": r.get("prompt_tokens"),
         "ttft_ms": float(r["ttft_ms"]), "cached_tokens": r.get("cached_tokens")}
        for r in ctx.data.probes("cloud")
    ]  # fmt: skip
    rows = [r for r in rows if r["experiment"] == "switch"] or rows
    if not rows:
        return None
    local = {a: v for a in ("off", "on") if (v := ctx.number(f"switch_ttft_{a}_ms")) is not None}
    return figures.models(pd.DataFrame(rows), local, ctx.words)


def _sentences(ctx: Context) -> str:
    arm = ctx.data.arm("cloud")
    if not arm.probes():
        reasons = [literal(reason(ctx, s)) for s in arm.skips]
        why = ctx.say("cloud.skipped", reason="; ".join(reasons)) if reasons else ctx.say("cloud.none")
        if failed := [r for r in probes(arm.records) if r.get("error")]:
            why = ctx.say("cloud.failed", n=str(len(failed)), reason=literal(str(failed[0]["error"].get("message"))))
        return joined(why, ctx.say("cloud.how"))
    return joined(ctx.say("cloud.found"), ctx.say("cloud.meaning"))


SECTION = Section(claim, {"cloud": _picture}, {"cloud": _table}, {"cloud": _sentences})
