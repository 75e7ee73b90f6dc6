"""Splitting of text into words, and the terms that find a product."""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

WORD_LENGTH_MAX = 64

CODE_LENGTH_MAX = 200
"""Longer words and codes are cut, in the index as in a query: PostgreSQL refuses a term of more than 2046 bytes."""

SINGULARS_MAX = 200_000

_LITTLE = """a an and any are as at be by can do does for from get has have how i in is it its me my need of on or our
please show that the their there these this to us want was we what when where which who why will with would you your
find give looking"""
STOP_WORDS = frozenset(_LITTLE.split())
"""Words that say nothing about what is searched or named."""

_RUN = re.compile(r"[^\W\d_]+|\d+")
_ASCII_RUN = re.compile(r"[a-z]+|[0-9]+")  # The same result for ASCII text, in half the time.
_MARKS = re.compile(r"[\u0300-\u036f]")


def words(text: str) -> list[str]:
    """The words of a text in order: case, accents, plurals folded, digits apart from letters (`100HP` is 100, hp)."""
    return list(map(_SINGULARS.__getitem__, _runs(text)))


def compact(text: str) -> str:
    """The text without anything but letters and digits, so that `PLAN-PRO-001` and `plan pro 001` are the same code."""
    return "".join(_runs(text))


@lru_cache(maxsize=10_000)
def scope_code(tenant_id: str, category_id: str | None = None) -> str:
    """An eight-character prefix of every term, so that the terms of a tenant or a category are stored together."""
    digest = hashlib.blake2b(f"{tenant_id}\n{category_id or ''}".encode(), digest_size=5).digest()
    return base64.b32encode(digest).decode().lower()


class Indexed:
    """The searched text of a product: codes match as a whole, words of titles rank before words of the prose."""

    def __init__(self, *, codes: Iterable[str], titles: Iterable[str], prose: Iterable[str], is_active: bool) -> None:
        self.title_words = set(words(" ".join(titles)))
        self.words = self.title_words.union(words(" ".join(prose)))
        self._codes = {compact(code)[:CODE_LENGTH_MAX] for code in codes}
        self._is_active = is_active

    def terms(self, scopes: Iterable[str]) -> str:
        """All terms with a blank between: `n…` word of the titles, `t…` of the prose alone, `s…` code, `x` inactive.

        Each is there once per scope. Words contain no blanks, so joining and replacing needs no loop in Python.
        """
        prose_words = self.words - self.title_words
        inactive = () if self._is_active else ("x",)
        kinds = (("n", self.title_words), ("t", prose_words), ("s", self._codes), ("", inactive))
        bare = " ".join(kind + f" {kind}".join(terms) for kind, terms in kinds if terms)
        return " ".join(scope + bare.replace(" ", f" {scope}") for scope in scopes if bare)


def _runs(text: str) -> list[str]:
    """Runs of letters and runs of digits, without case and accents."""
    if text.isascii():
        return _ASCII_RUN.findall(text.lower())
    plain = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    # Composed again, because kana and Hangul are letters only in composed form.
    return _RUN.findall(unicodedata.normalize("NFC", plain).casefold())


class _Singulars(dict[str, str]):
    """Cache of the folded form of every run of letters; catalogues repeat themselves."""

    def __missing__(self, run: str) -> str:
        if len(self) > SINGULARS_MAX:
            self.clear()
        self[run] = _singular(run[:WORD_LENGTH_MAX])
        return self[run]


_SINGULARS = _Singulars()


def _singular(word: str) -> str:
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if is_plural else word
