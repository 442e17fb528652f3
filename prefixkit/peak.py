"""The limit of the machine: the bf16 matrix rate of its device, and what a model's prefill must compute.

Written as a `device` record beside the runs, so that a measured slope can be held against what the card can do.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from prefixkit import paths
from prefixkit.errors import PrefixkitError, ServerError
from prefixkit.model import model_path
from prefixkit.params import Params
from prefixkit.provenance import gpu_details
from prefixkit.records import RecordWriter

TIMEOUT_S = 300

# Runs in the interpreter that has torch. Random data: a product of zeros draws less power and is faster.
_MEASURE = """
import json, statistics, time
import torch
cuda = torch.cuda.is_available()
device, n, repeats = ("cuda", 8192, 50) if cuda else ("cpu", 1024, 10)
torch.manual_seed(0)
pairs = [[torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2)] for _ in range(3)]
out = torch.empty(n, n, device=device, dtype=torch.bfloat16)
wait = torch.cuda.synchronize if cuda else (lambda: None)
def seconds(a, b):
    wait()
    start = time.perf_counter()
    torch.matmul(a, b, out=out)
    wait()
    return time.perf_counter() - start
for i in range(max(5, repeats // 2)):
    seconds(*pairs[i % 3])
times = [seconds(*pairs[i % 3]) for i in range(repeats)]
rate = lambda s: 2 * n**3 / s / 1e12
q = statistics.quantiles(times, n=10)
print(json.dumps({
    "device": torch.cuda.get_device_name() if cuda else "cpu", "torch": torch.__version__, "n": n, "repeats": repeats,
    "bf16_tflops": rate(statistics.median(times)), "bf16_tflops_p10": rate(q[-1]), "bf16_tflops_p90": rate(q[0]),
}))
"""


class PeakError(PrefixkitError):
    """A rate that could not be measured, or a model whose shape is not known."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a dense decoder with gated feed-forward layers (Llama, Qwen2, Mistral, SmolLM2)."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied: bool

    @property
    def layer_weights(self) -> int:
        """Weights that every token is multiplied with: projections of attention and feed-forward of all layers."""
        attention = self.hidden * self.head_dim * 2 * (self.heads + self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.intermediate)

    @property
    def parameters(self) -> int:
        """All weights with embeddings; biases and norms, below 0.1 %, are left out."""
        return self.layer_weights + self.vocab * self.hidden * (1 if self.tied else 2)

    def prefill_flops(self, tokens: float) -> float:
        """Return the floating-point operations of a prefill of `tokens` tokens, none of them cached.

        `2 W L` for the weights, `2 d h N L^2` for causal attention (scores and weighted values are each `2 d h` for a
        pair of tokens, and half of all pairs count; d: head size, h: heads, N: layers), and the last token's logits.
        """
        attention = 2 * self.head_dim * self.heads * self.layers * tokens**2
        return 2 * self.layer_weights * tokens + attention + 2 * self.hidden * self.vocab


def shape_of(config: Mapping[str, Any]) -> Shape:
    """Return the shape that a model's config.json describes; raises PeakError for other architectures."""
    try:
        heads, hidden = int(config["num_attention_heads"]), int(config["hidden_size"])
        if config.get("num_experts") or config.get("num_local_experts"):
            raise PeakError("the model is a mixture of experts", "its operations are not counted here")
        return Shape(
            layers=int(config["num_hidden_layers"]),
            hidden=hidden,
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or hidden // heads),
            intermediate=int(config["intermediate_size"]),
            vocab=int(config["vocab_size"]),
            tied=bool(config.get("tie_word_embeddings", False)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PeakError(f"config.json: {error} is missing or odd", "only dense decoder models are counted") from None


def interpreter(params: Params) -> str:
    """Return the Python that has torch: the one that starts the server, else this one."""
    program = params.server.command[0]
    if not Path(program).name.startswith("python"):
        return sys.executable
    return str(paths.ROOT / program) if "/" in program else program


def matrix_rate(python: str) -> dict[str, Any]:
    """Return what the device of `python`'s torch does in bf16 matrix products; raises PeakError."""
    try:
        done = subprocess.run([python, "-c", _MEASURE], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip().splitlines()[-1:] or ["no message"]
        raise PeakError(f"{python}: {reason[0]}", "measure with a Python that has torch") from None
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        raise PeakError(f"{python}: {error}", "measure with a Python that has torch") from None


def record_peak(
    params: Params, arm: str, folder: Path, profile: str, progress: Callable[[str], object] = print
) -> Path:
    """Measure the device and append a `device` record to the arm's records; return their file."""
    path = folder / f"{arm}.jsonl"
    if not path.is_file():
        raise PeakError(f"{path}: no records of this arm", "measure it first")
    try:
        config = json.loads((Path(model_path(params)) / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ServerError(f"the model's config.json cannot be read: {error}", "give model.path as a folder") from None
    shape = shape_of(config)
    before, found, after = gpu_details(), matrix_rate(interpreter(params)), gpu_details()
    writer = RecordWriter(path, arm=arm, profile=profile)
    writer.append(
        "device", **found, gpu_before=before, gpu_after=after, shape=asdict(shape), parameters=shape.parameters
    )
    writer.close()
    progress(f"{found['device']}: {found['bf16_tflops']:.0f} TFLOP/s in bf16, {path}")
    return path
