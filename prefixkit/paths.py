"""One constant for each place in the project that the code reads or writes."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARAMS = ROOT / "params"
NOTEBOOKS = ROOT / "notebooks"
MODELS = ROOT / ".models"
REPORT = ROOT / "report"
OUT = REPORT / "out"
PUBLISHED = REPORT / "published"
DATA = Path(__file__).resolve().parent / "data"
