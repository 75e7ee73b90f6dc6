"""PURE. Changes of a draft: lines added, changed and removed, terms and notes set or cleared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from cpq.base.errors import Code, CpqError, bad_field, next_call
from cpq.domain.quotes import internal, special_terms
from cpq.domain.quotes.draft import OWN_CURRENCY, Draft, DraftLine
from cpq.domain.quotes.quote import line_id

STRETCHES_MAX = 5_000
"""Over all lines: pricing a stretch takes about a tenth of a millisecond, while other writers wait."""

PROBLEMS_MAX = 50
CLEARABLE = ("deal_id", "term_months", "start_date", "end_date", "valid_until", "notes")


@dataclass(frozen=True)
class Changes:
    """The changes to a draft. Lines keep their numbers; a new line gets the number after the last one."""

    terms: Mapping[str, Any] = field(default_factory=dict)
    clear: Sequence[str] = ()
    add_lines: Sequence[DraftLine] = ()
    change_lines: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """The id of a line, and the fields to set on it; `internal` and `special` have those of these two."""
    remove_lines: Sequence[str] = ()
    internal: Mapping[str, Any] = field(default_factory=dict)
    """What to set of the quote's `Internal`."""


def changed_draft(draft: Draft, changes: Changes, quote_id: str) -> Draft:
    """The draft with the changes applied; an unknown line is refused by its id."""
    by_id = {line_id(quote_id, line.number): line for line in draft.lines}
    for position, id_ in enumerate(changes.remove_lines):
        _require_line(f"/remove_lines/{position}", id_, by_id, quote_id)
    for position, (id_, values) in enumerate(changes.change_lines):
        _require_line(f"/change_lines/{position}/line_id", id_, by_id, quote_id)
        _require_clearable(f"/change_lines/{position}/clear", values.get("special", {}))
        if values.get("special", {}).get("custom") and by_id[id_].custom is None:
            message = "The line sells a product, and only an item of no catalogue has a name and a cost of its own."
            hint = "Remove the line and add another with custom."
            raise bad_field(f"/change_lines/{position}/custom", message, hint=hint)
        by_id[id_] = _changed_line(by_id[id_], values)
    removed = set(changes.remove_lines)
    kept = [line for id_, line in by_id.items() if id_ not in removed]
    last = max(line.number for line in draft.lines)
    added = [line._replace(number=last + place) for place, line in enumerate(changes.add_lines, 1)]
    if not kept and not added:
        raise bad_field("/remove_lines", "A quote has at least one line; cancel it instead.", minimum=1)
    for position, name in enumerate(changes.clear):
        if name not in CLEARABLE:
            raise bad_field(f"/clear/{position}", f"{name!r} cannot be cleared.", allowed=list(CLEARABLE))
    cleared = dict.fromkeys(changes.clear)
    if "term_months" in changes.terms:
        cleared["end_date"] = None
    if "end_date" in changes.terms:
        cleared["term_months"] = None
    noted = internal.changed(draft.internal, changes.internal)
    return replace(draft, **{**cleared, **changes.terms}, lines=(*kept, *added), internal=noted)


def _changed_line(line: DraftLine, values: Mapping[str, Any]) -> DraftLine:
    noted = internal.changed(line.internal, values.get("internal", {}))
    arranged = dict(values.get("special", {}))
    if values.get("discount_pct"):
        arranged.setdefault("discount_amount", None)
    elif arranged.get("discount_amount"):
        values = {**values, "discount_pct": 0}
    return line._replace(**{**values, "internal": noted, "special": special_terms.changed(line.special, arranged)})


def given_money(changes: Changes) -> dict[str, frozenset[str]]:
    """The fields that a call sets on each line, by the line's id."""
    return {id_: frozenset((*values, *values.get("special", ()))) for id_, values in changes.change_lines}


def require_money_of_currency(
    before: Draft, after: Draft, quote_id: str, given: Mapping[str, Collection[str]] = MappingProxyType({})
) -> None:
    """CURRENCY_MISMATCH when the currency changes and amounts that somebody typed in would stay: 100 USD are not 100
    JPY. `given` are the fields of each line that the call sets, which are in the new currency."""
    if after.currency in (before.currency, OWN_CURRENCY):
        return
    was = {line.number for line in before.lines}
    left: list[tuple[str, str | None]] = [("requested_discount_amount", None)] if after.requested_amount else []
    for line in after.lines:
        id_ = line_id(quote_id, line.number)
        left += [(name, id_) for name in _typed_money(line) if line.number in was and name not in given.get(id_, ())]
    if left:
        raise CpqError(
            Code.CURRENCY_MISMATCH,
            f"The quote has amounts that were given in {before.currency}: {len(left):,} of them would count as "
            f"{after.currency}. Nothing was changed.",
            field="/currency",
            currency=after.currency,
            problems=[
                {"field": name, "message": f"was given in {before.currency}", **({"line_id": id_} if id_ else {})}
                for name, id_ in left[:PROBLEMS_MAX]
            ],
            hint=f"In one quote_update, change the currency and give or clear each of them in change_lines, in "
            f"{after.currency}, or remove the line and add it again; quote_price with requested_discount_pct 0 takes "
            "an amount off the whole quote back.",
        )


def _typed_money(line: DraftLine) -> list[str]:
    """The fields of a line with an amount that somebody typed in."""
    own = line.special or special_terms.NOTHING_SPECIAL
    typed = {
        "unit_price": own.unit_price is not None,
        "discount_amount": bool(own.discount_amount),
        "custom": own.custom is not None and own.custom.cost is not None,
        "ramp": any(one.override is not None for one in line.ramp),
    }
    return [name for name, is_typed in typed.items() if is_typed]


def looked_at_again(before: Draft, after: Draft, *, keeps_marks: bool) -> Draft:
    """`after` with the marks for review open again on all that is another offer than `before`.

    Open marks of a line that is gone become marks of the quote where `keeps_marks`: only a person drops them.
    """
    if after.for_customer.is_same(before.for_customer):
        return after
    old = {line.number: line._replace(internal=None) for line in before.lines}
    whole = replace(before.for_customer, lines=()) != replace(after.for_customer, lines=())
    lines = tuple(
        line._replace(internal=line.internal.reopened())
        if line.internal and (whole or old.get(line.number) != line._replace(internal=None))
        else line
        for line in after.lines
    )
    kept = {line.number for line in after.lines}
    lost = [
        text for line in before.lines if line.internal and line.number not in kept for text in line.internal.open_marks
    ]
    noted = after.internal.reopened() if after.internal else None
    return replace(after, lines=lines, internal=internal.changed(noted, {"review": lost if keeps_marks else ()}))


def changed_arguments(draft: Draft, changes: Changes, quote_id: str) -> dict[int, str]:
    """The argument that changes each line, by the line's number."""
    by_id = {line_id(quote_id, line.number): line.number for line in draft.lines}
    last = max(by_id.values())
    changed = {by_id[id_]: f"/change_lines/{place}" for place, (id_, _) in enumerate(changes.change_lines)}
    return changed | {last + place: f"/add_lines/{place - 1}" for place in range(1, len(changes.add_lines) + 1)}


def about_lines(
    error: CpqError, draft: Draft, quote_id: str, arguments: Mapping[int, str], *, has_currency: bool = False
) -> CpqError:
    """The same error with fields that name arguments of the call instead of lines of the quote.

    A problem of a line that the call does not change is placed at the quote, with the line's `line_id`; one of its
    price is placed at the currency, if the call gives one.
    """
    elsewhere = "/currency" if has_currency else "/quote_id"
    details = _about_line(error.details, draft, quote_id, arguments, elsewhere)
    problems = error.details.get("problems")
    if isinstance(problems, list):
        details["problems"] = [_about_line(problem, draft, quote_id, arguments, elsewhere) for problem in problems]
    return CpqError(error.code, error.message, **details)


def _about_line(
    details: Mapping[str, object], draft: Draft, quote_id: str, arguments: Mapping[int, str], of_currency: str
) -> dict[str, object]:
    start, _, rest = str(details.get("field", "")).removeprefix("/").partition("/")
    if start != "line_items":
        return dict(details)
    place, _, part = rest.partition("/")
    if not place:
        return {**details, "field": next(iter(arguments.values()), "/quote_id")}
    number = draft.lines[int(place)].number
    elsewhere = of_currency if "currency" in details else "/quote_id"
    field_ = f"{arguments[number]}/{part}" if number in arguments else elsewhere
    return {**details, "field": field_, "line_id": line_id(quote_id, number)}


def require_few_lines(lines: Sequence[DraftLine], most: int, field_: str) -> None:
    """Refuse more lines or stretches of ramps than a tool takes; the hint names the command that takes them."""
    count, stretches = len(lines), sum(len(line.ramp) for line in lines)
    if stretches > STRETCHES_MAX:
        raise bad_field(
            field_,
            f"The ramps of a quote have at most {STRETCHES_MAX:,} stretches through this tool, not {stretches:,}.",
            maximum=STRETCHES_MAX,
            hint="Join stretches that are alike, split the quote, or have the operator run `cpq import quotes`.",
        )
    if count > most:
        raise bad_field(
            field_,
            f"A quote has at most {most:,} lines through this tool, not {count:,}.",
            maximum=most,
            hint="Split it, or have the operator run `cpq import quotes`, which takes up to 10,000 lines.",
        )


def require_little_text(draft: Draft, most: int) -> None:
    """Refuse more text in a quote than a tool takes; names the longest text."""
    total = draft.text_length
    if total <= most:
        return
    place, length = max(draft.text_lengths.items(), key=lambda item: item[1])
    raise bad_field(
        place,
        f"The notes and attributes of a quote have at most {most:,} characters together, not {total:,}; "
        f"{place} has {length:,} of them.",
        maximum=most,
        characters=total,
        hint="Shorten the notes, put long texts into a document of their own, or split the quote.",
    )


def _require_line(field_: str, id_: str, known: Mapping[str, DraftLine], quote_id: str) -> None:
    if id_ not in known:
        raise _no_line(field_, id_, list(known), quote_id)


def _require_clearable(field_: str, arranged: Mapping[str, Any]) -> None:
    for name, value in arranged.items():
        if value is None and name not in (*special_terms.CLEARABLE, "price_reason"):
            raise bad_field(field_, f"{name!r} cannot be cleared.", allowed=list(special_terms.CLEARABLE))


def _no_line(field_: str, id_: str, known: list[str], quote_id: str) -> CpqError:
    return bad_field(
        field_,
        f"The quote has no line {id_!r}.",
        allowed=known[:20],
        next_call=next_call("quote_get", quote_id=quote_id),
    )
