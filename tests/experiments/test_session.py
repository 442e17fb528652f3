from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from prefixkit import paths
from prefixkit.errors import ParamsError, RecordsError, ServerError
from prefixkit.experiments import arm_state, open_session, opening
from prefixkit.experiments.session import Session
from prefixkit.params import load_arm, params_hash
from prefixkit.probe import Client
from prefixkit.records import RecordWriter, finished_cells, read_records
from tests.experiments.support import measure, of, profile, served_here, start


def interrupt_after(monkeypatch: pytest.MonkeyPatch, requests: int, error: BaseException) -> None:
    """Let the client answer so many requests, then raise."""
    real, left = Client.probe, [requests]

    def probe(self: Client, *args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise error
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Client, "probe", probe)


def test_a_run_says_what_was_measured_where(tmp_path: Path) -> None:
    path = profile(tmp_path, length=False)
    records = measure(path, "on", tmp_path / "out")
    (run,) = of(records, "run")
    assert (run["arm"], run["profile"], run["schema"]) == ("on", "small", 1)
    assert run["params_hash"] == params_hash(load_arm(path, "on"))
    assert run["enable_prefix_caching"] is True
    assert (run["block_size"], run["kv_capacity_tokens"]) == (16, 64000)
    assert run["model"] == {"name": "fake", "weights": "real"}
    assert "--enable-prefix-caching" in run["argv"]
    assert {"git", "prefixkit", "vllm", "cpu", "gpu", "driver", "os", "python", "started_at", "params"} <= run.keys()
    assert records[-1]["record"] == "end"
    assert records[-1]["status"] == "ok"


def test_an_experiment_that_is_switched_off_is_recorded_as_skipped(tmp_path: Path) -> None:
    records = measure(profile(tmp_path, switch=False, length=False), "off", tmp_path / "out")
    skipped = {s["experiment"]: s["reason"] for s in of(records, "skip")}
    assert skipped["switch"] == "switched off in the parameters"
    assert "cloud" not in skipped
    assert len(of(records, "probe")) == 0


def test_a_complete_arm_starts_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = profile(tmp_path, length=False)
    measure(path, "off", tmp_path / "out")
    before = (tmp_path / "out/off.jsonl").read_bytes()
    monkeypatch.setattr(opening, "serve", lambda *_, **__: pytest.fail("a server was started"))
    session = open_session(path, "off", tmp_path / "out")
    session.run_all()
    session.close()
    assert session.status == "complete"
    assert (tmp_path / "out/off.jsonl").read_bytes() == before


def test_an_interrupted_run_is_continued_without_repeating_finished_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, file = profile(tmp_path, switch=False), tmp_path / "out/on.jsonl"
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        # Three warm-ups, a visit of three, then two of the next three.
        interrupt_after(patched, 8, KeyboardInterrupt())
        measure(path, "on", tmp_path / "out")
    broken = read_records(file)
    assert broken[-1]["status"] == "interrupted"
    assert len(finished_cells(broken)) == 1
    records = measure(path, "on", tmp_path / "out")
    assert [r["status"] for r in of(records, "end")] == ["interrupted", "ok"]
    assert len(of(records, "run")) == 2
    good = [p for p in of(records, "probe", superseded=False) if p["phase"] != "warmup"]
    assert len(good) == len({(p["cell"], p["phase"]) for p in good}) == 3 * 2 * 3
    assert len([p for p in of(records, "probe", superseded=True) if p["phase"] != "warmup"]) == 2
    assert [p["order"] for p in of(records, "probe")] == list(range(1, len(of(records, "probe")) + 1))


def test_a_cell_that_was_interrupted_in_a_notebook_is_repeated_in_the_same_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = {"lengths": [64], "short_lengths": [], "repeats": 1}
    session = start(profile(tmp_path, switch=False, length=length, warmup_requests=0), "on", tmp_path / "out")
    with session:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            interrupt_after(patched, 2, KeyboardInterrupt())
            session.run("length")
        session.run_all()
    records = read_records(tmp_path / "out/on.jsonl")
    assert [p["phase"] for p in of(records, "probe", superseded=True)] == ["cold", "warm"]
    assert [p["phase"] for p in of(records, "probe", superseded=False)] == ["cold", "warm", "control"]
    assert records[-1]["status"] == "ok"


def test_opening_an_arm_again_ends_the_session_before(tmp_path: Path) -> None:
    path = profile(tmp_path, length=False)
    first = start(path, "off", tmp_path / "out")
    second = start(path, "off", tmp_path / "out")
    assert (first.status, second.status) == ("closed", "open")
    second.run_all()
    second.close()
    assert first.close() == "closed"
    assert [r["status"] for r in of(read_records(tmp_path / "out/off.jsonl"), "end")] == ["interrupted", "ok"]


def test_two_processes_cannot_measure_one_arm_into_one_folder(tmp_path: Path) -> None:
    path, lock = profile(tmp_path), tmp_path / "out/.on.lock"
    lock.parent.mkdir()
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RecordsError, match="another process is measuring"):
            start(path, "on", tmp_path / "out")


def test_a_killed_run_leaves_a_file_that_the_next_run_continues(tmp_path: Path) -> None:
    path, file = profile(tmp_path, switch=False), tmp_path / "out/off.jsonl"
    measure(path, "off", tmp_path / "out")
    lines = file.read_text().splitlines(keepends=True)
    first_cell = next(i for i, line in enumerate(lines) if '"cell", "schema"' in line)
    file.write_text("".join(lines[: first_cell + 1]) + lines[first_cell + 1][:40])
    records = measure(path, "off", tmp_path / "out")
    assert records[-1]["status"] == "ok"
    assert len(finished_cells(records)) == 6


def test_records_of_other_parameters_are_set_aside_not_deleted(tmp_path: Path) -> None:
    old = measure(profile(tmp_path, length=False), "off", tmp_path / "out")
    changed = profile(tmp_path, length=False, switch={"system_tokens": 100, "max_tokens": 2})
    records = measure(changed, "off", tmp_path / "out")
    kept = list((tmp_path / "out").glob("off.*.jsonl"))
    assert [read_records(p) for p in kept] == [old]
    assert len(of(records, "run")) == 1


def test_a_server_that_dies_ends_the_run_and_leaves_the_cell_unfinished(tmp_path: Path) -> None:
    session = start(profile(tmp_path, length=False), "off", tmp_path / "out", process=True)
    assert session.server is not None
    pid = session.server.pid
    assert pid is not None

    def kill_after_two(line: str) -> None:
        if line == "switch 2/8 probes":
            os.kill(pid, signal.SIGKILL)

    session.progress = kill_after_two
    with pytest.raises(ServerError, match="vLLM"), session:
        session.run("switch")
    records = read_records(tmp_path / "out/off.jsonl")
    assert records[-1]["status"] == "failed"
    assert not finished_cells(records)


def test_a_failed_request_is_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    length = {"lengths": [64], "short_lengths": [], "repeats": 2}
    session = start(profile(tmp_path, switch=False, length=length, warmup_requests=0), "on", tmp_path / "out")
    session.client.model = "another"
    with session:
        session.run_all()
    records = read_records(tmp_path / "out/on.jsonl")
    assert [p["phase"] for p in of(records, "probe")] == ["cold", "cold"]
    assert all(p["error"]["message"] for p in of(records, "probe"))
    assert (records[-1]["status"], "all 2 requests failed" in records[-1]["reason"]) == ("failed", True)


def test_two_runs_never_share_a_text(tmp_path: Path) -> None:
    path = profile(tmp_path)
    one, two = (start(path, "off", tmp_path / name) for name in ("one", "two"))
    texts = [session.prompts.prefix(64) for session in (one, two)]
    for session in (one, two):
        session.close()
    assert texts[0] != texts[1]


def test_not_running_an_experiment_leaves_the_arm_paused(tmp_path: Path) -> None:
    session = start(profile(tmp_path), "off", tmp_path / "out")
    session.run("switch")
    assert session.close() == "paused"
    assert "length" in session.reason


def test_a_cold_request_that_hits_carries_a_warning(tmp_path: Path) -> None:
    session = start(profile(tmp_path), "on", tmp_path / "out")
    messages = [{"role": "user", "content": session.prompts.prefix(64)}]
    with session:
        for _ in range(2):
            session.probe(messages, experiment="length", phase="cold")
    first, second = of(read_records(tmp_path / "out/on.jsonl"), "probe")
    assert first["warnings"] == []
    assert "a cold request found 64 tokens in the cache" in second["warnings"]


def test_a_length_that_cannot_fit_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "serve", lambda *_, **__: pytest.fail("a server was started"))
    length = {"lengths": [192], "short_lengths": []}
    path = profile(tmp_path, engine_args={"max_model_len": 200}, length=length)
    with pytest.raises(ParamsError, match=r"experiments\.length\.lengths: 192 tokens"):
        open_session(path, "on", tmp_path / "out")


def test_a_questions_file_without_a_question_is_refused_before_anything_starts(tmp_path: Path) -> None:
    path = profile(tmp_path, switch={"questions": {"text": " \n\n"}})
    with pytest.raises(ParamsError, match=r"experiments\.switch\.questions: holds no question"):
        open_session(path, "on", tmp_path / "out")


def test_keys_among_the_parameters_are_not_recorded(tmp_path: Path) -> None:
    secret = "sk-very-secret"
    path = profile(tmp_path, length=False, switch=False, engine_args={"api_key": secret})
    text = path.read_text().replace("env:", f"env:\n    HF_TOKEN: {secret}")
    path.write_text(text)
    session = Session(load_arm(path, "on"), "on", tmp_path / "on.jsonl")
    for params in (session.params, load_arm(path, "off")):
        session.params = params
        assert secret not in str(opening.run_record(session, None))
    assert secret not in str(opening._without_secrets(["serve", "--api-key", secret, f"--api-key={secret}"]))
    assert secret not in str(opening._without_secrets({"engine_args": f"--port 1 --api-key {secret} --x"}))


def test_a_server_that_contradicts_its_arm_is_refused(tmp_path: Path) -> None:
    path = profile(tmp_path, engine_args={"fake_reported_caching": False})
    session = start(path, "on", tmp_path / "out", process=True)
    session.run_all()
    session.close()
    assert session.status == "refused"
    assert "enable_prefix_caching=False" in session.reason
    records = read_records(tmp_path / "out/on.jsonl")
    assert [r["record"] for r in records] == ["run", "skip", "end"]
    assert "enable_prefix_caching=False" in records[1]["reason"]
    assert records[-1]["status"] == "refused"
    found = arm_state(tmp_path / "out", path, "on")
    assert (found.refused, found.needs_run) == (True, True)


def test_a_server_that_does_not_start_leaves_the_reason_in_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = profile(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise ServerError("vLLM did not start: no memory", "make room")

    with monkeypatch.context() as patched, pytest.raises(ServerError, match="did not start"):
        patched.setattr(opening, "serve", refuse)
        open_session(path, "on", tmp_path / "out", progress=lambda _: None)
    records = read_records(tmp_path / "out/on.jsonl")
    assert [r["record"] for r in records] == ["run", "skip", "end"]
    assert records[-1]["status"] == "failed"
    assert arm_state(tmp_path / "out", path, "on").needs_run


def test_an_unknown_experiment_is_refused(tmp_path: Path) -> None:
    session = Session(load_arm(profile(tmp_path), "on"), "on", tmp_path / "on.jsonl")
    with pytest.raises(ParamsError, match="unknown experiment 'lenght'"):
        session.run("lenght")


def test_metrics_that_cannot_be_read_do_not_stop_the_measurement(tmp_path: Path) -> None:
    session = start(profile(tmp_path, length=False), "on", tmp_path / "out")
    session.server.metrics_urls = (f"{session.server.root_url}/nothing",)  # type: ignore[union-attr, misc, assignment]
    with session:
        session.run_all()
    records = read_records(tmp_path / "out/on.jsonl")
    assert {c["status"] for c in of(records, "counters")} == {"unreachable"}
    assert len(of(records, "probe", phase="warm")) == 7
    assert records[-1]["status"] == "ok"


def test_records_without_a_run_are_set_aside(tmp_path: Path) -> None:
    out = tmp_path / "out"
    RecordWriter(out / "off.jsonl", arm="off", profile="small").append("probe", phase="cold")
    measure(profile(tmp_path, length=False, switch=False), "off", out)
    assert len(list(out.glob("off.*.jsonl"))) == 1


def test_an_empty_folder_means_the_profile_s_own_and_a_relative_one_starts_at_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "OUT", tmp_path / "out")
    monkeypatch.setattr(paths, "ROOT", tmp_path / "root")
    for out, folder in (("", "out/small"), ("mine", "root/mine")):
        with served_here(), open_session(profile(tmp_path), "on", out, progress=lambda _: None):
            assert (tmp_path / folder / "on.jsonl").exists()
