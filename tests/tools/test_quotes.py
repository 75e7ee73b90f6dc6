"""Quotes as an agent makes, reads and lists them: Q-05, Q-09, Q-11, Q-12, Q-17 to Q-23, Q-29."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from mcp import Client

from cpq.app import App
from cpq.app.access import Principal, Role
from cpq.base.settings import Settings, read_settings
from cpq.domain.quotes.draft_changes import STRETCHES_MAX
from cpq.storage.schema.tables import audit_entry, quote
from mcp_facade.server import Facade
from mcp_facade.toolsets import ALL_TOOLS
from tests.support import engine
from tests.support.engine import Tools, open_app
from tests.support.quotes import ACME, SEATS, assert_sound, counted_statements, exact, new_quote, put_into, stored

DISCONTINUED = "prod_qmb40"
CALL = {"account_id": ACME, "term_months": 12, "line_items": [SEATS]}


def call_with(**changes) -> dict:
    return {**CALL, **changes}


def line_with(**changes) -> dict:
    return call_with(line_items=[{**SEATS, **changes}])


def refused(tools: Tools, name: str, arguments: dict) -> dict:
    """The error of a call, which must have changed no row."""
    before = stored(tools.app)
    error = tools.error(name, **arguments)
    assert stored(tools.app) == before
    return error


def test_q21_the_worked_example(tools: Tools):
    created = tools("quote_create", **CALL)
    quote_id = created["quote_id"]
    assert quote_id.startswith("Q-")
    assert created.pop("created_at").endswith("Z")
    assert created == {
        "quote_id": quote_id,
        "number": "2026-000001",
        "version": 1,
        "edit": 1,
        "status": "draft",
        "account_id": ACME,
        "currency": "USD",
        "requested_discount_pct": 0,
        "idempotency_key": None,
        "line_items": [
            {
                "line_id": f"{quote_id}-ql-1",
                "product_id": "prod_pro_v2",
                "product_name": "Pro Plan",
                "quantity": 150,
                "unit_price": 10,
                "unit_price_per_period": 10,
                "billing_period": "yearly",
                "periods": 1,
                "selling_model": "yearly",
                "discount_pct": 0,
                "line_discount_pct": 0,
                "subtotal": 1500,
            }
        ],
        "warnings": [],
        "outcome": "created",
        "message": "Quote created successfully",
        "replayed": False,
    }


def test_q17_lines_keep_their_order_and_are_numbered_from_one(tools: Tools):
    products = ["prod_fc150", "prod_tk240v", "prod_qmb30", "prod_fc150", "prod_pro_v2", "prod_qmb15"] * 4
    created = tools("quote_create", **call_with(line_items=[{"product_id": id_, "quantity": 1} for id_ in products]))
    quote_id = created["quote_id"]
    read = tools("quote_get", quote_id=quote_id)["line_items"]
    priced = tools("quote_price", quote_id=quote_id)["line_pricing"]
    for lines in (created["line_items"], read, priced):
        assert [line["product_id"] for line in lines] == products
        assert [line["line_id"] for line in lines] == [f"{quote_id}-ql-{n}" for n in range(1, 25)]


def test_q17_five_hundred_lines_keep_their_order(tools: Tools):
    lines = [{"product_id": "prod_fc150", "quantity": n} for n in range(1, 501)]
    created = tools("quote_create", **call_with(line_items=lines))
    read = tools("quote_get", quote_id=created["quote_id"])["line_items"]
    assert [line["quantity"] for line in read] == list(range(1, 501))
    assert [line["quantity"] for line in created["line_items"]] == list(range(1, 501))
    assert tools("quote_price", quote_id=created["quote_id"])["pricing"]["subtotal"] == 312 * 125250


def test_q18_one_line_more_than_the_limit_is_refused_and_the_limit_is_a_setting(tools: Tools, store: Settings):
    error = refused(tools, "quote_create", call_with(line_items=[SEATS] * 501))
    assert error["code"] == "VALIDATION_ERROR"
    assert (error["details"]["field"], error["details"]["maximum"]) == ("/line_items", 500)
    assert "import" in error["details"]["hint"]
    small = open_app(store.model_copy(update={"quote_lines_max": 2}))
    assert Tools(small).error("quote_create", **call_with(line_items=[SEATS] * 3))["details"]["maximum"] == 2
    small.close()


def test_q18_the_ramps_of_a_quote_have_so_many_stretches_and_no_more(tools: Tools):
    full = [{**SEATS, "ramp": [{"months": 1}] * 50}] * (STRETCHES_MAX // 50)
    one_more = {**SEATS, "ramp": [{"months": 50}]}
    quote_id = new_quote(tools, *full, term_months=50)
    error = refused(tools, "quote_create", call_with(term_months=50, line_items=[*full, one_more]))
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/line_items")
    assert error["details"]["maximum"] == STRETCHES_MAX == 5000
    call = {"quote_id": quote_id, "expected_version": 1}
    assert refused(tools, "quote_update", {**call, "add_lines": [one_more]})["details"]["field"] == "/add_lines"
    assert tools("quote_update", **call, add_lines=[SEATS])["outcome"] == "changed"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (call_with(currency="XXQ"), "/currency"),
        (call_with(currency=""), "/currency"),
        (call_with(currency=840), "/currency"),
        (call_with(term_months=0), "/term_months"),
        (call_with(term_months=-12), "/term_months"),
        (call_with(term_months=1.5), "/term_months"),
        (call_with(term_months=True), "/term_months"),
        (call_with(term_months=10**9), "/term_months"),
        (call_with(start_date="2026-02-30"), "/start_date"),
        (call_with(start_date="2026-2-3"), "/start_date"),
        (call_with(start_date="20260203"), "/start_date"),
        (call_with(start_date="2026-02-03T00:00:00Z"), "/start_date"),
        (call_with(start_date=20260203), "/start_date"),
        (call_with(account_id="  "), "/account_id"),
        (call_with(deal_id=" "), "/deal_id"),
        (call_with(line_items=[]), "/line_items"),
        (call_with(line_items="[]"), "/line_items"),
        (call_with(line_items="nonsense"), "/line_items"),
        (call_with(surprise=1), "/surprise"),
        (call_with(idempotency_key="k" * 256), "/idempotency_key"),
        (call_with(idempotency_key=" "), "/idempotency_key"),
        (line_with(quantity=0), "/line_items/0/quantity"),
        (line_with(quantity=-1), "/line_items/0/quantity"),
        (line_with(quantity=1_000_001), "/line_items/0/quantity"),
        (line_with(quantity=1.5), "/line_items/0/quantity"),
        (line_with(quantity=True), "/line_items/0/quantity"),
        (line_with(quantity="many"), "/line_items/0/quantity"),
        (line_with(quantity=None), "/line_items/0/quantity"),
        (line_with(discount_pct=-0.01), "/line_items/0/discount_pct"),
        (line_with(discount_pct=100.01), "/line_items/0/discount_pct"),
        (line_with(discount_pct=True), "/line_items/0/discount_pct"),
        (line_with(discount_pct="NaN"), "/line_items/0/discount_pct"),
        (line_with(discount_pct=float("nan")), "/line_items/0/discount_pct"),
        (line_with(discount_pct=float("inf")), "/line_items/0/discount_pct"),
        (line_with(discount_pct="1e400"), "/line_items/0/discount_pct"),
        (line_with(discount_pct="0.0000001"), "/line_items/0/discount_pct"),
        (line_with(product_id=" "), "/line_items/0/product_id"),
        (line_with(colour="red"), "/line_items/0/colour"),
        (line_with(attributes={"billing": "9" * 1001}), "/line_items/0/attributes/billing"),
        (line_with(attributes={"billing": "9" * 1_000_000}), "/line_items/0/attributes/billing"),
        (line_with(attributes={"billing": [1]}), "/line_items/0/attributes/billing"),
    ],
)
def test_q18_what_is_out_of_bounds_is_refused_by_name_and_nothing_is_stored(tools: Tools, arguments: dict, field: str):
    error = refused(tools, "quote_create", arguments)
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", field)


@pytest.mark.parametrize(
    "arguments",
    [
        line_with(quantity=1),
        line_with(quantity=1_000_000),
        line_with(discount_pct=0),
        line_with(discount_pct=100),
        line_with(discount_pct="0.000001"),
        line_with(discount_pct=-0.0),
        call_with(term_months=1),
        call_with(currency=" eur "),
        call_with(start_date="2028-02-29"),
        call_with(idempotency_key="k" * 255),
    ],
)
def test_q18_what_stands_on_a_bound_is_taken(sqlite_tools: Tools, arguments: dict):
    assert sqlite_tools("quote_create", **arguments)["status"] == "draft"


def test_q18_a_currency_is_upper_cased(tools: Tools):
    created = tools("quote_create", **call_with(currency="eur"))
    assert (created["currency"], created["line_items"][0]["unit_price"]) == ("EUR", 9.5)


def test_q06_a_quote_beyond_what_money_can_be_is_refused(tools: Tools):
    error = refused(tools, "quote_create", call_with(line_items=[{"product_id": "prod_qmb30", "quantity": 10**6}] * 99))
    assert (error["code"], error["details"]["maximum"]) == ("VALIDATION_ERROR", 10**12)


def test_q06_amounts_come_back_as_the_decimals_they_are(app: App, tools: Tools):
    prices = ("0.1", "0.000001", "1234567.891234", "99.995")
    made = [engine.product_row() for _ in prices]
    engine.import_dicts(app, "products", *made)
    rows = [
        {"product_id": row["id"], "price_book": "list", "currency": "USD", "unit_price": price}
        for row, price in zip(made, prices, strict=True)
    ]
    engine.import_dicts(app, "prices", *rows)
    lines = [{"product_id": row["id"], "quantity": n} for row, n in zip(made, (3, 1_000_000, 1, 1), strict=True)]
    created = tools("quote_create", **call_with(line_items=lines))["line_items"]
    assert [exact(line["subtotal"]) for line in created] == list(map(exact, ("0.3", "1", "1234567.89", "100")))
    assert [exact(line["unit_price"]) for line in created] == list(map(exact, ("0.1", "0.000001", "1234567.89", "100")))


def problem(tools: Tools, **arguments) -> list[tuple[str, str]]:
    error = refused(tools, "quote_create", arguments)
    problems = [(each["code"], each["field"]) for each in error["details"]["problems"]]
    assert (error["code"], error["details"]["field"]) == problems[0]
    return problems


def test_q19_each_kind_of_problem_has_its_code_and_changes_nothing(tools: Tools):
    assert problem(tools, **call_with(account_id="acct_none")) == [("NOT_FOUND", "/account_id")]
    assert problem(tools, **line_with(product_id="prod_none")) == [("NOT_FOUND", "/line_items/0/product_id")]
    assert problem(tools, **call_with(account_id="acct_sudair_025")) == [("CONFLICT", "/account_id")]
    assert problem(tools, **line_with(product_id="prod_vlr90"))[0] == ("CONFLICT", "/line_items/0/product_id")
    assert problem(tools, **call_with(currency="CHF")) == [("CURRENCY_MISMATCH", "/line_items/0/product_id")]
    wrong = line_with(attributes={"billing": "weekly"})
    assert problem(tools, **wrong) == [("CONFIGURATION_INVALID", "/line_items/0/attributes/billing")]
    torn = call_with(end_date="2026-12-31")
    assert problem(tools, **torn) == [("VALIDATION_ERROR", "/end_date")]


def test_q19_all_problems_come_together_in_the_order_of_their_codes(app: App, tools: Tools):
    engine.import_dicts(app, "products", engine.product_row(id="prod_unpriced"))
    lines = [
        {"product_id": "prod_pro_v2", "quantity": 1, "attributes": {"billing": "weekly", "colour": "red"}},
        {"product_id": "prod_unpriced", "quantity": 1},
        {"product_id": "prod_vlr90", "quantity": 1},
        {"product_id": "prod_none", "quantity": 1},
        {"product_id": "prod_fc150", "quantity": 1, "ramp": [{"months": 3}]},
    ]
    problems = problem(tools, **call_with(account_id="acct_sudair_025", line_items=lines, currency="USD"))
    assert [code for code, _ in problems if code != "CURRENCY_MISMATCH"] == [
        "VALIDATION_ERROR",
        "VALIDATION_ERROR",
        "NOT_FOUND",
        "CONFLICT",
        "CONFLICT",
        "CONFIGURATION_INVALID",
        "CONFIGURATION_INVALID",
    ]
    order = ["VALIDATION_ERROR", "NOT_FOUND", "CONFLICT", "CURRENCY_MISMATCH", "CONFIGURATION_INVALID"]
    assert [code for code, _ in problems] == sorted((code for code, _ in problems), key=order.index)
    assert ("CURRENCY_MISMATCH", "/line_items/1/product_id") in problems
    assert problems[:2] == [("VALIDATION_ERROR", "/line_items/4/ramp")] * 2


def test_q19_a_missing_account_does_not_hide_the_problems_of_the_lines(tools: Tools):
    lines = [{"product_id": "prod_none", "quantity": 1}, {"product_id": "prod_vlr90", "quantity": 1}, SEATS]
    assert problem(tools, **call_with(account_id="acct_none", line_items=lines)) == [
        ("NOT_FOUND", "/account_id"),
        ("NOT_FOUND", "/line_items/0/product_id"),
        ("CONFLICT", "/line_items/1/product_id"),
    ]


def test_q19_many_problems_are_counted_and_the_first_fifty_listed(tools: Tools):
    error = refused(tools, "quote_create", call_with(line_items=[{"product_id": "prod_none", "quantity": 1}] * 300))
    assert len(error["details"]["problems"]) == 50
    assert "and 299 more" in error["message"]


def test_q03_every_problem_offers_a_call_that_can_be_sent_as_it_is(tools: Tools):
    lines = [
        {"product_id": "prod_pro", "quantity": 1},
        {"product_id": "prod_vlr90", "quantity": 1},
        {"product_id": "prod_pro_v2", "quantity": 1, "attributes": {"billing": "weekly"}},
    ]
    error = tools.error("quote_create", **call_with(account_id="acct_acme", line_items=lines))
    offered = [each["next_call"] for each in error["details"]["problems"]]
    assert [call["tool"] for call in offered] == [
        "account_search",
        "catalog_search",
        "catalog_get",
        "product_configure",
    ]
    assert all(tools(call["tool"], **call["arguments"]) for call in offered)
    assert tools("account_search", **offered[0]["arguments"])["items"][0]["id"] == ACME


def test_q20_attributes_and_notes_come_back(tools: Tools):
    lines = [
        {**SEATS, "attributes": {"billing": "monthly"}, "notes": "With care – für Frau Ōtani\nsecond line"},
        {
            "product_id": "prod_fc150",
            "quantity": 2,
            "attributes": {"height": 1.25, "spare": True, "tag": "A-7", "n": 3},
        },
    ]
    quote_id = new_quote(tools, *lines, notes="As agreed.", deal_id=" D-1 ")
    read = tools("quote_get", quote_id=quote_id)
    assert [line["attributes"] for line in read["line_items"]] == [line["attributes"] for line in lines]
    assert [line["notes"] for line in read["line_items"]] == [lines[0]["notes"], None]
    assert (read["quote"]["notes"], read["quote"]["deal_id"]) == ("As agreed.", "D-1")
    assert read["line_items"][0]["unit_price"] == 12


def test_q22_pricing_is_absent_without_it_and_complete_with_it(tools: Tools):
    quote_id = new_quote(tools)
    assert "pricing" not in tools("quote_get", quote_id=quote_id, include_pricing=False)
    expected = {"subtotal": 1500, "discount_total": 0, "tax_total": 0, "total": 1500, "priced_at": None}
    assert tools("quote_get", quote_id=quote_id)["pricing"] == expected
    priced = tools("quote_price", quote_id=quote_id)
    assert tools("quote_get", quote_id=quote_id)["pricing"] == priced["pricing"]
    assert priced["pricing"]["priced_at"].endswith("Z")


def test_q22_a_line_says_what_its_discounts_took_off(tools: Tools):
    quote_id = new_quote(tools, {**SEATS, "discount_pct": 4})
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    (line,) = tools("quote_get", quote_id=quote_id)["line_items"]
    shown = {name: line[name] for name in ("unit_price", "discount_pct", "discount_amount", "subtotal", "line_total")}
    expected = {"unit_price": 10, "discount_pct": 13.6, "discount_amount": 204, "subtotal": 1500, "line_total": 1296}
    assert shown == expected


@pytest.mark.parametrize(
    ("start", "months", "end"),
    [
        ("2026-01-01", 12, "2026-12-31"),
        ("2026-01-31", 1, "2026-02-27"),
        ("2028-02-29", 12, "2029-02-27"),
        ("2026-03-15", 36, "2029-03-14"),
        (None, 12, None),
        ("2026-03-15", None, None),
    ],
)
def test_q23_the_last_day_is_start_and_term_less_a_day(sqlite_tools: Tools, start, months, end):
    quote_id = new_quote(sqlite_tools, start_date=start, term_months=months)
    read = sqlite_tools("quote_get", quote_id=quote_id)["quote"]
    assert (read["start_date"], read["term_months"], read["end_date"]) == (start, months, end)


def test_q23_a_quote_names_account_creator_and_the_last_valid_day(store: Settings):
    clock = engine.StillEffects(datetime(2026, 3, 1, 3, 0, tzinfo=UTC))
    app = open_app(store, clock)
    bot = Principal("mcp", "agent", frozenset({Role.AGENT}))
    named = Principal("riva", "agent", frozenset({Role.AGENT}))
    for principal, creator in ((bot, "agent:mcp"), (named, "agent:riva")):
        tools = Tools(app, principal=principal)
        read = tools("quote_get", quote_id=new_quote(tools))["quote"]
        assert (read["account_name"], read["created_by"]) == ("Acme Corp", creator)
        assert (read["created_at"], read["valid_until"]) == ("2026-03-01T03:00:00Z", "2026-03-30")
    app.close()


def test_q23_the_default_caller_is_the_agent_of_the_server(tools: Tools):
    assert tools("quote_get", quote_id=new_quote(tools))["quote"]["created_by"] == "agent:mcp"


@pytest.mark.parametrize("name", ["quote_get", "quote_price"])
def test_an_unknown_quote_is_not_found_and_the_next_call_lists_them(tools: Tools, name: str):
    error = refused(tools, name, {"quote_id": "Q-none"})
    assert (error["code"], error["details"]["field"]) == ("NOT_FOUND", "/quote_id")
    call = error["details"]["next_call"]
    assert tools(call["tool"], **call["arguments"])["items"] == []


def test_a_version_that_is_not_there_is_not_found_and_the_bound_is_named(tools: Tools):
    error = tools.error("quote_get", quote_id=new_quote(tools), version=2)
    assert (error["code"], error["details"]["field"], error["details"]["maximum"]) == ("NOT_FOUND", "/version", 1)


def test_q29_filters_combine_newest_first_with_true_totals(store: Settings, clock: engine.StillEffects):
    app = open_app(store, clock)
    tools = Tools(app)
    made = []
    for number in range(9):
        made.append(new_quote(tools, account_id=(ACME, "acct_groeb_002")[number % 2]))
        clock.advance(minutes=number % 3)
    put_into(app, made[0], "cancelled")
    put_into(app, made[1], "cancelled")
    with app.database.reading() as connection:
        rows = connection.execute(sa.select(quote.c.id, quote.c.created_at)).all()
    newest = [row.id for row in sorted(rows, key=lambda row: (-row.created_at.timestamp(), row.id))]
    assert ids(tools("quote_list")) == newest
    pages = [tools("quote_list", limit=4, page=page) for page in (1, 2, 3, 4)]
    assert [ids(page) for page in pages] == [newest[:4], newest[4:8], newest[8:], []]
    assert [page["pagination"]["has_more"] for page in pages] == [True, True, False, False]
    assert {page["pagination"]["total"] for page in pages} == {9}
    acme = tools("quote_list", account_id=ACME, status="draft")
    assert ids(acme) == [id_ for id_ in newest if id_ in made[2::2]]
    assert acme["pagination"]["total"] == 4
    assert tools("quote_list", account_id="acct_none")["items"] == []
    app.close()


def ids(page: dict) -> list[str]:
    return [item["id"] for item in page["items"]]


def test_q29_an_item_shows_the_current_total_and_status(tools: Tools):
    quote_id = new_quote(tools)
    tools("quote_price", quote_id=quote_id, requested_discount_pct=10)
    read = tools("quote_get", quote_id=quote_id)["quote"]
    (item,) = tools("quote_list")["items"]
    names = (
        "number",
        "owner",
        "id",
        "version",
        "account_id",
        "account_name",
        "status",
        "currency",
        "valid_until",
        "created_at",
    )
    assert item == {**{name: read[name] for name in names}, "total": 1350}


def test_q29_an_unknown_status_is_refused_with_the_known_ones(tools: Tools):
    error = tools.error("quote_list", status="aproved")
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/status")
    assert error["details"]["nearest"] == ["approved"]
    known = error["details"]["allowed"]
    assert known[:4] == ["draft", "pending_approval", "approved", "sent"]
    assert all(tools("quote_list", status=status)["items"] == [] for status in known)


def test_q29_a_quote_whose_last_day_is_over_is_listed_as_expired(store: Settings, clock: engine.StillEffects):
    app = open_app(store, clock)
    tools = Tools(app)
    made = {status: new_quote(tools) for status in ("draft", "pending_approval", "approved", "sent", "cancelled")}
    for status, quote_id in made.items():
        put_into(app, quote_id, status)
    clock.advance(days=32)
    assert set(ids(tools("quote_list", status="expired"))) == {made["approved"], made["sent"]}
    assert {item["id"]: item["status"] for item in tools("quote_list")["items"]} == {
        made[status]: "expired" if status in ("approved", "sent") else status for status in made
    }
    assert tools("quote_list", status="sent")["items"] == tools("quote_list", status="approved")["items"] == []
    assert ids(tools("quote_list", status="draft")) == [made["draft"]]
    app.close()


def test_q09_numbers_and_lists_sent_as_text_are_understood(tools: Tools):
    plain = {"product_id": "prod_pro_v2", "quantity": 150, "discount_pct": 2.5, "ramp": [{"months": 12}]}
    sloppy = {"product_id": " prod_pro_v2 ", "quantity": "150", "discount_pct": "2.5", "ramp": '[{"months": "12"}]'}
    expected = tools("quote_create", **call_with(line_items=[plain]))
    for lines in ([sloppy], json.dumps([sloppy]), json.dumps([plain])):
        created = tools("quote_create", **call_with(term_months="12", line_items=lines, currency="usd"))
        changed = {name: value for name, value in created["line_items"][0].items() if name != "line_id"}
        assert changed == {name: value for name, value in expected["line_items"][0].items() if name != "line_id"}


def test_q09_a_discount_is_read_from_its_decimal_text(tools: Tools):
    quote_id = new_quote(tools, {**SEATS, "discount_pct": 0.1}, {**SEATS, "discount_pct": "33.333333"})
    assert [line["discount_pct"] for line in tools("quote_get", quote_id=quote_id)["line_items"]] == [0.1, 33.333333]


def test_q11_the_same_key_gives_the_same_quote_whatever_happened_to_it_since(app: App, tools: Tools):
    first = tools("quote_create", **CALL, idempotency_key="k1")
    tools("quote_update", quote_id=first["quote_id"], expected_version=1, notes="changed")
    tools("quote_cancel", quote_id=first["quote_id"], expected_version=1)
    before = stored(app)
    again = tools("quote_create", **CALL, idempotency_key=" k1 ")
    assert again == {**first, "outcome": "replayed", "replayed": True}
    assert again["idempotency_key"] == "k1"
    assert stored(app) == before


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"term_months": 24}, "/term_months"),
        ({"account_id": "acct_groeb_002"}, "/account_id"),
        ({"line_items": [{**SEATS, "quantity": 151}]}, "/line_items"),
        ({"notes": "new"}, "/notes"),
    ],
)
def test_q11_the_same_key_with_another_request_names_what_differs(tools: Tools, changed: dict, field: str):
    tools("quote_create", **CALL, idempotency_key="k1")
    error = refused(tools, "quote_create", call_with(**changed, idempotency_key="k1"))
    assert (error["code"], error["details"]["differing"]) == ("CONFLICT", [field])


def test_q11_spelling_a_default_out_is_the_same_request(tools: Tools):
    first = tools("quote_create", **CALL, idempotency_key="k1")
    spelled = {**SEATS, "quantity": "150", "discount_pct": 0, "attributes": {}}
    again = tools("quote_create", **call_with(line_items=[spelled], notes=None), idempotency_key="k1")
    assert (again["quote_id"], again["replayed"]) == (first["quote_id"], True)


def test_q11_a_refused_call_does_not_burn_the_key(tools: Tools):
    for wrong in (call_with(account_id="acct_none"), line_with(product_id="prod_none"), line_with(quantity=0)):
        refused(tools, "quote_create", {**wrong, "idempotency_key": "k1"})
    assert tools("quote_create", **CALL, idempotency_key="k1")["replayed"] is False


def test_q11_the_scope_of_a_key_is_caller_and_tool(app: App, tools: Tools):
    other = Tools(app, principal=Principal("riva", "agent", frozenset({Role.AGENT})))
    first = tools("quote_create", **CALL, idempotency_key="k1")["quote_id"]
    assert other("quote_create", **CALL, idempotency_key="k1")["quote_id"] != first
    assert tools("quote_price", quote_id=first, idempotency_key="k1")["replayed"] is False
    again = tools("quote_price", quote_id=first, idempotency_key="k1")
    assert (again["replayed"], again["outcome"]) == (True, "replayed")


def test_q12_a_call_leaves_one_record_that_names_the_quote(app: App, tools: Tools):
    quote_id = new_quote(tools)
    tools("quote_get", quote_id=quote_id)
    tools("quote_price", quote_id=quote_id)
    tools.error("quote_send", quote_id=quote_id, expected_version=9)
    app.flush_audit()
    with app.database.reading() as connection:
        columns = (audit_entry.c.operation, audit_entry.c.outcome, audit_entry.c.caller)
        rows = connection.execute(sa.select(*columns).where(audit_entry.c.subject == quote_id)).all()
    assert sorted(map(tuple, rows)) == [
        ("quote_create", "OK", "agent:mcp"),
        ("quote_get", "OK", "agent:mcp"),
        ("quote_price", "OK", "agent:mcp"),
        ("quote_send", "CONFLICT", "agent:mcp"),
    ]


@pytest.mark.parametrize("pair", [(1, 60), (30, 500)])
def test_a_quote_takes_as_many_statements_however_many_lines_it_has(tools: Tools, pair: tuple[int, int]):
    # A recurring one first, because the first one is a whole quote: its prices per period take one statement more.
    products = ["prod_pro_v2", "prod_fc150", "prod_tk240v", "prod_qmb30", "prod_oil_screw"]
    counts = []
    new_quote(tools, *({"product_id": product, "quantity": 1} for product in products))
    for size in pair:
        lines = [{"product_id": products[n % len(products)], "quantity": n % 50 + 1} for n in range(size)]
        calls = []
        with counted_statements() as seen:
            quote_id = new_quote(tools, *lines)
        calls.append(without_shares(seen))
        for name in ("quote_get", "quote_price", "quote_price", "quote_list"):
            with counted_statements() as seen:
                tools(name, **({} if name == "quote_list" else {"quote_id": quote_id}))
            calls.append(without_shares(seen))
        counts.append(calls)
    assert counts[0] == counts[1]
    assert max(counts[0]) <= 20


def without_shares(statements: list[str]) -> int:
    """How many there are; what a caller stores is counted once for each 256 kB, whichever quote fills it."""
    return sum("caller_bytes" not in statement for statement in statements)


def test_q29_a_page_takes_as_many_statements_however_many_quotes_it_shows(tools: Tools):
    counts = []
    for account in (ACME, "acct_groeb_002", "acct_4mfoods_003"):
        new_quote(tools, account_id=account)
        with counted_statements() as seen:
            tools("quote_list")
        counts.append(len(seen))
    assert len(set(counts)) == 1


def test_q27_both_databases_hold_the_same_quote(sqlite_app: App, cluster, postgres_template: str):
    other = open_app(read_settings({}, database_url=cluster.url(engine.copy_of(cluster, postgres_template))))
    lines = [
        {"product_id": "prod_enterprise_v2", "quantity": 777, "discount_pct": 3.3, "attributes": {"support": "24x7"}},
        {"product_id": "prod_oil_screw", "quantity": 13, "attributes": {"height": 1.25}},
        {"product_id": "prod_bdl_qmb30", "quantity": 2},
        {"product_id": "prod_fc150", "quantity": 7, "notes": "ü"},
    ]
    answers = []
    for app in (sqlite_app, other):
        tools = Tools(app)
        quote_id = new_quote(tools, *lines, account_id="acct_lonestar_004", start_date="2026-01-31")
        priced = tools("quote_price", quote_id=quote_id, requested_discount_pct="7.77")
        read = tools("quote_get", quote_id=quote_id)
        text = json.dumps([priced, read], sort_keys=True).replace(quote_id, "Q")
        times = {read["quote"]["created_at"], read["pricing"]["priced_at"]}
        for time in times:
            text = text.replace(time, "T")
        answers.append(text)
        assert_sound(app)
    assert answers[0] == answers[1]
    other.close()


@pytest.mark.anyio
async def test_q21_a_real_client_walks_from_the_catalogue_to_a_price(sqlite_app: App):
    async with Client(Facade(sqlite_app, list(ALL_TOOLS))) as client:
        found = await client.call_tool("catalog_search", {"query": "pro plan"})
        product_id = (found.structured_content or {})["items"][0]["id"]
        line = {"product_id": product_id, "quantity": 150}
        created = await client.call_tool("quote_create", {**CALL, "line_items": [line]})
        quote_id = (created.structured_content or {})["quote_id"]
        read = await client.call_tool("quote_get", {"quote_id": quote_id})
        priced = await client.call_tool("quote_price", {"quote_id": quote_id, "requested_discount_pct": 10})
        failed = await client.call_tool("quote_create", {**CALL, "account_id": "acct_none"})
    assert json.loads(read.content[0].text) == read.structured_content  # type: ignore[union-attr] # A text block.
    assert (read.structured_content or {})["pricing"]["subtotal"] == 1500
    assert (priced.structured_content or {})["pricing"]["total"] == 1350
    assert failed.is_error
    assert (failed.structured_content or {})["error"]["code"] == "NOT_FOUND"


def test_created_quotes_are_apart_even_in_one_moment(store: Settings, clock: engine.StillEffects):
    app = open_app(store, clock)
    assert len({new_quote(Tools(app)) for _ in range(20)}) == 20
    assert app.effects.now() - clock.now() == timedelta(0)
    app.close()


def test_an_account_whose_tax_zone_no_policy_names_is_told_so(tools: Tools):
    changed = {"id": ACME, "name": "Acme Corp", "segment": "enterprise", "region": "na", "country": "US"}
    engine.import_dicts(tools.app, "accounts", {**changed, "currency": "USD", "tax_zone": "us-oh", "locale": "en_US"})
    error = tools.error("quote_create", account_id=ACME, line_items=[SEATS])
    assert (error["code"], error["details"]["field"]) == ("CONFLICT", "/account_id")
    assert "'us-oh', which tax.yaml does not name" in error["message"]
