"""PURE. Reads a question: its intent, its parts, and its constraints. Rules, not a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Literal

from cpq.domain.catalog.words import STOP_WORDS
from cpq.retrieval.search.lexicon import stem, terms

Intent = Literal["factual", "comparison", "how_to", "exploratory"]

PARTS_MAX = 4
PART_WORDS_MIN = 2
HELD_SHARE = 0.7
"""The share of the question's words that a passage must hold to be an answer, by weight."""

KNOWN_SHARE = 0.95
"""A passage is left out when the caller already knows at least this share of it."""

_COMPARES = re.compile(
    r"\b(compare[ds]?|comparison|versus|vs\.?|differences?|differs?|better than|or rather)\b", re.IGNORECASE
)
_HOW = re.compile(
    r"\b(how (do|does|can|could|should|would|to)|steps? to|guide|tutorial|instructions?|set ?up)\b", re.IGNORECASE
)
_FACT = re.compile(
    r"^\s*(who|what|when|where|which|how (many|much|long|old|large|big|high|heavy)|is|are|does|do|can|has|have)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(overview|explain|about|tell me|describe|introduction|explore|everything|options?|ideas?)\b", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[?!;])\s+|\s*;\s*|\s*\n+\s*(?:[-*•]|\d{1,2}[.)])?\s*|(?<=\.)\s+(?=[A-Z])")
_SECOND_QUESTION = re.compile(
    r",?\s+(?:and|as well as|and also)\s+(?=(?:who|what|when|where|which|why|how|is|are|does|do|can)\b)", re.IGNORECASE
)
_PAIR = re.compile(
    r"\b(?:compare|comparison (?:of|between)|differences? between|choose between)\s+(?P<a>.{2,80}?)\s+"
    r"(?:and|with|to|vs\.?|versus)\s+(?P<b>.{2,80}?)"
    r"(?P<rest>\s+(?:in|on|for|regarding|by|with respect to|when)\s+.+)?[?.!]*$",
    re.IGNORECASE,
)
_VERSUS = re.compile(
    r"^(?P<a>.{2,80}?)\s+(?:vs\.?|versus)\s+(?P<b>.{2,80}?)(?P<rest>\s+(?:in|on|for|by)\s+.+)?[?.!]*$", re.IGNORECASE
)
_FOCUS = re.compile(
    r"\b(?:focus on|about|regarding|mention(?:ing)?|cover(?:ing)?|include|including|only)\s+(.{2,120})", re.IGNORECASE
)
_WANTS_CODE = re.compile(r"\b(code|snippets?|command line|examples? in (?:python|java|c\+\+|go|rust))\b", re.IGNORECASE)
_WANTS_TABLE = re.compile(
    r"\b(tables?|figures|benchmarks?|specifications?|specs|numbers|data ?sheets?)\b", re.IGNORECASE
)


_ASKING = (
    "about available can could describe each every exactly explain how kind long many may might much must often our"
    " possible regarding shall should some sort tell me typical typically usual usually"
    " wie wann was welche welcher welches oft lange viel viele muss müssen kann können ist sind wird werden hat haben"
    " der die das den dem des ein eine einen einem einer eines und oder im am an auf für mit von zu zum zur bei man es"
)
"""Words of questions that no answer repeats."""

_STOP_TERMS = frozenset(stem(word) for word in STOP_WORDS) | STOP_WORDS
_ASKING_TERMS = frozenset(terms(_ASKING, with_denied=True))


@dataclass(frozen=True)
class Question:
    """A question as parts to search for; the whole question is always the first."""

    intent: Intent
    parts: tuple[str, ...]
    wants_code: bool = False
    wants_table: bool = False


def read_question(query: str, intent: Intent | None = None, constraints: tuple[str, ...] = ()) -> Question:
    """The parts of a question, at most four; a constraint names what passages should hold, or adds a part."""
    whole = " ".join(query.split())
    parts = [whole, *_compared(whole), *_asked(query)]
    asked = " ".join(constraints)
    for constraint in constraints:
        found = _FOCUS.search(constraint)
        if found and not _WANTS_CODE.search(found[1]) and not _WANTS_TABLE.search(found[1]):
            parts.append(found[1].strip(" .?!"))
    kept: list[str] = []
    for part in parts:
        held = telling(part)
        if not kept or (len(held) >= PART_WORDS_MIN and all(held != telling(other) for other in kept)):
            kept.append(part)
    return Question(
        intent or _intent(whole),
        tuple(kept[:PARTS_MAX]),
        wants_code=bool(_WANTS_CODE.search(asked)),
        wants_table=bool(_WANTS_TABLE.search(asked)),
    )


def telling(text: str) -> frozenset[str]:
    """The terms of a text that carry its meaning."""
    return frozenset(terms(text) - _STOP_TERMS)


def asked_words(text: str) -> frozenset[str]:
    """The terms that an answer to a question should hold, without words that only ask, and without joined terms."""
    words = telling(text) - _ASKING_TERMS
    joined = {one + other for one in words for other in words}
    return words - joined or telling(text)


def is_answered_by(text: str, weights: Mapping[str, float]) -> bool:
    """Whether a text holds the rare words of a question, and every number that it names.

    `weights` are those of the words that an answer should hold; a rare word weighs more.
    """
    held = terms(text, with_denied=True)
    if any(word[0].isdigit() and word not in held for word in weights):
        return False
    return sum(weights[word] for word in weights if word in held) >= HELD_SHARE * sum(weights.values())


def is_known(text: str, known: Set[str]) -> bool:
    """True when the caller knows the text nearly word for word; `known` are the terms of its context."""
    held = telling(text)
    return bool(held) and len(held & known) >= KNOWN_SHARE * len(held)


def _intent(query: str) -> Intent:
    if _COMPARES.search(query):
        return "comparison"
    if _HOW.search(query):
        return "how_to"
    if _FACT.search(query) and not _OPEN.search(query):
        return "factual"
    return "exploratory"


def _compared(query: str) -> list[str]:
    """Each side of a comparison as a part, with the criterion."""
    found = _PAIR.search(query) or _VERSUS.match(query)
    if not found:
        return []
    rest = (found["rest"] or "").rstrip("?.! ")
    return [f"{found['a'].strip()}{rest}", f"{found['b'].strip()}{rest}"]


def _asked(query: str) -> list[str]:
    """The sentences, and the questions joined by `and`."""
    found = [part for sentence in _SENTENCE.split(query) for part in _SECOND_QUESTION.split(sentence)]
    parts = [" ".join(part.split()).strip(" ,") for part in found]
    return [part for part in parts if part] if len(parts) > 1 else []
