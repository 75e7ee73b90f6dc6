"""What waits for a person: of their roles, escalated to them, where they stand in, and what was lent to them.

All that waits is read once and judged here, by the rules that hold when a request is decided: as conditions of a query
they took a multiple of the time as soon as people had lent their roles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.base.money import Amount, amount
from cpq.base.text import digest
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT
from cpq.services.approvals import decisions, repository, views
from cpq.services.approvals.standing import VOTES_OF_REQUESTS, Bench, Request, is_pending
from cpq.services.approvals.views import PendingApproval
from cpq.services.catalog.accounts import has_words
from cpq.services.paging import Pagination, pagination
from cpq.services.quotes import repository as quote_rows
from cpq.storage.schema import account, approval, delegation, quote, quote_line, quote_version
from cpq.storage.statements import AnyRow
from cpq.storage.tenants import of_tenant

Scope = Literal["mine", "lent", "all"]
Sort = Literal["oldest", "biggest"]

_SEARCHED = (account.c.name, quote.c.id, approval.c.requested_by)


class QueueItem(PendingApproval):
    """A request that waits, with what helps to decide where to look first."""

    account_id: str
    discount_pct: Amount
    margin_pct: Amount | None
    is_escalated: bool
    acts_as: str | None
    """As what the caller may decide it; None when it is somebody else's."""


class QueueCounts(TypedDict):
    own: int
    """Of the caller's roles, escalated to them, or where they stand in."""
    lent: int
    all: int


class Queue(TypedDict):
    items: list[QueueItem]
    pagination: Pagination
    counts: QueueCounts
    stamp: str


class Opening(TypedDict):
    """A request of the current version that is not decided, and whether the caller could decide it now."""

    approval_id: str
    approver_role: str
    acts_as: str | None
    rejects_as: str | None
    """Also where they may do no more than that: whom a maker has lent a role cannot approve."""
    why_not: str | None
    waits_for: str | None
    requested_by: str
    justification: str
    requested_at: datetime
    expires_at: datetime
    fingerprint: str


def queue_page(
    tx: Tx,
    *,
    scope: Scope = "mine",
    role: str | None = None,
    query: str | None = None,
    sort: Sort = "oldest",
    limit: int = 50,
    page: int = 1,
) -> Queue:
    """A page of what waits, and how much waits in all, whatever is filtered."""
    bench = Bench(tx)
    counts: QueueCounts = {"own": 0, "lent": 0, "all": 0}
    chosen: list[tuple[str, str | None]] = []
    for is_found, *facts in tx.connection.execute(_requests(tx, query, sort)):
        request = Request(*facts)
        standing = bench.standing(request)
        counts["all"] += 1
        if standing:
            counts["lent" if standing.is_lent else "own"] += 1
        is_in_scope = scope == "all" or (standing is not None and (scope == "mine" or standing.is_lent))
        if is_found and is_in_scope and role in (None, request.role):
            chosen.append((request.id, standing and standing.acts_as))
    shown = dict(chosen[(page - 1) * limit : page * limit])
    return {
        "items": _items(tx, shown),
        "pagination": pagination(len(chosen), page, limit),
        "counts": counts,
        "stamp": queue_stamp(tx),
    }


def queue_stamp(tx: Tx) -> str:
    """Changes when something came, went or grew a minute older, when a word was said that is not the last one, and
    when a loan began or ended; cheap enough to be asked for every few seconds."""
    loans = tx.own(delegation) & (delegation.c.starts_at <= tx.now)
    seen: list[sa.Select[*tuple[Any, ...]]] = [
        sa.select(sa.func.count(), sa.func.max(approval.c.requested_at)).where(is_pending(tx)),
        sa.select(sa.func.count(), sa.func.max(delegation.c.starts_at)).where(loans, delegation.c.ends_at > tx.now),
    ]
    if tx.policies.roles.quorum:
        votes = sa.select(sa.func.count()).select_from(VOTES_OF_REQUESTS)
        seen.append(votes.where(is_pending(tx), approval.c.role.in_(tx.policies.roles.quorum)))
    parts = [str(part) for one in seen for part in tx.connection.execute(one).one()]
    return digest([*parts, f"{tx.now:%Y-%m-%d %H:%M}", *sorted(tx.roles)])[:16]


def openings(tx: Tx, quote_id: str) -> list[Opening]:
    """What of the current version is not decided yet, and what of it the caller could decide now."""
    found = quote_rows.load(tx, quote_id)
    rows = repository.of_quote(tx, quote_id, found.root.version)
    round_ = repository.round_of(tx, found, rows)
    by_id = {row.id: row for row in rows}
    voted = repository.votes(tx, [step.id for step in round_.pending])
    result: list[Opening] = []
    for step in round_.pending:
        row, why_not, acts_as, rejects_as = by_id[step.id], None, None, None
        try:
            rejects_as = decisions.capacity(tx, row, found, voted[step.id], "reject").acted_as
            acts_as = decisions.capacity(tx, row, found, voted[step.id], "approve").acted_as
        except CpqError as error:
            why_not = error.message
        result.append(
            {
                "approval_id": row.id,
                "approver_role": row.role,
                "acts_as": acts_as,
                "rejects_as": rejects_as,
                "why_not": why_not,
                "waits_for": round_.waits_for(row.role),
                "requested_by": row.requested_by,
                "justification": row.justification,
                "requested_at": row.requested_at,
                "expires_at": row.expires_at,
                "fingerprint": row.fingerprint,
            }
        )
    return result


def _requests(tx: Tx, words: str | None, sort: Sort) -> sa.Select[*tuple[Any, ...]]:
    """All that waits, in order: whether it has the words, and what `Request` holds."""
    version = quote_version.c
    is_found = sa.case((sa.and_(sa.true(), *has_words(words, *_SEARCHED)), 1), else_=0)
    escalated_to = sa.case((approval.c.escalates_at <= tx.now, approval.c.escalates_to))
    facts = (approval.c.id, approval.c.quote_id, quote.c.account_id, approval.c.role, escalated_to)
    edited_by = sa.type_coerce(version.edited_by, sa.Text)
    makers = (approval.c.requested_at, approval.c.requested_by, quote.c.created_by, version.created_by, edited_by)
    order = {
        "oldest": (approval.c.requested_at, _value(tx).desc(), approval.c.id),
        "biggest": (_value(tx).desc(), approval.c.requested_at, approval.c.id),
    }[sort]
    return _waiting(tx, sa.select(is_found, *facts, *makers)).order_by(*order)


def _waiting(tx: Tx, query: sa.Select[*tuple[Any, ...]]) -> sa.Select[*tuple[Any, ...]]:
    """Only what can still be answered: in time, about the current version of a quote that waits for approval."""
    of_version = (
        of_tenant(quote_version, approval.c.tenant_id)
        & (quote_version.c.quote_id == approval.c.quote_id)
        & (quote_version.c.version == approval.c.version)
    )
    joined = (
        approval.join(quote, of_tenant(quote, approval.c.tenant_id) & (quote.c.id == approval.c.quote_id))
        .join(quote_version, of_version)
        .join(account, of_tenant(account, quote.c.tenant_id) & (account.c.id == quote.c.account_id))
    )
    return query.select_from(joined).where(
        is_pending(tx),
        approval.c.expires_at > tx.now,
        quote.c.version == approval.c.version,
        quote.c.status == "pending_approval",
    )


def _value(tx: Tx) -> sa.ColumnElement[Any]:
    """What a request is worth in the policies' currency, for ordering: a currency without a rate comes last.

    Nine decimals tell the cheapest currencies apart; more than a quintillion of them no number of a database holds.
    """
    terms = tx.policies.terms
    rates = {**terms.rates, terms.currency: Decimal(1)}
    weights = {name: min(max(1, int(rate * 10**9)), 10**18) for name, rate in rates.items()}
    rate = sa.case(weights, value=quote.c.currency, else_=0)
    return sa.cast(approval.c.total, sa.Numeric) * rate


def _items(tx: Tx, shown: Mapping[str, str | None]) -> list[QueueItem]:
    """The requests by their ids, in that order; as what the caller may decide each stands beside it."""
    version = quote_version.c
    columns = (approval, quote.c.currency, quote.c.account_id, account.c.name.label("account_name"))
    chosen = _waiting(tx, sa.select(*columns, version.subtotal, version.discount_total, version.option_set))
    by_id = {row.id: row for row in tx.connection.execute(chosen.where(approval.c.id.in_(shown)))}
    rows = [by_id[id_] for id_ in shown]
    rounds: dict[tuple[str, int], list[AnyRow]] = defaultdict(list)
    for row in repository.of_quotes(tx, {row.quote_id for row in rows}):
        rounds[row.quote_id, row.version].append(row)
    margins = _margins(tx, rows)
    return [
        {
            **views.pending_item(tx, row, rounds[row.quote_id, row.version]),
            "account_id": row.account_id,
            "discount_pct": amount(_share(row.discount_total, row.subtotal) or 0),
            "margin_pct": margins.get(row.quote_id),
            "is_escalated": row.escalates_at is not None and row.escalates_at <= tx.now,
            "acts_as": shown[row.id],
        }
        for row in rows
    ]


def _margins(tx: Tx, rows: Sequence[AnyRow]) -> Mapping[str, Any]:
    """Of the lines that count, where all their costs are known; nothing for those who may not see margins."""
    if not tx.sees_margin or not rows:
        return {}
    line = quote_line.c
    selected = {row.quote_id: row.option_set for row in rows}
    costs = sa.func.count() - sa.func.count(line.cost)
    sums = sa.select(line.quote_id, line.option_set, sa.func.sum(line.net), sa.func.sum(line.cost), costs)
    of_version = of_tenant(quote, line.tenant_id) & (quote.c.id == line.quote_id) & (quote.c.version == line.version)
    found: dict[str, list[Any]] = defaultdict(list)
    query = sums.join(quote, of_version).where(tx.own_among(line.quote_id, list(selected)))
    for quote_id, option_set, net, cost, unknown in tx.connection.execute(
        query.group_by(line.quote_id, line.option_set)
    ):
        if option_set is None or option_set == selected[quote_id]:
            found[quote_id].append((int(net), int(cost or 0), unknown))
    margins = {}
    for quote_id, parts in found.items():
        net = sum(part[0] for part in parts)
        share = _share(net - sum(part[1] for part in parts), net)
        if share is not None and not any(part[2] for part in parts):
            margins[quote_id] = amount(share)
    return margins


def _share(part: int, whole: int) -> int | None:
    """In percent, as millionths; None of nothing."""
    return (2 * part * ONE_HUNDRED_PERCENT + whole) // (2 * whole) if whole else None
