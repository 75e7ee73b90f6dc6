"""PURE. The language of a document: labels, and money, numbers and dates in the format of its locale."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any
from unicodedata import bidirectional

from babel import Locale, UnknownLocaleError, localedata
from babel.dates import format_date
from babel.numbers import NumberPattern

from cpq.base.errors import bad_field, nearest
from cpq.base.money import minor_digits
from cpq.base.text import without_hidden

UNIT_PRICE_DIGITS_MAX = 6
LANGUAGE_DEFAULT = "en"
WORD_LENGTH_MAX = 40
"""Length from which a word may be broken; layout time grows with the square of the length."""

ISOLATE, LTR_ISOLATE, POP_ISOLATE, ZERO_WIDTH_SPACE = "\u2068", "\u2066", "\u2069", "\u200b"
NO_BREAK_SPACE = "\u00a0"
PAYMENT_TERMS = re.compile(r"net_(\d{1,4})")

_MARKS = re.compile("[\u200e\u200f\u061c]")
_DIGIT_GROUPS = re.compile(r"\+?\(?\d[\d(). /-]{3,40}\d")
"""Telephone numbers and the like, whose groups would be reordered in right-to-left text."""

_RTL = "\u200e\u200f\u0590-\u065f\u066d-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
"""Characters of right-to-left scripts, but not their digits, and the marks of direction, as dates have them."""

_WORD = rf"(?:(?![{_RTL}_])\w)"
_RUN = re.compile(
    r"[\u2066-\u2068][^\u2066-\u2069]*\u2069"  # What is isolated already.
    # A sign belongs to its number; a plus, a percent or degree sign to what it follows.
    rf"|(?P<run>(?:[+±−-](?=\d))?{_WORD}(?:[^{_RTL}\u2066-\u2069]*(?:{_WORD}|[+%°]))?)(?P<ends>[)\]]*)"
)
"""Left-to-right text within right-to-left text: codes, names, figures with units, addresses."""

UNBROKEN_LENGTH_MAX = 24
"""Length up to which such text stays on one line: where a line begins within an isolate, the engine forgets it."""

_LONG_WORD = re.compile(rf"[^\s\u200b]{{{WORD_LENGTH_MAX + 1},}}")
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Tongue:
    """A locale and the labels of its language; formats every value of a page."""

    name: str
    """The locale as it is written, `de_CH`."""
    labels: Mapping[str, Any] = field(repr=False)
    locale: Locale = field(repr=False)

    @property
    def language(self) -> str:
        return str(self.locale.language)

    @property
    def tag(self) -> str:
        """For `lang` attributes: `de-CH`."""
        return self.name.replace("_", "-")

    @property
    def is_rtl(self) -> bool:
        return self.locale.text_direction == "rtl"

    def label(self, key: str, **values: object) -> str:
        """A label with its values filled in. A missing key is a bug of the label file; a test finds it."""
        text: str = self.labels[key]
        return text.format(**values) if values else text

    def word(self, kind: str, name: str) -> str:
        """The name of a spec, a unit or a choice in this language; without a label, the name itself with spaces."""
        known = self.labels.get(kind, {}).get(name)
        if known is not None:
            return str(known)
        plain = name.replace("_", " ")
        return plain[:1].upper() + plain[1:] if kind == "specs" else plain

    def text(self, value: object) -> str:
        """A free text: without control and hidden characters, with breakable long words, isolated in its direction."""
        plain = _LONG_WORD.sub(_breakable, without_hidden(_NO_TEXT.sub("", str(value))))
        return self.isolated(plain)

    def isolated(self, value: str) -> str:
        """The value; in a right-to-left document each line is isolated in its own direction, and so is left-to-right
        text within a line: otherwise `30 HP` is read `HP 30`, and the stops of `C++` change sides."""
        if not self.is_rtl or not value:
            return value
        return "\n".join(map(_isolated_line, value.split("\n")))

    def side(self, value: str) -> str:
        """`ltr` for a left-to-right text in a right-to-left document, else nothing."""
        return "ltr" if self.is_rtl and _first_direction(value) == "L" else ""

    def figure(self, value: str) -> str:
        """Digits and signs, which run from left to right in every language."""
        return f"{LTR_ISOLATE}{_MARKS.sub('', value)}{POP_ISOLATE}" if self.is_rtl else value

    def amount(self, number: Decimal | int, currency: str) -> str:
        """An amount without its currency, for a column whose heading names it: `1,350.00`."""
        return self.figure(_decimals(self.locale, minor_digits(currency)).apply(Decimal(number), self.locale))

    def money(self, number: Decimal | int, currency: str) -> str:
        """An amount with its currency: `$1,350.00`."""
        pattern = _currencies(self.locale, minor_digits(currency))
        return self.figure(pattern.apply(Decimal(number), self.locale, currency=currency, currency_digits=False))

    def unit_price(self, number: Decimal | int, currency: str) -> str:
        """A unit price with all its decimals, at least those of the currency."""
        exact = Decimal(number)
        needed = -int(exact.normalize().as_tuple().exponent) if exact else 0
        digits = min(max(minor_digits(currency), needed), UNIT_PRICE_DIGITS_MAX)
        return self.figure(_decimals(self.locale, digits).apply(exact, self.locale))

    def number(self, number: Decimal | int) -> str:
        """A quantity or a measure, with all its digits."""
        exact = Decimal(number)
        needed = max(0, -int(exact.normalize().as_tuple().exponent)) if exact else 0
        return self.figure(_decimals(self.locale, needed).apply(exact, self.locale))

    def percent(self, number: Decimal | int) -> str:
        exact = Decimal(number)
        needed = max(0, -int(exact.normalize().as_tuple().exponent)) if exact else 0
        pattern = copy.copy(self.locale.percent_formats[None])
        pattern.frac_prec = (needed, needed)
        return self.figure(pattern.apply(exact / 100, self.locale))

    def day(self, day: date, *, is_short: bool = False) -> str:
        return self.isolated(format_date(day, format="medium" if is_short else "long", locale=self.locale))

    def payment_terms(self, terms: str) -> str:
        """`net_30` in words; other terms as the seller calls them."""
        if found := PAYMENT_TERMS.fullmatch(terms):
            return self.label("payment_net", days=int(found[1]))
        return self.text(self.word("words", terms))


def choose_locale(wanted: str | None, accounts: str, languages: Collection[str]) -> str:
    """The locale of a document: the requested one, else the account's, else English for the account's country.

    VALIDATION_ERROR when there are no labels for the requested one.
    """
    if wanted is None:
        return _parsed(accounts, languages) or _in_english(accounts)
    found = _parsed(wanted, languages)
    if found is None:
        near = nearest(wanted, languages)
        raise bad_field(
            "/locale",
            f"There are no documents in {wanted!r}.",
            allowed=sorted(languages),
            nearest=near or None,
            hint="Give a language, or a language with a country: de, de_CH.",
        )
    return found


def parse_locale(name: str) -> Locale:
    return Locale.parse(name)


def _parsed(name: str, languages: Collection[str]) -> str | None:
    written = name.strip().replace("-", "_")
    language, _, territory = written.partition("_")
    written = f"{language.lower()}_{territory.upper()}" if territory else language.lower()
    if language.lower() not in languages or not _exists(written):
        return None
    return written


def _in_english(account_locale: str) -> str:
    territory = account_locale.replace("-", "_").partition("_")[2].upper()
    written = f"{LANGUAGE_DEFAULT}_{territory}"
    return written if territory and _exists(written) else LANGUAGE_DEFAULT


def _exists(written: str) -> bool:
    if not re.fullmatch(r"[a-z]{2,3}(_[A-Z0-9]{2,3})?", written) or not localedata.exists(written):
        return False
    try:
        Locale.parse(written)
    except (UnknownLocaleError, ValueError):
        return False
    return True


def _first_direction(value: str) -> str:
    """The direction of the first letter, which decides that of the text: L, R or AL; empty without letters."""
    return next((kind for kind in map(bidirectional, _MARKS.sub("", value)) if kind in ("L", "R", "AL")), "")


def _isolated_line(line: str) -> str:
    if not line:
        return ""
    if _first_direction(line) in ("R", "AL"):
        line = _RUN.sub(_isolated_run, line)
    else:
        line = _DIGIT_GROUPS.sub(rf"{LTR_ISOLATE}\g<0>{POP_ISOLATE}", line)
    return f"{ISOLATE}{line}{POP_ISOLATE}"


def _isolated_run(found: re.Match[str]) -> str:
    """The run in an isolate, with the brackets that it opened: `SKU-12 (A)`."""
    run, ends = found["run"], found["ends"] or ""
    if run is None:
        return found[0]
    own = min(len(ends), max(0, sum(map(run.count, "([")) - sum(map(run.count, ")]"))))
    run += ends[:own]
    if len(run) <= UNBROKEN_LENGTH_MAX:
        run = run.replace(" ", NO_BREAK_SPACE)
    return f"{LTR_ISOLATE}{run}{POP_ISOLATE}{ends[own:]}"


def _breakable(found: re.Match[str]) -> str:
    word = found[0]
    parts = [word[start : start + WORD_LENGTH_MAX // 2] for start in range(0, len(word), WORD_LENGTH_MAX // 2)]
    return ZERO_WIDTH_SPACE.join(parts)


@lru_cache(maxsize=256)
def _decimals(locale: Locale, digits: int) -> NumberPattern:
    pattern: NumberPattern = copy.copy(locale.decimal_formats[None])
    pattern.frac_prec = (digits, digits)
    return pattern


@lru_cache(maxsize=256)
def _currencies(locale: Locale, digits: int) -> NumberPattern:
    """With the digits of ISO 4217: CLDR has others for a dozen currencies."""
    pattern: NumberPattern = copy.copy(locale.currency_formats["standard"])
    pattern.frac_prec = (digits, digits)
    return pattern
