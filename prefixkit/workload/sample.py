"""Write the sample workload: a support bot, a document bot and an agent, their requests interleaved as they arrive.

`python -m prefixkit.workload.sample` writes the same file each time. The support bot has the fault that the report is
there to find: the time of day stands at the head of its system prompt.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from prefixkit import paths
from prefixkit.workload.requests import Messages, Request, write_requests

PATH = paths.DATA / "workload_sample.jsonl"

SUPPORT_RULES = """You are the help desk of Larkspur Cycles, a workshop that rents and repairs bicycles.
Answer in at most three sentences and never promise a date that the workshop has not confirmed.
Ask for the rental number before you look anything up, and repeat it back to the customer.
Rentals run from eight in the morning until seven in the evening; later returns cost four coins an hour.
A puncture during a rental is repaired free of charge, a bent wheel is not.
Electric bicycles leave the shop fully charged and may come back empty.
Children under twelve get a helmet with every rental, without asking for it.
Refunds go back to the card that paid and take up to five working days.
When a customer is angry, first say what you understood, then say what you can do.
Never discuss other customers, staff names or the prices of other shops.
If a question is about anything other than bicycles, say kindly that you cannot help with it.
"""
SUPPORT_QUESTIONS = (
    "My rear tyre went flat by the river. What do I do now?",
    "Can I bring the bicycle back at eight tonight?",
    "How long does a refund take?",
    "Do you have a helmet for a girl of seven?",
    "The battery of my electric bicycle is empty. Will that cost me anything?",
    "I bent the front wheel on a kerb. Who pays for that?",
    "Could I keep the bicycle for two more days?",
    "Your colleague was rude to me this morning.",
    "Is there a trailer that carries a dog?",
    "My rental number is 4471. Is everything paid?",
    "Which of your bicycles suits someone who is very tall?",
    "Can you tell me whether it will rain tomorrow?",
)

DOCUMENT_RULES = """You answer questions about the collection of a small museum of clocks.
Use only the passages below. If they do not hold the answer, say so in one sentence.
Name the passage you used by its number, in brackets, at the end of the answer.
Do not guess years, makers or prices.
"""
PASSAGES = (
    "The tower clock of the east hall was taken from a granary in 1871. Its pendulum is as long as a grown man and "
    "beats every second and a half. Visitors may wind it on the first Sunday of each month, under the eye of a warden.",
    "The water clock in room two is a copy. It fills a copper bowl through a hole no wider than a needle, and the bowl "
    "sinks after twenty-four minutes. The warden refills it four times on an open day.",
    "The watchmaker's bench came to the museum with all its drawers closed. They held three hundred springs, a letter "
    "that was never sent, and a sandwich paper with a list of debts.",
    "Room three shows alarm clocks. The oldest lights a candle when it rings; the loudest was made for a night baker "
    "who was hard of hearing, and is set off once a day at noon.",
    "The ship's clock has two faces, one for the captain and one for the cook. They disagree by nine minutes on "
    "purpose, so that dinner was always ready early.",
    "The sundial in the yard was set for another town and runs eleven minutes slow. A brass plate beside it lists the "
    "correction for each month of the year.",
    "The museum keeps a school clock that runs backwards. A teacher had it built so that pupils who looked at it in a "
    "mirror on the wall could still read the time.",
    "Admission is free on weekdays after four. Groups of more than twelve need a guide, who can be booked by letter or "
    "at the desk, and who will wind one clock of the group's choice.",
)
DOCUMENT_QUESTIONS = (
    "Which clock may visitors wind themselves?",
    "How long does the bowl take to sink?",
    "Why do the two faces disagree?",
    "What was found in the bench?",
    "When is the loudest alarm set off?",
    "By how much is the sundial slow?",
    "Does a school class of fifteen need a guide?",
    "Who built the clock that runs backwards?",
    "Is there a clock made of glass?",
)

AGENT_RULES = """You are a careful assistant that tidies the photo archive of a village newspaper.
You work in small steps. In each step write one line that begins with THINK and one line that begins with DO.
Tools: list(folder) shows the files of a folder; show(file) describes a picture; move(file, folder) moves it;
rename(file, name) renames it; ask(question) asks the editor. Call exactly one tool in a step.
Never delete anything. Never rename a picture whose date you do not know.
Folders are named year/season/event. Names are in lower case, words joined by hyphens, with a number of two digits.
Stop with DO done() when every picture of the task is in its place.
"""
EVENTS = ("harvest fair", "boat race", "school play", "bridge opening", "snow day", "chess evening", "market", "choir")
SEASONS = ("spring", "summer", "autumn", "winter")


def build(seed: int = 8, support: int = 60, documents: int = 90, tasks: int = 30, steps: int = 5) -> list[Request]:
    """Return the requests in the order in which they arrive."""
    rng = random.Random(seed)
    arrivals: list[tuple[float, Messages]] = []
    for stream in (_support(rng, support), _documents(rng, documents)):
        times = sorted(rng.random() for _ in stream)
        arrivals += zip(times, stream, strict=True)
    for number in range(tasks):
        start, gap = rng.uniform(0, 0.9), rng.uniform(0.005, 0.02)
        arrivals += ((start + step * gap, messages) for step, messages in enumerate(_task(rng, number, steps)))
    arrivals.sort(key=lambda arrival: arrival[0])
    return [Request(line, messages) for line, (_, messages) in enumerate(arrivals, 1)]


def _support(rng: random.Random, customers: int) -> list[Messages]:
    """Return requests of one to three turns a customer; the clock at the head has moved on in each."""
    at = datetime(2025, 3, 4, 9, 0, 0)
    requests: list[Messages] = []
    for _ in range(customers):
        history: Messages = []
        for question in rng.sample(SUPPORT_QUESTIONS, rng.choice((1, 1, 2, 3))):
            at += timedelta(seconds=rng.randint(20, 400))
            system = {"role": "system", "content": f"Current time: {at:%Y-%m-%d %H:%M:%S}.\n{SUPPORT_RULES}"}
            history = [*history, {"role": "user", "content": question}]
            requests.append([system, *history])
            history.append({"role": "assistant", "content": "Thank you for asking. May I have your rental number?"})
    return requests


def _documents(rng: random.Random, count: int) -> list[Messages]:
    """Return single questions; a few popular passages are retrieved most of the time, best match first."""
    weights = [1 / (rank + 1) for rank in range(len(PASSAGES))]
    requests: list[Messages] = []
    for _ in range(count):
        chosen: list[int] = []
        while len(chosen) < 3:
            if (pick := rng.choices(range(len(PASSAGES)), weights)[0]) not in chosen:
                chosen.append(pick)
        passages = "\n".join(f"Passage {n + 1}: {PASSAGES[n]}" for n in chosen)
        requests.append(
            [
                {"role": "system", "content": DOCUMENT_RULES},
                {"role": "user", "content": f"{passages}\n\nQuestion: {rng.choice(DOCUMENT_QUESTIONS)}"},
            ]
        )
    return requests


def _task(rng: random.Random, number: int, steps: int) -> list[Messages]:
    """Return the steps of one task; each sends all that went before, and one more result."""
    event, season, year = rng.choice(EVENTS), rng.choice(SEASONS), rng.randint(1988, 2024)
    history: Messages = [
        {"role": "system", "content": AGENT_RULES},
        {"role": "user", "content": f"Task {number + 1}: sort the pictures of the {event} of {season} {year}."},
    ]
    requests = [list(history)]
    for step in range(1, steps):
        name = f"{event.replace(' ', '-')}-{step:02d}.jpg"
        history += [
            {"role": "assistant", "content": f"THINK I need to know what {name} shows.\nDO show({name})"},
            {
                "role": "user",
                "content": f"Result: {name}: {rng.randint(2, 40)} people, {rng.choice(('rain', 'sun', 'fog'))}, "
                f"a {rng.choice(('cart', 'boat', 'table', 'stage', 'bench'))} in front, the date on the back reads "
                f"{year}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}.",
            },
        ]
        requests.append(list(history))
    return requests


if __name__ == "__main__":
    print(f"{write_requests(PATH, build())} requests -> {PATH.relative_to(paths.ROOT)}")
