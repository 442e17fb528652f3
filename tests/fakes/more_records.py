"""Simulated records of the experiments beyond on and off; each function runs one experiment on an arm."""

from __future__ import annotations

from typing import Any

from tests.fakes.records import CORE, Arm, Experiment


def outputs(arm: Arm, *, lengths: tuple[int, ...] = (1, 32, 512)) -> None:
    """Send whole answers of given lengths behind one system prompt."""
    with arm.counted("outputs"):
        if arm.name == "on":
            arm.probe("outputs", "cold", 1512, 0, cell="outputs/r0", condition={"output_tokens": 1, "repeat": 0})
        for tokens in lengths:
            for number in range(3):
                arm.probe("outputs", "warm" if arm.name == "on" else "cold", 1510 + number, arm.floor(1488, 1510),
                          tokens=tokens, cell="outputs/r0",
                          condition={"output_tokens": tokens, "question": number + 1, "repeat": 0})  # fmt: skip
        arm.cell("outputs/r0")


def conversation(arm: Arm, *, turns: int = 5, rounds: int = 1) -> None:
    """Hold a conversation of each mode in each round."""
    with arm.counted("conversation"):
        for number, mode in ((n, mode) for n in range(1, rounds + 1) for mode in ("growing", "fixed", "rewritten")):
            cell, before = f"conversation/{mode}/r{number}", 0
            for turn in range(1, turns + 1):
                history = 0 if mode == "fixed" else (turn - 1) * 55
                prompt = 1060 + history
                shared = 1024 if mode == "fixed" or turn == 1 else before
                if mode == "rewritten" and turn > 2:
                    shared = max(1024, before - 90)
                cached = arm.floor(shared, prompt) if turn > 1 else 0
                on = arm.name == "on"
                condition = {"mode": mode, "round": number, "turn": turn, "history_tokens": history,
                             "predicted_cached_tokens": cached if on else 0, "reply_as_generated": True}  # fmt: skip
                phase = "warm" if on and turn > 1 else "cold"
                arm.probe("conversation", phase, prompt, cached, tokens=32, cell=cell, condition=condition)
                before = prompt
            arm.cell(cell)


def mutation(arm: Arm, *, prompt: int = 1040, rounds: int = 2) -> None:
    """Change one token of a cached prompt at several places."""
    on, block = arm.name == "on", arm.world.block
    with arm.counted("mutation"):
        for number in range(1, rounds + 1):
            cell = f"mutation/r{number}"

            def send(
                phase: str, place: int | None, position: float | None, border: str | None, cell: str = cell
            ) -> None:
                shared = prompt if place is None else place
                cached = arm.floor(shared, prompt) if phase == "warm" else 0
                arm.probe("mutation", phase if on else "cold", prompt, cached, cell=cell, target_tokens=1024,
                          condition={"variant": "unchanged" if place is None else "changed", "position": position,
                                     "position_tokens": place, "border": border,
                                     "predicted_cached_tokens": cached if on else 0})  # fmt: skip

            send("cold", None, None, None)
            if on:
                send("warm", None, None, None)
            for position in (0.0, 0.25, 0.5, 0.75, 1.0):
                send("warm", min(prompt - 1, round(prompt * position)), position, None)
            if on:
                border = prompt // 2 // block * block
                for place, name in ((border - 1, "before"), (border, "at"), (border + 1, "after")):
                    send("warm", place, place / prompt, name)
            arm.cell(cell)


def load(arm: Arm) -> None:
    """Send requests from several users at once and at a rate."""
    with arm.counted("load"):
        for kind, level in (("users", 1), ("users", 2), ("users", 4), ("rate", 1.0)):
            cell = f"load/{kind}/{level:g}"
            with arm.counted("load", f"{kind}/{level:g}"):
                for number in range(10):
                    first = number < min(2, level)
                    condition: dict[str, Any] = {
                        "step": kind, "concurrency": level if kind == "users" else None,
                        "rate_per_s": level if kind == "rate" else None, "request": number + 1, "prefix": number % 2,
                        "intended_at": "2026-03-02T10:00:00.000Z", "intended_s": number * 1.0,
                        "started_s": number * 1.0 + 0.001, "first_arrival": first, "predicted_cached_tokens": 0,
                    }  # fmt: skip
                    r = arm.probe("load", "load", 560, 0 if first else arm.floor(512, 560), tokens=8, cell=cell,
                                  condition=condition, target_tokens=512)  # fmt: skip
                    r["ttft_ms"] = round(r["ttft_ms"] * (1 + 0.4 * (level - 1)), 3)
                    r["e2e_ms"] = r["ttft_ms"] + 100
            arm.cell(cell)


def affinity(arm: Arm, *, rounds: int = 3, engines: int = 2) -> None:
    """Ask for three prefixes on several engines that take turns, and with a client that keeps to one; arm on only."""
    if arm.name != "on":
        arm.append("skip", experiment="affinity", reason="measured on arm on only")
        return
    arm.records[0]["engines"] = engines
    for number in range(rounds):
        for users in (1, 4):
            for routing in ("balanced", "sticky"):
                cell, turn, seen = f"affinity/{routing}/{users}/r{number}", 0, set[tuple[int, int]]()
                with arm.counted("affinity", f"{routing}/{users}", round=number):
                    for position in range(12):
                        prefix, request = position % 3, position // 3 + 1
                        engine = prefix % engines if routing == "sticky" else turn % engines
                        turn += 1 + (position % 5 == 0)
                        cached = arm.floor(1024, 1060) if (engine, prefix) in seen else 0
                        seen.add((engine, prefix))
                        condition = {
                            "routing": routing, "concurrency": users, "round": number, "position": position + 1,
                            "prefix": prefix, "request": request, "engine": engine if routing == "sticky" else None,
                            "predicted_cached_tokens": None,
                        }  # fmt: skip
                        arm.probe("affinity", "load" if users > 1 else "warm" if request > 1 else "cold", 1060, cached,
                                  cell=cell, condition=condition, target_tokens=1024)  # fmt: skip
                arm.cell(cell)
    for r in arm.records:
        if r["record"] == "counters":
            queries, hits, rate = r["queries"], r["hits"], r["hit_rate"]
            half = {"queries": queries // 2, "hits": hits // 2, "hit_rate": rate}
            rest = {"queries": queries - queries // 2, "hits": hits - hits // 2, "hit_rate": rate}
            r["per_engine"] = {"0": half, "1": rest}


def workload(arm: Arm, *, requests: int = 30) -> None:
    """Replay a small file of prompts."""
    mark, on = "abc123", arm.name == "on"
    if on:
        prefix = {"tokens": 640, "own_tokens": 640, "requests": 20, "saved_tokens": 12160, "line": 1}
        found = {"role": "system", "message": 1, "kind": "time", "in_last": False, "requests": 9, "tokens_after": 5000,
                 "first_token": 12, "line": 1, "other_line": 4, "text": None, "other_text": None}  # fmt: skip
        arm.append("workload", experiment="workload", workload=mark, file="bot.jsonl", requests=requests, left_out=0,
                   prompt_tokens=24000, block_size=32, capacity_tokens=46592, hits=12000, ideal_hits=14000,
                   moved_requests=9, moved_prompt_tokens=24100, moved_hits=16000, moved_ideal_hits=17000,
                   prefixes=[prefix], breaks=[found])  # fmt: skip
    cell = f"workload/{mark}"
    with arm.counted("workload"):
        for number in range(1, requests + 1):
            prompt = 700 + 13 * number
            cached = arm.floor(640 if number % 3 else 0, prompt) if number > 1 else 0
            condition = {"workload": mark, "request": number, "line": number, "messages": 2,
                         "prompt": f"{number:012x}", "predicted_cached_tokens": cached if on else 0}  # fmt: skip
            phase = "warm" if on and cached else "cold"
            arm.probe("workload", phase, prompt, cached, cell=cell, condition=condition)
        arm.fail("workload", "cold", "too-long", "line 31: 9000 tokens, the model takes 4095 and the answer", cell=cell,
                 condition={"workload": mark, "request": requests + 1, "line": requests + 1, "messages": 1,
                            "prompt": "0" * 12, "predicted_cached_tokens": None})  # fmt: skip
    arm.cell(cell)


def eviction(arm: Arm, *, capacity: int = 6368) -> None:
    """Cycle working sets around the capacity of a server of its own; arm on only."""
    if arm.name != "on":
        arm.append("skip", experiment="eviction", reason="measured on arm on only")
        return
    arm.append("run", **{**_run(arm), "experiment": "eviction", "kv_capacity_tokens": capacity})
    with arm.counted("eviction"):
        for ratio in (0.5, 0.9, 1.3):
            count = round(ratio * capacity / 576)
            for number in range(3):
                for prefix in range(count):
                    fits = count * 576 <= capacity
                    cached = arm.floor(530, 560) if number and fits else 0
                    arm.probe("eviction", "warm" if number else "cold", 560, cached, cell=f"eviction/cyclic/{ratio:g}",
                              condition={"order": "cyclic", "ratio": ratio, "pass": number, "prefix": prefix,
                                         "prompts": count, "working_set_tokens": count * 576,
                                         "capacity_tokens": capacity, "load": count * 576 / capacity,
                                         "predicted_cached_tokens": cached})  # fmt: skip
            arm.cell(f"eviction/cyclic/{ratio:g}")


def blocks(arm: Arm) -> None:
    """Compare block sizes and capacities, each on a server of its own; arm on only."""
    if arm.name != "on":
        arm.append("skip", experiment="blocks", reason="measured on arm on only")
        return
    for block in (32, 128):
        for capacity in (2048, 8192):
            arm.append("run", **{**_run(arm), "experiment": "blocks", "block_size": block})
            with arm.counted("blocks", f"b{block}/{capacity}"):
                for number in range(5):
                    cached = 1000 // block * block if number and capacity > 2048 else 0
                    arm.probe("blocks", "warm" if number else "cold", 1040, cached, cell=f"blocks/b{block}/{capacity}",
                              condition={"block_size": block, "capacity_tokens": capacity, "capacity": capacity,
                                         "prefix": 0, "pass": number, "shared_tokens": 1000,
                                         "tail_tokens": 1000 % block, "predicted_cached_tokens": cached})  # fmt: skip
            arm.cell(f"blocks/b{block}/{capacity}")


def frontend(arm: Arm) -> None:
    """Send cached prompts as chat and as token ids, then on a server with another setting; arm on only."""
    if arm.name != "on":
        arm.append("skip", experiment="frontend", reason="measured on arm on only")
        return
    for experiment, setting in (("frontend", None), ("tuning", "fast")):
        for prompt in (350, 3100):
            for number in range(3):
                cell = f"{experiment}/{prompt}/r{number}"
                for form, together in (("chat", 1), ("chat", 4), ("token_ids", 1), ("token_ids", 4)):
                    condition = {"form": form, "concurrency": together, "tokenize_ms": 3.0 + 0.1 * number,
                                 "setting": setting, "round": number}  # fmt: skip
                    for _ in range(together):
                        r = arm.probe(experiment, "warm", prompt, arm.floor(prompt, prompt), cell=cell,
                                      target_tokens=prompt - 20, condition=condition)  # fmt: skip
                        r["timings"]["headers"] = 3.0 if form == "chat" else 1.0
                arm.cell(cell)
    shape = {"layers": 30, "hidden": 576, "heads": 9, "kv_heads": 3, "head_dim": 64, "intermediate": 1536,
             "vocab": 49152, "tied": True}  # fmt: skip
    arm.append("device", device="cpu", bf16_tflops=0.4, n=1024, shape=shape, parameters=134_000_000)


def _run(arm: Arm) -> dict[str, Any]:
    return {k: v for k, v in arm.records[0].items() if k not in ("record", "schema", "arm", "profile", "at")}


EVERY: tuple[Experiment, ...] = (
    *CORE, outputs, conversation, load, affinity, mutation, workload, frontend, eviction, blocks
)  # fmt: skip
