"""A list as a CSV file that a spreadsheet opens without running anything in it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal

from starlette.responses import Response

from cpq.base.text import shown, without_formula


def csv_response(name: str, header: Sequence[str], rows: Iterable[Sequence[object]], *, total: int) -> Response:
    """The rows as a file. Text that a spreadsheet would take for a formula gets an apostrophe before it.

    When the list is longer than the file, the last row says so.
    """
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow(header)
    count = 0
    for row in rows:
        count += 1
        writer.writerow([_cell(value) for value in row])
    if count < total:
        writer.writerow([f"The first {count:,} of {total:,}; filter the list to get the others."])
    # With a byte order mark, without which Excel reads UTF-8 as another encoding.
    content = "\ufeff" + written.getvalue()
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"', "Cache-Control": "no-store"}
    return Response(content.encode(), media_type="text/csv; charset=utf-8", headers=headers)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal | int):
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    if isinstance(value, date):
        return value.isoformat()
    return without_formula(shown(str(value)))
