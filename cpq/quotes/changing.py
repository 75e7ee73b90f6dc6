"""PURE. Changes of a draft: lines added, altered and removed, terms and notes set or cleared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cpq.errors import CpqError, bad_field, next_call
from cpq.quotes.composing import Draft, DraftLine

CLEARABLE = ("deal_id", "term_months", "start_date", "end_date", "notes")


@dataclass(frozen=True)
class Changes:
    """What to do to a draft. Lines keep their numbers; a new one takes the next that was never used in it."""

    terms: Mapping[str, Any] = field(default_factory=dict)
    clear: Sequence[str] = ()
    add_lines: Sequence[DraftLine] = ()
    change_lines: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """The id of a line, and the fields to set on it."""
    remove_lines: Sequence[str] = ()


def line_id(quote_id: str, number: int) -> str:
    return f"{quote_id}-ql-{number}"


def changed_draft(draft: Draft, changes: Changes, quote_id: str) -> Draft:
    """The draft with the changes made; a line that is not there is refused by name."""
    by_id = {line_id(quote_id, line.number): line for line in draft.lines}
    for position, id_ in enumerate(changes.remove_lines):
        _require_line(f"/remove_lines/{position}", id_, by_id, quote_id)
    for position, (id_, values) in enumerate(changes.change_lines):
        _require_line(f"/change_lines/{position}/line_id", id_, by_id, quote_id)
        by_id[id_] = replace(by_id[id_], **values)
    kept = [line for id_, line in by_id.items() if id_ not in changes.remove_lines]
    last = max(line.number for line in draft.lines)
    added = [replace(line, number=last + place) for place, line in enumerate(changes.add_lines, 1)]
    if not kept and not added:
        raise bad_field("/remove_lines", "A quote has at least one line; cancel it instead.", minimum=1)
    for position, name in enumerate(changes.clear):
        if name not in CLEARABLE:
            raise bad_field(f"/clear/{position}", f"{name!r} cannot be cleared.", allowed=list(CLEARABLE))
    cleared = dict.fromkeys(changes.clear)
    if "term_months" in changes.terms:
        cleared["end_date"] = None
    if "end_date" in changes.terms:
        cleared["term_months"] = None
    return replace(draft, **{**cleared, **changes.terms}, lines=(*kept, *added))


def require_few_lines(count: int, most: int, field_: str) -> None:
    """Refuse more lines than a tool takes, and say what takes them."""
    if count > most:
        raise bad_field(
            field_,
            f"A quote has at most {most:,} lines through this tool, not {count:,}.",
            maximum=most,
            hint="Split it, or have the operator run `cpq import quotes`, which takes up to 10,000 lines.",
        )


def _require_line(field_: str, id_: str, known: Mapping[str, DraftLine], quote_id: str) -> None:
    if id_ not in known:
        raise _no_line(field_, id_, list(known), quote_id)


def _no_line(field_: str, id_: str, known: list[str], quote_id: str) -> CpqError:
    return bad_field(
        field_,
        f"The quote has no line {id_!r}.",
        allowed=known[:20],
        next_call=next_call("quote_get", quote_id=quote_id),
    )
