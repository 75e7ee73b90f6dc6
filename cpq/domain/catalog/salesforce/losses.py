"""The account of an export: what became of every row, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from cpq.domain.catalog.salesforce.exported import ExportedFile, ExportedRow, Record


class Fate(StrEnum):
    TAKEN = "taken"
    """It is here as it was there."""
    TRANSLATED = "translated"
    """It is here in another form."""
    NO_COUNTERPART = "no_counterpart"


class Outcome(NamedTuple):
    fate: Fate
    reason: str


class FileCount(NamedTuple):
    """The rows of one file by their fate, and the columns with values that no row of it uses."""

    file: str
    rows: int
    taken: int
    translated: int
    no_counterpart: int
    columns_left_out: dict[str, int]


class ReasonCount(NamedTuple):
    """Rows of one file with the same fate for the same reason."""

    file: str
    fate: Fate
    reason: str
    lines: list[int]


@dataclass
class Losses:
    """The outcome of every row; a row has exactly one."""

    _outcomes: dict[tuple[str, int], Outcome] = field(default_factory=dict)

    def take(self, record: Record, reason: str) -> None:
        self._record(record, Fate.TAKEN, reason)

    def translate(self, record: Record, how: str) -> None:
        self._record(record, Fate.TRANSLATED, how)

    def lose(self, record: Record, why: str) -> None:
        self._record(record, Fate.NO_COUNTERPART, why)

    def lose_rows(self, rows: Iterable[ExportedRow], why: str) -> None:
        for row in rows:
            self._set(row, Fate.NO_COUNTERPART, why)

    def settle_row(self, row: ExportedRow, outcome: Outcome) -> None:
        self._set(row, *outcome)

    def is_here(self, record: Record) -> bool:
        return self.of(record.rows[0]).fate is not Fate.NO_COUNTERPART

    def by_file(self, files: Iterable[ExportedFile], used_columns: dict[str, frozenset[str]]) -> list[FileCount]:
        found = []
        for file in files:
            fates = Counter(self.of(row).fate for row in file.rows)
            taken, translated, lost = fates[Fate.TAKEN], fates[Fate.TRANSLATED], fates[Fate.NO_COUNTERPART]
            left_out = self._left_out(file, used_columns)
            found.append(FileCount(file.name, len(file.rows), taken, translated, lost, left_out))
        return found

    def by_reason(self, files: Iterable[ExportedFile]) -> list[ReasonCount]:
        found: dict[tuple[str, Outcome], list[int]] = {}
        for file in files:
            for row in file.rows:
                found.setdefault((file.name, self.of(row)), []).append(row.line)
        return [ReasonCount(name, outcome.fate, outcome.reason, lines) for (name, outcome), lines in found.items()]

    def of(self, row: ExportedRow) -> Outcome:
        return self._outcomes[row.file, row.line]

    def _left_out(self, file: ExportedFile, used_columns: dict[str, frozenset[str]]) -> dict[str, int]:
        """How many rows that are here have a value in each column that is not.

        A value of `false` says nothing, and a composite key repeats other cells.
        """
        used = used_columns.get(file.table, frozenset())
        here = [row for row in file.rows if self.of(row).fate is not Fate.NO_COUNTERPART]
        cells = [(name, cell) for row in here for name, cell in row.cells.items() if not name.startswith("$$")]
        return dict(Counter(name for name, cell in cells if name not in used and cell.casefold() != "false"))

    def _record(self, record: Record, fate: Fate, reason: str) -> None:
        first, *others = record.rows
        self._set(first, fate, reason)
        for row in others:
            if fate is Fate.NO_COUNTERPART:
                self._set(row, fate, reason)
            else:
                self._set(row, Fate.TAKEN, f"names a record of {first.file}")

    def _set(self, row: ExportedRow, fate: Fate, reason: str) -> None:
        place = (row.file, row.line)
        assert place not in self._outcomes, f"{row.file}, line {row.line} has two outcomes"
        self._outcomes[place] = Outcome(fate, reason)
