"""How to measure it again: the commit, and the commands that the records say were used."""

from __future__ import annotations

from prefixkit.article.data import Arm, Data
from prefixkit.article.limit import device
from prefixkit.article.section import Context, Section
from prefixkit.claims import Claims
from prefixkit.export.markdown import fence

ARMS = ("off", "on")
RUN = ".venv/bin/python -m prefixkit"


def commit(run: dict[str, object]) -> str:
    """Return the commit of a run, shortened, and whether anything differed from it."""
    git = run.get("git")
    known = git if isinstance(git, dict) else {}
    return str(known.get("commit") or "unknown")[:12] + (" + changes" if known.get("dirty") else "")


def visits(arm: Arm) -> list[set[object]]:
    """Return the rounds of `length` that each visit to a server held open measured; empty without such visits."""
    found: list[set[object]] = []
    for r in arm.records:
        if r.get("record") == "run" and r.get("attached"):
            found.append(set())
        elif found and r.get("experiment") == "length" and not r.get("superseded"):
            number = (r.get("condition") or {}).get("round")
            found[-1] |= set() if number is None else {number}
    return found


def claim(data: Data, claims: Claims) -> None:
    """Make the claims of the commit and of the visits."""
    commits = sorted({commit(run) for name in ARMS for run in data.arm(name).runs})
    claims.add("commit", ", ".join(commits) or None, "text", source="off, on: run records, git")
    both = [visits(data.arm(name)) for name in ARMS]
    claims.add("visits", max(map(len, both)) or None, "count", source="off, on: run records, attached")
    rounds = max((len(rounds) for found in both for rounds in found), default=0)
    claims.add("rounds_a_visit", rounds or None, "count", source="off, on: length probes between run records")


def _sentences(ctx: Context) -> str:
    profile, rounds = ctx.data.profile, int(ctx.number("rounds_a_visit") or 1)
    interleaved = ctx.has("visits")
    lines = [f"make setup PROFILE={profile}"] if interleaved or device(ctx.data) else []
    if interleaved:
        lines.append(f"{RUN} interleave --profile {profile}" + (f" --rounds {rounds}" if rounds > 1 else ""))
    if device(ctx.data):
        lines.append(f"{RUN} peak --profile {profile}")
    lines.append(f"make report PROFILE={profile}")
    known = ctx.has("commit") and ctx.claims["commit"].value != "unknown"
    said = [ctx.say("rerun.at" if known else "rerun.somewhere"), fence("\n".join(lines), "")]
    if interleaved:
        said.append(ctx.say("rerun.interleaved"))
    return "\n\n".join([*said, ctx.say("rerun.report", profile=profile)])


SECTION = Section(claim, sentences={"rerun": _sentences})
