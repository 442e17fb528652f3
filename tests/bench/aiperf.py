"""AIPerf as a peer, in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from prefixkit.errors import PrefixkitError

VERSION = "0.13.0"
BYTES_PER_TOKEN = 2.6
TOKENIZER = """
import glob, sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
bpe = Tokenizer(models.BPE())
bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
files = sorted(glob.glob(sys.prefix + "/lib/python3*/site-packages/aiperf/**/*.py", recursive=True))[:200]
alphabet = pre_tokenizers.ByteLevel.alphabet()
bpe.train(files, trainers.BpeTrainer(vocab_size=4096, special_tokens=["</s>"], initial_alphabet=alphabet))
PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="</s>", unk_token="</s>").save_pretrained(sys.argv[1])
"""


class Aiperf:
    """An installed AIPerf with a small tokenizer of its own, since it wants one and none may be downloaded."""

    def __init__(self, environment: Path | None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="aiperf-")
        self._bin = (environment or Path(self._folder.name, "venv")).absolute() / "bin"
        if environment is None:
            print(f"installing aiperf {VERSION} (1.2 GB) into {self._bin.parent}, removed afterwards", flush=True)
            self._call([sys.executable, "-m", "venv", self._bin.parent])
            self._call([self._bin / "python", "-m", "pip", "install", "-q", f"aiperf=={VERSION}"])
        self._tokenizer = Path(self._folder.name, "tokenizer")
        self._call([self._bin / "python", "-c", TOKENIZER, self._tokenizer])

    def run(self, url: str, size: int, requests: int, concurrency: int) -> list[dict[str, Any]]:
        """Return request id and TTFT of each measured request of about `size` bytes."""
        with tempfile.TemporaryDirectory() as out:
            command = [
                self._bin / "aiperf", "profile", "--model", "yardstick", "--url", url.removesuffix("/v1"),
                "--endpoint-type", "chat", "--streaming", "--tokenizer", self._tokenizer,
                "--concurrency", concurrency, "--request-count", requests, "--warmup-request-count", concurrency + 5,
                "--isl", max(1, round(size / BYTES_PER_TOKEN)), "--isl-stddev", 0, "--osl", 4, "--osl-stddev", 0,
                "--random-seed", 7, "--workers-max", 1, "--record-processors", 1, "--ui", "none",
                "--no-server-metrics", "--artifact-dir", out,
            ]  # fmt: skip
            self._call(command)
            lines = [json.loads(line) for line in Path(out, "profile_export.jsonl").read_text().splitlines()]
        return [
            {"id": row["metadata"]["x_request_id"], "ttft_ms": row["metrics"]["time_to_first_token"]["value"]}
            for row in lines
            if row["metadata"]["benchmark_phase"] == "profiling" and "time_to_first_token" in row["metrics"]
        ]

    def close(self) -> None:
        """Remove what was made for this run."""
        self._folder.cleanup()

    @staticmethod
    def _call(command: list[Any]) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
            raise PrefixkitError(f"{Path(str(command[0])).name} failed: {last}")
