"""Files go in whole or not at all, every bad row is named, and a second import touches only what changed."""

import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from cpq.app import App
from cpq.base.errors import CpqError
from cpq.base.row_problems import SourceRow
from cpq.domain.catalog.preparation import PRODUCT_COLUMNS
from cpq.services.catalog.importer import BATCH
from cpq.storage.schema.tables import catalog_revision, product
from cpq.storage.schema.tables import price as price_table
from tests.support import engine
from tests.support.engine import Tools, open_app
from tests.support.quotes import ACME


def refused(app: App, section: str, *rows: dict) -> list[dict]:
    """The problems of an import that must fail; checks that nothing changed."""
    before = engine.row_counts(app)
    with pytest.raises(CpqError) as error:
        engine.import_dicts(app, section, *rows)
    assert engine.row_counts(app) == before
    return error.value.details["problems"]  # type: ignore[return-value] # A list of dicts by contract.


def test_every_bad_row_is_named_with_line_field_and_reason_and_nothing_is_imported(app: App):
    problems = refused(
        app,
        "products",
        engine.product_row(),
        engine.product_row(product_type="gadget"),
        engine.product_row(nmae="x"),
        engine.product_row(specs={"capacity_gall": 3}),
        engine.product_row(specs={"capacity_gal": "many"}),
        engine.product_row(id="prod_twice"),
        engine.product_row(id="prod_twice"),
        engine.product_row(sku="plan-pro-001"),
        engine.product_row(attributes={"warranty_years": "1.5"}),
    )
    found = {(problem["line"], problem["field"]): problem["message"] for problem in problems}
    assert set(found) == {
        (2, "product_type"),
        (3, "nmae"),
        (4, "specs.capacity_gall"),
        (5, "specs.capacity_gal"),
        (7, "id"),
        (8, "sku"),
        (9, "attributes.warranty_years"),
    }
    assert "did you mean name" in found[3, "nmae"]
    assert "prod_pro_v2" in found[8, "sku"]


def test_a_relationship_with_an_unknown_product_is_refused_with_its_line(app: App):
    relation = {"kind": "requires", "product_id": "prod_nowhere"}
    problems = refused(app, "products", engine.product_row(), engine.product_row(relationships=[relation]))
    assert [(problem["line"], problem["field"]) for problem in problems] == [(2, "relationships")]


def test_a_rule_that_cannot_work_is_refused_with_its_line_and_changes_nothing(app: App):
    rule = {"id": "r1", "say": "Say.", "then": {"size": "huge"}}
    options = {"size": {"type": "enum", "values": ["small", "large"]}}
    odd = engine.product_row(product_type="configurable", options=options, rules=[rule])
    before = engine.row_counts(app)
    problems = refused(app, "products", engine.product_row(), odd)
    assert [(problem["line"], problem["field"]) for problem in problems] == [(2, "rules.r1")]
    assert engine.row_counts(app) == before


def test_a_relationship_may_name_a_product_further_down_the_file(app: App):
    later = engine.product_row(id="prod_later")
    earlier = engine.product_row(relationships=[{"kind": "recommends", "product_id": "prod_later"}])
    assert engine.import_dicts(app, "products", earlier, later).created["products"] == 2


def test_prices_name_known_products_accounts_and_options(app: App):
    price = {"product_id": "prod_pro_v2", "price_book": "list", "currency": "CHF", "unit_price": "9"}
    problems = refused(
        app,
        "prices",
        {**price, "product_id": "prod_nowhere"},
        {**price, "price_book": None, "account_id": "acct_nowhere"},
        {**price, "surcharges": {"colour": {"red": "1"}}},
        {**price, "currency": "GBP", "free_quantity": 5},
    )
    assert [(problem["line"], problem["field"]) for problem in problems] == [
        (1, "product_id"),
        (2, "account_id"),
        (3, "surcharges"),
        (4, "row"),
    ]


def test_surcharges_are_kept_as_choices_are_spelled(app: App):
    """`2.50` and `True` in a file are the 2.5 and true of a quote; otherwise they would never be charged."""
    options = {"length": {"type": "number"}, "cover": {"type": "boolean"}, "hue": {"type": "enum", "values": ["red"]}}
    product = engine.product_row(id="prod_x", product_type="configurable", options=options)
    price = {"product_id": "prod_x", "price_book": "list", "currency": "USD", "unit_price": "9"}
    engine.import_dicts(app, "products", product)
    (problem,) = refused(app, "prices", {**price, "surcharges": {"hue": {"redd": "1"}}})
    assert (problem["field"], problem["message"]) == ("surcharges.hue", "hue is 'red', not 'redd'")
    engine.import_dicts(app, "prices", {**price, "surcharges": {"length": {"2.50": "70"}, "cover": {"True": "30"}}})
    with app.database.reading() as connection:
        (kept,) = connection.scalars(sa.select(price_table.c.surcharges).where(price_table.c.product_id == "prod_x"))
    assert {name: list(amounts) for name, amounts in kept.items()} == {"length": ["2.5"], "cover": ["true"]}


def test_an_agreed_price_that_an_option_takes_below_zero_is_refused_at_import_and_at_pricing(app: App):
    """It reached the database, which refused the line, and the caller was told of an internal error."""
    options = {"cover": {"type": "boolean"}, "stand": {"type": "boolean"}}
    product = engine.product_row(id="prod_x", product_type="configurable", options=options)
    listed = {"product_id": "prod_x", "price_book": "list", "currency": "USD", "unit_price": "9"}
    agreed = {"product_id": "prod_x", "account_id": ACME, "currency": "USD", "unit_price": "9", "tax_included": True}
    engine.import_dicts(app, "products", product)
    engine.import_dicts(app, "prices", listed)
    (problem,) = refused(app, "prices", {**agreed, "surcharges": {"cover": {"true": "-9.01"}}})
    assert (problem["field"], "larger than the agreed price" in problem["message"]) == ("row", True)
    taken_off = {"cover": {"true": "-5"}, "stand": {"true": "-5"}}
    engine.import_dicts(app, "prices", {**agreed, "surcharges": taken_off})
    choices = {"cover": True, "stand": True}
    line = {"product_id": "prod_x", "quantity": 2, "attributes": choices}
    error = Tools(app).error("quote_create", account_id=ACME, line_items=[line])
    assert error["code"] == "VALIDATION_ERROR"
    (problem,) = error["details"]["problems"]
    assert problem["field"] == "/line_items/0/product_id"
    assert "is below zero with the chosen options" in problem["message"]
    del choices["stand"]
    quote_id = Tools(app)("quote_create", account_id=ACME, line_items=[line])["quote_id"]
    assert Tools(app)("quote_price", quote_id=quote_id, requested_discount_pct=0)["pricing"]["total"] == 8


def test_importing_the_same_files_again_changes_nothing(app: App):
    before = _updated_at(app)
    for file, section in engine.SAMPLE_FILES:
        report = engine.import_file(app, engine.SAMPLE / file, section)
        assert sum(report.created.values()) == sum(report.updated.values()) == 0
    assert _updated_at(app) == before


def test_only_the_changed_product_is_touched_and_found_under_its_new_words(app: App):
    rows = [engine.product_row(id=f"prod_touch_{n}", sku=f"T-{n}", name=f"Gizmo {n}") for n in range(3)]
    engine.import_dicts(app, "products", *rows)
    before = _updated_at(app)
    rows[1]["name"] = "Wuzzle 1"
    report = engine.import_dicts(app, "products", *rows)
    assert (report.created["products"], report.updated["products"], report.unchanged["products"]) == (0, 1, 2)
    changed = {id_ for id_, at in _updated_at(app).items() if before[id_] != at}
    assert changed == {"prod_touch_1"}
    tools = Tools(app)
    assert [item["id"] for item in tools("catalog_search", query="wuzzle")["items"]] == ["prod_touch_1"]
    assert "prod_touch_1" not in [item["id"] for item in tools("catalog_search", query="gizmo 1")["items"]]


def test_a_category_and_a_price_book_come_into_being_when_first_mentioned(app: App):
    report = engine.import_dicts(app, "products", engine.product_row(category="spare_parts"))
    assert report.also_created == ["category spare_parts"]
    price = {"product_id": "prod_pro_v2", "price_book": "summer", "currency": "USD", "unit_price": "8"}
    assert engine.import_dicts(app, "prices", price).also_created == ["price book summer"]


def test_an_unknown_section_is_refused_with_the_nearest_known_one(app: App):
    assert refused(app, "product", {"id": "x"})[0]["nearest"] == ["products"]


def test_the_same_rows_come_in_as_csv_json_lines_json_and_yaml(app: App, tmp_path: Path):
    rows = [engine.product_row(id=f"prod_form_{n}", description='He said "no",\nthen left') for n in range(3)]
    forms = {
        "a.jsonl": "\n".join(json.dumps(row) for row in rows),
        "a.json": json.dumps({"products": rows}),
        "a.yaml": json.dumps(rows),
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text)
    assert engine.import_file(app, tmp_path / "a.jsonl", "products").created["products"] == 3
    for name in ("a.json", "a.yaml"):
        assert engine.import_file(app, tmp_path / name, "products").unchanged["products"] == 3


def test_a_cancelled_import_leaves_nothing_behind(app: App):
    before = engine.row_counts(app)

    def rows():
        for number in range(5000):
            yield SourceRow("products", number + 1, engine.product_row())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.import_rows(app, rows)
    assert engine.row_counts(app) == before


def _updated_at(app: App) -> dict[str, object]:
    with app.database.reading() as connection:
        return dict(connection.execute(sa.select(product.c.id, product.c.updated_at)).all())


def test_a_file_of_many_batches_goes_in_as_a_whole_and_names_its_bad_rows(app: App):
    """Large files are prepared by a second process; its findings must not get lost on the way."""
    rows = [engine.product_row(name=f"Part {number}", category="parts") for number in range(3 * BATCH + 17)]
    assert engine.import_dicts(app, "products", *rows).created["products"] == len(rows)
    assert Tools(app)("catalog_search", category="parts")["pagination"]["total"] == len(rows)
    for line in (3, BATCH + 5, 3 * BATCH + 2):
        rows[line - 1] = {**rows[line - 1], "product_type": "gadget"}
    rows[2 * BATCH]["id"] = rows[0]["id"]
    problems = refused(app, "products", *rows)
    assert [(problem["line"], problem["field"]) for problem in problems] == [
        (3, "product_type"),
        (BATCH + 5, "product_type"),
        (2 * BATCH + 1, "id"),
        (3 * BATCH + 2, "product_type"),
    ]


def test_a_prepared_product_fills_every_column_of_its_table():
    assert {*PRODUCT_COLUMNS, "tenant_id", "created_at", "updated_at"} == set(product.c.keys())


def test_categories_are_known_by_small_letters_however_they_are_written(app: App):
    engine.import_dicts(app, "products", engine.product_row(id="prod_hvac", category="HVAC"))
    found = Tools(app)("catalog_search", category="Hvac")["items"]
    assert [item["id"] for item in found] == ["prod_hvac"]


def test_a_number_spec_that_no_column_can_hold_is_refused_with_its_line(app: App):
    for value in ("1.12345678", "1e400", "123456789012345678", "1_000"):
        assert refused(app, "products", engine.product_row(specs={"capacity_gal": value}))[0]["line"] == 1


def test_skus_that_differ_only_in_punctuation_are_different(app: App):
    rows = [engine.product_row(sku=sku) for sku in ("PUMP-1.5", "PUMP-15", "++", "--")]
    assert engine.import_dicts(app, "products", *rows).created["products"] == 4
    assert refused(app, "products", engine.product_row(sku="pump-15"))[0]["field"] == "sku"


def test_products_may_hand_their_skus_to_each_other(app: App):
    one, two = engine.product_row(sku="HAND-1"), engine.product_row(sku="HAND-2")
    engine.import_dicts(app, "products", one, two)
    swapped = [{**one, "sku": "HAND-2"}, {**two, "sku": "HAND-1"}]
    assert engine.import_dicts(app, "products", *swapped).updated["products"] == 2
    freed = [{**one, "sku": "HAND-3"}, engine.product_row(sku="HAND-2")]
    report = engine.import_dicts(app, "products", *freed)
    assert (report.updated["products"], report.created["products"]) == (1, 1)


def test_one_bad_row_does_not_hide_or_invent_other_problems(app: App):
    dangling = engine.product_row(relationships=[{"kind": "requires", "product_id": "prod_nowhere"}])
    bad = engine.product_row(product_type="gadget")
    problems = refused(app, "products", bad, dangling, engine.product_row())
    assert [(problem["line"], problem["field"]) for problem in problems] == [(1, "product_type"), (2, "relationships")]


def test_a_product_that_moves_to_another_category_is_found_there_and_not_where_it_was(app: App):
    row = engine.product_row(id="prod_mover", name="Wanderer", category="old_place")
    engine.import_dicts(app, "products", row)
    engine.import_dicts(app, "products", {**row, "category": "new_place", "active": False})
    tools = Tools(app)
    arguments = {"query": "wanderer", "active_only": False}
    assert tools("catalog_search", category="old_place", **arguments)["items"] == []
    assert len(tools("catalog_search", category="new_place", **arguments)["items"]) == 1
    assert tools("catalog_search", query="wanderer")["items"] == []


def test_the_catalogue_has_a_new_revision_after_every_import_that_changed_it(app: App):
    def revision() -> str | None:
        with app.database.reading() as connection:
            return connection.scalar(sa.select(catalog_revision.c.revision))

    before, row = revision(), engine.product_row()
    engine.import_dicts(app, "products", row)
    created = revision()
    engine.import_dicts(app, "products", row)
    assert revision() == created != before
    engine.import_dicts(app, "products", {**row, "name": "Other"})
    changed = revision()
    refused(app, "products", {**row, "name": "Third", "product_type": "gadget"})
    assert revision() == changed != created


def test_a_new_price_is_quoted_from_the_next_call_on(app: App):
    """Prices are kept at hand by each process; here another one imports them."""
    tools, other = Tools(app), open_app(app.settings)
    row = {"product_id": "prod_pro_v2", "price_book": "list", "currency": "USD", "billing_period": "yearly"}
    asked = {"account_id": "acct_acme_001", "line_items": [{"product_id": "prod_pro_v2", "quantity": 1}]}
    for unit_price in (11, 12):
        engine.import_dicts(other, "prices", {**row, "id": "price_now", "unit_price": unit_price, "priority": 9})
        assert tools("quote_create", **asked)["line_items"][0]["unit_price"] == unit_price
    place = {"segment": "smb", "region": "americas", "country": "US", "tax_zone": "US-OH"}
    engine.import_dicts(other, "accounts", {"id": "acct_new", "name": "New", **place})
    assert tools("quote_create", **{**asked, "account_id": "acct_new"})["status"] == "draft"
    other.close()
