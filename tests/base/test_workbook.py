"""Excel workbooks: exact numbers, the sheet that was named, and bounds against files that unpack to huge ones."""

import importlib
import zipfile
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cpq.base import workbook
from cpq.base.errors import CpqError
from cpq.base.row_files import read_rows


@pytest.fixture
def file(tmp_path: Path) -> Path:
    openpyxl: Any = importlib.import_module("openpyxl")
    book = openpyxl.Workbook()
    first = book.active
    first.append(["id", "spec.hp", "unit_price", "valid_from", "active", "options"])
    first.append(["a", 0.1, 1234.56, date(2026, 1, 31), True, '[{"name": "x"}]'])
    first.append([None] * 6)
    first.append(["b", 3, 10.0])
    book.create_sheet("Spare parts").append(["id"])
    book["Spare parts"].append(["c"])
    book.save(tmp_path / "prices.xlsx")
    return tmp_path / "prices.xlsx"


def test_rows_of_a_workbook_have_exact_numbers_days_and_their_row(file: Path):
    first, second = read_rows(file, "prices")
    assert (first.line, second.line) == (2, 4)
    assert first.values == {
        "id": "a",
        "specs": {"hp": Decimal("0.1")},
        "unit_price": Decimal("1234.56"),
        "valid_from": "2026-01-31",
        "active": True,
        "options": [{"name": "x"}],
    }
    assert second.values == {"id": "b", "specs": {"hp": 3}, "unit_price": 10}


def test_a_sheet_is_chosen_by_name_and_an_unknown_one_is_refused(file: Path):
    assert [row.values for row in read_rows(file, "products", sheet="Spare parts")] == [{"id": "c"}]
    with pytest.raises(CpqError, match="has no sheet 'Spare part'") as refused:
        list(read_rows(file, "products", sheet="Spare part"))
    assert refused.value.details["nearest"] == ["Spare parts"]


def test_a_sheet_of_another_kind_of_file_is_refused(tmp_path: Path):
    (tmp_path / "rows.csv").write_text("id\na\n")
    with pytest.raises(CpqError, match="has no sheets"):
        list(read_rows(tmp_path / "rows.csv", "products", sheet="First"))


def test_a_file_that_only_has_the_name_of_a_workbook_is_refused(tmp_path: Path):
    (tmp_path / "rows.xlsx").write_text("id,name\n")
    with pytest.raises(CpqError, match="is not an Excel workbook"):
        list(read_rows(tmp_path / "rows.xlsx", "products"))
    with zipfile.ZipFile(tmp_path / "rows.xlsx", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(CpqError, match="is not a workbook that can be read"):
        list(read_rows(tmp_path / "rows.xlsx", "products"))


def test_a_workbook_that_unpacks_to_a_huge_one_is_refused_before_it_is_read(
    file: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(workbook, "UNPACKED_BYTES_MAX", 1_000)
    with pytest.raises(CpqError, match="too large when it is unpacked"):
        list(read_rows(file, "products"))


@pytest.mark.parametrize(("header", "reason"), [(["id", "id"], "the same name"), (["id", None, "x"], "has no name")])
def test_a_header_that_cannot_be_one_is_refused(tmp_path: Path, header: list[str | None], reason: str):
    openpyxl: Any = importlib.import_module("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(header)
    book.active.append(["a", "b", "c"])
    book.save(tmp_path / "rows.xlsx")
    with pytest.raises(CpqError, match=reason):
        list(read_rows(tmp_path / "rows.xlsx", "products"))
