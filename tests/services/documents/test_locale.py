"""How documents speak: every label in every language, and figures that read back as what they were."""

import re
import string
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from babel.numbers import parse_decimal
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.errors import CpqError
from cpq.base.money import MINOR_DIGITS
from cpq.base.text import without_hidden
from cpq.services.documents.locale import Tongue, choose_locale
from tests.support.papers import design, plain

LANGUAGES = ("ar", "de", "en", "es", "fr", "ja")
LOCALES = ("en_US", "en_IN", "de_DE", "de_CH", "fr_FR", "fr_CA", "es_ES", "es_MX", "ja_JP", "ar_AE", "ar_EG")
ENGLISH_WORDS_ARE_PLAIN = "words"


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_there_are_six_languages():
    assert tuple(sorted(design().labels)) == LANGUAGES
    assert set(design().brand.texts) == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_label_file_has_every_label_with_its_places(language: str):
    labels, english = design().labels[language], design().labels["en"]
    assert set(labels) == set(english)
    for key, text in english.items():
        if isinstance(text, dict):
            if key != ENGLISH_WORDS_ARE_PLAIN:  # What a file lacks of these is written out in English.
                assert set(labels[key]) == set(text), key
        else:
            assert placeholders(labels[key]) == placeholders(text), key
            assert language == "en" or labels[key] != "" or text in ("", "Page ") or key.startswith("page_"), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_character_of_labels_and_texts_can_be_printed(language: str):
    texts = design().brand.texts[language]
    written = str(design().labels[language]) + str(texts)
    assert not re.search(r"[\ud800-\udfff\U0001f000-\U0001ffff]", written)


amounts = st.decimals(min_value=-(10**13), max_value=10**13, places=4, allow_nan=False, allow_infinity=False)


@given(st.sampled_from(LOCALES), st.sampled_from(sorted(MINOR_DIGITS)), amounts)
def test_an_amount_reads_back_as_what_it_was(locale: str, currency: str, amount: Decimal):
    tongue = design().tongue(locale)
    exact = amount.quantize(Decimal(1).scaleb(-MINOR_DIGITS[currency]))
    for written in (tongue.amount(exact, currency), tongue.money(exact, currency)):
        digits = re.sub(r"[^\d.,’\-]", "", plain(written).replace(tongue_symbol(tongue, currency), ""))
        assert parse_decimal(digits.strip(".,"), locale=locale) == exact


def tongue_symbol(tongue: Tongue, currency: str) -> str:
    symbol: str = tongue.locale.currency_symbols.get(currency, currency)
    return symbol


@given(st.sampled_from(LOCALES), st.decimals(min_value=0, max_value=10**9, places=6))
def test_a_unit_price_and_a_percentage_keep_every_digit(locale: str, number: Decimal):
    tongue = design().tongue(locale)
    for written in (tongue.unit_price(number, "USD"), tongue.number(number), tongue.percent(number)):
        digits = re.sub(r"[^\d.,’]", "", plain(written))
        assert parse_decimal(digits, locale=locale) == number


@given(st.sampled_from(LOCALES), st.text())
def test_any_text_can_be_set_and_keeps_its_words(locale: str, text: str):
    written = design().tongue(locale).text(text)
    assert max(map(len, re.split(r"[\s\u200b]", written)), default=0) <= 60
    kept = without_hidden(re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "", text))
    assert plain(written).replace("\u00a0", " ") == plain(kept).replace("\u00a0", " ")  # Codes stay on one line.
    assert written.count("\u2068") + written.count("\u2066") == written.count("\u2069")


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("ضاغط SKU-12 (A) بقدرة 30 HP.", ["SKU-12 (A)", "30 HP"]),
        ("ضغط 100 psi (6.9 bar)، C++", ["100 psi (6.9 bar)", "C++"]),
        ("راسلونا: a-b@c.example أو https://c.example/a?b=1.", ["a-b@c.example", "https://c.example/a?b=1"]),
        ("هاتف: +971 4 555 0142", ["+971 4 555 0142"]),
        ("ضاغط (QMB) عند -5 °C", ["QMB", "-5 °C"]),
        ("خصم 5%", ["5%"]),
        ("بلا رموز", []),
    ],
)
def test_latin_codes_figures_and_addresses_are_isolated_within_arabic(text: str, runs: list[str]):
    """`30 HP` was read `HP 30`, and `C++` as `++C`."""
    for tongue in (design().tongue("ar_AE"), design().tongue("ar_EG")):
        written = tongue.text(text)
        assert re.findall("\u2066(.*?)\u2069", written.replace("\u00a0", " ")) == runs
        assert tongue.isolated(written).replace("\u2068", "").count("\u2066") == len(runs)  # Not twice.
    assert design().tongue("de").text(text) == text


def test_a_date_of_figures_keeps_the_order_that_its_marks_give_it():
    assert design().tongue("ar_AE").day(date(2026, 11, 16), is_short=True) == "\u206816\u200f/11\u200f/2026\u2069"


def test_each_line_of_a_text_has_its_own_direction():
    written = design().tongue("ar").text("ضاغط 30 HP\nUse 30 HP with ضاغط now.")
    assert written == "\u2068ضاغط \u206630\u00a0HP\u2069\u2069\n\u2068Use 30 HP with ضاغط now.\u2069"


def test_money_follows_iso_4217_and_not_what_people_round_to():
    tongue = design().tongue("en_US")
    assert tongue.money(Decimal("1.234"), "IQD").endswith("1.234")
    assert tongue.money(1234, "JPY") == "¥1,234"
    assert design().tongue("de_CH").amount(Decimal("1234567.5"), "CHF") == "1’234’567.50"
    assert tongue.percent(Decimal("8.25")) == "8.25%"


@pytest.mark.parametrize(
    ("wanted", "account", "chosen"),
    [
        (None, "de_DE", "de_DE"),
        (None, "nl_NL", "en_NL"),
        (None, "pt_BR", "en"),
        ("fr", "de_DE", "fr"),
        ("fr-ca", "de_DE", "fr_CA"),
        ("DE_ch", "en_US", "de_CH"),
    ],
)
def test_the_call_decides_over_the_account_and_english_fills_in(wanted: str | None, account: str, chosen: str):
    assert choose_locale(wanted, account, LANGUAGES) == chosen


@pytest.mark.parametrize("wanted", ["nl", "xx", "de_XX", "de_DE_1996", "../en", "e", "de;", "en_US.UTF-8"])
def test_a_language_without_labels_is_refused(wanted: str):
    with pytest.raises(CpqError) as refused:
        choose_locale(wanted, "de_DE", LANGUAGES)
    details: dict[str, Any] = refused.value.details
    assert details["allowed"] == list(LANGUAGES)
