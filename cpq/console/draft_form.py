"""Reads the fields of a draft as people type them: a line with its options, the terms, a discount, a choice.

Every problem of a form is found at once and stands beside its field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cpq.base.errors import CpqError
from cpq.base.money import to_micro
from cpq.console.formats import named
from cpq.domain.field_types import QUANTITY_DECIMALS_MAX, QUANTITY_MAX, FineQuantity, UsedQuantity
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Quantity
from cpq.domain.quotes.special_terms import Commitment

MONTHS_MAX = 1200
NOTES_MAX = 10_000
OPTION = "option."
"""The start of the names of fields that choose options."""

TERMS = ("deal_id", "term_months", "start_date", "end_date", "valid_until", "payment_terms", "notes")

_QUANTITY: TypeAdapter[Quantity] = TypeAdapter(FineQuantity)
_USED: TypeAdapter[Quantity] = TypeAdapter(UsedQuantity)
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(,[0-9]{3})+")
_WHOLE = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class DraftForm:
    """The fields of one form, and the problems found while reading them."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = fields
        self.problems: dict[str, str] = {}
        self.allowed: dict[str, Sequence[str]] = {}
        """The values that a refused command named for a field."""

    def text(self, name: str, most: int = 128) -> str | None:
        value = self.fields.get(name, "")
        if len(value) > most:
            self.problems[name] = f"At most {most:,} characters."
        return value or None

    def required_text(self, name: str, message: str, most: int = 2_000) -> str:
        value = self.text(name, most)
        if value is None:
            self.problems[name] = message
        return value or ""

    def whole(self, name: str, most: int) -> int | None:
        value = self.fields.get(name, "").replace(",", "")
        if not value:
            return None
        if not _WHOLE.fullmatch(value) or not 1 <= int(value) <= most:
            self.problems[name] = f"A whole number from 1 to {most:,}."
            return None
        return int(value)

    def percent(self, name: str) -> int:
        """In whole millionths of a percent; left out, it is 0."""
        value = self.fields.get(name, "").removesuffix("%").strip() or "0"
        if not _NUMBER.fullmatch(value) or not 0 <= Decimal(value) <= 100:
            self.problems[name] = "A percentage from 0 to 100, with a point: 7.5."
            return 0
        return min(to_micro(Decimal(value)), ONE_HUNDRED_PERCENT)

    def money(self, name: str) -> int | None:
        """In whole millionths; None where the field is empty."""
        value = self.fields.get(name, "").replace(",", "").strip()
        if not value:
            return None
        if not _NUMBER.fullmatch(value):
            self.problems[name] = "An amount such as 499.50."
            return None
        return to_micro(Decimal(value))

    def discount(self) -> dict[str, int | None]:
        """A discount on the whole quote: a percentage, an amount or a total to reach. Empty fields are no discount."""
        off, target = self.money("requested_discount_amount"), self.money("target_total")
        percent = self.percent("requested_discount_pct")
        if [bool(percent), off is not None, target is not None].count(True) > 1:
            self.problems["requested_discount_amount"] = "Give a percentage, an amount or a total, not several."
        is_none = off is None and target is None
        return {
            "requested_discount": percent if percent or is_none else None,
            "requested_amount": off,
            "target_total": target,
        }

    def special(self) -> dict[str, Any]:
        """What was arranged for a line; empty fields take it back."""
        found: dict[str, Any] = {
            "unit_price": self.money("unit_price"),
            "price_reason": self.text("price_reason", 2_000),
            "discount_amount": self.money("discount_amount"),
            "start_date": self.day("line_start_date"),
            "term_months": self.whole("line_term_months", MONTHS_MAX),
            "end_date": self.day("line_end_date"),
        }
        if "committed_quantity" in self.fields:  # Only the form of what is charged by its use has it.
            found["commitment"] = self._commitment()
            found["expected_quantity"] = self._used("expected_quantity")
        return found

    def _commitment(self) -> Commitment | None:
        quantity, money = self._used("committed_quantity"), self.money("committed_amount")
        if quantity is None and money is None:
            return None
        return Commitment(quantity, money, self.text("committed_per", 16) or "")

    def _used(self, name: str) -> Quantity | None:
        value = self.fields.get(name, "").replace(",", "").strip()
        if not value:
            return None
        try:
            return _USED.validate_python(value)
        except ValidationError:
            self.problems[name] = f"A number above 0, with at most {QUANTITY_DECIMALS_MAX} decimals."
            return None

    def day(self, name: str) -> date | None:
        value = self.fields.get(name, "")
        if not value:
            return None
        try:
            return date.fromisoformat(value if _DAY.fullmatch(value) else "")
        except ValueError:
            self.problems[name] = "A day such as 2026-01-31."
            return None

    def quantity(self, decimals: int) -> Quantity:
        """The quantity of a product that takes this many decimals; whether it has more is checked with the product."""
        value = self.fields.get("quantity", "")
        if not decimals and _GROUPED.fullmatch(value):
            value = value.replace(",", "")
        try:
            return _QUANTITY.validate_python(value)
        except ValidationError as error:
            doubt = str(error.errors()[0].get("ctx", {}).get("error", ""))
            bounds = f"A number above 0 and at most {QUANTITY_MAX:,}, with at most {QUANTITY_DECIMALS_MAX} decimals."
            bounds = bounds if decimals else f"A whole number from 1 to {QUANTITY_MAX:,}."
            self.problems["quantity"] = f"{doubt}." if "can mean" in doubt else bounds
            return 1

    def options(self, options: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The choices that were made; an empty one takes the default of the product."""
        chosen = {one["name"]: self.fields.get(OPTION + one["name"], "") for one in options}
        kinds = {one["name"]: one["type"] for one in options}
        return {name: _choice(kinds[name], value) for name, value in chosen.items() if value}

    def chosen_options(self) -> dict[str, str]:
        """The fields of options as they were typed."""
        return {name: value for name, value in self.fields.items() if name.startswith(OPTION)}

    def terms(self) -> dict[str, Any]:
        """The terms of a quote; None where a field is empty."""
        return {
            "deal_id": self.text("deal_id"),
            "term_months": self.whole("term_months", MONTHS_MAX),
            "start_date": self.day("start_date"),
            "end_date": self.day("end_date"),
            "valid_until": self.day("valid_until"),
            "payment_terms": self.text("payment_terms", 64),
            "notes": self.text("notes", NOTES_MAX),
        }

    def refused(self, error: CpqError) -> None:
        """Put the problems of a refused command beside their fields; what has no field stands above the form."""
        found: Any = error.details.get("problems") or [{"field": error.details.get("field"), "message": error.message}]
        for one in found:
            name, message = _field(str(one.get("field") or "")), named(str(one.get("message")))
            self.allowed[name] = one.get("allowed") or ()
            self.problems[name] = f"{self.problems[name]} {message}" if name in self.problems else message


def _field(pointer: str) -> str:
    """The field of a form for the JSON pointer of an argument; `` for those that the form does not have."""
    parts = pointer.strip("/").split("/")
    if "attributes" in parts[:-1]:
        return OPTION + parts[-1]
    if "commitment" in parts:
        return "committed_quantity"
    names = {"quantity", "discount_pct", "selling_model", "option_set", *TERMS}
    names |= {"account_id", "currency", "requested_discount_pct", "justification", "approver_role", "reason"}
    names |= {"requested_discount_amount", "target_total", "discount_amount", "unit_price", "price_reason"}
    names.add("expected_quantity")
    return parts[-1] if parts[-1] in names else ""


def _choice(kind: str, value: str) -> Any:
    """The typed value of a choice; what cannot be read stays text, which the product's rules refuse by name."""
    if kind == "boolean" and value in ("true", "false"):
        return value == "true"
    is_number = kind in ("integer", "number") and re.fullmatch(r"-?[0-9]{1,12}(\.[0-9]{1,6})?", value)
    return Decimal(value) if is_number else value
