"""Text of others: what hides is shown, what would run does not run, and a cell of ours comes back as it was."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.base.text import shown, shown_on_one_line, with_formula, without_formula, without_hidden

HIDDEN = [*map(chr, (0xAD, 0x200B, *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0x3164, 0xE0001, 0xE0041))]
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
texts = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from([*HIDDEN, *"=+-@\t\r\n' ", "\u200d", "\ufe0f"])
)


@given(texts)
def test_nothing_hidden_is_left_and_nothing_else_is_changed(text: str):
    for written in (shown(text), without_hidden(text)):
        assert not set(HIDDEN) & set(written)
    if shown(text) == text:
        assert without_hidden(text) == text
    assert shown_on_one_line(text).splitlines() in ([], [shown_on_one_line(text)])


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("10\u202e00\U000e0041", "10\\u202e00\\U000e0041"),
        ("re\u200dba\u200cte", "re\\u200dba\\u200cte"),
        ("\u2066a\u2069\ufeff\u200d", "\\u2066a\\u2069\\ufeff\\u200d"),
        ("a\ufe0f and 😀\ufe0f\ufe01", "a\\ufe0f and 😀\ufe0f\\ufe01"),
    ],
)
def test_what_hides_or_turns_a_text_around_is_shown_by_its_code(text: str, readable: str):
    assert shown(text) == readable


@pytest.mark.parametrize(
    "kept",
    [
        "می\u200cخواهم", "مضخة 30 كيلو", "משאבה", "👩\u200d💻", "❤\ufe0f\u200d🔥", "1\ufe0f\u20e3", "क्\u200dष",
        "葛\U000e0100",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\u200f(A)", "Grüße\nund mehr", "10\u202f%",
    ],
)  # fmt: skip
def test_words_of_every_language_and_emoji_stay_as_they_are(kept: str):
    assert shown(kept) == kept == without_hidden(kept)


@given(texts)
def test_no_cell_begins_as_a_formula_and_each_comes_back_from_a_file(text: str):
    cell = without_formula(text)
    assert not cell.lstrip(" ").startswith(STARTS)
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\r\n").writerow([cell, "end"])
    [[found, _]] = csv.reader(io.StringIO(file.getvalue(), newline=""))
    assert with_formula(found) == text
