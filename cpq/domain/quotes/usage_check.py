"""PURE. Check of lines that are charged by their use: commitments that say nothing sensible, and use counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from cpq.base.errors import Code, CpqError
from cpq.base.money import MINOR_DIGITS
from cpq.domain.billing_periods import in_words, noun
from cpq.domain.pricing.price_selection import PriceSelection
from cpq.domain.pricing.request import PriceRow, Request
from cpq.domain.pricing.selling_models import is_usage
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.special_terms import NOTHING_SPECIAL, WHOLE_TERM, Commitment


def usage_problems(draft: Draft, request: Request, selection: PriceSelection) -> list[CpqError]:
    """Every problem of commitments and of lines with a rate card. `request` has the selling models of the lines."""
    sold = [row for product in request.products.values() for row in product.rows if row.is_usage]
    if not sold and not [line for line in draft.lines if line.special and line.special.usage]:
        return []
    problems: list[CpqError] = []
    seen: list[tuple[DraftLine, str]] = []
    for index, (line, asked) in enumerate(zip(draft.lines, request.lines, strict=True)):
        at = f"/line_items/{index}"
        known = line.product_id in request.products and not asked.priced_as  # What an agreement keeps was checked.
        row = selection.of(line.product_id, asked.selling_model).charged if known else None
        if row is None:
            continue
        if not row.is_usage:
            problems += _not_usage(at, line, selection)
            continue
        problems += _quantity_problems(at, line, row)
        problems += _commitment_problems(at, line, row, draft)
        problems += [_twice(at, other) for other, unit in seen if unit == row.unit and _overlaps(draft, other, line)]
        seen.append((line, row.unit))
    return problems


def _not_usage(at: str, line: DraftLine, selection: PriceSelection) -> Iterator[CpqError]:
    own = line.special or NOTHING_SPECIAL
    models = [] if line.custom else [model for model in selection.sold_as(line.product_id).models if is_usage(model)]
    hint = "Leave it out, and give the quantity of the line."
    if models:
        hint = f"Leave it out, or send selling_model {models[0]}, which is charged by use."
    for name, value in (("commitment", own.commitment), ("expected_quantity", own.expected_quantity)):
        if value is not None:
            message = f"{line.product_id} is not charged by its use on this line, so that {name} says nothing."
            yield _problem(f"{at}/{name}", message, hint, allowed=models or None)


def _quantity_problems(at: str, line: DraftLine, row: PriceRow) -> Iterator[CpqError]:
    if line.quantity != 1:
        yield _problem(
            f"{at}/quantity",
            f"{line.product_id} is charged by its use, so the quantity of the line is 1, not {line.quantity}.",
            f"Send quantity 1, and the {row.unit or 'units'} of a {noun(row.billing_period)} as commitment "
            f'{{"quantity": …, "per": "{in_words(row.billing_period)}"}} or as expected_quantity.',
            allowed=[1],
        )


def _commitment_problems(at: str, line: DraftLine, row: PriceRow, draft: Draft) -> Iterator[CpqError]:
    commitment = (line.special or NOTHING_SPECIAL).commitment
    if commitment is None:
        return
    field, unit = f"{at}/commitment", in_words(row.billing_period)
    if (commitment.quantity is None) == (commitment.amount is None):
        message = "A commitment is a quantity or an amount" + (", not both." if commitment.amount is not None else ".")
        yield _problem(field, message, f'Send {{"quantity": …, "per": "{unit}"}} or {{"amount": …, "per": "{unit}"}}.')
        return
    is_other = commitment.per not in ("", row.billing_period)
    if commitment.quantity is not None and is_other:
        message = f"The rate card counts the use of each {unit}, so a quantity is committed to per {unit}."
        yield _problem(f"{field}/per", message, f"Send the quantity per {unit}, or an amount.", allowed=[unit])
    elif is_other and not (draft.months_of(line) or draft.last_day_of(line)):
        period = "the term" if commitment.per == WHOLE_TERM else f"a {noun(commitment.per)}"
        message = f"A commitment for {period} needs a term; without one the quote charges one {unit}."
        yield _problem(f"{field}/per", message, f"Give term_months, or commit per {unit}.", allowed=[unit])
    yield from _decimals(f"{field}/amount", commitment, draft.currency)


def _decimals(field: str, commitment: Commitment, currency: str) -> Iterator[CpqError]:
    digits = MINOR_DIGITS.get(currency, 2)
    if commitment.amount is not None and commitment.amount % 10 ** (6 - digits):
        yield CpqError(
            Code.VALIDATION_ERROR,
            f"An amount in {currency} has at most {digits} decimals.",
            field=field,
            decimals=digits,
        )


def _overlaps(draft: Draft, one: DraftLine, other: DraftLine) -> bool:
    """Whether the use of a product would be counted by two lines on the same day, each with its included units."""
    if one.product_id != other.product_id or (
        one.option_set and other.option_set and one.option_set != other.option_set
    ):
        return False
    (start, end), (begin, finish) = _days(draft, one), _days(draft, other)
    return start <= finish and begin <= end


def _days(draft: Draft, line: DraftLine) -> tuple[date, date]:
    own = line.special or NOTHING_SPECIAL
    return own.start_date or draft.start_date or date.min, draft.last_day_of(line) or date.max


def _twice(at: str, other: DraftLine) -> CpqError:
    return _problem(
        f"{at}/product_id",
        f"The use of {other.product_id} is counted on line {other.number} at the same time.",
        "Commit to all of it on one line, or give the lines dates that do not overlap.",
    )


def _problem(field: str, message: str, hint: str, allowed: list[str] | list[int] | None = None) -> CpqError:
    return CpqError(Code.VALIDATION_ERROR, message, field=field, hint=hint, allowed=allowed)
