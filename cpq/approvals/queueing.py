"""What waits for a person: of their roles, escalated to them, where they stand in, and what was lent to them.

The same rules as when a request is decided (`deciding.capacity`), as conditions of one query over all that waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from cpq import access
from cpq.approvals import deciding, storing, viewing
from cpq.approvals.people import HUMAN
from cpq.catalog.accounts import has_words
from cpq.db import AnyRow, Tx, mine_among
from cpq.errors import CpqError
from cpq.money import to_micro
from cpq.pricing.request import ONE_HUNDRED_PERCENT
from cpq.quotes import storing as quote_rows
from cpq.reviews import Opening, Queue, QueueItem
from cpq.schema import account, approval, approval_vote, delegation, quote, quote_line, quote_version
from cpq.text import canonical_json, digest
from cpq.views import amount, pagination

Scope = Literal["mine", "lent", "all"]
Sort = Literal["oldest", "biggest"]

_SEARCHED = (account.c.name, quote.c.id, approval.c.requested_by)

Condition = sa.ColumnElement[bool]


class Loan(NamedTuple):
    """A role that was lent to the caller by somebody who still holds it."""

    role: str
    lender: str
    account_id: str | None
    quote_id: str | None


def queue(
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
    loans = _loans(tx)
    own, lent = _conditions(tx, loans)
    in_scope = {"mine": own | lent, "lent": lent, "all": sa.true()}[scope]
    wanted = sa.and_(in_scope, *([approval.c.role == role] if role else []), *has_words(query, *_SEARCHED))
    counted = sa.select(sa.func.count(), _count(own), _count(lent), _count(wanted))
    total, of_own, of_lent, found = tx.connection.execute(_waiting(tx, counted)).one()
    order = {
        "oldest": (approval.c.requested_at, _value(tx).desc(), approval.c.id),
        "biggest": (_value(tx).desc(), approval.c.requested_at, approval.c.id),
    }[sort]
    version = quote_version.c
    columns = (approval, quote.c.currency, quote.c.account_id, account.c.name.label("account_name"))
    chosen = sa.select(*columns, version.subtotal, version.discount_total, version.option_set, lent.label("is_lent"))
    chosen = _waiting(tx, chosen.add_columns(own.label("is_own"))).where(wanted).order_by(*order)
    rows = tx.connection.execute(chosen.limit(limit).offset((page - 1) * limit)).all()
    return {
        "items": _items(tx, rows, loans),
        "pagination": pagination(found or 0, page, limit),
        "counts": {"own": of_own or 0, "lent": of_lent or 0, "all": total},
        "stamp": queue_stamp(tx),
    }


def queue_stamp(tx: Tx) -> str:
    """Changes when something came, went or grew a minute older; cheap enough to be asked for every few seconds."""
    mine = (approval.c.tenant_id == tx.tenant_id) & (approval.c.status == "pending")
    newest = sa.func.max(approval.c.requested_at)
    count, last = tx.connection.execute(sa.select(sa.func.count(), newest).where(mine)).one()
    return digest([str(count), str(last), f"{tx.now:%Y-%m-%d %H:%M}", *sorted(tx.roles)])[:16]


def openings(tx: Tx, quote_id: str) -> list[Opening]:
    """What of the current version is not decided yet, and what of it the caller could decide now."""
    found = quote_rows.load(tx, quote_id)
    rows = storing.of_quote(tx, quote_id, found.root.version)
    round_ = storing.round_of(tx, found, rows)
    by_id = {row.id: row for row in rows}
    voted = storing.votes(tx, [step.id for step in round_.pending])
    result: list[Opening] = []
    for step in round_.pending:
        row, why_not, acts_as = by_id[step.id], None, None
        try:
            acts_as = deciding.capacity(tx, row, found, voted[step.id]).acted_as
        except CpqError as error:
            why_not = error.message
        result.append(
            {
                "approval_id": row.id,
                "approver_role": row.role,
                "acts_as": acts_as,
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


def _waiting(tx: Tx, query: sa.Select[*tuple[Any, ...]]) -> sa.Select[*tuple[Any, ...]]:
    """Only what can still be answered: in time, about the current version of a quote that waits for approval."""
    of_version = (
        (quote_version.c.tenant_id == approval.c.tenant_id)
        & (quote_version.c.quote_id == approval.c.quote_id)
        & (quote_version.c.version == approval.c.version)
    )
    joined = (
        approval.join(quote, (quote.c.tenant_id == approval.c.tenant_id) & (quote.c.id == approval.c.quote_id))
        .join(quote_version, of_version)
        .join(account, (account.c.tenant_id == quote.c.tenant_id) & (account.c.id == quote.c.account_id))
    )
    return query.select_from(joined).where(
        approval.c.tenant_id == tx.tenant_id,
        approval.c.status == "pending",
        approval.c.expires_at > tx.now,
        quote.c.version == approval.c.version,
        quote.c.status == "pending_approval",
    )


def _conditions(tx: Tx, loans: Sequence[Loan]) -> tuple[Condition, Condition]:
    """Whether the caller may decide a request by a role of their own, and whether only by one that was lent."""
    if not tx.caller.startswith(HUMAN):
        return sa.false(), sa.false()
    own_name = tx.caller.removeprefix(HUMAN)
    backed = [role for role, backup in tx.policies.roles.backup.items() if backup in tx.roles]
    holders = {role: access.holders(tx, role) for role in backed}
    barred = _barred(tx, {own_name, *(loan.lender for loan in loans), *chain.from_iterable(holders.values())})
    escalated = approval.c.escalates_to.in_(tx.roles) & (approval.c.escalates_at <= tx.now)
    # Somebody stands in for a role while nobody who holds it may decide.
    stand_ins = [sa.and_(approval.c.role == role, *(barred[name] for name in holders[role])) for role in backed]
    own = sa.or_(approval.c.role.in_(tx.roles), escalated, *stand_ins)
    lent = sa.or_(
        sa.false(), *(_scope(loan) & ~barred[loan.lender] & ~_has_spoken(HUMAN + loan.lender) for loan in loans)
    )
    # A time that is not set makes a condition unknown, and not unknown is unknown too.
    own, lent = (sa.func.coalesce(condition, sa.false()) for condition in (own, lent))
    is_free = ~barred[own_name] & ~_has_spoken(tx.caller)
    return own & is_free, lent & ~own & is_free


def _has_spoken(caller: str) -> Condition:
    """Whether a word of theirs is on record, by themselves or by whom they lent the role to: it counts once."""
    vote = approval_vote.c
    of_request = (vote.tenant_id == approval.c.tenant_id) & (vote.approval_id == approval.c.id)
    return sa.exists().where(of_request, (vote.caller == caller) | (vote.holder == caller)).correlate(approval)


def _scope(loan: Loan) -> Condition:
    scope = [quote.c.id == loan.quote_id] if loan.quote_id else []
    scope += [quote.c.account_id == loan.account_id] if loan.account_id else []
    return sa.and_(approval.c.role == loan.role, *scope)


def _barred(tx: Tx, names: Collection[str]) -> dict[str, Condition]:
    """For each person whether they have a hand in a request: as a maker, or as one who shared a role with a maker."""
    pairs = tx.connection.execute(
        sa.select(delegation.c.from_name, delegation.c.to_name, delegation.c.ends_at).where(
            delegation.c.tenant_id == tx.tenant_id,
            delegation.c.from_name.in_(names) | delegation.c.to_name.in_(names),
            delegation.c.starts_at <= tx.now,
            # What ended before the oldest request was made bars nobody from any.
            delegation.c.ends_at > _oldest(tx),
        )
    )
    last: dict[str, dict[str, datetime]] = {name: {} for name in names}
    for one, other, ends_at in pairs:
        for name, partner in ((one, other), (other, one)):
            if name in last:
                last[name][partner] = max(last[name].get(partner, ends_at), ends_at)
    return {name: sa.or_(_is_made_by(name), *_by_partners(ties)) for name, ties in last.items()}


def _by_partners(ties: Mapping[str, datetime]) -> list[Condition]:
    """One condition for all whose last loan ended at the same time: there can be many."""
    together: dict[datetime, list[str]] = defaultdict(list)
    for partner, end in ties.items():
        together[end].append(partner)
    return [_was_asked_before(end) & _is_made_by(*partners) for end, partners in together.items()]


def _oldest(tx: Tx) -> sa.ScalarSelect[datetime]:
    mine = (approval.c.tenant_id == tx.tenant_id) & (approval.c.status == "pending") & (approval.c.expires_at > tx.now)
    return sa.select(sa.func.min(approval.c.requested_at)).where(mine).scalar_subquery()


def _was_asked_before(moment: datetime) -> Condition:
    return approval.c.requested_at < sa.literal(moment, approval.c.requested_at.type)


def _is_made_by(*names: str) -> Condition:
    callers = [f"{HUMAN}{name}" for name in names]
    edited_by = sa.type_coerce(quote_version.c.edited_by, sa.Text)
    edited = (edited_by.contains(canonical_json(caller), autoescape=True) for caller in callers)
    # Most versions were edited by agents alone: one look instead of one for each name.
    return sa.or_(*(maker.in_(callers) for maker in _MAKERS), edited_by.contains(f'"{HUMAN}') & sa.or_(*edited))


_MAKERS = (approval.c.requested_by, quote.c.created_by, quote_version.c.created_by)


def _loans(tx: Tx) -> list[Loan]:
    rows = tx.connection.execute(
        sa.select(delegation).where(
            delegation.c.tenant_id == tx.tenant_id,
            delegation.c.to_name == tx.caller.removeprefix(HUMAN),
            delegation.c.starts_at <= tx.now,
            delegation.c.ends_at > tx.now,
        )
    ).all()
    holders = {role: access.holders(tx, role) for role in {row.role for row in rows}}
    return [
        Loan(row.role, row.from_name, row.account_id, row.quote_id)
        for row in rows
        if row.from_name in holders[row.role]
    ]


def _count(condition: Condition) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))


def _value(tx: Tx) -> sa.ColumnElement[Any]:
    """What a request is worth in the policies' currency, for ordering: a currency without a rate comes last."""
    terms = tx.policies.terms
    rates = {**{name: to_micro(rate) for name, rate in terms.rates.items()}, terms.currency: to_micro(Decimal(1))}
    rate = sa.case(rates, value=quote.c.currency, else_=0)
    return sa.cast(approval.c.total, sa.Numeric) * rate


def _items(tx: Tx, rows: Sequence[AnyRow], loans: Sequence[Loan]) -> list[QueueItem]:
    rounds: dict[tuple[str, int], list[AnyRow]] = defaultdict(list)
    for row in storing.of_quotes(tx, {row.quote_id for row in rows}):
        rounds[row.quote_id, row.version].append(row)
    margins = _margins(tx, rows)
    voted = storing.votes(tx, [row.id for row in rows])
    return [
        {
            **viewing.pending_item(tx, row, rounds[row.quote_id, row.version]),
            "account_id": row.account_id,
            "discount_pct": amount(_share(row.discount_total, row.subtotal) or 0),
            "margin_pct": margins.get(row.quote_id),
            "is_escalated": row.escalates_at is not None and row.escalates_at <= tx.now,
            "acts_as": _acts_as(tx, row, loans, {vote.holder for vote in voted[row.id]}),
        }
        for row in rows
    ]


def _acts_as(tx: Tx, row: AnyRow, loans: Sequence[Loan], spoken: Collection[str]) -> str | None:
    if row.is_own:
        if row.role in tx.roles:
            return str(row.role)
        is_escalated = row.escalates_at is not None and row.escalates_at <= tx.now
        return f"{row.escalates_to}, escalated" if is_escalated and row.escalates_to in tx.roles else "stand-in"
    if row.is_lent:
        lender = next((loan.lender for loan in loans if _matches(loan, row) and HUMAN + loan.lender not in spoken), "")
        return f"lent by {lender}"
    return None


def _matches(loan: Loan, row: AnyRow) -> bool:
    return (
        loan.role == row.role
        and loan.quote_id in (None, row.quote_id)
        and loan.account_id in (None, row.account_id)
        and f"{HUMAN}{loan.lender}" != row.requested_by
    )


def _margins(tx: Tx, rows: Sequence[AnyRow]) -> Mapping[str, Any]:
    """Of the lines that count, where all their costs are known; nothing for those who may not see margins."""
    if not tx.sees_margin or not rows:
        return {}
    line = quote_line.c
    selected = {row.quote_id: row.option_set for row in rows}
    costs = sa.func.count() - sa.func.count(line.cost)
    sums = sa.select(line.quote_id, line.option_set, sa.func.sum(line.net), sa.func.sum(line.cost), costs)
    of_version = (
        (quote.c.tenant_id == line.tenant_id) & (quote.c.id == line.quote_id) & (quote.c.version == line.version)
    )
    found: dict[str, list[Any]] = defaultdict(list)
    query = sums.join(quote, of_version).where(mine_among(tx, line.quote_id, list(selected)))
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
