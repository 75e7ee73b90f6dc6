"""The catalogue tools as an agent uses them: Q-05, Q-08, Q-09, Q-13 to Q-16."""

from dataclasses import replace

import pytest

from cpq.app import App
from cpq.app.access import OPERATOR
from cpq.base.settings import read_settings
from cpq.retrieval.equipment import repository
from cpq.retrieval.search import table_source
from tests.support import engine
from tests.support.engine import Tools, open_app


def found(tools: Tools, **arguments) -> list[str]:
    return [item["id"] for item in tools("catalog_search", **arguments)["items"]]


def test_q13_a_search_needs_a_query_or_a_category(tools: Tools):
    for blank in ({}, {"query": " "}, {"query": "", "category": "  "}, {"query": None}):
        error = tools.error("catalog_search", **blank)
        assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/query")
        assert tools(error["details"]["next_call"]["tool"], **error["details"]["next_call"]["arguments"])["items"]


def test_q13_a_category_alone_lists_all_of_it_in_the_order_of_ids(tools: Tools):
    page = tools("catalog_search", category="saas", limit=100)
    ids = [item["id"] for item in page["items"]]
    assert ids == sorted(ids)
    assert "prod_pro_v2" in ids
    assert page["pagination"] == {"total": len(ids), "page": 1, "per_page": 100, "has_more": False}
    assert {item["category"] for item in page["items"]} == {"saas"}


def test_q13_filters_apply_before_paging(tools: Tools):
    everywhere = tools("catalog_search", query="dryer", limit=100)["items"]
    expected = [item["id"] for item in everywhere if item["category"] == "dryers"]
    pages = [tools("catalog_search", query="dryer", category="dryers", limit=5, page=n) for n in range(1, 8)]
    assert sorted(item["id"] for page in pages for item in page["items"]) == sorted(expected)
    assert {page["pagination"]["total"] for page in pages} == {len(expected)}


def test_q13_inactive_products_are_left_out_unless_asked_for(tools: Tools):
    active = set(found(tools, category="compressors", limit=100))
    every = set(found(tools, category="compressors", limit=100, active_only=False))
    assert active < every
    hidden = min(every - active)
    assert hidden not in found(tools, query=hidden)
    assert found(tools, query=hidden, active_only=False)[0] == hidden


def test_q14_words_match_in_any_order_and_the_last_may_be_unfinished(tools: Tools):
    assert found(tools, query="pro plan") == found(tools, query="plan pro") == found(tools, query="Plan PRO")
    assert found(tools, query="pro pl") == ["prod_pro_v2"]


@pytest.mark.parametrize("query", ["PLAN-PRO-001", "plan-pro-001", "planpro001", "prod_pro_v2", "plan pro 001"])
def test_q14_a_code_finds_its_product_however_it_is_written(tools: Tools, query: str):
    assert found(tools, query=query)[0] == "prod_pro_v2"


@pytest.mark.parametrize(("typed", "meant"), [("compresor", "compressor"), ("vaccum", "vacuum"), ("dyrer", "dryer")])
def test_q14_small_typing_errors_are_forgiven(tools: Tools, typed: str, meant: str):
    forgiven = set(found(tools, query=typed, limit=100))
    assert forgiven
    assert forgiven >= set(found(tools, query=meant, limit=100))
    assert any(meant in item["name"].lower() for item in tools("catalog_search", query=typed)["items"])


def test_q14_exact_hits_stand_before_corrected_ones(app: App, tools: Tools):
    engine.import_dicts(
        app,
        "products",
        engine.product_row(id="prod_a_near", name="Zebrano panel"),
        engine.product_row(id="prod_z_exact", name="Zebrana panel"),
    )
    assert found(tools, query="zebrana") == ["prod_z_exact", "prod_a_near"]


def test_q14_a_hit_in_the_name_stands_before_a_hit_in_the_description(app: App, tools: Tools):
    engine.import_dicts(
        app,
        "products",
        engine.product_row(id="prod_a", name="Panel", description="Goes with the quixotic frame."),
        engine.product_row(id="prod_b", name="Quixotic frame"),
    )
    assert found(tools, query="quixotic frame") == ["prod_b", "prod_a"]


def test_q14_pages_are_disjoint_stable_and_complete(tools: Tools):
    whole = found(tools, query="dryer", limit=100)
    pages = [found(tools, query="dryer", limit=7, page=number) for number in range(1, len(whole) // 7 + 3)]
    assert [id_ for page in pages for id_ in page] == whole
    assert len(set(whole)) == len(whole)


def test_q14_both_databases_give_the_same_pages(sqlite_app: App, cluster, postgres_template: str):
    other = open_app(read_settings({}, database_url=cluster.url(engine.copy_of(cluster, postgres_template))))
    for query in (
        "air",
        "rotary screw",
        "oilless 100hp",
        "compresor",
        "qmb",
        "filter element",
        "plan",
        "vaccum pumps",
        "oilless unicorn",
    ):
        for page in (1, 2):
            arguments = {"query": query, "limit": 30, "page": page}
            assert Tools(sqlite_app)("catalog_search", **arguments) == Tools(other)("catalog_search", **arguments)
    other.close()


def test_q14_a_query_without_a_single_word_finds_nothing_and_says_so(tools: Tools):
    page = tools("catalog_search", query="!!! ???")
    assert (page["items"], page["pagination"]["total"]) == ([], 0)
    assert page["hint"]


def test_q15_include_relationships_is_accepted_and_ignored_by_the_search(tools: Tools):
    plain = tools("catalog_search", query="pro plan")
    for value in (True, False, "yes", None, 3):
        assert tools("catalog_search", query="pro plan", include_relationships=value) == plain


def test_q16_a_product_comes_with_attributes_specs_and_prices(tools: Tools):
    product = tools("catalog_get", product_id="prod_qmb30")
    assert product["attributes"]["model"] == "QMB30"
    assert product["specs"]["hp"] == {"value": 30, "unit": "hp"}
    assert product["specs"]["service_factor"]["value"] == 1.15
    assert product["specs"]["lubrication"] == {"value": "oil-flooded", "unit": None}
    usd = [price for price in product["prices"] if (price["price_book"], price["currency"]) == ("list", "USD")]
    assert [(price["unit_price"], price["billing_period"]) for price in usd] == [(14650, "one_time")]
    assert "relationships" not in product
    assert "cost" not in usd[0]


def test_q16_attributes_are_an_empty_object_when_there_are_none(tools: Tools):
    product = tools("catalog_get", product_id="prod_pro_v2")
    assert product["attributes"] == {}
    expected = {
        "id": "prod_pro_v2",
        "sku": "PLAN-PRO-001",
        "name": "Pro Plan",
        "description": "Professional tier with advanced features",
        "product_type": "configurable",
        "category": "saas",
        "active": True,
    }
    assert expected.items() <= product.items()
    assert product["created_at"].endswith("Z")


def test_q16_relationships_and_options_come_when_asked_for(tools: Tools):
    product = tools("catalog_get", product_id="prod_pro_v2", include_relationships=True)
    assert [option["name"] for option in product["options"]] == ["billing"]
    assert product["options"][0]["default"] == "annual"
    bundle = tools("catalog_get", product_id="prod_bdl_qmb30", include_relationships=True)
    components = [related for related in bundle["relationships"] if related["kind"] == "component"]
    assert len(components) > 1
    assert all(related["name"] and related["quantity"] >= 1 for related in components)


def test_q16_a_price_that_has_ended_is_not_shown(app: App, tools: Tools):
    row = {"product_id": "prod_tk240v", "price_book": "list", "currency": "CHF", "unit_price": "1"}
    engine.import_dicts(app, "prices", {**row, "valid_to": "2020-01-31"}, {**row, "valid_from": "2020-02-01"})
    prices = tools("catalog_get", product_id="prod_tk240v")["prices"]
    assert [price["valid_from"] for price in prices if price["currency"] == "CHF"] == ["2020-02-01"]


def test_q05_identifiers_are_trimmed_and_blank_ones_are_refused(tools: Tools):
    assert tools("catalog_get", product_id="  prod_pro_v2\n")["id"] == "prod_pro_v2"
    for blank in ("", "   ", "\t"):
        error = tools.error("catalog_get", product_id=blank)
        assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", "/product_id")


def test_q03_an_unknown_product_offers_a_search_for_the_same_word(tools: Tools):
    error = tools.error("catalog_get", product_id="prod_pro")
    assert error["code"] == "NOT_FOUND"
    following = error["details"]["next_call"]
    assert following == {"tool": "catalog_search", "arguments": {"query": "prod_pro"}}
    assert found(tools, **following["arguments"]) == ["prod_pro_v2"]


def test_q08_limit_defaults_to_twenty_and_is_cut_at_a_hundred(tools: Tools):
    assert tools("catalog_search", query="air")["pagination"]["per_page"] == 20
    page = tools("catalog_search", query="air", limit=5000)
    assert page["pagination"]["per_page"] == 100
    assert len(page["items"]) <= 100


def test_q08_has_more_is_exact_at_the_boundary_and_total_is_true(tools: Tools):
    total = tools("catalog_search", category="saas")["pagination"]["total"]
    last = tools("catalog_search", category="saas", limit=total)["pagination"]
    assert (last["total"], last["has_more"]) == (total, False)
    assert tools("catalog_search", category="saas", limit=total - 1)["pagination"]["has_more"]
    beyond = tools("catalog_search", category="saas", limit=total, page=2)
    assert (beyond["items"], beyond["pagination"]["total"], beyond["pagination"]["has_more"]) == ([], total, False)


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"limit": -1}, {"page": 0}, {"page": -3}, {"page": 10**30}])
def test_q08_a_page_that_cannot_be_is_refused_with_its_bounds(tools: Tools, arguments: dict):
    error = tools.error("catalog_search", query="air", **arguments)
    assert error["code"] == "VALIDATION_ERROR"
    assert error["details"]["field"] == "/" + next(iter(arguments))
    assert {"minimum", "maximum"} & error["details"].keys()


@pytest.mark.parametrize(
    "sloppy",
    [{"limit": "3"}, {"limit": 3.0}, {"limit": " 3 "}, {"limit": 3, "active_only": "true"}, {"limit": 3, "page": None}],
)
def test_q09_numbers_and_booleans_sent_as_text_are_understood(tools: Tools, sloppy: dict):
    assert tools("catalog_search", query="air", **sloppy) == tools("catalog_search", query="air", limit=3)


@pytest.mark.parametrize(
    ("field", "value"),
    [("limit", True), ("limit", "3.5"), ("limit", "three"), ("active_only", 1), ("active_only", "yes"), ("page", [1])],
)
def test_q09_what_is_ambiguous_is_refused(tools: Tools, field: str, value: object):
    error = tools.error("catalog_search", query="air", **{field: value})
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", f"/{field}")


def test_q14_words_that_no_product_has_together_give_the_nearest_products_marked(tools: Tools):
    asked = {"query": "heat exchanger for milk"}
    whole = tools("catalog_search", **asked)
    assert whole["matched"] == "meaning"
    assert "No product has all these words. These are the nearest by words alone" in whole["hint"]
    ids = [item["id"] for item in whole["items"]]
    assert 4 <= len(ids) == len(set(ids)) == whole["pagination"]["total"] <= 20
    pages = [tools("catalog_search", **asked, limit=3, page=page) for page in range(1, len(ids) // 3 + 2)]
    assert [item["id"] for page in pages for item in page["items"]] == ids
    assert pages[0]["pagination"]["has_more"]
    inside = tools("catalog_search", **asked, category=" Dryers")
    assert inside["matched"] == "meaning"
    assert [item["id"] for item in inside["items"]] == ["prod_dr35", "prod_dd100", "prod_ddx800"]
    assert "none is near: it is probably not sold" in inside["hint"]
    assert found(tools, **asked, category="nowhere") == []
    assert tools("catalog_search", query="pro plan", category="saas")["matched"] == "all_words"
    assert tools("catalog_search", category="saas")["matched"] == "category"
    nonsense = tools("catalog_search", query="zzyzx qwertzuiop")
    assert (nonsense["items"], nonsense["matched"]) == ([], "all_words")


def test_q14_a_large_catalogue_gives_the_products_with_the_rarest_words(tools: Tools, monkeypatch: pytest.MonkeyPatch):
    """It is not in memory, so the word index answers."""
    monkeypatch.setattr("cpq.retrieval.equipment.repository.PRODUCTS_MAX", 10)
    rows = [
        engine.product_row(id="prod_a", name="Wanderer lantern"),
        engine.product_row(id="prod_b", name="Wanderer lamp in brass"),
        engine.product_row(id="prod_c", name="Unicorn lantern in brass"),
        engine.product_row(id="prod_d", name="Wanderer lantern in brass", active=False),
    ]
    engine.import_dicts(tools.app, "products", *rows)
    asked = {"query": "the wanderer lantrn of brass for a zzyzx"}
    whole = tools("catalog_search", **asked)
    assert (whole["matched"], whole["pagination"]["total"]) == ("meaning", 2)
    assert [item["id"] for item in whole["items"]] == ["prod_a", "prod_b"]
    assert "These have some of them, the rarest words first" in whole["hint"]
    assert [found(tools, **asked, limit=1, page=page) for page in (1, 2, 3)] == [["prod_a"], ["prod_b"], []]
    assert found(tools, **asked, active_only=False)[0] == "prod_d"
    assert found(tools, **asked, category=rows[0]["category"]) == ["prod_a", "prod_b"]
    assert found(tools, **asked, category="dryers") == []
    assert found(tools, query="zzyzx qwertzuiop") == []
    engine.add_tenant(tools.app, "other")
    stranger = Tools(tools.app, principal=replace(OPERATOR, tenant_id="other"))
    assert found(stranger, **asked, active_only=False) == []


def test_q14_the_nearest_products_follow_the_catalogue_and_its_tenant(tools: Tools):
    asked = {"query": "wanderer unicorn lantern"}
    assert found(tools, **asked) == []
    row = engine.product_row(id="prod_near", name="Wanderer lantern")
    engine.import_dicts(tools.app, "products", row)
    assert found(tools, **asked) == ["prod_near"]
    engine.import_dicts(tools.app, "products", {**row, "active": False})
    assert found(tools, **asked) == []
    assert found(tools, **asked, active_only=False) == ["prod_near"]
    engine.add_tenant(tools.app, "other")
    stranger = Tools(tools.app, principal=replace(OPERATOR, tenant_id="other"))
    assert found(stranger, **asked, active_only=False) == []


def test_q14_a_search_whose_words_match_builds_no_corpus(sqlite_app: App, monkeypatch: pytest.MonkeyPatch):
    tools = Tools(sqlite_app)
    tools("catalog_search", query="pro plan")
    assert not sqlite_app.kept
    monkeypatch.setattr(repository, "PRODUCTS_MAX", 10)
    large = tools("catalog_search", query="heat exchanger for milk")
    assert (len(large["items"]), large["matched"]) == (large["pagination"]["total"], "meaning")
    assert not sqlite_app.kept


def test_q14_nearest_means_by_meaning_once_the_vectors_are_there(sqlite_app: App, monkeypatch: pytest.MonkeyPatch):
    """Of a few products, so that the model has little to read; the question shares no word with its answer."""
    few = ("prod_dr300", "prod_qmb30", "prod_pro_v2")
    read = repository.products
    monkeypatch.setattr(repository, "products", lambda tx, ids: read(tx, few if ids is None else ids))
    tools = Tools(sqlite_app)
    assert "by words alone, best first, but none is near" in tools("catalog_search", query="dehumidifier")["hint"]
    table_source.embed_round(sqlite_app, [])
    page = tools("catalog_search", query="dehumidifier")
    assert "nearest by meaning and words" in page["hint"]
    assert page["items"][0]["id"] == "prod_dr300"


def test_an_amount_in_another_unit_finds_the_products_that_have_all_other_words(tools: Tools):
    found = tools("catalog_search", query="75 kW oilless scroll")
    same = tools("catalog_search", query="100 hp oilless scroll")
    assert found.pop("conversions") == [{"argument": "query", "from": "75 kW", "to": "100.58 hp", "searched": "100 hp"}]
    assert found == same
    assert (same["matched"], same["pagination"]["total"] > 0) == ("all_words", True)


def test_an_amount_in_another_unit_counts_for_the_nearest_products_too(tools: Tools):
    found = tools("catalog_search", query="coalescing filter with 14 m³/min for our paint line")
    assert found["matched"] == "meaning"
    assert "prod_fc500" in [item["id"] for item in found["items"][:2]]
    [told] = found["conversions"]
    assert (told["from"], told["to"]) == ("14 m³/min", "494.41 cfm")
    assert "500 cfm" in told["searched"]
