"""Lines that are charged by their use, in agreements (G-07, A-10 to A-15): what was committed to is kept or changed."""

from typing import Any

import pytest

from cpq.app import App
from tests.support.approvals import decide, follow, person, refused
from tests.support.engine import Tools
from tests.support.quotes import ACME

API, HOURS, STORAGE = "prod_use_api", "prod_use_hours", "prod_use_storage"
DAY = "2027-06-01"


@pytest.fixture
def seller(app: App) -> Tools:
    return person(app, "rita", "sales_rep")


def sold(seller: Tools, *lines: dict[str, Any]) -> tuple[str, list[str]]:
    """An agreement of the year from December 2026, and its lines."""
    terms: dict[str, Any] = {"account_id": ACME, "term_months": 12, "start_date": "2026-12-01"}
    quote_id = seller("quote_create", **terms, line_items=[{"quantity": 1, **line} for line in lines])["quote_id"]
    moved = accepted(seller, quote_id)
    owned = seller("agreement_get", agreement_id=moved["agreement_id"], as_of="2026-12-01")
    return moved["agreement_id"], [line["line_id"] for line in owned["lines"]]


def accepted(seller: Tools, quote_id: str) -> dict[str, Any]:
    seller("quote_price", quote_id=quote_id)
    seller("quote_send", quote_id=quote_id, expected_version=1)
    return seller("quote_accept", quote_id=quote_id, expected_version=1)


def amended(seller: Tools, agreement_id: str, *changes: dict[str, Any]) -> dict[str, Any]:
    return seller("agreement_amend", agreement_id=agreement_id, effective_date=DAY, changes=list(changes))


def amounts(change: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(line["price_after"], line["credit"], line.get("commitment")) for line in change["lines"]]


FOR_THE_TERM = {"product_id": API, "commitment": {"amount": 12000, "per": "term"}}
HALF_A_MILLION = {"product_id": API, "commitment": {"quantity": 500_000}}


def test_a10_g07_an_agreement_shows_what_is_committed_and_the_rates(seller: Tools):
    id_, _ = sold(seller, FOR_THE_TERM, {"product_id": HOURS})
    term, open_line = seller("agreement_get", agreement_id=id_, as_of=DAY)["lines"]
    assert (term["commitment"], term["unit_price_per_period"]) == ({"amount": 1000, "per": "month"}, 1000)
    assert term["rate_card"]["rates"].startswith("graduated per API call, monthly; to 100000 0.002;")
    assert ("commitment" in open_line, open_line["rate_card"]["committed_per_period"]) == (False, 0)
    (order,) = seller("order_list", agreement_id=id_)["items"]
    lines = seller("order_get", order_id=order["id"])["lines"]
    assert [line.get("commitment") for line in lines] == [{"amount": 1000, "per": "month"}, None]


def test_a12_g07_a_commitment_for_the_term_is_kept_for_what_is_left_of_it(seller: Tools):
    id_, (line,) = sold(seller, FOR_THE_TERM)
    cheaper = amended(seller, id_, {"action": "change_price", "line_id": line, "discount_pct": 10})
    assert amounts(cheaper) == [(5400, 6000, {"amount": 1000, "per": "month"})]
    longer = amended(seller, id_, {"action": "change_term", "line_id": line, "end_date": "2028-05-31"})
    assert amounts(longer)[0][:2] == (12000, 6000)
    two_years = seller("agreement_renew", agreement_id=id_, term_months=24)
    assert (two_years["net"], two_years["arr_change"]) == (24000, 0)


def test_a12_g07_another_commitment_is_priced_by_the_rates_that_were_sold(app: App, seller: Tools):
    id_, (line,) = sold(seller, HALF_A_MILLION)
    change = {"action": "set_quantity", "line_id": line, "commitment": {"quantity": 800_000}}
    more = amended(seller, id_, change)
    # 100,000 at 0.002 and 690,000 at 0.0012 a month, after 10,000 that are included.
    assert amounts(more) == [(6168, 4008, {"quantity": 800_000, "per": "month"})]
    accepted(seller, more["quote_id"])
    (owned,) = seller("agreement_get", agreement_id=id_, as_of=DAY)["lines"]
    assert (owned["commitment"], owned["unit_price_per_period"]) == ({"quantity": 800_000, "per": "month"}, 1028)
    assert amended(seller, id_, change)["outcome"] == "no_change"
    less = amended(seller, id_, {**change, "commitment": {"quantity": 500_000, "per": "monthly"}})
    assert less["net"] == -2160
    answer = seller("quote_price", quote_id=less["quote_id"])
    assert answer["required_roles"] == ["sales_manager"], "it gives money back"
    assert answer["line_pricing"][0]["rate_card"]["committed_per_period"] == 668


def test_a13_g07_a_renewal_keeps_what_was_committed_at_every_price(seller: Tools):
    id_, _ = sold(seller, HALF_A_MILLION)
    for price in ("same", "list", "contracted"):
        renewed = seller("agreement_renew", agreement_id=id_, price=price)
        assert amounts(renewed) == [(8016, 0, {"quantity": 500_000, "per": "month"})], price


def test_a12_g07_a_line_is_added_or_swapped_with_a_commitment(seller: Tools):
    id_, (line,) = sold(seller, {"product_id": HOURS})
    added = amended(
        seller, id_, {"action": "add_line", "product_id": STORAGE, "quantity": 1, "commitment": {"quantity": 1000}}
    )
    assert amounts(added) == [(1080, 0, {"quantity": 1000, "per": "month"})]
    swap = {"action": "swap_product", "line_id": line, "product_id": STORAGE, "commitment": {"quantity": 1000}}
    assert amounts(amended(seller, id_, swap)) == amounts(added)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"quantity": 2}, "/changes/0/quantity"),
        ({}, "/changes/0/commitment"),
        ({"commitment": {"amount": 900, "per": "term"}}, "/changes/0/commitment/per"),
        ({"commitment": {"quantity": 900, "per": "year"}}, "/changes/0/commitment/per"),
        ({"commitment": {"quantity": 9, "amount": 9}}, "/changes/0/commitment"),
    ],
)
def test_a12_g07_a_quantity_of_use_that_says_nothing_is_refused(seller: Tools, given: dict[str, Any], field: str):
    id_, (line,) = sold(seller, HALF_A_MILLION)
    change = {"action": "set_quantity", "line_id": line, **given}
    error = refused(seller, "agreement_amend", agreement_id=id_, effective_date=DAY, changes=[change])
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", field)
    assert follow(seller, error)["agreement"]["id"] == id_


def test_a12_g07_use_is_not_counted_twice_after_a_change(seller: Tools):
    id_, (line,) = sold(seller, HALF_A_MILLION)
    again = {"action": "add_line", "product_id": API, "quantity": 1}
    error = refused(seller, "agreement_amend", agreement_id=id_, effective_date=DAY, changes=[again])
    assert (error["details"]["field"], line in error["message"]) == ("/changes/0/product_id", True)
    instead = amended(seller, id_, {"action": "remove_line", "line_id": line}, again)
    assert [one["credit"] for one in instead["lines"]] == [4008, 0]
    other, _ = sold(seller, {"product_id": API})
    error = refused(seller, "agreement_renew", agreement_id=id_, also=[other])
    assert error["details"]["field"] == "/agreement_id"
    assert follow(seller, error)["agreement"]["id"] == id_


def test_a15_g07_cheaper_rates_of_an_agreement_need_who_a_first_sale_needs(app: App, seller: Tools):
    id_, (line,) = sold(seller, {"product_id": STORAGE})
    cheaper = amended(seller, id_, {"action": "change_price", "line_id": line, "discount_pct": 10})
    assert cheaper["net"] == 0, "nothing is committed"
    assert seller("quote_price", quote_id=cheaper["quote_id"])["required_roles"] == ["sales_manager"]
    request = seller("approval_request", quote_id=cheaper["quote_id"], justification="x")
    decide(person(app, "mona", "sales_manager"), request)
    seller("quote_send", quote_id=cheaper["quote_id"], expected_version=1)
    seller("quote_accept", quote_id=cheaper["quote_id"], expected_version=1)
    (owned,) = seller("agreement_get", agreement_id=id_, as_of=DAY)["lines"]
    assert owned["rate_card"]["discount_pct"] == 10


def test_a14_a_line_that_is_named_twice_is_given_back_once(seller: Tools):
    id_, (line,) = sold(seller, HALF_A_MILLION)
    cancel = {"agreement_id": id_, "effective_date": DAY, "reason": "x"}
    error = refused(seller, "agreement_cancel", **cancel, lines=[line, line])
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/lines/1")
    assert seller("agreement_cancel", **cancel, lines=[line])["net"] == -4008


def test_a13_an_uplift_of_todays_prices_is_refused(seller: Tools):
    id_, _ = sold(seller, HALF_A_MILLION)
    error = refused(seller, "agreement_renew", agreement_id=id_, price="list", uplift_pct=5)
    assert error["details"]["field"] == "/uplift_pct"


def test_a12_a_refusal_names_the_change_and_what_is_owned_on_its_day(seller: Tools):
    id_, (line,) = sold(seller, {"product_id": "prod_pro_v2", "quantity": 20})
    fine = {"action": "set_quantity", "line_id": line, "quantity": 21}
    for change, field in (
        ({"action": "add_line", "product_id": "nothing", "quantity": 1}, "/changes/1/product_id"),
        ({"action": "add_line", "product_id": STORAGE, "quantity": 5}, "/changes/1/quantity"),
        ({"action": "add_line", "product_id": "prod_pro_v2", "quantity": 1, "selling_model": "x"}, "/changes/1/"),
        ({"action": "remove_line", "line_id": "nope"}, "/changes/1/line_id"),
    ):
        error = refused(seller, "agreement_amend", agreement_id=id_, effective_date=DAY, changes=[fine, change])
        assert error["details"]["field"].startswith(field)
        assert "error" not in follow(seller, error)
