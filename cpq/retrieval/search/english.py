"""PURE. Which words are English or look like words of another language, and how much they say.

BERT's word list has whole words from its place 1,996 on, by how often they occur in books and encyclopaedias.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from itertools import islice, pairwise

from cpq.base.word_list import places
from cpq.domain.catalog.words import STOP_WORDS
from cpq.retrieval.search.lexicon import UNITS, stem, unmarked

FIRST = 1_996
COMMON, RARE = 50, 4_000
"""Up to the former place a word says next to nothing, from the latter on it says all that its rarity here says."""

LEAST = 0.1
WORDS_MAX = 64
_CHARACTERS_MAX = 4_000

_PAIRS_MIN = 3
"""Words that have two letters side by side, before these are taken for usual."""

_WORD = re.compile(r"[^\W\d_]+")


def significance(term: str) -> float:
    """0.1 to 1: how much a term of a query says by itself. `keep`, `want` and `one` are rare in a catalogue, too, but a
    product that has them is no better answer."""
    return _common().get(term, 1.0)


def is_english(word: str) -> bool:
    """Whether a word, in lower case, is no typing error of another one."""
    return word.isalpha() and places().get(word, 0) >= FIRST


def is_meaningful(text: str) -> bool:
    """Whether a text has an English word that says something, beside little words such as `the` and `and`."""
    return any(is_english(word) for word in _words(text) if len(word) > 2)


def may_be_meaningful(text: str) -> bool:
    """Whether a text has an English word or a number, or all its words may be words: of another language, a unit.

    `zzyzx` is not a word: no common one has these letters side by side.
    """
    words = _words(text)
    if is_meaningful(text) or any(map(str.isdigit, text[:_CHARACTERS_MAX])):
        return True
    return bool(words) and all(map(_looks_like_a_word, words))


def _words(text: str) -> list[str]:
    words = islice(_WORD.finditer(text.casefold()), WORDS_MAX)
    return [word for found in words if (word := found.group()) not in STOP_WORDS and (len(word) > 1 or word > "z")]


def _looks_like_a_word(word: str) -> bool:
    plain = unmarked(word)
    return not plain.isascii() or stem(plain) in UNITS or _pairs_of(plain) <= _common_pairs()


def _pairs_of(word: str) -> set[str]:
    """Each two letters side by side, and the first and the last letter with the blank before or after."""
    return set(map("".join, pairwise(f" {word} ")))


@cache
def _common_pairs() -> set[str]:
    words = (word for word in islice(places(), FIRST, None) if word.isascii() and word.isalpha())
    counts = Counter(pair for word in words for pair in _pairs_of(word))
    return {pair for pair, count in counts.items() if count >= _PAIRS_MIN}


@cache
def _common() -> dict[str, float]:
    found: dict[str, float] = {}
    for place, word in enumerate(islice(places(), FIRST, FIRST + RARE), 1):
        if word.isalpha():
            share = math.log(place / COMMON) / math.log(RARE / COMMON) if place > COMMON else 0.0
            found.setdefault(stem(word), max(LEAST, round(share, 3)))
    return found
