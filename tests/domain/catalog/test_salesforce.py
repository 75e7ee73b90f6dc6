"""The translation of a Salesforce export: what becomes of its rows, and that none is forgotten."""

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.row_problems import SourceRow
from cpq.domain.catalog.preparation import prepare_products, validate
from cpq.domain.catalog.salesforce.card_entries import ENTRY
from cpq.domain.catalog.salesforce.counterparts import NO_COUNTERPARTS, USED_COLUMNS, sold_as
from cpq.domain.catalog.salesforce.exported import KEYS
from cpq.domain.catalog.salesforce.identifiers import identifier
from cpq.domain.catalog.salesforce.losses import Fate
from cpq.domain.catalog.salesforce.translation import Translation, translate
from tests.support.salesforce_exports import (
    MODEL,
    ONE_TIME,
    YEARLY,
    component,
    entry,
    export,
    full,
    group,
    rate,
    rate_tier,
    small,
)

SCHEDULE = {"Name": "Volume", "AdjustmentMethod": "Range", "IsActive": "true", "ScheduleType": "Volume"}


def rows(translation: Translation, section: str) -> list[dict[str, Any]]:
    assert translation.problems == []
    return [row.values for row in translation.rows if row.section == section]


def product(translation: Translation, id_: str) -> dict[str, Any]:
    return next(row for row in rows(translation, "products") if row["id"] == id_)


def prices(translation: Translation, product_id: str) -> list[dict[str, Any]]:
    return [row for row in rows(translation, "prices") if row["product_id"] == product_id]


def outcomes(translation: Translation, table: str) -> list[tuple[Fate, str]]:
    found: dict[int, tuple[Fate, str]] = {}
    for one in translation.reasons:
        if one.file == f"{table}.csv":
            found |= dict.fromkeys(one.lines, (one.fate, one.reason))
    return [found[line] for line in sorted(found)]


def tier(low: str, high: str, percent: str, **more: str) -> dict[str, str]:
    return {
        "PriceAdjustmentSchedule.Name": "Volume",
        "Product2.StockKeepingUnit": "PLAN",
        MODEL: YEARLY,
        "CurrencyIsoCode": "USD",
        "AdjustmentType": "Percentage",
        "LowerBound": low,
        "UpperBound": high,
        "TierValue": percent,
        **more,
    }


def test_a_group_of_which_one_is_chosen_is_an_option_and_its_prices_are_surcharges():
    found = translate(export(small()))
    rack = product(found, "RACK")
    assert rack["product_type"] == "configurable"
    values = ["The CPU-A", "The CPU-B"]
    assert rack["options"]["Processor"] == {
        "type": "enum",
        "values": values,
        "required": True,
        "default": "The CPU-A",
    }
    assert prices(found, "RACK")[0]["surcharges"]["Processor"] == {"The CPU-A": 0, "The CPU-B": 250}


def test_how_many_components_are_chosen_is_a_rule_and_a_bounded_number_of_pieces_a_list():
    found = translate(export(small()))
    rack = product(found, "RACK")
    assert rack["options"]["The DISK 1"] == {"type": "boolean", "default": False}
    assert rack["options"]["The DISK-2"] == {"type": "enum", "values": [0, 1, 2, 3], "default": 0}
    assert rack["rules"][0]["choose"] == {"from": ["The DISK 1", "The DISK-2", "The DISK-3"], "min": 0, "max": 2}
    charged = prices(found, "RACK")[0]["surcharges"]
    assert charged["The DISK-2"] == {"1": 60, "2": 120, "3": 180}
    assert charged["The DISK-3"] == {"true": 160}
    assert outcomes(found, "ProductComponentGroup") == [
        (Fate.TRANSLATED, "an option with its components as values"),
        (Fate.TRANSLATED, "a rule of how many of its options are chosen"),
    ]


def test_what_the_price_of_a_bundle_includes_is_its_part():
    included = [component("RACK", "CPU-A", "", DoesBundlePriceIncludeChild="true", IsDefaultComponent="true")]
    found = translate(export(small(ProductRelatedComponent=included)))
    rack = product(found, "RACK")
    assert rack["product_type"] == "bundle"
    assert rack["relationships"] == [{"kind": "component", "product_id": "CPU-A", "quantity": 1}]


def test_a_component_of_another_selling_model_is_recommended_or_required_on_a_line_of_its_own():
    links = [
        component("RACK", "PLAN", "Processor"),
        component("RACK", "DISK 1", "Drives", QuantityScaleMethod="Constant", IsComponentRequired="true", Quantity="4"),
    ]
    found = translate(export(small(ProductRelatedComponent=links)))
    assert product(found, "RACK")["relationships"] == [
        {"kind": "requires", "product_id": "DISK-1", "quantity": 4},
        {"kind": "recommends", "product_id": "PLAN", "quantity": 1},
    ]
    why = "it is not sold for all the periods and currencies of the bundle"
    alone = f"the product recommends it on a line of its own: {why}"
    assert outcomes(found, "ProductRelatedComponent")[0] == (Fate.TRANSLATED, alone)
    assert {fate for fate, _ in outcomes(found, "ProductComponentGroup")} == {Fate.NO_COUNTERPART}


def test_a_discount_of_a_component_in_a_bundle_reduces_the_surcharge_from_its_first_day():
    adjustment = {
        "PriceAdjustmentSchedule.Name": "Volume",
        "Product.StockKeepingUnit": "CPU-B",
        "RootBundle.StockKeepingUnit": "RACK",
        MODEL: ONE_TIME,
        "CurrencyIsoCode": "USD",
        "AdjustmentType": "Percentage",
        "AdjustmentValue": "10",
        "EffectiveFrom": "2026-03-01T20:00:00.000+0000",
    }
    found = translate(export(small(PriceAdjustmentSchedule=[SCHEDULE], BundleBasedAdjustment=[adjustment])))
    before, after = prices(found, "RACK")
    assert (before["valid_to"], before["surcharges"]["Processor"]["The CPU-B"]) == ("2026-02-28", 250)
    assert (after["valid_from"], after["surcharges"]["Processor"]["The CPU-B"]) == ("2026-03-01", 225)
    assert [fate for fate, _ in outcomes(found, "BundleBasedAdjustment")] == [Fate.TRANSLATED]


def test_tiers_fill_their_gaps_with_the_plain_price():
    tiers = [tier("11", "", "25"), tier("3", "5", "10"), tier("6", "9", "12.5")]
    found = translate(export(small(PriceAdjustmentSchedule=[SCHEDULE], PriceAdjustmentTier=tiers)))
    yearly = next(row for row in prices(found, "PLAN") if row["billing_period"] == "yearly")
    assert yearly["tier_mode"] == "volume"
    assert yearly["tiers"] == [
        {"up_to": 2, "unit_price": 100},
        {"up_to": 5, "unit_price": 90},
        {"up_to": 9, "unit_price": Decimal("87.5")},
        {"up_to": 10, "unit_price": 100},
        {"unit_price": 75},
    ]


def test_a_schedule_that_is_not_active_is_taken_only_when_asked_for():
    tables = small(
        PriceAdjustmentSchedule=[{**SCHEDULE, "IsActive": "false"}], PriceAdjustmentTier=[tier("5", "", "10")]
    )
    left, taken = translate(export(tables)), translate(export(tables), with_inactive_schedules=True)
    assert outcomes(left, "PriceAdjustmentTier") == [
        (Fate.NO_COUNTERPART, "its schedule is not active; --inactive-schedules takes it")
    ]
    assert [fate for fate, _ in outcomes(taken, "PriceAdjustmentTier")] == [Fate.TRANSLATED]
    assert all("tiers" not in row for row in rows(left, "prices"))
    assert any("tiers" in row for row in rows(taken, "prices"))


def test_the_cost_of_a_product_is_that_of_its_default_selling_model_and_the_latest():
    costs = [
        {"CostBook.Name": "Costs", "Product.StockKeepingUnit": "PLAN", "CurrencyIsoCode": "USD", "Cost": cost} | dated
        for cost, dated in (("40", {"EffectiveFrom": "2025-01-01"}), ("45", {"EffectiveFrom": "2026-01-01"}))
    ]
    books = [{"Name": "Costs", "IsDefault": "true"}]
    found = translate(export(small(CostBook=books, CostBookEntry=costs)))
    assert {row["billing_period"]: row.get("cost") for row in prices(found, "PLAN")} == {"monthly": None, "yearly": 45}
    assert product(found, "PLAN")["default_selling_model"] == "yearly"
    assert outcomes(found, "CostBookEntry")[0] == (Fate.NO_COUNTERPART, "a later cost replaces it")


def test_a_billing_period_without_a_counterpart_leaves_its_prices_out_and_says_so():
    models = [*small()["ProductSellingModel"][:2]]
    models += [
        {"Name": "Term Annual", "SellingModelType": "TermDefined", "PricingTerm": "7", "PricingTermUnit": "Fortnights"}
    ]
    found = translate(export(small(ProductSellingModel=models)))
    assert [row["billing_period"] for row in prices(found, "PLAN")] == ["monthly"]
    assert outcomes(found, "PricebookEntry")[-1] == (Fate.NO_COUNTERPART, "its billing period has no counterpart")
    assert sold_as("TermDefined", "Fortnights", 1) is None


def test_a_price_that_follows_other_lines_is_left_out_whatever_amount_the_file_has():
    tables = small(PricebookEntry=[entry("PLAN", YEARLY, "0", IsDerived="true"), entry("RACK", ONE_TIME, "5")])
    found = translate(export(tables | {"ProductRelatedComponent": []}))
    assert prices(found, "PLAN") == []
    assert outcomes(found, "PricebookEntry")[0][0] is Fate.NO_COUNTERPART


CARDS = ("UnitOfMeasure", "RateCard", "PriceBookRateCard", "UsageResource", "RateCardEntry", "RateAdjustmentByTier")
RATED = {name: full()[name] for name in CARDS}

WRONG: list[tuple[str, Mapping[str, Sequence[Mapping[str, str]]], tuple[str, int, str, str]]] = [
    (
        "an unknown product",
        {"PricebookEntry": [entry("RAKC", ONE_TIME, "5")]},
        ("PricebookEntry.csv", 2, "Product2.StockKeepingUnit", "the export has no Product2 'RAKC'"),
    ),
    (
        "a product twice",
        {"Product2": [*small()["Product2"], {"StockKeepingUnit": "PLAN", "Name": "Again"}]},
        ("Product2.csv", 9, "StockKeepingUnit", "PLAN is in this file twice, first in line 8"),
    ),
    (
        "no name",
        {"Product2": [*small()["Product2"], {"Name": "Without"}]},
        ("Product2.csv", 9, "StockKeepingUnit", "is empty, and it names the record"),
    ),
    (
        "a price in words",
        {"PricebookEntry": [entry("RACK", ONE_TIME, "much")]},
        ("PricebookEntry.csv", 2, "UnitPrice", "'much' is not a number"),
    ),
    (
        "a bundle in itself",
        {"ProductRelatedComponent": [component("RACK", "PLAN", ""), component("PLAN", "RACK", "")]},
        ("ProductRelatedComponent.csv", 2, "ChildProduct.StockKeepingUnit", "a bundle contains itself: "),
    ),
    (
        "a group of another product",
        {"ProductComponentGroup": [group("Processor", "1", "1", "PLAN"), group("Drives", "0", "2")]},
        ("ProductRelatedComponent.csv", 2, "ProductComponentGroup.Code", "'Processor' is a group of PLAN"),
    ),
    (
        "two products of one id",
        {"Product2": [*small()["Product2"], {"StockKeepingUnit": "DISK-1", "Name": "Like another"}]},
        ("Product2.csv", 9, "StockKeepingUnit", "'DISK-1' and 'DISK 1' would both have the id 'DISK-1'"),
    ),
    (
        "two tiers of one quantity",
        {"PriceAdjustmentSchedule": [SCHEDULE], "PriceAdjustmentTier": [tier("5", "9", "1"), tier("7", "", "2")]},
        ("PricebookEntry.csv", 9, "Product2.StockKeepingUnit", "PLAN has two tiers for 7 units in USD"),
    ),
    (
        "two rates for one use",
        {**RATED, "RateAdjustmentByTier": [rate_tier("0", "10", "1"), rate_tier("8", "", "2")]},
        ("RateCardEntry.csv", 2, "Product.StockKeepingUnit", "PLAN has two tiers for 8 units in USD"),
    ),
    (
        "a tier of no rate",
        {**RATED, "RateCardEntry": [rate("Base", "1")]},
        ("RateAdjustmentByTier.csv", 2, ENTRY, "the export has no RateCardEntry 'PLAN;Tiers;SUP;USD'"),
    ),
    (
        "a rate in words",
        {**RATED, "RateCardEntry": [rate("Base", "much")], "RateAdjustmentByTier": []},
        ("RateCardEntry.csv", 2, "Rate", "'much' is not a number"),
    ),
    (
        "a tier below zero",
        {"PriceAdjustmentSchedule": [SCHEDULE], "PriceAdjustmentTier": [tier("5", "9", "101")]},
        ("PriceAdjustmentTier.csv", 2, "TierValue", "takes a price of 100 below zero"),
    ),
    (
        "no date",
        {
            "PriceAdjustmentSchedule": [{**SCHEDULE, "EffectiveFrom": "soon"}],
            "PriceAdjustmentTier": [tier("5", "9", "1")],
        },
        ("PriceAdjustmentSchedule.csv", 2, "EffectiveFrom", "'soon' does not begin with a date such as 2026-01-31"),
    ),
]


@pytest.mark.parametrize(("tables", "problem"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_is_wrong_is_named_by_file_line_and_column(tables: Mapping[str, Any], problem: tuple[str, int, str, str]):
    found = translate(export(small(**tables)))
    file, line, column, message = problem
    named = [one for one in found.problems if (one.file, one.line, one.field) == (file, line, column)]
    assert [one for one in named if one.message.startswith(message)], found.problems
    assert found.rows == []


def test_two_folders_may_list_a_record_but_not_tell_it_differently():
    tables = export(small())
    again = export({"Product2": [{"StockKeepingUnit": "PLAN", "Name": "Another plan"}]})[0]
    again = again._replace(
        name="other/Product2.csv", rows=[row._replace(file="other/Product2.csv") for row in again.rows]
    )
    [problem] = translate([*tables, again]).problems
    assert (problem.file, problem.line, problem.field) == ("other/Product2.csv", 2, "Name")
    assert problem.message == "is 'Another plan' here and 'The PLAN' in Product2.csv, line 8"


CELLS = [
    "",
    "RACK",
    "CPU-A",
    "PLAN",
    "Processor",
    "Bundle",
    "Volume",
    "USD",
    "1",
    "0",
    "true",
    "false",
    "Active",
    YEARLY,
]
CELLS += [
    ONE_TIME,
    "One-Time",
    "Standard Price Book;true",
    "Standard Price Book",
    "2026-01-01",
    "equals",
    "Picklist",
    "Range",
]


@given(st.data())
def test_every_row_of_any_export_is_accounted_for_once_or_the_export_is_refused(data: st.DataObject):
    tables = full()
    known = [*KEYS, *NO_COUNTERPARTS, "Mystery__c"]
    for table in data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True)):
        columns = sorted(USED_COLUMNS.get(table, frozenset({"Name"})))
        rows = [dict(row) for row in tables.get(table, ())] or [dict.fromkeys(columns, "")]
        for _ in range(data.draw(st.integers(1, 2))):
            row = data.draw(st.sampled_from(rows))
            if data.draw(st.booleans()):
                rows.append(row := dict(row))
            row[data.draw(st.sampled_from(columns))] = data.draw(st.sampled_from(CELLS))
        tables[table] = rows
    files = export(tables)
    found = translate(files, with_inactive_schedules=data.draw(st.booleans()))
    if found.problems:
        assert found.rows == []
        return
    counted = Counter({file.name: len(file.rows) for file in files})
    assert {one.file: one.taken + one.translated + one.no_counterpart for one in found.files} == dict(counted)
    assert sum(len(one.lines) for one in found.reasons) == counted.total()
    assert [row.line for row in found.rows] == list(range(1, len(found.origins) + 1))


def test_a_row_of_every_table_is_here_and_all_of_them_can_be_imported():
    found = translate(export(full()))
    assert [one for one in found.reasons if one.fate is Fate.NO_COUNTERPART] == []
    assert [problem for row in found.rows if row.section != "products" for problem in validate(row)[1]] == []
    assert prepare_products([row for row in found.rows if row.section == "products"], {}, "").problems == []
    plan = product(found, "PLAN")
    assert plan["options"] == {
        "Size": {"type": "enum", "values": ["small", "large"], "default": "small"},
        "Seats": {"type": "number", "min": 1, "default": 3},
    }
    assert [row.get("surcharges") for row in prices(found, "PLAN") if row["billing_period"] == "yearly"] == [
        None,
        {"Size": {"large": 80}},
    ]


def use(translation: Translation) -> list[dict[str, Any]]:
    return [row for row in rows(translation, "prices") if row.get("selling_model") == "usage"]


def test_a_rate_card_is_a_usage_price_of_its_product_with_the_tiers_that_change_it():
    found = translate(export(full()))
    assert use(found) == [
        {
            "product_id": "PLAN",
            "price_book": "list",
            "currency": "USD",
            "unit_price": Decimal("0.5"),
            "billing_period": "monthly",
            "selling_model": "usage",
            "valid_from": "2026-01-01",
            "tier_mode": "graduated",
            "tiers": [{"up_to": 10, "unit_price": Decimal("0.4")}, {"unit_price": Decimal("0.3")}],
            "name": "Support",
            "unit": "Hour",
        }
    ]
    assert outcomes(found, "RateCardEntry")[0] == (
        Fate.TRANSLATED,
        "a usage price by the month: the export does not say when use is billed",
    )


def test_beyond_the_last_tier_and_between_two_the_base_rate_counts():
    tiers = [rate_tier("1", "10", "20"), rate_tier("21", "30", "0.1", AdjustmentType="Amount")]
    (found,) = use(translate(export({**full(), "RateAdjustmentByTier": tiers})))
    assert [(tier.get("up_to"), tier["unit_price"]) for tier in found["tiers"]] == [
        (10, Decimal("0.4")),
        (20, Decimal("0.5")),
        (30, Decimal("0.4")),
        (None, Decimal("0.5")),
    ]


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([rate("Tiers")], "the product has no base rate that it changes"),
        (
            [rate("Base", "5", **{"RateUnitOfMeasureClass.Name": "Tokens"})],
            "its rate is in units that are no money",
        ),
        ([rate("Base", "5", Status="Inactive")], "it is not active"),
        ([rate("Other", "5")], "its rate card is in no price book"),
        ([rate("Base", "5", **{"DefaultUnitOfMeasure.Name": ""})], "it does not say its unit"),
    ],
)
def test_a_rate_without_a_counterpart_is_left_out_and_says_why(entries: list[dict[str, str]], reason: str):
    cards = [*full()["RateCard"], {"Name": "Other", "Type": "Base"}]
    found = translate(export({**full(), "RateCard": cards, "RateCardEntry": entries, "RateAdjustmentByTier": []}))
    assert (use(found), outcomes(found, "RateCardEntry")) == ([], [(Fate.NO_COUNTERPART, reason)])


def test_a_product_with_one_price_keeps_it_as_its_default_beside_its_use():
    entries = [rate("Base", "5", **{"Product.StockKeepingUnit": "RACK"})]
    found = translate(export({**full(), "RateCardEntry": entries, "RateAdjustmentByTier": []}))
    assert product(found, "RACK")["default_selling_model"] == "one_time"


@given(st.text())
def test_an_identifier_is_one_whatever_the_name_is(name: str):
    spelled = identifier(name)
    assert identifier(spelled) == spelled
    row = SourceRow("products", 1, {"id": spelled, "sku": "S", "name": "N", "category": "c"})
    assert validate(row)[1] == []
