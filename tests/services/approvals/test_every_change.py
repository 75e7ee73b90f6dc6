"""Every path by which an agreement can change, explored to the end: nothing holds that nobody saw who had to.

An agent amends, renews and cancels, prices with discounts, asks, sends and revises, also two quotes at once and one
after the other; people decide; its owner records what the customer accepts. What must hold is said again here, in whole
numbers, and asks no rule of the product.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.app.access import Principal, Role
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.domain.agreements.changes import Action, Change, RenewalPrice
from cpq.domain.quotes.special_terms import Commitment, SpecialTerms
from cpq.services import agreements, approvals, orders, quotes
from cpq.storage.schema.tables import approval, quote, quote_line, quote_version
from tests.support.approvals import person
from tests.support.quotes import ACME

BOT = Principal("bot", "agent", frozenset({Role.AGENT}), acts_for="dana")
DANA = Principal("dana", "human", frozenset({Role.SALES_REP}))
ANN = Principal("ann", "human", frozenset({Role.SALES_MANAGER, Role.FINANCE}))
START, LATER = date(2027, 1, 1), date(2027, 7, 1)
MICRO = 10**6
MANAGER_ABOVE, FINANCE_ABOVE = 0, 10_000 * MICRO
"""What is given back: above the one the sales manager sees it, above the other, over all changes, finance."""
FREE = 5
"""Percent of discount that need nobody."""
OUT = ("sent", "accepted")
SEATS = quotes.DraftLine(1, "prod_app_leak", 10)
BY_USE = quotes.DraftLine(1, "prod_use_api", 1)
COMMITTED = quotes.DraftLine(1, "prod_use_api", 1, special=SpecialTerms(commitment=Commitment(quantity=500_000)))

Move = Callable[[], Any]


class Seen(NamedTuple):
    """A version of a change as it is stored, with the roles that a person free to say so granted on it."""

    number: int
    status: str
    kind: str
    base: int
    asked_percent: int
    percent: int
    """The largest discount of a line, in whole percent."""
    back: int
    is_priced: bool
    asked: int
    granted: frozenset[str]


@dataclass
class Explorer:
    """Does everything that can be done in every state, once for each state that differs in what can matter later."""

    tx: Tx
    agreement_id: str
    changes: tuple[str, ...]
    quotes_max: int
    discounts: tuple[int, ...]
    is_whole: bool
    """Also with rejections, revisions, cancelled quotes, and decisions by those who may not decide."""
    ids: list[str] = field(default_factory=list)
    states: set[Any] = field(default_factory=set)
    tried: int = 0
    accepted: set[tuple[str, ...]] = field(default_factory=set)
    """The kinds of changes that followed each other."""

    def explore(self) -> None:
        state = self.look()
        self.check(state)
        sequence, owned, roots = state
        kind = sequence, owned, tuple(sorted(roots, key=str))  # Which of two was first does not matter.
        if kind in self.states:
            return
        self.states.add(kind)
        for move in self.moves(state):
            savepoint, known = self.tx.connection.begin_nested(), list(self.ids)
            self.tried += 1
            with suppress(CpqError):
                move()
                self.explore()
            savepoint.rollback()
            self.ids = known

    def moves(self, state: tuple[Any, ...]) -> Iterator[Move]:
        _, _, roots = state
        if len(self.ids) < self.quotes_max:
            for name in self.changes:
                yield lambda name=name: self.change(name)  # type: ignore[misc] # Bound now.
        for id_, (status, versions) in zip(list(self.ids), roots, strict=True):
            yield from self.moves_of(id_, status, versions[-1])

    def moves_of(self, id_: str, status: str, seen: Seen) -> Iterator[Move]:
        bot, number = replace(self.tx, principal=BOT), seen.number
        if status == "draft":
            for percent in self.discounts:
                if seen.is_priced and percent == seen.asked_percent:
                    continue
                yield lambda percent=percent: quotes.price(bot, id_, requested_discount=percent * MICRO)  # type: ignore[misc]
            yield lambda: approvals.request(bot, id_, justification="x")
        if status in ("draft", "approved"):
            yield lambda: quotes.send(bot, id_, expected_version=number)
        if status in ("draft", "approved", "sent"):
            for who in (BOT, DANA):
                at = replace(self.tx, principal=who)
                yield lambda at=at: quotes.accept(at, id_, expected_version=number)  # type: ignore[misc]
        if status in ("approved", "sent") and number < 2 and self.is_whole:
            yield lambda: quotes.revise(bot, id_, expected_version=number)
        if status == "pending_approval":
            for who in (ANN, DANA, BOT) if self.is_whole else (ANN,):
                for word in ("approve", "reject") if who is ANN and self.is_whole else ("approve",):
                    yield lambda who=who, word=word: self.decide(id_, who, word)  # type: ignore[misc]
        if status != "cancelled" and self.is_whole:
            yield lambda: quotes.cancel(bot, id_, expected_version=number)

    def change(self, name: str) -> None:
        tx, id_ = replace(self.tx, principal=BOT), self.agreement_id
        line = orders.load_agreement(tx, id_).lines[0].id
        amend = {
            "more": Change(Action.SET_QUANTITY, line, quantity=15),
            "less": Change(Action.SET_QUANTITY, line, quantity=5),
            "cheaper": Change(Action.CHANGE_PRICE, line, discount_pct=4 * MICRO),
            "longer": Change(Action.CHANGE_TERM, line, end_date=date(2029, 12, 31)),
            "shorter": Change(Action.CHANGE_TERM, line, end_date=LATER),
            "another": Change(Action.SWAP_PRODUCT, line, product_id="prod_pro_v2", quantity=1),
            "added": Change(Action.ADD_LINE, product_id="prod_app_leak", quantity=1, discount_pct=10 * MICRO),
            "more use": Change(Action.SET_QUANTITY, line, commitment=Commitment(quantity=800_000)),
            "less use": Change(Action.SET_QUANTITY, line, commitment=Commitment(quantity=200_000)),
            "lower rates": Change(Action.CHANGE_PRICE, line, discount_pct=10 * MICRO),
            "no use": Change(Action.REMOVE_LINE, line),
        }
        if name in amend:
            made = agreements.amend(tx, id_, LATER, [amend[name]])
        elif name == "end":
            made = agreements.cancel(tx, id_, START, lines=None, reason="x")
        else:
            early = LATER if name == "early renewal" else None
            made = agreements.renew(
                tx, id_, start=early, term_months=1, uplift_percent=0, price=RenewalPrice.SAME, also=()
            )
        assert made["quote_id"] is not None or made["outcome"] == "no_change"
        if made["quote_id"] is not None:
            self.ids.append(made["quote_id"])

    def decide(self, id_: str, who: Principal, word: Any) -> None:
        """All that is asked now, one after the other."""
        rows = self.tx.connection.execute(
            sa.select(approval).where(approval.c.quote_id == id_, approval.c.status == "pending")
        ).all()
        for row in rows:
            at = replace(self.tx, principal=who)
            approvals.decide(at, row.id, word, fingerprint=row.fingerprint, comment="x")
            if word == "reject":
                return  # It ends the round.

    def look(self) -> tuple[Any, ...]:
        agreement = orders.load_agreement(self.tx, self.agreement_id)
        owned = tuple((line.id, *line.phases) for line in agreement.lines) if agreement.sequence > 1 else ()
        return agreement.sequence, str(owned), tuple(map(self._look, self.ids))

    def _look(self, id_: str) -> tuple[str, tuple[Seen, ...]]:
        run = self.tx.connection.execute
        root = run(sa.select(quote).where(quote.c.id == id_)).one()
        rows = {row.id: row for row in run(sa.select(approval).where(approval.c.quote_id == id_))}
        found = []
        every = sa.select(quote_version).where(quote_version.c.quote_id == id_).order_by(quote_version.c.version)
        for one in run(every).all():
            lines = run(
                sa.select(quote_line).where(quote_line.c.quote_id == id_, quote_line.c.version == one.version)
            ).all()
            mine = [row for row in rows.values() if row.version == one.version]
            found.append(
                Seen(
                    one.version,
                    one.status,
                    one.agreement["kind"],
                    one.agreement["sequence"],
                    one.requested_discount // MICRO,
                    max(map(_percent, lines), default=0),
                    sum([max(0, line.special["agreed"].get("credit", 0) - line.net) for line in lines]),
                    one.priced_at is not None,
                    sum(row.status == "pending" for row in mine),
                    frozenset(row.role for row in mine if self._is_granted(row, rows)),
                )
            )
        return root.status, tuple(found)

    def _is_granted(self, row: Any, rows: Any) -> bool:
        """By somebody who did not make it; a kept approval is the one that it was kept from."""
        while row.kept_from is not None:
            row = rows[row.kept_from]
        return row.status == "approved" and row.decided_by == ANN.caller

    def check(self, state: tuple[Any, ...]) -> None:
        sequence, _, roots = state
        out = [seen for _, versions in roots for seen in versions if seen.status in OUT]
        for seen in out:
            assert seen.is_priced
            if seen.back > MANAGER_ABOVE or seen.percent > FREE:
                assert "sales_manager" in seen.granted, seen
        if sum([seen.back for seen in out]) > FINANCE_ABOVE:
            assert any("finance" in seen.granted for seen in out), out
        accepted = sorted([(seen.base, seen.kind) for seen in out if seen.status == "accepted"])
        # Each rests on the one before it, and on nothing else: there is one order for each.
        assert [base for base, _ in accepted] == [*range(1, sequence)], accepted
        self.accepted.add(tuple(kind for _, kind in accepted))


def _percent(line: Any) -> int:
    """Off what is charged, or off the rates of a line whose use is in no total."""
    of_rates: int = (line.usage or {}).get("discount", 0) // MICRO
    return max(of_rates, 100 - line.net * 100 // line.regular if line.regular else 0)


@pytest.fixture
def app(sqlite_app: App) -> App:
    for who in (DANA, ANN):
        person(sqlite_app, who.name, *who.roles)
    return sqlite_app


def test_no_path_changes_an_agreement_without_the_approvals_that_the_policies_ask_for(app: App):
    found = explore(app, ("more", "less"), 2, (0,), is_whole=False)
    assert {("amendment",), ("amendment", "amendment")} <= found
    found = explore(app, ("cheaper", "early renewal", "renewal", "end"), 1, (0, 10), is_whole=False)
    assert {("amendment",), ("renewal",), ("cancellation",)} <= found


def test_no_path_changes_what_is_used_without_the_approvals_that_the_policies_ask_for(app: App):
    for sold in (COMMITTED, BY_USE):
        found = explore(app, ("less use", "lower rates", "no use"), 1, (0,), is_whole=False, sold=sold)
        assert ("amendment",) in found


EVERY = ("more", "less", "cheaper", "longer", "shorter", "another", "added", "renewal", "early renewal", "end")


@pytest.mark.proof
@pytest.mark.parametrize("first", EVERY)
def test_no_path_at_all_changes_an_agreement_without_the_approvals_that_the_policies_ask_for(app: App, first: str):
    """Each change alone, with all that can go wrong, and with itself and another one, at once and one after another."""
    explore(app, (first,), 1, (0, 10), is_whole=True)
    for second in (first, EVERY[EVERY.index(first) - 1]):
        explore(app, tuple(dict.fromkeys((first, second))), 2, (0,), is_whole=False)


USED = ("more use", "less use", "lower rates", "no use", "renewal", "early renewal", "end")


@pytest.mark.proof
@pytest.mark.parametrize("first", USED)
def test_no_path_at_all_changes_what_is_used_without_the_approvals_that_the_policies_ask_for(app: App, first: str):
    for sold in (COMMITTED, BY_USE):
        explore(app, (first,), 1, (0, 10), is_whole=True, sold=sold)
        two = tuple(dict.fromkeys((first, USED[USED.index(first) - 1])))
        explore(app, two, 2, (0,), is_whole=False, sold=sold)


def explore(
    app: App,
    changes: tuple[str, ...],
    quotes_max: int,
    discounts: tuple[int, ...],
    *,
    is_whole: bool,
    sold: quotes.DraftLine = SEATS,
) -> set[tuple[str, ...]]:
    explorers: list[Explorer] = []
    with suppress(ZeroDivisionError), app.database.writing(app.effects.monotonic() + 60) as connection:
        tx = Tx(connection, DANA, app.effects.now(), app.effects, app.settings, app.policies.current)
        draft = quotes.Draft(account_id=ACME, currency="USD", lines=(sold,), term_months=12, start_date=START)
        id_ = quotes.create(tx, draft)["quote_id"]
        quotes.price(tx, id_)
        quotes.send(tx, id_, expected_version=1)
        agreement_id = quotes.accept(tx, id_, expected_version=1)["agreement_id"]
        explorers.append(Explorer(tx, agreement_id, changes, quotes_max, discounts, is_whole))
        explorers[0].explore()
        raise ZeroDivisionError  # Takes the whole exploration back.
    [explorer] = explorers
    print(f"{changes}: {len(explorer.states)} states, {explorer.tried} calls, accepted {sorted(explorer.accepted)}")
    return explorer.accepted
