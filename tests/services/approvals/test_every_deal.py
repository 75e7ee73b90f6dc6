"""Every path that a deal of two quotes can take, explored to the end: whatever reaches the customer, people saw.

An agent makes both quotes and its owner may not decide them; each can be revised to more or less; a customer accepts.
What must hold is said again here, in whole numbers, and asks no rule of the product.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.app.access import Principal, Role
from cpq.app.transaction import Tx
from cpq.base.errors import CpqError
from cpq.services import approvals, quotes
from cpq.services.quotes import acceptance_links
from cpq.storage.schema.tables import acceptance_link, approval, quote, quote_line, quote_version
from tests.support.approvals import person
from tests.support.engine import import_dicts, product_row
from tests.support.quotes import ACME

BOT = Principal("bot", "agent", frozenset({Role.AGENT}), acts_for="dana")
DANA = Principal("dana", "human", frozenset({Role.SALES_MANAGER, Role.DEAL_DESK}))
"""She owns the agent, so she may record what a customer says, but approve nothing that it made."""
ANN = Principal("ann", "human", frozenset({Role.SALES_MANAGER, Role.DEAL_DESK}))

UNIT, LARGE, FREE = 60_000, 100_000, 5
"""The price of a unit; above `LARGE` for the whole deal the deal desk looks, above `FREE` percent a sales manager."""
MICRO = 10**6
WAYS = ("percent", "price", "amount", "amount of the quote", "target")
"""In which a discount is given: on the quote or on its line, in percent or in money."""
SHOWN = ("pending_approval", "approved", "sent", "accepted")
"""Versions that somebody was offered or asked about."""
OUT = ("sent", "accepted")
CLEARED = ("approved", *OUT)

Action = Callable[[], Any]
Offers = tuple[tuple[tuple[int, int], ...], ...]
"""Of each version of a quote, the units and percents off that the agent tries."""


class UndoneError(Exception):
    """Takes a whole exploration back."""


class Grant(NamedTuple):
    """What a person said yes to."""

    role: str
    by: str
    units: int
    percent: int
    deal: int
    """The value of the whole deal that they were shown."""


class Version(NamedTuple):
    number: int
    status: str
    units: int
    percent: int
    is_priced: bool
    fingerprint: str
    asked: frozenset[str]
    """The ids of what can be decided."""
    grants: frozenset[Grant]

    @property
    def value(self) -> int:
        return UNIT * self.units * (100 - self.percent) // 100


class Seen(NamedTuple):
    """A quote as it is stored."""

    id: str
    current: int
    status: str
    versions: tuple[Version, ...]

    @property
    def version(self) -> Version:
        return self.versions[self.current - 1]

    @property
    def sent(self) -> Version | None:
        return next((one for one in self.versions if one.status == "sent"), None)

    def largest(self, statuses: tuple[str, ...]) -> int:
        """The most that the customer can take of it: while a revision is made, the version before it still holds."""
        return max((one.value for one in self.versions if one.status in statuses), default=0)


@dataclass
class Explorer:
    """Does everything that can be done in every state, once for each state that differs in what can matter later."""

    tx: Tx
    ids: tuple[str, ...]
    offers: tuple[Offers, ...]
    ways: tuple[str, ...]
    """How the agent gives the discounts of each quote."""
    is_whole: bool
    """Also with rejections, first versions that are cancelled, and what happens after an acceptance."""
    codes: dict[str, str] = field(default_factory=dict)
    states: set[Any] = field(default_factory=set)
    tried: int = 0
    knocked: set[Any] = field(default_factory=set)
    arrivals: dict[str, int] = field(default_factory=dict)

    def explore(self) -> None:
        seen = self.look()
        state = frozenset(enumerate(map(_what_matters, seen)))
        if state in self.states:
            return
        self.states.add(state)
        self.check(seen)
        self.knock(seen)
        for place in range(len(seen)):
            for action in self.moves(seen, place):
                savepoint = self.tx.connection.begin_nested()
                if self.is_done(action):
                    self.explore()
                savepoint.rollback()

    def is_done(self, action: Action) -> bool:
        self.tried += 1
        try:
            action()
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

    def moves(self, seen: tuple[Seen, ...], place: int) -> Iterator[Action]:
        """Everything that is not refused by the status alone; `test_every_path` tries that."""
        one = seen[place]
        id_, version = one.id, one.current
        if one.status == "draft" and len(one.versions) <= len(self.offers[place]):
            for units, percent in self.offers[place][version - 1]:
                if (units, percent, True) != (one.version.units, one.version.percent, one.version.is_priced):
                    yield self.offer(one, units, percent, self.ways[place])
            if one.version.is_priced:
                yield lambda: approvals.request(self.at(BOT), id_, justification="x")
        if one.status in ("draft", "approved") and one.version.is_priced:
            yield self.sending(one)
        if one.status in ("pending_approval", "approved", "sent") and len(one.versions) < len(self.offers[place]):
            yield lambda: quotes.revise(self.at(BOT), id_, expected_version=version)
        if one.status not in ("cancelled", "accepted") and (self.is_whole or version > 1):
            yield lambda: quotes.cancel(self.at(BOT), id_, expected_version=version)
        for request in one.version.asked:
            yield self.decision(ANN, request, "approve", one)
            if self.is_whole:
                yield self.decision(ANN, request, "reject", one)
        if (sent := one.sent) and self.is_whole:
            yield lambda: quotes.accept(self.at(DANA), id_, expected_version=sent.number)

    def offer(self, one: Seen, units: int, percent: int, way: str) -> Action:
        """The same units and money off, in one of the ways in which a seller can give it."""
        price, off = UNIT * (100 - percent) // 100, UNIT * units * percent // 100
        special = {
            "price": {"unit_price": price * MICRO, "price_reason": "x"},
            "amount": {"discount_amount": off * MICRO},
        }.get(way, {})
        whole: Any = {
            "percent": {"requested_discount": percent * MICRO},
            "target": {"target_total": (UNIT * units - off) * MICRO},
            "amount of the quote": {"requested_amount": off * MICRO},
        }.get(way, {})

        def work() -> None:
            tx = self.at(BOT)
            change = {"quantity": units, **({"special": special} if special else {})}
            if units != one.version.units or special:
                changes = quotes.Changes(change_lines=[(f"{one.id}-ql-1", change)])
                quotes.update(tx, one.id, changes, expected_version=one.current)
            quotes.price(tx, one.id, **whole)

        return work

    def sending(self, one: Seen) -> Action:
        """With the link by which the customer can accept it."""

        def work() -> None:
            quotes.send(self.at(BOT), one.id, expected_version=one.current)
            link = acceptance_links.make(self.at(ANN), one.id, expected_version=one.current)
            self.codes[link.id] = link.code

        return work

    def decision(self, who: Principal, request: str, word: Any, one: Seen) -> Action:
        shown = one.version.fingerprint
        return lambda: approvals.decide(self.at(who), request, word, fingerprint=shown, comment="x")

    def check(self, seen: tuple[Seen, ...]) -> None:
        """Nobody's customer gets what nobody with the authority saw."""
        for one in seen:
            for version in one.versions:
                if version.status not in CLEARED:
                    continue
                self.arrivals[version.status] = self.arrivals.get(version.status, 0) + 1
                seen_by = [grant for grant in version.grants if _covers(grant, version)]
                assert len(seen_by) == len(version.grants), ("more than was approved", version)
                assert version.percent <= FREE or seen_by, ("a discount that nobody saw", version)
        out = sum(one.largest(OUT) for one in seen)
        saw = [grant.deal for one in seen for version in one.versions for grant in version.grants if _is_desk(grant)]
        assert out <= LARGE or out <= max(saw, default=0), ("a deal that nobody saw as a whole", out, seen)

    def knock(self, seen: tuple[Seen, ...]) -> None:
        """Who may not decide or accept cannot, in any state; the customer can accept exactly what was sent last."""
        for one in seen:
            kind = _what_matters(one)
            if kind in self.knocked:
                continue
            self.knocked.add(kind)
            for request in one.version.asked:
                for who in (DANA, BOT):
                    assert not self.would_be_done(self.decision(who, request, "approve", one)), (who, one)
            for version in one.versions:
                self.knock_at_acceptance(one, version)

    def knock_at_acceptance(self, one: Seen, version: Version) -> None:
        def accept(principal: Principal, *, may_agents: bool = False) -> Action:
            tx = self.at(principal)
            terms = replace(tx.policies.terms, agents_may_accept=may_agents)
            tx = replace(tx, load_policies=lambda: replace(self.tx.policies, terms=terms))
            return lambda: quotes.accept(tx, one.id, expected_version=version.number)

        is_open = version is one.sent
        assert not self.would_be_done(accept(BOT)), one
        assert self.would_be_done(accept(BOT, may_agents=True)) is is_open, one
        assert self.would_be_done(accept(ANN)) is is_open, one
        link = lambda: acceptance_links.make(self.at(BOT), one.id, expected_version=version.number)  # noqa: E731
        assert not self.would_be_done(link), one
        mine = (acceptance_link.c.quote_id == one.id) & (acceptance_link.c.version == version.number)
        for row in self.tx.connection.execute(sa.select(acceptance_link).where(mine)).all():
            for shown in {version.fingerprint, "0" * 64}:
                is_done = self.would_be_done(self.by_link(row.id, shown))
                assert is_done is (is_open and shown == version.fingerprint), (one, version, shown)

    def by_link(self, link_id: str, shown: str) -> Action:
        tx = self.at(acceptance_links.customer("main", link_id))
        return lambda: acceptance_links.accept(
            tx, self.codes[link_id], name="Jo", fingerprint=shown, option_set=None, address=""
        )

    def look(self) -> tuple[Seen, ...]:
        return tuple(self._look(id_) for id_ in self.ids)

    def _look(self, id_: str) -> Seen:
        run = self.tx.connection.execute
        root = run(sa.select(quote).where(quote.c.id == id_)).one()
        versions = run(
            sa.select(quote_version, quote_line.c.quantity)
            .join(
                quote_line,
                (quote_line.c.quote_id == quote_version.c.quote_id) & (quote_line.c.version == quote_version.c.version),
            )
            .where(quote_version.c.quote_id == id_)
            .order_by(quote_version.c.version)
        ).all()
        rows = {row.id: row for row in run(sa.select(approval).where(approval.c.quote_id == id_))}
        plain = {row.version: (int(row.quantity), row.discount_total * 100 // row.subtotal) for row in versions}

        def grant(row: Any) -> Grant:
            while row.kept_from is not None:
                row = rows[row.kept_from]
            return Grant(row.role, row.decided_by, *plain[row.version], _shown_deal(row))

        found = []
        for row in versions:
            mine = [one for one in rows.values() if one.version == row.version]
            is_live = root.status == "pending_approval" and root.version == row.version
            found.append(
                Version(
                    row.version,
                    row.status,
                    *plain[row.version],
                    row.priced_at is not None,
                    row.fingerprint,
                    frozenset(one.id for one in mine if is_live and one.status == "pending"),
                    frozenset(grant(one) for one in mine if one.status in ("approved", "kept")),
                )
            )
        return Seen(id_, root.version, root.status, tuple(found))


def _shown_deal(row: Any) -> int:
    reads = [read for ground in row.grounds for read in ground["reads"]]
    shown = [int(float(value["number"])) for name, value, *_ in reads if name in ("net_value", "deal_net_value")]
    return max(shown, default=0)


def _is_desk(grant: Grant) -> bool:
    return grant.role == "deal_desk" and grant.by == ANN.caller


def _covers(grant: Grant, version: Version) -> bool:
    """Whether the customer gets no more units, no cheaper and no more money off than somebody free to say so saw."""
    off, seen_off = (one.units * one.percent for one in (version, grant))
    return (
        grant.by == ANN.caller and version.units <= grant.units and version.percent <= grant.percent and off <= seen_off
    )


def _what_matters(one: Seen) -> tuple[Any, ...]:
    """All of a quote that can matter later. Ids do not; nor does a version that is neither current nor out, but for
    what was granted on it, which may be kept."""
    kept = [
        (version.status, version.units, version.percent, version.is_priced, len(version.asked), version.grants)
        if version.number == one.current or version.status in CLEARED
        else version.grants
        for version in one.versions
    ]
    return one.current, one.status, *kept


def test_no_path_of_a_split_deal_gives_a_customer_what_nobody_saw(sqlite_app: App):
    """With prices and amounts that were given to lines; `test_every_path` has percentages."""
    offers = (((2, 10),), ((1, 4), (3, 10))), (((1, 4),),)
    explore(sqlite_app, *offers, ways=("price", "amount"), is_whole=False)


@pytest.mark.proof
@pytest.mark.parametrize("ways", list(combinations(WAYS, 2)), ids=" and ".join)
@pytest.mark.parametrize(
    "offers",
    [((((2, 10), (1, 4)), ((1, 4), (3, 10))), (((1, 4),),)), ((((2, 10),), ((1, 4),)), (((1, 4),), ((2, 10),)))],
    ids=["one is revised to less or more", "both are revised"],
)
def test_no_path_at_all_of_a_split_deal_gives_a_customer_what_nobody_saw(
    sqlite_app: App, offers: tuple[Offers, ...], ways: tuple[str, ...]
):
    explore(sqlite_app, *offers, ways=ways, is_whole=True)


def explore(app: App, *offers: Offers, ways: tuple[str, ...], is_whole: bool) -> None:
    product = product_row()
    import_dicts(app, "products", product)
    import_dicts(
        app,
        "prices",
        {"price_book": "list", "product_id": product["id"], "currency": "USD", "unit_price": str(UNIT), "cost": "0"},
    )
    for who in (DANA, ANN):
        person(app, who.name, *who.roles)
    explorers: list[Explorer] = []
    with suppress(UndoneError), app.database.writing(app.effects.monotonic() + 60) as connection:
        tx = Tx(connection, BOT, app.effects.now(), app.effects, app.settings, app.policies.current)
        draft = quotes.Draft(
            account_id=ACME, currency="USD", deal_id="D-1", lines=(quotes.DraftLine(1, product["id"], 1),)
        )
        ids = tuple(quotes.create(tx, draft)["quote_id"] for _ in offers)
        explorers.append(Explorer(tx, ids, offers, ways, is_whole))
        explorers[0].explore()
        raise UndoneError
    [explorer] = explorers
    print(f"{len(explorer.states)} states, {explorer.tried} calls, arrivals {explorer.arrivals}")
    assert {"approved", "sent"} <= set(explorer.arrivals), "some paths must arrive, or nothing is shown"
    assert len(explorer.states) > 100
