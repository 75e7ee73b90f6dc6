"""The answers of a customer to a guide so far, and the text by which a caller resumes them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from urllib.parse import quote, unquote

from cpq.base.errors import Code, CpqError, bad_field, nearest, next_call
from cpq.domain.catalog import units
from cpq.domain.catalog.units import Amount
from cpq.domain.configuration.options import number, shown
from cpq.domain.guided_selling.guide import SKIP, GuideShape, NumberShape, QuestionShape

STATE_LENGTH_MAX = 8_000
_CHECK_LENGTH = 8


@dataclass(frozen=True)
class Dialogue:
    """A guide with the answers given to it, in the order of its questions. It is a value: an answer makes another."""

    guide: GuideShape
    answers: Mapping[str, str]
    """By question: the id of an option, a number perhaps with its unit, or `skip`."""

    @property
    def open_question(self) -> QuestionShape | None:
        """The first question that is asked and has no answer."""
        return next((one for one in self.guide.questions if self._is_open(one)), None)

    def _is_open(self, question: QuestionShape) -> bool:
        return question.id not in self.answers and question.is_asked(self.answers)

    def with_answers(self, given: Mapping[str, object]) -> Dialogue:
        """With these answers added or replaced; earlier ones whose question is no longer asked are left out.

        VALIDATION_ERROR names the answer that cannot be read, and what is allowed.
        """
        read = {name: self._read(name, value) for name, value in given.items()}
        kept: dict[str, str] = {}
        for question in self.guide.questions:
            answer = read.get(question.id, self.answers.get(question.id))
            if answer is None:
                continue
            if question.is_asked(kept):
                kept[question.id] = answer
            elif question.id in read:
                raise bad_field(f"/answers/{question.id}", f"After the other answers, {question.id} is not asked.")
        return Dialogue(self.guide, kept)

    def without(self, question_id: str) -> Dialogue:
        return Dialogue(self.guide, {name: answer for name, answer in self.answers.items() if name != question_id})

    def _read(self, name: str, value: object) -> str:
        question = self.guide.question(name)
        if question is None:
            known = [one.id for one in self.guide.questions]
            reason = f"{self.guide.id} has no question {shown(name)}."
            raise bad_field("/answers", reason, allowed=known, nearest=nearest(name, known) or None)
        try:
            return read_answer(question, value)
        except ValueError as error:
            allowed = [*(answer.id for answer in question.options), SKIP] if question.options else None
            near = nearest(str(value)[:64], allowed or ()) or None
            raise bad_field(f"/answers/{name}", f"{name} {error}.", allowed=allowed, nearest=near) from None

    def state(self, tenant_id: str) -> str:
        """The dialogue as a text that `resumed` reads."""
        answers = (f"{name}={quote(answer, safe='')}" for name, answer in self.answers.items())
        text = ";".join([f"{self.guide.id}@{self.guide.version()}", *answers])
        return f"{text}~{_check(tenant_id, text)}"


def guide_of(state: str, tenant_id: str) -> str:
    """The guide that a state belongs to; VALIDATION_ERROR when the text is not as it was given out."""
    text, _, check = state.rpartition("~")
    if len(state) > STATE_LENGTH_MAX or check != _check(tenant_id, text):
        raise bad_field(
            "/state",
            "This is not a state that guided_selling gave out: it is incomplete or was changed.",
            hint="Send `state` exactly as the last answer had it; change an answer with `answers`.",
            next_call=next_call("guided_selling"),
        )
    return text.partition(";")[0].partition("@")[0]


def resumed(guide: GuideShape, state: str) -> Dialogue:
    """The dialogue of a state; CONFLICT when the guide has changed since. Its answers are read like new ones."""
    head, *parts = state.rpartition("~")[0].split(";")
    answers = {name: unquote(answer) for name, _, answer in (part.partition("=") for part in parts)}
    fresh = Dialogue(guide, {})
    if head.partition("@")[2] != guide.version():
        raise CpqError(
            Code.CONFLICT,
            f"The guide {guide.id} has changed since this state was given out.",
            field="/state",
            hint="Begin again; these answers may still fit.",
            answers=answers,
            next_call=next_call("guided_selling", guide=guide.id),
        )
    return fresh.with_answers(answers)


def read_answer(question: QuestionShape, value: object) -> str:
    """An answer in the one spelling that is kept; ValueError with the reason."""
    if isinstance(value, str) and value.strip() == SKIP:
        return SKIP
    if question.number is not None:
        return _read_number(question.number, value)
    if not isinstance(value, str) or question.answer(value.strip()) is None:
        raise ValueError(f"is one of {', '.join(answer.id for answer in question.options)} or {SKIP}")
    return value.strip()


def in_unit(asked: NumberShape, answer: str) -> Fraction:
    """The exact number of an answer, in the unit of the question."""
    amount = units.read(answer)
    if amount is None:
        return Fraction(Decimal(answer))
    unit = units.unit_named(asked.unit)
    assert unit is not None, "read_answer has compared the units"
    return amount.in_unit(unit)


def _read_number(asked: NumberShape, value: object) -> str:
    amount = units.read(value) if isinstance(value, str) and len(value) <= units.NUMBER_LENGTH_MAX * 2 else None
    if amount is not None:
        answer = _with_unit(asked, amount)
    else:
        try:
            answer = f"{number(value.strip() if isinstance(value, str) else value):f}"
        except ValueError:
            raise ValueError(f"is a number of {asked.unit}, or a text such as `100 {asked.unit}`") from None
    exact = in_unit(asked, answer)
    if asked.min is not None and exact < asked.min:
        raise ValueError(f"is at least {asked.min:f} {asked.unit}")
    if asked.max is not None and exact > asked.max:
        raise ValueError(f"is at most {asked.max:f} {asked.unit}")
    return answer


def _with_unit(asked: NumberShape, amount: Amount) -> str:
    unit = units.unit_named(asked.unit)
    if unit is None or unit.kind != amount.unit.kind:
        raise ValueError(f"is in {asked.unit}, and {amount} cannot be converted into it")
    return f"{amount.number:f}" if unit == amount.unit else str(amount)


def _check(tenant_id: str, text: str) -> str:
    """Finds a damaged text. Who forges one has only given other answers: each is read again."""
    return hashlib.blake2b(f"{tenant_id}\0{text}".encode(errors="replace")).hexdigest()[:_CHECK_LENGTH]
