"""PURE. The free texts of a quote: what a customer reads beside the clause library, and whether it holds terms."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

PREFIX = "clause:"
"""A note that is `clause:ID` stands for the text of that clause."""

TERMS_WORDS = (
    "bonus*", "cancel*", "cash back", "cashback", "compensat*", "complimentary", "credit*", "deduct*",
    "discount*", "exclusiv*", "for free", "free of charge", "free deliver*", "free install*", "free ship*", "gratis",
    "guarantee*", "indemn*", "liab*", "money back", "no charge", "no cost", "owe", "paid", "pay", "payable*",
    "payback*", "payment*", "penalt*", "per cent", "percent*", "price*", "pricing", "rebate*", "refund*", "reimburs*",
    "renew*", "repay*", "side letter*", "terminat*", "waive*", "waiving", "warrant*", "erstatt*", "garanti*",
    "gutschrift*", "haftung*", "kostenlos*", "kundig*", "nachlass*", "preis*", "prozent*", "rabatt*",
    "skonto*", "zahlbar*", "zahlung*", "gratuit*", "paiement*", "penalit*", "pour cent", "prix", "rabais", "rembours*",
    "remise*", "resili*", "ristourne*", "descuento*", "pago*", "penaliz*", "por ciento", "precio*", "rebaja*",
    "reembols*", "保証", "値引", "割引", "支払", "無償", "無料", "返金", "ضمان", "مجان", "خصم", "دفع", "استرداد",
)  # fmt: skip
"""Words of terms in six languages, without accents: whole words, with `*` all that begin so; in other scripts
than Latin wherever they are. A policy folder may have others."""


class FreeTextFacts(NamedTuple):
    """The facts about the texts of a quote, by the names that policies read."""

    has_free_text: bool = False
    free_text_has_numbers: bool = False
    free_text_has_terms: bool = False


NO_FREE_TEXT = FreeTextFacts()


@dataclass(frozen=True)
class ClauseLibrary:
    """The texts that need nobody's look, by their ids, and the words that make any other text one about terms."""

    clauses: Mapping[str, str] = field(default_factory=dict)
    terms_words: tuple[str, ...] = TERMS_WORDS

    def text_of(self, note: str | None) -> str | None:
        """A note with its clauses in place of their ids, line by line. KeyError has the first unknown id."""
        if not note or PREFIX not in note:
            return note
        return "\n".join(self._line(line) for line in note.splitlines())

    def _line(self, line: str) -> str:
        name = line.strip()
        return self.clauses[name.removeprefix(PREFIX).strip()] if name.startswith(PREFIX) else line

    def facts(self, texts: Iterable[str], values: Iterable[str] = ()) -> FreeTextFacts:
        """The facts of texts and of free attribute values.

        A value such as `RAL 9010`, or `3 years` and no more, is data, so its number does not count; terms do.
        """
        free = [line for text in texts for line in self.free_lines(text)]
        named = [value for value in values if value.strip() and not self._is_clause(value)]
        if not free and not named:
            return NO_FREE_TEXT
        return FreeTextFacts(
            has_free_text=True,
            free_text_has_numbers=any(map(_has_digit, free)),
            # Joined, so that a line break separates no number from its unit.
            free_text_has_terms=self._holds_terms(" ".join(free))
            or any(self._holds_terms(value) for value in named if not _ONLY_TIME.fullmatch(_folded(value))),
        )

    def spoken(self, reference: str | None) -> list[str]:
        """A reference, such as a deal id, as a free value where it says something: several words, or terms in one.

        `D-2026-7` and `acme-renewal` say nothing; `net_180` and `40 % off` do.
        """
        words = _RENEWAL.sub(" ", _SEPARATORS.sub(" ", reference or "")).split()
        is_code = len((reference or "").split()) < 2
        return [] if is_code and not self._names_terms(" ".join(words)) else [" ".join(words)]

    def _names_terms(self, text: str) -> bool:
        """Whether a text of one word is about terms; `2026 USD` in it is a year and a currency, and no amount."""
        plain = _folded(text)
        return bool(_PRICED.search(plain) or self._pattern.search(plain))

    def free_lines(self, text: str) -> list[str]:
        """The lines of a text that are not from the library."""
        return [line for line in text.splitlines() if line.strip() and not self._is_clause(line)]

    def _is_clause(self, line: str) -> bool:
        return _folded(line) in self._known

    def _holds_terms(self, text: str) -> bool:
        plain = _folded(text.replace("_", " "))  # Which joins words, as in free_of_charge, or marks one.
        return bool(
            _TIME.search(plain) or _MEASURED.search(plain) or _MIXED.search(plain) or self._pattern.search(plain)
        )

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(_folded(line) for text in self.clauses.values() for line in text.splitlines())

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        words = sorted(map(_folded, self.terms_words))
        gap = rf"[ {_DASH}]"
        spaced = [re.escape(word).replace(r"\*", r"\w*").replace(r"\ ", gap) for word in words if word[0].isascii()]
        others = [re.escape(word) for word in words if not word[0].isascii()]
        parts = [rf"(?<!\w)(?:{'|'.join(spaced)})(?!\w)"] if spaced else []
        return re.compile("|".join([*parts, *others]) or r"(?!)")


def _folded(text: str) -> str:
    """Without case, accents, invisible characters and runs of spaces, so that a spelling hides nothing."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(one for one in plain if unicodedata.category(one) not in ("Mn", "Cf"))
    return " ".join(unicodedata.normalize("NFKC", kept).split())


def _has_digit(text: str) -> bool:
    return any(unicodedata.category(one) in ("Nd", "No", "Nl") for one in text)


def _any(*words: str) -> str:
    return rf"(?:{'|'.join(' '.join(words).split())})"


_DASH = r"\-\u2010-\u2015"
_COUNT = _any(
    "one two three four five six seven eight nine ten twelve fifteen eighteen twenty thirty forty fifty sixty ninety",
    "hundred ein eine einen einem einer zwei drei vier funf sechs sieben acht neun zehn zwolf dreissig vierzig funfzig",
    "sechzig neunzig hundert un une deux trois quatre cinq huit neuf dix douze trente quarante soixante cent dos tres",
    "cuatro cinco seis ocho nueve diez doce treinta cuarenta sesenta noventa cien",
)
_CODE = _any("aed aud brl cad chf cny czk dkk eur gbp hkd huf inr jpy krw mxn nok nzd pln sek sgd usd zar")
_COIN = _any("bucks cents dollars? dolares euros? francs? franken kc kr kronen kroner kronor rupees rupien yen yuan")
_SPAN = _any(
    "days? weeks? months? mos? years? yrs? tag(?:en?)? wochen? monat(?:en?)? jahr(?:en?)? jours? semaines? mois ans?",
    "dias? semanas? mes meses anos?",
)
_SIGN = r"[$€£¥\u20a0-\u20cf]"
# The last digit is enough, and a long row of digits costs no time.
_NUMBER = rf"(?:\d[.,\s]*|(?<!\w){_COUNT}(?!\w))[\s{_DASH}]*"
_TIME = re.compile(rf"{_NUMBER}{_SPAN}(?!\w)|\d\s*[日月年週]|(?<!\w)(?:after|due|in|within) \d+ ?d(?!\w)")
_ONLY_TIME = re.compile(rf"[\d.,\s]*{_NUMBER}{_SPAN}")
_MEASURED = re.compile(
    "|".join(
        (
            rf"\d[.,\s]*(?:[%‰٪]|{_SIGN}|pct(?!\w)|p\.c\.)",
            rf"{_SIGN}\s*\d|(?<!\w)(?:{_CODE}|euros?)\s*\d|{_NUMBER}(?:{_CODE}|{_COIN})(?!\w)",
            rf"(?<!\w)net[\s{_DASH}]*(?:\d|{_COUNT}(?!\w))|(?<![\w/])n ?/ ?\d",
            rf"(?:{_NUMBER}|(?<!\w)half )off(?![\w{_DASH}])",
            # Not `gate 4 is free`, `2 m free` or `37 oil free`.
            rf"{_NUMBER}(?:(?!(?:are|be|is|lead|m|metres|meters|oil) )[^\W\d]\w{{0,19}} ){{0,2}}free(?![\w{_DASH}])",
        )
    )
)
"""A number of terms: a share, an amount of money, `net 180`, `40 off`, `two units free`."""

_PRICED = re.compile(rf"[%‰٪]|{_SIGN}|(?<!\w)net \d")
_SEPARATORS = re.compile(rf"[_.:#{_DASH}]")
_RENEWAL = re.compile(r"(?<!\w)renewals?(?!\w)", re.IGNORECASE)
"""The kind of a deal, in its reference; in a note it is about terms."""

_MIXED = re.compile(r"[a-z][\u0370-\u03ff\u0400-\u04ff]|[\u0370-\u03ff\u0400-\u04ff][a-z]")
"""Letters of two scripts in one word, which look like another word."""
