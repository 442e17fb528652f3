"""Claims: every number that the article prints, with its unit, interval and source, and how it is written."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prefixkit.errors import PrefixkitError
from prefixkit.export.placeholders import claim_text
from prefixkit.stats.estimate import Estimate

FILE = "claims.json"
UNITS = ("ms", "s", "ms/1k", "fraction", "tokens", "count", "x", "req/s", "tokens/s", "TFLOP", "TFLOP/s", "p", "text")


class ClaimsError(PrefixkitError):
    """A claims file that cannot be read, or a check that cannot be answered."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Claim:
    """One printed number (or word): `value` None means that it was not measured; fractions are not percentages."""

    name: str
    value: float | str | None
    unit: str
    ci: tuple[float, float] | None = None
    source: str = ""

    def record(self) -> dict[str, object]:
        """Return the claim as it stands in claims.json."""
        whole = isinstance(self.value, float) and self.unit in ("tokens", "count") and self.value.is_integer()
        value = int(self.value) if whole and self.value is not None else self.value
        unit = "" if self.unit == "p" else self.unit
        return {"value": value, "unit": unit, "ci": list(self.ci) if self.ci else None, "source": self.source}


class Claims(Mapping[str, Claim]):
    """Claims by name, in the order in which they were made; a name is used once."""

    def __init__(self, claims: Iterable[Claim] = ()) -> None:
        self._claims: dict[str, Claim] = {}
        for claim in claims:
            self._put(claim)

    def __getitem__(self, name: str) -> Claim:
        return self._claims[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._claims)

    def __len__(self) -> int:
        return len(self._claims)

    def add(
        self,
        name: str,
        value: float | str | None,
        unit: str,
        ci: Sequence[float | None] | None = None,
        source: str = "",
    ) -> Claim:
        """Make a claim; a value that is not finite becomes None, an interval with an open end becomes none."""
        if unit not in UNITS:
            raise ValueError(f"claim {name}: unknown unit {unit!r}")
        number = value if isinstance(value, str) else _finite(value)
        low, high = (_finite(ci[0]), _finite(ci[1])) if ci else (None, None)
        interval = (low, high) if low is not None and high is not None and number is not None else None
        claim = Claim(name, number, unit, interval, source)
        self._put(claim)
        return claim

    def estimate(self, name: str, found: Estimate, unit: str, source: str) -> Claim:
        """Make a claim of an estimate; its value in `unit`."""
        return self.add(name, found.value, unit, found.ci, source)

    def number(self, name: str) -> float | None:
        """Return the value of a claim as a number, or None where it is missing or a word."""
        claim = self._claims.get(name)
        return claim.value if claim and not isinstance(claim.value, str) else None

    def write(self, folder: Path) -> Path:
        """Write claims.json to `folder` and return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE
        data = {name: claim.record() for name, claim in self._claims.items()}
        path.write_text(json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n", "utf-8")
        return path

    def _put(self, claim: Claim) -> None:
        if claim.name in self._claims:
            raise ValueError(f"claim {claim.name!r} is made twice")
        self._claims[claim.name] = claim


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def read_claims(path: Path) -> Claims:
    """Return the claims of a claims.json, or of the one in a folder; raises ClaimsError."""
    path = path / FILE if path.is_dir() else path
    try:
        data = json.loads(path.read_text("utf-8"))
        return Claims(
            Claim(name, c["value"], c["unit"], tuple(c["ci"]) if c["ci"] else None, c["source"])
            for name, c in data.items()
        )
    except OSError as error:
        raise ClaimsError(f"{path}: {error.strerror}", "run `make report`, or give the folder of a report") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClaimsError(f"{path}: not a claims file ({error})", "run `make article` to write it again") from None


def text(claim: Claim, lang: str = "en", part: str = "") -> str:
    """Write a claim as the article prints it, in Markdown; `part` as in a placeholder (value, ci, full, low, ...)."""
    return claim_text(claim.record(), part or None, lang)


_COMPARE = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """One answered check, such as `slope_reduction>=0.9`."""

    expression: str
    value: float | str | None
    passed: bool


def check(claims: Mapping[str, Claim], expression: str) -> list[Check]:
    """Answer `name OP number` checks, separated by commas; raises ClaimsError for a name or form that is unknown."""
    answers = []
    for part in (p.strip() for p in expression.split(",")):
        found = re.fullmatch(r"(\w+)\s*(>=|<=|==|!=|>|<)\s*(-?[\d.]+(?:[eE][-+]?\d+)?)(\s*%)?", part)
        if not found:
            raise ClaimsError(f"cannot read the check {part!r}", "write it as `slope_reduction>=0.9`")
        name, sign, wanted, per_cent = found.groups()
        if name not in claims:
            raise ClaimsError(f"no claim is called {name!r}", "list the names with `make claims`")
        try:
            limit = float(wanted) / (100 if per_cent else 1)
        except ValueError:
            raise ClaimsError(f"{wanted!r} is not a number", "write the check as `slope_reduction>=0.9`") from None
        value = claims[name].value
        passed = not isinstance(value, str) and value is not None and _COMPARE[sign](value, limit)
        answers.append(Check(part, value, bool(passed)))
    return answers
