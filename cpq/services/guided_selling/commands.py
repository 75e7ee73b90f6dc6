"""Asks the questions of a guide one at a time, and finds the products that the answers lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field, next_call
from cpq.domain.configuration.options import spelled
from cpq.domain.guided_selling import product_fit
from cpq.domain.guided_selling.dialogue import Dialogue, guide_of, resumed
from cpq.domain.guided_selling.guide import SKIP, QuestionShape
from cpq.domain.guided_selling.product_fit import Candidate, Fit
from cpq.services import catalog
from cpq.services.guided_selling import repository
from cpq.services.guided_selling.views import GuideAnswer, GuidedProduct, GuidedSelling, GuideSummary, OpenQuestion

PRODUCTS_MAX = 5


def ask(
    tx: Tx,
    *,
    guide_id: str | None = None,
    state: str | None = None,
    answers: Mapping[str, object],
    account_id: str | None = None,
) -> GuidedSelling:
    """The next question, or the products; CONFLICT when the answers leave none, with the answer to change."""
    if guide_id is None and state is None:
        if answers:
            raise bad_field("/state", "Answers need the `state` of the last answer, or a `guide` to begin.")
        return {"guides": [_summary(one) for one in repository.guides(tx).values() if one.active]}
    before = _begun(tx, guide_id, state)
    dialogue = before.with_answers(answers)
    if account_id is not None:
        catalog.get_account(tx, account_id)
    candidates = repository.candidates(tx, dialogue.guide.categories)
    found = product_fit.fits(candidates, dialogue)
    if not found:
        raise _nothing_left(candidates, dialogue, answers, {"state": state} if state else {"guide": guide_id})
    result: GuidedSelling = {
        "guide": dialogue.guide.id,
        "state": dialogue.state(tx.tenant_id),
        "answered": [_answer(dialogue, name) for name in dialogue.answers],
        "candidates": len(found),
    }
    question = dialogue.open_question
    if question is not None:
        result["question"] = _question(candidates, dialogue, question)
    else:
        result["products"] = [_product(fit, dialogue, account_id) for fit in found[:PRODUCTS_MAX]]
    return result


def _begun(tx: Tx, guide_id: str | None, state: str | None) -> Dialogue:
    if state is None:
        assert guide_id is not None
        return Dialogue(repository.guide(tx, guide_id), {})
    known = guide_of(state, tx.tenant_id)
    if guide_id not in (None, known):
        raise bad_field("/guide", f"The state is of the guide {known}; leave `guide` out.", allowed=[known])
    return resumed(repository.guide(tx, known), state)


def _summary(guide: Any) -> GuideSummary:
    return {
        "id": guide.id,
        "name": guide.name,
        "description": guide.description,
        "questions": len(guide.questions),
        "next_call": next_call("guided_selling", guide=guide.id),
    }


def _answer(dialogue: Dialogue, name: str) -> GuideAnswer:
    question, answer = dialogue.guide.question(name), dialogue.answers[name]
    assert question is not None
    return {
        "question": name,
        "ask": question.ask,
        "answer": answer,
        "in_words": product_fit.with_unit(answer, question),
    }


def _question(candidates: Sequence[Candidate], dialogue: Dialogue, question: QuestionShape) -> OpenQuestion:
    shown: OpenQuestion = {"id": question.id, "ask": question.ask, "why": question.why, "hint": ""}
    if question.number is None:
        shown["options"] = [
            {
                "id": option.id,
                "label": option.label,
                "leaves": product_fit.count(candidates, dialogue.with_answers({question.id: option.id})),
            }
            for option in question.options
        ]
        wanted = "the id of an option"
    else:
        asked = question.number
        shown["unit"] = asked.unit
        shown |= {"minimum": asked.min} if asked.min is not None else {}
        shown |= {"maximum": asked.max} if asked.max is not None else {}
        if known := product_fit.span(candidates, dialogue, question):
            shown["available"] = f"{spelled(known[0])} to {spelled(known[1])} {asked.unit}"
        wanted = f"a number of {asked.unit}"
    shown["hint"] = (
        f'Call guided_selling with this state and answers {{"{question.id}": {wanted}}}, '
        f'or "{SKIP}" if it does not matter.'
    )
    return shown


def _product(fit: Fit, dialogue: Dialogue, account_id: str | None) -> GuidedProduct:
    chosen = dict(fit.choices)
    return {
        "product_id": fit.candidate.id,
        "sku": fit.candidate.sku,
        "name": fit.candidate.name,
        "reasons": product_fit.reasons(fit, dialogue),
        "attributes": chosen,
        "next_call": _next_call(fit.candidate, chosen, account_id),
    }


def _next_call(candidate: Candidate, chosen: Mapping[str, Any], account_id: str | None) -> dict[str, Any]:
    """Configure what has options; quote the rest where the customer is known."""
    customer = {} if account_id is None else {"account_id": account_id}
    if candidate.options:
        return next_call("product_configure", product_id=candidate.id, attributes=dict(chosen), **customer)
    if account_id is None:
        return next_call("catalog_get", product_id=candidate.id)
    return next_call("quote_create", line_items=[{"product_id": candidate.id, "quantity": 1}], **customer)


def _nothing_left(
    candidates: Sequence[Candidate], dialogue: Dialogue, given: Mapping[str, object], begun: Mapping[str, Any]
) -> CpqError:
    """Why the answers leave no product, and the calls that change one answer so that they leave some."""

    def call(changed: Mapping[str, str]) -> dict[str, object]:
        return next_call("guided_selling", **begun, answers={**given, **changed})

    together = product_fit.conflict(candidates, dialogue)
    words = [f"{_answer(dialogue, name)['ask']} {_answer(dialogue, name)['in_words']}" for name in together]
    changes = product_fit.changes(candidates, dialogue)
    changes.sort(key=lambda change: change.question in given)
    ways = [
        {
            "question": change.question,
            "answer": change.answer,
            "leaves": change.leaves,
            "next_call": call({change.question: change.answer}),
        }
        for change in changes
    ]
    if not together:
        return CpqError(Code.CONFLICT, f"The guide {dialogue.guide.id} has no products at all.", field="/guide")
    skipped = dict.fromkeys(product_fit.superfluous(candidates, dialogue, list(given)), SKIP)
    first = changes[0] if changes else None
    advice = (
        f"Change {first.question}: {_in_words(dialogue, first)} leaves {first.leaves}."
        if first
        else f"Skip {' and '.join(skipped)}: no other single answer is enough."
    )
    return CpqError(
        Code.CONFLICT,
        f"No product meets these answers together: {' and '.join(f'«{one}»' for one in words)}. {advice}",
        field=f"/answers/{first.question if first else together[-1]}",
        conflict=together,
        changes=ways,
        next_call=ways[0]["next_call"] if ways else call(skipped),
    )


def _in_words(dialogue: Dialogue, change: product_fit.Change) -> str:
    question = dialogue.guide.question(change.question)
    assert question is not None
    return product_fit.with_unit(change.answer, question)
