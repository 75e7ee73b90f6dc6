"""PURE. Stage override: a price that the seller gives instead of the regular one, for a line or a segment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from cpq.base.errors import bad_field
from cpq.base.rounding import Exact, added, divide
from cpq.domain.pricing.parts import LinePrice, OwnPrice, Part
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Segment
from cpq.domain.pricing.result import Stage
from cpq.domain.pricing.usage import given_rate

OVERRIDE = Stage.OVERRIDE


def override(price: LinePrice) -> None:
    """The amount that the seller gives for the line. Rules do not change it; they change the regular price.

    What it takes off the regular price is a discount. Above it, it is the regular price itself: a markup on one line
    cannot pay for a discount on another.
    """
    line = price.line
    if line.override is not None:
        price.given = _typed_in(price, line.override)
        price.note(OVERRIDE, price.given, "unit_price", line.override)
    elif price.own is not None:
        _add_segments(price, price.own)
        price.note(OVERRIDE, price.given or 0, "ramp", None)
    if price.given is not None and price.given > price.amount:
        price.amount = price.given


def _add_segments(price: LinePrice, segments: Sequence[OwnPrice]) -> None:
    """Each segment by itself, so that a markup on one cannot pay for a free month."""
    before = added([segment.amount for segment in segments])
    # Most lines have no rule that changed them; fractions would take most of the time.
    share: Exact = 1 if before and before == price.amount else Fraction(price.amount) / before if before else 0
    regular: list[Exact] = []
    given: list[Exact] = []
    """In hundred percents."""
    for segment in segments:
        usual = segment.amount if share == 1 else segment.amount * share
        if segment.typed_in is None:
            regular.append(usual)
            given.append(usual * (ONE_HUNDRED_PERCENT - segment.discount))
        else:
            regular.append(max(usual, segment.typed_in))
            given.append(segment.typed_in * ONE_HUNDRED_PERCENT)
    price.amount, whole = added(regular), added(given)
    price.given = divide(whole.numerator, whole.denominator * ONE_HUNDRED_PERCENT)


def has_own_price(segment: Segment) -> bool:
    """Whether a segment of a ramp has a price or a discount that the seller gave."""
    return segment.override is not None or bool(segment.discount)


def own_prices(parts: Iterable[Part]) -> tuple[OwnPrice, ...] | None:
    """The segments of a ramp with their own prices and discounts; None if none has any."""
    parts = list(parts)
    if not any(has_own_price(part.segment) for part in parts):
        return None
    return tuple(
        OwnPrice(
            part.amount,
            None if part.segment.override is None else part.term.times(part.segment.override * part.quantity),
            part.segment.discount,
        )
        for part in parts
    )


def _typed_in(price: LinePrice, unit_price: int) -> Exact:
    if price.plan.row.is_usage:
        return given_rate(price, unit_price)
    if price.line.ramp:
        message = "A line with a ramp takes a price in each segment, not one for the whole line."
        raise bad_field("/unit_price", message, hint="Give unit_price in the segments of the ramp.")
    if not price.has_one_term:
        raise bad_field(
            "/unit_price",
            f"The parts of {price.plan.product_id} are billed for different periods, so it has no single price.",
            hint="Give discount_pct or discount_amount instead.",
        )
    return price.term.times(unit_price * price.quantity)
