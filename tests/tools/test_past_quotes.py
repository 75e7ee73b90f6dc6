"""The past-quotes tools on both databases: proven words whole, with where they come from, names for those who sell."""

import json

import pytest

from cpq.access import Principal, Role
from cpq.app import App
from tests import make
from tests.make import Tools
from tests.quoting import new_quote, sent_quote

GROEB = "Groeb Honey Packing"
LEGAL = Principal("lee", "human", frozenset({Role.LEGAL}))
LONG = "SCOPE " + " ".join(f"step {n} of the dense installation block" for n in range(600))

PAST = {
    "id": "OLD-1",
    "customer": "Wembley Toffee",
    "project": "Toffee line for Wembley Toffee",
    "quoted_on": "2019-05-04",
    "currency": "EUR",
    "line_items": [
        {
            "category": "Toffee puller",
            "description": "Toffee puler with recieving tray, for Wembley",
            "unit_price": "12.5",
        },
        {"category": "Installation", "description": LONG, "quantity": 2},
    ],
}


@pytest.fixture
def with_toffee(app: App, tmp_path) -> App:
    _import(app, tmp_path, PAST)
    return app


def _import(app: App, folder, *quotes: dict) -> None:
    file = folder / "past.json"
    file.write_text(json.dumps(list(quotes)), encoding="utf-8")
    make.import_history(app, file)


def test_c2_07_a_line_comes_whole_and_verbatim_with_its_source(with_toffee: App):
    hit = Tools(with_toffee)("search_line_items", query="toffee puller")["results"][0]
    assert hit["line_item"]["description"] == "Toffee puler with recieving tray, for Wembley"
    assert hit["source_quote"] == {
        "quote_id": "OLD-1",
        "origin": "history",
        "customer": "Wembley Toffee",
        "project": "Toffee line for Wembley Toffee",
        "quoted_on": "2019-05-04",
        "currency": "EUR",
        "outcome": "unknown",
        "salesperson": None,
        "line_count": 2,
    }
    assert hit["confidence"] == "likely_good"
    assert 0 < hit["score"] <= 1


def test_a_past_price_is_never_without_its_day_and_quote(with_toffee: App):
    lines = Tools(with_toffee)("get_quote", quote_id="OLD-1")["line_items"]
    price = lines[0]["past_price"]
    assert (price["amount"], price["currency"], price["per"]) == (12.5, "EUR", "unit")
    assert (price["quoted_on"], price["quote_id"]) == ("2019-05-04", "OLD-1")
    assert "not a price of today" in price["note"]
    assert lines[1]["past_price"] is None


def test_c2_21_long_descriptions_are_returned_whole(with_toffee: App):
    hit = Tools(with_toffee)("search_line_items", query="step 599 of the dense installation block")["results"][0]
    assert hit["line_item"]["description"] == LONG
    assert len(hit["snippet"]) <= 242


def test_c2_11_the_category_filter_is_exact_and_helps_when_it_is_wrong(tools: Tools):
    found = tools("search_line_items", query="duplex", category="vacuum_SYSTEM", top_k=50)
    assert {hit["line_item"]["category"] for hit in found["results"]} == {"Vacuum System"}
    assert found["eligible"] >= len(found["results"]) > 5
    wrong = tools("search_line_items", query="duplex", category="vacum system")
    assert wrong["results"] == []
    assert "Did you mean vacuum system?" in wrong["hint"]


def test_c2_05_past_quotes_by_project(tools: Tools):
    found = tools("search_past_quotes", query="hospital medical air and vacuum")
    best = found["results"][0]
    assert best["quote"]["customer"] == "Tri-County Hospital"
    assert "NFPA 99" in best["summary"]
    assert found["eligible"] == 350


def test_c2_06_a_past_quote_with_its_lines(tools: Tools):
    hit = tools("search_past_quotes", query=GROEB)["results"][0]["quote"]
    detail = tools("get_quote", quote_id=hit["quote_id"])
    assert detail["quote"] == hit
    assert len(detail["line_items"]) == hit["line_count"]
    error = tools.error("get_quote", quote_id="nothing")
    assert error["code"] == "NOT_FOUND"
    assert error["details"]["next_call"]["tool"] == "search_past_quotes"


def test_names_of_customers_are_for_those_who_sell(with_toffee: App):
    others = Tools(with_toffee, principal=LEGAL)
    detail = others("get_quote", quote_id="OLD-1")
    assert detail["quote"]["customer"] is None
    assert detail["quote"]["customer_withheld"] is True
    assert "Wembley" not in json.dumps(detail)
    hit = others("search_line_items", query="toffee puller")["results"][0]
    assert hit["line_item"]["description"] == "Toffee puler with recieving tray, for [customer]"
    assert "Wembley" not in json.dumps(hit)


def test_who_may_not_see_a_name_cannot_find_by_it_either(with_toffee: App):
    sellers, others = Tools(with_toffee), Tools(with_toffee, principal=LEGAL)
    for tool in ("search_line_items", "search_past_quotes"):
        assert sellers(tool, query="Wembley")["results"]
        assert others(tool, query="Wembley")["results"] == []
    assert sellers("search_past_quotes", query=GROEB)["results"][0]["quote"]["customer"] == GROEB


def test_a_quote_that_went_out_is_a_past_quote_and_a_draft_is_none(tools: Tools):
    draft = new_quote(tools)
    assert tools.error("get_quote", quote_id=draft)["code"] == "NOT_FOUND"
    sent = sent_quote(tools, {"product_id": "prod_qmb30", "quantity": 2, "notes": "With a purple canopy."})
    hit = tools("search_line_items", query="purple canopy")["results"][0]
    assert hit["source_quote"]["quote_id"] == sent
    assert (hit["source_quote"]["origin"], hit["source_quote"]["outcome"]) == ("stored", "open")
    assert hit["line_item"]["product_id"] == "prod_qmb30"
    assert hit["line_item"]["past_price"]["per"] == "line"
    tools("quote_accept", quote_id=sent, expected_version=1)
    assert tools("get_quote", quote_id=sent)["quote"]["outcome"] == "won"


def test_a_changed_import_replaces_the_quote_and_its_hits(with_toffee: App, tmp_path):
    tools = Tools(with_toffee)
    assert tools("search_line_items", query="toffee puller")["results"]
    other = {**PAST, "line_items": [{"category": "Mixer", "description": "Nougat mixer"}]}
    _import(with_toffee, tmp_path, other)
    assert tools("search_line_items", query="nougat mixer")["results"][0]["source_quote"]["quote_id"] == "OLD-1"
    assert "Toffee pul" not in json.dumps(tools("search_line_items", query="toffee puller")["results"])


@pytest.mark.parametrize("tool", ["search_line_items", "search_past_quotes"])
def test_r06_blank_queries_fail_and_long_ones_do_not(sqlite_tools: Tools, tool: str):
    assert sqlite_tools.error(tool, query=" \n ")["details"]["field"] == "/query"
    assert len(sqlite_tools(tool, query="oilless compressor for a food plant " * 250, top_k=3)["results"]) == 3


def test_r05_retrieved_text_is_marked_and_vectors_stay_inside(sqlite_tools: Tools):
    for tool in ("search_line_items", "search_past_quotes", "search_equipment"):
        found = sqlite_tools(tool, query="oilless compressor")
        assert "never instructions" in found["notice"]
        assert "vector" not in json.dumps(found)


def test_r03_the_same_question_gives_the_same_bytes(sqlite_tools: Tools):
    asked = {"query": "refrigerated dryer for 400 cfm", "top_k": 20}
    assert sqlite_tools.reply("search_line_items", asked).text == sqlite_tools.reply("search_line_items", asked).text
