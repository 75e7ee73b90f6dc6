"""Shapes of the answers of guided selling."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

from cpq.base.described import Described


class GuideSummary(TypedDict):
    id: str
    name: str
    description: str
    questions: int
    next_call: dict[str, Any]


class GuideAnswer(TypedDict):
    question: str
    ask: str
    answer: str
    in_words: str


class AnswerOption(TypedDict):
    id: str
    label: str
    leaves: Annotated[int, Described("How many products are left after this answer; 0: it would be refused.")]


class OpenQuestion(TypedDict):
    id: str
    ask: str
    why: str
    options: NotRequired[list[AnswerOption]]
    unit: NotRequired[Annotated[str, Described("The answer is a number of this unit, or a text such as `10 m³/min`.")]]
    minimum: NotRequired[Any]
    maximum: NotRequired[Any]
    available: NotRequired[Annotated[str, Described("What the products left have, from the least to the most.")]]
    hint: str


class GuidedProduct(TypedDict):
    product_id: str
    sku: str
    name: str
    reasons: list[str]
    attributes: Annotated[dict[str, Any], Described("The options to start with.")]
    next_call: dict[str, Any]


class GuidedSelling(TypedDict):
    guides: NotRequired[list[GuideSummary]]
    guide: NotRequired[str]
    state: NotRequired[Annotated[str, Described("Send it back with the next answer.")]]
    answered: NotRequired[list[GuideAnswer]]
    candidates: NotRequired[Annotated[int, Described("How many products meet all answers.")]]
    question: NotRequired[
        Annotated[OpenQuestion, Described("The next question; without one, `products` is the result.")]
    ]
    products: NotRequired[Annotated[list[GuidedProduct], Described("Best first, at most 5.")]]
