"""Experiment `switch`: eight questions behind one shared system prompt, the first of them cold."""

from __future__ import annotations

from prefixkit.experiments import outputs
from prefixkit.experiments.session import Session
from prefixkit.params.models import Switch
from prefixkit.prompts import chat, given_lines, given_text

NAME = "switch"
WARMUP_TOKENS = 512
WARMUP_OUTPUT_TOKENS = 8


def run(session: Session) -> None:
    """Ask every question of every repeat that is not measured yet."""
    switch = session.params.experiments.switch
    assert switch is not False
    questions = given_lines(switch.questions, session.prompts.texts.questions)
    pending = [r for r in range(switch.repeats) if not session.is_finished(cell_name(r))]
    answers = [r for r in range(switch.repeats) if switch.outputs and not session.is_finished(outputs.cell_name(r))]
    if pending or answers:
        session.warm_up(NAME, switch.system_tokens or WARMUP_TOKENS, max_tokens=WARMUP_OUTPUT_TOKENS)
    session.expect(NAME, len(pending) * len(questions))
    for repeat in pending:
        with session.cell(cell_name(repeat)):
            _sequence(session, switch, questions, repeat)
    for repeat in answers:
        with session.cell(outputs.cell_name(repeat)):
            outputs.run(session, switch, _system_prompt(session, switch), questions, repeat)


def cell_name(repeat: int) -> str:
    """Return the unit of resumption: a whole sequence, since its first request must be cold."""
    return f"{NAME}/r{repeat}"


def _system_prompt(session: Session, switch: Switch) -> str:
    rules = given_text(switch.system_prompt, session.prompts.texts.rules_text)
    if switch.system_tokens is None:
        return session.prompts.repeated(rules, switch.system_repeats)
    return session.prompts.prefix(switch.system_tokens, rules)


def _sequence(session: Session, switch: Switch, questions: tuple[str, ...], repeat: int) -> None:
    system = _system_prompt(session, switch)

    def ask(number: int) -> None:
        session.probe(
            chat(system, questions[number - 1]),
            experiment=NAME,
            phase="warm" if session.arm == "on" and number > 1 else "cold",
            condition={"question": number, "repeat": repeat},
            target_tokens=switch.system_tokens,
            max_tokens=switch.max_tokens,
            temperature=switch.temperature,
            ignore_eos=True,
        )
        session.sample(NAME, number, repeat=repeat)

    with session.counted(NAME, "all", repeat=repeat):
        ask(1)
        if len(questions) > 1:
            with session.counted(NAME, f"requests 2-{len(questions)}", repeat=repeat):
                for number in range(2, len(questions) + 1):
                    ask(number)
