"""Guided selling against brute force: which products fit, which answers conflict, and which change helps."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.errors import Code, CpqError
from cpq.domain.configuration.declarations import OptionRow
from cpq.domain.configuration.options import Option, Scalar
from cpq.domain.guided_selling import product_fit
from cpq.domain.guided_selling.dialogue import Dialogue, guide_of, resumed
from cpq.domain.guided_selling.guide import GuideShape, Range
from cpq.domain.guided_selling.product_fit import Candidate

WORDS = ("red", "blue", "green")
NUMBERS = tuple(range(1, 6))
OPTIONS = {
    "colour": {"type": "enum", "values": list(WORDS[:2])},
    "size": {"type": "integer", "min": 1, "max": 5},
    "even": {"type": "integer", "min": 2, "max": 4, "step": 2},
    "listed": {"type": "integer", "values": [5, 1, 3]},
    "loud": {"type": "boolean"},
}
DOMAINS: dict[str, list[Any]] = {
    "colour": list(WORDS[:2]),
    "size": [Decimal(n) for n in NUMBERS],
    "even": [Decimal(2), Decimal(4)],
    "listed": [Decimal(n) for n in (1, 3, 5)],
    "loud": [True, False],
}

wanted_words = st.sampled_from(WORDS) | st.lists(st.sampled_from(WORDS), min_size=1, max_size=2)
wanted_numbers = st.fixed_dictionaries({"min": st.sampled_from(NUMBERS)}) | st.sampled_from(NUMBERS).map(Decimal)
conditions = st.fixed_dictionaries(
    {},
    optional={
        "colour": wanted_words,
        "size": wanted_numbers,
        "even": wanted_numbers,
        "listed": wanted_numbers,
        "loud": st.booleans(),
    },
)
answers_to_choose = st.tuples(conditions, conditions)


@st.composite
def guides(draw: st.DrawFn) -> GuideShape:
    questions: list[dict[str, Any]] = []
    for place in range(draw(st.integers(1, 3))):
        question = {"id": f"q{place}", "ask": "Which?", "why": "It matters."}
        if draw(st.booleans()):
            bound = draw(st.sampled_from(["at_least", "at_most"]))
            name = draw(st.sampled_from(["size", "even", "listed"]))
            questions.append({**question, "number": {"unit": "cfm", bound: name}})
        else:
            options = [
                {"id": f"a{index}", "label": f"A{index}", "need": need, "prefer": prefer}
                for index, (need, prefer) in enumerate(draw(st.lists(answers_to_choose, min_size=1, max_size=3)))
            ]
            questions.append({**question, "options": options})
    head = {"id": "g", "name": "G", "description": "D", "categories": ["c"], "among": draw(conditions)}
    return GuideShape.model_validate({**head, "questions": questions})


@st.composite
def candidates(draw: st.DrawFn, place: int) -> tuple[Candidate, list[tuple[tuple[str, Scalar], tuple[str, Scalar]]]]:
    """A product with some names as options and some as facts, and pairs of choices that it does not allow."""
    as_option = draw(st.sets(st.sampled_from(sorted(OPTIONS))))
    options = {name: Option(name, OptionRow.model_validate(OPTIONS[name])) for name in sorted(as_option)}
    as_fact = draw(st.sets(st.sampled_from(sorted(OPTIONS))))
    facts = {name: draw(st.sampled_from(DOMAINS[name])) for name in sorted(as_fact)}
    choices = [(name, value) for name in options for value in DOMAINS[name]]
    pairs = draw(st.lists(st.tuples(st.sampled_from(choices), st.sampled_from(choices)), max_size=4)) if choices else []
    forbidden = [(one, other) for one, other in pairs if one[0] != other[0]]

    def is_possible(chosen: Mapping[str, Scalar]) -> bool:
        """Whether some value of each other option goes with these, by looking at all of them."""
        domains = [[chosen[name]] if name in chosen else DOMAINS[name] for name in options]
        return any(
            not any({one, other} <= set(zip(options, values, strict=True)) for one, other in forbidden)
            for values in product(*domains)
        )

    return Candidate(f"p{place}", f"S{place}", f"P{place}", options, facts, is_possible), forbidden


@st.composite
def situations(draw: st.DrawFn) -> tuple[Dialogue, list[Any]]:
    guide = draw(guides())
    answers: dict[str, object] = {}
    for question in guide.questions:
        if draw(st.integers(0, 4)):
            chosen = st.sampled_from([one.id for one in question.options]) if question.options else st.integers(0, 6)
            answers[question.id] = draw(chosen | st.just("skip"))
    drawn = [draw(candidates(place)) for place in range(draw(st.integers(0, 4)))]
    return Dialogue(guide, {}).with_answers(answers), drawn


def meets(wanted: Any, value: Any) -> bool:
    """A condition of a file, read without the code under test."""
    if isinstance(wanted, Range):
        is_number = isinstance(value, Decimal)
        return is_number and (wanted.min is None or value >= wanted.min) and (wanted.max is None or value <= wanted.max)
    among = wanted if isinstance(wanted, tuple) else (wanted,)
    return any((isinstance(one, bool) == isinstance(value, bool)) and one == value for one in among)


def conditions_of(dialogue: Dialogue) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = [*dialogue.guide.among.items()]
    for question in dialogue.guide.questions:
        answer = dialogue.answers.get(question.id, "skip")
        if answer == "skip":
            continue
        for option in question.options:
            found += option.need.items() if option.id == answer else ()
        if question.number and question.number.at_least:
            found.append((question.number.at_least, lambda value, low=Fraction(answer): value >= low))
        elif question.number and question.number.at_most:
            found.append((question.number.at_most, lambda value, high=Fraction(answer): value <= high))
    return found


def fits_by_brute_force(candidate: Candidate, forbidden: list[Any], demanded: list[tuple[str, Any]]) -> bool:
    def holds(values: Mapping[str, Any]) -> bool:
        return all(
            name in values and (wanted(values[name]) if callable(wanted) else meets(wanted, values[name]))
            for name, wanted in demanded
        )

    for values in product(*(DOMAINS[name] for name in candidate.options)):
        chosen = dict(zip(candidate.options, values, strict=True))
        if any({one, other} <= set(chosen.items()) for one, other in forbidden):
            continue
        if holds({**candidate.facts, **chosen}):
            return True
    return False


@given(situations())
def test_the_products_left_are_those_of_brute_force(situation):
    dialogue, drawn = situation
    demanded = conditions_of(dialogue)
    expected = {one.id for one, forbidden in drawn if fits_by_brute_force(one, forbidden, demanded)}
    found = product_fit.fits([one for one, _ in drawn], dialogue)
    assert {fit.candidate.id for fit in found} == expected
    assert product_fit.count([one for one, _ in drawn], dialogue) == len(expected)
    for fit in found:
        assert fit.candidate.is_possible(fit.choices)
        assert all(fit.candidate.options[name].read(value) == value for name, value in fit.choices.items())


@given(situations())
def test_a_conflict_is_empty_of_products_and_minimal_and_every_change_leaves_some(situation):
    dialogue, drawn = situation
    known = [one for one, _ in drawn]
    if product_fit.count(known, dialogue) or not product_fit.count(known, Dialogue(dialogue.guide, {})):
        return
    together = product_fit.conflict(known, dialogue)

    def left(names: list[str]) -> int:
        return product_fit.count(known, Dialogue(dialogue.guide, {name: dialogue.answers[name] for name in names}))

    assert together
    assert left(together) == 0
    assert all(left([other for other in together if other != name]) for name in together)
    changes = product_fit.changes(known, dialogue)
    for change in changes:
        changed = Dialogue(dialogue.guide, {**dialogue.answers, change.question: change.answer})
        assert product_fit.count(known, changed) == change.leaves > 0
    helps = [name for name in dialogue.answers if product_fit.count(known, dialogue.without(name))]
    assert {change.question for change in changes} <= set(helps)
    by_numbers = {question.id for question in dialogue.guide.questions if question.number}
    assert {name for name in helps if name in by_numbers} <= {change.question for change in changes}
    rest = product_fit.superfluous(known, dialogue, [])
    kept = [name for name in dialogue.answers if name not in rest]
    assert rest
    assert left(kept)


@given(situations())
def test_a_state_gives_the_same_dialogue_back_and_no_other_text_does(situation):
    dialogue, _ = situation
    state = dialogue.state("t1")
    assert guide_of(state, "t1") == "g"
    assert resumed(dialogue.guide, state) == dialogue
    for place in {0, len(state) // 2, len(state) - 1}:
        with pytest.raises(CpqError) as refused:
            guide_of(state[:place] + ("x" if state[place] != "x" else "y") + state[place + 1 :], "t1")
        assert refused.value.code is Code.VALIDATION_ERROR
    with pytest.raises(CpqError):
        guide_of(state, "t2")


def test_the_nearest_number_comes_first_and_then_the_order_of_ids():
    guide = GuideShape.model_validate(
        {
            "id": "g",
            "name": "G",
            "description": "D",
            "categories": ["c"],
            "questions": [
                {"id": "flow", "ask": "?", "why": "!", "number": {"unit": "cfm", "at_least": "cfm"}},
                {"id": "b", "ask": "?", "why": "!", "options": [{"id": "x", "label": "X", "prefer": {"quiet": True}}]},
            ],
        }
    )
    facts: dict[str, dict[str, Any]] = {
        "far": {"cfm": Decimal(200)},
        "near": {"cfm": Decimal(101)},
        "equal": {"cfm": Decimal(101)},
        "quiet": {"cfm": Decimal(300), "quiet": True},
        "small": {"cfm": Decimal("99.9")},
        "unknown": {},
    }
    known = [Candidate(name, name, name, {}, values) for name, values in facts.items()]
    dialogue = Dialogue(guide, {}).with_answers({"flow": 100})
    assert [fit.candidate.id for fit in product_fit.fits(known, dialogue)] == ["equal", "near", "far", "quiet"]
    wished = dialogue.with_answers({"b": "x"})
    assert [fit.candidate.id for fit in product_fit.fits(known, wished)] == ["quiet", "equal", "near", "far"]
    exact = dialogue.with_answers({"flow": "47.2 l/s"})
    assert [fit.candidate.id for fit in product_fit.fits(known, exact)] == ["equal", "near", "far", "quiet"]
