"""Checks histories of many agents on few quotes for linearizability: each answer is as if calls ran one at a time.

Every change answers with the edit that it made, so the edit is the order that the engine claims. That order must have
no gap and nothing twice, must agree with the order in time of calls that did not overlap, and every read must show the
text that the change before it wrote. A call without an answer may have happened or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

CONFLICT = "CONFLICT"


@dataclass(frozen=True)
class Operation:
    """One call on one quote. `text` is what a change wrote, or what a read saw; times are of one clock for all."""

    quote_id: str
    kind: str
    """change, or read"""
    began: float
    ended: float
    code: str
    edit: int = 0
    text: str = ""
    expected: int | None = None
    """The edit that a change insisted on."""


def violations(history: Sequence[Operation], final: dict[str, tuple[int, str]]) -> Iterator[str]:
    """What no order of the calls explains. `final` is the last edit and text of every quote, and quotes begin at edit
    1 with an empty text."""
    of_quote: dict[str, list[Operation]] = defaultdict(list)
    for one in history:
        of_quote[one.quote_id].append(one)
    for quote_id, operations in of_quote.items():
        yield from (f"{quote_id}: {problem}" for problem in _of_one(operations, *final[quote_id]))


def _of_one(operations: Sequence[Operation], last_edit: int, last_text: str) -> Iterator[str]:
    texts = {1: ""}
    for one in operations:
        if one.kind == "change" and one.code == "OK":
            if one.edit in texts:
                yield f"edit {one.edit} was given twice"
            if one.expected is not None and one.edit != one.expected + 1:
                yield f"a change that insisted on edit {one.expected} became {one.edit}"
            texts[one.edit] = one.text
    missing = sorted(set(range(1, last_edit + 1)) - texts.keys())
    if missing:
        yield f"nobody was told of the edits {missing[:5]}"
    if max(texts) != last_edit or texts[max(texts)] != last_text:
        yield f"the last answer was {max(texts)} {texts[max(texts)]!r}, and {last_edit} {last_text!r} is stored"
    for one in operations:
        if one.kind == "read" and one.code == "OK" and texts.get(one.edit) != one.text:
            yield f"a read saw {one.text!r} at edit {one.edit}, where {texts.get(one.edit)!r} was written"
    yield from _against_time(operations)


def _against_time(operations: Sequence[Operation]) -> Iterator[str]:
    """A call that began after another had ended comes after it."""
    answered = [one for one in operations if one.code in ("OK", CONFLICT)]
    ends = sorted((one for one in answered if one.code == "OK"), key=lambda one: one.ended)
    begins = sorted(answered, key=lambda one: one.began)
    done, place = 1, 0
    for one in begins:
        while place < len(ends) and ends[place].ended < one.began:
            done, place = max(done, ends[place].edit), place + 1
        if one.code == "OK" and one.edit < done + (one.kind == "change"):
            yield f"a {one.kind} got edit {one.edit} after edit {done} had been answered"
    begun = sorted((one for one in answered if one.kind == "change" and one.code == "OK"), key=lambda one: one.began)
    newest, place = 1, 0
    for one in sorted(answered, key=lambda one: one.ended):
        while place < len(begun) and begun[place].began <= one.ended:
            newest, place = max(newest, begun[place].edit), place + 1
        if one.code == CONFLICT and one.expected is not None and newest <= one.expected:
            yield f"a change that insisted on edit {one.expected} was refused when nothing newer had begun"
