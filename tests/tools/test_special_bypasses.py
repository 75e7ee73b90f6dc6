"""Ways around an approval by special terms, each of them tried: all are discounts or facts like any other."""

from typing import Any

import pytest

from cpq.app import App
from cpq.base.settings import Settings
from tests.support.approvals import ask, decide, person, priced_quote, refused
from tests.support.engine import StillEffects, Tools, open_app
from tests.support.quotes import new_quote, sent_quote
from tests.tools.test_split_deals import line, roles

RENT = {"product_id": "prod_app_leak", "quantity": 10}
"""79 a month."""
TERM = {"term_months": 12, "start_date": "2027-01-01"}
BECAUSE = {"price_reason": "matches the offer of a competitor"}
FREE_MONTH = [{"months": 11}, {"months": 1, "discount_pct": 100}]


@pytest.mark.parametrize(
    ("asked", "terms", "role"),
    [
        ({"unit_price": 71, **BECAUSE}, {}, "sales_manager"),
        ({"unit_price": 60, **BECAUSE}, {}, "vp_sales"),
        ({"discount_amount": 900}, {}, "sales_manager"),
        ({"ramp": FREE_MONTH}, {}, "sales_manager"),
        ({"ramp": [{"months": 12, "unit_price": 70}], **BECAUSE}, {}, "sales_manager"),
        ({}, {"valid_until": "2026-12-31"}, "sales_manager"),
        ({}, {"valid_until": "2027-03-31"}, "deal_desk"),
        ({"start_date": "2027-06-01", "term_months": 12, "discount_amount": 900}, {}, "sales_manager"),
    ],
    ids=["price", "low price", "amount off", "free month", "price in a ramp", "validity", "long validity", "later"],
)
def test_every_special_term_needs_its_approval(tools: Tools, asked: dict[str, Any], terms: dict[str, Any], role: str):
    quote_id = new_quote(tools, {**RENT, **asked}, **TERM, **terms)
    assert roles(tools, quote_id) == [role]
    error = refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert error["code"] == "CONFLICT"


def test_an_item_of_no_catalogue_and_a_target_need_their_approvals(app: App, tools: Tools):
    freight = {"custom": {"name": "Freight", "unit_price": 500, "cost": 100}, "quantity": 1}
    quote_id = new_quote(tools, RENT, freight, **TERM)
    assert roles(tools, quote_id) == ["deal_desk"]
    refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    quote_id = new_quote(tools, RENT, **TERM)
    total = tools("quote_price", quote_id=quote_id)["pricing"]["total"]
    for target, role in ((round(total * 0.9, 2), "sales_manager"), (round(total * 0.75, 2), "vp_sales")):
        assert tools("quote_price", quote_id=quote_id, target_total=target)["required_roles"] == [role]
        refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    refused(tools, "quote_accept", quote_id=quote_id, expected_version=1)


@pytest.mark.parametrize(
    "change",
    [
        {"unit_price": 74, **BECAUSE},
        {"discount_amount": 900},
        {"ramp": FREE_MONTH},
        {"start_date": "2027-03-01"},
        {"term_months": 24},
    ],
    ids=["lower price", "amount instead of price", "free month instead", "later", "longer"],
)
def test_an_approval_is_not_kept_for_another_special_term(app: App, tools: Tools, change: dict[str, Any]):
    dana = person(app, "dana", "sales_manager")
    quote_id = new_quote(tools, {**RENT, "unit_price": 74.5, **BECAUSE}, **TERM)
    tools("quote_price", quote_id=quote_id)
    decide(dana, ask(tools, quote_id))
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    clear = ["unit_price"] if change.keys() & {"ramp", "discount_amount"} else []
    changed = {"line_id": f"{quote_id}-ql-1", **change, "clear": clear}
    tools("quote_update", quote_id=quote_id, expected_version=2, change_lines=[changed])
    assert roles(tools, quote_id) == ["sales_manager"]
    refused(tools, "quote_send", quote_id=quote_id, expected_version=2)


def test_slices_under_as_many_deals_are_caught_by_the_discount_of_the_account(app: App, tools: Tools):
    """Each slice is at a discount that is nobody's, and below every size."""
    slice_ = line(app, "40000")
    for number in range(2):
        quote_id = priced_quote(tools, 4, slice_, deal_id=f"D-{number}")
        assert roles(tools, quote_id) == []
        tools("quote_send", quote_id=quote_id, expected_version=1)
    quote_id = priced_quote(tools, 4, slice_, deal_id="D-9")
    [violation] = tools("quote_price", quote_id=quote_id, requested_discount_pct=4)["policy_violations"]
    assert (violation["policy_id"], violation["actual"], violation["required_approver_role"]) == (
        "account_discount_sales_manager",
        4,
        "sales_manager",
    )
    refused(tools, "quote_send", quote_id=quote_id, expected_version=1)
    assert tools("quote_price", quote_id=quote_id, requested_discount_pct=0)["required_roles"] == []
    override = {**slice_, "unit_price": 38400, **BECAUSE}
    assert roles(tools, new_quote(tools, override, deal_id="D-10")) == ["sales_manager"]
    assert roles(tools, new_quote(tools, {**slice_, "discount_amount": 1600}, deal_id="D-11")) == ["sales_manager"]


def test_large_slices_at_a_large_discount_go_to_the_vp_sales(app: App, tools: Tools):
    dana, slice_ = person(app, "dana", "sales_manager"), line(app, "95000")
    for number in range(3):
        quote_id = priced_quote(tools, 16, slice_, deal_id=f"D-{number}")
        assert roles(tools, quote_id) == ["sales_manager"]
        decide(dana, ask(tools, quote_id))
        tools("quote_send", quote_id=quote_id, expected_version=1)
    assert roles(tools, priced_quote(tools, 16, slice_, deal_id="D-9")) == ["vp_sales"]


def test_the_discount_of_an_account_forgets_what_is_older_than_90_days(store: Settings, clock: StillEffects):
    app = open_app(store, clock)
    tools, slice_ = Tools(app), line(app, "60000")
    first = sent_quote(tools, {**slice_, "discount_pct": 5}, deal_id="D-1")
    asked = {**slice_, "discount_pct": 5}
    assert roles(tools, new_quote(tools, asked, deal_id="D-2")) == ["sales_manager"]
    person(app, "rob", "sales_rep")("quote_accept", quote_id=first, expected_version=1)
    clock.advance(days=119)
    assert roles(tools, new_quote(tools, asked, deal_id="D-3")) == ["sales_manager"]
    clock.advance(days=3)
    assert roles(tools, new_quote(tools, asked, deal_id="D-4")) == []
    app.close()
