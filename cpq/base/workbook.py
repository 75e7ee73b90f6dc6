"""Rows of an Excel workbook, read without formulas and within bounds: a small file can unpack to a huge one."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from cpq.base.errors import bad_field, nearest
from cpq.base.late_modules import LateModule

openpyxl: Any = LateModule("openpyxl")

FILE_BYTES_MAX = 64 * 1024 * 1024
UNPACKED_BYTES_MAX = 512 * 1024 * 1024
PARTS_MAX = 1_000
COLUMNS_MAX = 1_000


def read_sheet(path: Path, sheet: str | None) -> Iterator[tuple[int, list[Any]]]:
    """The rows of a sheet, the first one unless it is named, each with its number; numbers come as exact decimals."""
    _require_bounded(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, SyntaxError) as error:
        raise bad_field("FILE", f"{path.name} is not a workbook that can be read: {type(error).__name__}") from None
    try:
        if sheet is not None and sheet not in book.sheetnames:
            near = nearest(sheet, book.sheetnames) or None
            message = f"{path.name} has no sheet {sheet!r}"
            raise bad_field("--sheet", message, allowed=list(book.sheetnames)[:20], nearest=near)
        found = book[sheet] if sheet is not None else book.worksheets[0]
        for number, cells in enumerate(found.iter_rows(values_only=True, max_col=COLUMNS_MAX), 1):
            yield number, [_value(cell) for cell in cells]
    finally:
        book.close()


def _require_bounded(path: Path) -> None:
    """Refuse a workbook that is large, or that would be large when it is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError):
        raise bad_field("FILE", f"{path.name} is not an Excel workbook (.xlsx); save it again as one") from None
    unpacked = sum(part.file_size for part in parts)
    if path.stat().st_size > FILE_BYTES_MAX or unpacked > UNPACKED_BYTES_MAX or len(parts) > PARTS_MAX:
        raise bad_field(
            "FILE", f"{path.name} is too large when it is unpacked; save the sheet as CSV", maximum=UNPACKED_BYTES_MAX
        )


def _value(cell: Any) -> Any:
    """A cell as a row of another file would hold it. Excel keeps 15 digits of a number, so no more are taken."""
    if isinstance(cell, float):
        number = Decimal(f"{cell:.15g}")
        return int(number) if number == number.to_integral_value() else number
    if isinstance(cell, datetime):
        return (cell.date() if cell.time() == time() else cell).isoformat()
    return cell.isoformat() if isinstance(cell, date | time) else cell
