"""A text for the customer that an agent wrote: terms in it need a person, clauses of the library need nobody."""

from typing import Any

import pytest

from cpq.app import App
from tests.support.approvals import ask, decide, person, priced_quote, refused
from tests.support.engine import Tools, import_dicts, product_row
from tests.support.quotes import SEATS

LETTER = "40 % rebate, net 180"
CLAUSE = "Payment is due within 30 days of the date of the invoice, without deduction."


TANK = {"product_id": "prod_tk240v", "quantity": 1}


@pytest.mark.parametrize(
    "letter",
    [
        {"notes": LETTER},
        {"deal_id": LETTER},
        {"line_items": [{**TANK, "notes": LETTER}]},
        {"line_items": [{**TANK, "attributes": {"remark": LETTER}}]},
        {"line_items": [{**TANK, "option_set": LETTER}]},
    ],
    ids=["notes", "reference", "line notes", "attribute", "option set"],
)
def test_a_side_letter_of_an_agent_needs_a_person(app: App, tools: Tools, letter: dict[str, Any]):
    quote_id = priced_quote(tools, 0, **letter)
    [violation] = tools("quote_price", quote_id=quote_id)["policy_violations"]
    assert (violation["policy_id"], violation["required_approver_role"]) == ("free_text_legal", "legal")
    assert refused(tools, "quote_send", quote_id=quote_id, expected_version=1)["code"] == "CONFLICT"
    decide(person(app, "lee", "legal"), ask(tools, quote_id, "legal"))
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"


def test_an_option_that_is_a_text_holds_no_side_letter(app: App, tools: Tools):
    row = product_row(product_type="configurable", options={"engraving": {"type": "text"}})
    import_dicts(app, "products", row)
    price = {"price_book": "list", "currency": "USD", "unit_price": "100", "cost": "20", "product_id": row["id"]}
    import_dicts(app, "prices", price)

    def asked(text: str) -> list[str]:
        line = {"product_id": row["id"], "quantity": 1, "attributes": {"engraving": text}}
        return tools("quote_price", quote_id=priced_quote(tools, 0, line))["required_roles"]

    assert asked(LETTER) == ["legal"]
    assert asked("Line 3, RAL 9010") == []


@pytest.mark.parametrize("note", [CLAUSE, "clause:payment_net_30", "clause:site_access\nclause:payment_net_30"])
def test_a_clause_of_the_library_needs_nobody(tools: Tools, note: str):
    quote_id = priced_quote(tools, 0, {**SEATS, "notes": note}, notes=note)
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"
    read = tools("quote_get", quote_id=quote_id)
    assert [text.splitlines()[-1] for text in (read["quote"]["notes"], read["line_items"][0]["notes"])] == [CLAUSE] * 2


def test_an_unknown_clause_is_refused_with_those_that_exist(tools: Tools):
    quote_id = priced_quote(tools, 0)
    error = refused(tools, "quote_create", account_id="acct_acme_001", line_items=[SEATS], notes="clause:payment_net_3")
    assert (error["code"], error["details"]["field"], error["details"]["nearest"]) == (
        "VALIDATION_ERROR",
        "/notes",
        ["payment_net_30"],
    )
    assert "clause:site_access" in error["details"]["allowed"]
    change = [{"line_id": f"{quote_id}-ql-1", "notes": "clause:none"}]
    error = refused(tools, "quote_update", quote_id=quote_id, expected_version=1, change_lines=change)
    assert error["details"]["field"] == "/change_lines/0/notes"


def test_what_only_people_have_written_and_ordinary_notes_need_nobody(app: App, tools: Tools):
    rob = person(app, "rob", "sales_rep")
    quote_id = priced_quote(rob, 0, notes=LETTER)
    assert rob("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"
    quote_id = priced_quote(tools, 0, notes="Deliver before 1 July, dock 4.")
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"


def test_an_agent_that_changes_a_quote_of_a_person_answers_for_its_text(app: App, tools: Tools):
    rob = person(app, "rob", "sales_rep")
    quote_id = priced_quote(rob, 0, notes=LETTER)
    assert tools("quote_price", quote_id=quote_id, requested_discount_pct=1)["required_roles"] == ["legal"]
    assert tools("approval_preview", quote_id=quote_id)["required_roles"] == ["legal"]


def test_the_clone_that_a_person_makes_of_an_agents_quote_still_needs_legal(app: App, tools: Tools):
    rob = person(app, "rob", "sales_rep")
    clone = rob("quote_clone", quote_id=priced_quote(tools, 0, notes=LETTER))["quote_id"]
    assert rob("quote_price", quote_id=clone)["required_roles"] == ["legal"]
    again = rob("quote_clone", quote_id=clone)["quote_id"]
    assert rob("quote_price", quote_id=again)["required_roles"] == ["legal"]
    assert refused(rob, "quote_send", quote_id=again, expected_version=1)["code"] == "CONFLICT"
    own = rob("quote_clone", quote_id=priced_quote(rob, 0, notes=LETTER))["quote_id"]
    assert rob("quote_price", quote_id=own)["required_roles"] == []
