"""What one row of an imported file may say, and the reason given for each that may not."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cpq.base.row_problems import SourceRow
from cpq.domain.catalog.accounts import AccountRow
from cpq.domain.catalog.preparation import Declared, prepare_products
from cpq.domain.catalog.prices import PriceBookRow, PriceRow
from cpq.domain.catalog.products import CategoryRow, ProductRow, SpecDefinition
from cpq.domain.field_types import Row

CATEGORY = {"id": "pumps", "name": "Pumps"}
DECLARED = {"pumps": Declared({"hp": SpecDefinition(kind="number", unit="hp")}, {})}
PRODUCT = {"id": "prod_1", "sku": "P-1", "name": "Pump", "category": "pumps"}
CONFIGURABLE = {
    **PRODUCT,
    "product_type": "configurable",
    "options": {"hp": {"type": "number"}, "color": {"type": "enum", "values": ["red", "blue"]}},
}
BUNDLE = {**PRODUCT, "product_type": "bundle", "relationships": [{"kind": "component", "product_id": "prod_2"}]}
BOOK = {"id": "list", "name": "List"}
PERIODS = (
    "is not one of one_time, weekly, monthly, quarterly, half_yearly, yearly, or a number of weeks, months or years, "
    "up to ten years, such as 2_weeks or 18_months"
)
PRICE = {"product_id": "prod_1", "price_book": "list", "currency": "USD", "unit_price": "10"}
CONTRACTED = {"product_id": "prod_1", "account_id": "acme", "currency": "USD", "unit_price": "9"}
BY_USE = {**PRICE, "selling_model": "usage", "billing_period": "monthly", "unit": "API call"}
TIERED = {**PRICE, "tier_mode": "volume", "tiers": [{"up_to": 10, "unit_price": "10"}, {"unit_price": "9"}]}
ACCOUNT = {
    "id": "acme",
    "name": "Acme",
    "segment": "enterprise",
    "region": "EU",
    "country": "DE",
    "tax_zone": "DE",
}


def refusals(model: type[Row], row: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(row)
    return [
        (".".join(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, "))
        for fault in caught.value.errors()
    ]


def rule(**construct: Any) -> dict[str, Any]:
    return {**CONFIGURABLE, "rules": [{"id": "r1", "say": "Because.", **construct}]}


def option(**values: Any) -> dict[str, Any]:
    return {**CONFIGURABLE, "options": {"size": values}}


def tiers(*bounds: int | None, mode: str = "volume") -> dict[str, Any]:
    listed = [{"unit_price": "1"} if bound is None else {"up_to": bound, "unit_price": "1"} for bound in bounds]
    return {**PRICE, "tier_mode": mode, "tiers": listed}


@pytest.mark.parametrize(
    ("model", "row"),
    [
        (CategoryRow, CATEGORY),
        (CategoryRow, {**CATEGORY, "specs": {"hp": {"kind": "number", "unit": "hp"}}}),
        (CategoryRow, {**CATEGORY, "specs": {"fuel": {"kind": "enum", "values": ["gas", "diesel"]}}}),
        (CategoryRow, {**CATEGORY, "attributes": {"model": {"type": "text"}, "c": {"type": "enum", "values": ["x"]}}}),
        (ProductRow, PRODUCT),
        (ProductRow, {**PRODUCT, "active": "false", "attributes": {"a": True, "b": "x", "c": 5}, "specs": {"hp": 30}}),
        (ProductRow, {**PRODUCT, "relationships": [{"kind": "requires", "product_id": "prod_2", "quantity": 3}]}),
        (ProductRow, CONFIGURABLE),
        (ProductRow, BUNDLE),
        (ProductRow, {**BUNDLE, "bundle": {"pricing": "components_less_percent", "discount_percent": "12.5"}}),
        (ProductRow, option(type="number", min=1, max="9.5", step="0.5", default=2, unit="m", required=True, keep=2)),
        (ProductRow, option(type="enum", values=["s", 2, True], default=2)),
        (
            ProductRow,
            {**CONFIGURABLE, "options": {"a": {"type": "text"}, "b": {"type": "text", "active_when": {"a": "x"}}}},
        ),
        (ProductRow, rule(when={"hp": {"min": Decimal("1.5")}}, then={"color": "red"})),
        (ProductRow, rule(forbid={"color": "red", "hp": 3})),
        (ProductRow, rule(table={"columns": ["hp", "color"], "rows": [[1, "red"]]})),
        (ProductRow, rule(compare={"left": {"hp": 1}, "op": ">=", "right": {"const": 5}})),
        (ProductRow, rule(choose={"from": ["hp", "color"], "max": 1})),
        (PriceBookRow, BOOK),
        (PriceBookRow, {**BOOK, "region": "EU", "is_default": "true"}),
        (PriceRow, PRICE),
        (PriceRow, {**PRICE, "account_id": ""}),
        (PriceRow, {**CONTRACTED, "price_book": ""}),
        (PriceRow, TIERED),
        (PriceRow, tiers(None)),
        (PriceRow, tiers(1, 2, 10**12, None, mode="graduated")),
        (PriceRow, {**PRICE, "tier_mode": "package", "package_size": 12, "free_quantity": 3}),
        (PriceRow, {**BY_USE, "free_quantity": "100", "minimum_spend": "5", "maximum_spend": "5"}),
        (PriceRow, {**BY_USE, **tiers(10, None), "minimum_spend": ""}),
        (PriceRow, {**PRICE, "valid_from": "2026-01-01", "valid_to": "2026-01-01", "cost": "", "priority": -1000}),
        (PriceRow, {**PRICE, "valid_from": "", "cost": "0", "surcharges": {"color": {"red": "-5"}}}),
        (PriceRow, {**PRICE, "currency": " usd "}),
        (AccountRow, ACCOUNT),
        (AccountRow, {**ACCOUNT, "tax_status": "reverse_charge", "tax_note": "Art. 196", "time_zone": "Europe/Berlin"}),
        (AccountRow, {**ACCOUNT, "locale": "zh-Hant_TW", "currency": "jpy", "address": "1 Road\nTown"}),
    ],
)
def test_a_good_row_is_taken(model: type[Row], row: dict[str, Any]):
    assert model.model_validate(row).model_dump(include={"id"}) == {"id": row.get("id")}
    if model is ProductRow:
        assert prepare_products([SourceRow("products", 7, row)], DECLARED, "main").problems == []


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        (rule(when={"hp": {"gt": 1}}, then={"color": "red"}), "rules.r1", "'gt' is not one of min, max, not"),
        (rule(choose={"from": ["hp", "color"], "count": 1}), "rules.r1", "'count' is not one of from, min, max"),
        (rule(then={"color": "green"}), "rules.r1", "color is 'red' or 'blue', not 'green'"),
        (
            {**CONFIGURABLE, "options": {"a": {"type": "text"}, "b": {"type": "text", "active_when": {"a": 1}}}},
            "options.b.active_when",
            "a is text, not 1",
        ),
        (
            {**CONFIGURABLE, "options": {"a": {"type": "text", "active_when": {"a": "x"}}}},
            "options",
            "active_when is circular: a, a",
        ),
    ],
)
def test_options_and_rules_that_cannot_work_are_refused_by_line_and_rule(row: dict[str, Any], field: str, reason: str):
    ProductRow.model_validate(row)
    assert prepare_products([SourceRow("products", 7, row)], DECLARED, "main").problems == [(7, field, reason, None)]


def test_what_a_row_leaves_out_has_a_value():
    price = PriceRow.model_validate(PRICE)
    assert (price.billing_period, price.tier_mode, price.quantity_scope) == ("one_time", "none", "line")
    assert (price.tax_category, price.tax_included, price.priority) == ("standard", False, 0)
    account = AccountRow.model_validate(ACCOUNT)
    assert (account.currency, account.price_book, account.time_zone) == ("USD", "list", "UTC")
    assert (account.tax_status, account.locale, account.active) == ("taxable", "en_US", True)


@pytest.mark.parametrize("name", ["id", "name"])
def test_required_fields_are_named(name: str):
    assert refusals(CategoryRow, {k: v for k, v in CATEGORY.items() if k != name}) == [(name, "Field required")]


@pytest.mark.parametrize(
    ("model", "row"),
    [(CategoryRow, CATEGORY), (ProductRow, PRODUCT), (PriceBookRow, BOOK), (PriceRow, PRICE), (AccountRow, ACCOUNT)],
)
@pytest.mark.parametrize("field", ["tenant_id", "content_hash", "created_at", "nonsense"])
def test_fields_that_are_not_a_files_business_are_refused(model: type[Row], row: dict[str, Any], field: str):
    assert refusals(model, {**row, field: "x"}) == [(field, "Extra inputs are not permitted")]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "is blank"),
        ("  ", "is blank"),
        ("-x", "is made of letters, digits and _ . : - and starts with a letter or a digit"),
        ("a b", "is made of letters, digits and _ . : - and starts with a letter or a digit"),
        ("../x", "is made of letters, digits and _ . : - and starts with a letter or a digit"),
        ("é", "is made of letters, digits and _ . : - and starts with a letter or a digit"),
        ("a\0", "contains a character that is not text (U+0000)"),
        ("a\u202eb", "contains an invisible character or a blank other than a space"),
        ("x" * 65, "String should have at most 64 characters"),
        (5, "Input should be a valid string"),
    ],
)
def test_an_identifier_is_plain(value: object, reason: str):
    assert refusals(PriceBookRow, {**BOOK, "id": value}) == [("id", reason)]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "is blank"),
        ("a\nb", "must be one line of text"),
        ("a\rb", "must be one line of text"),
        ("a\u2028b", "must be one line of text"),
        ("a\tb", "must be one line of text"),
        ("\u202eevil", "contains a character that changes the direction of the text (U+202E)"),
        ("a\ud800", "Input should be a valid string, unable to parse raw data as a unicode string"),
        ("x" * 201, "String should have at most 200 characters"),
        (True, "Input should be a valid string"),
    ],
)
def test_a_name_is_one_readable_line(value: object, reason: str):
    assert refusals(PriceBookRow, {**BOOK, "name": value}) == [("name", reason)]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("NaN", "is not a number"),
        ("Infinity", "is not a number"),
        ("ten", "is not a number"),
        ("", "is not a number"),
        ("1_000", "is not a number"),
        ("１２", "is not a number"),
        ("1,234", "1,234 can mean 1234 or 1.234; write 1234, or 1.2340 for the fraction"),
        ("0x10", "is not a number"),
        (1.5, "is a binary float; write the number as text"),
        (float("nan"), "is a binary float; write the number as text"),
        (Decimal("NaN"), "Input should be a finite number"),
        (True, "Decimal input should be an integer, float, string or Decimal object"),
        ("-1", "Input should be greater than or equal to 0"),
        ("1e400", "is beyond 1000000000000"),
        ("1e999999999", "is beyond 1000000000000"),
        (10**30, "is beyond 1000000000000"),
        ("1000000000000.1", "is beyond 1000000000000"),
        ("0.0000001", "1E-7 has more than 6 decimals"),
        ("1e-400", "1E-400 has more than 6 decimals"),
        ("123456789.1234567", "has more than 15 significant digits"),
        ("1234567890.123456", "has more than 15 significant digits"),
    ],
)
def test_q06_an_amount_is_an_exact_number_within_bounds(value: object, reason: str):
    assert refusals(PriceRow, {**PRICE, "unit_price": value}) == [("unit_price", reason)]
    assert refusals(PriceRow, {**TIERED, "tiers": [{"unit_price": value}]}) == [("tiers.0.unit_price", reason)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1.10", "1.10"),
        (Decimal("1.10"), "1.10"),
        (5, "5"),
        (" 7.5 ", "7.5"),
        ("-0", "0"),
        ("1e3", "1E+3"),
        ("+2", "2"),
    ],
)
def test_q06_an_amount_is_kept_to_the_digit(value: object, expected: str):
    assert str(PriceRow.model_validate({**PRICE, "unit_price": value}).unit_price) == expected


@given(st.decimals(0, 10**9, places=6))
def test_q06_every_amount_of_fifteen_digits_is_taken(amount: Decimal):
    assert PriceRow.model_validate({**PRICE, "unit_price": f"{amount:f}"}).unit_price == amount


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        ({"specs": {"hp": {"kind": "number"}}}, "specs.hp", "a number spec names its unit"),
        ({"specs": {"fuel": {"kind": "enum"}}}, "specs.fuel", "an enum spec lists its values"),
        ({"specs": {"x": {"kind": "text"}}}, "specs.x.kind", "Input should be 'number' or 'enum'"),
        (
            {"attributes": {"x": {"type": "enum"}}},
            "attributes.x",
            "values go with the type enum, and only with it",
        ),
        (
            {"attributes": {"x": {"type": "text", "values": ["a"]}}},
            "attributes.x",
            "values go with the type enum, and only with it",
        ),
    ],
)
def test_a_category_declares_its_specs_in_full(row: dict[str, Any], field: str, reason: str):
    assert refusals(CategoryRow, {**CATEGORY, **row}) == [(field, reason)]


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        ({**PRODUCT, "options": {"a": {"type": "text"}}}, "", "options belong to a configurable product or a bundle"),
        ({**PRODUCT, "bundle": {}}, "", "bundle pricing belongs to a bundle"),
        (
            {**PRODUCT, "product_type": "bundle"},
            "",
            "a bundle has relationships of kind component, or groups of components",
        ),
        (
            {**BUNDLE, "relationships": [{"kind": "requires", "product_id": "prod_2"}]},
            "",
            "a bundle has relationships of kind component, or groups of components",
        ),
        (
            {**PRODUCT, "relationships": [{"kind": "requires", "product_id": "prod_1"}]},
            "",
            "a product has no relationship with itself",
        ),
        (
            {**BUNDLE, "relationships": [{"kind": "component", "product_id": "prod_2"}] * 2},
            "",
            "a relationship is named twice",
        ),
        (
            {**PRODUCT, "relationships": [{"kind": "likes", "product_id": "prod_2"}]},
            "relationships.0.kind",
            "Input should be 'requires', 'excludes', 'recommends', 'component' or 'substitute'",
        ),
        (
            {**PRODUCT, "relationships": [{"kind": "requires", "product_id": "p", "quantity": 0}]},
            "relationships.0.quantity",
            "Input should be greater than or equal to 1",
        ),
        (
            {**PRODUCT, "relationships": [{"kind": "requires", "product_id": "p", "quantity": True}]},
            "relationships.0.quantity",
            "is a boolean, not a whole number",
        ),
        (
            {**PRODUCT, "relationships": [{"kind": "requires", "product_id": "p", "quantity": 10**30}]},
            "relationships.0.quantity",
            "Input should be less than or equal to 1000000",
        ),
        (
            {**BUNDLE, "bundle": {"pricing": "components_less_percent"}},
            "bundle",
            "discount_percent goes with components_less_percent, and only with it",
        ),
        (
            {**BUNDLE, "bundle": {"pricing": "own", "discount_percent": 5}},
            "bundle",
            "discount_percent goes with components_less_percent, and only with it",
        ),
        (
            {**BUNDLE, "bundle": {"pricing": "components_less_percent", "discount_percent": 101}},
            "bundle.discount_percent",
            "Input should be less than or equal to 100",
        ),
        (
            {**PRODUCT, "product_type": "thing"},
            "product_type",
            "Input should be 'simple', 'configurable', 'bundle' or 'service'",
        ),
        ({**PRODUCT, "description": "x" * 20_001}, "description", "String should have at most 20000 characters"),
        ({**PRODUCT, "description": "a\0"}, "description", "contains a character that is not text (U+0000)"),
        ({**PRODUCT, "active": "perhaps"}, "active", "Input should be a valid boolean, unable to interpret input"),
    ],
)
def test_a_product_that_contradicts_itself_is_refused(row: dict[str, Any], field: str, reason: str):
    assert refusals(ProductRow, row) == [(field, reason)]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"type": "enum"}, "an enum option lists its values"),
        ({"type": "enum", "values": ["s", "m"], "default": "xl"}, "the default is not one of the values"),
        ({"type": "enum", "values": [1, 2], "default": True}, "the default is not one of the values"),
        ({"type": "number", "min": 5, "max": 4}, "min is above max"),
    ],
)
def test_an_option_that_cannot_be_chosen_is_refused(values: dict[str, Any], reason: str):
    assert refusals(ProductRow, option(**values)) == [("options.size", reason)]


@pytest.mark.parametrize(
    ("construct", "field", "reason"),
    [
        ({}, "rules.0", "a rule has exactly one of then, forbid, table, compare, choose, requires, excludes"),
        (
            {"then": {"hp": 1}, "forbid": {"hp": 2}},
            "rules.0",
            "a rule has exactly one of then, forbid, table, compare, choose, requires, excludes",
        ),
        ({"compare": {"left": 5}}, "rules.0", "left is a mapping from names of options"),
        ({"compare": {"right": None}}, "rules.0", "right is a mapping from names of options"),
        ({"table": {"columns": 5}}, "rules.0", "columns is a list of names of options"),
        ({"table": {"columns": [["hp"]]}}, "rules.0", "columns is a list of names of options"),
        ({"choose": {"from": "hp"}}, "rules.0", "from is a list of names of options"),
        ({"then": {"hp": float("nan")}}, "rules.0.then.hp", "holds a binary float"),
        ({"then": {"hp": ["a\0"]}}, "rules.0.then.hp", "contains a character that is not text (U+0000)"),
        (
            {"when": {"hp": {"\ud800": 1}}, "then": {"hp": 1}},
            "rules.0.when.hp",
            "contains a character that is not text (U+D800)",
        ),
        ({"then": {"hp": Decimal("1e400")}}, "rules.0.then.hp", "is beyond 1000000000000"),
    ],
)
def test_a_rule_says_one_thing_about_options(construct: dict[str, Any], field: str, reason: str):
    assert refusals(ProductRow, rule(**construct)) == [(field, reason)]


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        (
            {**PRICE, "account_id": "acme"},
            "",
            "a price has either a price_book or, when contracted, an account_id",
        ),
        ({**PRICE, "price_book": ""}, "", "a price has either a price_book or, when contracted, an account_id"),
        ({**PRICE, "valid_from": "2026-02-01", "valid_to": "2026-01-31"}, "", "valid_from is after valid_to"),
        ({**PRICE, "tier_mode": "package"}, "", "package_size goes with the tier mode package, and only with it"),
        ({**PRICE, "package_size": 12}, "", "package_size goes with the tier mode package, and only with it"),
        (
            {**PRICE, "tier_mode": "package", "package_size": 0},
            "package_size",
            "Input should be greater than or equal to 1",
        ),
        (
            {**PRICE, "tier_mode": "package", "package_size": 10**30},
            "package_size",
            "Input should be less than or equal to 1000000000000",
        ),
        ({**PRICE, "tier_mode": "package", "package_size": True}, "package_size", "is a boolean, not a whole number"),
        ({**PRICE, "tier_mode": "volume"}, "", "tiers go with the tier modes volume and graduated, and only with them"),
        (
            {**PRICE, "tiers": TIERED["tiers"]},
            "",
            "tiers go with the tier modes volume and graduated, and only with them",
        ),
        (tiers(10), "", "the last tier is open: leave its up_to out"),
        (tiers(10, 20), "", "the last tier is open: leave its up_to out"),
        (tiers(None, None), "", "only the last tier is open: every other one has up_to"),
        (tiers(10, None, 20, None), "", "only the last tier is open: every other one has up_to"),
        (tiers(20, 10, None), "", "the tiers' up_to values rise"),
        (tiers(10, 10, None), "", "the tiers' up_to values rise"),
        (tiers(0, None), "tiers.0.up_to", "Input should be greater than or equal to 1"),
        ({**PRICE, "currency": "XXX"}, "currency", "is not an ISO 4217 currency code"),
        ({**PRICE, "currency": ""}, "currency", "is not an ISO 4217 currency code"),
        ({**PRICE, "free_quantity": -1}, "free_quantity", "Input should be greater than or equal to 0"),
        ({**BY_USE, "unit": ""}, "", "a usage price names the unit that it counts, such as `API call`"),
        (
            {**BY_USE, "billing_period": "one_time"},
            "",
            "the selling model one_time goes with the billing period one_time, and only with it",
        ),
        (
            {**BY_USE, "tax_included": "true"},
            "",
            "a usage price has no surcharges, is without tax, and counts per line",
        ),
        (
            {**BY_USE, "minimum_spend": "6", "maximum_spend": "5"},
            "",
            "maximum_spend is above 0, and not below minimum_spend",
        ),
        ({**BY_USE, "maximum_spend": "0"}, "", "maximum_spend is above 0, and not below minimum_spend"),
        ({**BY_USE, "minimum_spend": "-1"}, "minimum_spend", "Input should be greater than or equal to 0"),
        ({**PRICE, "unit": "API call"}, "", "unit goes with the selling model usage, and only with it"),
        ({**PRICE, "minimum_spend": "5"}, "", "minimum_spend goes with the selling model usage, and only with it"),
        ({**PRICE, "priority": 1001}, "priority", "Input should be less than or equal to 1000"),
        ({**PRICE, "valid_from": "31.01.2026"}, "valid_from", "is not a date such as 2026-01-31"),
        ({**PRICE, "valid_from": "86400"}, "valid_from", "is not a date such as 2026-01-31"),
        ({**PRICE, "valid_from": 20260131}, "valid_from", "is not a date such as 2026-01-31"),
        ({**PRICE, "valid_to": "2026-01-31T00:00:00"}, "valid_to", "is not a date such as 2026-01-31"),
        (
            {**PRICE, "valid_to": "2026-02-30"},
            "valid_to",
            "Input should be a valid date or datetime, day value is outside expected range",
        ),
        (
            {**PRICE, "billing_period": "fortnightly"},
            "billing_period",
            PERIODS,
        ),
        ({**PRICE, "cost": "-1"}, "cost", "Input should be greater than or equal to 0"),
        ({**PRICE, "surcharges": {"color": {"red": "x"}}}, "surcharges.color.red", "is not a number"),
    ],
)
def test_a_price_that_could_be_read_two_ways_is_refused(row: dict[str, Any], field: str, reason: str):
    assert refusals(PriceRow, row) == [(field, reason)]


@given(st.lists(st.integers(1, 50) | st.none(), max_size=6))
def test_tiers_are_taken_exactly_when_they_rise_and_only_the_last_is_open(bounds: list[int | None]):
    *closed, last = bounds or [0]
    is_good = last is None and None not in closed and closed == sorted(set(closed), key=lambda bound: bound or 0)
    try:
        PriceRow.model_validate(tiers(*bounds))
    except ValidationError:
        assert not is_good
    else:
        assert is_good


def test_a_price_without_an_id_is_known_by_what_distinguishes_it():
    keys = {
        PriceRow.model_validate(row).key()
        for row in (
            PRICE,
            {**PRICE, "currency": "EUR"},
            {**PRICE, "valid_from": "2026-01-01"},
            {**PRICE, "priority": 1},
            {**PRICE, "billing_period": "monthly"},
            {**PRICE, "price_book": "eu"},
            {**PRICE, "product_id": "prod_2"},
            CONTRACTED,
            {**PRICE, "id": "mine"},
        )
    }
    assert len(keys) == 9
    assert "mine" in keys
    assert PriceRow.model_validate({**PRICE, "unit_price": "11"}).key() == PriceRow.model_validate(PRICE).key()


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        ({"tax_status": "exempt"}, "", "an exempt or reverse-charge account says why in tax_note"),
        ({"tax_status": "reverse_charge"}, "", "an exempt or reverse-charge account says why in tax_note"),
        ({"tax_status": "exempt", "tax_note": " "}, "tax_note", "is blank"),
        ({"tax_status": "free"}, "tax_status", "Input should be 'taxable', 'exempt' or 'reverse_charge'"),
        ({"time_zone": "Mars/Olympus"}, "time_zone", "is not an IANA time zone such as Europe/Berlin"),
        ({"time_zone": "../../etc/passwd"}, "time_zone", "is not an IANA time zone such as Europe/Berlin"),
        ({"time_zone": "CET+1"}, "time_zone", "is not an IANA time zone such as Europe/Berlin"),
        ({"currency": "DM"}, "currency", "is not an ISO 4217 currency code"),
        ({"country": "de"}, "country", "is not two capital letters such as DE or US"),
        ({"country": "DE\n"}, "country", "is not two capital letters such as DE or US"),
        ({"country": "DEU"}, "country", "is not two capital letters such as DE or US"),
        (
            {"locale": "German"},
            "locale",
            "is not a language, or language and country, such as de or en_US",
        ),
        ({"segment": ""}, "segment", "is blank"),
        ({"address": "x" * 501}, "address", "String should have at most 500 characters"),
        ({"price_book": ""}, "price_book", "is blank"),
    ],
)
def test_an_account_that_cannot_be_billed_is_refused(row: dict[str, Any], field: str, reason: str):
    assert refusals(AccountRow, {**ACCOUNT, **row}) == [(field, reason)]
