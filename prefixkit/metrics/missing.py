"""What a page without prefix-cache counters is: a gauge-only server, a router, another program, or an early server."""

from __future__ import annotations

import math

from prefixkit.metrics.families import LOOKED_FOR, gauges, half_family, prefix_like
from prefixkit.metrics.page import MetricsError, Page
from prefixkit.metrics.result import HitRate

_ROUTERS = {
    "vllm:current_qps": "the vLLM production-stack router",
    "vllm:avg_decoding_length": "the vLLM production-stack router",
    "vllm:healthy_pods_total": "the vLLM production-stack router",
    "vllm:num_incoming_requests_total": "the vLLM production-stack router",
    "vllm_router": "the vLLM router",
    "sgl_router": "the SGLang router",
    "smg_": "the SGLang model gateway",
    "inference_pool": "a gateway's endpoint picker",
    "inference_model": "a gateway's endpoint picker",
    "inference_extension": "a gateway's endpoint picker",
    "inference_objective": "a gateway's endpoint picker",
    "litellm_": "the LiteLLM proxy",
    "envoy_": "Envoy",
    "nginx_": "nginx",
    "traefik_": "Traefik",
    "dynamo_frontend": "the Dynamo front end",
    "router_": "a router",
}
_PROGRAMS = {
    "tgi_": "Text Generation Inference",
    "llamacpp:": "llama.cpp",
    "node_": "node_exporter",
    "DCGM_": "the NVIDIA DCGM exporter",
    "prometheus_": "Prometheus itself",
    "nv_inference": "Triton",
    "trtllm_": "TensorRT-LLM",
}
_RUNTIME = ("python_", "process_", "http_")


def explain_missing(page: Page) -> HitRate:
    """Return a result without a rate that says what this page is and where the counters would be."""
    names = list(page.series)
    half = half_family(page)
    if half and not half.startswith("vllm:") and not page.cut_off:
        message = f"renamed metric found: {half}, alone; the other half of the pair appears with the first hit"
        return HitRate("not-found", message=message)
    if half or (page.cut_off and any(n.startswith("vllm:") for n in names)):
        message = f"the page is cut off: {half or 'its last line'} is not whole; read it again"
        return HitRate("not-found", message=message)
    router = router_page(page)
    if router is not None:
        return router
    for start, program in _PROGRAMS.items():
        if any(n.startswith(start) for n in names):
            return HitRate(
                "wrong-page", message=f"this is the page of {program}, not of vLLM: scrape the engine's /metrics"
            )
    if any("vllm" in n for n in names) or any(n.startswith("sglang:") for n in names):
        return _engine_without(page)
    if all(n.startswith(_RUNTIME) for n in names):
        message = (
            "the endpoint is alive but has no vllm: series: log stats are disabled (--disable-log-stats), no request "
            "was served yet, or the version hides them (0.5.4 with its multiprocessing front end)"
        )
        return HitRate("not-found", message=message)
    try:
        page.samples(names[0])
    except MetricsError:
        first = page.series[names[0]][0][:60]
        return HitRate("wrong-page", message=f"this is no metrics page; it begins with {first!r}")
    some = ", ".join(sorted(names)[:3])
    return HitRate("wrong-page", message=f"this is another program's page; it holds {some}, ...")


def router_page(page: Page) -> HitRate | None:
    """Return a result that says so when a router or gateway wrote this page."""
    for start, program in _ROUTERS.items():
        if any(n.startswith(start) for n in page.series):
            message = f"this is the page of {program}; it does not count prefix hits: scrape each engine's own /metrics"
            return HitRate("wrong-page", message=message)
    return None


def gauge_rate(pages: list[Page], enabled: bool | None) -> HitRate:
    """Return what the hit-rate gauges say: an average over the server's life, so never the rate of a run."""
    readings = [(name, float(s.value)) for page in pages for name in gauges(page) for s in page.samples(name)]
    known = [(name, v / 100 if name.startswith("sglang:") and v > 1 else v) for name, v in readings]
    known = [(name, v) for name, v in known if math.isfinite(v) and 0 <= v <= 1]
    names = ", ".join(dict.fromkeys(name for name, _ in readings))
    sglang = names.startswith("sglang:")
    unit = "tokens" if sglang else "blocks"
    kind = "the gauge" if sglang else "the V0 engine's gauge"
    if not known:
        cause = "caching is disabled, says cache_config_info" if enabled is False else "caching is off or never used"
        message = f"gauge-only server: hit rate not available, {names} reads {readings[0][1]:g} ({cause})"
        return HitRate("gauge-only", family=names, unit=unit, message=message)
    positive = [(name, v) for name, v in known if v > 0]
    if not positive and not _has_served(pages):
        message = f"gauge-only server: {names} reads 0, which it also does before the first request"
        return HitRate("gauge-only", family=names, unit=unit, message=message)
    if len(positive) > 1:
        values = ", ".join(f"{name} {v:.1%}" for name, v in positive)
        message = f"gauge-only server with several gauges ({values}): they cannot be averaged, so there is no total"
        return HitRate("gauge-only", family=names, unit=unit, message=message)
    name, value = (positive or known)[0]
    message = (
        f"{value:.1%} from {kind} {name}: an average of {unit} over the server's life, indicative; "
        "this run's own rate cannot be had"
    )
    return HitRate("gauge-only", family=name, unit=unit, hit_rate=value, message=message)


def _engine_without(page: Page) -> HitRate:
    like = prefix_like(page)
    message = (
        f"no known prefix-cache metric; looked for {'; '.join(LOOKED_FOR)}; prefix-like names present: "
        f"{', '.join(like[:5]) or 'none'}; a renamed or removed metric, see --show-hidden-metrics-for-version"
    )
    return HitRate("not-found", message=message)


def _has_served(pages: list[Page]) -> bool:
    return any(
        s.value > 0
        for page in pages
        for name in ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total")
        if name in page.series
        for s in page.samples(name)
    )
