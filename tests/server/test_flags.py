"""Engine arguments in every form, for every version."""

from __future__ import annotations

from typing import Any

import pytest

from prefixkit.errors import ServerError
from prefixkit.server.flags import parse, render


def words(engine_args: Any, version: str | None = "0.32.0") -> list[str]:
    return list(render(parse(engine_args), version).args)


def test_a_mapping_becomes_flags() -> None:
    given = {
        "max_model_len": 4096,
        "enforce_eager": True,
        "enable_chunked_prefill": False,
        "quantization": None,
        "kv-transfer-config": {"kv_role": "both", "n": 1},
        "gpu_memory_utilization": 0.85,
        "lora_modules": ["a=/x y/b", "c=d"],
        "chat_template": "/with blank/t.jinja",
        "O": 3,
    }
    assert words(given) == [
        "--max-model-len", "4096", "--enforce-eager", "--no-enable-chunked-prefill",
        "--kv-transfer-config", '{"kv_role": "both", "n": 1}', "--gpu-memory-utilization", "0.85",
        "--lora-modules", "a=/x y/b", "c=d", "--chat-template", "/with blank/t.jinja", "-O", "3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        "--max-model-len 4096 --chat-template '/with blank/t.jinja' --enforce-eager",
        "--max_model_len=4096 --chat-template='/with blank/t.jinja' --enforce-eager",
        ["--max-model-len", "4096", "--chat-template", "/with blank/t.jinja", "--enforce-eager"],
        ["--max-model-len 4096", "--chat-template '/with blank/t.jinja'", "--enforce-eager"],
        ["--max_model_len=4096", "--chat-template=/with blank/t.jinja", "--enforce-eager"],
    ],
)
def test_strings_and_lists_glued_or_not_mean_the_same(given: Any) -> None:
    assert words(given) == ["--max-model-len", "4096", "--chat-template", "/with blank/t.jinja", "--enforce-eager"]


def test_json_short_options_and_negative_values_pass_through() -> None:
    assert words(["--kv-transfer-config {'a': 1}"]) == ["--kv-transfer-config", "{'a': 1}"]
    assert words('--kv-transfer-config \'{"a": 1}\' -tp 2 -O3') == [
        "--kv-transfer-config", '{"a": 1}', "-tp", "2", "-O3"
    ]  # fmt: skip
    assert words({"x": -1, "seed": "-2"}) == ["-x=-1", "--seed=-2"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"port": 1}, "server.port"),
        ("--port=1", "server.port"),
        ("--por 1", "server.port"),
        ({"host": "0.0.0.0"}, "127.0.0.1"),
        ({"served_model_name": "x"}, "twice"),
        ({"enable_prefix_caching": True}, "arm"),
        ({"enable_prefix_caching": False}, "arm"),
        ("--no-enable-prefix-caching", "arm"),
        ("--enable-prefix", "arm"),
        ({"model": "x"}, "model.path"),
        ({"load_format": "dummy"}, "model.load_format"),
        ({"api_key": "k"}, "api_key_env"),
        ({"config": "x.yaml"}, "parameter"),
        ("--enforce-eager --enforce-eager", "stands twice"),
        ("--enforce-eager --no-enforce-eager", "stands twice"),
        ("serve --enforce-eager", "before any flag"),
        ("--enable-chunked-prefill false", "take no value"),
        ({"enforce_eager": "true"}, "without quotes"),
        ("--x 'open", "quot"),
        ({"--": 1}, "name of a flag"),
    ],
)
def test_what_cannot_be_given_is_refused_with_the_reason(given: Any, reason: str) -> None:
    with pytest.raises(ServerError, match=reason):
        parse(given)


def test_a_refused_key_is_not_repeated() -> None:
    with pytest.raises(ServerError) as caught:
        parse({"api_key": "sk-very-secret"})
    assert "sk-very-secret" not in str(caught.value)


def test_what_a_version_lacks_is_left_out_with_a_note_or_refused() -> None:
    both = {"enable_prompt_tokens_details": True, "enable_per_request_metrics": True}
    old = render(parse(both), "0.24.0")
    assert old.args == ("--enable-prompt-tokens-details",)
    assert old.notes == ("--enable-per-request-metrics left out: vLLM 0.24.0 lacks it (since 0.25)",)
    assert render(parse(both), "0.25.0").notes == ()
    assert render(parse(both), None).notes == ()
    with pytest.raises(ServerError, match=r"0\.10\.0 has no --kv-cache-metrics"):
        words({"kv_cache_metrics": True}, "0.10.0")


@pytest.mark.parametrize(
    ("version", "good", "bad"),
    [("0.8.5", "builtin", "xxhash"), ("0.10.1", "sha256_cbor_64bit", "sha256_cbor"), ("0.32.0", "xxhash", "builtin")],
)
def test_hash_algorithms_follow_the_version(version: str, good: str, bad: str) -> None:
    assert words({"prefix_caching_hash_algo": good}, version) == ["--prefix-caching-hash-algo", good]
    with pytest.raises(ServerError, match="it takes one of"):
        words({"prefix_caching_hash_algo": bad}, version)


@pytest.mark.parametrize(
    ("version", "eager", "chunked"),
    [
        ("0.6.6", [], ["--enable-chunked-prefill=False"]),
        ("0.8.4", [], ["--enable-chunked-prefill=False"]),
        ("0.8.5", [], ["--no-enable-chunked-prefill"]),
        ("0.9.0", ["--no-enforce-eager"], ["--no-enable-chunked-prefill"]),
        ("0.33.0", ["--no-enforce-eager"], ["--no-enable-chunked-prefill"]),
    ],
)
def test_false_is_spelled_as_the_version_understands_it(version: str, eager: list[str], chunked: list[str]) -> None:
    assert words({"enforce_eager": False}, version) == eager
    assert words({"enable_chunked_prefill": False}, version) == chunked


def test_in_a_config_file_false_and_lists_stay_flags() -> None:
    given = {"alpha": True, "beta": False, "gamma": 3, "delta": {"x": 1}, "epsilon": ["f", "g"]}
    rendered = render(parse(given), "0.25.1", config_file=True)
    assert rendered.config == {"alpha": True, "gamma": "3", "delta": '{"x": 1}'}
    assert rendered.args == ("--no-beta", "--epsilon", "f", "g")
