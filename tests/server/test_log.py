"""What a log says the server is doing."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixkit.server import log
from prefixkit.server.log import Log, is_harmless, plain, stage_of


@pytest.mark.parametrize(
    ("line", "stage"),
    [
        (
            "INFO 01-02 03:04:05 [core.py:1] Initializing a V1 LLM engine (v0.32.0) with config: x",
            "starting the engine",
        ),
        ("INFO 01-02 03:04:05 model_runner.py:12] Starting to load model x...", "loading weights"),
        ("Loading safetensors checkpoint shards:  50% Completed | 1/2", "loading weights (50%)"),
        ("(EngineCore pid=9) INFO 01-02 03:04:05 [b.py:1] Dynamo bytecode transform time: 5 s", "compiling"),
        ("INFO 01-02 03:04:05 [k.py:1] GPU KV cache size: 93,184 tokens", "sizing the KV cache"),
        ("Capturing CUDA graph shapes:  10%|", "capturing graphs"),
        ("INFO:     Application startup complete.", "opening the port"),
        ("WARNING 01-02 03:04:05 [vllm.py:1] Enforce eager set, disabling torch.compile", ""),
    ],
)
def test_stages(line: str, stage: str) -> None:
    assert stage_of(line) == stage


def test_prefixes_of_processes_levels_and_colours_are_taken_off() -> None:
    assert plain("\x1b[1;36m(EngineCore_DP0 pid=7)\x1b[0;0m ERROR 01-02 03:04:05 [core.py:1] ValueError: x") == (
        "ValueError: x"
    )
    assert plain("ERROR 01-02 03:04:05 engine.py:366] ValueError: x") == "ValueError: x"
    assert plain("(RayWorkerWrapper pid=7, ip=10.0.0.1) INFO 01-02 03:04:05 [a.py:1] y") == "y"
    assert is_harmless("(Worker pid=7) WARNING 01-02 03:04:05 [a.py:1] x") and not is_harmless("ERROR: x")


def test_a_log_is_read_from_where_this_start_began(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("Capturing CUDA graph shapes\n")
    following = Log(path, path.stat().st_size)
    assert following.update() == "" and following.text() == ""
    with path.open("a") as file:
        file.write("Starting to load model\nsomething else\n")
    assert following.update() == "loading weights" and following.update() == "loading weights"
    assert following.text() == "Starting to load model\nsomething else\n"


def test_of_a_long_log_beginning_and_end_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "TAIL_LIMIT", 100)
    path = tmp_path / "a.log"
    path.write_text("first\n" + "middle\n" * 1000 + "last\n")
    text = Log(path).text()
    assert text.startswith("first\n") and text.endswith("last\n") and len(text) <= 201


def test_a_missing_log_is_empty(tmp_path: Path) -> None:
    assert Log(tmp_path / "no").update() == "" and Log(tmp_path / "no").text() == ""
