"""Billing periods: one spelling for each, any number of weeks, months and years, and how many fit into a term."""

from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.errors import CpqError
from cpq.domain.billing_periods import MONTHS_MAX, WEEKS_MAX, all_spellings, counted, length, spelling
from cpq.domain.pricing.request import Request
from cpq.domain.pricing.selling_models import fits, in_one_word
from cpq.domain.pricing.terms import Terms, add_months, weeks_factor
from tests.support.random_quotes import PART_PERIODS


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("one_time", "one_time"),
        ("week", "weekly"),
        ("Month", "monthly"),
        ("monthly", "monthly"),
        ("half_year", "half_yearly"),
        ("half-year", "half_yearly"),
        ("1 year", "yearly"),
        ("12 months", "yearly"),
        ("4 quarters", "yearly"),
        ("2_half_years", "yearly"),
        ("3 half years", "18_months"),
        ("18 months", "18_months"),
        ("24 months", "2_years"),
        ("2 weeks", "2_weeks"),
        ("52 weeks", "52_weeks"),
        ("120 months", "10_years"),
        ("121 months", None),
        ("521 weeks", None),
        ("0 weeks", None),
        ("-2 weeks", None),
        ("2", None),
        ("fortnight", None),
        ("2 days", None),
        ("", None),
    ],
)
def test_g01_a_period_has_one_spelling_whoever_writes_it(given_: str, expected: str | None):
    assert spelling(given_) == expected


def test_g01_every_spelling_has_a_length_of_its_own_and_is_its_own_spelling():
    words = all_spellings() - {"one_time"}
    assert len(words) == MONTHS_MAX + WEEKS_MAX
    assert len({length(word) for word in words}) == len(words)
    assert all(spelling(word) == word and counted(word)[0] >= 1 for word in words)
    assert length("one_time") is None
    assert length("2-weeks") is None, "only the one spelling is stored"


@given(
    st.dates(date(2019, 1, 1), date(2033, 12, 31)),
    st.integers(1, 800),
    st.integers(1, 60),
    st.sampled_from(PART_PERIODS[1:]),
)
def test_g01_weeks_are_days_and_whole_weeks_count_one_in_every_mode(start: date, days: int, weeks: int, mode: str):
    end = start + timedelta(days=days)
    found = weeks_factor(mode, start, end, weeks)
    exact = Fraction(days, 7 * weeks)
    assert found == exact if mode != "whole_months_up" or days % 7 == 0 else exact < found < exact + Fraction(1, weeks)
    assert weeks_factor("whole_months", start, start + timedelta(days=7 * days), weeks) == Fraction(days, weeks)


@given(
    st.dates(date(2019, 1, 1), date(2030, 12, 31)),
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from(PART_PERIODS),
)
def test_g01_segments_of_a_weekly_price_tile_its_term(start: date, first: int, second: int, mode: str):
    whole = Request("USD", "2026-01-31", (), {}, (), {}, term_months=first + second, starts_on=start.isoformat())
    terms = Terms(whole._replace(part_periods=mode))
    parts = [terms.of("2_weeks", 0, first), terms.of("2_weeks", first, second), terms.of("2_weeks")]
    before, after, both = (Fraction(term.periods, term.of) for term in parts)
    assert before + after == both
    days = (add_months(start, first + second) - start).days
    assert both == Fraction(days, 14) if mode != "whole_months_up" else Fraction(-(-days // 7), 2)


def test_g01_a_part_week_of_a_part_month_is_refused_where_only_whole_months_are_sold():
    with pytest.raises(CpqError) as refused:
        weeks_factor("whole_months", date(2026, 3, 1), date(2026, 3, 21), 1)
    assert refused.value.details["field"] == "/end_date"
    assert weeks_factor("whole_months", date(2026, 3, 1), date(2026, 4, 1), 1) == Fraction(31, 7)


@pytest.mark.parametrize(
    ("model", "selling_model", "billing_period"),
    [
        ("monthly", "term", "month"),
        ("monthly", None, "month"),
        ("monthly", "monthly", "month"),
        ("monthly_evergreen", "evergreen", "month"),
        ("monthly_evergreen", "monthly_evergreen", "1 month"),
        ("2_weeks", "term", "2 weeks"),
        ("yearly:prepaid", "term", "year"),
        ("yearly:prepaid", "prepaid", "year"),
        ("yearly:prepaid", "yearly:prepaid", "12 months"),
        ("18_months_evergreen:slow", "slow", "18_months"),
        ("one_time", "one_time", None),
        ("one_time", "one_time", "one_time"),
    ],
)
def test_g01_a_line_gives_the_model_and_the_period_apart(
    model: str, selling_model: str | None, billing_period: str | None
):
    asked = in_one_word(selling_model, billing_period)
    assert asked is not None
    assert fits(model, asked)


@pytest.mark.parametrize(
    ("model", "selling_model", "billing_period"),
    [
        ("monthly_evergreen", "term", "month"),
        ("monthly", "evergreen", "month"),
        ("yearly", "term", "month"),
        ("yearly", "yearly", "month"),
        ("yearly:prepaid", "other", "year"),
        ("weekly", "term", "2 weeks"),
    ],
)
def test_g01_model_and_period_must_both_fit(model: str, selling_model: str, billing_period: str):
    asked = in_one_word(selling_model, billing_period)
    assert asked is not None
    assert not fits(model, asked)
