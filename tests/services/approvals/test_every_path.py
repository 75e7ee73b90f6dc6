"""Every path that a small quote can take, explored to the end: none is sent without the approvals it needs.

Two roles, two versions, three principals; the real use cases on SQLite, each branch undone by a savepoint.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.app.access import Principal, Role
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.services import approvals, quotes
from cpq.storage.schema.tables import approval, quote, quote_version
from cpq.storage.statements import AnyRow
from tests.support.approvals import person
from tests.support.quotes import ACME

BOT = Principal("bot", "agent", frozenset({Role.SALES_REP}))
ANN = Principal("ann", "human", frozenset({Role.SALES_MANAGER}))
LEE = Principal("lee", "human", frozenset({Role.LEGAL}))
PRINCIPALS = (BOT, ANN, LEE)
DISCOUNTS = (4, 10)
"""Only above 5 % the sales manager is needed; the payment terms need legal in any case."""

NEEDED = {0: {"legal"}, 4: {"legal"}, 10: {"legal", "sales_manager"}}
HOLDERS = {"sales_manager": ANN, "legal": LEE}
GRANTED = ("approved", "kept")
VERSIONS_MAX = 2

Action = Callable[[Tx], Any]


class UndoneError(Exception):
    """Takes a whole exploration back."""


class Seen(NamedTuple):
    """The quote as it is stored: its root, all its versions, and all that was asked about them, oldest first."""

    root: AnyRow
    versions: Sequence[AnyRow]
    rows: Sequence[AnyRow]

    def status(self, version: AnyRow, now: Any) -> str:
        """Of the quote or a version: a draft again when its time is over."""
        is_over = version.lapses_at is not None and version.lapses_at <= now
        return "draft" if version.status == "pending_approval" and is_over else str(version.status)

    def live(self, now: Any) -> list[AnyRow]:
        """What can be decided."""
        is_open = self.status(self.root, now) == "pending_approval"
        return [
            row
            for row in self.rows
            if is_open and row.status == "pending" and row.version == self.root.version and row.expires_at > now
        ]


@dataclass
class Explorer:
    """Tries everything that can be done in every state, once for each state that differs in what can matter later."""

    tx: Tx
    quote_id: str
    is_whole: bool
    """Also with requests whose time runs out, each at any moment, or that are taken back, and a manager who asks,
    prices and revises."""
    states: set[Any] = field(default_factory=set)
    knocks: set[Any] = field(default_factory=set)
    tried: int = 0
    sent: int = 0

    def explore(self) -> None:
        seen = self.look()
        state = self.state(seen)
        self.check(seen)
        self.knock(seen)
        if state in self.states:
            return
        self.states.add(state)
        if self.is_whole:
            self.ask(state, seen)
        if seen.root.status in ("cancelled", "accepted") or len(seen.versions) > VERSIONS_MAX:
            return  # A rejected version that is priced again opens the next one, without end.
        for action in (*self.moves(seen), *self.answers(seen)):
            savepoint = self.tx.connection.begin_nested()
            if self.is_done(action):
                self.explore()
            savepoint.rollback()

    def is_done(self, action: Action) -> bool:
        self.tried += 1
        try:
            action(self.at(BOT))
        except CpqError:
            return False
        return True

    def would_be_done(self, action: Action) -> bool:
        savepoint = self.tx.connection.begin_nested()
        is_done = self.is_done(action)
        savepoint.rollback()
        return is_done

    def at(self, principal: Principal) -> Tx:
        return replace(self.tx, principal=principal)

    def moves(self, seen: Seen) -> Iterator[Action]:
        """What can be done to the quote."""
        id_, version = self.quote_id, seen.root.version
        for discount in DISCOUNTS:
            yield self.price(BOT, discount)
        yield self.sending(version)
        yield lambda tx: quotes.accept(tx, id_, expected_version=version)
        yield lambda tx: quotes.cancel(tx, id_, expected_version=version)
        for who in (BOT, ANN) if self.is_whole else (BOT,):
            if version < VERSIONS_MAX:
                yield self.revision(who, version)
            yield self.request(who, "sales_manager")
        yield self.request(BOT, "legal")
        if self.is_whole:
            yield self.price(ANN, 10)

    def answers(self, seen: Seen) -> Iterator[Action]:
        """What can be said to a request, by whom it concerns and by others, at this price and at another one."""
        for row in seen.live(self.tx.now):
            if self.is_whole:
                yield self.withdrawal(row)
                yield self.silence(row)
            for who in PRINCIPALS:
                for word in ("approve", "reject"):
                    yield self.decision(who, row.id, word, row.fingerprint)
            for other in seen.versions:
                if other.fingerprint != row.fingerprint:
                    yield self.decision(ANN, row.id, "approve", other.fingerprint)

    def sending(self, version: int) -> Action:
        return lambda tx: quotes.send(tx, self.quote_id, expected_version=version)

    def price(self, who: Principal, percent: int) -> Action:
        return lambda _tx: quotes.price(self.at(who), self.quote_id, requested_discount=percent * 1_000_000)

    def revision(self, who: Principal, version: int) -> Action:
        return lambda _tx: quotes.revise(self.at(who), self.quote_id, expected_version=version)

    def withdrawal(self, row: AnyRow) -> Action:
        who = next(one for one in PRINCIPALS if one.caller == row.requested_by)
        return lambda _tx: approvals.withdraw(self.at(who), row.id, reason=None)

    def silence(self, row: AnyRow) -> Action:
        """Nobody answers in time. Of several requests any one may be the first, more than clocks allow."""
        over = [
            sa.update(approval).where(approval.c.id == row.id).values(expires_at=self.tx.now),
            sa.update(quote).where(quote.c.id == self.quote_id).values(lapses_at=self.tx.now),
            sa.update(quote_version)
            .where(quote_version.c.quote_id == self.quote_id, quote_version.c.version == row.version)
            .values(lapses_at=self.tx.now),
        ]
        return lambda tx: [tx.connection.execute(one) for one in over]

    def request(self, who: Principal, role: str) -> Action:
        return lambda _tx: approvals.request(self.at(who), self.quote_id, justification="x", role=role)

    def decision(self, who: Principal, id_: str, word: Any, fingerprint: str) -> Action:
        return lambda _tx: approvals.decide(self.at(who), id_, word, fingerprint=fingerprint, comment="x")

    def knock(self, seen: Seen) -> None:
        """No request that is over, in whichever way, can be approved, wherever the quote and its versions stand."""
        live = {row.id for row in seen.live(self.tx.now)}
        now = self.tx.now
        statuses = (seen.root.version, seen.status(seen.root, now), *(seen.status(one, now) for one in seen.versions))
        for row in seen.rows:
            kind = (*statuses, row.version, row.role, row.status, row.fingerprint)
            if row.id in live or kind in self.knocks:
                continue
            self.knocks.add(kind)
            assert not self.would_be_done(self.decision(HOLDERS[row.role], row.id, "approve", row.fingerprint)), row

    def ask(self, state: Any, seen: Seen) -> None:
        """`can_proceed` says whether the quote can be sent, and a sweep changes nothing that matters."""
        can_proceed = approvals.status(self.tx, self.quote_id)["can_proceed"]
        if seen.root.status not in ("sent", "accepted"):
            assert self.would_be_done(self.sending(seen.root.version)) is can_proceed, seen
        savepoint = self.tx.connection.begin_nested()
        approvals.sweep(self.tx)
        assert self.state(self.look()) == state
        savepoint.rollback()

    def check(self, seen: Seen) -> None:
        """What went out is what was approved: by the right people, on this version, at this price."""
        for version in seen.versions:
            if version.status not in ("sent", "accepted", "approved"):
                continue
            self.sent += version.status == "sent"
            needed = NEEDED[version.requested_discount // 1_000_000]
            mine = [row for row in seen.rows if row.version == version.version]
            granted = {row.role: row for row in mine if row.status in GRANTED}
            assert needed <= granted.keys(), (version.version, version.status, mine)
            for role, row in granted.items():
                assert row.fingerprint == version.fingerprint
                assert row.decided_by == HOLDERS[role].caller
                made_by = (row.requested_by, version.created_by, *version.edited_by, seen.root.created_by)
                assert row.decided_by not in made_by
            assert not [row for row in mine if row.status == "rejected"]

    def state(self, seen: Seen) -> tuple[Any, ...]:
        """All that can matter later, so that paths which differ in nothing else are followed once.

        Ids and moments do not matter; nor who wrote a version, beyond whether the manager did; nor who asked, beyond
        whether they would have to answer; nor requests that are over; nor what a version that is neither current nor
        sent was like, but for what was granted on it, which may be kept.
        """
        current, status = seen.root.version, seen.status(seen.root, self.tx.now)
        versions = [
            self._of_current(seen, one) if one.version == current else self._of_other(seen, one)
            for one in seen.versions
        ]
        return current, status, tuple(versions)

    def _of_current(self, seen: Seen, version: AnyRow) -> tuple[Any, ...]:
        live = {(row.role, row.requested_by == HOLDERS[row.role].caller) for row in seen.live(self.tx.now)}
        status, is_priced = seen.status(version, self.tx.now), version.priced_at is not None
        has_lapsed = version.lapses_at is not None and version.lapses_at <= self.tx.now
        return (status, is_priced, has_lapsed, frozenset(live), *self._said(seen, version))

    def _of_other(self, seen: Seen, version: AnyRow) -> tuple[Any, ...]:
        said = self._said(seen, version)
        is_sent = version.status == "sent"
        return (is_sent, *said) if is_sent or said[-1] else ()

    def _said(self, seen: Seen, version: AnyRow) -> tuple[Any, ...]:
        """At which discount, whether the manager had a hand in it, and what was granted."""
        mine = (row for row in seen.rows if row.version == version.version and row.status in GRANTED)
        is_ann = ANN.caller in (version.created_by, *version.edited_by)
        return version.requested_discount, is_ann, frozenset((row.role, row.decided_by) for row in mine)

    def look(self) -> Seen:
        run = self.tx.connection.execute
        return Seen(run(self._root).one(), run(self._versions).all(), run(self._rows).all())

    def __post_init__(self) -> None:
        of_quote = approval.c.quote_id == self.quote_id
        order = (approval.c.version, approval.c.requested_at, approval.c.id)
        self._root = sa.select(quote).where(quote.c.id == self.quote_id)
        self._versions = (
            sa.select(quote_version).where(quote_version.c.quote_id == self.quote_id).order_by(quote_version.c.version)
        )
        self._rows = sa.select(approval).where(of_quote).order_by(*order)


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
    print(f"{len(explorer.states)} states, {explorer.tried} calls, {explorer.sent} arrivals at sent")
    assert explorer.sent > 0, "some paths must arrive, or nothing is shown"
    assert len(explorer.states) > 100


def _explorer(app: App, connection: sa.Connection, is_whole: bool) -> Explorer:
    tx = Tx(
        connection,
        Principal("bot", "agent", frozenset({Role.AGENT})),
        app.effects.now(),
        app.effects,
        app.settings,
        app.policies.current,
    )
    line = quotes.DraftLine(1, "prod_pro_v2", 150)
    draft = quotes.Draft(account_id=ACME, currency="USD", lines=(line,), term_months=12, payment_terms="net_90")
    made = quotes.create(tx, draft)
    return Explorer(tx, made["quote_id"], is_whole)
