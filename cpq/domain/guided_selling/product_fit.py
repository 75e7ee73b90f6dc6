"""Which products meet the answers to a guide, in which order, and which answer leaves none.

A name in a guide is an option of the product, else a spec, else an attribute. What nobody has filled in meets nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from cpq.base.money import plain
from cpq.domain.catalog import units
from cpq.domain.configuration.options import ChoiceError, Option, Scalar, spelled
from cpq.domain.field_types import Scalar as GivenScalar
from cpq.domain.guided_selling.dialogue import Dialogue, in_unit
from cpq.domain.guided_selling.guide import SKIP, Conditions, GuideShape, QuestionShape, Range, listed

STEPS_MAX = 100
_DECIMALS = 6
_EXACT = Context(prec=80)

Exact = Decimal | Fraction


@dataclass(frozen=True)
class Candidate:
    """A product as a guide sees it."""

    id: str
    sku: str
    name: str
    options: Mapping[str, Option]
    facts: Mapping[str, Scalar]
    """Its attributes and specs; a spec comes before an attribute of the same name."""

    is_possible: Callable[[Mapping[str, Scalar]], bool] = lambda _choices: True
    """Whether a valid configuration has these choices; true of all the fewer of them."""


@dataclass(frozen=True)
class Demand:
    """What one answer demands of a product under one name."""

    question: str
    name: str
    why: str
    """The answer in words."""

    among: tuple[Scalar, ...] | None = None
    low: Exact | None = None
    high: Exact | None = None
    is_asked_number: bool = False
    """The customer gave the bound: the product nearest to it comes first."""

    def meets(self, value: Scalar) -> bool:
        if self.among is not None:
            return any(type(one) is type(value) and one == value for one in self.among)
        if not isinstance(value, Decimal):
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def distance(self, value: Scalar) -> Fraction:
        bound = Fraction(self.low if self.low is not None else self.high or 0)
        assert isinstance(value, Decimal)
        off = abs(Fraction(value) - bound)
        return off / abs(bound) if bound else off


@dataclass(frozen=True)
class Fit:
    """A product that meets every demand: the values that do, the options to start with, and the preferences met."""

    candidate: Candidate
    values: Mapping[str, Scalar]
    choices: Mapping[str, Scalar]
    preferred: tuple[Demand, ...]


def demands(guide: GuideShape, answers: Mapping[str, str]) -> list[Demand]:
    """What the products of the guide and these answers must have."""
    found = list(_conditions("", f"products of {guide.name}", guide.among))
    for question, answer in _answered(guide, answers):
        if question.number is not None:
            exact = in_unit(question.number, answer)
            is_floor = question.number.at_least is not None
            low, high = (exact, None) if is_floor else (None, exact)
            asked = with_unit(answer, question)
            bound = f"{'at least' if is_floor else 'at most'} {asked}"
            found.append(Demand(question.id, question.number.name, bound, None, low, high, is_asked_number=True))
        elif chosen := question.answer(answer):
            found += _conditions(question.id, chosen.label, chosen.need)
    return found


def preferences(guide: GuideShape, answers: Mapping[str, str]) -> list[Demand]:
    chosen = ((question, question.answer(answer)) for question, answer in _answered(guide, answers))
    return [
        one for question, answer in chosen if answer for one in _conditions(question.id, answer.label, answer.prefer)
    ]


def fits(candidates: Iterable[Candidate], dialogue: Dialogue) -> list[Fit]:
    """The products that meet every answer, best first: the most preferences, then the numbers nearest to those asked
    for in the order of the questions, then by id."""
    needed, wished = demands(dialogue.guide, dialogue.answers), preferences(dialogue.guide, dialogue.answers)
    found = [fit for candidate in candidates if (fit := _fit(candidate, needed, wished))]
    asked = [demand for demand in needed if demand.is_asked_number]

    def rank(fit: Fit) -> tuple[int, list[Fraction], str]:
        return -len(fit.preferred), [one.distance(fit.values[one.name]) for one in asked], fit.candidate.id

    return sorted(found, key=rank)


def count(candidates: Iterable[Candidate], dialogue: Dialogue) -> int:
    needed = demands(dialogue.guide, dialogue.answers)
    return sum(_fit(candidate, needed, ()) is not None for candidate in candidates)


def reasons(fit: Fit, dialogue: Dialogue) -> list[str]:
    """Why the product is among the results, a sentence for each demand and each preference that it meets."""
    found = []
    for demand in [*demands(dialogue.guide, dialogue.answers), *fit.preferred]:
        if demand.question:
            verb = "can be" if demand.name in fit.choices else "is"
            wish = ", preferred" if demand in fit.preferred else ""
            found.append(f"{demand.name} {verb} {spelled(fit.values[demand.name])}{wish}: {demand.why}.")
    return found


def conflict(candidates: Sequence[Candidate], dialogue: Dialogue) -> list[str]:
    """Answers that no product meets together, as few as possible: without any one of them some product is left."""
    kept = [question.id for question, _ in _answered(dialogue.guide, dialogue.answers)]
    for name in list(kept):
        fewer = {one: dialogue.answers[one] for one in kept if one != name}
        if not count(candidates, Dialogue(dialogue.guide, fewer)):
            kept.remove(name)
    return kept


@dataclass(frozen=True)
class Change:
    """One other answer that leaves products, all other answers kept."""

    question: str
    answer: str
    leaves: int


def changes(candidates: Sequence[Candidate], dialogue: Dialogue) -> list[Change]:
    """For each answered question the other answer that leaves products: of options the one that leaves most, of
    numbers the nearest. The latest questions come first, because the first ones matter most."""
    found = [_change(candidates, dialogue, question) for question, _ in _answered(dialogue.guide, dialogue.answers)]
    return [one for one in reversed(found) if one is not None]


def superfluous(candidates: Sequence[Candidate], dialogue: Dialogue, first: Sequence[str]) -> list[str]:
    """The answers without which products are left: those in `first` are kept if they can be, then the others in the
    order of their questions."""
    answers = dialogue.answers
    order = [*(name for name in answers if name in first), *(name for name in answers if name not in first)]
    kept: dict[str, str] = {}
    for name in order:
        if count(candidates, Dialogue(dialogue.guide, {**kept, name: answers[name]})):
            kept[name] = answers[name]
    return [name for name in answers if name not in kept]


def with_unit(answer: str, question: QuestionShape) -> str:
    """An answer in the words of its question."""
    if question.number is not None and answer != SKIP:
        return answer if units.read(answer) else f"{answer} {question.number.unit}"
    chosen = question.answer(answer)
    return chosen.label if chosen else answer


def span(
    candidates: Iterable[Candidate], dialogue: Dialogue, question: QuestionShape
) -> tuple[Decimal, Decimal] | None:
    """The least and the largest number that the products left have for a question of a number."""
    assert question.number is not None
    needed = demands(dialogue.guide, dialogue.answers)
    numbers: list[Decimal] = []
    for candidate in candidates:
        for ascending in (True, False):
            fit = _fit(candidate, [*needed, Demand(question.id, question.number.name, "")], (), ascending=ascending)
            value = fit and fit.values[question.number.name]
            numbers += [value] if isinstance(value, Decimal) else []
    return (min(numbers), max(numbers)) if numbers else None


def _change(candidates: Sequence[Candidate], dialogue: Dialogue, question: QuestionShape) -> Change | None:
    others = dialogue.without(question.id)

    def leaves(answer: str) -> int:
        return count(candidates, Dialogue(dialogue.guide, {**others.answers, question.id: answer}))

    if question.number is not None:
        numbers = span(candidates, others, question)
        if numbers is None:
            return None
        number = numbers[1] if question.number.at_least is not None else numbers[0]
        answer = f"{plain(number):f}"
        return Change(question.id, answer, leaves(answer))
    best = max(question.options, key=lambda one: leaves(one.id))  # The first of several.
    return Change(question.id, best.id, leaves(best.id)) if leaves(best.id) else None


def _answered(guide: GuideShape, answers: Mapping[str, str]) -> Iterator[tuple[QuestionShape, str]]:
    for question in guide.questions:
        if answers.get(question.id, SKIP) != SKIP:
            yield question, answers[question.id]


def _conditions(question: str, why: str, conditions: Conditions) -> Iterator[Demand]:
    for name, wanted in conditions.items():
        if isinstance(wanted, Range):
            yield Demand(question, name, why, None, wanted.min, wanted.max)
        else:
            yield Demand(question, name, why, tuple(map(_scalar, listed(wanted))))


def _scalar(value: GivenScalar) -> Scalar:
    return value if isinstance(value, bool | str) else plain(Decimal(value))


def _fit(
    candidate: Candidate, needed: Sequence[Demand], wished: Sequence[Demand], *, ascending: bool | None = None
) -> Fit | None:
    found = _values(candidate, needed, ascending=ascending)
    if found is None:
        return None
    kept: list[Demand] = []
    for wish in wished:
        better = _values(candidate, [*needed, *kept, wish], ascending=ascending)
        if better is not None:
            found = better
            kept.append(wish)
    values, choices = found
    return Fit(candidate, values, choices, tuple(kept))


def _values(
    candidate: Candidate, needed: Sequence[Demand], *, ascending: bool | None
) -> tuple[dict[str, Scalar], dict[str, Scalar]] | None:
    """A value for each name that meets its demands, and those of them that are choices; None when there are none."""
    together: dict[str, list[Demand]] = {}
    for demand in needed:
        together.setdefault(demand.name, []).append(demand)
    values: dict[str, Scalar] = {}
    allowed: dict[str, list[Scalar]] = {}
    for name, demanded in together.items():
        if name in candidate.options:
            allowed[name] = _possible(candidate.options[name], demanded, ascending=ascending)
        elif name in candidate.facts and all(one.meets(candidate.facts[name]) for one in demanded):
            values[name] = candidate.facts[name]
        else:
            return None
    choices = _choice(candidate, list(allowed.items()), {})
    return None if choices is None else (values | choices, choices)


def _choice(
    candidate: Candidate, allowed: Sequence[tuple[str, Sequence[Scalar]]], chosen: dict[str, Scalar]
) -> dict[str, Scalar] | None:
    """A value of each list, which the rules of the product allow together; the first names get the best values."""
    if not allowed:
        return chosen
    (name, values), *others = allowed
    for value in values:
        now = {**chosen, name: value}
        if candidate.is_possible(now) and (found := _choice(candidate, others, now)) is not None:
            return found
    return None


def _possible(option: Option, demanded: Sequence[Demand], *, ascending: bool | None) -> list[Scalar]:
    """The values of an option that meet every demand, the best first: as an answer lists them, else the number that is
    just enough."""
    known = option.possible() or _landmarks(option, demanded)
    meeting = [value for value in known if all(one.meets(value) for one in demanded)]
    order = next((one.among for one in demanded if one.among), None)
    if order is not None:
        return sorted(meeting, key=order.index)
    is_least = any(one.low is not None for one in demanded) if ascending is None else ascending
    numbers = sorted(value for value in meeting if isinstance(value, Decimal))
    return list(numbers if is_least else reversed(numbers))


def _landmarks(option: Option, demanded: Sequence[Demand]) -> list[Scalar]:
    """Of an option with free values all steps if they are few, else those at a bound or named, and their neighbours."""
    step = option.row.step or (Decimal(1) if option.row.type == "integer" else None)
    if step and option.row.min is not None and option.row.max is not None:
        steps = int((option.row.max - option.row.min) / step)
        if steps < STEPS_MAX and option.row.min % step == 0:
            return [plain(option.row.min + step * place) for place in range(steps + 1)]
    given: list[Scalar] = [value for one in demanded for value in one.among or ()]
    given += [bound for bound in (option.row.min, option.row.max, option.default) if bound is not None]
    for one in demanded:
        given += [_rounded(bound, up) for bound, up in ((one.low, True), (one.high, False)) if bound is not None]
    found: dict[Scalar, None] = {}
    for value in given:
        try:
            found[option.read(value)] = None
        except ChoiceError as refused:
            found |= dict.fromkeys(refused.problem.nearest or ())
    return list(found)


def _rounded(bound: Exact, up: bool) -> Decimal:
    """To six decimals, not beyond the bound."""
    scaled = Fraction(bound) * 10**_DECIMALS
    whole = -(-scaled.numerator // scaled.denominator) if up else scaled.numerator // scaled.denominator
    return plain(Decimal(whole).scaleb(-_DECIMALS, _EXACT))
