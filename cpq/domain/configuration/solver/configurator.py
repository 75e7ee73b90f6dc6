"""Answers about the configuration of one product: valid or not and why, the nearest valid ones, what is still possible.

Every answer is a function of the model and the question alone. No solver version, hash seed, order of the choices or
earlier question changes it. A question that takes too much work is answered with what is known, marked as timed out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from cpq.domain.configuration.model import Model
from cpq.domain.configuration.options import Scalar
from cpq.domain.configuration.solver import costs
from cpq.domain.configuration.solver.costs import Costs, Surcharges
from cpq.domain.configuration.solver.encoded_model import Encoding
from cpq.domain.configuration.solver.kernel import GLUCOSE, Effort, OutOfEffortError
from cpq.domain.configuration.solver.open_values import Remaining
from cpq.domain.configuration.solver.optimum import Optimiser
from cpq.domain.configuration.solver.question import Question
from cpq.domain.configuration.solver.verdicts import (
    Choice,
    Conflict,
    Domains,
    Goal,
    Suggestion,
    Suggestions,
    Verdict,
)

CONFLICTS_MAX = 10
REASONS_MAX = 200
CONFLICTS_OF_SEARCH_MAX = 20_000
PROPAGATIONS_MAX = 30_000_000
"""The work for one question: some seconds at most."""


def effort_of_question() -> Effort:
    """For several questions that may together take what one may."""
    return Effort(CONFLICTS_OF_SEARCH_MAX, PROPAGATIONS_MAX)


class Configurator:
    """A compiled model. It has no state that a question changes: one serves any number of threads."""

    def __init__(
        self,
        model: Model,
        *,
        points: Mapping[str, Iterable[Scalar]] | None = None,
        engine: str = GLUCOSE,
        conflicts_max: int = CONFLICTS_OF_SEARCH_MAX,
        propagations_max: int = PROPAGATIONS_MAX,
    ) -> None:
        """ModelTooLargeError for a model beyond the limits.

        `points` are numbers of wide ranges that have a surcharge of their own. `engine` names a solver of pysat.
        """
        self.model = model
        self._encoding = Encoding(model, points)
        self._engine = engine
        self._limits = conflicts_max, propagations_max

    @property
    def size(self) -> int:
        """Its clauses, which its memory follows."""
        return len(self._encoding.formula.clauses)

    def check(self, choices: Mapping[str, object], *, effort: Effort | None = None) -> Verdict:
        """Whether the choices are valid with defaults for what was left out; if not, why. No solver while they are."""
        checked = self.model.check(choices)
        if not checked.problem_count:
            return Verdict(checked, is_valid=True, can_be_completed=True, conflicts=())
        conflicts: list[Conflict] = []
        can_be_completed: bool | None = None
        with self._question(choices, effort) as question:
            try:
                is_readable = not question.unread and not question.unknown
                can_be_completed = question.kernel.is_satisfiable(question.bits()) and is_readable
                conflicts.extend(_conflicts(question))
            except OutOfEffortError:
                return Verdict(checked, False, can_be_completed, tuple(conflicts), is_timed_out=True)
        return Verdict(checked, False, can_be_completed, tuple(conflicts))

    def nearest(
        self,
        choices: Mapping[str, object],
        *,
        locked: Collection[str] = (),
        surcharges: Surcharges | None = None,
        count: int = 3,
        effort: Effort | None = None,
    ) -> Suggestions:
        """Valid configurations that change the choices least: what is to be kept, then numbers, defaults and price.

        A second one keeps a choice that the first one changes. Locked options keep their given value.
        """
        prices = surcharges or {}
        with self._question(choices, effort) as question:
            if any(name in locked for name in question.unread):
                return Suggestions(())
            kept = {literal: choice for literal, choice in question.chosen.items() if choice.option in locked}
            levels = [
                costs.of_changes(question, locked),
                costs.of_distances(question, locked),
                costs.of_deviations(question),
                costs.of_surcharges(question, prices),
            ]
            return _best(question, kept, levels, prices, count)

    def complete(
        self, choices: Mapping[str, object], *, goal: Goal = Goal.DEFAULT, surcharges: Surcharges | None = None
    ) -> Suggestions:
        """The best configuration that keeps every choice; unreadable choices have none."""
        prices = surcharges or {}
        with self._question(choices) as question:
            if question.unread or question.unknown:
                return Suggestions(())
            price, deviations = costs.of_surcharges(question, prices), costs.of_deviations(question)
            levels = {
                Goal.DEFAULT: [deviations, price],
                Goal.CHEAPEST: [price, deviations],
                Goal.PREFERRED: [costs.of_advice(question), deviations, price],
            }[goal]
            return _best(question, question.chosen, levels, prices, 1)

    def domains(
        self,
        choices: Mapping[str, object],
        *,
        options: Iterable[str] | None = None,
        reasons: Collection[str] | None = None,
        reasons_max: int = REASONS_MAX,
    ) -> Domains:
        """What each option can be if only it changes, in declared order.

        The first excluded values of the options in `reasons` have a reason, without it those of all options: each
        reason takes as long as many options.
        """
        wanted = set(self.model.options if options is None else options)
        names = [name for name in self.model.options if name in wanted]
        with self._question(choices) as question:
            remaining = Remaining(question, names, wanted if reasons is None else reasons, reasons_max)
            found = remaining.domains()
            return Domains(found, is_timed_out=remaining.is_timed_out)

    def _question(self, choices: Mapping[str, object], effort: Effort | None = None) -> Question:
        return Question(self._encoding, choices, effort or Effort(*self._limits), self._engine)


def _best(
    question: Question, fixed: Mapping[int, Choice], levels: Iterable[Costs], surcharges: Surcharges, count: int
) -> Suggestions:
    """The best configurations with what is fixed; each next one keeps a choice that every one before it gives up."""
    found: list[Suggestion] = []
    kernel = question.kernel
    try:
        while len(found) < count:
            if not kernel.is_satisfiable(list(fixed)):
                return Suggestions(tuple(found), None if found else question.conflict(fixed))
            optimiser = Optimiser(kernel, question.new, question.encoding.settled, fixed)
            for level in levels:
                optimiser.minimise(level)
            model = optimiser.first(question.encoding.orders)
            found.append(question.suggestion(model, surcharges))
            given_up = question.given_up(model)
            if not given_up:
                break
            kernel.add(given_up)
    except OutOfEffortError:
        return Suggestions(tuple(found), is_timed_out=True)
    return Suggestions(tuple(found))


def _conflicts(question: Question) -> Iterator[Conflict]:
    """Conflicts of the choices, then of them with the defaults; after each one a choice of it is left out."""
    items = dict(question.chosen)
    found = 0
    for more in ({}, question.defaulted):
        items |= more
        while found < CONFLICTS_MAX and not question.kernel.is_satisfiable(list(items)):
            conflict = question.conflict(items)
            found += 1
            yield conflict
            if not conflict.choices:
                return
            given_up = min(
                reversed(conflict.choices), key=lambda choice: (not choice.is_default, question.keep(choice))
            )
            items = {literal: choice for literal, choice in items.items() if choice != given_up}
