"""Every path that a small quote can take, explored to the end: none is sent without the approvals it needs.

Two roles, two versions, three principals; the real use cases on SQLite, each branch undone by a savepoint.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from cpq import approvals, quotes
from cpq.access import Role
from cpq.app import App
from cpq.db import Tx
from cpq.errors import CpqError
from cpq.schema import approval, quote, quote_version
from tests.approving import person
from tests.quoting import ACME

BOT, ANN, LEE = ("agent:bot", Role.SALES_REP), ("human:ann", Role.SALES_MANAGER), ("human:lee", Role.LEGAL)
PRINCIPALS = (BOT, ANN, LEE)
DISCOUNTS = (4, 10)
"""Only above 5 % the sales manager is needed; the payment terms need legal in any case."""

NEEDED = {4: {"legal"}, 10: {"legal", "sales_manager"}}
HOLDERS = {"sales_manager": "human:ann", "legal": "human:lee"}
VERSIONS_MAX = 2

Action = Callable[[Tx], Any]


class UndoneError(Exception):
    """Takes a whole exploration back."""


@dataclass
class Explorer:
    """Tries everything that can be done in every state, once for each state that looks different."""

    tx: Tx
    quote_id: str
    is_whole: bool
    """Also with time that passes, requests that are taken back, and a manager who asks and revises."""
    seen: set[Any] = field(default_factory=set)
    tried: int = 0
    sent: int = 0

    def explore(self, hours: int = 0) -> None:
        state = (hours, *self.state())
        if state in self.seen:
            return
        self.seen.add(state)
        if self.root().status in ("cancelled", "accepted") or len(self.versions()) > VERSIONS_MAX:
            return  # A rejected version that is priced again opens the next one, without end.
        for action in self.actions(hours):
            savepoint = self.tx.connection.begin_nested()
            self.tried += 1
            try:
                action(self.at(BOT, hours))
            except CpqError:
                savepoint.rollback()
                continue
            self.check()
            self.explore(hours)
            savepoint.rollback()
        if hours == 0 and self.is_whole:
            self.explore(hours=4)

    def at(self, principal: tuple[str, Role], hours: int) -> Tx:
        caller, role = principal
        return replace(self.tx, caller=caller, roles=frozenset({role}), now=self.tx.now + timedelta(hours=hours))

    def actions(self, hours: int) -> Iterator[Action]:
        yield from self.moves(hours)
        yield from self.answers(hours)

    def moves(self, hours: int) -> Iterator[Action]:
        """What can be done to the quote."""
        id_, version = self.quote_id, self.root().version
        for discount in DISCOUNTS:
            yield self.price(discount)
        yield lambda tx: quotes.send(tx, id_, expected_version=version)
        yield lambda tx: quotes.accept(tx, id_, expected_version=version)
        yield lambda tx: quotes.cancel(tx, id_, expected_version=version)
        if version < VERSIONS_MAX:
            yield lambda tx: quotes.revise(tx, id_, expected_version=version)
            if self.is_whole:
                yield lambda _tx: quotes.revise(self.at(ANN, hours), id_, expected_version=version)
                yield lambda _tx: quotes.price(self.at(ANN, hours), id_, requested_discount=10_000_000)
        for who in (BOT, ANN) if self.is_whole else (BOT,):
            yield self.request(who, hours, "sales_manager")
        yield self.request(BOT, hours, "legal")

    def answers(self, hours: int) -> Iterator[Action]:
        """What can be said to a request, by whom it concerns and by others, at this price and at another one."""
        closed = {}
        for row in self.rows():
            if row.status != "pending":
                closed[row.version, row.role, row.status] = row
                continue
            if self.is_whole:
                yield self.withdrawal(row.id)
            for who in PRINCIPALS:
                for word in ("approve", "reject"):
                    yield self.decision(who, hours, row.id, word, row.fingerprint)
            for other in self.versions():
                if other.fingerprint != row.fingerprint:
                    yield self.decision(ANN, hours, row.id, "approve", other.fingerprint)
        for row in closed.values():
            yield self.decision(ANN if row.role == "sales_manager" else LEE, hours, row.id, "approve", row.fingerprint)

    def price(self, percent: int) -> Action:
        return lambda tx: quotes.price(tx, self.quote_id, requested_discount=percent * 1_000_000)

    def withdrawal(self, id_: str) -> Action:
        return lambda tx: approvals.withdraw(tx, id_, reason=None)

    def request(self, who: tuple[str, Role], hours: int, role: str) -> Action:
        return lambda _tx: approvals.request(self.at(who, hours), self.quote_id, justification="x", role=role)

    def decision(self, who: tuple[str, Role], hours: int, id_: str, word: Any, fingerprint: str) -> Action:
        return lambda _tx: approvals.decide(self.at(who, hours), id_, word, fingerprint=fingerprint, comment="x")

    def check(self) -> None:
        """What went out is what was approved: by the right people, on this version, at this price."""
        for version in self.versions():
            if version.status not in ("sent", "accepted", "approved"):
                continue
            self.sent += version.status == "sent"
            needed = NEEDED[version.requested_discount // 1_000_000]
            mine = [row for row in self.rows() if row.version == version.version]
            granted = {row.role: row for row in mine if row.status in ("approved", "kept")}
            assert needed <= granted.keys(), (version.version, version.status, mine)
            for role, row in granted.items():
                assert row.fingerprint == version.fingerprint
                assert row.decided_by == HOLDERS[role]
                made_by = (row.requested_by, version.created_by, *version.edited_by, self.root().created_by)
                assert row.decided_by not in made_by
            assert not [row for row in mine if row.status == "rejected"]

    def state(self) -> tuple[Any, ...]:
        """All that can matter later; ids and moments do not."""
        steps = {
            (row.version, row.role, row.status)
            if row.status in ("withdrawn", "expired")
            else (row.version, row.role, row.status, row.requested_by, row.decided_by, row.requested_at == self.tx.now)
            for row in self.rows()
        }
        versions = [
            (one.version, one.status, one.requested_discount, one.created_by, *one.edited_by, one.priced_at is None)
            for one in self.versions()
        ]
        return self.root().version, self.root().status, tuple(versions), frozenset(steps)

    def root(self) -> Any:
        return self.tx.connection.execute(sa.select(quote).where(quote.c.id == self.quote_id)).one()

    def versions(self) -> list[Any]:
        mine = quote_version.c.quote_id == self.quote_id
        return list(self.tx.connection.execute(sa.select(quote_version).where(mine).order_by(quote_version.c.version)))

    def rows(self) -> list[Any]:
        order = (approval.c.version, approval.c.role, approval.c.status, approval.c.requested_at, approval.c.id)
        return list(
            self.tx.connection.execute(sa.select(approval).where(approval.c.quote_id == self.quote_id).order_by(*order))
        )


def test_no_path_reaches_sent_without_the_approvals_that_the_policies_ask_for(sqlite_app: App):
    explore(sqlite_app, is_whole=False)


@pytest.mark.proof
def test_no_path_at_all_reaches_sent_without_the_approvals_that_the_policies_ask_for(sqlite_app: App):
    explore(sqlite_app, is_whole=True)


def explore(sqlite_app: App, *, is_whole: bool) -> None:
    for name, role in (("ann", "sales_manager"), ("lee", "legal")):
        person(sqlite_app, name, role)
    explorers: list[Explorer] = []
    deadline = sqlite_app.effects.monotonic() + 60
    with suppress(UndoneError), sqlite_app.database.writing(deadline) as connection:
        explorers.append(_explorer(sqlite_app, connection, is_whole))
        explorers[0].explore()
        raise UndoneError
    [explorer] = explorers
    print(f"{len(explorer.seen)} states, {explorer.tried} calls, {explorer.sent} arrivals at sent")
    assert explorer.sent > 0, "some paths must arrive, or nothing is shown"
    assert len(explorer.seen) > 100


def _explorer(app: App, connection: sa.Connection, is_whole: bool) -> Explorer:
    tx = Tx(
        connection,
        "main",
        app.effects.now(),
        "agent:bot",
        app.effects,
        app.settings,
        app.policies.current(),
        roles=frozenset({Role.AGENT}),
    )
    line = quotes.DraftLine(1, "prod_pro_v2", 150)
    draft = quotes.Draft(account_id=ACME, currency="USD", lines=(line,), term_months=12, payment_terms="net_90")
    made = quotes.create(tx, draft)
    return Explorer(tx, made["quote_id"], is_whole)
