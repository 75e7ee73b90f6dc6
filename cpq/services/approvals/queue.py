"""The queue of a person: requests of their roles, escalated to them, as stand-in, and delegated to them.

Every waiting request is read once and goes through `eligibility`. The same rule as conditions of a query took several
times as long once people had delegated roles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app import tokens
from cpq.app.transaction import Tx
from cpq.base.money import Amount, amount
from cpq.base.text import digest, read_json
from cpq.domain.approvals.eligibility import Allowed, Basis, Refused, RequestFacts, eligibility
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT
from cpq.services.approvals import deciders, repository, views
from cpq.services.approvals.refusals import refusal
from cpq.services.approvals.repository import WaitingRequest
from cpq.services.approvals.requests import reasons_view
from cpq.services.approvals.views import PendingApproval
from cpq.services.catalog.accounts import has_words
from cpq.services.pagination import Pagination, pagination
from cpq.services.quotes import repository as quote_rows
from cpq.services.quotes.listed_quotes import comparable
from cpq.storage.schema import tables

Scope = Literal["mine", "delegated", "all"]
Sort = Literal["oldest", "newest", "biggest", "smallest", "owner"]

_SEARCHED = (
    tables.account.c.name,
    tables.quote.c.id,
    tables.quote.c.number,
    tables.quote.c.owner,
    tables.approval.c.requested_by,
)


class QueueItem(PendingApproval):
    """A waiting request, with the figures that help to choose the most urgent one."""

    account_id: str
    discount_pct: Amount
    margin_pct: Amount | None
    acts_as: str | None
    """The basis on which the caller may decide it, in words; None when they may not."""
    also_asked: list[str]
    """The other roles that are asked about the same quote."""
    is_delegated: bool
    is_stand_in: bool


class QueueCounts(TypedDict):
    """Numbers of quotes, each counted once."""

    own: int
    """With a request of the caller's roles, escalated to them, or as stand-in, and not delegated."""
    delegated: int
    all: int


class Queue(TypedDict):
    items: list[QueueItem]
    pagination: Pagination
    counts: QueueCounts
    stamp: str


class Opening(TypedDict):
    """An undecided request of the current version, and whether the caller could decide it now."""

    approval_id: str
    approver_role: str
    acts_as: str | None
    rejects_as: str | None
    """Set also when they may only reject: the delegate of a maker cannot approve."""
    why_not: str | None
    reasons: list[str]
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
    """A page of the quotes that wait, one row each, and the counts of all of them without filters."""
    waiting, matches = _waiting(tx, query, sort)
    facts = deciders.load(tx, waiting, repository.votes_on_pending(tx))
    own: set[str] = set()
    delegated: set[str] = set()
    roles: dict[str, list[str]] = defaultdict(list)
    chosen: dict[str, dict[str, Allowed | Refused]] = defaultdict(dict)
    for request, is_match in zip(waiting, matches, strict=True):
        roles[request.quote_id].append(request.role)
        answer = eligibility(facts, request, "approve")
        if isinstance(answer, Refused):
            is_in_scope = scope == "all"
        elif answer.basis is Basis.DELEGATED:
            is_in_scope = True
            delegated.add(request.quote_id)
        else:
            is_in_scope = scope != "delegated"
            own.add(request.quote_id)
        if is_in_scope and is_match and (role is None or role == request.role):
            chosen[request.quote_id][request.id] = answer
    shown = list(chosen)[(page - 1) * limit : page * limit]
    of_quote: dict[str, list[QueueItem]] = defaultdict(list)
    for item in _items(tx, {id_: answer for quote_id in shown for id_, answer in chosen[quote_id].items()}):
        of_quote[item["quote_id"]].append(item)
    return {
        "items": [_row(of_quote[quote_id], roles[quote_id]) for quote_id in shown],
        "pagination": pagination(len(chosen), page, limit),
        "counts": {"own": len(own - delegated), "delegated": len(delegated), "all": len(roles)},
        "stamp": queue_stamp(tx),
    }


def _row(requests: Sequence[QueueItem], roles: Sequence[str]) -> QueueItem:
    """The request that stands for its quote: one that the caller may decide now, else the next one to be decided."""
    first = min(requests, key=lambda one: (one["acts_as"] is None, one["waits_for"] is not None))
    return {**first, "also_asked": [role for role in dict.fromkeys(roles) if role != first["approver_role"]]}


def queue_stamp(tx: Tx) -> str:
    """A stamp that changes when a request is added, ends or gets a vote, when a delegation begins or ends, and every
    minute; cheap enough for a check every few seconds."""
    approval, delegation = tables.approval.c, tables.delegation.c
    begun = tx.own(tables.delegation) & (delegation.starts_at <= tx.now)
    seen: list[sa.Select[*tuple[Any, ...]]] = [
        sa.select(sa.func.count(), sa.func.max(approval.requested_at)).where(repository.is_pending(tx)),
        sa.select(sa.func.count(), sa.func.max(delegation.starts_at)).where(begun, delegation.ends_at > tx.now),
    ]
    if tx.policies.roles.quorum:
        votes = sa.select(sa.func.count()).select_from(repository.VOTES_OF_REQUESTS)
        seen.append(votes.where(repository.is_pending(tx), approval.role.in_(tx.policies.roles.quorum)))
    parts = [str(part) for one in seen for part in tx.connection.execute(one).one()]
    return digest([*parts, f"{tx.now:%Y-%m-%d %H:%M}", *sorted(tx.roles)])[:16]


def openings(tx: Tx, quote_id: str) -> list[Opening]:
    """The undecided requests of the current version, and which of them the caller could decide now."""
    quote = quote_rows.load(tx, quote_id)
    by_id = {one.id: one for one in repository.of_quote(tx, quote_id, quote.current_version)}
    round_ = repository.round_of(tx, quote, list(by_id.values()))
    open_ones = [deciders.request_facts(tx, by_id[step.id], quote) for step in round_.pending]
    facts = deciders.load(tx, open_ones, repository.votes(tx, [one.id for one in open_ones]))
    result: list[Opening] = []
    for one in open_ones:
        answers = eligibility(facts, one, "reject"), eligibility(facts, one, "approve")
        rejects, approves = (answer if isinstance(answer, Allowed) else None for answer in answers)
        refused = next((answer for answer in answers if isinstance(answer, Refused)), None)
        request = by_id[one.id]
        result.append(
            {
                "approval_id": request.id,
                "approver_role": request.role,
                "acts_as": views.acted_as(approves) if approves else None,
                "rejects_as": views.acted_as(rejects) if rejects else None,
                "why_not": refusal(refused, caller=tx.caller, quote_id=quote_id).message if refused else None,
                "reasons": reasons_view(tx, request.role, request.reasons),
                "waits_for": round_.waits_for(request.role),
                "requested_by": request.requested_by,
                "justification": request.justification,
                "requested_at": request.requested_at,
                "expires_at": request.expires_at,
                "fingerprint": request.fingerprint,
            }
        )
    return result


def _waiting(tx: Tx, words: str | None, sort: Sort) -> tuple[list[RequestFacts], list[int]]:
    """Every waiting request in order: the facts that determine who may decide it, and whether the words match."""
    approval, quote, version = tables.approval.c, tables.quote.c, tables.quote_version.c
    has_all = sa.case((sa.and_(sa.true(), *has_words(words, *_SEARCHED)), 1), else_=0)
    escalated_to = sa.case((approval.escalates_at <= tx.now, approval.escalates_to))
    facts = (approval.id, approval.quote_id, quote.account_id, approval.role, escalated_to, approval.requested_at)
    edited_by = sa.type_coerce(version.edited_by, sa.Text)
    makers = (approval.requested_by, quote.created_by, version.created_by, edited_by)
    value = comparable(tx, approval.total)
    order = {
        "oldest": (approval.requested_at, value.desc(), approval.id),
        "newest": (approval.requested_at.desc(), value.desc(), approval.id),
        "biggest": (value.desc(), approval.requested_at, approval.id),
        "smallest": (value, approval.requested_at, approval.id),
        "owner": (sa.func.lower(quote.owner).nulls_last(), approval.requested_at, approval.id),
    }[sort]
    rows = tx.connection.execute(_live(tx, has_all, *facts, *makers).order_by(*order))
    requests, matches = [], []
    # Most requests have the same makers, so their text is parsed once. Starred names would cost a list for each row.
    known: dict[tuple[str, str, str, str], frozenset[str]] = {}
    names = tokens.other_names(tx)
    for is_match, id_, quote_id, account_id, role, to, at, asked_by, made_by, version_by, editors in rows:
        key = asked_by, made_by, version_by, editors
        if key not in known:
            made = deciders.makers(asked_by, made_by, version_by, read_json(editors))
            known[key] = made | deciders.other_names(tx, made, names)
        requests.append(RequestFacts(id_, quote_id, account_id, role, to, at, known[key]))
        matches.append(is_match)
    return requests, matches


def _live(tx: Tx, *columns: Any) -> sa.Select[*tuple[Any, ...]]:
    """Columns of requests that can still be answered, with their versions."""
    approval, version = tables.approval.c, tables.quote_version.c
    of_version = (
        (version.tenant_id == approval.tenant_id)
        & (version.quote_id == approval.quote_id)
        & (version.version == approval.version)
    )
    return repository.live(tx, *columns).join(tables.quote_version, of_version)


@dataclass(frozen=True)
class _Shown:
    """A request of the page, with the amounts of its version."""

    waiting: WaitingRequest
    subtotal: int
    discount_total: int
    option_set: str | None

    @property
    def quote_id(self) -> str:
        return self.waiting.request.quote_id


def _items(tx: Tx, answers: Mapping[str, Allowed | Refused]) -> list[QueueItem]:
    """The requests with these ids, in order, each with how the caller may decide it."""
    version = tables.quote_version.c
    columns = (*repository.WAITING_COLUMNS, version.subtotal, version.discount_total, version.option_set)
    chosen = _live(tx, *columns).where(tables.approval.c.id.in_(answers))
    by_id = {
        row["id"]: _Shown(repository.waiting_of(row), row["subtotal"], row["discount_total"], row["option_set"])
        for row in tx.connection.execute(chosen).mappings()
    }
    shown = [by_id[id_] for id_ in answers]
    margins = _margins(tx, shown)
    items = views.pending_items(tx, [one.waiting for one in shown])
    return [_item(one, item, answers[item["approval_id"]], margins) for one, item in zip(shown, items, strict=True)]


def _item(shown: _Shown, item: PendingApproval, answer: Allowed | Refused, margins: Mapping[str, Amount]) -> QueueItem:
    allowed = answer if isinstance(answer, Allowed) else None
    return {
        **item,
        "account_id": shown.waiting.account_id,
        "discount_pct": amount(_share(shown.discount_total, shown.subtotal) or 0),
        "margin_pct": margins.get(shown.quote_id),
        "acts_as": views.acts_as(allowed) if allowed else None,
        "also_asked": [],
        "is_delegated": allowed is not None and allowed.basis is Basis.DELEGATED,
        "is_stand_in": allowed is not None and allowed.basis is Basis.STAND_IN,
    }


def _margins(tx: Tx, shown: Sequence[_Shown]) -> Mapping[str, Amount]:
    """Margins of the selected lines, where all costs are known; empty for callers who may not see margins."""
    if not tx.sees_margin or not shown:
        return {}
    line, quote = tables.quote_line.c, tables.quote.c
    selected = {one.quote_id: one.option_set for one in shown}
    costs = sa.func.count() - sa.func.count(line.cost)
    sums = sa.select(line.quote_id, line.option_set, sa.func.sum(line.net), sa.func.sum(line.cost), costs)
    of_version = (quote.tenant_id == line.tenant_id) & (quote.id == line.quote_id) & (quote.version == line.version)
    found: dict[str, list[Any]] = defaultdict(list)
    query = sums.join(tables.quote, of_version).where(tx.own_among(line.quote_id, list(selected)))
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
    """The share in millionths of a percent; None when `whole` is zero."""
    return (2 * part * ONE_HUNDRED_PERCENT + whole) // (2 * whole) if whole else None
