"""Argument types of the tools: each accepts what lenient clients send, and refuses what is ambiguous."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    InstanceOf,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from cpq.base.errors import CpqError, bad_field
from cpq.base.money import MINOR_DIGITS, significant_digits, to_micro
from cpq.base.text import clean, clean_identifier, read_json
from cpq.domain.catalog import units
from cpq.domain.catalog.prices import BOUND_MAX
from cpq.domain.catalog.search_query import QUERY_LENGTH_MAX
from cpq.domain.field_types import QUANTITY_DECIMALS_MAX, QUANTITY_MAX

LIMIT_DEFAULT = 20
LIMIT_MAX = 100
TOP_K_MAX = 50
PAGE_MAX = 1_000_000_000
DEPTH_MAX = 32
WHOLE_MAX = 2**53
NUMBER_BITS_MAX = 4096
LINES_MAX = 10_000
MONTHS_MAX = 1200
PERCENT_MAX = 100
MONEY_MAX = 10**12
ATTRIBUTE_MAX = 10**12
ATTRIBUTE_LENGTH_MAX = 1000
SIZE_LENGTH_MAX = 64
YEARS = (1900, 2200)


def _identifier(value: object) -> object:
    return clean_identifier(value) if isinstance(value, str) else value


def _text(value: object) -> object:
    return clean(value) if isinstance(value, str) else value


def _non_blank(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = clean(value).strip()
    if not text:
        raise ValueError("is blank")
    return text


def non_blank(message: str) -> Callable[[object], object]:
    """A reader that refuses blank text with this message."""

    def read(value: object) -> object:
        if isinstance(value, str) and not value.strip():
            raise ValueError(message)
        return _non_blank(value)

    return read


def raw_text(value: object) -> object:
    """Text that is not blank and keeps its Unicode form, because it is compared with the text of a file."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        raise ValueError("is blank")
    if "\0" in value or (not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value)):
        raise ValueError("contains a character that is not text")
    return value


def _whole(value: object) -> object:
    """A whole number; also `"20"` and `20.0`. Never a boolean, which Python would count as 1."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        raise ValueError("is a boolean, not a whole number")
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        return int(value)
    if isinstance(value, str | float | Decimal):
        raise ValueError("is not a whole number")
    return value


def _fine_quantity(value: object) -> object:
    """A quantity above 0: whole, or an exact decimal of up to three digits, read from its decimal text."""
    if type(value) is int and 1 <= value <= QUANTITY_MAX:
        return value
    return _quantity_up_to(QUANTITY_MAX, value)


def _used_quantity(value: object) -> object:
    """The same of what is counted by its use, which may be many."""
    return _quantity_up_to(BOUND_MAX, value)


def _quantity_up_to(most: int, value: object) -> object:
    if type(value) is int and 1 <= value <= most:
        return value
    if isinstance(value, bool):
        raise ValueError("is a boolean, not a number")
    text = str(value).strip()
    if not isinstance(value, int | float | str | Decimal) or not _NUMBER.fullmatch(text):
        raise ValueError("is not a number")
    number = Decimal(text)
    if not number.is_finite() or not 0 < number <= most:
        raise ValueError(f"must be above 0 and at most {most:,}")
    if number == number.to_integral_value():
        return int(number)
    if number != round(number, QUANTITY_DECIMALS_MAX):
        raise ValueError(f"has more than {QUANTITY_DECIMALS_MAX} decimals")
    return number.normalize()


def _flag(value: object) -> object:
    """True or false; also `"true"`. Never 1 or "yes", which could mean anything."""
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if value is not None and not isinstance(value, bool):
        raise ValueError("is neither true nor false")
    return value


def _listed(value: object) -> object:
    """A list; also one that arrives as JSON text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return read_json(value)
        except (ValueError, RecursionError):
            return value
    return value


def as_object(value: object) -> object:
    """An object of single values; also one that arrives as JSON text."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return read_json(value)
        except (ValueError, RecursionError):
            return value
    return value


def _percentage(value: object) -> object:
    """An exact percentage, read from its decimal text, in whole millionths of a percent."""
    if type(value) is int and 0 <= value <= PERCENT_MAX:
        return value * 1_000_000
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("is not a number")
    text = str(value).strip()
    if not _NUMBER.fullmatch(text):
        raise ValueError("is not a number")
    number = Decimal(text)
    if not number.is_finite() or not 0 <= number <= PERCENT_MAX:
        raise ValueError(f"must be a percentage from 0 to {PERCENT_MAX}")
    try:
        return to_micro(number)
    except ValueError:
        raise ValueError("has more than 6 decimals") from None


def _money(value: object) -> object:
    """An exact amount, read from its decimal text, in whole millionths."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("is not a number")
    text = str(value).strip()
    if not _NUMBER.fullmatch(text):
        raise ValueError("is not a number, such as 499.50 without a currency")
    number = Decimal(text)
    if not number.is_finite() or not 0 <= number <= MONEY_MAX:
        raise ValueError(f"must be an amount from 0 to {MONEY_MAX:,}")
    try:
        return to_micro(number)
    except ValueError:
        raise ValueError("has more than 6 decimals") from None


def _currency(value: object) -> object:
    if isinstance(value, str) and (code := value.strip().upper()) in MINOR_DIGITS:
        return code
    raise ValueError("is not an ISO 4217 currency code such as USD")


def _day(value: object) -> object:
    if not isinstance(value, str) or not _ISO_DAY.fullmatch(value.strip()):
        raise ValueError("is not a date such as 2026-01-31")
    try:
        day = date.fromisoformat(value.strip())
    except ValueError:
        raise ValueError("is not a calendar day") from None
    if not YEARS[0] <= day.year <= YEARS[1]:
        raise ValueError(f"must be a day from {YEARS[0]} to {YEARS[1]}")
    return day


def _moment(value: object) -> object:
    """A moment in ISO-8601 with its time zone, without which it would be ambiguous."""
    if not isinstance(value, str) or not _ISO_MOMENT.fullmatch(value.strip()):
        raise ValueError("is not a date and time with its zone such as 2026-01-31T17:00:00Z")
    try:
        moment = datetime.fromisoformat(value.strip().upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("is not a valid date and time") from None
    if not YEARS[0] <= moment.year <= YEARS[1]:
        raise ValueError(f"must be a moment from {YEARS[0]} to {YEARS[1]}")
    return moment


def _scalar(value: object) -> object:
    """An attribute's value: text, a number or a boolean, exact and storable."""
    if isinstance(value, str):
        if len(value) > ATTRIBUTE_LENGTH_MAX:
            raise ValueError(f"has more than {ATTRIBUTE_LENGTH_MAX} characters")
        return clean(value)
    if isinstance(value, float):
        value = Decimal(str(value))
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        number = Decimal(value)
        if not number.is_finite() or number.copy_abs() > ATTRIBUTE_MAX or significant_digits(number) > 15:
            raise ValueError("must be a number of at most 15 digits")
        to_micro(number)
        return number
    if not isinstance(value, bool):
        raise ValueError("must be text, a number, true or false")
    return value


def _measure(value: object) -> object:
    """A number; also one that arrives as text, with up to 20 decimals. Never a boolean: Python would count it as 1."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return Decimal(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("is not a number")
    return _scalar(value)


def _size(value: object) -> object:
    """A number, or a text with a number and its unit."""
    if isinstance(value, str) and len(value) <= SIZE_LENGTH_MAX and (amount := units.read(value)):
        return amount
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        raise ValueError("is neither a number nor a number with a unit, such as `75 kW`, `8 bar` or `10 m³/min`")
    return _measure(value)


_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ISO_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_NUMBER = re.compile(r"[+-]?([0-9]{1,20}\.?[0-9]{0,20}|\.[0-9]{1,20})([eE][+-]?[0-9]{1,3})?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,16}")

# Bounds come before the reader, so that the JSON schema shows them under their own names.
Identifier = Annotated[str, Field(min_length=1, max_length=128), BeforeValidator(_identifier)]
SearchText = Annotated[Annotated[str, Field(max_length=QUERY_LENGTH_MAX)] | None, BeforeValidator(_text)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Limit = Annotated[
    int,
    Field(ge=1, le=WHOLE_MAX, description=f"Results per page, at most {LIMIT_MAX}; larger values are reduced to that."),
    BeforeValidator(_whole),
]
Page = Annotated[int, Field(ge=1, le=PAGE_MAX, description="Page number, from 1."), BeforeValidator(_whole)]
Percentage = Annotated[
    int,
    BeforeValidator(_percentage),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": PERCENT_MAX}),
]
"""On the wire a number from 0 to 100; inside, whole millionths of a percent."""

Money = Annotated[int, BeforeValidator(_money), WithJsonSchema({"type": "number", "minimum": 0})]
"""On the wire an exact amount of at most 6 decimals; inside, whole millionths."""

Currency = Annotated[str, Field(min_length=3, max_length=3), BeforeValidator(_currency)]
Day = Annotated[date, BeforeValidator(_day)]
Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
Quantity = Annotated[int, Field(ge=1, le=QUANTITY_MAX), BeforeValidator(_whole)]
FineQuantity = Annotated[
    int | Decimal,
    BeforeValidator(_fine_quantity),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": QUANTITY_MAX}),
]
"""Whole, or a decimal where the product takes one."""

UsedQuantity = Annotated[int | Decimal, BeforeValidator(_used_quantity), WithJsonSchema({"type": "number"})]
"""Of what a usage price counts."""

Months = Annotated[int, Field(ge=1, le=MONTHS_MAX), BeforeValidator(_whole)]
Version = Annotated[int, Field(ge=1, le=WHOLE_MAX), BeforeValidator(_whole)]
Notes = Annotated[str, Field(max_length=10_000), BeforeValidator(_text)]
Justification = Annotated[str, Field(min_length=1, max_length=2000), BeforeValidator(_non_blank)]
"""Text for people: not blank, at most 2,000 characters."""

NonBlank = Annotated[str, BeforeValidator(_non_blank)]
"""A text that is not blank; its user sets the maximum length."""

Count = Annotated[int, Field(ge=0, le=WHOLE_MAX), BeforeValidator(_whole)]
Positive = Annotated[int, Field(ge=1, le=WHOLE_MAX), BeforeValidator(_whole)]
Question = Annotated[str, Field(min_length=1, max_length=10_000), BeforeValidator(_non_blank)]
"""A search question in plain words, not blank."""

TopK = Annotated[
    int,
    Field(ge=-WHOLE_MAX, le=WHOLE_MAX, description=f"Number of hits, 1 to {TOP_K_MAX}; other values are clamped."),
    BeforeValidator(_whole),
    WithJsonSchema({"type": "integer"}),
]
Measure = Annotated[Decimal, BeforeValidator(_measure), WithJsonSchema({"type": "number"})]
Size = Annotated[
    Decimal | InstanceOf[units.Amount], BeforeValidator(_size), WithJsonSchema({"type": ["number", "string"]})
]
"""A number in the unit of its name, or a text with another unit."""

Word = Annotated[str, Field(min_length=1, max_length=64), BeforeValidator(_identifier)]
Encoded = Annotated[str, Field(min_length=1, max_length=4 * 1024 * 1024), BeforeValidator(_identifier)]
"""A file in base64; a message cannot be larger."""

Key = Annotated[
    Annotated[str, Field(min_length=1, max_length=255)] | None,
    BeforeValidator(_identifier),
    Field(
        description="Any text you choose. Repeating a request with its key returns the same answer and changes nothing."
    ),
]
Attributes = Annotated[
    dict[Word, Annotated[str | bool | Decimal, BeforeValidator(_scalar)]],
    Field(max_length=100),
    BeforeValidator(as_object),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
]
Listed = BeforeValidator(_listed)
"""For lists: also accepts one sent as JSON text."""


class Part(BaseModel):
    """A part of an argument. Null counts as omitted, because many clients send it."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Without the nulls, which say nothing that `required` does not, and cost every agent tokens on every turn."""
        written = handler(schema)
        for part in handler.resolve_ref_schema(written).get("properties", {}).values():
            if part.get("default", 0) is None:
                del part["default"]
            known = [one for one in part.get("anyOf", ()) if one != {"type": "null"}]
            if len(known) == 1:
                del part["anyOf"]
                part |= known[0]
        return written

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if isinstance(value, dict) and None in value.values():
            return {name: part for name, part in value.items() if part is not None}
        return value


Ignored = Any
"""Any value, accepted and ignored."""


def require_one(given: Mapping[str, object], *, is_required: bool = False) -> None:
    """Refuse more than one of arguments that exclude each other, or, where one is required, none."""
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise bad_field(f"/{named[1]}", f"Give one of {', '.join(given)}, not {' and '.join(named)}.")
    if is_required and not named:
        raise bad_field(f"/{next(iter(given))}", f"Give one of {', '.join(given)}.")


def capped(limit: int) -> int:
    """The limit in force: a larger one is reduced, not refused."""
    return min(limit, LIMIT_MAX)


def clamped(top_k: int) -> int:
    """The number of hits in force: clamped, not refused."""
    return max(1, min(top_k, TOP_K_MAX))


def require_shallow(arguments: Mapping[str, Any]) -> None:
    """Refuse deep nesting and huge numbers, which no tool needs, before other code recurses into or prints them."""
    level: list[Any] = [arguments]
    for _ in range(DEPTH_MAX):
        deeper: list[Any] = []
        for part in level:
            for item in part.values() if isinstance(part, Mapping) else part:
                kind = type(item)
                if kind is dict or kind is list:
                    deeper.append(item)
                elif kind is int and item.bit_length() > NUMBER_BITS_MAX:
                    raise bad_field("", "A number among the arguments has too many digits.", maximum=WHOLE_MAX)
        if not deeper:
            return
        level = deeper
    raise too_deep()


def too_deep() -> CpqError:
    return bad_field("", f"The arguments are nested more than {DEPTH_MAX} levels deep.", maximum=DEPTH_MAX)
