"""The checker itself: it is silent on a whole deal, and finds each kind of damage. A checker that finds nothing proves
nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.services.documents.file_store import Store
from cpq.storage.schema import tables
from tests.faults.invariants import Told, kept_head, violations
from tests.support.approvals import ask, decision, person
from tests.support.engine import Tools
from tests.support.quotes import ACME, SEATS

Damage = Callable[[sa.Connection, list[Told]], Any]


def whole_deal(app: App) -> list[Told]:
    """One quote through its whole life, and another that was only begun."""
    told: list[Told] = []
    agent = Tools(app)

    def call(tools: Tools, name: str, **arguments: Any) -> dict[str, Any]:
        key = f"k{len(told)}"
        answer = tools(name, **arguments, idempotency_key=key)
        told.append(Told(tools.principal.caller, name, key, answer))
        return answer

    new = {"account_id": ACME, "term_months": 12, "line_items": [SEATS]}
    call(agent, "quote_create", **new)
    quote_id = call(agent, "quote_create", **new)["quote_id"]
    call(agent, "quote_price", quote_id=quote_id, requested_discount_pct=10)
    asked = ask(agent, quote_id)
    call(person(app, "ann", "sales_manager"), "approval_decide", **decision(asked["approval_id"], asked["fingerprint"]))
    call(agent, "quote_send", quote_id=quote_id, expected_version=1)
    call(agent, "quote_pdf", quote_id=quote_id)
    call(agent.seller, "quote_accept", quote_id=quote_id, expected_version=1)
    return told


def last(told: list[Told], tool: str) -> int:
    return max(place for place, one in enumerate(told) if one.tool == tool)


def delete(table: sa.Table) -> Damage:
    return lambda connection, _told: connection.execute(sa.delete(table))


def update(table: sa.Table, **values: Any) -> Damage:
    return lambda connection, _told: connection.execute(sa.update(table).values(values))


def answered(tool: str, **values: Any) -> Damage:
    """Somebody was given an answer that differs from what is there, or from another answer."""

    def damage(_connection: sa.Connection, told: list[Told]) -> None:
        one = told[last(told, tool)]
        told.append(replace(one, answer={**one.answer, **values}))

    return damage


def moved(_connection: sa.Connection, told: list[Told]) -> None:
    place = last(told, "quote_send")
    told[place] = replace(told[place], answer={**told[place].answer, "status": "declined"})


def repeated(_connection: sa.Connection, told: list[Told]) -> None:
    told.append(replace(told[last(told, "quote_send")], key="another"))


def unkeyed(connection: sa.Connection, _told: list[Told]) -> None:
    connection.execute(sa.delete(tables.idempotency).where(tables.idempotency.c.operation == "quote_create"))


def voted(connection: sa.Connection, _told: list[Told]) -> None:
    connection.execute(sa.update(tables.approval_vote).values(caller="agent:mcp"))


DAMAGES: list[tuple[str, Damage]] = [
    ("I1: quote_create told of Q-lost", answered("quote_create", quote_id="Q-lost")),
    ("I1: quote_price told of edit 99", answered("quote_price", edit=99)),
    ("I1: quote_accept told of order_id", answered("quote_accept", order_id="O-lost")),
    ("I2", answered("quote_create", quote_id="Q-twin")),
    ("I3", answered("quote_send", total=1)),
    ("I4", lambda connection, _told: connection.execute(sa.delete(tables.quote_pricing))),
    ("I4", update(tables.quote_line, net=1)),
    ("I5", update(tables.approval, status="rejected")),
    ("I5", update(tables.quote, status="sent")),
    ("I5", delete(tables.approval_vote)),
    ("I6", update(tables.quote, version=2)),
    ("I6", repeated),
    ("I7", moved),
    ("I8", voted),
    ("I9", update(tables.audit_entry, outcome="FORBIDDEN")),
    ("I9", delete(tables.audit_entry)),
    ("I9: Q-", update(tables.quote_version, notes="Net 180.")),
    ("I11", unkeyed),
    ("I12", delete(tables.agreement_order)),
]


def test_a_whole_deal_violates_nothing(app: App):
    told = whole_deal(app)
    app.flush_audit()
    assert violations(app, told, head=kept_head(app)) == []
    assert len({one.tool for one in told}) == 6


@pytest.mark.parametrize(("found", "damage"), DAMAGES, ids=[f"{n}-{name[:3]}" for n, (name, _) in enumerate(DAMAGES)])
def test_each_damage_is_found(sqlite_app: App, found: str, damage: Damage):
    app = sqlite_app
    told = whole_deal(app)
    app.flush_audit()
    with app.database.writing(app.effects.monotonic() + 10) as connection:
        damage(connection, told)
    assert [one for one in violations(app, told) if one.startswith(found)], violations(app, told)


def test_a_document_that_is_cut_off_or_gone_is_found(sqlite_app: App):
    told = whole_deal(sqlite_app)
    checksum = told[last(told, "quote_pdf")].answer["checksum"].removeprefix("sha256:")
    path = Store(sqlite_app.settings.home).path(checksum)
    path.write_bytes(path.read_bytes()[:1000])
    assert any("is not whole" in one for one in violations(sqlite_app, told))
    path.unlink()
    assert any("its file is not there" in one for one in violations(sqlite_app, told))


def test_a_record_that_is_older_than_the_head_that_was_kept_is_found(sqlite_app: App):
    told = whole_deal(sqlite_app)
    sqlite_app.flush_audit()
    seq, seal = kept_head(sqlite_app)
    assert any(one.startswith("I9") for one in violations(sqlite_app, told, head=(seq + 5, seal)))
