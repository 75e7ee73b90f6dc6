"""G-07: usage lines through the tools: commitments, estimates, what policies see, and what is refused."""

import csv
import io
import json
import re
from decimal import Decimal
from typing import Any

import pytest

from cpq.app import App
from cpq.app.transaction import Tx
from cpq.base.text import canonical_json, read_json
from cpq.domain.pricing.replay import reprice
from cpq.domain.quotes.file_rows import SourceQuote, validate
from cpq.domain.quotes.special_terms import Commitment
from cpq.services import quotes
from cpq.services.documents.document_request import DocumentRequest
from cpq.services.documents.exporter import export
from cpq.services.quotes import repository
from tests.support import papers
from tests.support.approvals import decide, person
from tests.support.engine import Tools
from tests.support.quotes import ACME, assert_adds_up, stored

CALLS = {"product_id": "prod_use_api", "quantity": 1}
AIR = {"product_id": "prod_use_air", "quantity": 1}
SMS = {"product_id": "prod_use_sms", "quantity": 1}
MONITOR = {"product_id": "prod_app_monitor", "quantity": 1}
ON_SQLITE = pytest.mark.parametrize("store", ["sqlite"], indirect=True)


def made(tools: Tools, *lines: dict[str, Any], **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = tools(
        "quote_create", account_id=ACME, line_items=list(lines), **{"term_months": 12, **fields}
    )
    return found


def test_g07_a_commitment_is_in_the_total_and_the_rate_card_is_in_the_answer(tools: Tools):
    line = made(tools, {**CALLS, "commitment": {"quantity": 260_000, "per": "month"}, "expected_quantity": 1_000_000})
    line = line["line_items"][0]
    # 10,000 are included, 100,000 cost 0.002, 150,000 cost 0.0012.
    assert (line["subtotal"], line["unit_price_per_period"], line["periods"]) == (4560, 380, 12)
    card = line["rate_card"]
    assert card["tiers"][1] == {"up_to": 1_000_000, "unit_price": 0.0012, "flat_fee": 0}
    assert (card["included_quantity"], card["committed_per_period"], card["unit"]) == (10_000, 380, "API call")
    assert (card["estimate_per_period"], card["estimate_beyond_total"]) == (1268, 12 * (1268 - 380))
    assert line["commitment"] == {"quantity": 260_000, "per": "month"}
    assert "The total includes the commitment of 260,000 × API call a month" in card["in_words"]
    assert "Estimate, not in the total" in card["in_words"]


def test_g07_without_a_commitment_the_answers_say_that_nothing_is_in_the_total(tools: Tools):
    made_ = made(tools, {**CALLS, "expected_quantity": 60_000}, MONITOR)
    quote_id, line = made_["quote_id"], made_["line_items"][0]
    said = "Use is billed by the rate card for each month; nothing for it is in the total."
    assert line["rate_card"]["in_words"].startswith(said)
    assert line["subtotal"] == 0
    assert any("Line 1: the use of prod_use_api" in warning for warning in made_["warnings"])
    priced = tools("quote_price", quote_id=quote_id)
    assert_adds_up(priced)
    assert priced["line_pricing"][0]["rate_card"] == line["rate_card"]
    without = made(tools, MONITOR)["quote_id"]
    assert priced["pricing"]["total"] == tools("quote_price", quote_id=without)["pricing"]["total"]
    got = tools("quote_get", quote_id=quote_id, include_pricing=True)
    assert got["line_items"][0]["rate_card"] == line["rate_card"]
    assert got["line_items"][0]["expected_quantity"] == 60_000
    assert got["warnings"] == made_["warnings"]


def test_g07_minimum_spend_is_in_the_total(tools: Tools):
    line = made(tools, {**AIR, "commitment": {"amount": 500, "per": "month"}})["line_items"][0]
    assert (line["subtotal"], line["rate_card"]["committed_per_period"]) == (12 * 900, 900)
    line = made(tools, AIR)["line_items"][0]
    assert line["subtotal"] == 12 * 900
    assert "The total includes the minimum spend of 900.00 USD a month" in line["rate_card"]["in_words"]


@ON_SQLITE
@pytest.mark.parametrize(
    ("line", "field"),
    [
        ({**MONITOR, "commitment": {"quantity": 5, "per": "month"}}, "/line_items/0/commitment"),
        ({**MONITOR, "expected_quantity": 5}, "/line_items/0/expected_quantity"),
        (
            {"custom": {"name": "Crane", "unit_price": 5}, "quantity": 1, "commitment": {"amount": 5}},
            "/line_items/0/commitment",
        ),
        ({**CALLS, "commitment": {"quantity": 5, "amount": 5, "per": "month"}}, "/line_items/0/commitment"),
        ({**CALLS, "commitment": {"per": "month"}}, "/line_items/0/commitment"),
        ({**CALLS, "commitment": {"quantity": -5}}, "/line_items/0/commitment/quantity"),
        ({**CALLS, "commitment": {"amount": -5}}, "/line_items/0/commitment/amount"),
        ({**CALLS, "commitment": {"amount": 5.001}}, "/line_items/0/commitment/amount"),
        ({**CALLS, "commitment": {"quantity": 5, "per": "year"}}, "/line_items/0/commitment/per"),
        ({**CALLS, "commitment": {"quantity": 5, "per": "day"}}, "/line_items/0/commitment/per"),
        ({**CALLS, "expected_quantity": 0}, "/line_items/0/expected_quantity"),
        ({**CALLS, "quantity": 50_000}, "/line_items/0/quantity"),
        ({**CALLS, "ramp": [{"months": 6}, {"months": 6}]}, "/line_items/0/ramp"),
        ({**CALLS, "unit_price": 0.001}, "/line_items/0/price_reason"),
        ({**CALLS, "discount_amount": 1}, "/line_items/0/discount_amount"),
        (
            {"product_id": "prod_use_expert", "quantity": 1, "commitment": {"amount": 6001, "per": "quarter"}},
            "/line_items/0/commitment",
        ),
    ],
)
def test_g07_nonsense_is_refused_with_its_field_and_a_way_out(tools: Tools, line: dict[str, Any], field: str):
    before = stored(tools.app)
    details = tools.error("quote_create", account_id=ACME, line_items=[line], term_months=12)["details"]
    assert (details["field"], stored(tools.app)) == (field, before)
    assert details.get("hint") or details.get("minimum") is not None or "decimals" in details or "problems" in details


def test_g07_included_units_count_once_and_not_on_two_lines_of_the_same_days(tools: Tools):
    details = tools.error("quote_create", account_id=ACME, line_items=[CALLS, CALLS], term_months=12)["details"]
    assert details["field"] == "/line_items/1/product_id"
    later = {**CALLS, "start_date": "2027-06-01", "term_months": 6}
    first = {**CALLS, "term_months": 6}
    assert made(tools, first, later, start_date="2026-12-01")["outcome"] == "created"
    either = [{**CALLS, "option_set": name} for name in ("a", "b")]
    assert made(tools, *either)["outcome"] == "created"


@ON_SQLITE
@pytest.mark.parametrize(
    ("line", "roles"),
    [
        ({**CALLS, "discount_pct": 90}, ["vp_sales", "finance"]),
        ({**CALLS, "unit_price": 0.0002, "price_reason": "pilot"}, ["vp_sales", "finance"]),
        ({**CALLS, "unit_price": 0, "price_reason": "free"}, ["vp_sales", "finance"]),
        # The dearest rate counts: this one is above the card only beyond a million calls.
        (
            {**CALLS, "unit_price": 0.0010, "price_reason": "flat", "commitment": {"quantity": 5_000_000}},
            ["vp_sales", "finance"],
        ),
        ({**CALLS, "commitment": {"amount": 400}, "unit_price": 0.0015, "price_reason": "x"}, ["vp_sales"]),
        ({**CALLS, "commitment": {"amount": 400}, "discount_pct": 6}, ["sales_manager"]),
        ({**CALLS, "commitment": {"amount": 400}, "discount_pct": 5}, []),
        ({**AIR, "discount_pct": 25}, ["vp_sales"]),
        ({**CALLS}, []),
    ],
)
def test_g07_a_discount_on_rates_needs_approval_also_where_nothing_is_committed(
    tools: Tools, line: dict[str, Any], roles: list[str]
):
    """A machine beside it keeps the margin known, so that only the discount speaks."""
    quote_id = made(tools, line, {"product_id": "prod_qmb15", "quantity": 1})["quote_id"]
    priced = tools("quote_price", quote_id=quote_id)
    assert priced["required_roles"] == roles
    assert (
        priced["line_pricing"][0]["discount_pct"]
        == tools("quote_get", quote_id=quote_id)["line_items"][0]["discount_pct"]
    )
    if roles:
        assert tools.error("quote_send", quote_id=quote_id, expected_version=1)["code"] == "CONFLICT"


@ON_SQLITE
@pytest.mark.parametrize(
    ("line", "roles"),
    [
        (CALLS, []),
        ({**CALLS, "discount_pct": 20}, ["sales_manager"]),
        ({**SMS, "discount_pct": 20}, ["sales_manager"]),
        # The message costs us 5.20 and is sold for 9.
        ({**SMS, "unit_price": 7.20, "price_reason": "pilot"}, ["sales_manager"]),
        ({**SMS, "unit_price": 5.70, "price_reason": "pilot"}, ["vp_sales", "finance"]),
    ],
)
def test_g07_rates_that_are_sold_alone_have_a_margin_and_ask_finance_only_below_its_floor(
    tools: Tools, line: dict[str, Any], roles: list[str]
):
    priced = tools("quote_price", quote_id=made(tools, line)["quote_id"])
    assert (priced["pricing"]["total"], priced["required_roles"]) == (0, roles)


def approved(app: App, tools: Tools, *lines: dict[str, Any]) -> str:
    quote_id: str = made(tools, *lines)["quote_id"]
    tools("quote_price", quote_id=quote_id)
    decide(person(app, "vera", "vp_sales"), tools("approval_request", quote_id=quote_id, justification="A pilot."))
    return quote_id


@ON_SQLITE
@pytest.mark.parametrize(
    ("change", "is_kept"),
    [
        ({"commitment": {"amount": 410, "per": "month"}, "discount_pct": 20.4}, True),
        ({"commitment": {"amount": 500, "per": "month"}}, False),  # The discount in money is larger.
        ({"commitment": {"amount": 300, "per": "month"}}, False),
        ({"clear": ["commitment"]}, False),
        ({"discount_pct": 20.5}, True),
        ({"discount_pct": 22}, False),
        ({"expected_quantity": 5}, False),
    ],
)
def test_g07_an_approval_is_kept_only_where_the_rate_card_gives_no_more(
    app: App, tools: Tools, change: dict[str, Any], is_kept: bool
):
    line = {**CALLS, "commitment": {"amount": 400, "per": "month"}, "discount_pct": 21}
    quote_id = approved(app, tools, line, {"product_id": "prod_qmb15", "quantity": 1})
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    line_id = tools("quote_get", quote_id=quote_id)["line_items"][0]["line_id"]
    changed = [{"line_id": line_id, **change}]
    tools("quote_update", quote_id=quote_id, expected_version=2, change_lines=changed)
    priced = tools("quote_price", quote_id=quote_id)
    if priced["approval_required"]:
        asked = tools("approval_request", quote_id=quote_id, justification="Again.")
        assert (asked["status"] == "kept") == is_kept, asked["reason"]


def test_g07_a_change_sets_and_takes_back_a_commitment(tools: Tools):
    quote_id = made(tools, CALLS)["quote_id"]
    line_id = tools("quote_get", quote_id=quote_id)["line_items"][0]["line_id"]
    committed = {"line_id": line_id, "commitment": {"amount": 100, "per": "year"}, "expected_quantity": 2.5}
    tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=[committed])
    line = tools("quote_get", quote_id=quote_id)["line_items"][0]
    assert (line["subtotal"], line["commitment"], line["expected_quantity"]) == (
        100,
        {"amount": 100, "per": "year"},
        2.5,
    )
    taken = {"line_id": line_id, "clear": ["commitment", "expected_quantity"]}
    tools("quote_update", quote_id=quote_id, expected_version=1, change_lines=[taken])
    line = tools("quote_get", quote_id=quote_id)["line_items"][0]
    assert (line["subtotal"], "commitment" in line, "expected_quantity" in line) == (0, False, False)
    details = tools.error(
        "quote_update", quote_id=quote_id, expected_version=1, change_lines=[{"line_id": line_id, "commitment": {}}]
    )["details"]
    assert details["field"] == "/change_lines/0/commitment"


def test_g07_the_catalogue_shows_the_rate_card(tools: Tools):
    prices = tools("catalog_get", product_id="prod_use_air")["prices"]
    found = next(price for price in prices if price["currency"] == "USD")
    assert (found["selling_model"], found["pick_with"], found["unit"]) == ("usage", "monthly_usage", "1,000 m³")
    assert (found["unit_price"], found["minimum_spend"], found["maximum_spend"]) == (24, 900, None)
    assert "unit" not in tools("catalog_get", product_id="prod_qmb15")["prices"][0]


LINES = (
    {**CALLS, "commitment": {"quantity": 260_000, "per": "month"}, "expected_quantity": 1_000_000, "discount_pct": 4},
    {"product_id": "prod_use_sms", "quantity": 1, "expected_quantity": 950},
    {"product_id": "prod_use_expert", "quantity": 1, "commitment": {"amount": 1200, "per": "year"}},
    AIR,
)


@ON_SQLITE
def test_g07_every_template_prints_the_rates_and_marks_the_estimate_as_not_in_the_total(tools: Tools):
    quote_id = made(tools, *LINES[:1], *({**line, "option_set": name} for line in LINES[1:] for name in ("a", "b")))[
        "quote_id"
    ]
    for template in ("standard", "compact", "detailed", "comparison", "executive_summary"):
        text = printed(tools, quote_id, template=template)
        assert (
            "Per API call, a month: 10,000 included; up to 100,000: 0.002; up to 1,000,000: 0.0012; beyond: 0.0008"
            in text
        )
        assert "all less 4%" in text
        assert "The total includes the commitment of 260,000 API call a month: 380.00." in text
        assert "Estimate, not part of the total: 1,000,000 API call a month would cost 1,217.28." in text
        assert "100 included; 9.00 for each 100." in text
        assert "Use is billed at these rates. Nothing for it is part of the total." in text
        assert "30 included; 3.40; maximum 6,000.00." in text
        assert "The total includes the commitment of 1,200.00 a year." in text
        assert "The total includes the minimum spend of 900.00 a month." in text


@ON_SQLITE
def test_g07_six_languages_say_what_is_not_in_the_total(tools: Tools):
    quote_id = made(tools, *LINES)["quote_id"]
    said = {
        "de": "Die Summe enthält dafür nichts",
        "es": "El total no incluye nada por este concepto",
        "fr": "Le total ne comprend rien à ce titre",
        "ja": "合計には含まれていません",
        "ar": "تقدير",
    }
    for locale, words in said.items():
        assert words in printed(tools, quote_id, locale=locale)


def printed(tools: Tools, quote_id: str, **options: Any) -> str:
    """The text of the printed page, in one line, without marks of direction."""
    html = exported(tools, quote_id, "html", options.get("template", "standard"), options.get("locale"))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>|[\u2066-\u2069]", "", html))


def exported(tools: Tools, quote_id: str, form: str, template: str = "standard", locale: str | None = None) -> str:
    asked = DocumentRequest(quote_id, template, locale, None)
    call = tools.app.new_call()
    return tools.app.read_unaudited(call, lambda tx: {"text": export(tx, asked, form, papers.design())})["text"]


@ON_SQLITE
def test_g07_files_have_the_rate_card_and_add_up(tools: Tools):
    quote_id = made(tools, *LINES)["quote_id"]
    texts = {form: exported(tools, quote_id, form) for form in ("json", "ubl", "csv")}
    card = "graduated per API call, monthly; to 100000 0.002; to 1000000 0.0012; beyond 0.0008; included 10000"
    assert f"<cbc:Note>{card}; committed 260000 API call; all less 4 %</cbc:Note>" in texts["ubl"]
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    first = rows[0]
    assert (first["rate_card"].startswith(card), first["committed_quantity"], first["committed_per"]) == (
        True,
        "260000",
        "month",
    )
    assert (first["line_total"], rows[1]["line_total"], rows[1]["estimate_per_period"]) == ("4377.6", "0", "81")
    lines = json.loads(texts["json"])["lines"]
    assert lines[3]["usage"]["rate_card"]["minimum_spend"] == 900
    assert "in_words" not in lines[3]["usage"]["rate_card"]


@ON_SQLITE
def test_g07_versions_are_compared_by_rates_and_commitment(tools: Tools):
    quote_id = made(tools, {**CALLS, "commitment": {"quantity": 260_000}})["quote_id"]
    tools("quote_price", quote_id=quote_id)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    tools("quote_revise", quote_id=quote_id, expected_version=1)
    line_id = tools("quote_get", quote_id=quote_id)["line_items"][0]["line_id"]
    change = {"line_id": line_id, "commitment": {"amount": 500, "per": "year"}, "discount_pct": 5}
    tools("quote_update", quote_id=quote_id, expected_version=2, change_lines=[change])
    call = tools.app.new_call()
    compared = tools.app.read_unaudited(call, lambda tx: quotes.compare(tx, quote_id, before=1, after=2))
    found = compared["lines"][0]
    changed = {one["field"]: (one["before"], one["after"]) for one in found["changes"]}
    assert changed["commitment"] == ("260,000 API call, per month", "500 as an amount, per year")
    assert str(changed["rate_card"][1]).endswith("; all less 5 %")


@ON_SQLITE
def test_g07_a_file_of_quotes_and_a_replay_have_usage_lines(tools: Tools):
    quote_id = made(tools, *LINES)["quote_id"]
    tools("quote_price", quote_id=quote_id)
    stored_set = tools.app.read_unaudited(tools.app.new_call(), lambda tx: pricings_of(tx, quote_id))
    for request, result in stored_set["sets"]:
        assert canonical_json(read_json(reprice(canonical_json(request)))) == canonical_json(result)
    cells = {"commitment": '{"amount": 100, "per": "month"}', "expected_quantity": "5.5"}
    source = SourceQuote(1, {"id": "q", "account_id": ACME, "line_items": [{**CALLS, **cells}]})
    row, problems = validate(source)
    assert (row, [one.field for one in problems]) == (None, ["line_items.0.commitment"])
    source.values["line_items"][0]["commitment"] = {"amount": 100, "per": "month"}
    row, problems = validate(source)
    assert row is not None
    special = row.as_draft().lines[0].special
    assert special is not None
    assert (special.commitment, special.expected_quantity) == (
        Commitment(amount=100 * 10**6, per="monthly"),
        Decimal("5.5"),
    )


def pricings_of(tx: Tx, quote_id: str) -> dict[str, Any]:
    found = repository.pricings(tx, repository.load(tx, quote_id))
    return {"sets": [(one.request_values, one.result_values) for one in found]}


@ON_SQLITE
def test_g05_and_g06_a_row_of_a_csv_has_the_dates_and_the_ramp_of_its_line(tools: Tools):
    ramp = [{"months": 1, "discount_pct": 100}, {"months": 11}]
    later = {**MONITOR, "start_date": "2027-07-01", "term_months": 6}
    lines = ({**MONITOR, "quantity": 3, "ramp": ramp}, later)
    quote_id = made(tools, *lines, start_date="2027-01-01")["quote_id"]
    ramped, dated = csv.DictReader(io.StringIO(exported(tools, quote_id, "csv")))
    assert (ramped["start_date"], dated["start_date"], dated["end_date"]) == ("", "2027-07-01", "2027-12-31")
    steps = json.loads(ramped["ramp"])
    assert [(step["months"], step["quantity"], step.get("discount_pct")) for step in steps] == [
        (1, 3, 100),
        (11, 3, None),
    ]
    assert dated["ramp"] == ""
