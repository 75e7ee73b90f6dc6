"""Every path of a quote whose terms an agent changes: prices, free months, custom items, validity, dates,
rates, commitments.

Nothing reaches the customer that nobody saw: an approval covers the terms it was given for, or ones that give less.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.app.access import Principal, Role
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.domain.pricing.request import Segment
from cpq.domain.quotes.special_terms import Commitment, CustomItem, SpecialTerms
from cpq.services import approvals, quotes
from cpq.storage.schema.tables import approval, quote, quote_line, quote_version
from tests.support.approvals import person
from tests.support.quotes import ACME

BOT = Principal("bot", "agent", frozenset({Role.AGENT}), acts_for="dana")
ANN = Principal("ann", "human", frozenset({Role.SALES_MANAGER, Role.DEAL_DESK, Role.VP_SALES}))
PRICE = 79_000_000
"""Of a month, in millionths."""
NOTHING: dict[str, Any] = {"unit_price": None, "price_reason": None, "start_date": None, "term_months": None}
NOTHING |= {"commitment": None}
CLEARED = ("approved", "sent", "accepted")

Action = Callable[[], Any]


class Offer(NamedTuple):
    """Terms that an agent puts on the draft, instead of all others, and who has to see them."""

    needs: frozenset[str] = frozenset()
    special: dict[str, Any] = {}  # noqa: RUF012 - never changed
    ramp: tuple[Segment, ...] = ()
    discount: int = 0
    has_custom: bool = False
    valid_until: date | None = None


def priced(percent: int, **more: Any) -> dict[str, Any]:
    return {"unit_price": PRICE * percent // 100, "price_reason": "x", **more}


MANAGER = frozenset({"sales_manager"})
OFFERS = {
    "plain": Offer(),
    "price": Offer(MANAGER, priced(90)),
    "lower price": Offer(MANAGER, priced(85)),
    "free month": Offer(MANAGER, ramp=(Segment(11), Segment(1, discount=100_000_000))),
    "custom": Offer(frozenset({"deal_desk"}), has_custom=True),
    "validity": Offer(MANAGER, valid_until=date(2027, 1, 10)),
    "later": Offer(MANAGER, priced(90, start_date=date(2027, 4, 1), term_months=12)),
}


def used(rate: int | None, committed: int, **more: Any) -> dict[str, Any]:
    """A rate of the seller in millionths, and the amount that is committed for a month."""
    given = {} if rate is None else {"unit_price": rate, "price_reason": "x"}
    return {**given, "commitment": Commitment(amount=committed * 1_000_000) if committed else None, **more}


COMMITTED = 1_000
USE_OFFERS = {
    "plain": Offer(special=used(None, COMMITTED)),
    "rate": Offer(MANAGER, used(22_500_000, COMMITTED)),
    "lower rate": Offer(MANAGER, used(21_000_000, COMMITTED)),
    "rate with less committed": Offer(MANAGER, used(22_500_000, 950)),
    "rate with the minimum alone": Offer(MANAGER, used(22_500_000, 0)),
    "rate of a shorter time": Offer(MANAGER, used(22_500_000, COMMITTED, term_months=6)),
    "less off all": Offer(MANAGER, used(None, COMMITTED), discount=10_000_000),
    "lower minimum": Offer(MANAGER, used(None, 0), discount=10_000_000),
}
"""Of air at 24 for 1,000 m³, with a minimum spend of 900 a month."""
LESS = {("price", "lower price"), ("rate", "lower rate")}
"""Offers that give the customer no more than another."""


@dataclass
class Explorer:
    """Does everything that can be done in every state, once for each state that differs in what can matter later."""

    tx: Tx
    id: str
    offers: tuple[tuple[str, ...], ...]
    known: dict[str, Offer]
    names: dict[str, str] = field(default_factory=dict)
    """The offer by what is stored of it."""
    states: set[Any] = field(default_factory=set)
    tried: int = 0
    sent: set[str] = field(default_factory=set)

    def explore(self) -> None:
        state = self.look()
        self.check(state)
        if state in self.states or state[0] > len(self.offers):
            return  # A change of a draft that was submitted opens the next version, without end.
        self.states.add(state)
        for action in self.moves(state):
            savepoint = self.tx.connection.begin_nested()
            self.tried += 1
            with suppress(CpqError):
                action()
                self.explore()
            savepoint.rollback()

    def moves(self, state: tuple[Any, ...]) -> Iterator[Action]:
        number, status, versions = state
        tx, id_ = replace(self.tx, principal=BOT), self.id
        if status == "draft":
            for name in self.offers[number - 1]:
                if name != versions[-1][1] or not versions[-1][2]:
                    yield partial(self.offer, name, number)
            yield lambda: approvals.request(tx, id_, justification="x")
        if status in ("draft", "approved"):
            yield lambda: quotes.send(tx, id_, expected_version=number)
        if status in ("pending_approval", "approved", "sent") and number < len(self.offers):
            yield lambda: quotes.revise(tx, id_, expected_version=number)
        if number > 1 and status != "cancelled":
            yield lambda: quotes.cancel(tx, id_, expected_version=number)
        if status == "pending_approval":
            yield self.approve

    def approve(self) -> None:
        """Ann says yes to all that is asked now."""
        run = self.tx.connection.execute
        root = run(sa.select(quote).where(quote.c.id == self.id)).one()
        mine = (*self._of(approval, root.version), approval.c.status == "pending")
        for row in run(sa.select(approval).where(*mine)).all():
            ann = replace(self.tx, principal=ANN)
            approvals.decide(ann, row.id, "approve", fingerprint=row.fingerprint, comment="x")

    def offer(self, name: str, number: int) -> None:
        tx, offer = replace(self.tx, principal=BOT), self.known[name]
        custom = quotes.DraftLine(
            0, "custom", 1, special=SpecialTerms(500_000_000, custom=CustomItem("Freight", cost=100_000_000))
        )
        rows = self.tx.connection.execute(sa.select(quote_line).where(*self._of(quote_line, number))).all()
        extra = [f"{self.id}-ql-{row.number}" for row in rows if row.number > 1]
        change = {"ramp": offer.ramp, "special": {**NOTHING, **offer.special}, "discount_pct": offer.discount}
        changes = quotes.Changes(
            terms={"valid_until": offer.valid_until} if offer.valid_until else {},
            clear=() if offer.valid_until else ("valid_until",),
            change_lines=[(f"{self.id}-ql-1", change)],
            add_lines=[custom] if offer.has_custom and not extra else [],
            remove_lines=() if offer.has_custom else extra,
        )
        quotes.update(tx, self.id, changes, expected_version=number)
        quotes.price(tx, self.id)
        self.names[self.stored(number)] = name

    def stored(self, number: int) -> str:
        """What is stored of the terms of a version."""
        run, line = self.tx.connection.execute, quote_line.c
        lines = run(sa.select(line.special, line.ramp, line.discount_pct).where(*self._of(quote_line, number))).all()
        [day] = run(sa.select(quote_version.c.requested_valid_until).where(*self._of(quote_version, number))).one()
        return f"{sorted(map(str, lines))} {day}"

    def _of(self, table: sa.Table, number: int) -> tuple[sa.ColumnElement[bool], ...]:
        return table.c.quote_id == self.id, table.c.version == number

    def look(self) -> tuple[Any, ...]:
        run = self.tx.connection.execute
        root = run(sa.select(quote).where(quote.c.id == self.id)).one()
        rows = {row.id: row for row in run(sa.select(approval).where(approval.c.quote_id == self.id))}
        every = sa.select(quote_version).where(quote_version.c.quote_id == self.id).order_by(quote_version.c.version)

        def granted(row: Any) -> tuple[str, str, str]:
            role = row.role
            while row.kept_from is not None:
                row = rows[row.kept_from]
            return role, row.decided_by, self.names[self.stored(row.version)]

        versions = []
        for one in run(every):
            mine = [row for row in rows.values() if row.version == one.version]
            grants = frozenset(granted(row) for row in mine if row.status in ("approved", "kept"))
            name = self.names.get(self.stored(one.version), "plain")
            asked = sum(row.status == "pending" for row in mine)
            versions.append((one.status, name, one.priced_at is not None, asked, grants))
        return root.version, root.status, tuple(versions)

    def check(self, state: tuple[Any, ...]) -> None:
        for status, name, _, _, grants in state[2]:
            if status not in CLEARED:
                continue
            self.sent |= {name} if status == "sent" else set()
            covered = {role for role, by, seen in grants if by == ANN.caller and (seen == name or (name, seen) in LESS)}
            assert self.known[name].needs <= covered, (name, grants)


TERMS = quotes.DraftLine(1, "prod_app_leak", 10)
USE = quotes.DraftLine(1, "prod_use_air", 1, special=SpecialTerms(**USE_OFFERS["plain"].special))


def test_no_path_of_special_terms_gives_a_customer_what_nobody_saw(sqlite_app: App):
    explore(sqlite_app, TERMS, OFFERS, ("lower price", "custom"), ("price", "free month", "validity", "later"))


def test_g07_no_path_of_rates_and_commitments_gives_a_customer_what_nobody_saw(sqlite_app: App):
    second = ("rate", "rate with less committed", "rate with the minimum alone", "lower minimum")
    explore(sqlite_app, USE, USE_OFFERS, ("lower rate", "less off all"), second)


@pytest.mark.proof
@pytest.mark.parametrize(("line", "known"), [(TERMS, OFFERS), (USE, USE_OFFERS)], ids=["terms", "use"])
def test_no_path_at_all_of_special_terms_gives_a_customer_what_nobody_saw(
    sqlite_app: App, line: quotes.DraftLine, known: dict[str, Offer]
):
    explore(sqlite_app, line, known, tuple(known), tuple(known))


def explore(app: App, line: quotes.DraftLine, known: dict[str, Offer], *offers: tuple[str, ...]) -> None:
    person(app, "ann", *ANN.roles)
    explorers: list[Explorer] = []
    with suppress(ZeroDivisionError), app.database.writing(app.effects.monotonic() + 60) as connection:
        tx = Tx(connection, BOT, app.effects.now(), app.effects, app.settings, app.policies.current)
        draft = quotes.Draft(
            account_id=ACME, currency="USD", lines=(line,), term_months=12, start_date=date(2027, 1, 1)
        )
        explorers.append(Explorer(tx, quotes.create(tx, draft)["quote_id"], offers, known))
        explorers[0].explore()
        raise ZeroDivisionError  # Takes the whole exploration back.
    [explorer] = explorers
    print(f"{len(explorer.states)} states, {explorer.tried} calls, sent {sorted(explorer.sent)}")
    assert explorer.sent >= {name for names in offers for name in names}, "every offer must arrive, or nothing is shown"
