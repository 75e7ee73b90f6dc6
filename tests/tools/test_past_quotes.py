"""The past-quotes tools on both databases: proven words whole, with where they come from, names for those who sell."""

import json
import re
import tracemalloc

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from cpq.app import App
from cpq.app.access import LOCAL_AGENT, Principal, Role
from cpq.domain.quotes.customer_names import HIDDEN, NOBODY_ELSE, Names
from cpq.retrieval.past_quotes import LINES, repository, variants
from cpq.retrieval.search import table_source
from cpq.services.catalog import read_rows
from cpq.storage.schema.tables import past_line, past_quote
from tests.support import engine
from tests.support.engine import Tools, open_app
from tests.support.quotes import new_quote, sent_quote

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
    engine.import_history(app, file)


def _change(app: App, section: str, row_id: str, **values: str) -> None:
    """Import a row of the sample once more, with other values."""
    file = next(file for file, holds in engine.SAMPLE_FILES if holds == section)
    rows = (row for row in read_rows(engine.SAMPLE / file, section) if row.section == section)
    row = next(row.values for row in rows if row.values["id"] == row_id)
    engine.import_dicts(app, section, {**row, **values})


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


MENTIONS = {
    "The Groeb Farms": "for Groeb, in GROEB green, by the gate of the Groeb Farms",
    "St. Mary Hospital": "for St. Mary's basement, below the mary wing",
    "Acme Foods, Inc.": "for ACME FOODS INC at Acme's dock, acme foods",
    "Anheuser-Busch": "for Anheuser Busch, the Busch brewery, anheuser",
    "4M Foods": "for 4M, as 4m had it before",
    "J. R. Simplot": "for Simplot, signed J.R. Simplot",
    "Müller AG": "for Mueller, MULLER, Mu\u0308ller and Müller's",
    "Smith & Wesson": "for Wesson, Smith and Wesson, smith",
    "Quokka Nougat": "drawings at www.QuokkaNougat.com, questions to info@quokkanougat.com",
    "Zed Works": "as we sold it to Acme Foods and to Anheuser-Busch, like Groeb and quokkanougat.com, for zed",
    "Wembley Toffee": "x" * 140 + " puller for Wembley",
}


def test_names_are_hidden_however_they_are_written_and_those_of_others_too(sqlite_app: App, tmp_path):
    """Also where a text is cut, in the model, the category and the notes."""
    quotes = [
        {
            **PAST,
            "id": f"N-{number}",
            "customer": name,
            "project": text[-100:],
            "notes": text,
            "line_items": [{"category": f"{name} Puller", "description": text, "model": f"{name}-1"}],
        }
        for number, (name, text) in enumerate(MENTIONS.items())
    ]
    _import(sqlite_app, tmp_path, *quotes)
    others = Tools(sqlite_app, principal=LEGAL)
    answers = [others("get_quote", quote_id=quote["id"]) for quote in quotes]
    answers += [others(tool, query="puller", top_k=50) for tool in ("search_line_items", "search_past_quotes")]
    answers += [others("search_line_items", query="puller", category="nothing")]
    told = json.dumps(answers, ensure_ascii=False).casefold()
    for name in (
        "groeb",
        "mary",
        "acme",
        "anheuser",
        "busch",
        "4m",
        "simplot",
        "m.{1,2}ller",
        "wesson",
        "smith",
        "zed",
        "quokka.*",
    ):
        assert not re.search(rf"\b{name}\b", told), name
    assert "wemb" not in told
    for name in ("Groeb", "mary", "Acme", "Busch", "Simplot", "Mueller", "Wesson", "zed", "quokkanougat"):
        assert others("search_line_items", query=name)["results"] == []


def test_the_hint_of_a_wrong_category_names_no_customer_either(sqlite_app: App, tmp_path):
    line = {"category": "Puller as at Brassica", "description": "Toffee puller"}
    _import(sqlite_app, tmp_path, {**PAST, "line_items": [line]}, {**PAST, "id": "OLD-2", "customer": "Brassica Ltd"})
    asked = {"query": "toffee puller", "category": "puller as at"}
    assert "puller as at brassica" in Tools(sqlite_app)("search_line_items", **asked)["hint"]
    hint = Tools(sqlite_app, principal=LEGAL)("search_line_items", **asked)["hint"]
    assert "puller as at [customer]" in hint
    assert "brassica" not in hint


def test_hiding_names_takes_no_more_for_many_customers_than_for_few():
    """Measured by the memory it takes: what is made of all names for each word of a text takes as long.

    The least of several times, because other threads of the process take memory, too.
    """
    many = Names(f"Zorb{number} Works" for number in range(5_000))
    text = "100 HP oil flooded rotary screw air compressor, with start up and freight, as at Zorb77"
    assert many.hidden(text, "Acme Foods").endswith("as at [customer]")

    def taken() -> int:
        tracemalloc.start()
        try:
            many.hidden(text, "Acme Foods")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert min(taken() for _ in range(5)) < 50_000


@given(st.sampled_from(sorted(MENTIONS)), st.text(max_size=30), st.text(max_size=30))
def test_a_hidden_name_leaves_the_rest_of_the_text(name: str, before: str, after: str):
    shown = NOBODY_ELSE.hidden(f"{before} {name} {after}", name)
    assert HIDDEN in shown
    assert NOBODY_ELSE.hidden(shown, name) == shown
    plain = "one 100 hp oil flooded screw, st. and the"
    assert NOBODY_ELSE.hidden(plain, name) == plain


def test_no_sample_quote_tells_its_customer_to_those_who_may_not_know(sqlite_app: App):
    sellers, others = Tools(sqlite_app), Tools(sqlite_app, principal=LEGAL)
    ids = [hit["quote"]["quote_id"] for hit in sellers("search_past_quotes", query="air", top_k=50)["results"]]
    for quote_id in ids:
        name = sellers("get_quote", quote_id=quote_id)["quote"]["customer"]
        assert name.split()[0].casefold() not in json.dumps(others("get_quote", quote_id=quote_id)).casefold()


def test_a_new_customer_is_hidden_in_what_was_indexed_before(sqlite_app: App, tmp_path):
    """Whoever it is whose name turns up in another's quote."""
    line = {"category": "Toffee puller", "description": "Toffee puller as at Brassica Ltd"}
    _import(sqlite_app, tmp_path, {**PAST, "line_items": [line]})
    others = Tools(sqlite_app, principal=LEGAL)
    assert "Brassica" in others("search_line_items", query="Brassica")["results"][0]["snippet"]
    _import(sqlite_app, tmp_path, {**PAST, "line_items": [line]}, {**PAST, "id": "OLD-2", "customer": "Brassica Ltd"})
    assert others("search_line_items", query="Brassica")["results"] == []
    found = others("search_line_items", query="toffee puller")
    assert "Toffee puller as at [customer]" in json.dumps(found)


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
    tools.seller("quote_accept", quote_id=sent, expected_version=1)
    assert tools("get_quote", quote_id=sent)["quote"]["outcome"] == "won"


def test_a_quote_of_our_own_is_of_the_day_on_its_document_and_ends_with_its_last_day(
    sqlite_app: App, clock: engine.StillEffects
):
    app = open_app(sqlite_app.settings, clock)
    tools = Tools(app)
    quote_id = new_quote(tools)
    clock.advance(days=5)
    tools("quote_price", quote_id=quote_id)
    clock.advance(days=5)
    tools("quote_send", quote_id=quote_id, expected_version=1)
    past = tools("get_quote", quote_id=quote_id)
    assert (past["quote"]["quoted_on"], past["quote"]["outcome"]) == ("2026-11-21", "open")
    assert past["line_items"][0]["past_price"]["quoted_on"] == "2026-11-21"
    clock.advance(days=400)
    assert tools("get_quote", quote_id=quote_id)["quote"]["outcome"] == "unknown"
    app.close()


def test_an_id_that_an_older_store_has_twice_is_the_one_of_history(sqlite_app: App, tmp_path):
    sent = sent_quote(Tools(sqlite_app))
    _import(sqlite_app, tmp_path, PAST)
    with sqlite_app.database.writing(sqlite_app.effects.monotonic() + 30) as connection:
        connection.execute(sa.text("PRAGMA defer_foreign_keys = ON"))
        for column in (past_line.c.quote_id, past_quote.c.id):
            connection.execute(sa.update(column.table).where(column == "OLD-1").values({column: sent}))
    call = sqlite_app.new_call(LOCAL_AGENT)
    found = sqlite_app.read_unaudited(call, lambda tx: list(repository.load(tx, None)))
    assert [past.origin for past in found if past.id == sent] == ["history"]


@pytest.mark.parametrize(
    ("section", "row_id", "changes"),
    [
        ("accounts", "acct_acme_001", {"name": "Zebulon Glacier Inc"}),
        ("products", "prod_qmb30", {"description": "As built for the Zebulon Glacier"}),
    ],
)
def test_a_renamed_account_or_product_is_found_in_the_quotes_that_went_out(
    tools: Tools, section: str, row_id: str, changes: dict
):
    sent = sent_quote(tools, {"product_id": "prod_qmb30", "quantity": 2})
    assert tools("search_line_items", query="Zebulon Glacier")["results"] == []
    _change(tools.app, section, row_id, **changes)
    assert tools("search_line_items", query="Zebulon Glacier")["results"][0]["source_quote"]["quote_id"] == sent


def test_a_customer_who_is_renamed_is_hidden_by_the_new_name(sqlite_app: App, tmp_path):
    """In what others' quotes tell, and in what was indexed before."""
    sent_quote(Tools(sqlite_app))
    _import(sqlite_app, tmp_path, {**PAST, "line_items": [{"category": "Puller", "description": "As at Zebulon"}]})
    others = Tools(sqlite_app, principal=LEGAL)
    assert others("search_line_items", query="Zebulon")["results"]
    _change(sqlite_app, "accounts", "acct_acme_001", name="Zebulon Glacier Inc")
    assert others("search_line_items", query="Zebulon")["results"] == []
    assert others("get_quote", quote_id="OLD-1")["line_items"][0]["description"] == "As at [customer]"


def test_r07_a_server_builds_what_is_searched_without_names_too(sqlite_app: App, tmp_path):
    """Neither the first search nor one after a quote to a new customer, who is to be hidden everywhere, waits."""
    others = Tools(sqlite_app, principal=LEGAL)
    table_source.embed_round(sqlite_app, [LINES], variants)
    unnamed = next(corpus for key, corpus in sqlite_app.kept.items() if key[1:] == ("past_lines", "unnamed"))
    built_for = unnamed.basis
    _import(sqlite_app, tmp_path, PAST)
    assert others("search_line_items", query="oilless compressor")["results"]
    assert unnamed.basis is built_for is not None
    table_source.embed_round(sqlite_app, [LINES], variants)
    assert unnamed.basis is not built_for


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


@pytest.mark.parametrize("tool", ["search_line_items", "search_past_quotes"])
def test_an_amount_in_another_unit_finds_what_the_unit_of_the_past_lines_finds(tools: Tools, tool: str):
    found = tools(tool, query="75 kW oilless compressor", top_k=5)
    same = tools(tool, query="100 HP oilless compressor", top_k=5)
    assert found["conversions"] == [{"argument": "query", "from": "75 kW", "to": "100.58 hp", "searched": "100 hp"}]
    assert [hit["score"] for hit in found["results"]] == [hit["score"] for hit in same["results"]]
    assert "conversions" not in same
