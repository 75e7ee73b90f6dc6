"""PURE. Check of what was arranged for single lines and of amounts off: every problem with its field."""

from __future__ import annotations

from datetime import date, timedelta

from cpq.base.errors import Code, CpqError
from cpq.base.money import MINOR_DIGITS
from cpq.domain.pricing import terms
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.special_terms import CUSTOM, NOTHING_SPECIAL

_CUSTOM_ID = f"{CUSTOM}:"


def special_problems(draft: Draft, part_periods: str) -> list[CpqError]:
    """Terms of single lines, and a discount on the quote, that say nothing sensible."""
    problems = []
    for index, line in enumerate(draft.lines):
        if line.special is None and not line.ramp and line.product_id[:7] != _CUSTOM_ID:
            continue  # Nearly every line.
        at, ramp_prices = f"/line_items/{index}", [one for one in line.ramp if one.override is not None]
        own = line.special or NOTHING_SPECIAL
        if own.agreed and own.agreed.basis:
            continue  # It was checked when it was sold.
        if own.custom:
            problems += _custom_problems(at, line)
        elif line.product_id.startswith(_CUSTOM_ID):
            message = f"{line.product_id} is an item of another line, and no product."
            hint = "Give it as custom, with its name and price."
            problems.append(CpqError(Code.NOT_FOUND, message, field=f"{at}/product_id", hint=hint))
        elif (own.unit_price is not None or ramp_prices) and not own.price_reason:
            problems.append(
                CpqError(
                    Code.VALIDATION_ERROR,
                    "A price instead of the regular one needs a reason.",
                    field=f"{at}/price_reason",
                    hint="Say in price_reason why, for example `matches the offer of a competitor`; approvers read it.",
                )
            )
        if line.discount_pct and own.discount_amount:
            problems.append(_either(f"{at}/discount_amount", "discount_pct", "discount_amount"))
        problems += _money_spelled(f"{at}/discount_amount", own.discount_amount, draft.currency)
        problems += _date_problems(at, line, draft, part_periods)
    if draft.requested_discount and draft.requested_amount:
        problems.append(_either("/requested_discount_amount", "requested_discount_pct", "requested_discount_amount"))
    return [*problems, *_money_spelled("/requested_discount_amount", draft.requested_amount, draft.currency)]


def _custom_problems(at: str, line: DraftLine) -> list[CpqError]:
    """What only a product has."""
    if line.special and line.special.unit_price is None:
        return [CpqError(Code.VALIDATION_ERROR, "A line without a product needs a price.", field=f"{at}/unit_price")]
    asked = {"attributes": line.attributes, "ramp": line.ramp, "selling_model": line.selling_model}
    return [
        CpqError(Code.VALIDATION_ERROR, f"A line without a product has no {name}.", field=f"{at}/{name}")
        for name, value in asked.items()
        if value and not (name == "selling_model" and value == "one_time")
    ]


def _either(field: str, one: str, other: str) -> CpqError:
    return CpqError(Code.VALIDATION_ERROR, f"Give {one} or {other}, not both.", field=field)


def _money_spelled(field: str, amount: int, currency: str) -> list[CpqError]:
    """An amount off has no more decimals than the currency."""
    digits = MINOR_DIGITS.get(currency, 2)
    if amount % 10 ** (6 - digits) == 0:
        return []
    return [
        CpqError(
            Code.VALIDATION_ERROR,
            f"An amount in {currency} has at most {digits} decimals.",
            field=field,
            decimals=digits,
        )
    ]


def _date_problems(at: str, line: DraftLine, draft: Draft, part_periods: str) -> list[CpqError]:
    own = line.special or NOTHING_SPECIAL
    if not own.has_dates:
        return []
    start, end = own.start_date or draft.start_date, draft.last_day_of(line)
    if own.term_months is not None and own.end_date is not None:
        return [_either(f"{at}/end_date", "term_months", "end_date")]
    if own.start_date and draft.start_date and own.start_date < draft.start_date:
        return [
            CpqError(
                Code.VALIDATION_ERROR,
                f"The line starts before the quote, on {own.start_date}.",
                field=f"{at}/start_date",
                minimum=draft.start_date.isoformat(),
            )
        ]
    if own.end_date and start is None:
        return [CpqError(Code.VALIDATION_ERROR, "end_date needs a start_date.", field=f"{at}/start_date")]
    if start and end and end < start:
        field = "end_date" if own.end_date else "start_date"
        return [CpqError(Code.VALIDATION_ERROR, "The line ends before it starts.", field=f"{at}/{field}")]
    if start and end and own.term_months is None and part_periods == "whole_months" and own.agreed is None:
        return _part_months(f"{at}/{'end_date' if own.end_date else 'start_date'}", start, end)
    return []


def _part_months(field: str, start: date, end: date) -> list[CpqError]:
    if terms.is_whole(start, end + timedelta(days=1)):
        return []
    whole = terms.whole_months(start, end + timedelta(days=1))
    days = [terms.last_day(start, months).isoformat() for months in (whole, whole + 1) if months]
    message = (
        f"The line would run from {start} to {end}, which is not a whole number of months, as terms.yaml requires."
    )
    return [CpqError(Code.VALIDATION_ERROR, message, field=field, allowed=days if field.endswith("end_date") else None)]
