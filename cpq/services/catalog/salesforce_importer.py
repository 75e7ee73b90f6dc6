"""Imports a translated Salesforce export, and reports what became of each of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.row_files import Progress
from cpq.base.row_problems import SourceRow, require_none, spans
from cpq.domain.catalog.preparation import prepare_products, validate
from cpq.domain.catalog.salesforce.exported import ExportedFile, ExportedRow
from cpq.domain.catalog.salesforce.losses import Fate
from cpq.domain.catalog.salesforce.translation import Translation, translate
from cpq.services.catalog.importer import ImportReport, import_rows

PROGRESS_EVERY = 200


def translated(files: Sequence[ExportedFile], *, with_inactive_schedules: bool) -> Translation:
    """The translation of an export without problems; CpqError lists them with file and line."""
    translation = translate(files, with_inactive_schedules=with_inactive_schedules)
    if translation.problems:
        count = len(translation.problems)
        raise CpqError(
            Code.VALIDATION_ERROR,
            f"{count:,} problem{'s' if count > 1 else ''} in the export; nothing was imported.",
            problems=[_known(problem._asdict()) for problem in translation.problems],
        )
    return translation


def import_translation(tx: Tx, translation: Translation, progress: Progress) -> ImportReport:
    """Import the rows in one transaction; problems are named by file and line of the export."""
    with _Relocated(translation.origins):
        return import_rows(tx, _watched(translation.rows, progress))


def check_translation(translation: Translation) -> None:
    """What can be checked without the database: every row by itself."""
    with _Relocated(translation.origins):
        others = [row for row in translation.rows if row.section != "products"]
        problems = [problem for row in others for problem in validate(row)[1]]
        problems += prepare_products([row for row in translation.rows if row.section == "products"], {}, "").problems
        require_none(problems, len(problems))


def loss_report(translation: Translation) -> dict[str, Any]:
    """Every row of every file by what became of it: `taken`, `translated` or `no_counterpart`, with the reason."""
    totals = {fate.value: sum(getattr(file, fate.value) for file in translation.files) for fate in Fate}
    return {
        "rows": sum(file.rows for file in translation.files),
        **totals,
        "files": [file._asdict() for file in translation.files],
        "reasons": [
            {
                "file": one.file,
                "outcome": one.fate.value,
                "reason": one.reason,
                "rows": len(one.lines),
                "lines": spans(one.lines),
            }
            for one in translation.reasons
        ],
        "constraint_models": _model_report(translation),
    }


def _model_report(translation: Translation) -> dict[str, Any]:
    """The same for every part of every constraint model."""
    parts = translation.model_parts
    return {
        "parts": sum(one.parts for one in parts),
        **{fate.value: sum(one.parts for one in parts if one.fate is fate) for fate in Fate},
        "reasons": [
            {
                "model": one.model,
                "part": one.part,
                "outcome": one.fate.value,
                "reason": one.reason,
                "parts": one.parts,
            }
            for one in parts
        ],
    }


class _Relocated:
    """Problems of imported rows, by their place in the export instead of in the translation."""

    def __init__(self, origins: Sequence[ExportedRow]) -> None:
        self._origins = origins

    def __enter__(self) -> None:
        return

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if not isinstance(error, CpqError):
            return
        problems = error.details.get("problems")
        if isinstance(problems, list):
            for problem in problems:
                origin = self._origins[problem["line"] - 1]
                problem |= {"file": origin.file, "line": origin.line}
            problems.sort(key=lambda problem: (problem["file"], problem["line"]))


def _watched(rows: Sequence[SourceRow], progress: Progress) -> Iterator[SourceRow]:
    for number, row in enumerate(rows, 1):
        yield row
        if number % PROGRESS_EVERY == 0:
            progress(number, len(rows))


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
