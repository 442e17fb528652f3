"""Metrics pages of our own making, in the shapes that engines print."""

from __future__ import annotations

from collections.abc import Sequence

TOKENS = "Prefix cache lookups, counted in queried tokens."
BLOCKS = "Prefix cache lookups, counted in queried blocks."


def counters(
    values: Sequence[tuple[float, float]],
    *,
    family: str = "vllm:prefix_cache",
    help_text: str | None = TOKENS,
    engine: bool = True,
    model: str = "tiny",
    created: float | None = None,
) -> str:
    """Return the lines of one pair of counters; `values` holds (queries, hits) of each engine."""
    lines = []
    for what, column in (("queries", 0), ("hits", 1)):
        name = f"{family}_{what}"
        if help_text:
            lines.append(f"# HELP {name}_total {help_text}")
        lines.append(f"# TYPE {name}_total counter")
        for number, pair in enumerate(values):
            labels = _labels(number if engine else None, model)
            lines.append(f"{name}_total{labels} {float(pair[column])}")
        if created is not None:
            lines.append(f"# TYPE {name}_created gauge")
            lines += [
                f"{name}_created{_labels(n if engine else None, model)} {created!r}" for n, _ in enumerate(values)
            ]
    return "\n".join(lines) + "\n"


def config(enabled: str = "True", block: str = "16", blocks: str = "1000", engine: str | None = "0") -> str:
    """Return the info gauge with the cache settings."""
    labels = f'block_size="{block}",enable_prefix_caching="{enabled}",num_gpu_blocks="{blocks}"'
    if engine is not None:
        labels += f',engine="{engine}"'
    return f"# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{{{labels}}} 1.0\n"


def series(name: str, value: float, labels: str = 'engine="0",model_name="tiny"') -> str:
    """Return one line."""
    return f"{name}{{{labels}}} {value}\n"


def _labels(engine: int | None, model: str) -> str:
    parts = [] if engine is None else [f'engine="{engine}"']
    return "{" + ",".join([*parts, f'model_name="{model}"']) + "}"
