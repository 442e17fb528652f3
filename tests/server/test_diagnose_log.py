"""The root line of a log, and its remedy."""

from __future__ import annotations

import pytest

from prefixkit.server.diagnose_log import diagnose, last_line

WRAPPER = (
    "(APIServer pid=7) Traceback (most recent call last):\n"
    '(APIServer pid=7)   File "api_server.py", line 1, in run\n'
    "(APIServer pid=7) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
)


def child(line: str) -> str:
    """Return a log whose root line a child wrote under many lines of traceback, before its parent's generic one."""
    stack = "".join(f"(EngineCore_DP0 pid=1094) ERROR 01-02 03:04:05 [core.py:{n}]   File x{n}\n" for n in range(60))
    return (
        "INFO 01-02 03:04:05 [api_server.py:1] non-default args: {'trust_remote_code': True}\n"
        "WARNING 01-02 03:04:05 [utils.py:1] this can end in OSError: [Errno 24] Too many open files\n"
        "(EngineCore_DP0 pid=1094) ERROR 01-02 03:04:05 [core.py:1] EngineCore failed to start.\n"
        "(EngineCore_DP0 pid=1094) ERROR 01-02 03:04:05 [core.py:1] Traceback (most recent call last):\n"
        f"{stack}(EngineCore_DP0 pid=1094) ERROR 01-02 03:04:05 [core.py:9] {line}\n{WRAPPER}"
    )


OLD_KV = (
    "ValueError: The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in "
    "KV cache (2048). Try increasing `gpu_memory_utilization`."
)
NEW_KV = (
    "ValueError: To serve at least one request with the models's max seq len (32768), 24.0 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (3.1 GiB). The estimated maximum model length is 4242."
)


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        (OLD_KV, "--max-model-len 2048"),
        (NEW_KV, "--max-model-len 4242"),
        ("ValueError: Free memory on device cuda:0 (7.1/79.1 GiB) on startup is less than desired GPU memory "
         "utilization (0.9, 71.2 GiB).", "gpu_memory_utilization"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "gpu_memory_utilization"),
        ("RuntimeError: Failed to infer device type", "profile cpu"),
        ("RuntimeError: No CUDA GPUs are available", "profile cpu"),
        ("OSError: no/such is not a local folder and is not a valid model identifier listed on the hub", "model.path"),
        ("OSError: You are trying to access a gated repo. 401 Client Error. for url: https://huggingface.co/a/b/c",
         "HF_TOKEN"),
        ("OSError: We couldn't connect to 'https://huggingface.co' to load the files", "model.path"),
        ("importlib.metadata.PackageNotFoundError: No package metadata was found for vllm", "module form"),
        ("ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.", "dtype: half"),
        ("ValueError: Total number of attention heads (14) must be divisible by tensor parallel size (3).", "divides"),
        ("ValueError: current platform cpu does not support ray.", "GPUs"),
        ("torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
         "port: 29500, code: -98, name: EADDRINUSE, message: address already in use", "one server at a time"),
        ("OSError: [Errno 28] No space left on device", "disk"),
    ],
)  # fmt: skip
def test_the_childs_root_line_wins_over_the_generic_one(line: str, remedy: str) -> None:
    found = diagnose(child(line))
    assert found is not None
    assert found.line[:60] == line[:60] and remedy in found.remedy
    assert "Engine core initialization failed" not in found.line


def test_a_hub_refusal_is_not_taken_for_the_servers_key() -> None:
    found = diagnose("requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://huggingface.co/a/b\n")
    assert found and "not the server's API key" in found.remedy


@pytest.mark.parametrize(
    ("words", "remedy"),
    [("--enable-reasoning", "does not know --enable-reasoning"), ("serve m", "take `serve` out"), ("false", "mapping")],
)
def test_a_parsers_error_is_the_root_line(words: str, remedy: str) -> None:
    found = diagnose(f"usage: vllm serve [--trust-remote-code]\nvllm: error: unrecognized arguments: {words}\n")
    assert found and found.line == f"vllm: error: unrecognized arguments: {words}" and remedy in found.remedy


def test_an_unknown_cause_is_the_first_exception_of_a_child() -> None:
    found = diagnose(
        child("KeyError: 'model.layers.0'\n(EngineCore_DP0 pid=1) ERROR 01-02 03:04:05 [a.py:1] ValueError: b")
    )
    assert found and found.line == "KeyError: 'model.layers.0'"


def test_of_a_chain_of_exceptions_the_first_is_the_cause() -> None:
    text = (
        "Traceback (most recent call last):\n  File a\nImportError: harmless, was caught\n"
        "Traceback (most recent call last):\n  File a\nOSError: the cause\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n  File b\nRuntimeError: the consequence\n"
    )
    found = diagnose(text)
    assert found and found.line == "OSError: the cause"


def test_the_machine_adds_who_holds_the_memory() -> None:
    found = diagnose(child("torch.OutOfMemoryError: CUDA out of memory."), lambda kind: f"held ({kind})")
    assert found and found.remedy.startswith("held (gpu); ")


def test_a_log_without_a_cause_gives_its_last_line_and_long_lines_are_cut() -> None:
    assert diagnose("INFO 01-02 03:04:05 [a.py:1] fine\n") is None
    assert last_line("one\nINFO 01-02 03:04:05 [a.py:1] two\n\n") == "two"
    found = diagnose("x" * 5000 + " CUDA out of memory " + "y" * 5000)
    assert found and len(found.line) < 450 and "CUDA out of memory" in found.line
