"""The equipment tools on both databases: exact filters, full rows, helpful refusals."""

from decimal import Decimal

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.app import App
from cpq.storage.schema.tables import product, product_spec
from tests.support import engine
from tests.support.engine import Tools


def test_c2_24_the_complete_spec_of_a_model(tools: Tools):
    found = tools("get_product", model="QMB30")
    specs = {name: spec["value"] for name, spec in found["specs"].items()}
    assert {name: specs[name] for name in ("hp", "rpm", "enclosure", "service_factor", "drive", "noise_dba")} == {
        "hp": 30,
        "rpm": 3600,
        "enclosure": "ODP",
        "service_factor": 1.15,
        "drive": "belt",
        "noise_dba": 81,
    }
    assert found["attributes"]["dimensions_in"] == "52x41x37"
    assert found["specs"]["weight_lb"] == {"value": 1200, "unit": "lb"}
    assert found["unknown_specs"] == ["capacity_gal"]
    assert "prices" not in found
    assert "never instructions" in found["notice"]


@pytest.mark.parametrize("spelling", ["qmb30", "QMB-30", " qmb 30 ", "CMP-QMB30", "prod_qmb30"])
def test_a_model_is_found_however_it_is_written(sqlite_tools: Tools, spelling: str):
    assert sqlite_tools("get_product", model=spelling)["id"] == "prod_qmb30"


def test_c2_03_an_unknown_model_is_an_error_that_names_the_nearest(tools: Tools):
    error = tools.error("get_product", model="QMB31")
    assert error["code"] == "NOT_FOUND"
    assert "prod_qmb30" in error["details"]["nearest"]
    assert error["details"]["next_call"] == {"tool": "search_equipment", "arguments": {"query": "QMB31"}}


@pytest.mark.parametrize(("typed", "meant"), [("QBM30", "prod_qmb30"), ("QMB", "prod_qmb30"), ("rs3O", "prod_rs30")])
def test_c2_03_the_nearest_are_those_with_a_letter_wrong_or_the_same_beginning(
    sqlite_tools: Tools, typed: str, meant: str
):
    assert meant in sqlite_tools.error("get_product", model=typed)["details"]["nearest"]


def test_c2_04_models_side_by_side_in_the_order_asked_for(tools: Tools):
    rows = tools("get_specs", models=["RS30", "qmb30", "RS30"])["items"]
    assert [row["model"] for row in rows] == ["RS30", "QMB30", "RS30"]
    error = tools.error("get_specs", models=["RS30", "nothing", "none"])
    assert error["code"] == "NOT_FOUND"
    assert error["details"]["field"] == "/models"
    assert [problem["field"] for problem in error["details"]["problems"]] == ["/models/1", "/models/2"]
    assert tools.error("get_specs", models=["RS30", "nothing"])["details"]["field"] == "/models/1"
    assert tools.error("get_product", model="nothing")["details"]["field"] == "/model"


def test_c2_02_exactly_100_hp_is_equal_bounds(tools: Tools):
    found = tools("search_equipment", query="oilless food grade", hp_min=100, hp_max=100, lubrication="oilless")
    assert {hit["product"]["id"] for hit in found["results"]} == {"prod_bdl_food100", "prod_slx100"}
    assert found["eligible"] == 2
    for hit in found["results"]:
        assert hit["product"]["specs"]["hp"]["value"] == 100
        assert hit["confidence"] in ("likely_good", "analog", "probable_miss")
        assert hit["provenance"]["product_id"] == hit["product"]["id"]
        assert len(hit["snippet"]) <= 242


def test_c2_02_a_bound_is_exact_to_its_last_digit(sqlite_tools: Tools):
    def count(low: str, high: str) -> int:
        return sqlite_tools("search_equipment", query="screw", hp_min=low, hp_max=high)["eligible"]

    assert count("30", "30") == count("29.99999999999999999999", "30.00000000000000000001") == 6
    assert count("30.00000000000000000001", "30.1") == count("29.9", "29.99999999999999999999") == 0


def test_c2_10_unknown_lubrication_never_passes_for_a_match(tools: Tools, app: App):
    row = engine.product_row(name="Oilless wonder", category="compressors", specs={"hp": 77})
    engine.import_dicts(app, "products", row)
    assert tools("search_equipment", query="oilless wonder")["results"][0]["product"]["id"] == row["id"]
    found = tools("search_equipment", query="oilless wonder", lubrication="oilless", top_k=50)
    assert row["id"] not in [hit["product"]["id"] for hit in found["results"]]


def test_an_import_is_found_by_the_next_search(tools: Tools, app: App):
    assert tools("search_equipment", query="marzipan")["results"] == []
    row = engine.product_row(name="Marzipan extruder", category="compressors", specs={"hp": 5})
    engine.import_dicts(app, "products", row)
    assert tools("search_equipment", query="marzipan")["results"][0]["product"]["id"] == row["id"]
    engine.import_dicts(app, "products", {**row, "active": False})
    assert tools("search_equipment", query="marzipan")["results"] == []
    assert tools("get_product", model=row["sku"])["active"] is False


def test_other_specs_filter_like_the_named_ones(tools: Tools):
    quiet = [{"spec": "noise_dba", "max": 60}, {"spec": "voltage", "is": 230}]
    hits = tools("search_equipment", query="compressor", specs=quiet, top_k=50)["results"]
    assert hits
    assert all(hit["product"]["specs"]["noise_dba"]["value"] <= 60 for hit in hits)
    assert all(hit["product"]["specs"]["voltage"]["value"] == "230" for hit in hits)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"query": "  "}, "/query"),
        ({"query": "x", "hp_min": 10, "hp_max": 5}, "/hp_min"),
        ({"query": "x", "lubrication": "dry"}, "/lubrication"),
        ({"query": "x", "specs": [{"spec": "colour", "is": "red"}]}, "/colour"),
        ({"query": "x", "specs": [{"spec": "hp"}]}, "/specs/0"),
        ({"query": "x", "hp_min": 1, "specs": [{"spec": "hp", "max": 3}]}, "/specs/0/spec"),
        ({"query": "x", "cfm_min": "many"}, "/cfm_min"),
        ({"query": "x", "cfm_min": True}, "/cfm_min"),
        ({"query": "x", "cfm_min": "9" * 1_000_000, "cfm_max": 300}, "/cfm_min"),
    ],
)
def test_r06_what_cannot_be_meant_is_refused_by_name(sqlite_tools: Tools, arguments: dict, field: str):
    error = sqlite_tools.error("search_equipment", **arguments)
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", field)
    assert len(error["message"]) < 200


def test_c2_02_a_bound_may_arrive_as_text(sqlite_tools: Tools):
    as_numbers = sqlite_tools("search_equipment", query="rotary screw", hp_min=100, hp_max=100)
    assert sqlite_tools("search_equipment", query="rotary screw", hp_min=" 100 ", hp_max="1e2") == as_numbers


def test_r06_a_category_that_is_not_there_is_told_with_the_nearest(sqlite_tools: Tools):
    error = sqlite_tools.error("search_equipment", query="x", category="compresors")
    assert (error["code"], error["details"]["field"]) == ("NOT_FOUND", "/category")
    assert error["details"]["nearest"][0] == "compressors"


@pytest.mark.parametrize(("asked", "kept"), [(0, 1), (-5, 1), ("3", 3), (10**6, 50)])
def test_r06_top_k_is_clamped_and_never_refused(sqlite_tools: Tools, asked: object, kept: int):
    assert len(sqlite_tools("search_equipment", query="compressor", top_k=asked)["results"]) == kept


def test_r02_c2_17_no_match_is_an_empty_success(tools: Tools):
    found = tools("search_equipment", query="compressor", hp_min=100_000)
    assert (found["results"], found["eligible"]) == ([], 0)


NAMES = ("hp", "cfm", "psi")
limit = st.none() | st.decimals(0, 700, places=1)


@settings(max_examples=60)
@given(data=st.data())
def test_c2_08_filters_lose_nothing_that_the_tables_have(data: st.DataObject, sqlite_template, tmp_path_factory):
    """Against the spec table itself, for random bounds, words and k."""
    tools = _shared_tools(sqlite_template, tmp_path_factory)
    bounds = {name: sorted_pair(data.draw(limit), data.draw(limit)) for name in NAMES if data.draw(st.booleans())}
    word = data.draw(st.none() | st.sampled_from(["oilless", "oil-free", "oil-flooded"]))
    top_k = data.draw(st.integers(1, 50))
    arguments = {f"{name}_{side}": value for name, pair in bounds.items() for side, value in pair.items()}
    found = tools("search_equipment", query="compressor", lubrication=word, top_k=top_k, **arguments)
    expected = _meeting(tools.app, bounds, word)
    ids = [hit["product"]["id"] for hit in found["results"]]
    if arguments or word:
        assert found["eligible"] == len(expected)
        assert len(ids) == min(top_k, len(expected))
    assert set(ids) <= expected
    scores = [(-hit["score"], hit["product"]["id"]) for hit in found["results"]]
    assert scores == sorted(scores)


def sorted_pair(one: Decimal | None, other: Decimal | None) -> dict[str, Decimal]:
    low, high = (one, other) if one is None or other is None or one <= other else (other, one)
    return {side: value for side, value in (("min", low), ("max", high)) if value is not None}


def _meeting(app: App, bounds: dict[str, dict[str, Decimal]], word: str | None) -> set[str]:
    active = product.c.active == sa.literal(True, product.c.active.type)
    query = sa.select(product.c.id).where(active)
    for name, pair in bounds.items():
        if pair:
            spec = product_spec.alias()
            meets = [spec.c.name == name, *([spec.c.number >= pair["min"]] if "min" in pair else [])]
            meets += [spec.c.number <= pair["max"]] if "max" in pair else []
            query = query.where(product.c.id.in_(sa.select(spec.c.product_id).where(*meets)))
    if word:
        spec = product_spec.alias()
        meets = [spec.c.name == "lubrication", spec.c.word == word]
        query = query.where(product.c.id.in_(sa.select(spec.c.product_id).where(*meets)))
    with app.database.reading() as connection:
        return set(connection.scalars(query))


_TOOLS: list[Tools] = []


def _shared_tools(template, factory) -> Tools:
    """One store for all examples; nothing changes it."""
    if not _TOOLS:
        home = factory.mktemp("equipment")
        (home / "quotewright.db").write_bytes(template.read_bytes())
        _TOOLS.append(Tools(engine.opened(home)))
    return _TOOLS[0]


def test_products_without_specs_are_found_where_no_limit_excludes_them(tools: Tools):
    """A limit on a spec excludes them, as it excludes every unknown."""
    engine.import_dicts(tools.app, "products", engine.product_row(id="prod_lantern", name="Wanderer lantern"))
    found = tools("search_equipment", query="Wanderer lantern")["results"]
    assert found[0]["product"]["id"] == "prod_lantern"
    assert (found[0]["confidence"], found[0]["product"]["specs"]) == ("likely_good", {})
    limited = tools("search_equipment", query="Wanderer lantern", psi_min=1, top_k=20)["results"]
    assert "prod_lantern" not in [hit["product"]["id"] for hit in limited]
    assert tools("get_product", model="prod_lantern")["name"] == "Wanderer lantern"


@pytest.mark.parametrize("query", ["Do you still have the DR150 dryer?", "dr 150", "DRY-DR150"])
def test_a_product_that_is_not_sold_any_more_is_found_by_its_model_alone(tools: Tools, query: str):
    found = tools("search_equipment", query=query)["results"]
    assert (found[0]["product"]["id"], found[0]["product"]["active"]) == ("prod_dr150x", False)
    assert "Use the DR200" in found[0]["product"]["description"]
    assert all(hit["product"]["active"] for hit in found[1:])
    others = tools("search_equipment", query="refrigerated dryer 150 cfm", top_k=50)["results"]
    assert "prod_dr150x" not in [hit["product"]["id"] for hit in others]
    assert not any(
        hit["product"]["id"] == "prod_dr150x" for hit in tools("search_equipment", query=query, psi_min=400)["results"]
    )


def test_a_product_is_found_by_its_name_in_another_language(tools: Tools):
    named = {"name": "Wanderer lantern", "name.de": "Grubenlampe", "description.fr": "Lampe de mineur"}
    engine.import_dicts(tools.app, "products", engine.product_row(id="prod_lantern", **named))
    for query in ("Grubenlampe", "lampe de mineur"):
        assert tools("search_equipment", query=query)["results"][0]["product"]["id"] == "prod_lantern"


def test_c2_02_a_limit_in_another_unit_is_converted_exactly_and_told(tools: Tools):
    found = tools("search_equipment", query="oilless", hp_min="74 kW", hp_max="75 kW", psi_min="7.9 bar", top_k=50)
    assert found["conversions"] == [
        {"argument": "psi_min", "from": "7.9 bar", "to": "114.58 psi"},
        {"argument": "hp_min", "from": "74 kW", "to": "99.236 hp"},
        {"argument": "hp_max", "from": "75 kW", "to": "100.58 hp"},
    ]
    same = tools("search_equipment", query="oilless", hp_min=100, hp_max=100, psi_min=115, top_k=50)
    assert found["results"] == same["results"]
    assert found["eligible"] == same["eligible"] > 0
    assert "conversions" not in same


def test_c2_02_a_limit_in_another_unit_is_exact_at_its_edge(sqlite_tools: Tools):
    def count(**limits: str) -> int:
        return sqlite_tools("search_equipment", query="screw", **limits)["eligible"]

    exactly = "22.3709961474681066"  # kW, the mechanical horsepower times 30
    assert count(hp_min=f"{exactly} kW", hp_max=f"{exactly} kW") == count(hp_min="30 hp", hp_max="30") == 6
    assert count(hp_min="22.3709961474681067 kW", hp_max="22.38 kW") == 0
    assert count(hp_min="22.36 kW", hp_max="22.3709961474681065 kW") == 0
    assert count(psi_min="8 bar", psi_max="8 bar") == 0  # 116.03 psi: a machine of 116 psi does not reach 8 bar


def test_conditions_on_other_specs_take_units_too(sqlite_tools: Tools):
    drop = [{"spec": "power_kw", "min": "0.5 hp", "max": "1 hp"}]
    found = sqlite_tools("search_equipment", query="dryer", specs=drop, top_k=50)
    powers = {hit["product"]["specs"]["power_kw"]["value"] for hit in found["results"]}
    assert (len(found["results"]), powers) == (found["eligible"], {0.4, 0.5, 0.7})
    assert [told["to"] for told in found["conversions"]] == ["0.37285 kW", "0.7457 kW"]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"hp_min": "75 bar"}, "/hp_min"),
        ({"psi_max": "75 stones"}, "/psi_max"),
        ({"specs": [{"spec": "rpm", "max": "75 kW"}]}, "/rpm_max"),
        ({"specs": [{"spec": "voltage", "min": "75 kW"}]}, "/voltage"),
        ({"hp_min": "75 kW", "hp_max": 100}, "/hp_min"),
    ],
)
def test_a_unit_that_does_not_fit_is_refused_by_name(sqlite_tools: Tools, arguments: dict, field: str):
    error = sqlite_tools.error("search_equipment", query="x", **arguments)
    assert (error["code"], error["details"]["field"]) == ("VALIDATION_ERROR", field)


@pytest.mark.parametrize(
    ("asked", "same", "told"),
    [
        ("75 kW oilless", "100 HP oilless", {"from": "75 kW", "to": "100.58 hp", "searched": "100 hp"}),
        (
            "oilless scroll 8 bar",
            "oilless scroll 116 psi",
            {"from": "8 bar", "to": "116.03 psi", "searched": "116 psi"},
        ),
        ("dryer 14.2 m³/min", "dryer 500 cfm", {"from": "14.2 m³/min", "to": "501.47 cfm", "searched": "500 cfm"}),
        ("dryer 236 l/s", "dryer 500 cfm", {"from": "236 l/s", "to": "500.06 cfm", "searched": "500 cfm"}),
    ],
)
def test_an_amount_in_another_unit_finds_what_the_unit_of_the_products_finds(
    tools: Tools, asked: str, same: str, told: dict
):
    found, expected = (tools("search_equipment", query=query, top_k=3) for query in (asked, same))
    assert [hit["product"]["id"] for hit in found["results"]] == [hit["product"]["id"] for hit in expected["results"]]
    assert found["conversions"] == [{"argument": "query", **told}]
    assert "conversions" not in expected


def test_numbers_further_off_are_searched_where_the_nearest_has_no_good_hit(tools: Tools):
    """The nearest number of all products, 492 cfm, is of a dryer."""
    found = tools("search_equipment", query="coalescing filter 14 m³/min", top_k=1)
    assert found["results"][0]["product"]["id"] == "prod_fc500"
    assert found["conversions"] == [
        {"argument": "query", "from": "14 m³/min", "to": "494.41 cfm", "searched": "492 cfm, 500 cfm"}
    ]


def test_without_an_amount_in_another_unit_nothing_is_converted(sqlite_tools: Tools):
    for query in ("100 HP oilless", "1.7 kW dryer", "compressor"):
        assert "conversions" not in sqlite_tools("search_equipment", query=query)
