"""Pairs in groups: what an interval takes as independent."""

from __future__ import annotations

import numpy as np

from prefixkit.stats import mean_estimate
from prefixkit.stats.clusters import MIN_GROUPS, units


def turns(groups: int, shift: float = 0.0) -> dict[tuple[str, int], float]:
    return {(f"r{g}", turn): 100.0 * turn + 10 * g * shift for g in range(groups) for turn in range(2, 6)}


def test_few_groups_leave_each_pair_a_unit() -> None:
    found = units(turns(MIN_GROUPS - 1, 1.0), turns(MIN_GROUPS - 1))
    assert (found.grouped, found.groups, len(found.off)) == (False, MIN_GROUPS - 1, 4 * (MIN_GROUPS - 1))


def test_with_enough_groups_their_means_are_the_units() -> None:
    found = units(turns(12, 1.0), turns(12))
    assert (found.grouped, found.groups) == (True, 12)
    assert sorted(found.off - found.on) == [10.0 * g for g in range(12)]


def test_what_a_whole_group_shares_widens_the_interval() -> None:
    rng = np.random.default_rng(1)
    off = {key: ms + shared for key, ms in turns(8).items() for shared in [float(rng.normal(0, 1))]}
    common = {f"r{g}": float(rng.normal(0, 20)) for g in range(8)}
    shared = {key: ms + common[key[0]] for key, ms in off.items()}
    plain = [shared[key] - ms for key, ms in turns(8).items()]
    found = units(shared, turns(8))
    grouped, alone = mean_estimate(found.off - found.on).half_width, mean_estimate(np.array(plain)).half_width
    assert grouped is not None and alone is not None
    assert grouped > 1.5 * alone


def test_a_member_without_partner_enters_neither_side() -> None:
    off, on = turns(5), turns(5)
    del on["r3", 4]
    off["r9", 2] = 1e6
    found = units(off, on)
    assert found.groups == 5
    assert (found.off == found.on).all()


def test_nothing_in_common_is_no_unit() -> None:
    found = units({}, turns(3))
    assert (found.groups, found.grouped, len(found.on)) == (0, False, 0)
