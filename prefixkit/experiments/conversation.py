"""Turn by turn: what a chat gains when its history grows, stays fixed, or is rewritten by the client.

One cell a conversation, `conversation/growing/r1`. Real replies go back into the history. Modes:

- `growing`: system prompt, all questions and replies so far, the new question;
- `fixed`: system prompt and the new question only;
- `rewritten`: as growing, but the newest reply carries a reasoning block, which the client drops one turn later, as
  chat templates of reasoning models do; everything from that reply on is then computed again.

`condition` holds `mode`, `round`, `turn` (from 1), `history_tokens` (prompt tokens before the new question),
`predicted_cached_tokens` (block arithmetic over this conversation, replies included) and `reply_as_generated`: false
when an earlier reply, read back, has another number of tokens than the model generated, so that hits may end there.
The first turn is `cold`, later ones `warm`; arm off is `cold` throughout.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from prefixkit.experiments.prediction import cache_of, counted
from prefixkit.experiments.session import Session
from prefixkit.params.models import Conversation
from prefixkit.prompts import Message, given_lines, given_text

NAME = "conversation"
REASONING = {
    "en": "The reader asks about the ledgers. I look for the sentence that answers this, check that nothing before it "
    "says otherwise, and leave out what was not asked for. The passage repeats itself, so one mention is enough. "
    "I answer in one short sentence and stop.",
    "zh": "读者问的是账簿。我先找到回答这个问题的句子，再检查前文有没有相反的说法，"
    "没有问到的内容就不写。这段文字有重复，提一次就够了。用一句短话回答，然后结束。",
}


@dataclass(slots=True)
class Dialogue:
    """One conversation as the client keeps it."""

    mode: str
    system: str
    reasoning: str
    history: list[tuple[str, str]] = field(default_factory=list)

    def messages(self, question: str) -> list[Message]:
        """Return the messages that the client sends to ask `question`."""
        sent: list[Message] = [{"role": "system", "content": self.system}]
        for number, (asked, reply) in enumerate([] if self.mode == "fixed" else self.history, 1):
            newest = number == len(self.history)
            thought = f"<think>\n{self.reasoning}\n</think>\n\n" if self.mode == "rewritten" and newest else ""
            sent.append({"role": "user", "content": asked})
            sent.append({"role": "assistant", "content": thought + reply})
        return [*sent, {"role": "user", "content": question}]

    def answered(self, question: str, reply: str) -> None:
        """Put a question and its reply into the history."""
        self.history.append((question, reply))


def generated(prompt: list[int], with_reply: list[int], count: int) -> list[int] | None:
    """Return the tokens of a reply of `count` tokens, read back from the prompt that holds it.

    None when the template does not simply continue the prompt.
    """
    if with_reply[: len(prompt)] != prompt:
        return None
    return with_reply[len(prompt) : len(prompt) + count]


def run(session: Session) -> None:
    """Hold one conversation of each mode in each round."""
    params = session.params.experiments.conversation
    assert params
    wanted: list[tuple[str, int]] = []
    for number in range(1, params.repeats + 1):
        modes = random.Random(f"{params.seed}/{NAME}/{number}").sample(params.modes, len(params.modes))
        wanted += [(mode, number) for mode in modes]
    left = [(mode, number) for mode, number in wanted if not session.is_finished(_cell(mode, number))]
    if not left:
        return
    session.warm_up(NAME, params.system_tokens, max_tokens=params.max_tokens)
    session.expect(NAME, len(left) * params.turns)
    with counted(session, NAME):
        for mode, number in left:
            with session.cell(_cell(mode, number)):
                _converse(session, params, mode, number)


def _cell(mode: str, number: int) -> str:
    return f"{NAME}/{mode}/r{number}"


def _converse(session: Session, params: Conversation, mode: str, number: int) -> None:
    texts, tokenize = session.prompts.texts, session.client.tokenize
    passage = given_text(params.system_prompt, texts.unit)
    dialogue = Dialogue(mode, session.prompts.prefix(params.system_tokens, passage), REASONING[texts.language])
    questions = given_lines(params.questions, texts.follow_ups)
    cache = cache_of(session)
    faithful = True
    for turn in range(1, params.turns + 1):
        question = questions[(turn - 1) % len(questions)]
        messages = dialogue.messages(question)
        ids = tokenize(messages)
        probe = session.probe(
            messages,
            experiment=NAME,
            phase="cold" if turn == 1 or session.arm != "on" else "warm",
            condition={
                "mode": mode,
                "round": number,
                "turn": turn,
                "history_tokens": len(ids) - len(tokenize([messages[0], messages[-1]])) if len(messages) > 2 else 0,
                "predicted_cached_tokens": cache.served(ids) if cache else None,
                "reply_as_generated": faithful,
            },
            max_tokens=params.max_tokens,
            temperature=params.temperature,
            seed=params.seed,
        )
        if probe.error:
            return
        count = probe.completion_tokens or 0
        answer = generated(ids, tokenize([*messages, {"role": "assistant", "content": probe.text}]), count)
        # A model that ends by itself also generates the end token, which is no part of the text.
        faithful = faithful and answer is not None and len(tokenize(probe.text)) in (count, count - 1)
        if cache:
            cache.request(ids, answer or [])
        dialogue.answered(question, probe.text)
