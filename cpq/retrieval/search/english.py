"""PURE. Which words are English, and how much they say.

BERT's word list has whole words from its place 1,996 on, by how often they occur in books and encyclopaedias.
"""

from __future__ import annotations

import math
import re
from functools import cache
from itertools import islice

from cpq.base.word_list import places
from cpq.domain.catalog.words import STOP_WORDS
from cpq.retrieval.search.lexicon import stem

FIRST = 1_996
COMMON, RARE = 50, 4_000
"""Up to the former place a word says next to nothing, from the latter on it says all that its rarity here says."""

LEAST = 0.1
WORDS_MAX = 64

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
    words = (word for word, _ in zip(_WORD.findall(text.casefold()), range(WORDS_MAX), strict=False))
    return any(is_english(word) for word in words if len(word) > 2 and word not in STOP_WORDS)


@cache
def _common() -> dict[str, float]:
    found: dict[str, float] = {}
    for place, word in enumerate(islice(places(), FIRST, FIRST + RARE), 1):
        if word.isalpha():
            share = math.log(place / COMMON) / math.log(RARE / COMMON) if place > COMMON else 0.0
            found.setdefault(stem(word), max(LEAST, round(share, 3)))
    return found
