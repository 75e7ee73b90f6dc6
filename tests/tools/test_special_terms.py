"""What a seller arranges for a line or asks of a quote, through the tools: prices, amounts off, dates and ramps."""

from typing import Any

import pypdfium2
import pytest

from cpq.app import App
from tests.support.approvals import decide, person
from tests.support.engine import Tools
from tests.support.quotes import ACME, assert_adds_up, stored

SEATS = {"product_id": "prod_pro_v2", "quantity": 10}
MACHINE = {"product_id": "prod_qmb15", "quantity": 1}
CHEAPER = {**MACHINE, "unit_price": 9000, "price_reason": "matches the offer of a competitor"}


def made(tools: Tools, *lines: dict[str, Any], **fields: Any) -> str:
    quote_id: str = tools("quote_create", account_id=ACME, line_items=list(lines), **fields)["quote_id"]
    return quote_id


def line_of(tools: Tools, quote_id: str, place: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = tools("quote_get", quote_id=quote_id)["line_items"][place]
    return found


def refused(tools: Tools, name: str, **arguments: Any) -> dict[str, Any]:
    """The details of a refusal, which must have changed no row."""
    before = stored(tools.app)
    details: dict[str, Any] = tools.error(name, **arguments)["details"]
    assert stored(tools.app) == before
    return details


def test_g03_a_given_price_is_a_discount_that_policies_see_and_the_reason_is_for_the_seller(app: App, tools: Tools):
    quote_id = made(tools, {**CHEAPER, "unit_price": 7500})
    priced = tools("quote_price", quote_id=quote_id)
    assert_adds_up(priced)
    assert priced["pricing"]["subtotal"] - priced["pricing"]["discount_total"] == 7500
    assert priced["required_roles"] == ["vp_sales"]
    line = line_of(tools, quote_id)
    assert (line["unit_price"], line["override_unit_price"], line["line_total"]) == (9480, 7500, 7500)
    assert line["price_reason"] == "matches the offer of a competitor"
    assert line["discount_pct"] == priced["line_pricing"][0]["discount_pct"]
    assert tools.error("quote_send", quote_id=quote_id, expected_version=1)["code"] == "CONFLICT"
    asked = tools("approval_request", quote_id=quote_id, justification="A pilot.")
    decide(person(app, "vera", "vp_sales"), asked)
    pdf = pypdfium2.PdfDocument(tools("quote_pdf", quote_id=quote_id)["file_path"])
    files = b"\n".join(bytes(pdf.get_attachment(place).get_data()) for place in range(pdf.count_attachments()))
    text = "\n".join(page.get_textpage().get_text_bounded() for page in pdf)
    assert "competitor" not in text + files.decode()
    assert "7,500.00" in text


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ({**MACHINE, "unit_price": 9000}, "/line_items/0/price_reason"),
        ({**MACHINE, "discount_pct": 5, "discount_amount": 100}, "/line_items/0/discount_amount"),
        ({**MACHINE, "discount_amount": 0.001}, "/line_items/0/discount_amount"),
        ({**MACHINE, "discount_amount": 9480.01}, "/line_items/0/discount_amount"),
        ({**MACHINE, "unit_price": -1, "price_reason": "x"}, "/line_items/0/unit_price"),
        ({**SEATS, "term_months": 6, "end_date": "2027-01-31"}, "/line_items/0/end_date"),
        ({**SEATS, "start_date": "2026-01-01"}, "/line_items/0/start_date"),
        ({**SEATS, "end_date": "2026-08-15"}, "/line_items/0/end_date"),
        ({**SEATS, "ramp": [{"months": 6, "unit_price": 5}, {"months": 6}]}, "/line_items/0/price_reason"),
        ({**SEATS, "ramp": [{"months": 6}, {"months": 5}]}, "/line_items/0/ramp"),
        ({**SEATS, "term_months": 6, "ramp": [{"months": 12}]}, "/line_items/0/ramp"),
    ],
)
def test_g03_to_g06_nonsense_is_refused_with_its_field(tools: Tools, line: dict[str, Any], field: str):
    details = refused(
        tools, "quote_create", account_id=ACME, line_items=[line], term_months=12, start_date="2026-03-01"
    )
    assert details["field"] == field


def test_g04_amounts_and_targets_on_the_quote_are_stored_and_change_into_each_other(tools: Tools):
    quote_id = made(tools, MACHINE, {**MACHINE, "quantity": 2, "discount_amount": 480})
    assert line_of(tools, quote_id, 1)["line_discount_amount"] == 480
    priced = tools("quote_price", quote_id=quote_id, requested_discount_amount=500)
    assert priced["requested_discount_amount"] == 500
    assert priced["pricing"]["discount_total"] == 980
    assert sum(line["line_total"] for line in priced["line_pricing"]) == 3 * 9480 - 980
    assert tools("quote_price", quote_id=quote_id)["outcome"] == "no_change"
    reached = tools("quote_price", quote_id=quote_id, target_total=27000)
    assert reached["pricing"]["total"] == 27000
    assert reached["requested_discount_amount"] == 3 * 9480 - 480 - 27000
    found = tools("quote_get", quote_id=quote_id)
    assert found["requested_discount_amount"] == reached["requested_discount_amount"]
    assert [line["discount_pct"] for line in found["line_items"]] == [
        line["discount_pct"] for line in reached["line_pricing"]
    ]
    again = tools("quote_price", quote_id=quote_id, requested_discount_pct=3)
    assert "requested_discount_amount" not in again


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"requested_discount_pct": 5, "target_total": 5}, "/target_total"),
        ({"target_total": 9480.01}, "/target_total"),
        ({"requested_discount_amount": 9480.01}, "/requested_discount_amount"),
        ({"requested_discount_amount": 0.001}, "/requested_discount_amount"),
    ],
)
def test_g04_nonsense_on_the_quote_is_refused_with_its_field(tools: Tools, arguments: dict[str, Any], field: str):
    quote_id = made(tools, MACHINE)
    assert refused(tools, "quote_price", quote_id=quote_id, **arguments)["field"] == field


def test_g04_a_change_that_leaves_less_than_the_amount_off_names_the_quote_and_the_way_out(tools: Tools):
    quote_id = made(tools, MACHINE, {**SEATS, "quantity": 1})
    tools("quote_price", quote_id=quote_id, requested_discount_amount=9000)
    details = refused(tools, "quote_update", quote_id=quote_id, expected_version=1, remove_lines=[f"{quote_id}-ql-1"])
    assert details["field"] == "/quote_id"
    assert "requested_discount_amount" in details["hint"]


def test_g03_g05_g06_a_change_sets_replaces_and_clears_what_was_arranged(tools: Tools):
    quote_id = made(tools, {**SEATS, "discount_pct": 5}, MACHINE, term_months=12, start_date="2026-03-01")
    first, second = f"{quote_id}-ql-1", f"{quote_id}-ql-2"
    changes = [
        {"line_id": first, "discount_amount": 10, "term_months": 24, "start_date": "2026-06-01"},
        {"line_id": second, "unit_price": 9000, "price_reason": "a friend"},
    ]
    tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=changes)
    line = line_of(tools, quote_id)
    assert (line["line_discount_pct"], line["line_discount_amount"], line["periods"]) == (0, 10, 2)
    assert tools("quote_get", quote_id=quote_id)["quote"]["end_date"] == "2028-05-31"
    assert line_of(tools, quote_id, 1)["line_total"] == 9000
    changes = [
        {"line_id": first, "discount_pct": 5, "clear": ["term_months", "start_date"]},
        {"line_id": second, "clear": ["unit_price"]},
    ]
    tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=changes)
    line, other = line_of(tools, quote_id), line_of(tools, quote_id, 1)
    assert (line["line_discount_pct"], line["periods"]) == (5, 1)
    assert not {"line_discount_amount", "term_months", "start_date"} & set(line)
    assert (other["line_total"], "price_reason" in other) == (9480, False)
    ramp = [{"months": 1, "discount_pct": 100}, {"months": 11}]
    tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=[{"line_id": first, "ramp": ramp}])
    assert line_of(tools, quote_id)["ramp"][0]["discount_pct"] == 100


def test_g05_a_revision_and_a_clone_keep_what_was_arranged_for_lines(tools: Tools):
    quote_id = made(tools, {**CHEAPER, "unit_price": 9400}, {**SEATS, "term_months": 6}, term_months=12)
    tools("quote_price", quote_id=quote_id, requested_discount_amount=10)
    total = tools("quote_get", quote_id=quote_id)["pricing"]["total"]
    copy = tools("quote_clone", quote_id=quote_id)["quote_id"]
    assert tools("quote_price", quote_id=copy)["pricing"]["total"] == total + 10
    tools("quote_send", quote_id=quote_id, expected_version=1)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    assert tools("quote_price", quote_id=quote_id)["pricing"]["total"] == total


def test_g03_an_approval_is_not_kept_for_another_price(app: App, tools: Tools):
    quote_id = made(tools, {**CHEAPER, "unit_price": 8500})
    tools("quote_price", quote_id=quote_id)
    asked = tools("approval_request", quote_id=quote_id, justification="A pilot.")
    decide(person(app, "mona", "sales_manager"), asked)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    change = {"line_id": f"{quote_id}-ql-1", "unit_price": 8400}
    tools("quote_update", quote_id=quote_id, expected_version=2, change_lines=[change])
    tools("quote_price", quote_id=quote_id)
    again = tools("approval_request", quote_id=quote_id, justification="Still a pilot.")
    assert again["status"] == "pending"


CRANE = {"name": "Crane", "unit_price": 1}
FREIGHT = {"custom": {"name": "Freight to Dayton", "unit_price": 480, "unit": "trip", "cost": 400}, "quantity": 2}


def test_g02_an_item_of_no_catalogue_is_priced_and_the_deal_desk_looks_at_it(app: App, tools: Tools):
    crane = {"custom": {"name": "Crane", "description": "Half a day on site", "unit_price": 99.5}, "quantity": 1.5}
    quote_id = made(tools, MACHINE, FREIGHT, crane)
    priced = tools("quote_price", quote_id=quote_id)
    assert_adds_up(priced)
    assert [line["line_total"] for line in priced["line_pricing"]] == [9480, 960, 149.25]
    assert priced["required_roles"] == ["deal_desk", "finance"]
    line = line_of(tools, quote_id, 1)
    assert (line["product_id"], line["product_name"], line["unit_price"]) == ("custom:2", "Freight to Dayton", 480)
    assert line["custom"] == {"name": "Freight to Dayton", "unit_price": 480, "unit": "trip"}
    asked = tools("approval_request", quote_id=quote_id, justification="They cannot fetch it.")
    decide(person(app, "dora", "deal_desk"), asked, "deal_desk")
    decide(person(app, "fred", "finance"), asked, "finance")
    document = tools("quote_pdf", quote_id=quote_id)
    assert document["stamp"] is None
    pdf = pypdfium2.PdfDocument(document["file_path"])
    text = "\n".join(page.get_textpage().get_text_bounded() for page in pdf)
    assert "Freight to Dayton" in text
    assert "Half a day on site" in text
    assert tools("quote_send", quote_id=quote_id, expected_version=1)["status"] == "sent"


def test_g02_an_item_of_no_catalogue_is_added_changed_copied_and_removed_like_a_line(tools: Tools):
    quote_id = made(tools, MACHINE)
    tools("quote_update", quote_id=quote_id, expected_version=1, add_lines=[FREIGHT])
    assert line_of(tools, quote_id, 1)["line_id"] == f"{quote_id}-ql-2"
    change = {"line_id": f"{quote_id}-ql-2", "quantity": 3, "discount_amount": 40}
    tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=[change])
    assert line_of(tools, quote_id, 1)["line_total"] == 1400
    tools("quote_update", quote_id=quote_id, expected_version=1, remove_lines=[f"{quote_id}-ql-1"])
    copy = tools("quote_clone", quote_id=quote_id)["quote_id"]
    assert line_of(tools, copy)["product_id"] == "custom:1"
    assert tools("quote_price", quote_id=copy)["pricing"]["total"] == 1400


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ({"quantity": 1}, "/line_items/0"),
        ({**FREIGHT, "product_id": "prod_qmb15"}, "/line_items/0"),
        ({**FREIGHT, "unit_price": 5, "price_reason": "x"}, "/line_items/0"),
        ({"custom": {"name": " ", "unit_price": 1}, "quantity": 1}, "/line_items/0/custom/name"),
        ({"custom": {"name": "Crane"}, "quantity": 1}, "/line_items/0/custom/unit_price"),
        ({**FREIGHT, "attributes": {"colour": "red"}}, "/line_items/0/attributes"),
        ({**FREIGHT, "ramp": [{"months": 12}]}, "/line_items/0/ramp"),
        ({"product_id": "custom:1", "quantity": 1}, "/line_items/0/product_id"),
        ({"custom": {"name": "SALESPERSON REVIEW", "unit_price": 1}, "quantity": 1}, "/line_items/0/custom/name"),
        ({"custom": {**CRANE, "tax_category": "odd"}, "quantity": 1}, "/line_items/0/custom/tax_category"),
    ],
)
def test_g02_nonsense_is_refused_with_its_field(tools: Tools, line: dict[str, Any], field: str):
    details = refused(tools, "quote_create", account_id=ACME, line_items=[line], term_months=12)
    assert details["field"] == field


def test_g02_the_price_of_an_item_of_no_catalogue_cannot_be_taken_back(tools: Tools):
    quote_id = made(tools, FREIGHT)
    for clear, field in (("unit_price", "/change_lines/0/unit_price"), ("foo", "/change_lines/0/clear")):
        change = {"line_id": f"{quote_id}-ql-1", "clear": [clear]}
        details = refused(tools, "quote_update", quote_id=quote_id, expected_version=1, change_lines=[change])
        assert details["field"] == field


def test_g02_who_sees_margins_sees_the_cost_that_was_given(app: App, tools: Tools):
    quote_id = made(tools, FREIGHT)
    assert "cost" not in line_of(tools, quote_id)["custom"]
    assert line_of(person(app, "fred", "finance"), quote_id)["custom"]["cost"] == 400


def test_g05_dates_that_are_those_of_the_quote_change_no_price(tools: Tools):
    spelt = {**SEATS, "start_date": "2026-03-01", "term_months": 12}
    dates = {"term_months": 12, "start_date": "2026-03-01"}
    plain, same = made(tools, SEATS, SEATS, **dates), made(tools, SEATS, spelt, **dates)
    totals = [tools("quote_price", quote_id=id_)["pricing"]["total"] for id_ in (plain, same)]
    assert totals[0] == totals[1]
