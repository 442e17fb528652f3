"""Pairs that come in groups: turns of one conversation share the machine's state, and so are not independent."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from prefixkit.stats.rows import Floats

MIN_GROUPS = 4
Key = tuple[Hashable, Hashable]


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Paired values that an interval takes as independent: one a group (`grouped`), or one a member of a group."""

    off: Floats
    on: Floats
    groups: int
    grouped: bool


def units(off: Mapping[Key, float], on: Mapping[Key, float]) -> Units:
    """Pair values by (group, member); from four groups on, their means are the units, since members are alike.

    Fewer groups give no interval worth having: then each pair is a unit, and whatever a whole group shares is left out
    of the interval. Only pairs enter, so a group's means are over the same members on both sides.
    """
    keys = sorted(off.keys() & on.keys(), key=lambda key: (str(key[0]), str(key[1])))
    pairs = np.array([(off[key], on[key]) for key in keys], dtype=float).reshape(-1, 2)
    places = [[i for i, _ in found] for _, found in groupby(enumerate(keys), key=lambda pair: pair[1][0])]
    grouped = len(places) >= MIN_GROUPS
    if grouped:
        pairs = np.array([pairs[inside].mean(axis=0) for inside in places])
    return Units(pairs[:, 0], pairs[:, 1], len(places), grouped)
