"""Sessions that end without measuring the client: that takes a second each."""

from __future__ import annotations

import pytest

from prefixkit.experiments import overhead
from prefixkit.probe.calibrate import Calibration


@pytest.fixture(autouse=True, scope="session")
def quick_calibration() -> object:
    """Answer every calibration of a session at once."""

    def calibrate(prompt_bytes: int, concurrency: int = 1, **_: float) -> Calibration:
        return Calibration(prompt_bytes, concurrency, 20, 0.5, 0.9)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overhead, "calibrate", calibrate)
        yield patch
