"""The numbers in the sentence of a violation: their currency, their decimals, and never so few that they mislead."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.policy.evaluation import evaluate
from cpq.domain.policy.facts import LineFacts, QuoteFacts, Unit
from cpq.domain.policy.violation_text import Measure, filled
from tests.support.policies import policies

DOLLARS = Measure(Unit.VALUE, "USD", "USD", Decimal(1))
EUROS = Measure(Unit.VALUE, "USD", "EUR", Decimal("1.08"))
MARGIN = Measure(Unit.PERCENT, "USD", "USD", Decimal(1), is_margin=True)


def said(actual: str | None, threshold: str, measure: Measure) -> str:
    number = None if actual is None else Decimal(actual)
    return filled("{actual} against {threshold}", actual=number, threshold=Decimal(threshold), measure=measure)


@pytest.mark.parametrize(
    ("actual", "threshold", "measure", "text"),
    [
        ("145422", "100000", EUROS, "USD 145,422.00 (EUR 134,650.00) against USD 100,000.00"),
        ("145422", "100000", DOLLARS, "USD 145,422.00 against USD 100,000.00"),
        ("100000.001", "100000", DOLLARS, "USD 100,000.001 against USD 100,000.00"),
        (None, "100000", EUROS, "unknown against USD 100,000.00"),
        ("1340000", "900000", Measure(Unit.AMOUNT, "USD", "JPY", None), "JPY 1,340,000 against JPY 900,000"),
        ("8.333333", "10", MARGIN, "8.3 against 10"),
        ("8", "10", MARGIN, "8.0 against 10"),
        ("9.96", "10", MARGIN, "9.96 against 10"),
        ("-3.4483", "10", MARGIN, "-3.4 against 10"),
        ("33.333333", "30", replace(MARGIN, is_margin=False), "33.3333 against 30"),
        ("190000", "1000", Measure(Unit.PIECES, "USD", "USD", None), "190,000 against 1,000"),
    ],
)
def test_a_number_is_written_for_people(actual: str | None, threshold: str, measure: Measure, text: str):
    assert said(actual, threshold, measure) == text


limits = st.decimals(-1000, 10**9, places=2)


@given(limits, st.integers(1, 10**6), st.booleans(), st.sampled_from([DOLLARS, EUROS, MARGIN]))
def test_what_is_past_a_limit_never_looks_like_it(limit: Decimal, past: int, is_over: bool, measure: Measure):
    apart = Decimal(past).scaleb(-6)
    text = filled("{actual}", actual=limit + apart if is_over else limit - apart, threshold=limit, measure=measure)
    shown = Decimal(text.partition(" (")[0].removeprefix("USD ").replace(",", ""))
    assert (shown > limit) if is_over else (shown < limit)


def test_a_sum_over_the_lines_is_in_the_currency_of_the_quote():
    rule = """
rules:
  - id: saas
    when: sum(line.net for line in lines) > 1000
    then: {severity: warning, message: "{actual} is above {threshold}"}
"""
    facts = QuoteFacts(currency="EUR", lines=(LineFacts(net=Decimal(800)), LineFacts(net=Decimal("900.5"))))
    [violation] = evaluate(policies(discounts=rule), facts).violations
    assert (violation.description, violation.unit) == ("EUR 1,700.50 is above EUR 1,000.00", "EUR")
