"""A person with several names is one: what they made under any of them, they do not decide."""

from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, sessions, tokens
from cpq.app.access import ENGINE, Role
from cpq.app.recorded_state import StateDiffersError
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.storage.schema import tables
from tests.support.approvals import ask, decide, person, priced_quote, refused_decision
from tests.support.engine import Tools, write

ADDRESS = "dana@acme.example"


def add_name(app: App, name: str, of: str) -> None:
    def work(tx: Tx) -> dict[str, Any]:
        tokens.add_name(tx, name=name, person=of)
        return {}

    write(app, work)


def bot_of(app: App, owner: str) -> Tools:
    def work(tx: Tx) -> dict[str, Any]:
        tokens.create_token(tx, name="crm-bot", role="agent", owner=owner)
        return {}

    write(app, work)
    return person(app, "crm-bot")


@pytest.mark.parametrize("owner", ["dana", ADDRESS])
def test_nobody_approves_under_another_name_what_their_own_agent_made(app: App, owner: str):
    person(app, "dana", "sales_manager")
    person(app, ADDRESS, "sales_manager")
    made = ask(bot := bot_of(app, owner), priced_quote(bot))
    add_name(app, ADDRESS, "dana")
    for name in ("dana", ADDRESS):
        them = person(app, name)
        assert them.principal.caller == "human:dana"
        assert refused_decision(them, made)["code"] == "FORBIDDEN"
    assert decide(person(app, "mia", "sales_manager"), made)["status"] == "approved"


def test_what_was_made_under_another_name_before_counts_as_made_by_the_person(app: App):
    before = person(app, ADDRESS, "sales_rep")
    made = ask(before, priced_quote(before))
    dana = person(app, "dana", "sales_manager")
    add_name(app, ADDRESS, "dana")
    assert refused_decision(dana, made)["code"] == "FORBIDDEN"


def test_who_signs_in_by_an_address_has_the_rights_of_the_person(app: App):
    person(app, "dana", "sales_manager")
    add_name(app, ADDRESS, "dana")
    found = app.read_unaudited(app.new_call(ENGINE), lambda tx: sessions.person(tx, ADDRESS))
    assert (found.name, found.roles) == ("dana", frozenset({Role.SALES_MANAGER}))


@pytest.mark.parametrize(("name", "of"), [("dana", "dana"), ("dana", "rob"), (ADDRESS, "rob"), ("mcp", "dana")])
def test_a_name_belongs_to_one_person(app: App, name: str, of: str):
    person(app, "dana", "sales_manager")
    person(app, "rob", "sales_rep")
    add_name(app, ADDRESS, "dana")
    with pytest.raises(CpqError) as caught:
        add_name(app, name, of)
    assert caught.value.code in (Code.CONFLICT, Code.VALIDATION_ERROR)


def test_an_invented_name_of_an_approver_opens_nothing(app: App):
    person(app, "vera", "vp_sales")
    app.flush_audit()
    with app.database.writing(app.effects.monotonic() + 10) as connection:
        forged = {"tenant_id": "main", "name": "mallory@acme.example", "kind": "human", "person": "vera"}
        known = connection.scalar(sa.select(tables.principal.c.created_at).limit(1))
        connection.execute(sa.insert(tables.principal).values(**forged, created_at=known))
    with pytest.raises(StateDiffersError):
        app.read_unaudited(app.new_call(ENGINE), lambda tx: sessions.person(tx, "mallory@acme.example"))
