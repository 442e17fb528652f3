"""The /metrics page of vLLM 0.32, as far as anything here reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fakes.kv import Engine
    from tests.fakes.settings import Settings

COUNTERS: tuple[tuple[str, str, Callable[[Engine], float]], ...] = (
    (
        "vllm:prefix_cache_queries",
        "Prefix cache queries, in terms of number of queried tokens.",
        lambda e: float(e.queries),
    ),
    ("vllm:prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", lambda e: float(e.hits)),
    ("vllm:prompt_tokens", "Number of prefill tokens processed.", lambda e: float(e.prompt_tokens)),
    ("vllm:generation_tokens", "Number of generation tokens processed.", lambda e: float(e.generation_tokens)),
)
HISTOGRAMS: tuple[tuple[str, str, Callable[[Engine], float]], ...] = (
    ("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", lambda e: e.ttft_s),
    ("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", lambda e: e.queue_s),
    ("vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase.", lambda e: e.prefill_s),
)


def page(engines: Sequence[Engine], settings: Settings, started: float) -> str:
    """Return the page for these engines."""
    lines = [
        "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.",
        "# TYPE process_start_time_seconds gauge",
        f"process_start_time_seconds {started}",
    ]
    for name in ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"):
        lines += [f"# HELP {name} A gauge of the scheduler.", f"# TYPE {name} gauge"]
        lines += [f"{name}{_labels(i, settings)} 0.0" for i in range(len(engines))]
    for name, text, value in COUNTERS:
        lines += [f"# HELP {name}_total {text}", f"# TYPE {name}_total counter"]
        lines += [f"{name}_total{_labels(i, settings)} {value(e)}" for i, e in enumerate(engines)]
        lines += [f"# HELP {name}_created {text}", f"# TYPE {name}_created gauge"]
        lines += [f"{name}_created{_labels(i, settings)} {started}" for i in range(len(engines))]
    for name, text, total in HISTOGRAMS:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} histogram"]
        for i, e in enumerate(engines):
            lines.append(f"{name}_bucket{_labels(i, settings, le='+Inf')} {float(e.requests)}")
            lines.append(f"{name}_count{_labels(i, settings)} {float(e.requests)}")
            lines.append(f"{name}_sum{_labels(i, settings)} {total(e)}")
    lines += ["# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig"]
    lines += ["# TYPE vllm:cache_config_info gauge"]
    caching = settings.caching if settings.reported_caching is None else settings.reported_caching
    for i in range(len(engines)):
        fields = {
            "block_size": settings.block_size,
            "cache_dtype": "auto",
            "enable_prefix_caching": caching,
            "engine": i,
            "gpu_memory_utilization": 0.9,
            "num_gpu_blocks": settings.blocks,
            "prefix_caching_hash_algo": "sha256",
        }
        lines.append("vllm:cache_config_info{" + ",".join(f'{k}="{v}"' for k, v in fields.items()) + "} 1.0")
    return "\n".join(lines) + "\n"


def _labels(engine: int, settings: Settings, **more: Any) -> str:
    fields = {"engine": engine, "model_name": settings.model, **more}
    return "{" + ",".join(f'{k}="{v}"' for k, v in fields.items()) + "}"
