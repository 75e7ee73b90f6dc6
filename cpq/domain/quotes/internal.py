"""PURE. What only the seller reads of a quote or a line: notes, the sources of its text, and marks for review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple


class Source(NamedTuple):
    """The past quote from which a text was taken."""

    quote_id: str
    line: int | None = None
    score: Decimal | None = None
    customer: str | None = None


class Mark(NamedTuple):
    """Something a person must look at before the customer gets the quote."""

    text: str
    closed_by: str | None = None
    closed_at: str | None = None

    @property
    def is_open(self) -> bool:
        return self.closed_by is None


class Internal(NamedTuple):
    """Notes, sources and marks of a quote or of one of its lines. No customer ever sees them."""

    notes: str | None = None
    sources: tuple[Source, ...] = ()
    review: tuple[Mark, ...] = ()

    @property
    def open_marks(self) -> list[str]:
        return [mark.text for mark in self.review if mark.is_open]

    @property
    def text_length(self) -> int:
        named = sum(len(source.quote_id) + len(source.customer or "") for source in self.sources)
        return len(self.notes or "") + named + sum(len(mark.text) for mark in self.review)

    @property
    def stored(self) -> list[Any] | None:
        return list(self) if any(self) else None

    def closed(self, by: str, at: str) -> Internal:
        """With every open mark closed."""
        marks = (Mark(mark.text, by, at) if mark.is_open else mark for mark in self.review)
        return self._replace(review=tuple(marks))

    def reopened(self) -> Internal:
        """With every mark open: what a person looked at is no longer what it was."""
        return self._replace(review=tuple(Mark(mark.text) for mark in self.review))


def load(value: Sequence[Any] | None) -> Internal | None:
    """From the database, where nothing is null."""
    if value is None:
        return None
    notes, sources, review = value
    return Internal(notes, tuple(Source(*one) for one in sources), tuple(Mark(*one) for one in review))


def changed(before: Internal | None, given: Mapping[str, Any]) -> Internal | None:
    """With other notes or sources, and with more marks: only a person closes a mark, and it goes with its line."""
    old = before or Internal()
    marks = (*old.review, *map(Mark, given.get("review", ())))
    new = Internal(given.get("notes", old.notes) or None, tuple(given.get("sources", old.sources)), marks)
    return new if any(new) else None


def marked(before: Internal | None, texts: Sequence[str]) -> Internal | None:
    """With marks of these texts, as far as there are none yet."""
    known = {mark.text for mark in before.review} if before else set()
    new = [text for text in dict.fromkeys(texts) if text not in known]
    return changed(before, {"review": new}) if new else before
