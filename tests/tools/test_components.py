"""Bundles whose components a buyer chooses: the price re-adds, views and papers name what was chosen."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cpq.app import App
from cpq.base.errors import CpqError
from cpq.services.catalog import exporter
from tests.support import engine
from tests.support.engine import Tools
from tests.support.papers import Paper
from tests.support.quotes import ACME, new_quote, sent_quote

PRICES = {
    "st": ("1000", "600", "one_time"),
    "c50": ("400", "250", "one_time"),
    "c100": ("900", "500", "one_time"),
    "d1": ("120", "70", "one_time"),
    "f1": ("15.50", "9", "one_time"),
    "w1": ("30", "5", "monthly"),
    "z1": ("60", "20", "one_time"),
}
GROUPS: list[dict[str, Any]] = [
    {
        "name": "compressor",
        "label": "Compressor",
        "min": 1,
        "max": 1,
        "components": [
            {"name": "small", "product_id": "c50", "default": True, "included": True},
            {"name": "large", "product_id": "c100", "max_quantity": 4},
        ],
    },
    {
        "name": "air",
        "max": 2,
        "components": [
            {
                "name": "dryer",
                "product_id": "d1",
                "max_quantity": 3,
                "groups": [
                    {"name": "fine", "components": [{"name": "filter", "product_id": "f1", "max_quantity": 6}]},
                ],
            },
            {"name": "drain", "product_id": "z1"},
            {"name": "care", "product_id": "w1"},
        ],
    },
]


def station(app: App, **bundle: Any) -> None:
    """A bundle with groups and its components in the catalogue, each with a price."""
    parts = [engine.product_row(id=id_, name=f"Part {id_}") for id_ in PRICES if id_ != "st"]
    own = engine.product_row(id="st", name="Station", product_type="bundle", bundle={"groups": GROUPS, **bundle})
    if bundle:
        own["relationships"] = [{"kind": "component", "product_id": "z1", "quantity": 2}]
    engine.import_dicts(app, "products", *parts, own)
    listed = {"price_book": "list", "currency": "USD"}
    prices = [
        {**listed, "product_id": id_, "unit_price": price, "cost": cost, "billing_period": period}
        for id_, (price, cost, period) in PRICES.items()
    ]
    engine.import_dicts(app, "prices", *prices)


def unit(id_: str, count: int = 1, months: int = 1) -> Decimal:
    price, _, period = PRICES[id_]
    return Decimal(price) * count * (months if period == "monthly" else 1)


def create(tools: Tools, attributes: dict[str, Any], quantity: int = 1, **line: Any) -> dict[str, Any]:
    item = {"product_id": "st", "quantity": quantity, "attributes": attributes, **line}
    quote_id = new_quote(tools, item, term_months=None)
    return tools("quote_get", quote_id=quote_id, include_pricing=True)


@pytest.mark.parametrize(
    ("attributes", "parts"),
    [
        ({}, []),
        ({"compressor": "large", "large_quantity": 3}, [("c100", 3)]),
        ({"dryer": 2, "filter": 3}, [("d1", 2), ("f1", 6)]),
        ({"compressor": "large", "dryer": 1, "drain": True}, [("c100", 1), ("d1", 1), ("z1", 1)]),
    ],
)
@pytest.mark.parametrize("quantity", [1, 7])
def test_a_bundle_costs_its_own_price_and_those_of_the_chosen_components(
    app: App, tools: Tools, attributes: dict[str, Any], parts: list[tuple[str, int]], quantity: int
):
    station(app)
    quote = create(tools, attributes, quantity)
    wanted = quantity * (unit("st") + sum(unit(id_, count) for id_, count in parts))
    (line,) = quote["line_items"]
    assert (line["subtotal"], quote["pricing"]["subtotal"]) == (wanted, wanted)
    charged = [(one["product_id"], one["quantity"]) for one in line["components"] if not one["included"]]
    assert charged == parts
    assert [one["product_id"] for one in line["components"] if one["included"]] == (
        [] if "compressor" in attributes else ["c50"]
    )


def test_a_bundle_priced_by_its_parts_takes_its_percentage_off_chosen_ones_too(app: App, tools: Tools):
    station(app, pricing="components_less_percent", discount_percent="10")
    quote = create(tools, {"compressor": "large", "dryer": 1}, 3)
    wanted = 3 * (unit("z1", 2) + unit("c100") + unit("d1")) * Decimal("0.9")
    assert quote["line_items"][0]["subtotal"] == wanted


def test_an_agreed_price_of_a_bundle_is_not_for_what_the_buyer_adds(app: App, tools: Tools):
    station(app)
    agreed = {"product_id": "st", "account_id": ACME, "currency": "USD", "unit_price": "800"}
    engine.import_dicts(app, "prices", agreed)
    assert create(tools, {"dryer": 2})["line_items"][0]["subtotal"] == 800 + unit("d1", 2)


def test_components_of_another_billing_period_are_charged_for_the_term(app: App, tools: Tools):
    station(app)
    item = {"product_id": "st", "quantity": 2, "attributes": {"care": True}}
    quote = tools("quote_get", quote_id=new_quote(tools, item, term_months=24))
    assert quote["line_items"][0]["subtotal"] == 2 * (unit("st") + unit("w1", months=24))


def test_an_order_bills_the_machine_once_and_its_care_by_the_month(app: App, tools: Tools):
    """Each part of the line gets its share of what the customer pays, and the shares add up."""
    station(app)
    item = {"product_id": "st", "quantity": 2, "attributes": {"care": True}, "discount_pct": 3}
    quote_id = sent_quote(tools, item, term_months=12, start_date="2026-12-01")
    accepted = tools.seller("quote_accept", quote_id=quote_id, expected_version=1)
    order = tools.seller("order_get", order_id=accepted["order_id"])
    lines = [(one["product_id"], one["billing_period"], Decimal(str(one["net"]))) for one in order["lines"]]
    machine, care = Decimal(2000) * Decimal("0.97"), Decimal(2 * 30 * 12) * Decimal("0.97")
    assert sorted(lines) == [("st", "one_time", machine), ("w1", "monthly", care)]
    assert machine + care == Decimal(str(tools("quote_get", quote_id=quote_id)["line_items"][0]["line_total"]))


def test_a_component_that_is_not_chosen_matters_to_nobody(app: App, tools: Tools):
    """It may be out of sale or without a price; one that is chosen may not."""
    station(app)
    row = engine.product_row(id="z1", active=False)
    engine.import_dicts(app, "products", row)
    quote_id = sent_quote(tools, {"product_id": "st", "quantity": 1}, term_months=None)
    assert tools("quote_get", quote_id=quote_id)["quote"]["status"] == "sent"
    error = tools.error(
        "quote_create", account_id=ACME, line_items=[{"product_id": "st", "quantity": 1, "attributes": {"drain": True}}]
    )
    assert (error["code"], error["message"]) == ("CONFLICT", "Station (st) contains z1, which is no longer sold.")


def test_a_chosen_component_without_a_price_is_named(app: App, tools: Tools):
    station(app)
    priceless = engine.product_row(id="z9", name="Priceless")
    groups = [{"name": "more", "components": [{"name": "nine", "product_id": "z9"}]}]
    row = engine.product_row(id="st2", product_type="bundle", bundle={"groups": groups})
    engine.import_dicts(app, "products", priceless, row)
    own = {"price_book": "list", "currency": "USD", "product_id": "st2", "unit_price": "5"}
    engine.import_dicts(app, "prices", own)
    item = {"product_id": "st2", "quantity": 1}
    assert tools("quote_create", account_id=ACME, line_items=[item])["line_items"][0]["subtotal"] == 5
    error = tools.error("quote_create", account_id=ACME, line_items=[{**item, "attributes": {"nine": True}}])
    assert (error["code"], error["message"].split(" ")[0]) == ("CURRENCY_MISMATCH", "z9")


def test_what_a_buyer_chose_counts_for_what_products_require(app: App, tools: Tools):
    station(app)
    needs = {"kind": "requires", "product_id": "f1", "quantity": 4}
    engine.import_dicts(app, "products", engine.product_row(id="d1", relationships=[needs]))
    item = {"product_id": "st", "quantity": 2, "attributes": {"dryer": 1, "filter": 1}}
    made = tools("quote_create", account_id=ACME, line_items=[item])
    assert made["warnings"] == ["d1 in st requires 4 × f1 in the quote."]
    enough = {**item, "attributes": {"dryer": 1, "filter": 2}}
    assert tools("quote_create", account_id=ACME, line_items=[enough])["warnings"] == []


def test_a_bundle_with_choices_inside_another_is_refused(app: App, tools: Tools):
    station(app)
    outer = engine.product_row(
        id="yard", name="Yard", product_type="bundle", relationships=[{"kind": "component", "product_id": "st"}]
    )
    engine.import_dicts(app, "products", outer)
    own = {"price_book": "list", "currency": "USD", "product_id": "yard", "unit_price": "5"}
    engine.import_dicts(app, "prices", own)
    error = tools.error("quote_create", account_id=ACME, line_items=[{"product_id": "yard", "quantity": 1}])
    assert error["message"] == "Yard (yard) contains st, whose components a buyer chooses."


def test_catalog_get_names_groups_and_the_options_that_choose(app: App, tools: Tools):
    station(app)
    found = tools("catalog_get", product_id="st", include_relationships=True)
    compressor, air = found["groups"]
    assert [(one["name"], one["product_name"], one["included"]) for one in compressor["components"]] == [
        ("small", "Part c50", True),
        ("large", "Part c100", False),
    ]
    assert air["components"][0]["groups"][0]["components"][0]["product_name"] == "Part f1"
    names = [option["name"] for option in found["options"]]
    assert names == ["compressor", "large_quantity", "dryer", "filter", "drain", "care"]
    assert found["rules"] == ["Choose 0 to 2 of air: dryer, drain, care"]


def test_a_document_lists_the_chosen_components_by_name(app: App, tools: Tools):
    station(app)
    item = {"product_id": "st", "quantity": 1, "attributes": {"dryer": 2, "filter": 1}}
    quote_id = sent_quote(tools, item, term_months=None)
    text = Paper.of(tools("quote_pdf", quote_id=quote_id)).text
    for part in ("Includes", "1 × Part c50", "2 × Part d1", "2 × Part f1"):
        assert part in text
    assert "filter" not in text


@pytest.mark.parametrize("form", ["yaml", "json", "csv"])
def test_groups_survive_an_export_and_its_import(app: App, form: str, tmp_path: Path):
    station(app)
    file = tmp_path / f"out.{form}"
    with file.open("w", newline="") as out:
        engine.write(app, lambda tx: dict(exporter.write_catalog(tx, form, out)))
    report = engine.import_file(app, file, "products")
    assert (report.created.total(), report.updated.total()) == (0, 0)
    assert report.unchanged["products"] > len(PRICES)


def test_a_group_that_names_no_product_is_refused_with_its_line(app: App):
    bad = [{"name": "g", "components": [{"name": "a", "product_id": "nowhere"}]}]
    row = engine.product_row(product_type="bundle", bundle={"groups": bad})
    with pytest.raises(CpqError) as error:
        engine.import_dicts(app, "products", engine.product_row(), row)
    assert "'nowhere', which does not exist" in json.dumps(error.value.details)


def test_the_compressor_station_of_the_sample_is_chosen_by_its_rules(tools: Tools):
    """Voltages by horsepower, dryers by air and dew point, oilless for food, tanks by size."""
    station = {"product_id": "prod_bdl_air_station", "quantity": 1}

    def refusal(**attributes: Any) -> set[str]:
        error = tools.error("quote_create", account_id=ACME, line_items=[{**station, "attributes": attributes}])
        return {problem["rule_id"] for problem in error["details"]["problems"]}

    assert refusal(compressor="qmb30", receiver="tk240v", dryer="dr125", voltage="208") == {"STATION-VOLTAGE"}
    assert refusal(compressor="qmb25", receiver="tk240v", dryer="dr100") == {"STATION-DRYER"}
    assert refusal(dew_point_f=-40) == {"STATION-DEW-POINT"}
    assert refusal(food_grade=True, particulate_filter=1) == {"STATION-FOOD"}
    assert refusal(compressor="qmb30", dryer="dr125") == {"STATION-TANK"}
    food = {"compressor": "psl20", "food_grade": True, "dew_point_f": -40, "dryer": "dd100", "particulate_filter": 2}
    made = tools("quote_create", account_id=ACME, line_items=[{**station, "attributes": food}])
    parts = 26900 + 6900 + 1090 + 312 + 2 * 279 + 289
    assert Decimal(str(made["line_items"][0]["subtotal"])) == parts * Decimal("0.96")


def test_the_sample_offers_a_plan_with_each_station_and_asks_for_a_sequencer_from_three_on(tools: Tools):
    lines = [
        {"product_id": "prod_bdl_air_station", "quantity": 3},
        {"product_id": "prod_svc_plan_basic", "quantity": 1},
    ]
    checked = tools("quote_check", line_items=lines)
    assert [(one["rule_id"], one["missing"]) for one in checked["violations"]] == [("STATION-SEQUENCER", 1)]
    assert [one["rule_id"] for one in checked["suggestions"] if one["kind"] == "rule"] == ["STATION-PLANS"]
    call = checked["next_call"]
    assert tools(call["tool"], **call["arguments"])["is_complete"]
