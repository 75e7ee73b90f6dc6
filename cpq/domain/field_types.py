"""Field types of imported rows: identifiers, names, exact numbers, days, currencies, each with its bounds."""

from __future__ import annotations

import re
import zoneinfo
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

from cpq.base.money import AMOUNT_MAX, MINOR_DIGITS, SIGNIFICANT_DIGITS_MAX, significant_digits, to_micro
from cpq.base.text import clean, clean_identifier, clean_line
from cpq.base.written_numbers import in_plain_digits
from cpq.domain.translations import canonical

QUANTITY_MAX = 1_000_000
QUANTITY_DECIMALS_MAX = 3


def _identifier(text: str) -> str:
    if _IDENTIFIER.fullmatch(text):
        return text
    text = clean_identifier(text)
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError("is made of letters, digits and _ . : - and starts with a letter or a digit")
    return text


def _exact(value: object) -> object:
    if isinstance(value, float):
        raise ValueError("is a binary float; write the number as text")
    if not isinstance(value, str):
        return value
    # Decimal accepts more than people write: 1_000, digits of other scripts.
    digits = in_plain_digits(value)
    if not _NUMBER.fullmatch(digits.strip()):
        raise ValueError("is not a number")
    return digits


def _finite(number: Decimal) -> Decimal:
    if not number.is_finite():
        raise ValueError("is a finite number")
    if number.copy_abs() > AMOUNT_MAX:  # Not abs(), which overflows.
        raise ValueError(f"is beyond {AMOUNT_MAX:f}")
    if significant_digits(number) > SIGNIFICANT_DIGITS_MAX:
        raise ValueError(f"has more than {SIGNIFICANT_DIGITS_MAX} significant digits")
    to_micro(number)
    return number or Decimal(0)  # Not -0.


def _counted(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("is a boolean, not a whole number")
    return in_plain_digits(value) if isinstance(value, str) else value


def _fine(value: Decimal) -> int | Decimal:
    """A quantity: whole, or a decimal of up to three digits. What a product takes is checked with the product."""
    if value == value.to_integral_value():
        return int(value)
    if value != round(value, QUANTITY_DECIMALS_MAX):
        raise ValueError(f"has more than {QUANTITY_DECIMALS_MAX} decimals")
    return value.normalize()


def _day(value: object) -> object:
    # A bare number would be read as seconds since 1970.
    if isinstance(value, int | float | Decimal) or (isinstance(value, str) and not _ISO_DAY.fullmatch(value)):
        raise ValueError("is not a date such as 2026-01-31")
    return value


def _storable(value: Any) -> Any:
    """A free value with every text in it cleaned; the reader of the file bounds its depth."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_storable(name): _storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    if isinstance(value, float):
        raise ValueError("holds a binary float")
    return _finite(value) if isinstance(value, Decimal) else value


def _currency(code: str) -> str:
    code = code.strip().upper()
    if code not in MINOR_DIGITS:
        raise ValueError("is not an ISO 4217 currency code")
    return code


def _time_zone(name: str) -> str:
    # Not zoneinfo.ZoneInfo(name): that would read a file named by the row.
    if name not in _time_zones():
        raise ValueError("is not an IANA time zone such as Europe/Berlin")
    return name


def _locale(tag: str) -> str:
    if tag != canonical(tag):
        raise ValueError("is not a locale such as de, de-AT or pt-BR, written like these")
    return tag


@cache
def _time_zones() -> set[str]:
    return zoneinfo.available_timezones()


def empty_as_absent(value: object) -> object:
    return None if value == "" else value


_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
Identifier = Annotated[str, Field(max_length=64), AfterValidator(_identifier)]

CategoryId = Annotated[Identifier, AfterValidator(str.lower)]
"""Category ids are in small letters, so that a search need not guess."""

Name = Annotated[str, Field(max_length=200), AfterValidator(clean_line)]
Word = Annotated[str, Field(max_length=64), AfterValidator(clean_line)]
Prose = Annotated[str, Field(max_length=20_000), AfterValidator(clean)]
Number = Annotated[Decimal, BeforeValidator(_exact), AfterValidator(_finite)]
Amount = Annotated[Number, Field(ge=0)]
Whole = Annotated[int, BeforeValidator(_counted)]
FineQuantity = Annotated[
    Decimal,
    BeforeValidator(_counted),
    BeforeValidator(_exact),
    Field(gt=0, le=QUANTITY_MAX),
    AfterValidator(_fine),
]
UsedQuantity = Annotated[
    Decimal,
    BeforeValidator(_counted),
    BeforeValidator(_exact),
    Field(gt=0, le=10**12),
    AfterValidator(_fine),
]
"""Of what a usage price counts."""

Day = Annotated[date, BeforeValidator(_day)]
Currency = Annotated[str, AfterValidator(_currency)]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
LocaleTag = Annotated[str, AfterValidator(_locale)]
"""Only in its usual spelling, so that `name.de` and `name.DE` cannot be two texts for one locale."""

Free = Annotated[Any, AfterValidator(_storable)]
Scalar = StrictBool | Number | Annotated[str, Field(max_length=1000), AfterValidator(clean)]


class Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
