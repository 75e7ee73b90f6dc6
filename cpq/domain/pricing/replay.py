"""PURE. Prices a stored request again, and finds the first difference from the stored result."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from cpq.base.money import from_micro
from cpq.base.text import canonical_json, read_json
from cpq.domain.pricing import price
from cpq.domain.pricing import request as pricing_request
from cpq.domain.pricing import result as pricing_result

ABSENT = "nothing"
"""Marks a missing value in a difference."""

_COUNTED = ("quantity", "value")
"""Fields whose whole numbers are not always millionths."""

_LINE = pricing_result.PricedLine._fields
_STEP = pricing_result.Step._fields
_TAX_GROUP = pricing_result.TaxGroup._fields


class Difference(NamedTuple):
    """The line (None: the quote as a whole), the field, the stored value and the newly computed one."""

    line: str | None
    field: str
    stored: object
    computed: object


def reprice(request: str) -> str:
    """The result of a stored request, as it would be stored; ValueError when the text is not a request."""
    try:
        gathered = pricing_request.load(read_json(request))
        return canonical_json(pricing_result.dump(price(gathered)))
    except (TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"is not a request that can be priced ({type(error).__name__}: {error})") from error


def first_difference(stored: str, computed: str) -> Difference | None:
    """None when both texts are the same bytes. Lines come first, because totals follow from them."""
    if stored == computed:
        return None
    try:
        before, after = read_json(stored), read_json(computed)
        found = next(_differences(before, after), None)
    except (ValueError, TypeError, LookupError, AttributeError):
        return Difference(None, "result", "not a result", "a result")
    return found or Difference(None, "result", "the same values, spelt otherwise", "canonical JSON")


def _differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Difference]:
    for one, other in zip_longest(map(_by_name, before["lines"]), map(_by_name, after["lines"])):
        line = str((one or other)["id"])
        if one is None or other is None:
            yield Difference(line, "line", *(ABSENT if part is None else "a line" for part in (one, other)))
        else:
            yield from _of_mapping(line, one, other)
    yield from _of_mapping(None, {**before, "lines": []}, {**after, "lines": []})


def _by_name(line: object) -> dict[str, Any]:
    if not isinstance(line, list) or len(line) > len(_LINE):
        raise TypeError("a line is the list of its fields")
    return dict(zip(_LINE, line, strict=False))


def _of_mapping(line: str | None, one: dict[str, Any], other: dict[str, Any]) -> Iterator[Difference]:
    for name in dict.fromkeys((*other, *one)):
        before, after = one.get(name, ABSENT), other.get(name, ABSENT)
        if before != after and name in ("steps", "tax_groups"):
            yield from _of_rows(line, name, before, after)
        elif before != after:
            yield Difference(line, name, _readable(name, before), _readable(name, after))


def _of_rows(line: str | None, name: str, one: list[list[Any]], other: list[list[Any]]) -> Iterator[Difference]:
    fields = _STEP if name == "steps" else _TAX_GROUP
    for number, (before, after) in enumerate(zip_longest(one, other), 1):
        if before is None or after is None:
            values = ABSENT if before is None else before[0], ABSENT if after is None else after[0]
            yield Difference(line, f"{name}.{number}", *values)
            continue
        for field, left, right in zip_longest(fields, before, after, fillvalue=ABSENT):
            if left != right:
                where = f"{name}.{number}.{field}"
                yield Difference(line, where, _readable(field, left), _readable(field, right))


def _readable(field: str, value: object) -> object:
    is_amount = isinstance(value, int) and not isinstance(value, bool) and field not in _COUNTED
    return from_micro(value) if is_amount and isinstance(value, int) else value
