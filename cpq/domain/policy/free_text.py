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
    "discount*", "exclusiv*", "for free", "free of charge", "free deliver*", "free ship*", "gratis",
    "guarantee*", "indemn*", "liab*", "money back", "paid", "pay", "payable*", "payback*", "payment*",
    "penalt*", "per cent", "percent*", "price*", "pricing", "rebate*", "refund*", "reimburs*", "renew*",
    "repay*", "side letter*", "terminat*", "waive*", "waiving", "warrant*", "erstatt*", "garanti*",
    "gutschrift*", "haftung*", "kostenlos*", "kundig*", "nachlass*", "preis*", "prozent*", "rabatt*",
    "skonto*", "zahlung*", "gratuit*", "paiement*", "penalit*", "pour cent", "prix", "rabais", "rembours*",
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

        A value or a name such as `RAL 9010` or `3 years` is data, so its number does not count; terms do.
        """
        free = [line for text in texts for line in text.splitlines() if line.strip() and not self._is_clause(line)]
        named = [value for value in values if value.strip() and not self._is_clause(value)]
        if not free and not named:
            return NO_FREE_TEXT
        return FreeTextFacts(
            has_free_text=True,
            free_text_has_numbers=any(map(_has_digit, free)),
            # Joined, so that a line break separates no number from its unit.
            free_text_has_terms=bool(_TIME.search(_folded(" ".join(free))))
            or any(map(self._holds_terms, (" ".join(free), *named))),
        )

    def _is_clause(self, line: str) -> bool:
        return _folded(line) in self._known

    def _holds_terms(self, text: str) -> bool:
        plain = _folded(text)
        return bool(_MEASURED.search(plain) or _MIXED.search(plain) or self._pattern.search(plain))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(_folded(line) for text in self.clauses.values() for line in text.splitlines())

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        words = sorted(map(_folded, self.terms_words))
        spaced = [re.escape(word).replace(r"\*", r"\w*") for word in words if word[0].isascii()]
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


_TIME = re.compile(
    r"\d[\d.,\s]*(?:(?:days?|weeks?|months?|years?|tagen?|wochen?|monaten?|jahren?|jours?|semaines?|mois|ans?|dias?|semanas?"
    r"|mes|meses|anos?)(?!\w)|[日月年週])"
)

_MONEY = "usd|eur|gbp|jpy|chf"
_MEASURED = re.compile(rf"\d[\d.,\s]*(?:(?:{_MONEY})(?!\w)|[%‰٪$€£¥])|[$€£¥]\s*\d|(?<!\w)(?:net|{_MONEY})\s*\d")
"""A number of terms: a share, an amount of money, `net 180`."""

_MIXED = re.compile(r"[a-z][\u0370-\u03ff\u0400-\u04ff]|[\u0370-\u03ff\u0400-\u04ff][a-z]")
"""Letters of two scripts in one word, which look like another word."""
