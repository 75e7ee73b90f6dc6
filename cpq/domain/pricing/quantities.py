"""PURE. How many units of a product a quote has at once: what tiers that are counted over the quote go by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from cpq.domain.pricing.request import Line, Request, largest_quantity

Span = tuple[int, int]
"""Months of the term, counted from 0; the last one is not in it."""


class Stretch(NamedTuple):
    """Some months in which a quantity stays the same."""

    first: int
    last: int
    quantity: int


class Counts:
    """The units of each product over the whole quote, inside bundles too."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._once: dict[str, int] = {}
        self._during: dict[str, dict[Span, int]] = {}

    @cached_property
    def term(self) -> Span:
        """All months; without a number of months, as many as the longest ramp has."""
        ramps = [sum([segment.months for segment in line.ramp]) for line in self._request.lines]
        return 0, self._request.term_months or max(ramps)

    @cached_property
    def _uses(self) -> Mapping[str, Sequence[tuple[Line, int]]]:
        """Which lines have a product, and how many of it are in each of their units."""
        uses = defaultdict(list)
        for line in self._request.lines:
            uses[line.product_id].append((line, 1))
            for component in self._request.products[line.product_id].components:
                uses[component.product_id].append((line, component.quantity))
        return uses

    def once(self, product_id: str) -> int:
        """Of what is paid once: every line pays for its largest quantity."""
        found = self._once.get(product_id)
        if found is None:
            found = sum([largest_quantity(line.quantity, line.ramp) * each for line, each in self._uses[product_id]])
            self._once[product_id] = found
        return found

    def during(self, product_id: str, span: Span) -> int:
        """Of what recurs: for each line the smallest quantity that it has in any month of a span.

        So units that are there for a month make no other month cheaper. The span is one of a line with the product.
        """
        found = self._during.get(product_id)
        if found is None:
            found = self._during[product_id] = self._count(self._uses[product_id])
        return found[span]

    def _count(self, uses: Sequence[tuple[Line, int]]) -> dict[Span, int]:
        ramps = [_stretches(line, each) for line, each in uses if line.ramp]
        always = sum([line.quantity * each for line, each in uses if not line.ramp])
        spans = {self.term, *((stretch.first, stretch.last) for ramp in ramps for stretch in ramp)}
        return {span: always + units for span, units in least_together(spans, ramps).items()}


def least_together(spans: Iterable[Span], ramps: Sequence[Sequence[Stretch]]) -> dict[Span, int]:
    """For each span, the smallest quantity of every ramp in it, added up; months after a ramp have nothing.

    One sweep over the months, so that a thousand ramps of other lengths do not have to be compared in pairs.
    """
    ends = [Stretch(ramp[-1].last, ramp[-1].last, 0) for ramp in ramps]
    begins = sorted(
        ((stretch, number) for number, ramp in enumerate(ramps) for stretch in (*ramp, ends[number])), reverse=True
    )
    least = [0] * (max([stretch.last for stretch in ends], default=0) + 1)
    """By the month in which a span begins, for spans that end where the sweep has come to."""
    lows: list[list[tuple[int, int]]] = [[] for _ in ramps]
    """For each ramp, from which first month on which quantity is the smallest so far; both rise."""
    found: dict[Span, int] = {}
    for span in sorted(spans, key=itemgetter(1)):
        while begins and begins[-1][0].first < span[1]:
            stretch, number = begins.pop()
            _begin(stretch, lows[number], least)
        found[span] = least[span[0]]
    return found


def _begin(stretch: Stretch, lows: list[tuple[int, int]], least: list[int]) -> None:
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
        stretches.append(Stretch(first, last, (segment.quantity or line.quantity) * each))
        first = last
    return stretches
