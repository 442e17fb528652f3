"""What a workload shares, by arithmetic."""

from __future__ import annotations

import pytest

from prefixkit.workload import Request, analyse
from prefixkit.workload.requests import read_requests
from prefixkit.workload.sample import PATH, build
from prefixkit.workload.volatile import Messages
from tests.fakes.kv import Tokenizer

RULES = "Feed the cats at nine in the morning. Never open the gate of the yard. Call the vet before noon."


def clock_bot(count: int) -> list[Request]:
    return [
        Request(
            i + 1,
            [
                {"role": "system", "content": f"Time {i:02d}:{i:02d}:{i:02d}.\n{RULES}"},
                {"role": "user", "content": f"Is cat {i} fed?"},
            ],
        )
        for i in range(count)
    ]


def test_a_clock_at_the_head_is_the_break_and_moving_it_gives_the_hits() -> None:
    requests = clock_bot(20)
    found = analyse(lambda: requests, Tokenizer().encode_chat, block_size=8)
    assert found.requests == found.moved_requests == 20
    assert found.hits == 0
    assert found.moved_hits == found.moved_ideal_hits > 0.5 * found.prompt_tokens
    (only,) = found.breaks
    assert (only["role"], only["message"], only["kind"], only["requests"]) == ("system", 0, "time", 19)
    assert only["text"] is None
    assert only["other_text"] is None


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("Request 3f2b8c1e-aaaa-bbbb-cccc-0123456789ab.", "Request 9d41c07a-aaaa-bbbb-cccc-0123456789ab.", "id"),
        ("Now 2024-05-06 07:08:09.", "Now 2024-05-06 07:08:10.", "time"),
        ("Today is 2024-05-06.", "Today is 2024-05-07.", "date"),
        ("Mail anna@example.org.", "Mail boris@example.org.", "address"),
        ("Table 41 please.", "Table 57 please.", "number"),
        ("The sky is grey.", "The sky is blue.", "text"),
    ],
)
def test_what_breaks_sharing_is_named(one: str, other: str, kind: str) -> None:
    requests = [
        Request(i, [{"role": "system", "content": f"{head} {RULES}"}, {"role": "user", "content": "Is it fed?"}])
        for i, head in enumerate((one, other), 1)
    ]
    found = analyse(lambda: requests, Tokenizer().encode_chat, block_size=8)
    assert [b["kind"] for b in found.breaks] == [kind]


def test_texts_are_shown_only_when_asked_for() -> None:
    requests = clock_bot(5)
    found = analyse(lambda: requests, Tokenizer().encode_chat, block_size=8, show=True)
    assert found.breaks[0]["text"].startswith("Time 01:01:01.")
    assert found.breaks[0]["other_text"].startswith("Time 00:00:00.")


def test_a_growing_conversation_breaks_nothing() -> None:
    history: Messages = [{"role": "system", "content": RULES}]
    requests = []
    for turn in range(4):
        history = [*history, {"role": "user", "content": f"Round {turn}?"}]
        requests.append(Request(turn + 1, history))
        history = [*history, {"role": "assistant", "content": "Done, and the gate is shut."}]
    found = analyse(lambda: requests, Tokenizer().encode_chat, block_size=8)
    assert found.breaks == []
    assert found.hits > 0


def test_a_small_cache_serves_less_than_an_unlimited_one() -> None:
    requests = [
        Request(i + 1, [{"role": "user", "content": f"{'abcdefg'[i % 7]} {RULES} {RULES} {i}"}]) for i in range(35)
    ]
    found = analyse(lambda: requests, Tokenizer().encode_chat, block_size=8, capacity_tokens=8 * 20)
    assert found.hits < found.ideal_hits


def test_a_prompt_over_the_limit_is_counted_and_takes_no_part() -> None:
    requests = [*clock_bot(3), Request(4, [{"role": "user", "content": "word " * 500}])]
    found = analyse(lambda: requests, Tokenizer().encode_chat, block_size=8, most_tokens=200)
    without = analyse(lambda: requests[:3], Tokenizer().encode_chat, block_size=8)
    assert (found.requests, found.left_out, without.left_out) == (4, 1, 0)
    assert found.prompt_tokens == without.prompt_tokens


def test_the_sample_workload_is_what_its_generator_writes() -> None:
    assert list(read_requests(PATH)) == build()


def test_the_sample_workload_holds_the_fault_to_find() -> None:
    found = analyse(lambda: read_requests(PATH), Tokenizer().encode_chat, block_size=32)
    worst = found.breaks[0]
    assert (worst["message"], worst["kind"]) == (0, "time")
    assert found.moved_ideal_hits > 1.3 * found.ideal_hits
    assert len(found.prefixes) == 10
