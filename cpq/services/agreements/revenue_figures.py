"""Recurring revenue over time, and how much of it stays, from the orders of all agreements."""

from __future__ import annotations

from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.described import Described
from cpq.base.money import Amount, amount
from cpq.domain.agreements.revenue import Retained, retained, revenue_on
from cpq.domain.pricing.terms import add_months
from cpq.services import orders
from cpq.storage.schema import tables

MONTHS = 12

TENTH = Decimal("0.1")


class RevenueDay(TypedDict):
    day: date
    arr: Annotated[dict[str, Amount], Described("Annual recurring revenue at the prices of the day, net, by currency.")]


class Retention(TypedDict):
    currency: str
    before: Annotated[Amount, Described("Annual recurring revenue on `since`.")]
    after: Annotated[Amount, Described("That of the same accounts on `until`.")]
    percent: Annotated[Amount, Described("`after` in percent of `before`, to a tenth.")]


class Revenue(TypedDict):
    """Recurring revenue on the first day of each of the last twelve months and today."""

    since: date
    until: date
    days: list[RevenueDay]
    retention: list[Retention]
    agreements: int
    is_whole: Annotated[
        bool, Described("False where there are more agreements than were asked for; then nothing is computed.")
    ]


def revenue(tx: Tx, *, agreements_max: int | None = None) -> Revenue:
    """Fold every agreement. Of more than `agreements_max` nothing is computed, because a part would mislead."""
    until = tx.now.date()
    first = until.replace(day=1)
    since = add_months(until, -MONTHS)
    days = [add_months(first, count - MONTHS + 1) for count in range(MONTHS)]
    days += [until] if until != first else []
    table = tables.agreement
    ids = list(tx.connection.scalars(sa.select(table.c.id).where(tx.own(table)).order_by(table.c.id)))
    is_whole = agreements_max is None or len(ids) <= agreements_max
    found = [orders.load_agreement(tx, id_) for id_ in ids] if is_whole else []
    return {
        "since": since,
        "until": until,
        "days": [
            {"day": day, "arr": {name: amount(value) for name, value in revenue_on(found, day).items()}} for day in days
        ]
        if is_whole
        else [],
        "retention": [_retention(name, one) for name, one in retained(found, since, until).items()],
        "agreements": len(ids),
        "is_whole": is_whole,
    }


def _retention(currency: str, one: Retained) -> Retention:
    percent = (Decimal(one.after) * 100 / one.before).quantize(TENTH, ROUND_HALF_UP)
    return {"currency": currency, "before": amount(one.before), "after": amount(one.after), "percent": percent}
