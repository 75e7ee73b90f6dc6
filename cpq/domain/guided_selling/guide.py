"""The fields of a guide in its file: questions, their answers, and what each answer demands of a product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from cpq.base.text import clean_line, fingerprint
from cpq.domain.field_types import CategoryId, Identifier, Name, Number, Scalar, Word

GUIDES_MAX = 100
QUESTIONS_MAX = 40
ANSWERS_MAX = 60
CONDITIONS_MAX = 20
SKIP = "skip"
"""The answer of a customer who does not care or does not know; it narrows nothing."""

Sentence = Annotated[str, Field(max_length=500), AfterValidator(clean_line)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Range(_Part):
    """A number from `min` to `max`, both included."""

    min: Number | None = None
    max: Number | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("a range has a min, a max, or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min is above max")
        return self


Wanted = Range | Annotated[tuple[Scalar, ...], Field(min_length=1, max_length=ANSWERS_MAX)] | Scalar
Conditions = Annotated[dict[Word, Wanted], Field(max_length=CONDITIONS_MAX)]
"""What a product must have, by the name of an option, a spec or an attribute: a value, one of several, or a range."""


class AnswerShape(_Part):
    """One of the answers to choose from."""

    id: Identifier
    label: Name
    need: Conditions = Field(default_factory=dict)
    prefer: Conditions = Field(default_factory=dict)
    """Products that have this come first; the others stay."""

    @model_validator(mode="after")
    def _not_reserved(self) -> Self:
        if self.id == SKIP:
            raise ValueError(f"{SKIP} is the answer of those who do not care; give this one another id")
        return self


class NumberShape(_Part):
    """A number that is asked for, in the unit of the spec that it is compared with."""

    unit: Word
    at_least: Word | None = None
    """The option or spec that must be the answer or more."""

    at_most: Word | None = None
    """The option or spec that must be the answer or less."""

    min: Number | None = None
    max: Number | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a number has exactly one of at_least and at_most")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min is above max")
        return self

    @property
    def name(self) -> str:
        return str(self.at_least or self.at_most)


class QuestionShape(_Part):
    """A question with its reason, and either a list of answers or a number."""

    id: Identifier
    ask: Sentence
    why: Sentence
    options: Annotated[tuple[AnswerShape, ...], Field(max_length=ANSWERS_MAX)] = ()
    number: NumberShape | None = None
    ask_when: Annotated[dict[Identifier, tuple[Identifier, ...] | Identifier], Field(max_length=CONDITIONS_MAX)] = (
        Field(default_factory=dict)
    )
    """Earlier questions with the answers after which this one is asked."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if bool(self.options) == (self.number is not None):
            raise ValueError("a question has either options or a number")
        require_unique("an option", (answer.id for answer in self.options))
        return self

    def answer(self, id_: str) -> AnswerShape | None:
        return next((answer for answer in self.options if answer.id == id_), None)

    def is_asked(self, answers: Mapping[str, str]) -> bool:
        """Whether the earlier answers lead to this question."""
        wanted = ((name, (one,) if isinstance(one, str) else one) for name, one in self.ask_when.items())
        return all(answers.get(name) in allowed for name, allowed in wanted)


class GuideShape(_Part):
    """A guide: which products it chooses from, and its questions in the order in which they are asked."""

    id: Identifier
    name: Name
    description: Sentence
    categories: Annotated[tuple[CategoryId, ...], Field(min_length=1, max_length=CONDITIONS_MAX)]
    among: Conditions = Field(default_factory=dict)
    """What every product of the guide has."""

    questions: Annotated[tuple[QuestionShape, ...], Field(min_length=1, max_length=QUESTIONS_MAX)]
    active: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_unique("a question", (question.id for question in self.questions))
        earlier: dict[str, QuestionShape] = {}
        for question in self.questions:
            for name, wanted in question.ask_when.items():
                if name not in earlier:
                    raise ValueError(f"ask_when of {question.id} names {name}, which is no earlier question")
                for id_ in (wanted,) if isinstance(wanted, str) else wanted:
                    if earlier[name].answer(id_) is None:
                        raise ValueError(f"ask_when of {question.id} names {id_}, which is no answer to {name}")
            earlier[question.id] = question
        return self

    def question(self, id_: str) -> QuestionShape | None:
        return next((question for question in self.questions if question.id == id_), None)

    def content(self) -> dict[str, object]:
        """As it is stored and exported: without what is left out."""
        return self.model_dump(mode="python", exclude_defaults=True)

    def version(self) -> str:
        """Changes with everything that an answer may rest on."""
        return fingerprint(self.content())[:8]


class GuidesFile(BaseModel):
    """A whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    guides: Annotated[tuple[GuideShape, ...], Field(max_length=GUIDES_MAX)]


class Mention(NamedTuple):
    """A name that a guide uses for an option, a spec or an attribute, and how it uses it."""

    path: tuple[str | int, ...]
    """In the guide."""

    name: str
    values: tuple[Scalar, ...] = ()
    is_number: bool = False
    unit: str | None = None


def mentions(guide: GuideShape) -> Iterator[Mention]:
    """Every name in a guide with its path in the guide, for the check against the catalogue."""
    yield from _of_conditions(("among",), guide.among)
    for place, question in enumerate(guide.questions):
        at = ("questions", place)
        if question.number is not None:
            bound = "at_least" if question.number.at_least is not None else "at_most"
            path = (*at, "number", bound)
            yield Mention(path, question.number.name, is_number=True, unit=question.number.unit)
        for index, answer in enumerate(question.options):
            yield from _of_conditions((*at, "options", index, "need"), answer.need)
            yield from _of_conditions((*at, "options", index, "prefer"), answer.prefer)


def require_unique(what: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{what} {name} is given twice")


def _of_conditions(path: tuple[str | int, ...], conditions: dict[str, Wanted]) -> Iterator[Mention]:
    for name, wanted in conditions.items():
        is_range = isinstance(wanted, Range)
        values = () if isinstance(wanted, Range) else listed(wanted)
        yield Mention((*path, name), name, values, is_range)


def listed(wanted: Scalar | tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    return wanted if isinstance(wanted, tuple) else (wanted,)
