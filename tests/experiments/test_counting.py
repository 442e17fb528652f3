from __future__ import annotations

from prefixkit.experiments.counting import Sent, Window, between, compare, predict, read_or_say
from prefixkit.metrics import HitRate
from prefixkit.prompts import Message
from tests.fakes.kv import Tokenizer
from tests.fakes.settings import Settings
from tests.fakes.vllm import FakeVllm


def sent(text: str, salt: str | None = None, *, failed: bool = False) -> Sent:
    return Sent([{"role": "user", "content": text}], salt, failed)


def tokens(messages: list[Message]) -> list[int]:
    return list(messages[0]["content"].encode())


def test_a_repeated_prompt_is_predicted_to_hit_all_whole_blocks_but_the_last_token() -> None:
    history = [sent("a" * 64), sent("a" * 64)]
    assert predict(history, 0, 16, tokens) == 48


def test_a_shared_head_is_predicted_up_to_its_last_whole_block() -> None:
    history = [sent("a" * 40 + "b" * 40), sent("a" * 40 + "c" * 40)]
    assert predict(history, 0, 16, tokens) == 32


def test_a_salt_separates_equal_texts() -> None:
    history = [sent("a" * 64), sent("a" * 64, "x"), sent("a" * 64, "x")]
    assert predict(history, 0, 16, tokens) == 48


def test_requests_before_the_stretch_count_as_sent_but_not_as_hits() -> None:
    history = [sent("a" * 64), sent("a" * 64), sent("a" * 64)]
    assert predict(history, 2, 16, tokens) == 48


def test_nothing_is_predicted_where_a_text_or_the_block_size_is_not_known_or_a_request_failed() -> None:
    assert predict([Sent(None, None, False)], 0, 16, tokens) is None
    assert predict([sent("a" * 64, failed=True)], 0, 16, tokens) is None
    assert predict([sent("a" * 64)], 0, None, tokens) is None


def test_each_text_is_tokenized_once() -> None:
    calls: list[str] = []

    def counting(messages: list[Message]) -> list[int]:
        calls.append(messages[0]["content"])
        return tokens(messages)

    predict([sent("a"), sent("a"), sent("b")], 0, 16, counting)
    assert calls == ["a", "b"]


def test_a_page_that_cannot_be_read_becomes_a_status() -> None:
    assert read_or_say([]) == HitRate("unreachable", message="no metrics page is known for this server")
    with FakeVllm(Settings(metrics=False)) as fake:
        missing = read_or_say([fake.metrics_url])
    assert isinstance(missing, HitRate)
    assert missing.status == "unreachable"
    assert fake.metrics_url in missing.message
    assert between(missing, ["page"]) is missing
    assert between(["page"], missing) is missing


def test_a_reading_that_failed_still_gives_a_comparison() -> None:
    failed = HitRate("unreachable", message="no page")
    found = compare(failed, Window("length", "all", failed, 0), None, failed)
    assert found["agree"] is None


def test_the_fake_reuses_what_the_arithmetic_predicts() -> None:
    tokenizer = Tokenizer()
    texts = ["the wall stood for long " * 30, "the wall stood for long " * 30 + "and fell", "another text " * 40]
    with FakeVllm(Settings(block_size=16)) as fake:
        engine = fake.engines[0]
        for text in texts + texts:
            with engine.hold(tokenizer.encode(text), None):
                pass
        history = [sent(text) for text in texts + texts]
        assert predict(history, 0, 16, lambda m: tokenizer.encode(m[0]["content"])) == engine.hits
