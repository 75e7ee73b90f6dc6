"""Reads the folder of a Salesforce export: its tables, with the limits that untrusted files need."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cpq.base.errors import CpqError, bad_field
from cpq.base.row_files import Progress, read_rows
from cpq.domain.catalog.salesforce.counterparts import CONSTRAINT_MODEL_TABLE
from cpq.domain.catalog.salesforce.exported import ExportedFile, ExportedRow

FILES_MAX = 2_000
FILE_BYTES_MAX = 128 * 1024 * 1024
ROWS_MAX = 500_000
BLANK_BYTES_MAX = 4_096
EXTRA_CELLS = "more cells than the header has names"


class ReadFolder(NamedTuple):
    files: list[ExportedFile]
    others: list[str]
    """Files that are no tables, such as a README."""
    sha256: str


def read_folder(folder: Path, progress: Progress = lambda _done, _total: None) -> ReadFolder:
    """Read every table below a folder; CpqError names the file and the line that cannot be read."""
    paths = _paths(folder)
    tables = [path for path in paths if path.suffix.lower() in (".csv", ".json")]
    if not any(path.suffix.lower() == ".csv" for path in tables):
        raise bad_field("DIR", f"{folder.name} has no CSV file; expected one for each Salesforce object")
    sizes = [path.stat().st_size for path in tables]
    digest, files, rows_left, done = hashlib.sha256(), [], ROWS_MAX, 0
    models = {path.parent for path in tables if path.stem == CONSTRAINT_MODEL_TABLE}
    for path, size in zip(tables, sizes, strict=True):
        name = path.relative_to(folder).as_posix()
        if size > FILE_BYTES_MAX:
            raise bad_field("DIR", f"{name} has {size:,} bytes; a file has at most {FILE_BYTES_MAX:,}")
        with path.open("rb") as content:
            digest.update(f"{name}\0{hashlib.file_digest(content, 'sha256').hexdigest()}\0".encode())
        items = _items(path, name) if path.suffix.lower() == ".json" else []
        rows = _rows(path, name, items, rows_left)
        rows_left -= len(rows)
        of_model = path.parent in models or path.suffix.lower() == ".json"
        files.append(ExportedFile(name, path.stem, rows, of_model, items))
        done += size
        progress(done, sum(sizes))
    others = [path.relative_to(folder).as_posix() for path in paths if path not in tables]
    return ReadFolder(files, others, digest.hexdigest())


def _paths(folder: Path) -> list[Path]:
    """The files below the folder in order; links to other folders are not followed."""
    found: list[Path] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [Path(place, name) for name in sorted(names) if not name.startswith(".")]
        if len(found) > FILES_MAX:
            raise bad_field("DIR", f"{folder.name} has more than {FILES_MAX:,} files; it is not an export")
    return [path for path in found if path.is_file() and not path.is_symlink()]


def _rows(path: Path, name: str, items: list[object], rows_max: int) -> list[ExportedRow]:
    rows: list[ExportedRow] = []
    numbered = (ExportedRow(name, number, {}) for number, _ in enumerate(items, 1))
    for row in numbered if path.suffix.lower() == ".json" else _csv_rows(path, name):
        if len(rows) == rows_max:
            raise bad_field("DIR", f"{name}, line {row.line}: an export has at most {ROWS_MAX:,} rows")
        rows.append(row)
    return rows


def _csv_rows(path: Path, name: str) -> Iterator[ExportedRow]:
    with path.open("rb") as file:
        if not file.read(BLANK_BYTES_MAX).strip(b"\xef\xbb\xbf \t\r\n"):
            return
    try:
        for row in read_rows(path, path.stem):
            if EXTRA_CELLS in row.values:
                raise bad_field("DIR", f"{path.name}, line {row.line}: has {EXTRA_CELLS}")
            yield ExportedRow(name, row.line, {column: str(cell).strip() for column, cell in row.values.items()})
    except CpqError as error:
        # The reader knows the file by its last name, and several folders of an export have the same one.
        raise bad_field("DIR", str(error.message).replace(path.name, name, 1)) from None


def _items(path: Path, name: str) -> list[object]:
    """The items of a list; each is one row."""
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise bad_field("DIR", f"{name}, line {line}: not JSON") from None
    return document if isinstance(document, list) else [document]
