"""PURE. Writes a grid of cells as an aligned pipe table; cells that span several places are filled in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ROWS_MAX = 2000
COLUMNS_MAX = 50
PADDED_MAX = 40
"""Columns are padded up to this width: one long cell would make every row as long."""

REPEATED_MAX = 100
"""Longer cells and terms are not repeated: a short page would become long."""


class Cell(NamedTuple):
    text: str
    columns: int = 1
    rows: int = 1
    is_heading: bool = False


def pipe_table(rows: Sequence[Sequence[Cell]]) -> str:
    """The first row is the heading if it is marked as such, or the only row; otherwise the heading is empty."""
    grid = [row for row in spread(rows) if any(row)]
    if not grid:
        return ""
    width = max(map(len, grid))
    grid = [row + [""] * (width - len(row)) for row in grid]
    first = rows[0] if rows else ()
    has_heading = bool(first) and all(cell.is_heading or not cell.text for cell in first)
    if not has_heading and len(grid) > 1 and not any(cell.is_heading for row in rows for cell in row):
        has_heading = True  # A table without a heading cell nearly always has its column names in the first row.
    if not has_heading:
        grid.insert(0, [""] * width)
    padding = [min(PADDED_MAX, max(3, *(len(row[column]) for row in grid))) for column in range(width)]
    lines = [_line(row, padding) for row in grid]
    lines.insert(1, "|" + "|".join("-" * (size + 2) for size in padding) + "|")
    return "\n".join(lines)


def spread(rows: Sequence[Sequence[Cell]]) -> list[list[str]]:
    """Every cell in its place: a cell that spans columns is in the first, a short cell that spans rows in each."""
    if all(cell.columns == cell.rows == 1 for row in rows for cell in row):  # The usual case.
        return [[cell.text for cell in row[:COLUMNS_MAX]] for row in rows[:ROWS_MAX]]
    grid: list[list[str]] = []
    hanging: dict[int, tuple[int, str]] = {}
    for row in rows[:ROWS_MAX]:
        written: list[str] = []
        cells = iter(row)
        while len(written) < COLUMNS_MAX:
            place = len(written)
            if place in hanging:
                left, text = hanging.pop(place)
                written.append(text)
                if left > 1:
                    hanging[place] = (left - 1, text)
                continue
            cell = next(cells, None)
            if cell is None:
                if not any(column > place for column in hanging):
                    break
                written.append("")
                continue
            for offset in range(max(1, min(cell.columns, COLUMNS_MAX - place))):
                text = cell.text if offset == 0 else ""
                written.append(text)
                if cell.rows > 1:
                    repeated = text if len(text) <= REPEATED_MAX else ""
                    hanging[place + offset] = (min(cell.rows, ROWS_MAX) - 1, repeated)
        grid.append(written)
    return grid


def _line(row: Sequence[str], padding: Sequence[int]) -> str:
    return "| " + " | ".join(text.ljust(size) for text, size in zip(row, padding, strict=True)) + " |"
