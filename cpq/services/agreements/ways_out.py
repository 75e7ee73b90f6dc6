"""Refusals of changes of agreements: their fields are arguments of the call, and each has a next call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date

from cpq.base.errors import CpqError, next_call
from cpq.domain.agreements.changes import Change
from cpq.domain.quotes.draft import DraftLine

_OF_QUOTE = "/line_items/"


@contextmanager
def explained(agreement_id: str, day: date | None) -> Iterator[list[str]]:
    """Put the way out into every refusal: what is owned on the day, unless it has a better one.

    Gives a list, which the caller fills with the argument behind each line of the quote; without one it is the
    agreement.
    """
    fields: list[str] = []
    try:
        yield fields
    except CpqError as error:
        problems = error.details.get("problems")
        for part in [error.details, *(problems if isinstance(problems, list) else ())]:
            part["field"] = _argument(str(part.get("field", "")), fields)
        as_of = {"as_of": day.isoformat()} if day else {}
        error.details.setdefault("next_call", next_call("agreement_get", agreement_id=agreement_id, **as_of))
        raise


def _argument(field: str, fields: Sequence[str]) -> str:
    if not field.startswith(_OF_QUOTE):
        return field or "/agreement_id"
    place, _, part = field.removeprefix(_OF_QUOTE).partition("/")
    return f"{fields[int(place)]}/{part}" if fields else "/agreement_id"


def fields_of(lines: Sequence[DraftLine], changes: Sequence[Change]) -> list[str]:
    """The change that made each line of an amendment."""
    places = {change.line_id: place for place, change in enumerate(changes)}
    added = (place for place, change in enumerate(changes) if change.line_id is None)
    return [
        f"/changes/{places[line.agreed.line_id] if line.agreed and line.agreed.line_id else next(added)}"
        for line in lines
    ]
