"""PURE. The sentences and rows of a passage that can be quoted; a row of a table comes with the head of the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from cpq.retrieval.search.lexicon import terms

QUOTATION_CHARACTERS_MAX = 600
COMPARED_CHARACTERS = 200
COMPARED_MAX, WITH_WORDS_MAX = 6, 3
"""Sentences that are compared by meaning: 7 ms each. Of those with words of the question, which come first, fewer."""

CLEAR_SHARE = 0.5
"""A sentence with this share of the question's words, and more than any other, is chosen by words alone."""

WORDS_SHARE = 0.05
"""What all words of the question are worth beside its meaning."""

NEAR_FROM = 0.25
"""A sentence without any word of the question must be at least this near to it."""

Nearness = Callable[[Sequence[str]], Sequence[float] | None]
"""How near each text is to the question, 0 to 1; None without a model."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])|(?<=[。！？])")
_TABLE_RULE = re.compile(r"[|:\- ]*-[|:\- ]*")


def best_quotation(text: str, wanted: Collection[str], nearness: Nearness = lambda _texts: None) -> str | None:
    """The sentence or row that answers best, verbatim; None when none has to do with the question."""
    found = list(dict.fromkeys(quotations(text)))
    asked = set(wanted)
    held = {each: len(asked & terms(each, with_denied=True)) for each in found}
    ranked = sorted(found, key=lambda each: -held[each])[: WITH_WORDS_MAX if any(held.values()) else COMPARED_MAX]
    if not ranked:
        return None
    first, second = held[ranked[0]], held[ranked[1]] if len(ranked) > 1 else 0
    is_clear = first > second and first >= CLEAR_SHARE * len(asked)
    near = (
        None if is_clear or (first and len(ranked) == 1) else nearness([each[:COMPARED_CHARACTERS] for each in ranked])
    )
    if near is None:
        return ranked[0] if first else None
    worth = [close + WORDS_SHARE * held[each] / max(1, len(asked)) for each, close in zip(ranked, near, strict=True)]
    best = max(range(len(ranked)), key=worth.__getitem__)
    return ranked[best] if held[ranked[best]] or near[best] >= NEAR_FROM else None


def quotations(text: str) -> Iterator[str]:
    """Every sentence, line of a listing, and row with its head, none longer than a quotation may be."""
    is_code = False
    head = ""
    lines = text.split("\n")
    for place, line in enumerate(lines):
        if line.startswith("```"):
            is_code = not is_code
            continue
        if not line.startswith("|"):
            head = ""
        elif place + 1 < len(lines) and _TABLE_RULE.fullmatch(lines[place + 1]) and lines[place + 1].startswith("|"):
            head = f"{line}\n" if line.strip("| ") else ""
            continue
        elif _TABLE_RULE.fullmatch(line):
            continue
        for part in [head + line] if is_code or line.startswith("|") else _SENTENCE.split(line):
            quotation = part.strip()
            if any(map(str.isalnum, quotation)) and len(quotation) <= QUOTATION_CHARACTERS_MAX:
                yield quotation
