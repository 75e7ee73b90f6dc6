"""Numbers with separators: read when they mean one thing, refused when they can mean two."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.written_numbers import in_plain_digits, marked

STYLES = {"en": ",.", "de": ".,", "ch": "'.", "fr": "\u202f,", "se": "\u00a0,", "plain": " ."}


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("1,234.50", "1234.50"),
        ("1.234,50", "1234.50"),
        ("1 234", "1234"),
        ("1'234.5", "1234.5"),
        ("1,234,567", "1234567"),
        ("1.234.567", "1234567"),
        ("1,5", "1.5"),
        ("0,125", "0.125"),
        ("12.345", "12.345"),
        ("-1.234,5", "-1234.5"),
        ("1,23,456", "1,23,456"),
        ("PLAN-1,5", "PLAN-1,5"),
    ],
)
def test_a_number_with_separators_is_read_where_it_means_one_thing(written: str, plain: str):
    assert in_plain_digits(written) == plain


@pytest.mark.parametrize("written", ["1,234", "-12,345", "999,000"])
def test_a_number_that_can_mean_two_things_is_refused_with_both(written: str):
    whole, fraction = written.replace(",", ""), written.replace(",", ".")
    with pytest.raises(ValueError, match=f"{written} can mean {whole} or {fraction}; write {whole}, or {fraction}0"):
        in_plain_digits(written)


def test_a_point_is_doubtful_only_in_a_file_with_decimal_commas():
    assert in_plain_digits("1.234") == "1.234"
    with pytest.raises(ValueError, match=r"can mean 1234 or 1\.234"):
        in_plain_digits(marked("1.234"))
    assert in_plain_digits(marked("1.2340")) == "1.2340"
    assert marked("1.234") == "1.234"  # As a text, it is the same.


@given(st.decimals(-(10**9), 10**9, places=2), st.sampled_from(sorted(STYLES)))
def test_an_amount_of_any_country_is_read_exactly_or_refused(amount: Decimal, style: str):
    group, point = tuple(STYLES[style])
    written = f"{amount:,.2f}".replace(".", "@").replace(",", group).replace("@", point)
    assert Decimal(in_plain_digits(written)) == amount


@given(st.integers(-(10**9), 10**9), st.sampled_from(sorted(STYLES)))
def test_a_whole_number_is_never_read_as_another_one(number: int, style: str):
    written = f"{number:,}".replace(",", STYLES[style][0])
    cell = marked(written) if style == "de" else written
    try:
        assert Decimal(in_plain_digits(cell)) == number
    except ValueError:
        assert written.count(STYLES[style][0]) == 1
