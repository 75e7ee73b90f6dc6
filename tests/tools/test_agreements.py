"""Agreements through the tools (A-01 to A-17): orders, what is owned on a day, amendments, renewals, cancellations."""

from decimal import Decimal
from typing import Any

import pytest

from cpq.app import App
from tests.support.approvals import follow, person, refused
from tests.support.engine import Tools
from tests.support.quotes import SEATS, sent_quote

START = "2026-12-01"


@pytest.fixture
def seller(app: App) -> Tools:
    return person(app, "rita", "sales_rep")


def accepted(seller: Tools, quote_id: str) -> dict[str, Any]:
    """Price, send and accept a draft."""
    seller("quote_price", quote_id=quote_id)
    seller("quote_send", quote_id=quote_id, expected_version=1)
    return seller("quote_accept", quote_id=quote_id, expected_version=1)


def sold(seller: Tools, *lines: dict[str, Any], **terms: Any) -> dict[str, Any]:
    """The order of an accepted sale; the worked example unless lines are given."""
    quote_id = sent_quote(seller, *lines, **{"start_date": START, **terms})
    return seller("quote_accept", quote_id=quote_id, expected_version=1)


def test_a01_acceptance_makes_one_order_with_the_accepted_lines(seller: Tools):
    quote_id = sent_quote(seller, start_date=START)
    moved = seller("quote_accept", quote_id=quote_id, expected_version=1, evidence="PO 4711")
    order = seller("order_get", order_id=moved["order_id"], include_schedule=True)
    assert (order["order"]["accepted_by"], order["evidence"]) == ("human:rita", "PO 4711")
    assert order["order"]["number"].startswith("SO-2026-")
    assert (order["order"]["kind"], order["order"]["net"], order["order"]["total"]) == ("new", 1500, 1500)
    assert order["order"]["quote_id"] == moved["quote_id"]
    (line,) = order["lines"]
    assert (line["product_id"], line["phases"][0]["quantity"], line["net"]) == ("prod_pro_v2", 150, 1500)
    assert (line["phases"][0]["start_date"], line["phases"][0]["end_date"]) == (START, "2027-11-30")
    assert order["schedule"] == [
        {
            "line_id": line["line_id"],
            "start_date": START,
            "end_date": "2027-11-30",
            "due_date": START,
            "amount": 1500,
        }
    ]
    assert seller("order_get", order_id=moved["order_number"])["order"]["id"] == moved["order_id"]
    assert seller("order_list", account_id="acct_acme_001")["items"][0]["id"] == moved["order_id"]


def test_a10_an_agreement_is_what_is_owned_on_any_day(seller: Tools):
    moved = sold(seller)
    owned = seller("agreement_get", agreement_id=moved["agreement_id"], as_of="2027-03-01")
    assert owned["agreement"]["status"] == "active"
    assert (owned["agreement"]["arr"], owned["mrr"], owned["next_renewal"]) == (1500, 125, "2027-12-01")
    (line,) = owned["lines"]
    assert (line["quantity"], line["unit_price_per_period"], line["end_date"]) == (150, 10, "2027-11-30")
    before = seller("agreement_get", agreement_id=moved["agreement_id"], as_of="2026-11-30")
    assert (before["agreement"]["status"], before["lines"], before["agreement"]["arr"]) == ("future", [], 0)
    assert before["next_billing"] == {"due_date": START, "amount": 1500}
    after = seller("agreement_get", agreement_id=moved["agreement_id"], as_of="2027-12-01")
    assert (after["agreement"]["status"], after["lines"]) == ("ended", [])


def amended(seller: Tools, agreement_id: str, day: str, *changes: dict[str, Any]) -> dict[str, Any]:
    return seller("agreement_amend", agreement_id=agreement_id, effective_date=day, changes=list(changes))


def line_of(seller: Tools, agreement_id: str, place: int = 0) -> str:
    return seller("agreement_get", agreement_id=agreement_id, as_of="2027-01-01")["lines"][place]["line_id"]


def test_a12_an_amendment_is_the_price_after_less_the_price_before(seller: Tools):
    moved = sold(seller)
    id_, line = moved["agreement_id"], line_of(seller, moved["agreement_id"])
    change = amended(seller, id_, "2027-06-01", {"action": "set_quantity", "line_id": line, "quantity": 200})
    (one,) = change["lines"]
    # 183 of 365 days are left: 200 seats cost 1,002.74, and 752.05 is left of 150 seats.
    assert (one["price_after"], one["credit"], one["difference"]) == (1002.74, 752.05, 250.69)
    assert (change["kind"], change["net"], change["arr_change"]) == ("amendment", 250.69, 500)
    assert (one["quantity_before"], one["quantity_after"]) == (150, 200)
    assert seller("agreement_get", agreement_id=id_, as_of="2027-06-01")["lines"][0]["quantity"] == 150
    order = accepted(seller, change["quote_id"])
    assert order["agreement_id"] == id_
    owned = seller("agreement_get", agreement_id=id_, as_of="2027-06-01")
    assert (owned["lines"][0]["quantity"], owned["agreement"]["arr"], owned["agreement"]["order_count"]) == (
        200,
        2000,
        2,
    )
    assert seller("agreement_get", agreement_id=id_, as_of="2027-05-31")["lines"][0]["quantity"] == 150
    detail = seller("order_get", order_id=order["order_id"], include_schedule=True)
    assert [due["amount"] for due in detail["schedule"]] == [-752.05, 1002.74]


def test_a12_lines_are_added_removed_and_swapped_together(seller: Tools):
    moved = sold(seller, SEATS, {"product_id": "prod_pro_v2", "quantity": 10})
    id_ = moved["agreement_id"]
    first, second = line_of(seller, id_, 0), line_of(seller, id_, 1)
    change = amended(
        seller,
        id_,
        "2027-06-01",
        {"action": "remove_line", "line_id": second},
        {"action": "add_line", "product_id": "prod_pro_v2", "quantity": 30},
        {"action": "change_price", "line_id": first, "unit_price": 11, "price_reason": "more service"},
    )
    assert [line["action"] for line in change["lines"]] == ["remove", "add", "change"]
    assert [line["difference"] for line in change["lines"]] == [-50.14, 150.41, 75.21]
    accepted_or_asked(seller, change["quote_id"])


def accepted_or_asked(seller: Tools, quote_id: str) -> None:
    priced = seller("quote_price", quote_id=quote_id)
    assert priced["approval_required"], "it gives money back"


def test_a12_a_change_that_changes_nothing_makes_no_quote(seller: Tools):
    moved = sold(seller)
    id_, line = moved["agreement_id"], line_of(seller, moved["agreement_id"])
    change = amended(seller, id_, "2027-06-01", {"action": "set_quantity", "line_id": line, "quantity": 150})
    assert (change["outcome"], change["quote_id"], change["net"]) == ("no_change", None, 0)


def test_a13_a_renewal_starts_the_day_after_the_end_at_the_last_price(seller: Tools):
    moved = sold(seller)
    change = seller("agreement_renew", agreement_id=moved["agreement_id"], uplift_pct=5)
    (one,) = change["lines"]
    assert (one["start_date"], one["end_date"], one["credit"]) == ("2027-12-01", "2028-11-30", 0)
    assert (change["net"], change["arr_change"]) == (1575, 75)
    accepted(seller, change["quote_id"])
    owned = seller("agreement_get", agreement_id=moved["agreement_id"], as_of="2028-01-01")
    assert (owned["agreement"]["arr"], owned["agreement"]["end_date"]) == (1575, "2028-11-30")


def test_a13_an_early_renewal_gives_the_rest_of_the_old_term_back(seller: Tools):
    moved = sold(seller)
    change = seller("agreement_renew", agreement_id=moved["agreement_id"], start_date="2027-06-01", term_months=24)
    assert (change["lines"][0]["price_after"], change["lines"][0]["credit"]) == (3000, 752.05)


def test_a13_two_agreements_go_on_as_one(seller: Tools):
    one, other = sold(seller), sold(seller, start_date="2027-02-01")
    change = seller("agreement_renew", agreement_id=one["agreement_id"], also=[other["agreement_id"]])
    assert {line["end_date"] for line in change["lines"]} == {"2028-11-30"}
    assert [line["credit"] for line in change["lines"]] == [0, 254.79]
    accepted(seller, change["quote_id"])
    assert seller("agreement_get", agreement_id=other["agreement_id"], as_of="2027-12-02")["lines"] == []
    moved = refused(
        seller,
        "agreement_amend",
        agreement_id=other["agreement_id"],
        effective_date="2027-12-02",
        changes=[{"action": "add_line", "product_id": "prod_pro_v2", "quantity": 1}],
    )
    assert follow(seller, moved)["agreement"]["id"] == one["agreement_id"]


def test_a14_a_cancellation_gives_the_rest_back_and_needs_approval(app: App, seller: Tools):
    moved = sold(seller)
    change = seller(
        "agreement_cancel", agreement_id=moved["agreement_id"], effective_date="2027-06-01", reason="They moved away."
    )
    assert (change["kind"], change["net"], change["arr_change"]) == ("cancellation", -752.05, -1500)
    priced = seller("quote_price", quote_id=change["quote_id"])
    assert (priced["pricing"]["total"], priced["required_roles"]) == (-752.05, ["sales_manager"])
    error = refused(seller, "quote_send", quote_id=change["quote_id"], expected_version=1)
    assert error["code"] == "POLICY_BLOCKED" or "approv" in error["message"]
    request = seller("approval_request", quote_id=change["quote_id"], justification="As in the contract.")
    manager = person(app, "mona", "sales_manager")
    manager(
        "approval_decide", approval_id=request["approval_id"], decision="approve", fingerprint=priced["fingerprint"]
    )
    seller("quote_send", quote_id=change["quote_id"], expected_version=1)
    seller("quote_accept", quote_id=change["quote_id"], expected_version=1)
    owned = seller("agreement_get", agreement_id=moved["agreement_id"], as_of="2027-06-01")
    assert (owned["agreement"]["status"], owned["lines"]) == ("cancelled", [])


def test_a15_accepting_an_amendment_whose_base_moved_is_a_conflict_that_can_be_made_again(seller: Tools):
    moved = sold(seller)
    id_, line = moved["agreement_id"], line_of(seller, moved["agreement_id"])
    quotes = [
        amended(seller, id_, "2027-06-01", {"action": "set_quantity", "line_id": line, "quantity": number})["quote_id"]
        for number in (160, 170)
    ]
    for quote_id in quotes:
        seller("quote_price", quote_id=quote_id)
        seller("quote_send", quote_id=quote_id, expected_version=1)
    seller("quote_accept", quote_id=quotes[0], expected_version=1)
    error = refused(seller, "quote_accept", quote_id=quotes[1], expected_version=1)
    assert (error["code"], error["details"]["expected_sequence"], error["details"]["sequence"]) == ("CONFLICT", 1, 2)
    again = follow(seller, error)
    assert (again["lines"][0]["quantity_before"], again["lines"][0]["quantity_after"]) == (160, 170)
    accepted(seller, again["quote_id"])
    assert seller("agreement_get", agreement_id=id_, as_of="2027-06-01")["lines"][0]["quantity"] == 170


def test_a11_agreements_are_listed_by_account_status_and_end(seller: Tools):
    one, other = sold(seller), sold(seller, start_date="2026-11-01", term_months=24)
    listed = seller("agreement_list", account_id="acct_acme_001")
    assert {item["id"] for item in listed["items"]} == {one["agreement_id"], other["agreement_id"]}
    soon = seller("agreement_list", ends_before="2027-12-31")
    assert [item["id"] for item in soon["items"]] == [one["agreement_id"]]
    error = refused(seller, "agreement_list", status="activ")
    assert (error["code"], error["details"]["nearest"]) == ("VALIDATION_ERROR", ["active"])


def test_q25_a_change_adds_up_in_every_answer(seller: Tools):
    moved = sold(seller, SEATS, {"product_id": "prod_pro_v2", "quantity": 10})
    id_ = moved["agreement_id"]
    first, second = line_of(seller, id_, 0), line_of(seller, id_, 1)
    change = amended(
        seller,
        id_,
        "2027-06-01",
        {"action": "set_quantity", "line_id": first, "quantity": 200},
        {"action": "remove_line", "line_id": second},
    )
    priced = seller("quote_price", quote_id=change["quote_id"], requested_discount_pct=3)
    totals = {
        name: Decimal(str(priced["pricing"][name])) for name in ("subtotal", "discount_total", "tax_total", "total")
    }
    assert totals["subtotal"] - totals["discount_total"] + totals["tax_total"] == totals["total"]
    read = seller("quote_get", quote_id=change["quote_id"])
    for lines in (priced["line_pricing"], read["line_items"]):
        added = sum(Decimal(str(line["line_total"])) for line in lines)
        assert added == totals["subtotal"] - totals["discount_total"]
        assert [line["agreement_change"]["credit"] for line in lines] == [752.05, 50.14]
    again = seller("quote_price", quote_id=change["quote_id"])
    assert (again["outcome"], again["pricing"]) == ("no_change", priced["pricing"])


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("agreement_amend", {"changes": [{"action": "frob"}]}),
        ("agreement_amend", {"changes": []}),
        ("agreement_amend", {"changes": [{"action": "set_quantity", "line_id": "x", "quantity": 0}]}),
        ("agreement_amend", {"effective_date": "soon", "changes": [{"action": "remove_line", "line_id": "x"}]}),
        ("agreement_renew", {"price": "cheap"}),
        ("agreement_renew", {"uplift_pct": -1}),
        ("agreement_cancel", {"reason": " "}),
        ("agreement_get", {"as_of": "2027-02-30"}),
        ("agreement_get", {"agreement_id": " "}),
        ("agreement_list", {"status": "gone"}),
        ("order_get", {"order_id": "SO-2026-999999"}),
        ("order_list", {"limit": 0}),
    ],
)
def test_a12_a_refusal_of_an_argument_leads_on_too(seller: Tools, tool: str, given: dict[str, Any]):
    day = {"effective_date": "2027-06-01"} if tool in ("agreement_amend", "agreement_cancel") else {}
    named = {} if "list" in tool or "order" in tool else {"agreement_id": sold(seller)["agreement_id"]}
    follow(seller, seller.error(tool, **{**named, **day, **given}))
