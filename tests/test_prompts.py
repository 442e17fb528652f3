from __future__ import annotations

import pytest

from prefixkit.params.models import Text
from prefixkit.prompts import Prompts, chat, given_lines, given_text, texts
from tests.fakes.kv import Tokenizer


def prompts(language: str = "en", nonce: str = "n", tokenizer: Tokenizer | None = None) -> Prompts:
    tokenizer = tokenizer or Tokenizer()
    return Prompts(lambda text: len(tokenizer.encode(text)), language, nonce=nonce)  # type: ignore[arg-type]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("tokens", [32, 64, 257, 1488])
def test_a_prefix_has_exactly_the_wanted_tokens(language: str, tokens: int) -> None:
    tokenizer = Tokenizer()
    text = prompts(language, tokenizer=tokenizer).prefix(tokens)
    assert len(tokenizer.encode(text)) == tokens


def test_no_two_texts_share_their_first_tokens() -> None:
    tokenizer = Tokenizer()
    built = prompts(tokenizer=tokenizer)
    heads = {tuple(tokenizer.encode(built.prefix(64))[:16]) for _ in range(200)}
    assert len(heads) == 200


def test_another_run_draws_other_texts() -> None:
    assert prompts(nonce="one").prefix(64) != prompts(nonce="two").prefix(64)
    assert prompts(nonce="one").prefix(64) == prompts(nonce="one").prefix(64)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_warm_up_words_are_in_no_measured_text(language: str) -> None:
    built = texts(language)  # type: ignore[arg-type]
    measured = " ".join((built.unit, built.question, built.rules_text, *built.questions, *built.follow_ups))
    assert not [word for word in built.warmup_words if word in measured or word in built.lead_words]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_built_in_texts_are_complete(language: str) -> None:
    built = texts(language)  # type: ignore[arg-type]
    assert (len(built.rules), len(built.questions), len(built.follow_ups)) == (5, 8, 5)
    assert len(set(built.lead_words)) == len(built.lead_words) == 64


def test_a_second_prefix_of_one_length_needs_few_counts() -> None:
    tokenizer, calls = Tokenizer(), []

    def count(text: str) -> int:
        calls.append(text)
        return len(tokenizer.encode(text))

    built = Prompts(count, "en")
    built.prefix(512)
    first = len(calls)
    built.prefix(512)
    assert len(calls) - first <= 6


def test_a_text_of_the_user_replaces_the_built_in_one() -> None:
    assert given_text(None, "built in") == "built in"
    assert given_text(Text(text=" mine \n"), "built in") == "mine"
    assert given_lines(Text(text="one\n\n two \n"), ("a",)) == ("one", "two")


def test_a_character_of_several_tokens_still_gives_the_wanted_length() -> None:
    def count(text: str) -> int:
        return sum(3 if char == "龘" else 1 for char in text)

    built = Prompts(count, "zh")
    text = built.prefix(50, unit="龘")
    assert count(text) == 50


def test_chat_puts_the_system_prompt_first() -> None:
    assert [m["role"] for m in chat("s", "q")] == ["system", "user"]
