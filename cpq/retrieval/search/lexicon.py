"""PURE. Reads text into terms, and a query into slots that a passage may fill."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from cpq.base import vocabulary
from cpq.domain.catalog.spelling import may_be_misspelt
from cpq.domain.catalog.words import STOP_WORDS, WORD_LENGTH_MAX

QUERY_WORDS_MAX = 64
QUERY_CHARACTERS_MAX = 4_000
"""The rest of a longer query is ignored; a pasted mail is not refused."""

IDENTIFIER_LENGTH_MIN = 3

MISSPELT_LENGTH_MIN = 5
"""Shorter words are too often another word with one changed letter."""

EXACT, SYNONYM, CORRECTED, BARE_NUMBER = 1.0, 0.9, 0.6, 0.4
"""The share of a word's weight that a passage earns: for the word, a synonym, a corrected word, and a number without
the requested unit or model."""

NEGATIONS = frozenset(("not", "never", "without"))
_HEDGES = frozenset(("more", "less", "only", "just", "too", "very", "sure", "over", "under", "above", "below"))
"""After a negation these words make no denial: `not less than 100 HP`."""

_ENDINGS = (
    *("ations", "ation", "ments", "ment", "ings", "ing", "edly", "ers", "ors", "ions", "ied", "ies"),
    *("ed", "er", "or", "ion", "es", "ly", "s"),
)


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The word without its ending, so that `servicing`, `serviced` and `service` are equal. Crude on purpose: fast."""
    word = word[:WORD_LENGTH_MAX]
    if not word.endswith(("ss", "us", "is")):
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= (3 if ending == "s" else 4):
                word = word[: -len(ending)]
                if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeioulsfz":
                    word = word[:-1]
                break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


UNITS = {unit: unit for unit in vocabulary.UNITS} | {stem(name): unit for name, unit in vocabulary.UNIT_NAMES.items()}
"""Units that belong to the number before them, by every name."""

_SIZE = re.compile(r"[\d.]+([a-z]+)")
_TOKEN = re.compile(r"(\d+(?:[.,]\d+)*|[^\W\d_]+)([-/.](?=[^\W_]))?")
_BOUNDARY = re.compile(r"(?<=\d)(?=[^\W\d_])|(?<=[^\W\d_])(?=\d)")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
_MARKS = re.compile(r"[\u0300-\u036f]")
_CAMEL = re.compile(r"[A-Z](?=[a-z]{2})(?<=[a-zA-Z].)")
"""The capital letters where a name has another word."""

_NAME = re.compile(r"\w+(?:[._-]\w+)*")
_RUN = re.compile(r"\w+")


@dataclass(frozen=True)
class Slot:
    """One word of a query: the terms that fill it and their worth, best first. A word that occurs nowhere has none."""

    word: str
    fillings: tuple[tuple[str, float], ...]


class Clash(NamedTuple):
    """What a query asks for, and what excludes it: a passage with only the latter is a tempting wrong answer."""

    asked: frozenset[str]
    excluded: frozenset[str]


class Phrase(NamedTuple):
    """Words of a query that a passage may hold side by side, as written."""

    words: tuple[str, ...]
    core: tuple[str, ...]
    """The same without little words at both ends."""
    terms: tuple[tuple[str, tuple[str, ...]], ...]
    """For each word of the core, its term as a whole identifier and the terms of its parts: a passage with the word
    holds the former or all of the latter."""
    name: str
    """The term of the identifier that the core spells, or empty."""


class Reading(NamedTuple):
    slots: list[Slot]
    phrases: list[Phrase]
    """The whole query without little words at its ends, and the identifiers in it."""
    clashes: list[Clash]
    sizes: list[Clash]
    """The requested numbers: a passage with only another number of the same unit, or another model of the same series,
    is at best an analogue."""
    codes: list[str]
    """Requested models that a passage has."""
    corrections: dict[str, str]
    """Unknown words, and the words used instead."""


def terms(text: str, *, with_denied: bool = False) -> set[str]:
    """Every term of a text: stems, numbers, and joined terms for words that belong together.

    A denied word is not a term: `not an oilless machine` is not found by oilless, nor `non-lubricated` by lubricated.
    In prose it is a term: a search for refunds should find that there are none.
    """
    return _terms(_TOKEN.findall(_fold(text)), with_denied=with_denied)


def unit_of(term: str) -> str | None:
    """The unit of a term that is one number with a unit."""
    size = _SIZE.fullmatch(term) if term[0].isdigit() else None
    return size[1] if size and size[1] in UNITS and term.count(".") <= 1 else None


class Passage(NamedTuple):
    terms: set[str]
    """All terms, with the units of its sizes, and its identifiers as a whole."""
    spellings: set[str]
    """Its words as written whose stem is a term."""
    words: list[str]
    """All its words as written, in their order."""
    length: int
    """How many of these words are of its text."""


def read_passage(read: str, aside: str, *, with_denied: bool) -> Passage:
    """Reads the text of a passage, and words aside that find it, too."""
    text = f"{read}\n{aside}"
    tokens = _TOKEN.findall(_fold(text))
    found = _terms(tokens, with_denied=with_denied)
    sizes = (_SIZE.fullmatch(term) for term in found if term[0].isdigit())
    words = {token for token, _ in tokens if token.isalpha()}
    if not with_denied:
        words = {word for word in words if stem(word) in found}
    found = found.union(_SIZED + size[1] for size in sizes if size)
    found.update(WHOLE + name for name in identifiers(text))
    runs = _runs(read)
    return Passage(found, words, [*runs, *_runs(aside)], len(runs))


def identifiers(text: str) -> set[str]:
    """The names in a text that are written as one word but are several, without case: `snake_case`, `camelCase`,
    `a.dotted.name`, `AC-100`. A dotted name also counts by its parts, and by each two of them."""
    found: set[str] = set()
    for written in set(_NAME.findall(text)):
        if written.isalpha() and (written.islower() or written[1:].islower()):
            continue
        parts = written.split(".")
        for name in (written, *parts, *map(".".join, pairwise(parts))):
            if len(name) >= IDENTIFIER_LENGTH_MIN and _is_identifier(name):
                found.add(name.casefold().strip("_")[:WORD_LENGTH_MAX])
    return found


def _is_identifier(name: str) -> bool:
    if "_" in name.strip("_") or "." in name or _CAMEL.search(name):
        return any(map(str.isalpha, name))
    return any(map(str.isdigit, name)) and any(map(str.isalpha, name))


def _terms(tokens: Iterable[tuple[str, str]], *, with_denied: bool) -> set[str]:
    found: set[str] = set()
    before, is_glued, is_negated = "", "", False
    for token, glue in tokens:
        if is_negated and token not in STOP_WORDS:
            before, is_negated = "", False
            continue
        is_negated = not with_denied and (is_negated or token in NEGATIONS)
        term = _term(token)
        if before != "non" or with_denied:
            found.add(term)
        if before and (joined := _joined(before, term, is_glued=bool(is_glued))):
            found.add(joined)
        before, is_glued = term, glue
    return found


def read_query(
    text: str, count: Callable[[str], int], correct: Callable[[str], Iterable[str]], *, with_denied: bool = False
) -> Reading:
    """A query as slots, with what excludes the requested things, and its corrected words.

    `count` returns how many passages hold a term, `correct` the known words that resemble an unknown one.
    """
    folded = _fold(text[:QUERY_CHARACTERS_MAX])
    if not with_denied:
        for pattern, word in vocabulary.PHRASES:
            folded = pattern.sub(word, folded)
    found = _TOKEN.findall(folded)[:QUERY_WORDS_MAX]
    tokens = [token for token, _ in found]
    written = [_term(token) for token in tokens]
    places, denied = _asked_and_denied(tokens, written, with_denied=with_denied)
    slots: dict[str, Slot] = {}
    corrections: dict[str, str] = {}
    for place in places:
        if (term := written[place]) in slots:
            continue
        fillings = {other: weight for other, weight in _fillings(written, place) if count(other)}
        if term[0].isdigit() and term in fillings and EXACT in (fillings[other] for other in fillings if other != term):
            fillings[term] = BARE_NUMBER
        if not fillings and len(tokens[place]) >= MISSPELT_LENGTH_MIN and may_be_misspelt(tokens[place]):
            meant = list(correct(tokens[place]))
            fillings = dict.fromkeys(map(_term, meant), CORRECTED)
            if meant:
                corrections[tokens[place]] = meant[0]
        if count(WHOLE + tokens[place]):
            fillings[WHOLE + tokens[place]] = EXACT
        ordered = sorted(fillings.items(), key=lambda item: (-item[1], item[0]))
        slots[term] = Slot(term, tuple(ordered))
    phrases = [] if not with_denied and not NEGATIONS.isdisjoint(tokens) else _phrases(text)
    for name in (phrase.name for phrase in phrases if phrase.name and count(phrase.name)):
        slots.setdefault(name, Slot(name, ((name, EXACT),)))
    asked = terms(folded)
    clashes = [clash for clash in _CLASHES if asked & clash.asked and not asked & clash.excluded]
    clashes += [Clash(frozenset(), names) for names in denied if not asked & names]
    if with_denied:
        return Reading(list(slots.values()), phrases, clashes, [], [], corrections)
    models = {one + other: (one, other) for one, other in _models(found)}
    codes = [model for model in models if count(model)]
    # For an unknown model, models of the same series are analogues.
    others = [
        Clash(frozenset((other,)), frozenset((one,))) for model, (one, other) in models.items() if not count(model)
    ]
    sizes = [*_sizes(written, places), *others]
    return Reading(list(slots.values()), phrases, clashes, sizes, codes, corrections)


def _phrases(text: str) -> list[Phrase]:
    text = text[:QUERY_CHARACTERS_MAX]
    runs = _runs(text)[:QUERY_WORDS_MAX]
    asked = [place for place, run in enumerate(runs) if run not in STOP_WORDS]
    if not asked:
        return []
    core = runs[asked[0] : asked[-1] + 1]
    names = {tuple(_runs(name)): WHOLE + name for name in sorted(identifiers(text))}
    whole = _phrase(runs, core, names.pop(tuple(core), ""))
    return [whole, *(_phrase(words, words, name) for words, name in names.items())]


def _phrase(words: Sequence[str], core: Sequence[str], name: str) -> Phrase:
    parts = {word: tuple(_term(token) for token, _ in _TOKEN.findall(_BOUNDARY.sub("-", word))) for word in core}
    return Phrase(tuple(words), tuple(core), tuple((WHOLE + word, of) for word, of in parts.items()), name)


def _runs(text: str) -> list[str]:
    """The words of a text in order, without case and accents; an identifier is one word, but for its dots."""
    plain = text if text.isascii() else unmarked(text)
    runs = _RUN.findall(plain.casefold())
    return [run for found in runs if (run := found.strip("_"))] if "_" in plain else runs


def _asked_and_denied(
    tokens: list[str], written: list[str], *, with_denied: bool
) -> tuple[list[int], list[frozenset[str]]]:
    """The positions of the requested words, and for each denied thing all its names."""
    places: list[int] = []
    denied: list[frozenset[str]] = []
    is_negated = False
    place = 0
    while place < len(tokens):
        token, compound = tokens[place], "".join(written[place : place + 2])
        if token in NEGATIONS:
            is_negated = not with_denied
        elif token not in STOP_WORDS:
            if not is_negated:
                places.append(place)
            elif token not in _HEDGES:
                name = compound if compound in _COMPOUNDS else written[place]
                denied.append(frozenset((name, *_OTHERS.get(name, ()))))
                place += name == compound and len(compound) > len(written[place])
            is_negated = False
        place += 1
    return places, denied


def _sizes(written: list[str], places: list[int]) -> list[Clash]:
    """The requested numbers of each unit; any of them matches."""
    found: dict[str, set[str]] = {}
    for place in places:
        unit = UNITS.get(written[place + 1]) if place + 1 < len(written) else None
        if unit and written[place][0].isdigit():
            found.setdefault(unit, set()).add(written[place] + unit)
    return [Clash(frozenset(asked), frozenset((_SIZED + unit,))) for unit, asked in found.items()]


def _models(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The models in a query: letters and digits written as one word."""
    pairs = [(_term(one), _term(other)) for (one, glue), (other, _) in pairwise(found) if glue]
    mixed = [(one, other) for one, other in pairs if one[0].isdigit() != other[0].isdigit()]
    return [(one, other) for one, other in mixed if not (one[0].isdigit() and other in UNITS)]


def _fillings(written: list[str], place: int) -> Iterator[tuple[str, float]]:
    """The terms for a word of a query, weakest first, so that the best weight of a term remains."""
    term = written[place]
    pairs = [*pairwise(written[max(0, place - 1) : place + 2])]
    joined = [_joined(one, other, is_glued=True) for one, other in pairs]
    for word in (term, *joined):
        yield from ((other, SYNONYM) for other in _OTHERS.get(word, ()))
    has_unit = term[0].isdigit() and place + 1 < len(written) and written[place + 1] in UNITS
    yield term, BARE_NUMBER if has_unit else EXACT
    yield from ((word, EXACT) for word in joined if word)


def _fold(text: str) -> str:
    """Without case and accents, with a hyphen where letters meet digits, and in names of several words: `100HP` is
    100-hp, and `airReceiver` is air-receiver."""
    text = text if text.isascii() else unmarked(text)
    return _BOUNDARY.sub("-", _CAMEL.sub(r"-\g<0>", text).casefold())


def unmarked(text: str) -> str:
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", text)))


@lru_cache(maxsize=100_000)
def _term(token: str) -> str:
    if not token[0].isdigit():
        return stem(token)
    number = token.replace(",", "") if _GROUPED.fullmatch(token) else token.replace(",", ".")
    number = number.rstrip("0").rstrip(".") if number.count(".") == 1 else number
    return number[:WORD_LENGTH_MAX]


def _joined(one: str, other: str, *, is_glued: bool) -> str:
    """Two neighbours as one term where they belong together: a number and its unit, a model, a compound word."""
    if one[0].isdigit():
        unit = UNITS.get(other)
        if unit is None:
            return one + other if is_glued and not other[0].isdigit() else ""
        return one + unit
    return one + other if is_glued or one + other in _COMPOUNDS else ""


def _read_synonyms(groups: Iterable[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """For each word, or pair of words without the blank, the other words of its group."""
    others: dict[str, tuple[str, ...]] = {}
    for phrases in groups:
        group = list(dict.fromkeys("".join(map(stem, phrase.split())) for phrase in phrases))
        for word in group:
            others[word] = tuple(other for other in group if other != word)
    return others


def _read_opposites(pairs: Iterable[Sequence[str]]) -> list[Clash]:
    """Each pair in both directions, every side with its synonyms."""
    clashes = []
    for pair in pairs:
        sides = ["".join(map(stem, phrase.split())) for phrase in pair]
        one, other = (frozenset((side, *_OTHERS.get(side, ()))) for side in sides)
        clashes += [Clash(one, other), Clash(other, one)]
    return clashes


WHOLE = "\3"
"""Prefix of identifiers as a whole; no word begins with it."""

_SIZED = "#"
"""Prefix of a unit in which a passage gives a size; no word begins with it."""

_OTHERS = _read_synonyms(vocabulary.SYNONYMS)
_CLASHES = _read_opposites(vocabulary.OPPOSITES)
_COMPOUNDS = frozenset(_OTHERS).union(*(clash.asked for clash in _CLASHES))
