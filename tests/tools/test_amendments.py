"""Amendments through the tools (A-12, A-16): lines with several runs of days, and changes of days that are over."""

from typing import Any

import pytest

from cpq.app import App
from cpq.base.errors import CpqError
from tests.support import engine
from tests.support.approvals import follow, person, refused
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


def product(app: App, *rows: dict[str, Any], **values: Any) -> str:
    """A product with prices of its own."""
    made = engine.product_row(category="services", product_type=values.pop("product_type", "service"), **values)
    engine.import_dicts(app, "products", made)
    price = {"product_id": made["id"], "price_book": "list", "currency": "USD", "cost": "1"}
    engine.import_dicts(app, "prices", *({**price, **row} for row in rows))
    return str(made["id"])


def approved(app: App, seller: Tools, quote_id: str) -> None:
    """Priced, and approved by the manager whom what is given back asks for."""
    priced = seller("quote_price", quote_id=quote_id)
    request = seller("approval_request", quote_id=quote_id, justification="As in the contract.")
    manager = person(app, "mona", "sales_manager")
    manager(
        "approval_decide", approval_id=request["approval_id"], decision="approve", fingerprint=priced["fingerprint"]
    )


def apart(app: App) -> str:
    """A bundle of a monthly and a yearly product."""
    monthly = product(app, {"unit_price": "10", "billing_period": "monthly"})
    yearly = product(app, {"unit_price": "240", "billing_period": "yearly"})
    parts = [{"kind": "component", "product_id": id_} for id_ in (monthly, yearly)]
    once = {"unit_price": "0"}
    return product(app, once, product_type="bundle", bundle={"pricing": "components"}, relationships=parts)


def test_a12_a_part_of_a_bundle_is_not_priced_alone_and_the_bundle_is_sold_again(app: App, seller: Tools):
    bundle = apart(app)
    id_, lines = sold(seller, {"product_id": bundle, "quantity": 1})
    error = refused(
        seller,
        "agreement_amend",
        agreement_id=id_,
        effective_date="2027-06-01",
        changes=[{"action": "set_quantity", "line_id": lines[0], "quantity": 2}],
    )
    assert (error["code"], error["details"]["parts"]) == ("CONFLICT", lines)
    assert follow(seller, error)["agreement"]["id"] == id_
    again = [{"action": "remove_line", "line_id": line} for line in error["details"]["parts"]]
    again.append({"action": "add_line", "product_id": bundle, "quantity": 2})
    change = amended(seller, id_, "2027-06-01", *again)
    # Half a year of 120, and 183 of 365 days of 240, are given back and sold twice.
    assert [line["difference"] for line in change["lines"]] == [-60, -120.33, 360.66]
    approved(app, seller, change["quote_id"])
    seller("quote_send", quote_id=change["quote_id"], expected_version=1)
    seller("quote_accept", quote_id=change["quote_id"], expected_version=1)
    assert [line[0] for line in owned_on(seller, id_, "2027-06-01")] == [2, 2]


def test_a13_a_part_of_a_bundle_is_renewed_at_todays_price(app: App, seller: Tools):
    id_, _ = sold(seller, {"product_id": apart(app), "quantity": 1})
    error = refused(seller, "agreement_renew", agreement_id=id_)
    assert (error["code"], error["details"]["field"]) == ("CONFLICT", "/price")
    change = follow(seller, error)
    assert [line["price_after"] for line in change["lines"]] == [120, 240]


def test_a12_what_another_line_requires_is_not_removed(app: App, seller: Tools):
    needed = product(app, {"unit_price": "10", "billing_period": "monthly"})
    needs = product(
        app,
        {"unit_price": "20", "billing_period": "monthly"},
        relationships=[{"kind": "requires", "product_id": needed}],
    )
    id_, lines = sold(seller, *({"product_id": one, "quantity": 1} for one in (needed, needs)))
    change = amended(seller, id_, "2027-06-01", {"action": "remove_line", "line_id": lines[0]})
    assert change["warnings"] == [f"{needs} requires {needed}, which the account would not own."]
    approved(app, seller, change["quote_id"])
    error = refused(seller, "quote_send", quote_id=change["quote_id"], expected_version=1)
    assert error["code"] == "CONFIGURATION_INVALID"
    assert not follow(seller, error).get("error")
    both = amended(seller, id_, "2027-06-01", *({"action": "remove_line", "line_id": line} for line in lines))
    assert both["warnings"] == []
    more = amended(seller, id_, "2027-06-01", {"action": "add_line", "product_id": needs, "quantity": 1})
    assert more["warnings"] == []
