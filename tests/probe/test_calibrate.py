import pytest

from prefixkit.errors import ProbeError
from prefixkit.probe import calibrate as module
from prefixkit.probe.calibrate import Calibration, calibrate, quantile


def test_a_calibration_measures_at_the_size_and_concurrency_asked_for():
    found = calibrate(20_000, 3, n=6, delay_ms=2)
    assert (found.prompt_bytes, found.concurrency, found.n) == (20_000, 3, 6)
    assert 0 < found.overhead_p50_ms <= found.overhead_p99_ms
    assert "20.0 KB and 3 at once" in str(found) and found.record()["n"] == 6


def test_a_client_that_took_a_noticeable_part_of_the_ttft_is_called_the_bottleneck():
    calibration = Calibration(3000, 64, 128, 4.0, 9.0)
    assert "the client was the bottleneck" in calibration.bottleneck(40.0)
    assert calibration.bottleneck(400.0) is None and calibration.bottleneck(None) is None


def test_a_yardstick_that_does_not_start_is_an_error_with_a_remedy(monkeypatch, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(3)")
    monkeypatch.setattr(module.yardstick, "__file__", str(broken))
    with pytest.raises(ProbeError, match="did not start"):
        calibrate(10)


@pytest.mark.parametrize(("q", "value"), [(0.0, 1), (0.5, 5), (0.9, 9), (0.99, 10), (1.0, 10)])
def test_quantiles_are_nearest_rank(q, value):
    assert quantile([float(v) for v in range(10, 0, -1)], q) == value
