"""`python -m prefixkit probe`, in this process against scripted servers."""

import json

import pytest

from prefixkit.__main__ import main
from tests.fakes.wire import GOOD, WireServer, answer
from tests.probe.conftest import QUESTION


def call(capsys, *arguments):
    code = main(["probe", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def prompts(server):
    return [r.json["messages"] for r in server.requests if r.path == "/v1/chat/completions"]


def test_one_prompt_is_repeated_and_the_result_is_one_json_object(capsys):
    with WireServer(GOOD) as server:
        code, out, _ = call(
            capsys, "--url", server.root, "--model", "m", "--repeats", "3", "--prompt-chars", "50", "--json"
        )
    found = json.loads(out)
    assert code == 0 and len(found["probes"]) == 3 and found["summary"]["n"] == 3
    names = {"ttft_ms", "content_ms", "e2e_ms", "prompt_tokens", "cached_tokens", "warnings", "error"}
    assert names <= set(found["probes"][0])
    assert found["summary"]["ttft_p50_ms"] > 0 and found["summary"]["calibration"]["overhead_p50_ms"] > 0
    assert len({json.dumps(p) for p in prompts(server)}) == 1 and len(prompts(server)[0][0]["content"]) == 50


def test_fresh_prompts_differ_from_their_first_character_on(capsys):
    with WireServer(GOOD) as server:
        call(capsys, "--url", server.url, "--model", "m", "--repeats", "3", "--fresh")
    texts = [p[0]["content"] for p in prompts(server)]
    assert len({t[:20] for t in texts}) == 3 and {len(t) for t in texts} == {1000}


def test_two_runs_never_share_a_prompt(capsys):
    with WireServer(GOOD) as server:
        for _ in range(2):
            call(capsys, "--url", server.url, "--model", "m", "--repeats", "1")
    first, second = prompts(server)
    assert first[0]["content"][:20] != second[0]["content"][:20]


def test_text_output_shows_times_and_the_clients_overhead(capsys):
    with WireServer(GOOD) as server:
        code, out, _ = call(capsys, "--url", server.url, "--model", "m", "--repeats", "2", "--concurrency", "2")
    assert code == 0 and "2 requests, 0 failed" in out and "client overhead at" in out


@pytest.mark.parametrize("shape", ["list", "object", "lines"])
@pytest.mark.parametrize("fresh", [[], ["--fresh"]])
def test_messages_of_ones_own_are_sent_in_turn(capsys, tmp_path, shape, fresh):
    file = tmp_path / "mine.json"
    other = [{"role": "user", "content": [{"type": "text", "text": "parts"}]}]
    lines = [json.dumps({"messages": m}) for m in (QUESTION, other)]
    file.write_text({"list": json.dumps(QUESTION), "object": lines[0], "lines": "\n".join(lines)}[shape])
    with WireServer(GOOD) as server:
        arguments = ["--url", server.url, "--model", "m", "--messages", str(file), "--repeats", "2", *fresh]
        assert call(capsys, *arguments)[0] == 0
    sent = prompts(server)
    expected = [QUESTION, other] if shape == "lines" else [QUESTION, QUESTION]
    if fresh:
        assert sent[0][0]["content"].endswith(QUESTION[0]["content"]) and sent[0] != sent[1]
    else:
        assert sent == expected


def test_tokens_are_counted_by_the_server(capsys):
    with WireServer(GOOD, by_path={"/tokenize": answer(200, {"tokens": list(range(32))})}) as server:
        assert call(capsys, "--url", server.url, "--model", "m", "--tokens", "32", "--repeats", "1")[0] == 0
    assert any(r.path == "/tokenize" for r in server.requests)


def test_a_server_that_cannot_count_tokens_is_told_apart(capsys):
    with WireServer(GOOD, by_path={"/tokenize": answer(404, {"detail": "Not Found"})}) as server:
        code, _, err = call(capsys, "--url", server.url, "--model", "m", "--tokens", "32")
    assert code == 1 and "--prompt-chars" in err


def test_the_first_model_is_the_default(capsys):
    models = {"/v1/models": answer(200, {"data": [{"id": "only"}]})}
    with WireServer(GOOD, by_path=models) as server:
        assert call(capsys, "--url", server.url, "--repeats", "1")[0] == 0
    assert [r.json["model"] for r in server.requests if r.line.startswith("POST")] == ["only"]


def test_the_key_comes_from_the_named_variable_and_is_never_printed(capsys, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret\n")
    refusal = answer(401, {"error": {"message": "Incorrect API key provided: sk-very-secret"}})
    with WireServer(refusal) as server:
        code, out, err = call(capsys, "--url", server.url, "--model", "m", "--api-key-env", "MY_KEY", "--repeats", "1")
    assert code == 1 and server.requests[-1].headers["authorization"] == "Bearer sk-very-secret"
    assert "http_401" in out and "sk-very-secret" not in out + err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--url", "http://h/?utm_source=x"], "utm_source"),
        (["--url", "http://h", "--api-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY"),
        (["--url", "http://h", "--messages", "no/such/file"], "no/such/file"),
        (["--url", "http://h", "--repeats", "0"], "bad arguments"),
        (["--url", "http://h", "--tokens", "5", "--prompt-chars", "5"], "bad arguments"),
        ([], "bad arguments"),
    ],
)
def test_bad_input_exits_2_with_one_json_object(capsys, arguments, said):
    code, out, _ = call(capsys, *arguments, "--model", "m", "--json")
    assert code == 2 and said in json.loads(out)["error"]["message"]


def test_an_empty_key_exits_2_and_names_its_variable(capsys, monkeypatch):
    monkeypatch.setenv("MY_KEY", " ")
    code, out, _ = call(capsys, "--url", "http://h", "--model", "m", "--api-key-env", "MY_KEY", "--json")
    assert code == 2 and "MY_KEY is empty" in json.loads(out)["error"]["message"]


def test_nothing_reachable_exits_1_with_the_failures_in_the_object(capsys):
    with WireServer(GOOD) as server:
        url = server.url
    code, out, _ = call(capsys, "--url", url, "--model", "m", "--repeats", "2", "--json")
    found = json.loads(out)
    assert code == 1 and found["summary"]["failed"] == 2
    assert found["probes"][0]["error"]["kind"] == "connection_refused"
