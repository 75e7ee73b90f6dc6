"""PURE. How text is read into words, which misspellings are near enough, and which hits come before which."""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from cpq.base import vocabulary

QUERY_LENGTH_MAX = 200
QUERY_WORDS_MAX = 12
PREFIX_LENGTH_MIN = 2
WORD_LENGTH_MAX = 64
CODE_LENGTH_MAX = 200
"""Longer words and codes are cut, in the index as in a query: PostgreSQL refuses a term of more than 2046 bytes."""

SINGULARS_MAX = 200_000
NEAR_WORDS_MAX = 8
FEW_HITS = 10
"""With fewer exact hits than this, words that are a typing error away are looked for too."""

_RUN = re.compile(r"[^\W\d_]+|\d+")
_ASCII_RUN = re.compile(r"[a-z]+|[0-9]+")  # Says the same of ASCII text, in half the time.
_MARKS = re.compile(r"[\u0300-\u036f]")


def words(text: str) -> list[str]:
    """The words of a text in order: case, accents, plurals folded, digits apart from letters (`100HP` is 100, hp)."""
    return list(map(_SINGULARS.__getitem__, _runs(text)))


def compact(text: str) -> str:
    """The text without anything but letters and digits, so that `PLAN-PRO-001` and `plan pro 001` are the same code."""
    return "".join(_runs(text))


@lru_cache(maxsize=10_000)
def scope_code(tenant_id: str, category_id: str | None = None) -> str:
    """Eight characters that stand before every term, so that one tenant's or one category's terms lie together."""
    digest = hashlib.blake2b(f"{tenant_id}\n{category_id or ''}".encode(), digest_size=5).digest()
    return base64.b32encode(digest).decode().lower()


class Indexed:
    """What of a product is searched: codes match as a whole, words of the titles rank before words of the prose."""

    def __init__(self, *, codes: Iterable[str], titles: Iterable[str], prose: Iterable[str], is_active: bool) -> None:
        self.title_words = set(words(" ".join(titles)))
        self.words = self.title_words.union(words(" ".join(prose)))
        self._codes = {compact(code)[:CODE_LENGTH_MAX] for code in codes}
        self._is_active = is_active

    def terms(self, scopes: Iterable[str]) -> str:
        """All terms with a blank between: `n…` word of the titles, `t…` of the prose alone, `s…` code, `x` inactive.

        Each stands under every scope. Words hold no blanks, so joining and replacing does it without a loop in Python.
        """
        prose_words = self.words - self.title_words
        inactive = () if self._is_active else ("x",)
        kinds = (("n", self.title_words), ("t", prose_words), ("s", self._codes), ("", inactive))
        bare = " ".join(kind + f" {kind}".join(terms) for kind, terms in kinds if terms)
        return " ".join(scope + bare.replace(" ", f" {scope}") for scope in scopes if bare)


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
        """Two wider sets: each word, or what may stand for it, in titles or anywhere.

        That is what a small typing error could have made of it, or another word for the same; one of several words,
        with a blank between, stands for it when all of them are there.
        """
        return [self._open(self._corrected(fields, near)) for fields in ("n", "nt")]

    def _corrected(self, fields: str, near: dict[str, list[str]]) -> Expression:
        choices = []
        for word in self.words:
            others = (self._all_of(other.split(), fields) for other in near.get(word, ()))
            choices.append(Any((self._typed(word, fields), *others)))
        return All(tuple(choices))

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


def may_be_misspelt(word: str) -> bool:
    """Only words of four letters and more are corrected; numbers and codes are meant as typed."""
    return 4 <= len(word) <= 24 and word.isalpha()


def shortened(word: str) -> Iterator[str]:
    """The word, and the word without one letter, without two when it is long: near words share one of these."""
    for missing in range(_distance_max(word) + 1):
        for kept in combinations(word, len(word) - missing):
            yield "".join(kept)


def nearest_words(word: str, candidates: Iterable[str]) -> list[str]:
    """The candidates that a small typing error could have turned into `word`, nearest first."""
    near = [(distance(word, other), other) for other in set(candidates) - {word}]
    return [other for steps, other in sorted(near) if steps <= _distance_max(word, other)][:NEAR_WORDS_MAX]


def distance(one: str, other: str) -> int:
    """How many letters must be added, dropped, changed or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, theirs in enumerate(other, 1):
            step = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != theirs))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == theirs:
                step = min(step, last[j - 2] + 1)
            row.append(step)
    return row[-1]


def _distance_max(word: str, other: str = "") -> int:
    """Two for long words, but not for very long ones: those are not `shortened` by two, there would be too many."""
    return 2 if len(word) >= 8 and max(len(word), len(other)) <= 16 else 1


def _runs(text: str) -> list[str]:
    """Runs of letters and runs of digits, without case and accents."""
    if text.isascii():
        return _ASCII_RUN.findall(text.lower())
    plain = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    # Composed again, because kana and Hangul are letters only as a whole.
    return _RUN.findall(unicodedata.normalize("NFC", plain).casefold())


class _Singulars(dict[str, str]):
    """The folded form of every run of letters met so far; catalogues repeat themselves."""

    def __missing__(self, run: str) -> str:
        if len(self) > SINGULARS_MAX:
            self.clear()
        self[run] = _singular(run[:WORD_LENGTH_MAX])
        return self[run]


_SINGULARS = _Singulars()


def _singular(word: str) -> str:
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if is_plural else word


def other_words(typed: Sequence[str]) -> dict[str, list[str]]:
    """For words as `words` reads them: what else may stand for each, several words with a blank between."""
    found: dict[str, list[str]] = {}
    for group in _PHRASES:
        for phrase in group:
            places = [place for place in range(len(typed)) if tuple(typed[place : place + len(phrase)]) == phrase]
            for word in (word for _ in places for word in phrase):
                found.setdefault(word, []).extend(" ".join(other) for other in group if other != phrase)
    return {word: list(dict.fromkeys(others)) for word, others in found.items()}


_PHRASES = [[tuple(words(phrase)) for phrase in group] for group in vocabulary.SYNONYMS]
