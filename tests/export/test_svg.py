from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import matplotlib

from prefixkit.export.svg import compact, draw

matplotlib.use("agg")


def drawing() -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(3, 2))
    axes.scatter([1, 2, 3], [0.123456, 0.4, 0.9])
    axes.set_xlabel("tokens")
    plt.close(figure)
    return figure


def test_a_compact_picture_is_whole_and_every_reference_has_its_target() -> None:
    picture = draw(drawing(), "fig-x")
    ElementTree.fromstring(picture)
    ids = re.findall(r" id='([^']+)'", picture)
    used = set(re.findall(r"href='#([^']+)'|url\(#([^)]+)\)", picture))
    assert {one or other for one, other in used} == set(ids)
    assert len(ids) == len(set(ids))
    assert not re.search(r" [dxy]='[^']*\.\d{3}", picture)


def test_letters_keep_their_places() -> None:
    letter = ' <path id="T-1" d="M 1234.5 -4 L 10 0 z" transform="scale(0.015625)"/>'
    places = ("", ' transform="translate(63.626 0)"', ' transform="translate(5 -2.5) scale(0.7)"')
    uses = "".join(f'  <use xlink:href="#T-1"{place}/>\n' for place in places)
    assert compact(f'<svg>\n{letter}\n <g id="text_1">\n{uses} </g>\n</svg>') == (
        "<svg><path id='i0' d='M123 -0L1 0z' transform='scale(0.15625)'/><g><use xlink:href='#i0'/>"
        "<use xlink:href='#i0' x='63.63'/>"
        "<use xlink:href='#i0' transform='translate(5 -2.5) scale(0.7)'/></g></svg>"
    )
