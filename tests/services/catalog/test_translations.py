"""Texts of the catalogue in other languages: they go in from every kind of file, come out again, and are found."""

import csv
import importlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from babel import Locale, UnknownLocaleError, localedata

from cpq.app import App
from cpq.base.errors import CpqError
from cpq.domain.translations import canonical, gathered, lookup, spread, translated
from cpq.services.catalog import exporter
from tests.support import engine, papers
from tests.support.engine import Tools

PUMP = {
    "id": "prod_pump",
    "sku": "PMP-1",
    "name": "Vacuum pump",
    "name.de": "Vakuumpumpe",
    "name.pt-BR": "Bomba de vácuo",
    "description": "Runs dry.",
    "description.de": "Läuft trocken.",
    "product_type": "configurable",
    "category": "pumps",
    "options": {
        "hue": {
            "type": "enum",
            "label": "Colour",
            "label.de": "Farbe",
            "values": ["red", "blue"],
            "values.de": {"red": "Rot"},
        }
    },
}
PUMPS = {"id": "pumps", "name": "Pumps", "name.de": "Pumpen"}


def written(path: Path, row: dict[str, Any]) -> Path:
    cells = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in row.items()}
    if path.suffix == ".xlsx":
        openpyxl: Any = importlib.import_module("openpyxl")
        book = openpyxl.Workbook()
        book.active.append(list(cells))
        book.active.append(list(cells.values()))
        book.save(path)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([list(cells), list(cells.values())])
    else:
        path.write_text(json.dumps([row]))
    return path


def exported(app: App, form: str) -> str:
    file = io.StringIO()
    engine.write(app, lambda tx: dict(exporter.write_catalog(tx, form, file)))
    return file.getvalue()


@pytest.mark.parametrize("kind", ["csv", "xlsx", "json", "yaml"])
def test_names_in_other_languages_go_in_from_every_kind_of_file_and_come_out_again(app: App, tmp_path: Path, kind: str):
    engine.import_dicts(app, "categories", PUMPS)
    assert engine.import_file(app, written(tmp_path / f"a.{kind}", PUMP), "products").created["products"] == 1
    found = json.loads(exported(app, "json"))
    (product,) = (row for row in found["products"] if row["id"] == PUMP["id"])
    assert product | PUMP == product
    assert next(row for row in found["categories"] if row["id"] == "pumps")["name.de"] == "Pumpen"
    for form in ("json", "csv", "yaml"):
        (tmp_path / f"b.{form}").write_text(exported(app, form))
        again = engine.import_file(app, tmp_path / f"b.{form}", "products")
        assert again.created.total() == again.updated.total() == 0, form
    assert "name.de,name.pt-BR,description.de" in exported(app, "csv").splitlines()[0]


def test_a_row_without_the_columns_removes_the_translations_and_leaves_those_of_the_category(app: App):
    engine.import_dicts(app, "categories", PUMPS)
    engine.import_dicts(app, "products", PUMP)
    bare = {name: value for name, value in PUMP.items() if "." not in name and name != "options"}
    assert engine.import_dicts(app, "products", bare | {"product_type": "simple"}).updated["products"] == 1
    found = json.loads(exported(app, "json"))
    assert not [name for row in found["products"] for name in row if "." in name]
    assert [row["name.de"] for row in found["categories"] if "name.de" in row] == ["Pumpen"]
    assert engine.import_dicts(app, "categories", {"id": "pumps", "name": "Pumps"}).updated["categories"] == 1


@pytest.mark.parametrize("kind", ["csv", "xlsx", "json"])
def test_a_bad_locale_or_an_unknown_column_is_named_with_its_line(app: App, tmp_path: Path, kind: str):
    wrong = {"name.deutsch": "a", "name.old": "b", "name.DE": "c", "description.de_AT": "d", "nmae.de": "e"}
    bad = PUMP | wrong | {"options": {"hue": {"type": "enum", "values": ["red"], "label.xx": "f"}}}
    before = engine.row_counts(app)
    with pytest.raises(CpqError) as error:
        engine.import_file(app, written(tmp_path / f"a.{kind}", bad), "products")
    problems: Any = error.value.details["problems"]
    found = {problem["field"]: problem["message"] for problem in problems}
    assert set(found) == {*wrong, "options.hue.label.xx"}
    assert {problem["line"] for problem in problems} == {1 if kind == "json" else 2}
    assert found.pop("nmae.de").startswith("is not a known field")
    assert set(found.values()) == {"is not a locale such as de, de-AT or pt-BR, written like these"}
    assert engine.row_counts(app) == before


def test_a_translated_value_must_be_one_of_the_option(app: App):
    options = {"hue": {"type": "enum", "values": ["red"], "values.de": {"rde": "Rot"}}}
    with pytest.raises(CpqError) as error:
        engine.import_dicts(app, "products", PUMP | {"options": options})
    problems: Any = error.value.details["problems"]
    (problem,) = problems
    assert (problem["line"], problem["field"]) == (1, "options.hue")
    assert "'rde', which is not one of the values" in problem["message"]


def test_a_product_is_found_by_its_translated_name_and_answered_in_the_language_asked_for(app: App):
    engine.import_dicts(app, "categories", PUMPS)
    engine.import_dicts(app, "products", PUMP)
    tools = Tools(app)
    for query in ("vakuumpumpe", "vakuumpunpe", "bomba de vacuo"):
        (item,) = tools("catalog_search", query=query)["items"]
        assert (item["id"], item["name"], "name_locale" in item) == (PUMP["id"], "Vacuum pump", False)
    (item,) = tools("catalog_search", query="pmp-1", locale="de_AT")["items"]
    assert (item["name"], item["description"], item["name_locale"]) == ("Vakuumpumpe", "Läuft trocken.", "de")
    (item,) = tools("catalog_search", category="pumps", locale="fr")["items"]
    assert (item["name"], item["name_locale"]) == ("Vacuum pump", None)
    found = tools("catalog_get", product_id=PUMP["id"], locale="pt-BR", include_relationships=True)
    assert (found["name"], found["description"], found["name_locale"]) == ("Bomba de vácuo", "Runs dry.", "pt-BR")
    (option,) = tools("catalog_get", product_id="pmp-1", locale="de", include_relationships=True)["options"]
    assert (option["name"], option["label"]) == ("hue", "Farbe")
    assert tools("catalog_get", product_id=PUMP["id"])["name"] == "Vacuum pump"
    found = tools("catalog_get", product_id=PUMP["id"], locale="german")
    assert (found["name"], found["name_locale"]) == ("Vacuum pump", None)


def test_a_reader_gets_the_nearest_locale_then_the_untranslated_text():
    assert lookup("de_AT") == ("de-AT", "de")
    assert lookup("zh_hant_tw") == ("zh-Hant-TW", "zh-Hant", "zh")
    assert (lookup("german"), lookup(""), canonical("xx"), canonical("es-419")) == ((), (), None, "es-419")
    names = {"de": "Pumpe", "de-CH": "Pumpi"}
    asked = {tag: translated(names, lookup(tag), "Pump") for tag in ("de", "de_CH", "de-AT", "fr")}
    assert asked == {"de": "Pumpe", "de_CH": "Pumpi", "de-AT": "Pumpe", "fr": "Pump"}


def test_every_language_that_documents_print_or_the_library_knows_may_have_texts():
    known = {name.partition("_")[0] for name in localedata.locale_identifiers()}
    assert [tag for tag in known if canonical(tag) != tag] == []
    assert [tag for tag in papers.design().labels if canonical(tag) != tag] == []
    with pytest.raises(UnknownLocaleError):
        Locale.parse("xx")


def test_a_row_is_gathered_and_spread_without_loss():
    texts = {"name": "names"}
    row = {"id": "x", "name": "a", "name.de": "b", "name.fr": "c", "other.de": "d"}
    assert gathered(row, texts) == {"id": "x", "name": "a", "names": {"de": "b", "fr": "c"}, "other.de": "d"}
    assert dict(spread(gathered(row, texts), texts)) == row
    assert gathered({"names": {"de": "a"}, "name.de": "b"}, texts) == {"names": {"de": "a"}, "name.de": "b"}


def test_translations_keep_the_order_of_the_file():
    tags = ["zu", "de", "fr", "es", "it", "pt", "nl", "sv"]
    row = {f"name.{tag}": tag for tag in tags}
    assert list(gathered(row, {"name": "names"})["names"]) == tags
