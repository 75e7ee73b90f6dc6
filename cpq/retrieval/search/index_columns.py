"""PURE. Columns of an index: texts in one array, numbers by name, and bounds that admit no value outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.dtypes import StringDType
from numpy.typing import NDArray

Number = float | Decimal
Bound = Number | Fraction


def strings(texts: Iterable[str]) -> NDArray[Any]:
    return np.array(list(texts), StringDType())


def columns(rows: Sequence[Mapping[str, Number]]) -> dict[str, NDArray[np.float64]]:
    columns: dict[str, NDArray[np.float64]] = {}
    for row, numbers in enumerate(rows):
        for name, number in numbers.items():
            if name not in columns:
                columns[name] = np.full(len(rows), np.nan)
            columns[name][row] = float(number)
    return columns


def bound(number: Bound, inwards: float) -> float:
    """A bound as a float; the next float inwards when rounding would admit a value outside the bound."""
    near = float(number)
    if not isinstance(number, Decimal | Fraction):
        return near
    rounded: Decimal | Fraction = Decimal(repr(near)) if isinstance(number, Decimal) else Fraction(repr(near))
    is_outside = rounded < number if inwards > 0 else rounded > number
    return float(np.nextafter(near, inwards)) if is_outside else near
