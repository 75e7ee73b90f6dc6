"""Random sales that are agreements: calendars, time zones, currencies, tiers, ramps, use and discounts."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random

from cpq.base.errors import CpqError
from cpq.domain.agreements.agreement import Agreement
from cpq.domain.billing_periods import length
from cpq.domain.billing_terms import CancellationCredit
from cpq.domain.pricing.request import PriceRow, Segment, Tier
from cpq.domain.quotes.draft import DraftLine
from cpq.domain.quotes.lifecycle import local_day
from cpq.domain.quotes.special_terms import WHOLE_TERM, Commitment, SpecialTerms
from tests.support.agreements import BOOK, World

MODES = ("actual_days", "thirty_360", "months_and_days", "whole_months_up")
PERIODS = ("weekly", "2_weeks", "monthly", "quarterly", "half_yearly", "yearly", "18_months")
CURRENCIES = ("USD", "JPY", "KWD")
ZONES = ("UTC", "America/Los_Angeles", "Europe/Berlin", "Pacific/Kiritimati")
CREDITS = tuple(one.value for one in CancellationCredit)
PERCENT = 1_000_000
USE = "use"
"""The product that is charged by its use."""

MONTH_ENDS = [date(2024, 1, 31), date(2024, 2, 29), date(2025, 2, 28), date(2023, 8, 31), date(2027, 12, 31)]


def number(luck: Random, least: int, most: int) -> int:
    """Of any size: small ones are as likely as large ones, and the smallest is likely."""
    sizes = [one for one in (least, 9, 99, 999, 9_999) if least <= one < most]
    return luck.randint(least, luck.choice([*sizes, most]))


def a_day(luck: Random, first: date, last: date) -> date:
    """From the first to the last; each of them is likely."""
    days = (last - first).days
    return first + timedelta(days=luck.choice((0, days, *[luck.randint(0, days) for _ in range(6)])))


def a_start(luck: Random) -> date:
    """A first day: the end of a month, any day, or the day where the customer is when they accept."""
    if luck.choice((True, False)):
        return luck.choice(MONTH_ENDS)
    moment = datetime(2023, 1, 1, tzinfo=UTC) + timedelta(minutes=luck.randint(0, 6 * 365 * 24 * 60))
    return local_day(moment, luck.choice(ZONES))


def a_price(luck: Random, period: str) -> PriceRow:
    is_tiered = luck.choice((True, False))
    tiers = (Tier(10, number(luck, 1, 9_999) * 10_000), Tier(None, number(luck, 1, 9_999) * 5_000))
    return PriceRow(
        f"row {period}",
        number(luck, 1, 99_999) * 10_000,
        BOOK,
        billing_period=period,
        tier_mode=luck.choice(("volume", "graduated")) if is_tiered else "none",
        tiers=tiers if is_tiered else (),
        billed=luck.choice(("advance", "arrears")),
        cancellation_credit=luck.choice(CREDITS),
    )


def a_rate_card(luck: Random, period: str) -> PriceRow:
    """The price of what is charged by its use."""
    card = a_price(luck, period)
    least = luck.choice((None, number(luck, 1, 9_999)))
    return card._replace(
        is_usage=True,
        unit="unit",
        free_quantity=luck.choice((0, 0, 100)),
        minimum_spend=None if least is None else least * 10_000_000,
    )


def a_commitment(luck: Random, period: str) -> Commitment:
    """To a quantity, or to an amount for some period."""
    committed = number(luck, 1, 999)
    if luck.choice((True, False)):
        return Commitment(quantity=committed)
    return Commitment(amount=committed * 1_000_000_000, per=luck.choice(("", period, "yearly", WHOLE_TERM)))


def a_ramp(luck: Random, months: int) -> tuple[Segment, ...]:
    """Segments that tile the term: free ones, dearer ones, more and less of it, at prices of their own."""
    cuts = sorted({luck.randint(1, months - 1) for _ in range(luck.randint(1, 3))})
    found = []
    for begin, end in zip([0, *cuts], [*cuts, months], strict=True):
        kind, quantity = luck.choice(("plain", "free", "uplift", "price")), luck.choice((None, luck.randint(1, 30)))
        found.append(
            Segment(
                end - begin,
                quantity,
                uplift=5 * PERCENT if kind == "uplift" else 0,
                override=number(luck, 1, 9_999) * 10_000 if kind == "price" else None,
                discount=100 * PERCENT if kind == "free" else 0,
            )
        )
    return tuple(found)


def a_world(luck: Random, *, ramped: bool = True) -> tuple[World, Agreement]:
    """A sale of one to four lines, and one that is charged by use; some are bought once. It is an agreement."""
    periods = [luck.choice(PERIODS) for _ in range(3)]
    if luck.choice((True, False)):
        periods[2] = "one_time"
    rows: dict[str, tuple[PriceRow, ...]] = {
        f"p{place}": (a_price(luck, period),) for place, period in enumerate(periods)
    }
    used = luck.choice(("weekly", "monthly", "quarterly"))
    rows[USE] = (a_rate_card(luck, used),)
    world = World(rows, luck.choice(CURRENCIES), luck.choice(MODES), luck.choice((0, 0, 1, 28)))
    start, months = a_start(luck), luck.choice((1, 6, 12, 13, 24, 36))
    lines = [
        a_line_of_sale(luck, world, periods, place, months if ramped else 1)
        for place in range(1, luck.randint(1, 4) + 1)
    ]
    if luck.randint(0, 3) == 0:
        commitment = luck.choice((None, a_commitment(luck, used)))
        off = luck.choice((0, 0, 10)) * PERCENT
        lines.append(DraftLine(len(lines) + 1, USE, 1, off, special=SpecialTerms(commitment=commitment)))
        periods.append(used)
    whole = luck.choice((True, False)) and not any((length(period) or (0, 0))[1] for period in periods)
    discount = luck.choice((0, 0, 7 * PERCENT, 12_345_678))
    mode = "whole_months" if whole else None
    try:
        return world, world.sell(lines, start, months, requested_discount=discount, part_periods=mode)
    except CpqError:  # Less than the smallest coin, and a coin off it.
        return a_world(luck, ramped=ramped)


def a_line_of_sale(luck: Random, world: World, periods: list[str], place: int, months: int) -> DraftLine:
    """Its ramp has these months; one month has none."""
    product = luck.randint(0, 2 if place > 1 else 1)
    by_months = (length(periods[product]) or (0,))[0] > 0
    ramp = a_ramp(luck, months) if months > 1 and by_months and luck.randint(0, 4) == 0 else ()
    amount_off = luck.choice((0, 0, 0, world.minor_unit.size)) if not ramp else 0
    return DraftLine(
        place,
        f"p{product}",
        luck.randint(1, 40),
        0 if amount_off else luck.choice((0, 0, 10, 33, 100)) * PERCENT,
        ramp=ramp,
        special=SpecialTerms(discount_amount=amount_off) if amount_off else None,
    )


def day_within(luck: Random, agreement: Agreement) -> date:
    end = agreement.end
    assert end is not None
    return a_day(luck, agreement.starts_on, end - timedelta(days=1))
