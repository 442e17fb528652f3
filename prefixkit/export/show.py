"""Display a numbered figure or table, with what the exporters need beside it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from prefixkit.errors import RenderError
from prefixkit.export.svg import draw

if TYPE_CHECKING:
    import pandas as pd

LABEL = re.compile(r"(fig|tbl)-[a-z0-9][a-z0-9-]*")


def literal(text: str) -> str:
    """Return Markdown that prints `text` as it is, on one line: nothing in it is markup."""
    flat = " ".join(text.split())
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", flat)


def _table(frame: pd.DataFrame) -> str:
    import pandas as pd

    plain_index = isinstance(frame.index, pd.RangeIndex) and frame.index.name is None
    if None not in frame.index.names and frame.columns.nlevels == 1:
        frame, plain_index = frame.reset_index(), True  # an index with a name is a column like any other
    return frame.to_html(index=not plain_index, border=0, na_rep="–", escape=True)


def show(obj: Any, *, label: str, caption: str, alt: str = "") -> None:
    """Display a figure (label `fig-...`, alt text needed) or a DataFrame (label `tbl-...`); the caption is Markdown."""
    from IPython.display import display

    if not LABEL.fullmatch(label):
        raise RenderError(f"label {label!r} is not `fig-name` or `tbl-name`", "use small letters, digits and hyphens")
    if not caption.strip():
        raise RenderError(f"{label} has no caption", "pass `caption`")
    details = {"label": label, "caption": " ".join(caption.split()), "alt": " ".join(alt.split())}
    if label.startswith("fig-"):
        if not details["alt"]:
            raise RenderError(
                f"{label} has no alternative text", "pass `alt`: what a reader who cannot see it must know"
            )
        import matplotlib.pyplot as plt

        data = {"image/svg+xml": draw(obj, label), "text/plain": details["alt"]}
        plt.close(obj)
    else:
        data = {"text/html": _table(obj), "text/plain": obj.to_string()}
    display(data, metadata={"prefixkit": details}, raw=True)  # type: ignore[no-untyped-call]
