"""`make report`: only what is stale is measured, a failed arm still gives an article, nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from prefixkit import paths, run
from prefixkit.errors import ParamsError
from prefixkit.experiments import open_session
from prefixkit.records import finished_cells, read_records
from prefixkit.stats import narrow_enough
from tests.experiments.support import profile, served_here
from tests.fakes.settings import Settings
from tests.fakes.vllm import FakeVllm

SECRET = "sk-planted-0123456789abcdef"


class Desk:
    """A profile with its results, measured in this process, that notes which arms were measured and rendered."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.path = folder, profile(folder)
        self.out = folder / "out" / "small"
        self.measured: list[str] = []
        self.said: list[str] = []
        self.rendered = 0
        monkeypatch.setattr(paths, "OUT", folder / "out")
        monkeypatch.setattr(run, "measure", self._measure)
        monkeypatch.setattr(run, "render_report", self._render)

    def _measure(self, name: str, arm: str, out: Path, progress: Any) -> None:
        self.measured.append(arm)
        with served_here(), open_session(name, arm, out, progress=progress) as session:
            session.run_all()

    def _render(self, _: Path, out: Path, __: Any) -> None:
        self.rendered += 1
        for name in run.RENDERED:
            (out / name).write_text("rendered")

    def report(self, arms: str = "on off cloud") -> tuple[int, list[str], int]:
        """Run the report; return its exit code, the arms measured and how often it rendered."""
        self.measured, self.rendered, self.said = [], 0, []
        code = run.report(str(self.path), arms.split(), lambda line: self.said.append(str(line)))
        return code, self.measured, self.rendered

    def edit(self, **changes: Any) -> None:
        """Change top-level parts of the profile."""
        data = yaml.safe_load(self.path.read_text())
        self.path.write_text("# edited\n" + yaml.safe_dump({**data, **changes}))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk(tmp_path, monkeypatch)
    assert desk.report() == (0, ["off", "on", "cloud"], 1)
    return desk


def test_nothing_changed_nothing_runs(desk: Desk) -> None:
    assert desk.report() == (0, [], 0)


def test_only_the_arm_whose_records_are_gone_is_measured(desk: Desk) -> None:
    (desk.out / "on.jsonl").unlink()
    assert desk.report() == (0, ["on"], 1)


def test_edited_experiments_make_both_local_arms_stale_and_keep_what_was_measured(desk: Desk) -> None:
    experiments = yaml.safe_load(desk.path.read_text())["experiments"]
    desk.edit(experiments={**experiments, "length": {**experiments["length"], "repeats": 1}})
    code, measured, rendered = desk.report("on off")
    assert (code, measured, rendered) == (0, ["off", "on"], 1)
    assert len(list(desk.out.glob("o*.*.jsonl"))) == 2


def test_the_language_of_the_article_measures_nothing_again(desk: Desk) -> None:
    desk.edit(report={"lang": "zh"})
    assert desk.report() == (0, [], 1)


def test_an_edited_report_notebook_measures_nothing_again(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited = tmp_path / "report.ipynb"
    notebook = json.loads(run.report_notebook("en").read_text())
    notebook["cells"][0]["source"] = ["# Another title"]
    edited.write_text(json.dumps(notebook))
    monkeypatch.setattr(run, "report_notebook", lambda _: edited)
    assert desk.report() == (0, [], 1)


def test_comments_and_times_of_a_profile_do_not_count(desk: Desk) -> None:
    desk.edit()
    os.utime(desk.path)
    assert desk.report() == (0, [], 0)


def test_a_newly_set_key_measures_the_skipped_cloud_arm_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeVllm(Settings()) as gateway:
        monkeypatch.setenv("TAOTOKEN_BASE_URL", gateway.root_url)
        monkeypatch.setenv("TAOTOKEN_API_KEY", SECRET)
        assert desk.report()[1] == ["cloud"]


def test_an_unknown_arm_is_refused_with_the_known_ones(desk: Desk) -> None:
    with pytest.raises(ParamsError, match=r"unknown arm 'onn' in ARMS.*on off cloud"):
        desk.report("onn")


def test_a_program_that_is_missing_is_said_before_anything_starts(desk: Desk) -> None:
    desk.edit(server={"command": [".venv-nowhere/bin/python", "-m", "x"]})
    with pytest.raises(ParamsError, match=r"server\.command: \.venv-nowhere/bin/python does not exist.*make setup"):
        desk.report()


def test_a_server_that_contradicts_its_arm_fails_the_report_but_not_the_article(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, monkeypatch)
    with FakeVllm(Settings()) as server:  # its cache is on
        desk.edit(server={"launcher": "url", "url": server.url})

        def attach(name: str, arm: str, out: Path, progress: Any) -> None:
            with open_session(name, arm, out, progress=progress) as session:
                session.run_all()

        monkeypatch.setattr(run, "measure", attach)
        code, _, rendered = desk.report("on off")
    assert (code, rendered) == (1, 1)
    skips = [r["reason"] for r in read_records(desk.out / "off.jsonl") if r["record"] == "skip"]
    assert any("enable_prefix_caching" in reason for reason in skips)
    assert desk.said[-1].startswith("arm off is not measured: ") and "enable_prefix_caching" in desk.said[-1]


def test_the_whole_way_through_the_notebooks_and_no_key_in_anything_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "OUT", tmp_path / "out")
    path, out = profile(tmp_path), tmp_path / "out" / "small"
    with FakeVllm(Settings(api_key=SECRET, gateway=True, models=("gpt-4o-mini",))) as gateway:
        monkeypatch.setenv("TAOTOKEN_BASE_URL", gateway.url)
        monkeypatch.setenv("TAOTOKEN_API_KEY", SECRET)
        assert run.report(str(path), ["on", "off", "cloud"], lambda _: None) == 0
    written = [p for p in out.rglob("*") if p.is_file()]
    names = {p.name for p in written}
    assert {"report.html", "report.pdf", "claims.json", "on.jsonl", "off.jsonl", "cloud.jsonl", "report.ipynb"} <= names
    assert {"measure.on.ipynb", "measure.off.ipynb", "measure.cloud.ipynb", "on.server.log"} <= names
    assert [p.name for p in written if SECRET.encode() in p.read_bytes()] == []
    claims = json.loads((out / "claims.json").read_text())
    assert claims["hit_rate_switch"]["value"] > 0.5
    assert claims["cloud_ttft_p50_ms"]["value"] > 0


def test_the_measuring_notebook_stops_by_itself_when_the_reduction_is_precise_enough(tmp_path: Path) -> None:
    fewest, cap = 3, 20
    length = {"lengths": [400], "short_lengths": [], "repeats": fewest, "precision": 0.02, "max_repeats": cap}
    speed = {"fake_alpha_ms": 5.0, "fake_beta_ms": 0.2}
    path = profile(tmp_path, engine_args=speed, switch=False, conversation=False, load=False, length=length)
    run.measure(str(path), "on", tmp_path, lambda _: None)
    records = read_records(tmp_path / "on.jsonl")
    visits = [r for r in records if r.get("experiment") == "length" and r.get("phase") in ("cold", "warm", "control")]

    def first(rounds: int) -> list[dict[str, Any]]:
        return [r for r in visits if r["condition"]["round"] < rounds]

    made = 1 + max(r["condition"]["round"] for r in visits)
    assert made == next((n for n in range(fewest, cap) if narrow_enough(first(n), 0.02)), cap)
    assert records[-1]["status"] == "ok"
    shown = json.loads((tmp_path / "measure.on.ipynb").read_text())
    assert made == cap or f"precise enough after {made} rounds" in json.dumps(shown)


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _wait(condition: Any, what: str, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@pytest.mark.parametrize("victim", ["SIGTERM", "SIGINT", "kernel"])
def test_an_interrupted_run_leaves_no_process_loses_no_finished_cell_and_continues(tmp_path: Path, victim: str) -> None:
    path, out = (
        profile(tmp_path, length={"lengths": [96, 192], "short_lengths": [32], "repeats": 200}),
        tmp_path / "out",
    )
    records = out / "small" / "on.jsonl"
    code = f"from prefixkit import paths, run; from pathlib import Path; import sys; paths.OUT = Path({str(out)!r}); "
    code += f"sys.exit(run.report({str(path)!r}, ['on']))"
    log = (tmp_path / "log").open("w")
    process = subprocess.Popen([sys.executable, "-c", code], cwd=paths.ROOT, stdout=log, stderr=log)

    def cells() -> set[str]:
        return finished_cells(read_records(records)) if records.exists() else set()

    _wait(lambda: len(cells()) > 5 or process.poll() is not None, "no cell was finished")
    assert process.poll() is None, (tmp_path / "log").read_text()
    started = _children(process.pid)
    before = cells()
    if victim == "kernel":
        next(p for p in started if "ipykernel_launcher" in " ".join(p.cmdline())).kill()
    else:
        process.send_signal(getattr(signal, victim))
    assert process.wait(60) != 0
    _wait(lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in started), "left behind")
    assert before <= cells()

    with served_here(), open_session(str(path), "on", out / "small", progress=lambda _: None, rounds=1) as session:
        session.run("length")
    after = read_records(records)
    assert before <= finished_cells(after)
    cold = [(r["cell"]) for r in after if r["record"] == "probe" and r["phase"] == "cold" and not r["superseded"]]
    assert len(cold) == len(set(cold)), "a finished cell was measured again"
