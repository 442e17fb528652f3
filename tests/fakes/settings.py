"""What a fake vLLM is told, in Python or in vLLM's own flags."""

from __future__ import annotations

import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What the fake is told; a gateway has no vLLM endpoints and refuses vLLM's own request fields."""

    model: str = "fake"
    caching: bool = True
    reported_caching: bool | None = None
    block_size: int = 16
    blocks: int = 4000
    max_model_len: int = 8192
    engines: int = 1
    api_key: str | None = None
    details: bool = True
    per_request_metrics: bool = True
    alpha_ms: float = 0.0
    beta_ms: float = 0.0
    decode_ms: float = 0.0
    metrics: bool = True
    gateway: bool = False
    models: tuple[str, ...] = ()


def settings_from(argv: list[str]) -> tuple[Settings, int]:
    """Return settings and port from vLLM's command line; flags that the fake does not know are ignored."""
    flag = argparse.BooleanOptionalAction
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--model", default="fake")
    parser.add_argument("--served-model-name", nargs="+")
    parser.add_argument("--enable-prefix-caching", action=flag, default=True)
    parser.add_argument("--block-size", type=int, default=16)
    parser.add_argument("--num-gpu-blocks-override", type=int, default=4000)
    parser.add_argument("--max-model-len", type=int, default=8192)
    parser.add_argument("--data-parallel-size", type=int, default=1)
    parser.add_argument("--kv-cache-memory-bytes")
    parser.add_argument("--api-key")
    parser.add_argument("--enable-prompt-tokens-details", action=flag, default=False)
    parser.add_argument("--enable-per-request-metrics", action=flag, default=False)
    parser.add_argument("--fake-alpha-ms", type=float, default=0.0)
    parser.add_argument("--fake-beta-ms", type=float, default=0.0)
    parser.add_argument("--fake-decode-ms", type=float, default=0.0)
    parser.add_argument("--fake-reported-caching", action=flag, default=None)
    args, rest = parser.parse_known_args(argv)
    positional = [a for a in rest if not a.startswith("-") and a != "serve"]
    model = (args.served_model_name or [args.model if args.model != "fake" or not positional else positional[0]])[0]
    settings = Settings(
        model=model,
        caching=args.enable_prefix_caching,
        reported_caching=args.fake_reported_caching,
        block_size=args.block_size,
        blocks=args.num_gpu_blocks_override,
        max_model_len=args.max_model_len,
        engines=args.data_parallel_size,
        api_key=args.api_key,
        details=args.enable_prompt_tokens_details,
        per_request_metrics=args.enable_per_request_metrics,
        alpha_ms=args.fake_alpha_ms,
        beta_ms=args.fake_beta_ms,
        decode_ms=args.fake_decode_ms,
    )
    return settings, args.port
