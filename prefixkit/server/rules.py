"""Known causes of a failed start: how the log words each, and its remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Remedy = Callable[[re.Match[str]], str]


@dataclass(frozen=True, slots=True)
class Rule:
    """A wording of the log and its remedy; `kind` names rules to which the machine can add something."""

    pattern: re.Pattern[str]
    remedy: Remedy
    kind: str = ""


def _rule(pattern: str, remedy: str | Remedy, kind: str = "") -> Rule:
    def text(match: re.Match[str]) -> str:
        return match.expand(remedy) if isinstance(remedy, str) else remedy(match)

    return Rule(re.compile(pattern), text, kind)


def _argument(match: re.Match[str]) -> str:
    words = match.group(1).split()
    if "serve" in words:
        return "the command already is the server: take `serve` out of server.engine_args"
    if any(word.lower() in ("true", "false") for word in words):
        return "vLLM's switches take no value: write server.engine_args as a mapping, e.g. enforce_eager: true"
    return f"this vLLM does not know {words[0]}: take it out of server.engine_args, or use a vLLM that has it"


def _shorter(match: re.Match[str]) -> str:
    return (
        f"set engine_args.max_model_len: {match.group(1)} (--max-model-len {match.group(1)}), "
        "or give the cache more memory (gpu_memory_utilization; on CPU VLLM_CPU_KVCACHE_SPACE)"
    )


_HUB = "this is Hugging Face's answer, not the server's API key"
_LICENCE = f"accept the model's licence on its page and set HF_TOKEN ({_HUB})"
_MODEL = "mend model.path: a folder relative to the project root, or a hub id"
_NO_GPU = "no GPU that this vLLM can use: check `nvidia-smi`, or use profile cpu"
_MEMORY = "lower engine_args.gpu_memory_utilization or max_model_len, or free the GPU"

RULES = (
    _rule(r"error: unrecognized arguments: (.+)", _argument),
    _rule(r"error: argument (\S+?):? .*", r"mend \1 in server.engine_args"),
    _rule(r"error: (ambiguous option|the following arguments are required): (.+)", r"mend server.engine_args"),
    _rule(r"maximum number of tokens that can be stored in KV cache \((\d+)\)", _shorter),
    _rule(r"estimated maximum model length is (\d+)", _shorter),
    _rule(r"KV cache is needed, which is larger than the available KV cache memory", _MEMORY),
    _rule(r"Free memory on device.*less than desired GPU memory utilization", _MEMORY, "gpu"),
    _rule(r"No available memory for the cache blocks", "raise gpu_memory_utilization, or free the GPU", "gpu"),
    _rule(r"OutOfMemoryError|CUDA out of memory", _MEMORY, "gpu"),
    _rule(r"DefaultCPUAllocator: can't allocate|Cannot allocate memory", "free memory or lower VLLM_CPU_KVCACHE_SPACE"),
    _rule(r"[Pp]ort is already allocated", "stop the container that holds it, or set server.port: auto", "port"),
    _rule(r"\[Errno 98\].*(attempting to bind on address|\('(?:127|0)\.)", "set server.port: auto", "port"),
    _rule(
        r"EADDRINUSE|[Aa]ddress already in use|\[Errno 98\]",
        "if it is a port between vLLM's own processes, start again, one server at a time",
        "port",
    ),
    _rule(r"Failed to infer device type", _NO_GPU),
    _rule(r"No CUDA GPUs are available|Found no NVIDIA driver|Torch not compiled with CUDA|libcuda\.so", _NO_GPU),
    _rule(r"NVIDIA driver on your system is too old", "update the driver, or use a vLLM built for its CUDA version"),
    _rule(r"gated repo|Access to model .* is restricted", _LICENCE),
    _rule(r"40[13] Client Error.*huggingface\.co", _LICENCE),
    _rule(r"GatedRepoError", _LICENCE),
    _rule(r"is not a local folder and is not a valid model identifier|RepositoryNotFoundError", _MODEL),
    _rule(r"Repo id must|Invalid repository ID or local directory|does not appear to have a file named", _MODEL),
    _rule(r"404 Client Error.*huggingface\.co", _MODEL),
    _rule(r"couldn't connect to 'https://huggingface\.co|LocalEntryNotFoundError|outgoing traffic has been disabled",
          "the model is not here and the hub is out of reach: set model.path to a folder, or mend the network"),
    _rule(r"No package metadata was found for vllm|PackageNotFoundError.*vllm",
          "this vLLM has another package name: use the module form, [PYTHON, -m, vllm.entrypoints.openai.api_server]"),
    _rule(r"No module named '?vllm'?", "that Python has no vLLM: pip install -U vllm there, or mend server.command"),
    _rule(r"Bfloat16 is only supported on GPUs", "set engine_args.dtype: half"),
    _rule(r"trust_remote_code=True|--trust-remote-code",
          "read the model's code, then set engine_args.trust_remote_code: true"),
    _rule(r"max_model_len \((\d+)\) is greater than the derived max_model_len \(.*?(?:=|: )(\d+)",
          r"set engine_args.max_model_len: \2 or less"),
    _rule(r"current platform \w+ does not support ray", "Ray needs GPUs: remove distributed_executor_backend"),
    _rule(r"must be divisible by tensor parallel size", "choose a tensor_parallel_size that divides it"),
    _rule(r"parallel.*(?:exceeds|larger than).*GPUs?|Not enough GPUs|number of required GPUs exceeds",
          "ask for no more GPUs than there are"),
    _rule(r"Model architectures .* (?:are )?not supported", "pip install -U vllm, or choose another model"),
    _rule(r"could not select device driver|unknown or invalid runtime name: nvidia",
          "install the NVIDIA Container Toolkit, or change server.docker.run_args"),
    _rule(r"Cannot connect to the Docker daemon|permission denied.*docker", "start Docker, and be allowed to use it"),
    _rule(r"manifest unknown|manifest for .* not found|pull access denied", "mend server.docker.image"),
    _rule(r"Bus error|No space left on device.*/dev/shm|/dev/shm.*No space left",
          "give /dev/shm more room (docker: --ipc=host)"),
    _rule(r"No space left on device", "free disk space"),
    _rule(r"Too many open files", "raise the limit: ulimit -n 65536"),
)  # fmt: skip
