"""A typed search query as sets of hits, best first, with alternatives for the typed words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cpq.base import vocabulary
from cpq.domain.catalog.words import CODE_LENGTH_MAX, STOP_WORDS, compact, words

QUERY_LENGTH_MAX = 200
QUERY_WORDS_MAX = 12
PREFIX_LENGTH_MIN = 2


@dataclass(frozen=True)
class Term:
    text: str
    is_prefix: bool = False


@dataclass(frozen=True)
class All:
    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Any:
    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Without:
    """Everything in `wanted` that is not in `unwanted`."""

    wanted: Expression
    unwanted: Expression


Expression = Term | All | Any | Without


class Query:
    """A typed query as growing sets of hits, best first: code, title words, title prefix, words anywhere."""

    def __init__(self, text: str, scope: str, *, active_only: bool) -> None:
        self._scope = scope
        self._active_only = active_only
        self._code = compact(text)[:CODE_LENGTH_MAX]
        self.words = list(dict.fromkeys(words(text)))[:QUERY_WORDS_MAX]

    def exact_sets(self) -> list[Expression]:
        """Each set holds the one before it. Empty when the text has no words at all."""
        if not self.words:
            return []
        code = self._term("s", self._code)
        code_start = self._term("s", self._code, is_prefix=len(self._code) > PREFIX_LENGTH_MIN)
        in_title = All(tuple(self._term("n", word) for word in self.words))
        title_start = Any((code_start, All(tuple(self._typed(word, "n") for word in self.words))))
        anywhere = Any((title_start, All(tuple(self._typed(word, "nt") for word in self.words))))
        return [self._open(kind) for kind in (code, Any((code, in_title)), title_start, anywhere)]

    def corrected_sets(self, near: dict[str, list[str]]) -> list[Expression]:
        """Two wider sets: each word, or one of its alternatives, in titles or anywhere.

        An alternative is a known word that differs by a small typing error, or a synonym; a synonym of several words,
        with a blank between, matches when all of them are present.
        """
        return [self._open(self._corrected(fields, near)) for fields in ("n", "nt")]

    def partial_sets(self, near: dict[str, list[str]], count: Callable[[Expression], int]) -> list[Expression]:
        """Growing sets for a query that no product matches whole: all words that occur, then always one less, the most
        common first, and at last the rarest word alone."""
        choices = [self._choice(word, "nt", near) for word in self.words if word not in STOP_WORDS]
        counts = [count(self._open(choice)) for choice in choices]
        ranked = sorted((many, place) for place, many in enumerate(counts) if many)
        rare_first = [choices[place] for _, place in ranked]
        return [self._open(All(tuple(rare_first[:many]))) for many in range(len(rare_first), 0, -1)]

    def _corrected(self, fields: str, near: dict[str, list[str]]) -> Expression:
        return All(tuple(self._choice(word, fields, near) for word in self.words))

    def _choice(self, word: str, fields: str, near: dict[str, list[str]]) -> Expression:
        others = (self._all_of(other.split(), fields) for other in near.get(word, ()))
        return Any((self._typed(word, fields), *others))

    def _all_of(self, others: list[str], fields: str) -> Expression:
        return All(tuple(Any(tuple(self._term(field, other) for field in fields)) for other in others))

    def _typed(self, word: str, fields: str) -> Expression:
        """The word in any of the fields; the last one typed may be unfinished."""
        is_prefix = word == self.words[-1] and len(word) >= PREFIX_LENGTH_MIN
        return Any(tuple(self._term(field, word, is_prefix=is_prefix) for field in fields))

    def _term(self, field: str, word: str, *, is_prefix: bool = False) -> Term:
        return Term(self._scope + field + word, is_prefix)

    def _open(self, wanted: Expression) -> Expression:
        return Without(wanted, Term(self._scope + "x")) if self._active_only else wanted


def other_words(typed: Sequence[str]) -> dict[str, list[str]]:
    """The synonyms of words as `words` reads them; several words have a blank between."""
    found: dict[str, list[str]] = {}
    for group in _PHRASES:
        for phrase in group:
            places = [place for place in range(len(typed)) if tuple(typed[place : place + len(phrase)]) == phrase]
            for word in (word for _ in places for word in phrase):
                found.setdefault(word, []).extend(" ".join(other) for other in group if other != phrase)
    return {word: list(dict.fromkeys(others)) for word, others in found.items()}


_PHRASES = [[tuple(words(phrase)) for phrase in group] for group in vocabulary.SYNONYMS]
