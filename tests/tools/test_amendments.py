"""Amendments through the tools (A-12, A-16): lines with several runs of days, and changes of days that are over."""

from typing import Any

import pytest

from cpq.app import App
from cpq.base.errors import CpqError
from tests.support import engine
from tests.support.approvals import person
from tests.support.engine import Tools
from tests.support.quotes import sent_quote

PRO = "prod_pro_v2"


@pytest.fixture
def seller(app: App) -> Tools:
    return person(app, "rita", "sales_rep")


def sold(seller: Tools, *lines: dict[str, Any]) -> tuple[str, list[str]]:
    """An agreement of the year from December 2026, and its lines."""
    moved = seller("quote_accept", quote_id=sent_quote(seller, *lines, start_date="2026-12-01"), expected_version=1)
    owned = seller("agreement_get", agreement_id=moved["agreement_id"], as_of="2026-12-01")
    return moved["agreement_id"], [line["line_id"] for line in owned["lines"]]


def amended(seller: Tools, agreement_id: str, day: str, *changes: dict[str, Any]) -> dict[str, Any]:
    return seller("agreement_amend", agreement_id=agreement_id, effective_date=day, changes=list(changes))


def accepted(seller: Tools, change: dict[str, Any]) -> dict[str, Any]:
    seller("quote_price", quote_id=change["quote_id"])
    seller("quote_send", quote_id=change["quote_id"], expected_version=1)
    return seller("quote_accept", quote_id=change["quote_id"], expected_version=1)


def owned_on(seller: Tools, agreement_id: str, day: str) -> list[tuple[Any, ...]]:
    lines = seller("agreement_get", agreement_id=agreement_id, as_of=day)["lines"]
    return [(line["quantity"], line["unit_price_per_period"], line["end_date"]) for line in lines]


def test_a12_a_ramp_that_is_amended_stays_a_ramp(seller: Tools):
    ramp = [{"months": 6, "quantity": 20}, {"months": 6, "uplift_pct": 10}]
    id_, (line,) = sold(seller, {"product_id": PRO, "quantity": 40, "ramp": ramp})
    assert (owned_on(seller, id_, "2027-03-01"), owned_on(seller, id_, "2027-06-01")) == (
        [(20, 10, "2027-11-30")],
        [(40, 11, "2027-11-30")],
    )
    change = amended(seller, id_, "2027-03-01", {"action": "set_quantity", "line_id": line, "quantity": 60})
    assert [(one["start_date"], one["end_date"], one["quantity_before"]) for one in change["lines"]] == [
        ("2027-03-01", "2027-05-31", 20),
        ("2027-06-01", "2027-11-30", 40),
    ]
    # Half a year of 20 at 10 is 100, of which 92 of 182 days are left; 40 at 11 are 220 from June on.
    assert [(one["price_after"], one["credit"]) for one in change["lines"]] == [(151.65, 50.55), (330, 220)]
    assert change["arr_change"] == 400
    accepted(seller, change)
    assert (owned_on(seller, id_, "2027-03-01"), owned_on(seller, id_, "2027-06-01")) == (
        [(60, 10, "2027-11-30")],
        [(60, 11, "2027-11-30")],
    )


def test_a16_a_change_of_days_before_another_gives_each_day_back_once(seller: Tools):
    id_, (line,) = sold(seller, {"product_id": PRO, "quantity": 20})
    accepted(seller, amended(seller, id_, "2027-09-01", {"action": "set_quantity", "line_id": line, "quantity": 30}))
    change = amended(seller, id_, "2027-06-01", {"action": "set_quantity", "line_id": line, "quantity": 40})
    # June to August have 92 of 365 days, September to November 91.
    assert [(one["price_after"], one["credit"]) for one in change["lines"]] == [(100.82, 50.41), (99.73, 74.79)]
    order = accepted(seller, change)
    detail = seller("order_get", order_id=order["order_id"], include_schedule=True)
    assert [(due["start_date"], due["end_date"], due["amount"]) for due in detail["schedule"]] == [
        ("2027-06-01", "2027-08-31", -50.41),
        ("2027-06-01", "2027-08-31", 100.82),
        ("2027-09-01", "2027-11-30", -74.79),
        ("2027-09-01", "2027-11-30", 99.73),
    ]


def test_a10_each_day_names_the_order_that_says_what_is_owned(seller: Tools):
    id_, (line,) = sold(seller, {"product_id": PRO, "quantity": 20})
    change = amended(seller, id_, "2027-06-01", {"action": "set_quantity", "line_id": line, "quantity": 30})
    later = accepted(seller, change)["order_id"]
    first = seller("order_list", agreement_id=id_)["items"][-1]["id"]
    sources = [
        seller("agreement_get", agreement_id=id_, as_of=day)["lines"][0]["source_order_id"]
        for day in ("2027-05-31", "2027-06-01")
    ]
    assert sources == [first, later]


def test_a12_a_swap_to_the_same_product_changes_nothing(seller: Tools):
    id_, (line,) = sold(seller, {"product_id": PRO, "quantity": 20})
    change = amended(seller, id_, "2027-06-01", {"action": "swap_product", "line_id": line, "product_id": PRO})
    assert (change["outcome"], change["quote_id"]) == ("no_change", None)


def test_a12_a_line_cannot_end_before_it_changes(seller: Tools):
    id_, (line,) = sold(seller, {"product_id": PRO, "quantity": 20})
    error = seller.error(
        "agreement_amend",
        agreement_id=id_,
        effective_date="2027-06-01",
        changes=[{"action": "change_term", "line_id": line, "end_date": "2027-05-01"}],
    )
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/changes/0/end_date")
    assert error["details"]["minimum"] == "2027-06-01"


QUARTERLY = {"unit_price": "300", "billing_period": "quarterly", "price_book": "list", "currency": "USD", "cost": "1"}


def imported(app: App, **price: Any) -> str:
    """A product whose one price came from a file."""
    product = engine.product_row(category="services", product_type="service")
    engine.import_dicts(app, "products", product)
    engine.import_dicts(app, "prices", {**QUARTERLY, **price, "product_id": product["id"]})
    return str(product["id"])


@pytest.mark.parametrize(
    ("credit", "net"), [("none", 0), ("prorated", -753.26), ("full_periods", -600), (None, -753.26)]
)
def test_a14_a_cancellation_gives_back_what_the_imported_price_says(
    app: App, seller: Tools, credit: str | None, net: float
):
    product = imported(app, **({"cancellation_credit": credit} if credit else {}))
    id_, (line,) = sold(seller, {"product_id": product, "quantity": 1})
    owned = seller("agreement_get", agreement_id=id_, as_of="2027-01-01")["lines"][0]
    assert (owned["billed"], owned["cancellation_credit"]) == ("advance", credit or "prorated")
    # 47 of the 92 days of the quarter are left, and two quarters.
    change = seller(
        "agreement_cancel", agreement_id=id_, effective_date="2027-04-15", lines=[line], reason="They moved away."
    )
    assert change["net"] == net


@pytest.mark.parametrize(
    ("billed", "days"),
    [
        ("advance", ["2026-12-01", "2027-03-01", "2027-06-01", "2027-09-01"]),
        ("arrears", ["2027-03-01", "2027-06-01", "2027-09-01", "2027-12-01"]),
    ],
)
def test_a02_a_period_is_due_when_the_imported_price_says(app: App, seller: Tools, billed: str, days: list[str]):
    product = imported(app, billed=billed)
    shown = seller("catalog_get", product_id=product)["prices"]
    assert [price.get("billed", "advance") for price in shown] == [billed]
    id_, _ = sold(seller, {"product_id": product, "quantity": 1})
    (order,) = seller("order_list", agreement_id=id_)["items"]
    detail = seller("order_get", order_id=order["id"], include_schedule=True)
    assert [due["due_date"] for due in detail["schedule"]] == days
    assert (detail["lines"][0]["billed"], detail["lines"][0]["net"]) == (billed, 1200)


def test_a02_a_purchase_has_no_period_to_be_billed(app: App):
    product = imported(app)
    once = {**QUARTERLY, "billing_period": "one_time", "billed": "arrears", "product_id": product}
    with pytest.raises(CpqError) as refused:
        engine.import_dicts(app, "prices", once)
    assert "billed and cancellation_credit go with a billing period" in str(refused.value.details)
