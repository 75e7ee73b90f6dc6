"""As what a person may decide each of very many requests: what `people.capacity` says of one, from facts at hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from cpq.app import tokens
from cpq.app.transaction import Tx
from cpq.base.text import read_json
from cpq.services.approvals.people import HUMAN
from cpq.storage.schema import approval, approval_vote, delegation
from cpq.storage.tenants import of_tenant


class Request(NamedTuple):
    """What of a request that waits says whose it is."""

    id: str
    quote_id: str
    account_id: str
    role: str
    escalated_to: str | None
    requested_at: datetime
    requested_by: str
    quote_by: str
    version_by: str
    edited_by: str
    """As it is stored: most of the many are alike, and are read once."""


class Standing(NamedTuple):
    """As what the caller may decide, and whether only because it was lent to them."""

    acts_as: str
    is_lent: bool = False


class Loan(NamedTuple):
    """A role that was lent to the caller by somebody who still holds it."""

    lender: str
    account_id: str | None
    quote_id: str | None
    standing: Standing


class Hands(NamedTuple):
    """Who has made a request, and when the last loan between each of them and somebody else ends."""

    makers: frozenset[str]
    ties: Sequence[dict[str, datetime]]
    lenders: Sequence[dict[str, datetime]]
    """Of the ties those that the other one made, by lending a maker a role."""

    def bar(self, name: str, requested_at: datetime) -> bool:
        """Whether somebody is a maker, or shared a role with one when it was asked or later."""
        return name in self.makers or any(name in tie and tie[name] > requested_at for tie in self.ties)

    def leave_out(self, name: str, requested_at: datetime) -> bool:
        """Whether somebody is barred by their own doing; others are waited for, as `people.Barred` says."""
        return name in self.makers or any(name in tie and tie[name] > requested_at for tie in self.lenders)


class Bench:
    """The caller, with everything that says what they may decide now; read once for all requests."""

    def __init__(self, tx: Tx) -> None:
        self._roles = tx.roles if tx.caller.startswith(HUMAN) else frozenset[str]()
        self._name = tx.caller.removeprefix(HUMAN)
        backed = (role for role, backup in tx.policies.roles.backup.items() if backup in self._roles)
        self._holders = {role: tokens.holders(tx, role) for role in backed}
        self._loans = _loans(tx, self._name) if tx.caller.startswith(HUMAN) else {}
        self._ties = _ties(tx)
        self._spoken = _spoken(tx)
        self._hands: dict[tuple[str, ...], Hands] = {}
        self._own = {role: Standing(role) for role in self._roles}
        self._escalated = {role: Standing(f"{role}, escalated") for role in self._roles}

    def standing(self, request: Request) -> Standing | None:
        """None when the caller may not decide it, or has said their word."""
        if not self._own and not self._loans:
            return None
        spoken = self._spoken.get(request.id, frozenset())
        hands, since = self._hands_in(request), request.requested_at
        if self._name in spoken or hands.bar(self._name, since):
            return None
        own = self._own.get(request.role) or self._escalated.get(request.escalated_to or "")
        if own:
            return own
        holders = self._holders.get(request.role)
        # Somebody stands in for a role while nobody who holds it may decide.
        if holders is not None and all(hands.leave_out(name, since) for name in holders):
            return _STANDS_IN
        for loan in self._loans.get(request.role, ()):
            is_meant = loan.quote_id in (None, request.quote_id) and loan.account_id in (None, request.account_id)
            if is_meant and loan.lender not in spoken and not hands.bar(loan.lender, since):
                return loan.standing
        return None

    def _hands_in(self, request: Request) -> Hands:
        key = request[6:]
        if key not in self._hands:
            callers = {*key[:3], *read_json(request.edited_by)}
            makers = frozenset(caller.removeprefix(HUMAN) for caller in callers if caller.startswith(HUMAN))
            ties, lenders = ([found[name] for name in makers if name in found] for found in self._ties)
            self._hands[key] = Hands(makers, ties, lenders)
        return self._hands[key]


_STANDS_IN = Standing("stand-in")

VOTES_OF_REQUESTS = approval_vote.join(
    approval, of_tenant(approval_vote, approval.c.tenant_id) & (approval_vote.c.approval_id == approval.c.id)
)


def is_pending(tx: Tx) -> sa.ColumnElement[bool]:
    return tx.own(approval) & (approval.c.status == "pending")


def _loans(tx: Tx, name: str) -> dict[str, list[Loan]]:
    """By role, of those who hold it still; in the order of their names, as when it is decided."""
    rows = tx.connection.execute(
        sa.select(delegation)
        .where(
            tx.own(delegation),
            delegation.c.to_name == name,
            delegation.c.starts_at <= tx.now,
            delegation.c.ends_at > tx.now,
        )
        .order_by(delegation.c.from_name)
    ).all()
    holders = {role: tokens.holders(tx, role) for role in {row.role for row in rows}}
    found: dict[str, list[Loan]] = defaultdict(list)
    for row in rows:
        if row.from_name in holders[row.role]:
            standing = Standing(f"lent by {row.from_name}", is_lent=True)
            found[row.role].append(Loan(row.from_name, row.account_id, row.quote_id, standing))
    return found


Ties = dict[str, dict[str, datetime]]
"""By name, with whom somebody is tied, and until when."""


def _ties(tx: Tx) -> tuple[Ties, Ties]:
    """With whom everybody shares a role, or did, and who of those lent it to them.

    What ended before all that waits bars nobody.
    """
    oldest = sa.select(sa.func.min(approval.c.requested_at)).where(is_pending(tx), approval.c.expires_at > tx.now)
    pairs = sa.select(delegation.c.from_name, delegation.c.to_name, delegation.c.ends_at).where(
        tx.own(delegation),
        delegation.c.starts_at <= tx.now,
        delegation.c.ends_at > oldest.scalar_subquery(),
    )
    shared: Ties = defaultdict(dict)
    lenders: Ties = defaultdict(dict)
    for lender, borrower, ends_at in tx.connection.execute(pairs):
        for ties, name, partner in (
            (shared, lender, borrower),
            (shared, borrower, lender),
            (lenders, borrower, lender),
        ):
            ties[name][partner] = max(ties[name].get(partner, ends_at), ends_at)
    return shared, lenders


def _spoken(tx: Tx) -> dict[str, frozenset[str]]:
    """By request that waits, whose word is on record: who said it, and for whom. It counts once."""
    votes = sa.select(approval_vote.c.approval_id, approval_vote.c.caller, approval_vote.c.holder)
    votes = votes.select_from(VOTES_OF_REQUESTS).where(is_pending(tx))
    found: dict[str, frozenset[str]] = {}
    for approval_id, caller, holder in tx.connection.execute(votes):
        names = {caller.removeprefix(HUMAN), holder.removeprefix(HUMAN)}
        found[approval_id] = found.get(approval_id, frozenset()) | names
    return found
