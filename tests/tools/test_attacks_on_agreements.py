"""Attacks on agreements: a change gets no more past the approvals than a first sale would."""

from typing import Any

import pytest

from cpq.app import App
from tests.support.approvals import decide, person, refused
from tests.support.engine import Tools, import_dicts, product_row
from tests.support.quotes import SEATS, new_quote
from tests.tools.test_agreements import START, amended, line_of, sold

DAY = "2027-06-01"


@pytest.fixture
def seller(app: App) -> Tools:
    return person(app, "rita", "sales_rep")


def asked(seller: Tools, change: dict[str, Any], **discount: Any) -> list[str]:
    """The roles that a change needs."""
    roles: list[str] = seller("quote_price", quote_id=change["quote_id"], **discount)["required_roles"]
    return roles


def set_quantity(line_id: str, quantity: Any, **more: Any) -> dict[str, Any]:
    return {"action": "set_quantity", "line_id": line_id, "quantity": quantity, **more}


@pytest.mark.parametrize(
    "change",
    [
        {"action": "swap_product", "product_id": "prod_app_leak", "unit_price": 1, "price_reason": "x"},
        {"action": "set_quantity", "quantity": 200, "discount_pct": 90},
        {"action": "remove_line", "quantity": 1},
        {"action": "change_term", "end_date": "2028-11-30", "discount_pct": 50},
        {"action": "change_price", "discount_pct": 1, "quantity": 1000},
    ],
    ids=lambda change: change["action"],
)
def test_a12_a_price_hidden_in_another_change_is_refused(seller: Tools, change: dict[str, Any]):
    id_ = sold(seller)["agreement_id"]
    given = {**change, "line_id": line_of(seller, id_)}
    error = refused(seller, "agreement_amend", agreement_id=id_, effective_date=DAY, changes=[given])
    hidden = [*change][-2 if change["action"] == "swap_product" else -1]
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", f"/changes/0/{hidden}")
    assert {"line_id", *error["details"]["allowed"]} == {*error["details"]["allowed"]}


def test_a12_a_term_that_ends_before_its_change_is_refused(seller: Tools):
    id_ = sold(seller)["agreement_id"]
    change = {"action": "change_term", "line_id": line_of(seller, id_), "end_date": "2027-05-31"}
    error = refused(seller, "agreement_amend", agreement_id=id_, effective_date=DAY, changes=[change])
    assert (error["details"]["field"], error["details"]["minimum"]) == ("/changes/0/end_date", DAY)


def test_a15_a_target_total_counts_what_a_change_gives_back(seller: Tools):
    id_ = sold(seller)["agreement_id"]
    change = amended(seller, id_, DAY, set_quantity(line_of(seller, id_), 200))
    priced = seller("quote_price", quote_id=change["quote_id"], target_total=200)["pricing"]
    assert (priced["subtotal"], priced["discount_total"], priced["total"]) == (250.69, 50.69, 200)


def test_a15_more_of_an_item_of_no_catalogue_goes_to_the_deal_desk_again(app: App, seller: Tools):
    desk = person(app, "dee", "deal_desk")
    item = {"custom": {"name": "Freight", "unit_price": 100, "cost": 10}, "quantity": 1}
    quote_id = new_quote(seller, SEATS, item, start_date=START)
    seller("quote_price", quote_id=quote_id)
    decide(desk, seller("approval_request", quote_id=quote_id, justification="x"))
    seller("quote_send", quote_id=quote_id, expected_version=1)
    moved = seller("quote_accept", quote_id=quote_id, expected_version=1)
    bought = seller("order_get", order_id=moved["order_id"])["lines"][1]["line_id"]
    more = amended(seller, moved["agreement_id"], DAY, set_quantity(bought, 2))
    assert asked(seller, more) == ["deal_desk"]
    ended = amended(seller, moved["agreement_id"], DAY, {"action": "remove_line", "line_id": bought})
    assert asked(seller, ended) == []


def test_a15_the_margin_of_a_change_is_by_what_it_costs_us_today(app: App, seller: Tools):
    product = product_row()
    import_dicts(app, "products", product)
    price = {"price_book": "list", "product_id": product["id"], "currency": "USD", "unit_price": "100"}
    price |= {"selling_model": "term", "billing_period": "monthly"}
    import_dicts(app, "prices", {**price, "cost": "10"})
    id_ = sold(seller, {"product_id": product["id"], "quantity": 10})["agreement_id"]
    more = amended(seller, id_, DAY, set_quantity(line_of(seller, id_), 20))
    assert asked(seller, more) == []
    import_dicts(app, "prices", {**price, "cost": "99"})
    more = amended(seller, id_, DAY, set_quantity(line_of(seller, id_), 20))
    assert (more["net"], asked(seller, more)) == (6000, ["finance"])
    assert asked(seller, seller("agreement_renew", agreement_id=id_)) == ["finance"]
