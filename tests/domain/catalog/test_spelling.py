"""Typing errors: how many letters are wrong, and which known words are near."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpq.domain.catalog.spelling import NEAR_WORDS_MAX, distance, may_be_misspelt, nearest_words, shortened

letters = st.text("abc", max_size=7)


@st.composite
def edited(draw: st.DrawFn, word: str, times: int) -> str:
    """The word after a few typing errors."""
    for _ in range(draw(st.integers(0, times))):
        place = draw(st.integers(0, len(word)))
        kind = draw(st.sampled_from(("add", "drop", "change", "swap")))
        letter = draw(st.sampled_from("abc"))
        after = {
            "add": letter + word[place:],
            "drop": word[place + 1 :],
            "change": letter + word[place + 1 :],
            "swap": word[place + 1 : place + 2] + word[place : place + 1] + word[place + 2 :],
        }
        word = word[:place] + after[kind]
    return word


near_pairs = st.text("ab", min_size=4, max_size=24).flatmap(
    lambda word: st.tuples(st.just(word), edited(word, times=2).filter(may_be_misspelt))
)


@settings(max_examples=1000)
@given(letters, letters)
def test_distance_is_the_fewest_typing_errors(one: str, other: str):
    assert distance(one, other) == fewest_errors(one, other)


@cache
def fewest_errors(one: str, other: str) -> int:
    """By trying everything, from the end."""
    if not one or not other:
        return len(one) + len(other)
    choices = [
        fewest_errors(one[:-1], other) + 1,
        fewest_errors(one, other[:-1]) + 1,
        fewest_errors(one[:-1], other[:-1]) + (one[-1] != other[-1]),
    ]
    if one[-2:] == other[:-3:-1] and len(one) > 1 and len(other) > 1:
        choices.append(fewest_errors(one[:-2], other[:-2]) + 1)
    return min(choices)


@given(letters, letters)
def test_distance_is_the_same_both_ways_and_zero_only_for_the_same_word(one: str, other: str):
    assert distance(one, other) == distance(other, one)
    assert (distance(one, other) == 0) == (one == other)


@settings(max_examples=2000)
@given(near_pairs)
def test_every_word_that_counts_as_near_shares_a_shortened_form(pair: tuple[str, str]):
    one, other = pair
    if nearest_words(one, [other]):
        assert set(shortened(one)) & set(shortened(other))


@pytest.mark.parametrize(
    ("typed_", "meant", "is_near"),
    [
        ("compresor", "compressor", True),
        ("vaccum", "vacuum", True),
        ("dyrer", "dryer", True),
        ("dryr", "dryer", True),
        ("pump", "plug", False),
        ("comprezzor", "compressor", True),
        ("komprezzor", "compressor", False),
        ("abcdefghijklmnop", "abcdefghijklmnopqr", False),
        ("abcdefghijklmnopq", "abcdefghijklmnopqr", True),
    ],
)
def test_one_error_is_forgiven_and_two_in_a_long_word(typed_: str, meant: str, is_near: bool):
    assert nearest_words(typed_, [meant]) == ([meant] if is_near else [])


def test_nearest_words_come_nearest_first_then_by_letter_without_the_word_itself():
    candidates = ["compressed", "compressor", "zompressor", "compresser", "compressor", "pump"]
    assert nearest_words("compressor", candidates) == ["compresser", "zompressor", "compressed"]
    assert len(nearest_words("abcd", [f"abcd{letter}" for letter in "abcdefghijkl"])) == NEAR_WORDS_MAX


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("pump", True),
        ("hp", False),
        ("abc", False),
        ("1000", False),
        ("a1b2", False),
        ("x" * 24, True),
        ("x" * 25, False),
    ],
)
def test_only_words_of_letters_are_corrected(word: str, answer: bool):
    assert may_be_misspelt(word) is answer
