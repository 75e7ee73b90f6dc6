"""PURE. How many units of a product a quote has at once, for tiers that are counted over the quote."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from cpq.base.rounding import Exact
from cpq.domain.pricing.request import Line, LineTerm, Request, exact, largest_quantity

Span = tuple[int, int]
"""Months of the term, counted from 0, without the last one."""


class Stretch(NamedTuple):
    """A run of months with the same quantity."""

    first: int
    last: int
    quantity: Exact


class Counts:
    """The units of each product over the whole quote, including those in bundles."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._once: dict[str, Exact] = {}
        self._during: dict[tuple[str, LineTerm | None], dict[Span, Exact]] = {}
        self._whole: dict[LineTerm | None, Span] = {}

    def whole(self, term: LineTerm | None) -> Span:
        """All months of a term; without a number of months, those of the longest ramp."""
        found = self._whole.get(term)
        if found is None:
            months = term.months if term else self._request.term_months
            ramps = [sum([part.months for part in line.ramp]) for line in self._request.lines if line.term == term]
            found = self._whole[term] = 0, months or max(ramps)
        return found

    @cached_property
    def _uses(self) -> Mapping[str, Sequence[tuple[Line, int]]]:
        """The lines that have a product, and how many of it each of their units contains."""
        uses = defaultdict(list)
        for line in self._request.lines:
            key = line.priced_as or line.product_id
            uses[key].append((line, 1))
            if line.chosen or self._request.products[key].components:
                for component in (*self._request.products[key].components, *line.charged):
                    uses[component.product_id].append((line, component.quantity))
        return uses

    def once(self, product_id: str) -> Exact:
        """The units of a one-time price: every line pays for its largest quantity."""
        found = self._once.get(product_id)
        if found is None:
            uses = self._uses[product_id]
            found = sum([exact(largest_quantity(line.quantity, line.ramp)) * each for line, each in uses])
            self._once[product_id] = found
        return found

    def during(self, product_id: str, span: Span, term: LineTerm | None = None) -> Exact:
        """The units of a recurring price: the sum of each line's smallest quantity in any month of a span.

        So units of one month make no other month cheaper. The span is one of a line with the product. Lines with dates
        of their own count only with those of the same dates.
        """
        found = self._during.get((product_id, term))
        if found is None:
            uses = [use for use in self._uses[product_id] if use[0].term == term]
            found = self._during[product_id, term] = self._count(uses, self.whole(term))
        return found[span]

    def _count(self, uses: Sequence[tuple[Line, int]], whole: Span) -> dict[Span, Exact]:
        ramps = [_stretches(line, each) for line, each in uses if line.ramp]
        always = sum([exact(line.quantity) * each for line, each in uses if not line.ramp])
        spans = {whole, *((stretch.first, stretch.last) for ramp in ramps for stretch in ramp)}
        return {span: always + units for span, units in least_together(spans, ramps).items()}


def least_together(spans: Iterable[Span], ramps: Sequence[Sequence[Stretch]]) -> dict[Span, Exact]:
    """For each span, the sum of the smallest quantities of all ramps in it; months after a ramp count zero.

    One sweep over the months, so that a thousand ramps of different lengths are not compared in pairs.
    """
    ends = [Stretch(ramp[-1].last, ramp[-1].last, 0) for ramp in ramps]
    begins = sorted(
        ((stretch, number) for number, ramp in enumerate(ramps) for stretch in (*ramp, ends[number])), reverse=True
    )
    least: list[Exact] = [0] * (max([stretch.last for stretch in ends], default=0) + 1)
    """By the first month of a span, for spans that end at the current month of the sweep."""
    lows: list[list[tuple[int, Exact]]] = [[] for _ in ramps]
    """For each ramp, the smallest quantities so far, each with the first month it applies from; both rise."""
    found: dict[Span, Exact] = {}
    for span in sorted(spans, key=itemgetter(1)):
        while begins and begins[-1][0].first < span[1]:
            stretch, number = begins.pop()
            _begin(stretch, lows[number], least)
        found[span] = least[span[0]]
    return found


def _begin(stretch: Stretch, lows: list[tuple[int, Exact]], least: list[Exact]) -> None:
    first, last, quantity = stretch
    least[first:last] = [units + quantity for units in least[first:last]]
    start = first
    while lows and lows[-1][1] > quantity:
        end, (start, more) = start, lows.pop()
        least[start:end] = [units + quantity - more for units in least[start:end]]
    lows.append((start, quantity))


def _stretches(line: Line, each: int) -> list[Stretch]:
    stretches, first = [], 0
    for segment in line.ramp:
        last = first + segment.months
        stretches.append(Stretch(first, last, exact(segment.quantity or line.quantity) * each))
        first = last
    return stretches
