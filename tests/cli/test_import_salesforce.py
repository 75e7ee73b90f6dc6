"""`cpq import salesforce`: the public catalogue row by row, safe to repeat, and what it refuses."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cpq.base.clock import Effects
from cpq.services.catalog import salesforce_folder
from tests.cli.conftest import Run, query
from tests.support.salesforce_exports import (
    ONE_TIME,
    entry,
    export,
    full,
    model_facts,
    model_tables,
    public_catalogue,
    small,
    write,
)

LOAD_SECONDS_MAX = 10
STATE = "SELECT (SELECT revision FROM catalog_revision), (SELECT count(*) FROM product), (SELECT count(*) FROM price)"


def counted_rows(folder: Path) -> dict[str, int]:
    """The rows of every table, counted by nothing of ours."""
    found = {}
    for path in sorted(folder.rglob("*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as file:
            found[path.relative_to(folder).as_posix()] = max(0, sum(1 for cells in csv.reader(file) if cells) - 1)
    for path in sorted(folder.rglob("*.json")):
        found[path.relative_to(folder).as_posix()] = len(json.loads(path.read_text(encoding="utf-8")))
    return found


def assert_every_part_is_accounted_for(report: dict[str, Any], folder: Path) -> None:
    """Every type, relation, attribute, pair and further statement of every model, counted by nothing of ours."""
    expected: Counter[tuple[str, str]] = Counter()
    for facts in json.loads((folder / "cml_facts.json").read_text(encoding="utf-8")):
        name = facts["model"]
        for part in ("types", "relations", "attributes"):
            expected[name, part.removesuffix("s")] = len(facts[part])
        for part, statement in (("requires", "require"), ("excludes", "exclude"), ("recommends", "rule")):
            expected[name, part] = len(facts[part])
            expected[name, f"statement: {statement}"] -= len(facts[part])
        for statement, count in facts["counts"].items():
            expected[name, f"statement: {statement}"] += count
    found: Counter[tuple[str, str]] = Counter()
    for one in report["reasons"]:
        assert one["reason"]
        found[one["model"], one["part"]] += one["parts"]
    assert found == +expected
    assert report["parts"] == found.total() == 657
    assert [report[name] for name in ("taken", "translated", "no_counterpart")] == [217, 14, 426]


def lines_of(spans: list[str]) -> int:
    ends = [list(map(int, span.split("-"))) for span in spans]
    return sum(last[-1] - last[0] + 1 for last in ends)


def test_every_row_of_the_public_catalogue_is_accounted_for_and_a_second_import_changes_nothing(home: Path, run: Run):
    folder = public_catalogue()
    began = Effects().monotonic()
    ran = run("import", "salesforce", folder, "--json")
    assert Effects().monotonic() - began < LOAD_SECONDS_MAX
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    losses, expected = answer["losses"], counted_rows(folder)
    assert {one["file"]: one["rows"] for one in losses["files"]} == expected
    assert losses["rows"] == sum(expected.values()) == losses["taken"] + losses["translated"] + losses["no_counterpart"]
    by_file = dict.fromkeys(expected, 0)
    for one in losses["reasons"]:
        assert one["rows"] == lines_of(one["lines"])
        assert one["reason"]
        by_file[one["file"]] += one["rows"]
    assert by_file == expected
    assert answer["created"] == {"categories": 24, "products": 314, "price_books": 0, "prices": 1904}
    assert "category 3rd_party_software" in answer["also_created"]
    assert answer["other_files"] == ["LICENSE.txt", "README.md"]
    assert_every_part_is_accounted_for(losses["constraint_models"], folder)
    before = query(home, STATE)
    again = json.loads(run("import", "salesforce", folder, "--json").out)
    assert sum(again["created"].values()) == sum(again["updated"].values()) == 0
    assert again["unchanged"] == {"categories": 18, "products": 314, "price_books": 1, "prices": 1904}
    assert query(home, STATE) == before


def test_a_person_reads_what_became_of_the_rows_and_a_dry_run_stores_nothing(home: Path, tmp_path: Path, run: Run):
    folder = write(tmp_path / "export", full() | {"UnitOfMeasureClass": [{"Name": "Time"}, {"Name": "Money"}]})
    (folder / "Empty.csv").write_text("")
    before = query(home, STATE)
    ran = run("import", "salesforce", folder, "--dry-run")
    assert ran.code == 0, ran.err
    lines = [line.split(maxsplit=4) for line in ran.out.splitlines()]
    assert ["UnitOfMeasureClass.csv", "2", "0", "0", "2"] in lines
    assert re.search(r"no counterpart +UnitOfMeasureClass.csv +2 +2-3 +units are not grouped into classes", ran.out)
    assert re.search(r"\d+ rows accounted for: \d+ taken, \d+ translated, 2 no counterpart\.", ran.out)
    assert ran.out.endswith("A dry run: nothing was stored.\n")
    assert query(home, STATE) == before
    ran = run("import", "salesforce", folder)
    assert ["products", "7", "0", "0"] in [line.split() for line in ran.out.splitlines()]
    assert query(home, "SELECT name FROM product WHERE id = 'DISK-1' AND sku = 'DISK 1'") == [("The DISK 1",)]


def test_a_person_reads_what_became_of_a_constraint_model_and_a_second_import_changes_nothing(
    home: Path, tmp_path: Path, run: Run
):
    folder = write(tmp_path / "export", small())
    write(folder / "models" / "m", model_tables({"Plan": "The PLAN", "Rack": "The RACK"}))
    pairs = {"requires": [{"if": "Plan", "then": "Rack"}], "excludes": [{"if": "Plan", "then": "Other"}]}
    facts = model_facts(["Plan", "Rack"], counts={"require": 1, "preference": 4}, **pairs)
    (folder / "facts.json").write_text(json.dumps([facts, "no facts"]))
    ran = run("import", "salesforce", folder)
    assert ran.code == 0, ran.err
    assert re.search(r"taken +M +type +2 +a product\n", ran.out)
    assert re.search(r"translated +M +requires +1 +a relationship of the product", ran.out)
    assert re.search(r"no counterpart +M +excludes +1 +one of its types is no product of the export", ran.out)
    assert re.search(r"no counterpart +M +statement: preference +4 +a statement in the model's own language", ran.out)
    assert re.search(r"no counterpart +facts.json +1 +2 +not the facts of a constraint model", ran.out)
    assert ran.out.endswith("8 parts of constraint models accounted for: 2 taken, 1 translated, 5 no counterpart.\n")
    related = query(home, "SELECT kind, other_id FROM product_relation WHERE product_id = 'PLAN'")
    assert related == [("requires", "RACK")]
    before = query(home, STATE)
    again = json.loads(run("import", "salesforce", folder, "--json").out)
    assert sum(again["created"].values()) == sum(again["updated"].values()) == 0
    assert query(home, STATE) == before


def test_only_what_changed_in_the_export_is_changed(home: Path, tmp_path: Path, run: Run):
    folder = write(tmp_path / "export", small())
    run("import", "salesforce", folder)
    changed = [{**row, "UnitPrice": "12"} if row["UnitPrice"] == "10" else row for row in small()["PricebookEntry"]]
    write(folder, {"PricebookEntry": changed})
    answer = json.loads(run("import", "salesforce", folder, "--json").out)
    assert {kind: count for kind, count in answer["updated"].items() if count} == {"prices": 1}
    assert sum(answer["created"].values()) == 0


def test_what_the_importer_refuses_is_named_by_file_and_line_and_nothing_is_stored(
    home: Path, tmp_path: Path, run: Run
):
    prices = [*small()["PricebookEntry"], entry("PLAN", ONE_TIME, "-5"), entry("RACK", ONE_TIME, "5", "XXY")]
    folder = write(tmp_path / "export", small(PricebookEntry=prices, ProductRelatedComponent=[]))
    before = query(home, STATE)
    for extra in ((), ("--dry-run",)):
        ran = run("import", "salesforce", folder, "--json", *extra)
        problems = json.loads(ran.out)["error"]["details"]["problems"]
        assert [(one["file"], one["line"], one["field"]) for one in problems] == [
            ("PricebookEntry.csv", 10, "unit_price"),
            ("PricebookEntry.csv", 11, "currency"),
        ]
    ran = run("import", "salesforce", folder)
    assert ran.code == 1
    assert re.search(r"PricebookEntry.csv +10 +unit_price +Input should be greater than or equal to 0", ran.err)
    assert query(home, STATE) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'StockKeepingUnit,Name\nA,"open\n', "sub/Product2.csv, line 2: unexpected end of data"),
        (b"StockKeepingUnit,Name\nA,\xff\n", "sub/Product2.csv, line 2: not UTF-8 text"),
        (b"Name,Name\nA,B\n", "sub/Product2.csv, line 1: two columns have the same name"),
        (b"StockKeepingUnit,Name\nA,B,C\n", "sub/Product2.csv, line 2: has more cells than the header has names"),
    ],
)
def test_a_broken_file_is_named_with_its_folder_and_line(
    home: Path, tmp_path: Path, run: Run, content: bytes, message: str
):
    folder = write(tmp_path / "export", small(Product2=[]))
    (folder / "sub").mkdir()
    (folder / "sub" / "Product2.csv").write_bytes(content)
    before = query(home, STATE)
    ran = run("import", "salesforce", folder)
    assert ran.code == 1
    assert ran.err == f"Error: {message}\n"
    assert query(home, STATE) == before


def test_a_folder_that_is_no_export_or_too_large_is_refused(
    home: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "none").mkdir()
    assert "none has no CSV file" in run("import", "salesforce", tmp_path / "none").err
    assert run("import", "salesforce", tmp_path / "missing").code == 2
    folder = write(tmp_path / "export", small())
    (folder / "notes.json").write_text("[1, 2")
    assert run("import", "salesforce", folder).err == "Error: notes.json, line 1: not JSON\n"
    (folder / "notes.json").unlink()
    (folder / "elsewhere.csv").symlink_to("/dev/zero")
    assert run("import", "salesforce", folder, "--dry-run").code == 0
    for limit, message in (
        ("ROWS_MAX", "Pricebook2.csv, line 2: an export has at most 0 rows"),
        ("FILE_BYTES_MAX", "bytes; a file has at most 0"),
        ("FILES_MAX", "export has more than 0 files; it is not an export"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(salesforce_folder, limit, 0)
            assert message in run("import", "salesforce", folder).err


def test_the_rows_that_a_folder_gives_are_those_of_its_tables(tmp_path: Path):
    read = salesforce_folder.read_folder(write(tmp_path / "export", full()))
    shown: dict[str, Any] = {file.table: [(row.line, dict(row.cells)) for row in file.rows] for file in read.files}
    made = {file.table: [(row.line, dict(row.cells)) for row in file.rows] for file in export(full())}
    assert shown == made
