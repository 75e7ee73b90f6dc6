"""PURE. What a priced change does to an agreement in money: what it gives back, and how far it raises prices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from cpq.base.rounding import MinorUnit
from cpq.domain.agreements.kept_prices import yearly_of_lines
from cpq.domain.pricing.request import ONE_HUNDRED_PERCENT, Request
from cpq.domain.pricing.result import PricedQuote
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.quote import QuoteLine


def arr_change(lines: Iterable[DraftLine | QuoteLine], request: Request, priced: PricedQuote) -> int:
    """By how much the recurring revenue of a year changes; a line with several runs of days counts with its first."""
    firsts: dict[object, tuple[str, int]] = {}
    for line in lines:
        if line.special and (agreed := line.special.agreed):
            key = (agreed.agreement_id, agreed.line_id) if agreed.line_id else line.number
            firsts.setdefault(key, (str(line.number), agreed.yearly_before))
    yearly = yearly_of_lines(request, priced)
    after = sum([yearly.get(number, Fraction(0)) for number, _ in firsts.values()], Fraction(0))
    return MinorUnit(request.currency, request.rounding).round(after) - sum([before for _, before in firsts.values()])


def given_back(draft: Draft, priced: PricedQuote) -> int:
    """What lines that get cheaper or end give back. Each counts by itself: one that grows hides none that shrinks."""
    return sum([back for _, back in _given_back(draft, priced)])


def given_back_beyond_terms(draft: Draft, priced: PricedQuote) -> int:
    """The part of it that the end of these lines would not give back, never too small."""
    return sum(
        [-(-back * line.agreed.bound // line.agreed.credit) for line, back in _given_back(draft, priced) if line.agreed]
    )


def _given_back(draft: Draft, priced: PricedQuote) -> Iterator[tuple[DraftLine, int]]:
    nets = {line.id: line.net for line in priced.lines}
    for line in draft.lines:
        if line.agreed and line.agreed.credit > nets[str(line.number)]:
            yield line, line.agreed.credit - nets[str(line.number)]


def missing_uplift(draft: Draft, request: Request, priced: PricedQuote, standard: int) -> int:
    """By how much prices for days after the old end are raised less than the standard, in millionths of a percent."""
    if not any(line.agreed and line.agreed.prolongs for line in draft.lines):
        return 0
    return max(0, standard - uplift(draft, request, priced))


def uplift(draft: Draft, request: Request, priced: PricedQuote) -> int:
    """By how much prices are raised after the discount on the quote, in millionths of a percent; 0 if nothing goes on.

    A price that is kept follows the percentages exactly. Another one is measured by its revenue of a year, before and
    after: of the lines that go on, the one that is raised least.
    """
    assert draft.agreement is not None
    lines = [line for line in draft.lines if line.agreed and line.agreed.prolongs]
    if all(line.agreed and line.agreed.basis for line in lines) and not request.requested_amount:
        kept = (ONE_HUNDRED_PERCENT + draft.agreement.uplift) * (ONE_HUNDRED_PERCENT - request.requested_discount)
        return kept // ONE_HUNDRED_PERCENT - ONE_HUNDRED_PERCENT
    yearly = yearly_of_lines(request, priced)
    raised = [
        round(yearly.get(str(line.number), Fraction(0)) * ONE_HUNDRED_PERCENT / line.agreed.yearly_before)
        for line in lines
        if line.agreed and line.agreed.yearly_before
    ]
    return min(raised, default=ONE_HUNDRED_PERCENT) - ONE_HUNDRED_PERCENT
