"""What is measured, in the order in which it runs; experiments with servers of their own come last."""

from __future__ import annotations

from prefixkit.errors import ParamsError

EXPERIMENTS = {
    "switch": "prefixkit.experiments.switch",
    "length": "prefixkit.experiments.length",
    "conversation": "prefixkit.experiments.conversation",
    "load": "prefixkit.experiments.load",
    "affinity": "prefixkit.experiments.affinity",
    "mutation": "prefixkit.experiments.mutation",
    "workload": "prefixkit.experiments.workload",
    "frontend": "prefixkit.experiments.frontend",
    "cloud": "prefixkit.experiments.cloud",
    "tuning": "prefixkit.experiments.tuning",
    "eviction": "prefixkit.experiments.eviction",
    "blocks": "prefixkit.experiments.blocks",
}
ONLY_ON = frozenset({"affinity", "frontend", "tuning", "eviction", "blocks"})
OWN_SERVERS = frozenset({"tuning", "eviction", "blocks"})


def belongs(experiment: str, arm: str) -> bool:
    """Return whether an arm has this experiment at all; the cloud arm is one experiment of its own."""
    if experiment not in EXPERIMENTS:
        raise ParamsError(f"unknown experiment {experiment!r}", f"one of: {', '.join(EXPERIMENTS)}")
    return (experiment == "cloud") == (arm == "cloud")
