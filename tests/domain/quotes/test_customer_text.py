"""What must not stand in a text for the customer: remarks for the seller, and names of other customers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.domain.quotes.customer_names import Names
from cpq.domain.quotes.customer_text import Finding, find_doubt, find_secret
from cpq.domain.quotes.draft import Draft, DraftLine
from cpq.domain.quotes.draft_changes import Changes, changed_draft, looked_at_again
from cpq.domain.quotes.internal import Internal, Mark, Source, changed, load, marked

NAMES = Names(
    ["Groeb Honey Packing", "Henry Ford Hospital", "Delta Foods", "Air Products", "Acme Corporation", "4M Inc"]
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("As delivered to Groeb Honey Packing in 2025.", "Groeb Honey Packing"),
        ("as delivered to groeb honey packing", "groeb honey packing"),
        ("As for Gr\u00adoeb Ho\u200bney.", "Groeb Honey"),
        ("See groebhoneypacking.com.", "groebhoneypacking"),
        ("the same as for groeb Honey", "groeb Honey"),
        ("Henry Ford has three of them.", "Henry Ford"),
        ("The same skid as for Groeb.", None),
        ("With a Wye-Delta starter, by air products.", None),
        ("Products are delivered by air.", None),
        ("For Acme Corporation, hall 3.", None),
        ("Food grade, 100 HP.", None),
    ],
)
def test_19_4_another_customers_name_is_found_and_ordinary_words_are_not(text: str, found: str | None):
    expected = None if found is None else Finding(found, False)
    assert find_secret(text, "Acme Corporation", NAMES) == expected


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("The same skid as for Groeb.", "Groeb"),
        ("THE SAME AS FOR GROEB", "GROEB"),
        ("Ask 4M about it.", "4M"),
        ("With a Wye-Delta starter.", None),
        ("A delta of 3 bar.", None),
        ("Products by air, for Acme.", None),
    ],
)
def test_19_4_a_word_that_may_be_a_name_is_a_doubt(text: str, word: str | None):
    assert find_doubt(text, "Acme Corporation", NAMES) == word


def test_19_4_a_word_of_the_quoted_products_is_no_doubt():
    assert find_doubt("The Delta line of machines.", "Acme Corporation", NAMES, {"delta"}) is None
    assert find_doubt("The Delta line of machines.", "Acme Corporation", NAMES) == "Delta"


@pytest.mark.parametrize(
    "text",
    [
        "> SALESPERSON REVIEW: no proven text",
        "salesperson review needed",
        "Text.\n> From quote P25-1257 (Groeb), score 0.79",
        "Retrieval summary\n| line | score |",
    ],
)
def test_19_4_remarks_of_a_draft_are_found(text: str):
    found = find_secret(text, "Acme Corporation", Names(()))
    assert found is not None
    assert found.is_remark


@pytest.mark.parametrize("text", ["Delivery from quote date plus 6 weeks.", "Reviewed by our engineers.", ""])
def test_19_4_ordinary_sentences_are_no_remarks(text: str):
    assert find_secret(text, "Acme Corporation", Names(())) is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_19_4_no_name_is_found_without_customers_and_the_own_name_never(text: str, own: str):
    assert Names(()).mentioned(text, own) is None
    assert Names([own]).mentioned(f"{text} {own}", own) is None


texts = st.text(min_size=1, max_size=20)
sources = st.builds(Source, texts, st.none() | st.integers(1, 9), st.none(), st.none() | texts)
internals = st.builds(
    Internal,
    st.none() | texts,
    st.lists(sources, max_size=2).map(tuple),
    st.lists(st.builds(Mark, texts, st.none() | texts, st.none()), max_size=3).map(tuple),
)


@given(internals)
def test_19_4_internal_notes_are_stored_and_read_back(internal: Internal):
    assert load(internal.stored) == (internal if any(internal) else None)


@given(internals, st.lists(texts, max_size=2))
def test_19_4_a_change_never_closes_or_drops_a_mark(internal: Internal, more: list[str]):
    new = changed(internal, {"notes": "other", "sources": [], "review": more})
    assert new is not None
    assert new.review == (*internal.review, *map(Mark, more))
    assert not internal.closed("human:rita", "now").open_marks
    assert len(internal.reopened().open_marks) == len(internal.review)


CLOSED = Internal("note", (), (Mark("look", "human:rita", "then"),))
DRAFT = Draft(
    "acct", "USD", (DraftLine(1, "a", 1, internal=CLOSED), DraftLine(2, "b", 1, internal=CLOSED)), internal=CLOSED
)


@pytest.mark.parametrize(
    ("changes", "reopened"),
    [
        (Changes(change_lines=[("Q-ql-1", {"quantity": 2})]), {None, 1}),
        (Changes(terms={"term_months": 24}), {None, 1, 2}),
        (Changes(terms={"requested_discount": 5_000_000}), {None, 1, 2}),
        (Changes(change_lines=[("Q-ql-1", {"quantity": 1})]), set()),
        (Changes(change_lines=[("Q-ql-1", {"internal": {"notes": "other"}})]), set()),
        (Changes(terms={"notes": "other"}), {None, 1, 2}),
        (Changes(internal={"sources": [Source("P-1")]}), set()),
    ],
)
def test_19_4_a_change_opens_the_marks_of_what_it_changes(changes: Changes, reopened: set[int | None]):
    draft = looked_at_again(DRAFT, changed_draft(DRAFT, changes, "Q"), keeps_marks=True)
    parts = [(None, draft.internal), *((line.number, line.internal) for line in draft.lines)]
    assert {number for number, part in parts if part and part.open_marks} == reopened


def test_19_4_a_removed_line_leaves_its_open_marks_with_the_quote_unless_a_person_drops_them():
    line = DraftLine(1, "a", 1, internal=Internal(review=(Mark("look"), Mark("seen", "human:rita", "then"))))
    before = Draft("acct", "USD", (line, DraftLine(2, "b", 1)))
    after = changed_draft(before, Changes(remove_lines=["Q-ql-1"]), "Q")
    assert looked_at_again(before, after, keeps_marks=True).internal == Internal(review=(Mark("look"),))
    assert looked_at_again(before, after, keeps_marks=False).internal is None


def test_19_4_a_mark_is_made_once():
    once = marked(None, ["look", "look"])
    assert once == Internal(review=(Mark("look"),))
    assert marked(once, ["look"]) is once
