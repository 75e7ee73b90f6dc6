"""PURE. Finds customer names in texts in every spelling: to hide them from callers, or to keep them off an offer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from cpq.base import vocabulary
from cpq.domain.catalog.words import STOP_WORDS

HIDDEN = "[customer]"

_LEGAL_FORMS = """ab ag as bv co company corp corporation gmbh group holding holdings inc incorporated international kg
limited llc llp lp ltd nv oy plc pty sa sarl se spa"""
_ORDINARY = """advanced air allied american applied associated atlantic best big brothers central city clean coastal
county dr eastern first food foods general global grand great industrial land medical metro modern mt national new north
northern oil old pacific power premier pure quality royal saint san service services south southern st state sun
superior total tri united universal valley water west western world"""
_UNITS = {*vocabulary.UNITS, *vocabulary.UNIT_NAMES}
_USUAL = frozenset((*_LEGAL_FORMS.split(), *_ORDINARY.split())) | STOP_WORDS | _UNITS
"""Words that occur in many names and in many descriptions: alone they identify nobody."""

_WORD = re.compile(r"[^\W_]+")
_JOINTS = ("-", "/", "_", "@")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae"})


class Names:
    """The names of all customers, because a quote may mention another customer."""

    def __init__(self, customers: Iterable[str]) -> None:
        self._phrases: dict[str, set[tuple[str, ...]]] = {}
        self._heads: set[str] = set()
        self._joined: set[str] = set()
        self._firsts: set[str] = set()
        self.add(customers)

    def hidden(self, text: str, customer: str) -> str:
        """The text with customer names replaced by HIDDEN.

        Its own customer is found in any case, by the whole name or by its distinctive word. Other customers are found
        by the whole name in any case, or by the distinctive word in its usual case.
        """
        own = _parsed(customer)
        if not self._phrases and text.isascii() and not any(word in text.lower() for word in own.clues):
            return text
        text = text if text.isascii() else unicodedata.normalize("NFC", text)
        found = [(word.start(), word.end(), _folded(word[0])) for word in _WORD.finditer(text)]
        kept, end, place = [], 0, 0
        while place < len(found):
            start, after, word = found[place]
            length = self._length(own, found, place)
            if length == 0 and (
                word in own.heads
                or word in self._joined
                or text[start:after] in own.written
                or text[start:after] in self._heads
            ):
                length = 1
            if length:
                kept += [text[end:start], HIDDEN]
                end = found[place + length - 1][1]
            place += length or 1
        return "".join([*kept, text[end:]])

    def mentioned(self, text: str, customer: str) -> str | None:
        """The first name of another customer than this one, as the text has it; None for none.

        A name of two words is found where one of them has a capital, a longer one in any case, also as one word.
        """
        own = _parsed(customer)
        found = [(word.start(), word.end(), _folded(word[0])) for word in _WORD.finditer(text)]
        place = 0
        while place < len(found):
            start, _, word = found[place]
            length = self._length(own, found, place)
            name = text[start : found[place + max(length, 1) - 1][1]]
            phrase = tuple(folded for _, _, folded in found[place : place + length])
            if length and phrase not in own.phrases and (length > 2 or name != name.lower()):
                return name
            if not length and len(word) > 7 and word in self._joined and word not in own.heads:
                return name
            place += length or 1
        return None

    def perhaps_mentioned(self, text: str, customer: str, usual: Collection[str] = ()) -> str | None:
        """The first word that begins another customer's name, in its own case or in capitals; None for none.

        A part of another word, and a word among the `usual`, is nobody's name.
        """
        own = _parsed(customer)
        for found in _WORD.finditer(text):
            name, start, after = found[0], found.start(), found.end()
            is_first = name in self._firsts or (name.isupper() and name.capitalize() in self._firsts)
            is_joined = text[start - 1 : start] in _JOINTS or text[after : after + 1] in _JOINTS
            word = _folded(name)
            if is_first and not is_joined and word not in usual and word not in own.heads and name not in own.written:
                return name
        return None

    def add(self, customers: Iterable[str]) -> None:
        for parsed in map(_parsed, customers):
            for phrase in parsed.phrases:
                self._phrases.setdefault(phrase[0], set()).add(phrase)
            self._heads |= parsed.written
            self._firsts |= parsed.first
            self._joined |= {"".join(phrase) for phrase in parsed.phrases}

    def _length(self, own: _Parsed, found: list[tuple[int, int, str]], place: int) -> int:
        """Number of words of the longest name that begins here; 0 for none."""
        word = found[place][2]
        phrases = [*self._phrases.get(word, ()), *(phrase for phrase in own.phrases if phrase[0] == word)]
        following = tuple(folded for _, _, folded in found[place : place + max(map(len, phrases), default=0)])
        return max((len(phrase) for phrase in phrases if following[: len(phrase)] == phrase), default=0)


class _Parsed(NamedTuple):
    phrases: frozenset[tuple[str, ...]]
    """The name and its beginnings of two or more words."""
    heads: frozenset[str]
    """The distinctive words, alone and in any case."""
    written: frozenset[str]
    """The distinctive words in their usual case, with short ones, which are other words in another case."""
    first: frozenset[str]
    """The distinctive word in its usual case, where the name begins with it."""
    clues: frozenset[str]
    """A text without any of these words does not contain the name."""


@lru_cache(maxsize=1_000)
def _parsed(name: str) -> _Parsed:
    words = _WORD.findall(unicodedata.normalize("NFC", name))
    first = next((place for place, word in enumerate(words) if _folded(word) not in STOP_WORDS), 0)
    distinctive = [*_distinctive(name, words[first:])]
    spellings = {tuple(map(_folded, words)), tuple(map(_transcribed, words))}
    phrases = {
        spelling[start:end]
        for spelling in spellings
        for start in {0, first}
        for end in range(start + 2, len(words) + 1)
        if _says_more(spelling[start:end])
    }
    long = [word for word in distinctive if len(word) > 2 or not word.isalpha()]
    heads = {spelling for word in long for spelling in (_folded(word), _transcribed(word))}
    heads |= {"".join(phrase) for phrase in phrases}  # As in a web address.
    clues = {*heads, *map(_folded, distinctive), *(phrase[0] for phrase in phrases)}
    leads = words[first] if words[first:] and distinctive[:1] == words[first : first + 1] else ""
    alone = {leads} if _is_capitalised(leads) and (len(leads) > 3 or not leads.isalpha()) else set()
    return _Parsed(frozenset(phrases), frozenset(heads), frozenset(distinctive), frozenset(alone), frozenset(clues))


def _distinctive(name: str, words: list[str]) -> Iterator[str]:
    """The first word that is not ordinary, and the words joined to it: `Anheuser-Busch`, `Smith & Wesson`."""
    is_initial = [len(word) == 1 for word in words]
    place = next((n for n, word in enumerate(words) if not is_initial[n] and _folded(word) not in _USUAL), None)
    if place is None:
        yield from words if len(words) == 1 else ()
        return
    yield words[place]
    for one, other in zip(words[place:], words[place + 1 :], strict=False):
        if not re.search(rf"{re.escape(one)}(?:-| & | and | \+ ){re.escape(other)}", name):
            return
        if _folded(other) not in _USUAL:
            yield other


def _is_capitalised(text: str) -> bool:
    """Whether every word begins with a capital or a digit, but for stop words."""
    words = [word for word in _WORD.findall(text) if word not in STOP_WORDS]
    return bool(words) and not any(word[0].islower() for word in words)


def _says_more(phrase: tuple[str, ...]) -> bool:
    """Whether the phrase has more than stop words and initials."""
    return any(len(word) > 1 and word not in STOP_WORDS for word in phrase)


@lru_cache(maxsize=100_000)
def _folded(word: str) -> str:
    """Without case and accents."""
    if word.isascii():
        return word.lower()
    return "".join(c for c in unicodedata.normalize("NFKD", word).casefold() if not unicodedata.combining(c))


def _transcribed(word: str) -> str:
    """The spelling without umlauts: Mueller."""
    return _folded(word.lower().translate(_UMLAUTS))


NOBODY_ELSE = Names(())
"""Hides only the customer of the quote itself."""
