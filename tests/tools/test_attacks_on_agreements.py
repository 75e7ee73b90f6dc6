"""Attacks on agreements: a change gets no more past the approvals than a first sale would."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cpq.app import App
from cpq.base.settings import Settings, shipped
from tests.support.approvals import decide, person, refused
from tests.support.engine import Tools, import_dicts, open_app, product_row
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


def approved(app: App, seller: Tools, change: dict[str, Any]) -> dict[str, Any]:
    """The order of a change that everybody who is asked approves."""
    asked(seller, change)
    answer = seller("approval_request", quote_id=change["quote_id"], justification="x")
    for one in [answer, *answer["also_requested"]]:
        role = one["approver_role"]
        decide(person(app, f"{role}-{change['number'].lower()}", role), answer, role)
    seller("quote_send", quote_id=change["quote_id"], expected_version=1)
    return seller("quote_accept", quote_id=change["quote_id"], expected_version=1)


def test_a15_a_credit_in_slices_is_added_up(app: App, seller: Tools):
    lines = [{"product_id": "prod_app_leak", "quantity": 10} for _ in range(2)]  # 9,480 a year each.
    id_ = sold(seller, *lines)["agreement_id"]
    first, second = line_of(seller, id_, 0), line_of(seller, id_, 1)
    change = amended(seller, id_, DAY, {"action": "remove_line", "line_id": first})
    assert (change["net"], asked(seller, change)) == (-4740, ["sales_manager"])
    approved(app, seller, change)
    change = amended(seller, id_, START, {"action": "remove_line", "line_id": second})
    assert (change["net"], asked(seller, change)) == (-9480, ["sales_manager", "finance"])


def test_a15_a_credit_that_waits_counts_for_the_next_one(app: App, seller: Tools):
    lines = [{"product_id": "prod_app_leak", "quantity": 10} for _ in range(2)]
    id_ = sold(seller, *lines)["agreement_id"]
    for place, roles in enumerate((["sales_manager"], ["sales_manager", "finance"])):
        change = amended(seller, id_, "2026-12-02", {"action": "remove_line", "line_id": line_of(seller, id_, place)})
        assert asked(seller, change) == roles
        seller("approval_request", quote_id=change["quote_id"], justification="x")


def test_a15_what_a_change_sells_counts_though_it_gives_as_much_back(app: App, seller: Tools):
    id_ = sold(seller, {"product_id": "prod_app_leak", "quantity": 100})["agreement_id"]  # 94,800 a year.
    swap = {"action": "swap_product", "line_id": line_of(seller, id_), "product_id": "prod_pro_v2", "quantity": 9480}
    change = amended(seller, id_, START, swap)
    assert change["net"] == 0
    more = amended(seller, id_, START, {"action": "add_line", "product_id": "prod_pro_v2", "quantity": 5000})
    assert asked(seller, more) == ["deal_desk"], "with the first sale it is above 100,000"


@pytest.mark.parametrize(
    "change",
    [
        {"action": "set_quantity", "quantity": 1},
        {"action": "change_price", "discount_pct": 90},
        {"action": "swap_product", "product_id": "prod_pro_v2", "quantity": 1},
    ],
    ids=lambda change: change["action"],
)
def test_a15_a_change_that_pays_out_what_an_end_would_not_goes_to_finance(
    app: App, seller: Tools, change: dict[str, Any]
):
    product = product_row()
    import_dicts(app, "products", product)
    price = {"price_book": "list", "product_id": product["id"], "currency": "USD", "unit_price": "100", "cost": "1"}
    import_dicts(app, "prices", price)
    moved = sold(seller, {"product_id": product["id"], "quantity": 10})
    line_id = seller("order_get", order_id=moved["order_id"])["lines"][0]["line_id"]
    ended = amended(seller, moved["agreement_id"], DAY, {"action": "remove_line", "line_id": line_id})
    assert ended["net"] == 0, "it was delivered"
    less = amended(seller, moved["agreement_id"], DAY, {**change, "line_id": line_id})
    assert less["net"] < 0
    assert "finance" in asked(seller, less)


def test_a15_a_change_of_long_ago_goes_to_finance(seller: Tools):
    id_ = sold(seller, start_date="2026-10-01")["agreement_id"]
    line_id = seller("agreement_get", agreement_id=id_)["lines"][0]["line_id"]
    more = amended(seller, id_, "2026-10-16", set_quantity(line_id, 151))
    assert asked(seller, more) == []
    more = amended(seller, id_, "2026-10-15", set_quantity(line_id, 151))
    assert asked(seller, more) == ["finance"]


def usual_uplift(store: Settings, folder: Path, percent: int) -> Settings:
    """The same store under the shipped policies with another uplift of renewals."""
    shutil.copytree(shipped("policies"), folder)
    terms = folder / "terms.yaml"
    text = terms.read_text(encoding="utf-8")
    terms.write_text(text.replace("renewal_uplift_percent: 0", f"renewal_uplift_percent: {percent}"), encoding="utf-8")
    return store.model_copy(update={"policies_dir": folder})


def test_a13_prices_go_on_below_the_usual_uplift_only_with_approval(store: Settings, tmp_path: Path):
    with closing(open_app(usual_uplift(store, tmp_path / "policies", 5))) as app:
        seller = person(app, "rita", "sales_rep")
        id_ = sold(seller)["agreement_id"]
        usual = seller("agreement_renew", agreement_id=id_)
        assert (usual["net"], asked(seller, usual)) == (1575, [])
        assert asked(seller, usual, requested_discount_pct=1) == ["sales_manager"], "a discount takes it back"
        assert asked(seller, usual, requested_discount_amount=1) == ["sales_manager"]
        for less in ({"uplift_pct": 4.9}, {"price": "list"}, {"uplift_pct": 0, "term_months": 60}):
            assert asked(seller, seller("agreement_renew", agreement_id=id_, **less)) == ["sales_manager"], less
        assert asked(seller, seller("agreement_renew", agreement_id=id_, uplift_pct=7)) == []
        line_id = line_of(seller, id_)
        longer = amended(seller, id_, DAY, {"action": "change_term", "line_id": line_id, "end_date": "2030-11-30"})
        assert asked(seller, longer) == ["sales_manager"], "a longer term is a renewal by another name"
        assert asked(seller, amended(seller, id_, DAY, set_quantity(line_id, 200))) == []
