"""Renewals: agreements that end soon, lines without an end whose notice is due, and the event about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app import Answer, App, Command, tenant_registry
from cpq.app.access import ENGINE, Permission, Principal
from cpq.app.transaction import Tx
from cpq.base.described import Described
from cpq.base.money import Amount, amount
from cpq.domain.agreements.notice import next_notice
from cpq.domain.pricing.terms import add_months
from cpq.domain.quotes.lifecycle import local_day
from cpq.services import events, orders
from cpq.services.events import EventName
from cpq.storage.schema import tables

DUE_MAX = 1_000
"""Agreements in one answer, and in one transaction of the sweep."""


MONTHS = 12
"""Months of the figures, this one first."""


class Running(NamedTuple):
    """What the list of an agreement that nothing has ended yet reads of it."""

    id: str
    account_id: str
    currency: str
    ends_on: date | None
    yearly: int
    account_name: str
    time_zone: str

    @property
    def last_day(self) -> date:
        assert self.ends_on is not None, "it was found by its end"
        return self.ends_on


class DueRenewal(TypedDict):
    agreement_id: str
    account_id: str
    account_name: str
    currency: str
    end_date: date
    days_left: int
    arr: Annotated[Amount, Described("Annual recurring revenue on its last day, in `currency`.")]


class DueNotice(TypedDict):
    agreement_id: str
    account_id: str
    account_name: str
    line_id: str
    product_name: str
    notice_date: Annotated[date, Described("The last day to end the line before the period.")]
    period_start: Annotated[date, Described("The first day of the period that would follow.")]
    days_left: int


class DuePage(TypedDict):
    """What is due by a day. `is_whole` is false where there is more than fits."""

    as_of: date
    renewal_days: int
    notice_days: int
    renewals: list[DueRenewal]
    notices: list[DueNotice]
    is_whole: bool
    message: str


class RenewalMonth(TypedDict):
    """Agreements that end in a month."""

    month: date
    count: int
    arr: Annotated[dict[str, Amount], Described("Annual recurring revenue that ends, by currency.")]


def by_month(tx: Tx, months: int = MONTHS) -> list[RenewalMonth]:
    """How many agreements end in this month and each of the next ones, and what they are worth in a year."""
    first = tx.now.date().replace(day=1)
    starts = [add_months(first, count) for count in range(months + 1)]
    found: list[RenewalMonth] = [{"month": one, "count": 0, "arr": {}} for one in starts[:-1]]
    table = tables.agreement
    query = sa.select(table.c.ends_on, table.c.currency, sa.func.count(), sa.func.sum(table.c.yearly))
    query = query.where(tx.own(table), *_between(first, starts[-1] - timedelta(days=1)))
    for ends_on, currency, count, yearly in tx.connection.execute(query.group_by(table.c.ends_on, table.c.currency)):
        one = found[(ends_on.year - first.year) * 12 + ends_on.month - first.month]
        one["count"] += count
        one["arr"][currency] = one["arr"].get(currency, 0) + amount(int(yearly))
    return found


def due(tx: Tx, *, account_id: str | None = None, days: int | None = None) -> DuePage:
    """Renewals and notices of the next days, the soonest first; `days` instead of what the policies say."""
    terms = tx.policies.terms
    ahead = terms.renewal_due_days if days is None else days
    rows = _ending(tx, tx.now.date() - timedelta(days=1), tx.now.date() + timedelta(days=ahead + 1), account_id)
    renewals = [_renewal(row, today) for row in rows if _is_within(row.last_day, today := _today(tx, row), ahead)]
    endless = _endless(tx, account_id)
    notices = [one for row in endless[:DUE_MAX] for one in _notices(tx, row, ahead)]
    renewals.sort(key=lambda one: (one["end_date"], one["agreement_id"]))
    notices.sort(key=lambda one: (one["notice_date"], one["line_id"]))
    note = orders.waiting_note(tx, account_id)
    return {
        "as_of": tx.now.date(),
        "renewal_days": ahead,
        "notice_days": terms.notice_days,
        "renewals": renewals[:DUE_MAX],
        "notices": notices[:DUE_MAX],
        "is_whole": max(len(renewals), len(notices), len(endless)) <= DUE_MAX,
        "message": " ".join(filter(None, (_in_words(len(renewals), len(notices), ahead), note))),
    }


def _in_words(renewals: int, notices: int, ahead: int) -> str:
    return f"{renewals:,} agreements end and {notices:,} notices are due in the next {ahead} days."


def sweep(app: App) -> int:
    """Publish `agreement.renewal_due` once for each agreement and end date; returns how many. Safe to repeat."""
    tenants = app.read_unaudited(app.new_call(ENGINE), _tenants_due)
    return sum(_sweep_tenant(app, replace(ENGINE, tenant_id=tenant_id)) for tenant_id in tenants)


def _tenants_due(tx: Tx) -> list[str]:
    table = tables.agreement
    soon = tx.now.date() + timedelta(days=tx.policies.terms.renewal_due_days + 1)
    is_due = _between(tx.now.date() - timedelta(days=1), soon)
    query = sa.select(table.c.tenant_id).where(*is_due, tenant_registry.is_served(table.c.tenant_id)).distinct()
    return sorted(tx.connection.scalars(query))


def _sweep_tenant(app: App, principal: Principal) -> int:
    """A read finds what to publish, so that a sweep that finds nothing leaves no audit entry."""
    found = app.read_unaudited(app.new_call(principal), lambda tx: [row.id for row in _unpublished(tx)])
    for place in range(0, len(found), DUE_MAX):
        part = found[place : place + DUE_MAX]
        command = Command("agreement_sweep", Permission.ADMINISTER)
        app.write(app.new_call(principal), command, partial(publish_due, agreement_ids=part))
    return len(found)


def publish_due(tx: Tx, agreement_ids: Sequence[str]) -> Answer:
    """Publish which of these agreements are due; one that another process published meanwhile is left out."""
    columns = tables.agreement.c
    locked = sa.select(columns.id).where(tx.own_among(columns.id, agreement_ids)).order_by(columns.id)
    tx.connection.execute(locked.with_for_update()).all()
    rows = _unpublished(tx, agreement_ids)
    for row in rows:
        body = {**_renewal(row, _today(tx, row)), "renewal_start": row.last_day + timedelta(days=1)}
        events.publish(tx, EventName.AGREEMENT_RENEWAL_DUE, row.id, body)
    return {"published": len(rows)}


def _unpublished(tx: Tx, among: Sequence[str] | None = None) -> list[Running]:
    ahead, today = tx.policies.terms.renewal_due_days, tx.now.date()
    rows = _ending(tx, today - timedelta(days=1), today + timedelta(days=ahead + 1), None, among)
    rows = [row for row in rows if _is_within(row.last_day, _today(tx, row), ahead)]
    event = tables.event
    known = set()
    for place in range(0, len(rows), DUE_MAX):
        part = [row.id for row in rows[place : place + DUE_MAX]]
        query = sa.select(event.c.subject, event.c.body).where(tx.own_among(event.c.subject, part))
        query = query.where(event.c.name == EventName.AGREEMENT_RENEWAL_DUE)
        known |= {(row.subject, str(row.body["end_date"])) for row in tx.connection.execute(query)}
    return [row for row in rows if (row.id, row.last_day.isoformat()) not in known]


def _ending(
    tx: Tx, since: date, until: date, account_id: str | None, among: Sequence[str] | None = None
) -> list[Running]:
    table = tables.agreement
    wanted = [tx.own(table), *_between(since, until)]
    wanted += [table.c.account_id == account_id] if account_id is not None else []
    wanted += [tx.own_among(table.c.id, among)] if among is not None else []
    return _rows(tx, wanted)


def _between(since: date, until: date) -> list[sa.ColumnElement[bool]]:
    """Running terms that end in these days, and that nothing goes on after."""
    columns = tables.agreement.c
    is_open = columns.cancelled_on.is_(None) & columns.renewed_into.is_(None)
    return [columns.ends_on >= since, columns.ends_on <= until, is_open]


def _endless(tx: Tx, account_id: str | None) -> list[Running]:
    """Agreements that may have lines without an end, one more than fit."""
    table = tables.agreement
    wanted = [tx.own(table), table.c.ends_on.is_(None), table.c.cancelled_on.is_(None), table.c.yearly > 0]
    wanted += [table.c.account_id == account_id] if account_id is not None else []
    return _rows(tx, wanted, DUE_MAX + 1)


def _rows(tx: Tx, wanted: Sequence[sa.ColumnElement[bool]], limit: int | None = None) -> list[Running]:
    table, account = tables.agreement, tables.account
    buyer = (account.c.tenant_id == table.c.tenant_id) & (account.c.id == table.c.account_id)
    columns = (table.c[name] for name in Running._fields[:5])
    query = sa.select(*columns, account.c.name, account.c.time_zone).join(account, buyer)
    query = query.where(tx.own(account), *wanted).order_by(table.c.ends_on, table.c.id)
    return [Running._make(row) for row in tx.connection.execute(query.limit(limit))]


def _today(tx: Tx, row: Running) -> date:
    return local_day(tx.now, row.time_zone)


def _is_within(day: date, today: date, ahead: int) -> bool:
    return today <= day <= today + timedelta(days=ahead)


def _renewal(row: Running, today: date) -> DueRenewal:
    return {
        "agreement_id": row.id,
        "account_id": row.account_id,
        "account_name": row.account_name,
        "currency": row.currency,
        "end_date": row.last_day,
        "days_left": (row.last_day - today).days,
        "arr": amount(row.yearly),
    }


def _notices(tx: Tx, row: Running, ahead: int) -> list[DueNotice]:
    today = _today(tx, row)
    found: list[DueNotice] = []
    for line, phase in orders.load_agreement(tx, row.id).on(today):
        if phase.calendar is None or not phase.sold.is_evergreen or phase.stop is not None:
            continue
        notice = next_notice(phase.calendar, today, tx.policies.terms.notice_days)
        if _is_within(notice.last_day, today, ahead):
            found.append(
                {
                    "agreement_id": row.id,
                    "account_id": row.account_id,
                    "account_name": row.account_name,
                    "line_id": line.id,
                    "product_name": phase.sold.product_name,
                    "notice_date": notice.last_day,
                    "period_start": notice.period_start,
                    "days_left": (notice.last_day - today).days,
                }
            )
    return found
