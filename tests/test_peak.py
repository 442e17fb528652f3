from __future__ import annotations

import sys
from pathlib import Path

import pytest

from prefixkit import peak
from prefixkit.params import load_arm
from prefixkit.peak import PeakError, record_peak, shape_of
from prefixkit.records import last, read_records

QWEN = {
    "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
    "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False,
}  # fmt: skip


def test_the_parameters_of_a_known_model_are_its_published_ones() -> None:
    assert shape_of(QWEN).parameters == pytest.approx(7.61e9, rel=0.003)
    assert shape_of(QWEN).layer_weights == pytest.approx(6.53e9, rel=0.003)


def test_operations_of_a_prefill_grow_with_twice_the_weights_and_with_the_square_of_the_length() -> None:
    shape = shape_of(QWEN)
    logits = 2 * 3584 * 152064
    short, long = (shape.prefill_flops(n) - logits for n in (1000, 2000))
    assert short == pytest.approx(2 * shape.layer_weights * 1000 + 2 * 3584 * 28 * 1000**2)
    assert long - 2 * short == pytest.approx(2 * (2 * 3584 * 28 * 1000**2))


def test_a_shape_that_is_not_counted_is_refused() -> None:
    with pytest.raises(PeakError, match="mixture of experts"):
        shape_of({**QWEN, "num_experts": 8})
    with pytest.raises(PeakError, match="intermediate_size"):
        shape_of({k: v for k, v in QWEN.items() if k != "intermediate_size"})


def test_an_interpreter_without_torch_says_so() -> None:
    with pytest.raises(PeakError, match="torch"):
        peak.matrix_rate(sys.executable)


def test_the_rate_is_appended_to_the_arms_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak, "matrix_rate", lambda _: {"device": "card", "bf16_tflops": 700.0, "n": 8192})
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text(str(QWEN).replace("'", '"').replace("False", "false"))
    params = load_arm("h200", "on")
    params = params.model_copy(update={"model": params.model.model_copy(update={"path": str(tmp_path / "model")})})
    with pytest.raises(PeakError, match="no records"):
        record_peak(params, "on", tmp_path, "h200")
    (tmp_path / "on.jsonl").write_text("")
    record_peak(params, "on", tmp_path, "h200", progress=lambda _: None)
    found = last(read_records(tmp_path / "on.jsonl"), "device")
    assert found and found["bf16_tflops"] == 700.0 and found["shape"]["layers"] == 28
