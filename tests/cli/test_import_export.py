"""`cpq import` and `cpq export`: all or nothing, every bad row, and out again without a change."""

from __future__ import annotations

import csv
import importlib
import json
import re
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cpq.base.clock import Effects
from cpq.base.settings import Settings
from cpq.cli.output import Meter
from cpq.domain.billing_periods import NAMED, ONE_TIME
from cpq.domain.catalog.accounts import AccountRow, TaxStatus
from cpq.domain.catalog.prices import PriceRow, QuantityScope, TierMode
from cpq.domain.catalog.products import ProductRow, ProductType
from cpq.domain.field_types import Row
from tests.cli.conftest import Run, query

GOOD = "id,sku,name,category,spec.hp,attribute.model\nnew_one,NEW-1,New one,compressors,15,N1\n"


def test_a_good_file_is_counted_by_kind(home: Path, tmp_path: Path, run: Run):
    (tmp_path / "products.csv").write_text(GOOD + "toy,TOY-1,Toy,toys,,\n")
    ran = run("import", "catalog", tmp_path / "products.csv")
    assert ran.code == 0
    assert ["products", "2", "0", "0"] in [line.split() for line in ran.out.splitlines()]
    assert "also created: category toys" in ran.out
    assert query(home, "SELECT sku FROM product WHERE id = 'new_one'") == [("NEW-1",)]


@pytest.mark.parametrize(("kind", "row"), [("catalog", ProductRow), ("prices", PriceRow), ("accounts", AccountRow)])
def test_the_help_names_every_column_and_word_of_a_file(run: Run, kind: str, row: type[Row]):
    told = set(re.findall(r"[a-z_]+", run("import", kind, "--help").out))
    words = {word for kinds in (ProductType, TierMode, QuantityScope, TaxStatus) for word in kinds}
    mine = {str(word) for word in words if any(type(word) is field.annotation for field in row.model_fields.values())}
    periods = {ONE_TIME, *NAMED} if row is PriceRow else set()
    assert set(row.model_fields) | mine | periods <= told


def test_columns_in_capitals_and_values_of_another_form_are_told_what_is_wanted(home: Path, tmp_path: Path, run: Run):
    (tmp_path / "a.csv").write_text("ID,name,segment,region,country,tax_zone,locale\na,A,smb,emea,Germany,DE,german\n")
    ran = run("import", "accounts", tmp_path / "a.csv", "--json")
    found = {one["field"]: one["message"] for one in json.loads(ran.out)["error"]["details"]["problems"]}
    assert found["ID"] == "is not a known field; did you mean id?"
    assert found["country"] == "is not two capital letters such as DE or US"
    assert found["locale"] == "is not a language, or language and country, such as de or en_US"


def test_a_second_import_changes_only_what_changed(home: Path, tmp_path: Path, run: Run):
    file = tmp_path / "products.csv"
    file.write_text(GOOD)
    run("import", "catalog", file)
    again = json.loads(run("import", "catalog", file, "--json").out)
    file.write_text(GOOD.replace("New one", "Newer one"))
    changed = json.loads(run("import", "catalog", file, "--json").out)
    assert (again["created"], again["updated"], again["unchanged"]) == (
        {"products": 0},
        {"products": 0},
        {"products": 1},
    )
    assert (changed["updated"], changed["unchanged"]) == ({"products": 1}, {"products": 0})


def test_every_bad_row_is_listed_with_its_line_and_nothing_changes(home: Path, tmp_path: Path, run: Run):
    file = tmp_path / "products.csv"
    file.write_text(
        GOOD
        + "bad id,B-1,Bad,compressors,15,\n"
        + "no_number,B-2,Bad,compressors,fifteen,\n"
        + "no_name,B-3,,compressors,15,\n"
        + "stolen,PLAN-PRO-001,Stolen SKU,saas,,\n"
    )
    before = query(home, "SELECT id, content_hash, updated_at FROM product ORDER BY id")
    ran = run("import", "catalog", file)
    listed = [line.split()[:2] for line in ran.err.splitlines() if line.strip()[:1].isdigit()]
    assert ran.code == 1
    assert listed[:4] == [["3", "id"], ["4", "spec.hp"], ["5", "name"], ["6", "sku"]]
    assert "Error: 4 problems in the file; nothing was imported." in ran.err
    assert "Traceback" not in ran.err
    assert query(home, "SELECT id, content_hash, updated_at FROM product ORDER BY id") == before


def test_what_is_wrong_with_many_rows_in_the_same_way_is_said_once_with_their_lines(
    home: Path, tmp_path: Path, run: Run
):
    file = tmp_path / "products.csv"
    rows = [f"p{n},P-{n},Pump {n},compresors,5,1" for n in range(3)] + ["p3,P-3,Pump,compressors,5,1"]
    file.write_text("\n".join(["id,sku,name,category,spec.hp,spec.cfm", *rows, rows[0].replace("p0", "p4")]))
    ran = run("import", "catalog", file)
    assert ran.code == 1
    reason = "'compresors' declares no specs, and this row has some; import it with its specs first, as JSON or YAML"
    assert [line.strip() for line in ran.err.splitlines()[3:]] == [
        f"2-4, 6   category   {reason}; did you mean compressors? (4 rows)",
        "6   sku        'P-0' belongs to product 'p0'",
        "Error: 5 problems in the file; nothing was imported.",
    ]
    assert query(home, "SELECT count(*) FROM category WHERE id = 'compresors'") == [(0,)]
    (tmp_path / "one_line.json").write_text('[{"id": "a", "naem": "A"}, {"id": "b", "naem": "B"}]')
    ran = run("import", "catalog", tmp_path / "one_line.json")
    assert "   1   naem       is not a known field; did you mean name? (2 rows)" in ran.err.splitlines()
    listed = json.loads(run("import", "catalog", file, "--json").out)["error"]["details"]["problems"]
    assert [(one["line"], one["field"]) for one in listed[:4]] == [(line, "category") for line in (2, 3, 4, 6)]


def test_a_column_is_named_as_the_file_spells_it(home: Path, tmp_path: Path, run: Run):
    row = {"id": "x", "sku": "X", "name": "X", "category": "compressors", "specs": {"hp": "many", "hpp": 1}}
    (tmp_path / "x.csv").write_text("id,sku,name,category,spec.hp,spec.hpp\nx,X,X,compressors,many,1\n")
    (tmp_path / "cell.csv").write_text(
        'id,sku,name,category,specs\nx,X,X,compressors,"{""hp"": ""many"", ""hpp"": 1}"\n'
    )
    (tmp_path / "x.json").write_text(json.dumps([row]))
    for name, fields in (
        ("x.csv", ["spec.hp", "spec.hpp"]),
        ("cell.csv", ["specs.hp", "specs.hpp"]),
        ("x.json", ["specs.hp", "specs.hpp"]),
    ):
        found = json.loads(run("import", "catalog", tmp_path / name, "--json").out)["error"]["details"]["problems"]
        assert [problem["field"] for problem in found] == fields
    (tmp_path / "x.csv").write_text(f"id,sku,name,category,spec.hp\nx,X,X,compressors,{'9' * 65}\n")
    found = json.loads(run("import", "catalog", tmp_path / "x.csv", "--json").out)["error"]["details"]["problems"]
    assert {problem["field"] for problem in found} == {"spec.hp"}


@pytest.mark.parametrize("kind", [["catalog"], ["prices"], ["accounts"], ["quotes"], ["quotes", "--history"]])
def test_an_empty_file_is_refused_and_not_taken_for_no_rows(home: Path, tmp_path: Path, run: Run, kind: list[str]):
    for name in ("x.csv", "x.json", "x.jsonl", "x.yaml"):
        (tmp_path / name).write_text("")
        ran = run("import", *kind, tmp_path / name)
        section = "products" if kind == ["catalog"] else kind[0]
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(f"Error: {name} is empty; expected {section}: ")


def test_bad_rows_are_listed_as_json_when_asked(home: Path, tmp_path: Path, run: Run):
    (tmp_path / "prices.jsonl").write_text(
        '{"product_id": "nope", "price_book": "list", "currency": "USD", "unit_price": 1}\n'
    )
    ran = run("import", "prices", tmp_path / "prices.jsonl", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["error"]["details"]["problems"] == [
        {"line": 1, "field": "product_id", "message": "there is no product 'nope'"}
    ]


def test_a_file_cannot_move_the_terminals_cursor(home: Path, tmp_path: Path, run: Run):
    (tmp_path / "products.json").write_text(
        '[{"id": "a", "sku": "a", "name": "a", "category": "a", "\\u001b[2J[red]": 1}]'
    )
    ran = run("import", "catalog", tmp_path / "products.json")
    assert ran.code == 1
    assert "\x1b" not in ran.err
    assert "\\u001b[2J[red]" in ran.err


@pytest.mark.parametrize("name", ["catalog.txt", "catalog.yaml"])
def test_an_unreadable_file_is_refused_with_the_reason(home: Path, tmp_path: Path, run: Run, name: str):
    (tmp_path / name).write_text("products:\n  - [unclosed")
    ran = run("import", "catalog", tmp_path / name)
    assert ran.code == 1
    assert name in ran.err


def test_accounts_and_prices_have_commands_of_their_own(home: Path, tmp_path: Path, run: Run):
    (tmp_path / "a.csv").write_text("id,name,segment,region,country,tax_zone\nacct_new,New,smb,americas,US,US-OH\n")
    (tmp_path / "p.yaml").write_text(
        "price_books: [{id: fair, name: Trade fair}]\n"
        "prices: [{product_id: prod_pro_v2, price_book: fair, currency: USD, unit_price: 9}]\n"
    )
    assert json.loads(run("import", "accounts", tmp_path / "a.csv", "--json").out)["created"] == {"accounts": 1}
    created = json.loads(run("import", "prices", tmp_path / "p.yaml", "--json").out)["created"]
    assert created == {"price_books": 1, "prices": 1}


ODD = {
    "id": "odd",
    "sku": "  007 ",
    "name": "yes: 'no' \"maybe\" # [x] €—日本 🛠",
    "description": "=1+1\n\ttwo\r\n  lines\u2028and \ufeff more\n\n",
    "category": "odds",
    "product_type": "configurable",
    "attributes": {
        "z": "1.50",
        "a": 0.000001,
        "bool": True,
        "word": "true",
        "date": "2024-01-01",
        "e": "1e5",
        "n": "null",
    },
    "options": {
        "zeta": {"type": "enum", "values": ["010", "on"], "default": "on"},
        "alpha": {"type": "number", "min": 0, "max": 1.25, "required": True},
        "text": {"type": "text", "default": ""},
    },
    "rules": [{"id": "r", "say": "Say.", "when": {"zeta": "on"}, "then": {"alpha": {"max": 0.5}}}],
    "relationships": [{"kind": "requires", "product_id": "prod_pro_v2", "quantity": 3}],
}


@pytest.mark.parametrize("form", ["json", "yaml", "csv"])
def test_importing_an_export_changes_nothing_on_either_database(store: Settings, tmp_path: Path, run: Run, form: str):
    cpq = partial(run, "--home", store.home, "--database-url", store.database_url)
    (tmp_path / "odd.jsonl").write_text(json.dumps(ODD))
    assert cpq("import", "catalog", tmp_path / "odd.jsonl").code == 0
    assert cpq("export", "catalog", "--output", tmp_path / f"all.{form}").code == 0
    exported = (tmp_path / f"all.{form}").read_bytes()
    ran = cpq("import", "catalog", tmp_path / f"all.{form}", "--json")
    assert ran.code == 0, ran.out
    report = json.loads(ran.out)
    assert report["unchanged"]["products"] > 200
    assert set(report["created"].values()) == set(report["updated"].values()) == {0}
    assert cpq("export", "catalog", "--output", tmp_path / f"all.{form}").code == 0
    assert (tmp_path / f"all.{form}").read_bytes() == exported


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_an_export_fills_an_empty_database_with_the_same_catalogue(home: Path, tmp_path: Path, run: Run, form: str):
    (tmp_path / "odd.jsonl").write_text(json.dumps(ODD))
    run("import", "catalog", tmp_path / "odd.jsonl")
    first, second = tmp_path / f"first.{form}", tmp_path / f"second.{form}"
    run("export", "catalog", "--output", first)
    run("--home", tmp_path / "copy", "init")
    assert run("--home", tmp_path / "copy", "import", "catalog", first).code == 0
    run("--home", tmp_path / "copy", "export", "catalog", "--output", second)
    assert second.read_text() == first.read_text()


ODD_PRICES = [
    {"product_id": "prod_qmb15", "price_book": "list", "currency": "USD", "unit_price": "1.000001", "priority": -3,
     "valid_from": "2020-01-01", "valid_to": "2020-12-31", "tax_included": True, "cost": "0", "quantity_scope": "quote",
     "tier_mode": "graduated", "tiers": [{"up_to": 9, "unit_price": "2", "flat_fee": "0.5"}, {"unit_price": "0"}]},
    {"id": "mine-1", "product_id": "prod_qmb15", "account_id": "acct_acme_001", "currency": "JPY", "unit_price": "5",
     "billing_period": "18 months", "selling_model": "evergreen", "name": "=2+3"},
    {"product_id": "prod_qmb15", "price_book": "odd", "currency": "EUR", "unit_price": "0.000001", "unit": "call",
     "billing_period": "monthly", "selling_model": "usage", "free_quantity": 7, "minimum_spend": "0",
     "maximum_spend": "9.5", "tier_mode": "package", "package_size": 12},
]  # fmt: skip
ODD_BOOK = {"id": "odd", "name": "Odd", "region": "emea", "base_currency": "USD", "price_rounding": "just_below"}


@pytest.mark.parametrize("form", ["json", "yaml", "csv"])
def test_g01_importing_exported_prices_changes_nothing_on_either_database(
    store: Settings, tmp_path: Path, run: Run, form: str
):
    cpq = partial(run, "--home", store.home, "--database-url", store.database_url)
    (tmp_path / "odd.json").write_text(json.dumps({"price_books": [ODD_BOOK], "prices": ODD_PRICES}))
    ran = cpq("import", "prices", tmp_path / "odd.json")
    assert ran.code == 0, ran.err
    file = tmp_path / f"prices.{form}"
    ran = cpq("export", "prices", "--output", file)
    counted = re.search(r"Exported (?:[0-9]+ price books and )?([0-9,]+) prices\.", ran.err)
    assert counted is not None, ran.err
    exported = file.read_bytes()
    ran = cpq("import", "prices", file, "--json")
    assert ran.code == 0, ran.out
    report = json.loads(ran.out)
    assert report["unchanged"]["prices"] == int(counted[1].replace(",", "")) > 1000
    assert set(report["created"].values()) == set(report["updated"].values()) == {0}
    assert cpq("export", "prices", "--output", file).code == 0
    assert file.read_bytes() == exported


def test_g01_exported_prices_fill_another_database_with_the_same(home: Path, tmp_path: Path, run: Run):
    (tmp_path / "odd.json").write_text(json.dumps({"price_books": [ODD_BOOK], "prices": ODD_PRICES[::2]}))
    run("import", "prices", tmp_path / "odd.json")
    run("export", "catalog", "--output", tmp_path / "catalog.json")
    listed = tmp_path / "first.json"
    run("export", "prices", "--output", listed)
    every = json.loads(listed.read_text())
    every["prices"] = [row for row in every["prices"] if "account_id" not in row]
    listed.write_text(json.dumps(every))
    run("--home", tmp_path / "copy", "init")
    for kind, file in (("catalog", "catalog.json"), ("prices", "first.json")):
        assert run("--home", tmp_path / "copy", "import", kind, tmp_path / file).code == 0
    run("--home", tmp_path / "copy", "export", "prices", "--output", tmp_path / "second.json")
    assert json.loads((tmp_path / "second.json").read_text()) == every


def test_an_export_goes_to_stdout_and_keeps_it_clean(home: Path, run: Run):
    ran = run("export", "catalog")
    exported = json.loads(ran.out)
    assert [len(exported["products"])] == [count for (count,) in query(home, "SELECT count(*) FROM product")]
    assert "Exported 10 categories and" in ran.err


def test_an_ending_that_is_no_form_of_a_catalogue_is_refused_and_writes_nothing(home: Path, run: Run):
    ran = run("export", "catalog", "--output", "all.xlsx")
    assert (ran.code, "not one of .json, .csv, .yaml, .yml: rename it, or give --format." in ran.err) == (2, True)
    assert not Path("all.xlsx").exists()


def test_long_work_without_a_terminal_says_a_line_now_and_then(capfd: pytest.CaptureFixture[str]):
    class Slow(Effects):
        seconds = 0

        def monotonic(self) -> int:
            self.seconds += 1
            return self.seconds

    with Meter("Working", Slow()) as meter:
        for done in range(5):
            meter(done, 10)
    assert capfd.readouterr().err.splitlines() == ["Working: 0 %", "Working: 20 %", "Working: 40 %"]


def test_a_file_with_semicolons_and_decimal_commas_is_read_and_doubtful_numbers_are_refused(home: Path, run: Run):
    file = home.parent / "preise.csv"
    file.write_text("id;product_id;price_book;currency;unit_price\np1;prod_pro_v2;own;EUR;1.234,50\n")
    assert run("import", "prices", file).code == 0
    assert query(home, "SELECT unit_price FROM price WHERE id = 'p1'") == [(1_234_500_000,)]
    file.write_text("id;product_id;price_book;currency;unit_price\np1;prod_pro_v2;own;EUR;1.234\n")
    refused = run("import", "prices", file)
    assert refused.code == 1
    assert "1.234 can mean 1234 or 1.234; write 1234, or 1.2340 for the fraction" in refused.err
    assert query(home, "SELECT unit_price FROM price WHERE id = 'p1'") == [(1_234_500_000,)]


def test_prices_are_loaded_from_a_sheet_of_a_workbook(home: Path, run: Run):
    openpyxl: Any = importlib.import_module("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.create_sheet("Preise")
    sheet.append(["id", "product_id", "price_book", "currency", "unit_price", "valid_from"])
    sheet.append(["p2", "prod_pro_v2", "own", "EUR", 12.34, date(2026, 1, 31)])
    book.save(home.parent / "preise.xlsx")
    ran = run("import", "prices", home.parent / "preise.xlsx", "--sheet", "Preise")
    assert ran.code == 0, ran.err
    found = query(home, "SELECT unit_price, valid_from FROM price WHERE id = 'p2'")
    assert found == [(12_340_000, "2026-01-31")]
    assert "has no sheet 'Preis'" in run("import", "prices", home.parent / "preise.xlsx", "--sheet", "Preis").err


def test_a_file_with_faults_of_every_kind_names_them_all_in_one_run(home: Path, tmp_path: Path, run: Run):
    file = tmp_path / "mixed.json"
    file.write_text(
        json.dumps(
            {
                "products": [
                    {"id": "p1", "sku": "S-1", "name": "", "category": "saas"},
                    {"id": "p1", "sku": "S-2", "name": "Twice", "category": "saas"},
                    {"id": "p2", "sku": "S-3", "name": "Two", "category": "saas", "colour": "red"},
                    {
                        "id": "p3",
                        "sku": "S-4",
                        "name": "Three",
                        "product_type": "configurable",
                        "category": "saas",
                        "options": {"size": {"type": "enum", "values": ["s", "m"]}},
                        "relationships": [{"kind": "requires", "product_id": "nowhere"}],
                    },
                    {"id": "p4", "sku": "S-4", "name": "Four", "category": "saas"},
                ],
                "accounts": [{"id": "a1", "name": "A", "segment": "smb", "currency": "ZZZ"}],
                "prices": [
                    {"product_id": "p2", "currency": "USD", "unit_price": 5, "price_book": "list"},
                    {"product_id": "p2", "account_id": "a1", "currency": "USD", "unit_price": 5},
                    {"product_id": "none", "account_id": "nobody", "currency": "USD", "unit_price": -5},
                    {
                        "product_id": "p3",
                        "currency": "USD",
                        "unit_price": 5,
                        "price_book": "list",
                        "surcharges": {"size": {"xl": 3}},
                    },
                ],
            },
            indent=1,
        )
    )
    ran = run("import", "catalog", file, "--json")
    problems = {(one["field"], one["message"]) for one in json.loads(ran.out)["error"]["details"]["problems"]}
    assert {
        ("name", "is blank"),
        ("id", "'p1' is in this file twice"),
        ("colour", "is not a known field"),
        ("relationships", "p3 names 'nowhere', which does not exist"),
        ("sku", "'S-4' belongs to product 'p3'"),
        ("currency", "is not an ISO 4217 currency code"),
        ("unit_price", "Input should be greater than or equal to 0"),
        ("product_id", "there is no product 'none'"),
        ("account_id", "there is no account 'nobody'"),
    } <= problems
    assert any(field == "surcharges.size" for field, _ in problems)
    # What refers to a refused row of the same file is not wrong for that.
    assert not any("'p2'" in message or "'a1'" in message for _, message in problems)


def test_the_catalogue_as_csv_runs_no_formula_and_comes_back_as_it_was(home: Path, tmp_path: Path, run: Run):
    names = {"one": "=1+1", "two": "'=1+1", "three": "-5 degrees", "four": "'quoted'", "five": "@SUM(A1)"}
    about = {"category": "tanks", "description": "=one\r'two\u200b"}
    rows = [{"id": id_, "sku": id_.upper(), "name": name, **about} for id_, name in names.items()]
    (tmp_path / "odd.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert run("import", "catalog", tmp_path / "odd.jsonl").code == 0
    assert run("export", "catalog", "--output", tmp_path / "all.csv").code == 0
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        cells = {row["id"]: row["name"] for row in csv.DictReader(file) if row["id"] in names}
    assert cells == {**{id_: f"'{name}" for id_, name in names.items()}, "four": "'quoted'"}
    report = json.loads(run("import", "catalog", tmp_path / "all.csv", "--json").out)
    assert set(report["created"].values()) == set(report["updated"].values()) == {0}


RULES_OF_A_PRODUCT = """products:
  - id: p1
    sku: P-1
    name: Machine
    description: A machine.
    product_type: configurable
    category: compressors
    options:
      hp: {type: integer, min: 5, max: 200}
      volt: {type: enum, values: ["208", "460"]}
    rules:
      - {id: A, say: One., when: {volts: "208"}, then: {hp: {max: 60}}}
      - id: B
        say: Two.
        table: {columns: [hp, volt], rows: [[25]]}
"""


def test_a_fault_in_a_rule_is_placed_by_line_and_column(home: Path, tmp_path: Path, run: Run):
    file = tmp_path / "rules.yaml"
    file.write_text(RULES_OF_A_PRODUCT)
    ran = run("import", "catalog", file)
    assert ran.code == 1
    assert [line.split()[:3] for line in ran.err.splitlines()[3:-1]] == [
        ["12", "9", "rules.A"],
        ["13", "9", "rules.B"],
    ]
    missing = RULES_OF_A_PRODUCT.replace("say: One., ", "").replace("max: 200", "max: 200, most: 1")
    file.write_text(missing.replace("volts", "volt"))
    listed = json.loads(run("import", "catalog", file, "--json").out)["error"]["details"]["problems"]
    assert [(one["line"], one["column"], one["field"]) for one in listed] == [
        (9, 45, "options.hp.most"),
        (12, 9, "rules.0.say"),
    ]
