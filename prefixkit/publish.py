"""Publish a profile's results so that anybody can render and check them again; render and check published ones."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from prefixkit import paths
from prefixkit.article.data import SETTINGS, load, write_settings
from prefixkit.errors import ParamsError, PrefixkitError, RenderError
from prefixkit.export.placeholders import read_claims
from prefixkit.params import ARMS, profile_name
from prefixkit.provenance import changed_files, git
from prefixkit.records import Record, last, read_records
from prefixkit.render import CLAIMS, HTML, render_report, shown
from prefixkit.scrub import Scrubber, find_key

SUMS = "SHA256SUMS"
NAMED = 5  # changed files in a message
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
LOG_LINES = 150  # kept at the start and at the end of a server's log
REQUIRED = ("off", "on")


class PublishError(PrefixkitError):
    """Results that must not be published as they are, or a published set that is not what it was."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One claim that a published set and its rendering today do not share."""

    name: str
    published: Any
    rendered: Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verifying found: files that changed since they were published, claims that differ now."""

    name: str
    claims: int
    files: tuple[str, ...]
    differences: tuple[Difference, ...]

    @property
    def equal(self) -> bool:
        """Whether every file and every claim is as published."""
        return not self.files and not self.differences


def published(name: str) -> Path:
    """Return the folder of a published set; ParamsError when there is none."""
    folder = _target(name)
    if not folder.is_dir():
        known = ", ".join(sorted(p.name for p in paths.PUBLISHED.glob("[!.]*") if p.is_dir())) or "none yet"
        raise ParamsError(f"nothing is published as {name!r}", f"NAME is one of: {known}")
    return folder


def render_published(name: str, lang: str | None = None, compare: str | None = None) -> Path:
    """Render a published set again into report/out/NAME and return that folder."""
    folder, out = published(name), paths.OUT / name
    if any(out.glob("*.jsonl")):
        raise PublishError(
            f"{shown(out)} holds what a profile of that name measured",
            "move it away, or name the set otherwise",
        )
    out.mkdir(parents=True, exist_ok=True)
    render_report(folder, out, lang=lang, compare=compare)
    return out


def publish(name: str, profile: str, progress: Callable[[str], object] = print, *, compare: str | None = None) -> Path:
    """Put the results of `profile` into report/published/NAME and return that folder.

    `compare` names another published set to set beside them (default: report.compare of the stored settings).
    Raises PublishError for uncommitted changes, an arm that is not complete, or anything that looks like a key.
    """
    target, source = _target(name), paths.OUT / profile_name(profile)
    records = {arm: read_records(file) for arm in ARMS if (file := source / f"{arm}.jsonl").is_file()}
    _check_commit(records)
    _check_arms(records, source)
    paths.PUBLISHED.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=paths.PUBLISHED) as scratch:
        stage = Path(scratch) / name
        stage.mkdir()
        final = shown(target)
        elsewhere = {str(r["root"]): "." for rows in records.values() for r in rows if r.get("root")}
        scrub = Scrubber.here({**elsewhere, str(stage): final, shown(stage): final})
        _stage(source, stage, records, scrub)
        _keep_comparison(stage, name, compare)
        progress(f"rendering {profile} from the records to be published")
        render_report(stage, stage)
        _scrub_texts(stage, scrub)
        for picture in stage.rglob("*.png"):
            _lighten(picture)
        _check_keys(stage, records)
        (stage / SUMS).write_text("".join(f"{digest}  {file}\n" for file, digest in _digests(stage)), "utf-8")
        if target.exists():
            shutil.rmtree(target)
        stage.replace(target)
    progress(f"published {target} ({sum(f.stat().st_size for f in _files(target)) / 1e6:.1f} MB)")
    return target


def verify(name: str) -> Verdict:
    """Render a published set again and compare its files with their checksums and every claim with the new one."""
    folder = published(name)
    files = _changed_files(folder)
    before = read_claims(folder / CLAIMS)
    with tempfile.TemporaryDirectory(prefix="prefixkit-verify-") as scratch:
        render_report(folder, Path(scratch))
        after = read_claims(Path(scratch) / CLAIMS)
    differences = tuple(
        Difference(claim, before.get(claim), after.get(claim))
        for claim in sorted({*before, *after})
        if not _same(before.get(claim), after.get(claim))
    )
    return Verdict(name, len(before), files, differences)


def _target(name: str) -> Path:
    if not NAME.fullmatch(name):
        raise ParamsError(
            f"NAME={name!r} cannot be a folder's name", "give letters, digits, dots and hyphens: NAME=cpu-example"
        )
    return paths.PUBLISHED / name


def _check_commit(records: dict[str, list[Record]]) -> None:
    state = git()
    if state["dirty"] is not False:
        changes = f"the project has uncommitted changes ({', '.join(changed_files()[:NAMED])})"
        found = changes if state["dirty"] else "the project is not a git checkout"
        raise PublishError(found, "commit them, so that a reader can check out what made the results")
    for arm, lines in records.items():
        if ((last(lines, "run") or {}).get("git") or {}).get("dirty"):
            raise PublishError(f"arm {arm} was measured with uncommitted changes", "commit, then measure it again")


def _check_arms(records: dict[str, list[Record]], source: Path) -> None:
    for arm in [arm for arm in ARMS if arm in records or arm in REQUIRED]:
        end = last(records.get(arm, []), "end") or {}
        status = end.get("status") or ("unfinished" if arm in records else "not measured")
        if status != "ok" and not (arm == "cloud" and status == "skipped"):
            reason = f" ({end['reason']})" if end.get("reason") else ""
            raise PublishError(
                f"arm {arm} in {source} is incomplete: {status}{reason}", "run `make report` to finish it"
            )


def _stage(source: Path, stage: Path, records: dict[str, list[Record]], scrub: Scrubber) -> None:
    """Copy what was measured: records compressed, logs cut short, all without this machine's folders."""
    for arm in records:
        text = scrub((source / f"{arm}.jsonl").read_text("utf-8"))
        (stage / f"{arm}.jsonl.gz").write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
    for file in [*source.glob("measure.*.ipynb"), source / SETTINGS]:
        if file.is_file():
            (stage / file.name).write_text(scrub(file.read_text("utf-8")), "utf-8")
    for file in source.glob("*.log"):
        (stage / file.name).write_text(scrub.log(trimmed(file.read_text("utf-8", "replace"))), "utf-8")


def _keep_comparison(stage: Path, name: str, compare: str | None) -> None:
    """Store which run is set beside this one; whoever checks the set must have that run too."""
    stored = load(stage).settings
    wanted = compare or stored.compare
    if wanted is None:
        return
    if wanted == name or not NAME.fullmatch(wanted) or not (paths.PUBLISHED / wanted).is_dir():
        raise PublishError(f"{wanted} is not another published set, so nobody could check the comparison",
                           "publish that run first, and name it: --compare NAME")  # fmt: skip
    write_settings(stage, {**asdict(stored), "compare": wanted})


def trimmed(log: str) -> str:
    """Return the head and the tail of a log; the line between says what is left out."""
    lines = log.splitlines()
    left_out = len(lines) - 2 * LOG_LINES
    if left_out > 0:
        lines = [*lines[:LOG_LINES], f"[... {left_out} lines left out ...]", *lines[-LOG_LINES:]]
    return "\n".join(lines) + "\n"


def _lighten(picture: Path) -> None:
    """Store a chart in 128 colours, which it does not exceed visibly, at a third of its size."""
    with Image.open(picture) as full:
        few = full.convert("RGB").quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(picture, optimize=True)


def _files(folder: Path) -> Iterator[Path]:
    return (p for p in sorted(folder.rglob("*")) if p.is_file())


def _texts(folder: Path) -> Iterator[tuple[Path, str]]:
    for file in _files(folder):
        if file.suffix == ".gz":
            yield file, gzip.decompress(file.read_bytes()).decode("utf-8")
        elif file.suffix not in (".png", ".pdf"):
            yield file, file.read_text("utf-8")


def _scrub_texts(stage: Path, scrub: Scrubber) -> None:
    for file, text in _texts(stage):
        if (clean := scrub(text)) == text:
            continue
        if file.name == HTML:
            raise RenderError(f"{file.name} prints a folder of this machine", "take it out of the report notebook")
        file.write_text(clean, "utf-8")


def _check_keys(stage: Path, records: dict[str, list[Record]]) -> None:
    params = [(last(lines, "run") or {}).get("params") or {} for lines in records.values()]
    names = {p.get(part, {}).get("api_key_env") for p in params for part in ("server", "cloud")} - {None}
    for file, text in _texts(stage):
        if kind := find_key(text, names):
            raise PublishError(
                f"{file.relative_to(stage)} holds what looks like a key ({kind})",
                "take it out; revoke the key if it is real",
            )


def _digests(folder: Path) -> Iterator[tuple[str, str]]:
    for file in _files(folder):
        if file.name != SUMS:
            yield file.relative_to(folder).as_posix(), hashlib.sha256(file.read_bytes()).hexdigest()


def _changed_files(folder: Path) -> tuple[str, ...]:
    try:
        lines = (folder / SUMS).read_text("utf-8").splitlines()
    except OSError as error:
        raise PublishError(f"{folder / SUMS}: {error.strerror}", "publish the set again") from None
    wanted = {file: digest for digest, _, file in (line.partition("  ") for line in lines)}
    found = dict(_digests(folder))
    return tuple(sorted(file for file in {*wanted, *found} if wanted.get(file) != found.get(file)))


def _same(one: Any, other: Any) -> bool:
    """Compare claims; numbers may differ in the last digits, which other builds of the libraries round differently."""
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(json.dumps(one) == json.dumps(other))
