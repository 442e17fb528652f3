"""The arm `cloud`: `switch` and two lengths through an OpenAI-compatible gateway, one set per model.

What it measures is the network, the provider's queue and the provider's own cache. Prompts are sized by characters, no
field is sent that only vLLM knows, and at most `cloud.max_prompt_tokens` prompt tokens in all.
"""

from __future__ import annotations

import math
import os
from typing import Any

from prefixkit.errors import ProbeError
from prefixkit.experiments.cloud_plan import CHARS_PER_TOKEN, Plan, wanted, within
from prefixkit.experiments.ledger import WARMUP
from prefixkit.experiments.session import Session
from prefixkit.probe import Client, clean_key
from prefixkit.prompts import Message, chat, given_lines, given_text

NAME = "cloud"
PING_TOKENS = 5


class _ModelError(Exception):
    """Why a model is not measured further."""


class _BudgetError(Exception):
    """The next request could exceed the budget."""


def run(session: Session) -> None:
    """Measure every model that is not measured yet; one that fails is skipped with its reason and the others go on."""
    cloud = session.params.cloud
    plan = within(wanted(session.params.experiments), cloud.max_prompt_tokens // len(cloud.models))
    if plan is None:
        reason = f"max_prompt_tokens {cloud.max_prompt_tokens:,} is too little for {len(cloud.models)} models"
        session.skip(NAME, reason, remedy="raise cloud.max_prompt_tokens or name fewer models")
        return
    pending = [m for m in cloud.models if not all(session.is_finished(cell) for cell in cells(m, plan))]
    _announce(session, plan, pending)
    for model in pending:
        try:
            _measure(session, model, plan)
        except _BudgetError as reached:
            session.skip(NAME, f"{model}: {reached}", model=model)
        except (_ModelError, ProbeError) as error:
            session.skip(NAME, f"{model}: {error}", model=model)
            session.leave_unfinished(f"{model}: {error}")
        finally:
            session.detach()


def cells(model: str, plan: Plan) -> list[str]:
    """Return the units of resumption of one model."""
    switch = [f"{NAME}/{model}/switch"] if plan.questions else []
    return [*switch, *(f"{NAME}/{model}/length/{target}" for target in plan.lengths)]


def spent(session: Session) -> int:
    """Return the prompt tokens that the records of this arm have cost so far, repeated requests among them."""
    return sum(r.get("prompt_tokens") or 0 for r in session.records if r.get("record") == "probe")


def _announce(session: Session, plan: Plan, pending: list[str]) -> None:
    if not pending:
        return
    limit = session.params.cloud.max_prompt_tokens
    session.progress(
        f"{NAME}: going to send {plan.requests * len(pending)} requests with about "
        f"{plan.prompt_tokens * len(pending):,} prompt tokens to {', '.join(pending)}; "
        f"never more than {limit:,} tokens in all"
    )
    for experiment, requests in (("switch", plan.questions), ("length", plan.requests - plan.questions)):
        session.expect(experiment, requests * len(pending))


def _measure(session: Session, model: str, plan: Plan) -> None:
    cloud, chars = session.params.cloud, CHARS_PER_TOKEN[plan.language]
    key = clean_key(os.environ.get(cloud.api_key_env, ""), cloud.api_key_env)
    client = Client(
        os.environ.get(cloud.base_url_env, ""),
        model,
        key,
        max_tokens_field=cloud.max_tokens_field,
        key_page=session.params.report.key_page,
        key_source=cloud.api_key_env,
    )
    session.use(client, lambda text: math.ceil(len(text) / chars))
    _check(session, client, model)
    for cell in cells(model, plan):
        with session.cell(cell) as todo:
            if todo and cell.endswith("/switch"):
                _switch(session, model, plan)
            elif todo:
                _length(session, model, plan, int(cell.rpartition("/")[2]))


def _check(session: Session, client: Client, model: str) -> None:
    """Ask for the list of models, which may be missing, and for five tokens, which must come."""
    try:
        listed = [str(entry.get("id")) for entry in client.models()]
        if listed and model not in listed:
            session.progress(f"{NAME}: {model} is not among the {len(listed)} models that the gateway lists; trying it")
    except ProbeError as error:
        session.progress(f"{NAME}: the gateway does not list its models ({error.message})")
    ping = session.probe(
        [{"role": "user", "content": "ping"}],
        experiment=NAME,
        phase=WARMUP,
        condition={"model": model},
        max_tokens=PING_TOKENS,
    )
    if ping.error is not None:
        raise _ModelError(ping.error["message"])


def _switch(session: Session, model: str, plan: Plan) -> None:
    switch = session.params.experiments.switch
    assert switch is not False
    own = session.prompts.texts
    system = session.prompts.prefix(plan.system_tokens, given_text(switch.system_prompt, own.rules_text))
    questions = given_lines(switch.questions, own.questions)[: plan.questions]
    for number, question in enumerate(questions, 1):
        condition = {"model": model, "question": number, "repeat": 0}
        _send(session, plan, "switch", chat(system, question), number, plan.system_tokens, condition, switch.max_tokens)


def _length(session: Session, model: str, plan: Plan, target: int) -> None:
    length = session.params.experiments.length
    assert length is not False
    own = session.prompts.texts
    prefix = session.prompts.prefix(target, given_text(length.unit, own.unit))
    messages = chat(prefix, given_text(length.question, own.question))
    for number in range(1, plan.repeats + 2):
        condition = {"model": model, "round": number - 1}
        _send(session, plan, "length", messages, number, target, condition, length.max_tokens)


def _send(
    session: Session,
    plan: Plan,
    experiment: str,
    messages: list[Message],
    number: int,
    target: int,
    condition: dict[str, Any],
    max_tokens: int,
) -> None:
    limit = session.params.cloud.max_prompt_tokens
    if spent(session) + plan.cost(target) > limit:
        raise _BudgetError(f"max_prompt_tokens {limit:,} is reached")
    probe = session.probe(
        messages,
        experiment=experiment,
        phase="cold" if number == 1 else "warm",
        condition=condition,
        target_tokens=target,
        max_tokens=max_tokens,
    )
    if probe.error is not None:
        raise _ModelError(probe.error["message"])
