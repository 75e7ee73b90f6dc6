"""Changes of a draft, and what a refusal points at: pure rules of the quote."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.errors import Code, CpqError
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.draft_changes import Changes, about_lines, changed_arguments, changed_draft
from cpq.domain.quotes.lifecycle import TRANSITIONS, Move, QuoteStatus, after
from cpq.domain.quotes.quote import line_id

QUOTE = "Q-1"
numbers = st.lists(st.integers(1, 30), min_size=1, max_size=8, unique=True).map(sorted)


def draft_of(line_numbers: list[int], **terms) -> Draft:
    lines = tuple(DraftLine(number, f"prod_{number}", number) for number in line_numbers)
    return Draft("acct", "USD", lines, **terms)


@st.composite
def drafts_and_changes(draw) -> tuple[Draft, Changes]:
    draft = draft_of(draw(numbers))
    ids = [line_id(QUOTE, line.number) for line in draft.lines]
    changed = draw(st.lists(st.sampled_from(ids), unique=True))
    added = [DraftLine(0, "prod_new", quantity) for quantity in draw(st.lists(st.integers(1, 9), max_size=4))]
    removed = draw(st.lists(st.sampled_from(ids), unique=True, max_size=len(ids) - (not added)))
    change_lines = [(id_, {"quantity": 1000 + place}) for place, id_ in enumerate(changed)]
    return draft, Changes(add_lines=added, change_lines=change_lines, remove_lines=removed)


@given(drafts_and_changes())
def test_lines_keep_their_numbers_and_order_and_new_ones_follow(case: tuple[Draft, Changes]):
    draft, changes = case
    result = changed_draft(draft, changes, QUOTE)
    removed = set(changes.remove_lines)
    kept = [line.number for line in draft.lines if line_id(QUOTE, line.number) not in removed]
    last = draft.lines[-1].number
    assert [line.number for line in result.lines] == kept + [last + 1 + n for n in range(len(changes.add_lines))]
    set_to = {id_: values["quantity"] for id_, values in changes.change_lines}
    before = {line.number: line.quantity for line in draft.lines}
    for line in result.lines[: len(kept)]:
        assert line.quantity == set_to.get(line_id(QUOTE, line.number), before[line.number])
    assert [line.quantity for line in result.lines[len(kept) :]] == [line.quantity for line in changes.add_lines]


@given(drafts_and_changes(), st.data())
def test_what_is_wrong_with_a_line_points_at_the_argument_that_set_it(case: tuple[Draft, Changes], data):
    draft, changes = case
    result = changed_draft(draft, changes, QUOTE)
    place = data.draw(st.integers(0, len(result.lines) - 1))
    field = f"/line_items/{place}/product_id"
    error = CpqError(Code.NOT_FOUND, "no", field=field, problems=[{"code": "NOT_FOUND", "field": field}])
    told = about_lines(error, result, QUOTE, changed_arguments(draft, changes, QUOTE))
    problems: Any = told.details["problems"]
    listed = problems[0]
    id_ = line_id(QUOTE, result.lines[place].number)
    assert told.details["line_id"] == listed["line_id"] == id_
    assert told.details["field"] == listed["field"]
    name, _, rest = str(told.details["field"]).removeprefix("/").partition("/")
    if name == "add_lines":
        assert int(rest.split("/")[0]) == place - (len(result.lines) - len(changes.add_lines))
    elif name == "change_lines":
        assert changes.change_lines[int(rest.split("/")[0])][0] == id_
    else:
        assert name == "quote_id"
        assert id_ not in dict(changes.change_lines)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (Changes(terms={"term_months": 6}), (6, None)),
        (Changes(terms={"end_date": date(2026, 6, 30)}), (None, date(2026, 6, 30))),
        (Changes(clear=["term_months"]), (None, None)),
        (Changes(terms={"term_months": 6}, clear=["end_date"]), (6, None)),
    ],
)
def test_months_and_an_end_date_stand_for_each_other(changes: Changes, expected: tuple):
    result = changed_draft(draft_of([1], term_months=12), changes, QUOTE)
    assert (result.term_months, result.end_date) == expected


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        (Changes(remove_lines=["Q-1-ql-1", "Q-1-ql-2"]), "/remove_lines"),
        (Changes(remove_lines=["Q-1-ql-3"]), "/remove_lines/0"),
        (Changes(change_lines=[("Q-2-ql-1", {"quantity": 1})]), "/change_lines/0/line_id"),
        (Changes(clear=["notes", "account_id"]), "/clear/1"),
    ],
)
def test_a_change_that_cannot_be_is_refused_by_name(changes: Changes, field: str):
    with pytest.raises(CpqError) as refused:
        changed_draft(draft_of([1, 2]), changes, QUOTE)
    assert (refused.value.code, refused.value.details["field"]) == (Code.VALIDATION_ERROR, field)


@pytest.mark.parametrize("status", list(QuoteStatus))
@pytest.mark.parametrize("move", Move)
def test_a_move_that_is_not_in_the_table_names_the_way_out(status: QuoteStatus, move: Move):
    if (status, move) in TRANSITIONS:
        assert after(status, move, QUOTE, 3) == TRANSITIONS[status, move]
        return
    with pytest.raises(CpqError) as refused:
        after(status, move, QUOTE, 3)
    details = refused.value.details
    assert (refused.value.code, details["status"], details["version"]) == (Code.CONFLICT, status, 3)
    assert details["allowed"] == [str(known) for state, known in TRANSITIONS if state == status]
    assert details["next_call"]["arguments"]["quote_id"] == QUOTE  # type: ignore[index] # As next_call makes it.
