"""Business figures: pipeline, turnaround of approvals, discounts against the caps, and the answers of customers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.money import Amount, from_micro, to_micro
from cpq.domain.approvals.approval_request import RequestStatus
from cpq.domain.policy.policy_set import Ladder
from cpq.domain.quotes.lifecycle import EXPIRING, QuoteStatus, VersionStatus
from cpq.storage.schema import tables
from cpq.storage.tenants import of_tenant

PERIODS = (30, 90, 365)
DECISIONS_MAX = 20_000
"""Only the newest decisions count."""

_MICROS = 1_000_000


class StatusFigure(TypedDict):
    status: str
    count: int
    value: Amount
    """In the policies' currency."""


class TurnaroundFigure(TypedDict):
    role: str
    count: int
    median_minutes: int


class DiscountFigure(TypedDict):
    """The number of first sales with a discount above `above`, up to the next step; `role` is the approver there."""

    above: Amount | None
    up_to: Amount | None
    role: str | None
    count: int


class OutcomeFigure(TypedDict):
    since: date
    accepted: int
    declined: int
    expired: int


class Figures(TypedDict):
    days: int
    currency: str
    pipeline: list[StatusFigure]
    without_rate: list[str]
    """Currencies whose quotes are counted but have no value."""
    turnaround: list[TurnaroundFigure]
    slow_minutes: int | None
    """Nine of ten decisions were made within this time."""
    discounts: list[DiscountFigure]
    changes: int
    """Quotes that change an agreement: in the pipeline with the amount due, negative where it is given back."""
    outcomes: list[OutcomeFigure]


def figures(tx: Tx, *, days: int) -> Figures:
    """The figures of the last `days` days. Amounts are added exactly, then converted to the policies' currency."""
    since = tx.now - timedelta(days=days)
    pipeline, without_rate = _pipeline(tx, since)
    minutes = _minutes(tx, since)
    all_minutes = list(chain.from_iterable(minutes.values()))
    return {
        "days": days,
        "currency": tx.policies.terms.currency,
        "pipeline": pipeline,
        "without_rate": without_rate,
        "turnaround": _turnaround(tx, minutes),
        "slow_minutes": _at(all_minutes, 90) if all_minutes else None,
        "discounts": _discounts(tx, since),
        "changes": _changes(tx, since),
        "outcomes": _outcomes(tx, since, parts=12 if days > 100 else 6),
    }


def _status(tx: Tx) -> sa.ColumnElement[str]:
    """The current status: a quote past its last valid day has expired, and one that nobody approved in time is a draft,
    whatever is stored."""
    quote = tables.quote.c
    is_over = quote.status.in_(EXPIRING) & (quote.expires_at <= tx.now)
    has_lapsed = (quote.status == QuoteStatus.PENDING_APPROVAL) & (quote.lapses_at <= tx.now)
    return sa.case((is_over, QuoteStatus.EXPIRED), (has_lapsed, QuoteStatus.DRAFT), else_=quote.status)


def _made(tx: Tx, since: datetime) -> sa.ColumnElement[bool]:
    return tx.own(tables.quote) & (tables.quote.c.created_at >= since)


def _with_version() -> sa.Join:
    """Quotes, each with its current version."""
    of_version = (
        of_tenant(tables.quote_version, tables.quote.c.tenant_id)
        & (tables.quote_version.c.quote_id == tables.quote.c.id)
        & (tables.quote_version.c.version == tables.quote.c.version)
    )
    return tables.quote.join(tables.quote_version, of_version)


def _pipeline(tx: Tx, since: datetime) -> tuple[list[StatusFigure], list[str]]:
    status = _status(tx).label("status")
    # Units and millionths are added separately: one sum of millionths could overflow a database's integer.
    whole, rest = sa.func.sum(tables.quote.c.total // _MICROS), sa.func.sum(tables.quote.c.total % _MICROS)
    query = sa.select(status, tables.quote.c.currency, sa.func.count(), whole, rest).where(_made(tx, since))
    counts: dict[str, int] = defaultdict(int)
    values: dict[str, Decimal] = defaultdict(Decimal)
    terms = tx.policies.terms
    rates = {**terms.rates, terms.currency: Decimal(1)}
    unknown = set()
    for name, currency, count, units, micros in tx.connection.execute(query.group_by(status, tables.quote.c.currency)):
        counts[name] += count
        if currency in rates:
            values[name] += (int(units) + from_micro(int(micros))) * rates[currency]
        else:
            unknown.add(currency)
    found: list[StatusFigure] = [
        {"status": name, "count": counts[name], "value": values[name]} for name in QuoteStatus if counts[name]
    ]
    return found, sorted(unknown)


def _minutes(tx: Tx, since: datetime) -> dict[str, list[int]]:
    """The minutes that each decision took, by role."""
    query = sa.select(tables.approval.c.role, tables.approval.c.requested_at, tables.approval.c.decided_at).where(
        tx.own(tables.approval),
        tables.approval.c.status.in_((RequestStatus.APPROVED, RequestStatus.REJECTED)),
        tables.approval.c.decided_at >= since,
    )
    minutes: dict[str, list[int]] = defaultdict(list)
    newest = query.order_by(tables.approval.c.decided_at.desc()).limit(DECISIONS_MAX)
    for role, requested_at, decided_at in tx.connection.execute(newest):
        minutes[role].append(int((decided_at - requested_at).total_seconds()) // 60)
    return minutes


def _turnaround(tx: Tx, minutes: Mapping[str, Sequence[int]]) -> list[TurnaroundFigure]:
    return [
        {
            "role": role,
            "count": len(minutes[role]),
            "median_minutes": _at(minutes[role], 50),
        }
        for role in (*tx.policies.roles.known, *sorted(minutes.keys() - set(tx.policies.roles.known)))
        if role in minutes
    ]


def _at(values: Sequence[int], percent: int) -> int:
    """The percentile: the smallest value that at least `percent` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _discounts(tx: Tx, since: datetime) -> list[DiscountFigure]:
    """First sales by their total discount, between the steps of every ladder over discounts.

    A change of an agreement has no price before discounts to compare with: its subtotal is less what it gives back.
    """
    steps = {
        step.bound: step.outcome.role
        for ladder in tx.policies.ladders
        if _is_of_discounts(ladder)
        for step in ladder.steps
    }
    bounds = sorted(steps)
    part = sa.cast(tables.quote_version.c.discount_total, sa.Numeric) * (100 * _MICROS)
    subtotal = sa.cast(tables.quote_version.c.subtotal, sa.Numeric)
    passed: sa.ColumnElement[int] = sa.literal(0)
    for bound in bounds:
        passed = passed + sa.case((part > subtotal * to_micro(bound), 1), else_=0)
    number = passed.label("number")
    query = sa.select(number, sa.func.count()).select_from(_with_version())
    query = query.where(_made(tx, since), tables.quote_version.c.agreement.is_(None)).group_by(number)
    counts: dict[Any, int] = dict(tx.connection.execute(query).all())
    edges: list[Decimal | None] = [None, *bounds, None]
    return [
        {
            "above": edges[place],
            "up_to": edges[place + 1],
            "role": steps[bounds[place - 1]] if place else None,
            "count": counts.get(place, 0),
        }
        for place in range(len(bounds) + 1)
    ]


def _changes(tx: Tx, since: datetime) -> int:
    query = sa.select(sa.func.count()).select_from(_with_version())
    return tx.connection.scalar(query.where(_made(tx, since), tables.quote_version.c.agreement.is_not(None))) or 0


def _is_of_discounts(ladder: Ladder) -> bool:
    return ladder.over.text.removeprefix("line.") == "discount" and not ladder.is_falling and ladder.where is None


def _outcomes(tx: Tx, since: datetime, *, parts: int) -> list[OutcomeFigure]:
    """The customers' answers to the quotes that were created in each part of the period.

    A quote that expired without having been sent is no answer; its version keeps its last status.
    """
    length = (tx.now - since) / parts
    starts = [since + length * place for place in range(parts)]
    kind = tables.quote.c.created_at.type
    part = sa.case(
        *((tables.quote.c.created_at >= sa.literal(starts[place], kind), place) for place in reversed(range(1, parts))),
        else_=0,
    ).label("part")
    status = _status(tx).label("status")
    was_sent = tables.quote_version.c.status == VersionStatus.SENT
    wanted = status.in_((QuoteStatus.ACCEPTED, QuoteStatus.DECLINED)) | ((status == QuoteStatus.EXPIRED) & was_sent)
    query = sa.select(part, status, sa.func.count()).select_from(_with_version())
    query = query.where(_made(tx, since), wanted).group_by(part, status)
    counts = {(place, name): count for place, name, count in tx.connection.execute(query)}
    return [
        {
            "since": starts[place].date(),
            "accepted": counts.get((place, QuoteStatus.ACCEPTED), 0),
            "declined": counts.get((place, QuoteStatus.DECLINED), 0),
            "expired": counts.get((place, QuoteStatus.EXPIRED), 0),
        }
        for place in range(parts)
    ]
