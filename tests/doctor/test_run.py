"""The whole doctor against servers that behave and servers that do not."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from pathlib import Path

import httpx
import pytest

from prefixkit import diagnose
from prefixkit.__main__ import main
from prefixkit.doctor import Check, Diagnosis
from prefixkit.doctor.live import LiveTest
from prefixkit.doctor.live_checks import live_checks
from prefixkit.metrics import CacheConfig, KvUsage
from prefixkit.probe import Client
from tests.fakes import vllm
from tests.fakes.answers import Answer
from tests.fakes.settings import Settings
from tests.fakes.vllm import FakeVllm

KEY = "local-secret-word"


def by_name(found: Diagnosis) -> dict[str, Check]:
    return {c.name: c for c in reversed(found.checks)}


def failed(found: Diagnosis) -> list[str]:
    return [c.name for c in found.checks if c.status == "failed"]


def test_a_healthy_server_passes_with_few_short_requests() -> None:
    with FakeVllm(Settings(beta_ms=0.1)) as fake:
        found = diagnose(fake.url)
    assert failed(found) == []
    assert found.exit_code == 0
    assert by_name(found)["live-blocks"].status == "ok"
    assert "as block arithmetic says" in by_name(found)["live-blocks"].found
    assert len(fake.requests) <= 20
    assert all(r.get("max_tokens") == 1 for r in fake.requests)
    assert max(len(r["messages"][0]["content"]) for r in fake.requests) < 10_000


def test_the_three_lengths_lie_across_a_block_border() -> None:
    with FakeVllm(Settings(block_size=48)) as fake:
        found = by_name(diagnose(fake.url))["live-blocks"].found
    lengths = [(int(a), int(b)) for a, b in re.findall(r"(\d+) tokens gave (\d+)", found)]
    assert [cached for _, cached in lengths] == [lengths[0][0] - 48, lengths[0][0], lengths[0][0]]
    assert [length - lengths[0][0] for length, _ in lengths] == [0, 1, 2]


def test_a_server_with_the_cache_off_is_told_by_what_it_reports() -> None:
    with FakeVllm(Settings(caching=False, beta_ms=0.1)) as fake:
        found = diagnose(fake.url)
    assert failed(found) == ["cache-off"]
    assert found.checks[0].name == "cache-off"
    assert found.exit_code == 1


def test_a_cache_that_never_hits_although_it_says_it_is_on_is_not_blamed_on_the_prompt() -> None:
    with FakeVllm(Settings(caching=False, reported_caching=True, beta_ms=0.1)) as fake:
        found = diagnose(fake.url)
    assert failed(found) == ["no-hits"]
    assert "byte-stable" in found.checks[0].found


def test_without_reported_cached_tokens_the_counters_decide() -> None:
    with FakeVllm(Settings(details=False, beta_ms=0.1)) as fake:
        found = diagnose(fake.url)
    assert failed(found) == []
    assert "not reported" in by_name(found)["live-repeat"].found
    assert "--enable-prompt-tokens-details" in by_name(found)["live-repeat"].remedy


def test_several_engines_are_named_as_the_reason_for_first_misses() -> None:
    with FakeVllm(Settings(engines=2, beta_ms=0.1)) as fake:
        found = diagnose(fake.url)
    assert failed(found) == []
    assert by_name(found)["engines"].status == "warning"


def test_a_hits_counter_that_stands_still_is_blamed_itself(answer: Answer) -> None:
    with FakeVllm(Settings(details=False, beta_ms=0.3)) as fake:

        def page() -> bytes:
            text = httpx.get(fake.metrics_url, trust_env=False).text
            return re.sub(r"(prefix_cache_hits_total\{[^}]*\}) \S+", r"\1 0.0", text).encode()

        found = diagnose(fake.url, metrics_urls=[answer(page)])
    assert failed(found) == []
    assert "latency behaves like hits" in by_name(found)["counters"].found


@pytest.mark.parametrize(
    ("body", "status", "word", "result"),
    [
        (b"no room in the directory", 500, "HTTP 500", "failed"),
        (b"<html>Sign in</html>", 200, "HTML", "failed"),
        (b'{"a": 1}', 200, "JSON", "failed"),
        (b"gone", 404, "HTTP 404", "warning"),
        (b"", 200, "empty", "failed"),
        (b"vllm:current_qps 1.0\n", 200, "router", "failed"),
    ],
)
def test_a_metrics_page_that_fails_leaves_the_times(
    answer: Answer, body: bytes, status: int, word: str, result: str
) -> None:
    with FakeVllm(Settings(beta_ms=0.1)) as fake:
        found = diagnose(fake.url, metrics_urls=[answer(body, status)])
    check = by_name(found)["metrics"]
    assert check.status == result
    assert word in check.found
    assert "TTFT" in by_name(found)["live-repeat"].found
    assert "0 %" not in repr(found)


def test_a_gateway_without_vllms_extras_is_still_tested() -> None:
    with FakeVllm(Settings(gateway=True, beta_ms=0.1)) as fake:
        found = diagnose(fake.url)
    assert failed(found) == []
    assert "takes no cache_salt" in by_name(found)["live-control"].found
    assert by_name(found)["metrics"].status == "warning"


@pytest.mark.parametrize("sent", [None, "another-word"])
def test_a_key_that_is_missing_or_wrong_is_named_and_never_shown(sent: str | None) -> None:
    with FakeVllm(Settings(api_key=KEY)) as fake:
        found = diagnose(fake.url, api_key=sent)
    assert failed(found) == ["key"]
    assert "401" in found.checks[0].found
    assert by_name(found)["connection"].status == "ok"
    assert KEY not in repr(found)
    assert "another-word" not in repr(found)


def test_the_right_key_is_accepted() -> None:
    with FakeVllm(Settings(api_key=KEY)) as fake:
        found = diagnose(fake.url, api_key=f" {KEY}\n")
    assert failed(found) == []
    assert KEY not in repr(found)


def test_a_key_variable_that_a_server_inherits_is_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    with FakeVllm(Settings(api_key=KEY)) as fake:
        found = diagnose(fake.url)
    assert "VLLM_API_KEY is set here" in found.checks[0].found
    assert KEY not in repr(found)


@pytest.mark.parametrize("key", ["", " ", "a\nb", "Bearer "])
def test_an_unusable_key_is_found_before_anything_is_sent(key: str) -> None:
    with FakeVllm() as fake:
        found = diagnose(fake.url, api_key=key, key_source="MY_KEY")
    assert failed(found) == ["key"]
    assert "MY_KEY" in found.checks[0].found
    assert fake.requests == []


def test_nothing_listening_is_a_failed_connection() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        found = diagnose(f"http://127.0.0.1:{held.getsockname()[1]}")
    assert failed(found) == ["connection"]
    assert found.exit_code == 1


def test_the_link_of_a_web_page_is_no_api_base() -> None:
    found = diagnose("https://gateway.example.org/?utm_source=mail")
    assert failed(found) == ["url"]
    assert found.exit_code == 2


def test_a_model_that_is_not_served_is_named_with_those_that_are() -> None:
    with FakeVllm(Settings(model="tiny")) as fake:
        found = diagnose(fake.url, model="huge")
    assert failed(found) == ["model"]
    assert "it has tiny" in found.checks[0].found


def test_a_web_page_in_the_place_of_the_api_is_a_warning_and_a_failed_model(answer: Answer) -> None:
    found = diagnose(answer(b"<html>hello</html>").removesuffix("/metrics"))
    assert found.exit_code == 1


def test_a_proxy_variable_that_catches_local_requests_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with FakeVllm() as fake:
        found = diagnose(fake.url, live=False)
    assert by_name(found)["proxy"].status == "warning"
    assert failed(found) == []


def test_an_error_in_place_of_an_answer_is_a_failed_chat() -> None:
    with FakeVllm() as fake:
        fake.faults.append(503)
        found = diagnose(fake.url)
    assert failed(found) == ["chat"]
    assert "503" in found.checks[0].found


def test_prompts_are_compared_with_the_servers_tokens_and_block(tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    rules = "Answer briefly and quote the manual. " * 60
    heads = [{"role": "system", "content": f"Now: 10:0{n}:00. {rules}"} for n in range(3)]
    lines = [json.dumps({"messages": [head, {"role": "user", "content": "?"}]}) for head in heads]
    file.write_text("\n".join(lines))
    with FakeVllm() as fake:
        small = diagnose(fake.url, messages=file)
    assert failed(small) == ["prompts"]
    assert "a clock" in small.checks[0].found
    assert "token " in small.checks[0].found
    with FakeVllm(Settings(block_size=2000, max_model_len=8192)) as fake:
        large = diagnose(fake.url, messages=file)
    assert failed(large)[0] == "block-size"
    assert "prompts" not in failed(large)


def test_all_requests_together_stay_within_twenty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    posts: list[str] = []
    original = vllm._Handler.do_POST
    monkeypatch.setattr(vllm._Handler, "do_POST", lambda self: (posts.append(self.path), original(self)))
    file = tmp_path / "prompts.jsonl"
    file.write_text("\n".join(json.dumps([{"role": "user", "content": f"{n} {'word ' * 300}"}]) for n in range(30)))
    with FakeVllm() as fake:
        diagnose(fake.url, messages=file)
    assert len(posts) <= 20
    assert set(posts) <= {"/v1/chat/completions", "/tokenize"}


def test_a_log_gives_context_and_the_block_of_a_hybrid_model(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "INFO 01-02 engine config: enable_prefix_caching=True, dtype=bf16\n"
        "INFO 01-02 Setting attention block size to 528 tokens to match\n"
        "INFO 01-02 GPU KV cache size: 29,248 tokens\n"
        "INFO 01-02 Running: 1 reqs, Prefix cache hit rate: 12.5%\n"
        "INFO 01-02 Running: 1 reqs, Prefix cache hit rate: 87.5%, External prefix cache hit rate: 3.0%\n"
    )
    with FakeVllm() as fake:
        found = by_name(diagnose(fake.url, log=log, live=False))
    assert "87.5%, a rolling window of about 1,000 requests: context only" in found["log"].found
    assert "block of 528 tokens" in found["kv-cache"].found


def test_a_client_configuration_is_compared_with_the_server(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    with FakeVllm(Settings(model="tiny")) as fake:
        env = {"ANTHROPIC_BASE_URL": fake.root_url, "ANTHROPIC_AUTH_TOKEN": "word", "ANTHROPIC_MODEL": "sonnet"}
        file.write_text(json.dumps({"env": env}))
        found = diagnose(fake.url, client_config=file, live=False)
    assert failed(found) == ["client-config"]
    assert "asks for model 'sonnet', the server has tiny" in found.checks[0].found


def test_a_client_configuration_is_read_even_when_no_server_answers(tmp_path: Path) -> None:
    file = tmp_path / "auth.json"
    file.write_text(json.dumps({"OPENAI_API_KEY": None, "tokens": {"access_token": "t"}}))
    found = diagnose("http://127.0.0.1:1", client_config=file)
    assert failed(found) == ["connection", "client-config"]


def test_the_test_stops_when_its_time_is_up_and_tells_what_it_saw() -> None:
    ticks = iter([0.0, 1.0, 2.0, 100.0, *[101.0] * 50])
    with FakeVllm() as fake, Client(fake.url, "fake") as client:
        test = LiveTest(client, [fake.metrics_url], CacheConfig(True, 16, 4000, 64_000, 1), clock=lambda: next(ticks))
        test.run()
        assert len(fake.requests) == 2
        assert [c.name for c in live_checks(test)] == ["live-repeat", "kv-usage"]


def test_the_doctor_works_inside_a_running_loop() -> None:
    async def inside() -> Diagnosis:
        return diagnose(fake.url)

    with FakeVllm() as fake:
        assert failed(asyncio.run(inside())) == []


def test_a_closing_server_is_a_failed_connection_not_a_crash() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        stop = threading.Event()

        def hang_up() -> None:
            while not stop.is_set():
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        found = diagnose(f"http://127.0.0.1:{server.getsockname()[1]}")
        stop.set()
    assert found.exit_code == 1


def test_the_command_prints_one_object_and_the_exit_status(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCTOR_KEY", KEY)
    with FakeVllm(Settings(api_key=KEY)) as fake:
        code = main(["doctor", "--url", fake.url, "--api-key-env", "DOCTOR_KEY", "--json"])
        out = capsys.readouterr().out
        shown = json.loads(out)
        assert code == 0
        assert set(shown) == {"checks"}
        assert all(set(c) == {"name", "status", "found", "remedy"} for c in shown["checks"])
        assert KEY not in out
        assert main(["doctor", "--url", fake.url, "--json"]) == 1
        capsys.readouterr()
        assert main(["doctor", "--url", fake.url, "--messages", "no-such-file", "--json"]) == 2
        assert "error" in json.loads(capsys.readouterr().out)
        assert main(["doctor", "--url", "http://x/?a=b", "--json"]) == 2
        assert json.loads(capsys.readouterr().out)["checks"][0]["name"] == "url"


def test_the_forms_for_people_are_plain_and_escaped() -> None:
    found = Diagnosis.of([Check("model", "failed", "<script>x</script>", "use <b>", 1), Check("a", "ok", "fine")])
    assert "<script>" not in found._repr_html_()
    assert repr(found).splitlines() == [
        "failed   model: <script>x</script>",
        "           -> use <b>",
        "ok       a: fine",
    ]


@pytest.mark.parametrize(
    ("usages", "status", "word"),
    [
        ([KvUsage(0.2, False, "KV usage 20%"), KvUsage(0.4, False, "KV usage 40%")], "ok", "40%"),
        ([KvUsage(0.97, False, "KV usage 97%")], "warning", "dropped"),
        ([KvUsage(0.99, True, "KV usage 99% is stale")], "warning", "stale"),
        ([KvUsage(0.99, True, "KV usage 99% is stale"), KvUsage(0.3, False, "KV usage 30%")], "warning", "stale"),
    ],
)
def test_how_full_the_cache_is_counts_only_where_the_page_moves(usages: list[KvUsage], status: str, word: str) -> None:
    with Client("http://127.0.0.1:1", "m") as client:
        test = LiveTest(client, (), CacheConfig(), usage=tuple(usages))
        (check,) = [c for c in live_checks(test) if c.name == "kv-usage"]
    assert check.status == status
    assert word in check.found
