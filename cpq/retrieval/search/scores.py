"""PURE. The meaning of a score: the blend of words and vectors, and the fixed bands that an agent can rely on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

VECTOR_SHARE = 0.7
"""Share of the vectors in the blend with word coverage; anything from 0.5 to 0.8 ranks about as well."""

TITLE_SHARE = 0.1
"""Share of the title in the coverage: the name of a thing counts more than what its text mentions."""

ALSO_SHARE = 0.8
"""Share of a word that only a further text of a passage holds, in that of a word of its own text."""

CLASH_SHARE = 0.5
"""Factor for a passage with the opposite of what is asked for: its score stays below every good hit."""

QUOTED_SHARE = 0.5
"""Share of the number of times in the score of a passage that holds the query word for word."""

_SATURATION, _LENGTH_SHARE, _USUAL_LENGTH = 1.2, 0.75, 100

LIKELY_GOOD, ANALOG, PROBABLE_MISS = "likely_good", "analog", "probable_miss"
_GOOD_FROM, _ANALOG_FROM = 0.7, 0.4
_EASED_FROM = 0.6

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """Maps the blend of a corpus to 0…1, so that the bands mean the same in all corpora and runs.

    Each pair has two measured points: where an analogue begins (0.4) and where a good hit begins (0.7). Never a
    probability. `nonsense_below`: a query without a known word finds nothing when no similarity exceeds this.
    """

    hybrid: tuple[float, float]
    words: tuple[float, float]
    nonsense_below: float = 0.0
    is_prose: bool = False
    """Whether a denied word counts as a term."""

    def of_hybrid(self, similarity: Numbers, coverage: Numbers) -> Numbers:
        return _mapped(VECTOR_SHARE * np.maximum(similarity, 0) + (1 - VECTOR_SHARE) * coverage, self.hybrid)

    def of_words(self, coverage: Numbers) -> Numbers:
        return _mapped(coverage, self.words)


ITEMS = Scale(hybrid=(0.40, 0.50), words=(0.45, 0.60), nonsense_below=0.40)
"""For short descriptions of things: quote lines, past quotes. Fitted so that a request for goods of a neighbouring
trade, which nobody here sells, reads as a failed retrieval in four of five cases, and an answer seldom does."""

PRODUCTS = Scale(hybrid=(0.45, 0.50), words=(0.45, 0.60), nonsense_below=0.40)
"""For products, which have a text about the need beside the one about the thing: the nearer of two texts is nearer to
goods that are not sold, too."""

PROSE = Scale(hybrid=(0.26, 0.50), words=(0.29, 0.60), is_prose=True)
"""For pages and sections."""


def confidence(score: float) -> str:
    """The band of a score; the thresholds are fixed, so that a label keeps its meaning."""
    return LIKELY_GOOD if score >= _GOOD_FROM else ANALOG if score >= _ANALOG_FROM else PROBABLE_MISS


def as_analogue(scores: Numbers) -> Numbers:
    """The scores of things of another size or model than requested: in the same order, and below every good hit."""
    most = _GOOD_FROM - 1e-4
    eased = _EASED_FROM + (scores - _EASED_FROM) * (most - _EASED_FROM) / (1 - _EASED_FROM)
    return np.where(scores > _EASED_FROM, eased, scores)


def as_named(scores: Numbers, by_words: Numbers) -> Numbers:
    """The scores of things with the requested model. A model means nothing to vectors, so words decide if a hit is
    good."""
    return np.where(by_words >= _GOOD_FROM, _GOOD_FROM + (1 - _GOOD_FROM) * scores, scores)


def as_quoted(scores: Numbers, densities: Numbers, strength: float) -> Numbers:
    """The scores of passages that hold words of the query side by side, as far as these words are the query.

    `densities` is 0 for the others, which stay below them and in their bands. A name means nothing to vectors.
    """
    room = (1 - _GOOD_FROM) / 2
    lifted = 1 - room + room * (QUOTED_SHARE * densities + (1 - QUOTED_SHARE) * scores)
    return np.where(densities > 0, scores + strength * (lifted - scores), eased(scores, strength))


def eased(scores: Numbers, strength: float) -> Numbers:
    """The scores of passages that do not hold the words side by side: in the same order and bands, with room above."""
    return np.asarray(scores - strength / 2 * np.maximum(scores - _GOOD_FROM, 0))


def density(counts: NDArray[np.int64], lengths: NDArray[np.int32]) -> Numbers:
    """0 to 1, by how often passages hold a phrase and how many words they have, as in BM25."""
    found: Numbers = counts / (counts + _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * lengths / _USUAL_LENGTH))
    return found


def weight(count: int, total: int) -> float:
    """The weight of a word: high when few passages hold it, highest when none does."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _mapped(blend: Numbers, points: tuple[float, float]) -> Numbers:
    mapped: Any = np.interp(blend, (0.0, *points, 1.0), (0.0, _ANALOG_FROM, _GOOD_FROM, 1.0))
    return np.asarray(mapped, np.float64)
