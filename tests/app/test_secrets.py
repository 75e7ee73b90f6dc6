"""Who acts in whose name: whose secret it takes, and what the record says of it."""

from typing import Any

import pytest
import sqlalchemy as sa

from cpq.app import App, tokens
from cpq.app.access import OPERATOR, Principal
from cpq.base.errors import Code, CpqError
from cpq.storage.schema import tables
from tests.support.approvals import ask, person, priced_quote, refused_decision
from tests.support.engine import Tools


def secret_of(app: App, name: str, role: str, **options: Any) -> str:
    def work(tx: Any) -> str:
        return tokens.create_token(tx, name=name, role=role, **options)[1]

    return app.upkeep(app.new_call(OPERATOR), work)


def acting(app: App, presented: str, name: str) -> Principal:
    return app.read_unaudited(app.new_call(OPERATOR), lambda tx: tokens.act_as(tx, presented, name))


def is_guarded(app: App, name: str, role: str, *, is_person: bool = False) -> bool:
    call = app.new_call(OPERATOR)
    return app.read_unaudited(call, lambda tx: tokens.is_guarded(tx, name, role, is_person=is_person))


def test_the_first_administrator_guards_every_role_that_decides(app: App):
    guarded = {"admin", "sales_manager", "deal_desk", "vp_sales", "finance", "legal"}
    app.upkeep(app.new_call(OPERATOR), lambda tx: tokens.grant(tx, name="dana", role="sales_manager"))
    app.upkeep(app.new_call(OPERATOR), lambda tx: tokens.grant(tx, name="alex", role="admin"))
    secret_of(app, "bot", "agent")
    assert not any(is_guarded(app, "new", role, is_person=True) for role in guarded), "nobody has a secret to ask for"
    token_id = secret_of(app, "alice", "admin").split("_")[1]
    assert {role for role in (*guarded, "agent", "sales_rep") if is_guarded(app, "new", role)} == guarded
    assert is_guarded(app, "new", "sales_rep", is_person=True), "a program cannot make itself a person"
    assert is_guarded(app, "dana", "sales_rep"), "any secret of hers would prove that one is dana"
    app.upkeep(app.new_call(OPERATOR), lambda tx: tokens.revoke_token(tx, token_id))
    assert is_guarded(app, "new", "admin"), "revoking the last one opens nothing"


def test_an_administrator_who_made_a_quote_does_not_approve_it_in_anothers_name(app: App):
    dana = secret_of(app, "dana", "sales_manager")
    alex = secret_of(app, "alex", "admin")
    secret_of(app, "alex", "sales_rep")
    with pytest.raises(CpqError) as stranger:
        acting(app, secret_of(app, "rita", "sales_rep"), "dana")
    assert stranger.value.code is Code.FORBIDDEN
    asked = ask(person(app, "alex"), priced_quote(person(app, "alex")))
    for_dana = Tools(app, principal=acting(app, alex, "dana"))
    assert refused_decision(for_dana, asked)["code"] == "FORBIDDEN"
    assert Tools(app, principal=acting(app, dana, "dana"))("approval_decide", **_approval(asked))["acted_as"] == (
        "sales_manager"
    )


def test_nobody_approves_what_they_made_in_anothers_name(app: App):
    alex = secret_of(app, "alex", "admin")
    secret_of(app, "rita", "sales_rep")
    secret_of(app, "alex", "sales_manager")
    for_rita = Tools(app, principal=acting(app, alex, "rita"))
    asked = ask(for_rita, priced_quote(for_rita))
    assert refused_decision(person(app, "alex"), asked)["code"] == "FORBIDDEN"


def test_the_record_names_the_administrator_who_acted_for_a_person(app: App):
    tools = Tools(app)
    secret_of(app, "dana", "sales_manager")
    alex = secret_of(app, "alex", "admin")
    asked = ask(tools, priced_quote(tools))
    decided = Tools(app, principal=acting(app, alex, "dana"))("approval_decide", **_approval(asked))
    assert (decided["decided_by"], decided["acted_as"]) == ("human:dana", "sales_manager, done by human:alex")
    app.flush_audit()
    with app.database.reading() as connection:
        entry = tables.audit_entry.c
        who = connection.scalars(sa.select(entry.caller).where(entry.operation == "approval_decide")).all()
    assert who == ["human:alex acting for human:dana"]


def test_a_decision_in_anothers_name_ends_with_the_administrators_token(app: App):
    tools = Tools(app)
    secret_of(app, "dana", "sales_manager")
    alex = secret_of(app, "alex", "admin")
    asked = ask(tools, priced_quote(tools))
    for_dana = Tools(app, principal=acting(app, alex, "dana"))
    app.upkeep(app.new_call(OPERATOR), lambda tx: tokens.revoke_token(tx, alex.split("_")[1]))
    assert refused_decision(for_dana, asked)["code"] == "FORBIDDEN"


def _approval(asked: dict[str, Any]) -> dict[str, Any]:
    return {"approval_id": asked["approval_id"], "decision": "approve", "fingerprint": asked["fingerprint"]}
