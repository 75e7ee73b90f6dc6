"""The text that reaches the SDK's parser: what was readable stays as it is, what was hostile becomes readable."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json

from mcp_facade.json_repair import DEPTH_MAX, NUMBER_LENGTH_MAX, heal

MEGABYTE = 1_000_000


class Raw(str):
    """JSON that no Python value can be written as."""

    __slots__ = ()


def nested(depth: int, inside: str = "1") -> Raw:
    return Raw("[" * depth + inside + "]" * depth)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.text('\\"[]{}ud8cf019,:', max_size=20)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
benign = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=20
)
surrogates = st.text(st.characters(categories=["Cs"]) | st.sampled_from('\\u"n'), max_size=8)
hostile_leaves = (
    scalars
    | surrogates
    | st.integers(NUMBER_LENGTH_MAX, 6000).map(lambda digits: 10**digits)
    | st.integers(DEPTH_MAX, 200).map(nested)
)
hostile = st.recursive(
    hostile_leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(surrogates, inner, max_size=4),
    max_leaves=10,
)


def written(value: Any) -> bytes:
    """Like json.dumps, for values that it refuses."""
    if isinstance(value, Raw):
        return value.encode()
    if isinstance(value, dict):
        return b"{" + b",".join(json.dumps(k).encode() + b": " + written(v) for k, v in value.items()) + b"}"
    if isinstance(value, list):
        return b"[" + b", ".join(map(written, value)) + b"]"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**300:
        return b"1" * value.bit_length()
    return json.dumps(value).encode()


@settings(max_examples=1000)
@given(benign, st.booleans())
def test_readable_json_means_the_same_afterwards(value: Any, ascii_only: bool):
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert json.loads(heal(text)) == value
    assert from_json(heal(text)) == json.loads(text)


@settings(max_examples=1000)
@given(hostile)
def test_hostile_json_becomes_readable(value: Any):
    from_json(heal(written(value)))


@given(st.binary() | st.text('"\\[]{}u0dDcC8:, 19eE+-.nft').map(str.encode))
def test_what_is_not_json_is_healed_without_a_fault(text: bytes):
    assert isinstance(heal(text), bytes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'"\ud83d\ude00"', "😀"),
        (r'"\uD83D\uDE00"', "😀"),
        (r'"\ud800"', "\0"),
        (r'"\udc00"', "\0"),
        (r'"\uDBFF"', "\0"),
        (r'"a\ud800b"', "a\0b"),
        (r'"\ud800\ud800\udc00"', "\0\U00010000"),
        (r'"\ud83d\ude00\ude00"', "😀\0"),
        (r'"\udc00\ud800"', "\0\0"),
        (r'"\\ud800"', r"\ud800"),
        (r'"\\\ud800"', "\\\0"),
        (r'"\\\\ud800"', r"\\ud800"),
        (r'"\\ud800\udc00"', "\\ud800\0"),
        (r'"\ud83d\\ude00"', "\0\\ude00"),
        (r'"\ud83d\n\ude00"', "\0\n\0"),
        (r'"\"\ud800\""', '"\0"'),
        (r'{"\ud800": 1}', {"\0": 1}),
        ("1" * NUMBER_LENGTH_MAX, "\0"),
        ("-" + "1" * 5000, "\0"),
        ("1." + "0" * 5000, "\0"),
        ("1e" + "0" * 5000, "\0"),
        ("1" * (NUMBER_LENGTH_MAX - 1), int("1" * (NUMBER_LENGTH_MAX - 1))),
        ('"' + "1" * 5000 + '"', "1" * 5000),
        ('["[[[[", "]]"]', ["[[[[", "]]"]),
        ('["' + "[" * 1000 + '"]', ["[" * 1000]),
    ],
)
def test_only_the_hostile_part_is_replaced(text: str, expected: object):
    assert from_json(heal(text.encode())) == expected


def test_nesting_is_cut_where_no_tool_needs_it_any_more():
    allowed = nested(DEPTH_MAX - 1).encode()
    assert heal(allowed) == allowed
    for depth in (DEPTH_MAX, DEPTH_MAX + 1, 100_000):
        assert heal(nested(depth).encode()) == nested(DEPTH_MAX - 1, r'"\u0000"').encode()


@pytest.mark.parametrize("inside", ["1" * 5000, '"a"', r'"\ud800"', "{}", '{"a": [1, 2]}', "[], []"])
def test_whatever_lies_deeper_goes_with_the_nesting(inside: str):
    assert heal(nested(DEPTH_MAX + 3, inside).encode()) == nested(DEPTH_MAX - 1, r'"\u0000"').encode()


def test_what_stands_beside_the_nesting_stays():
    text = '{"a": ' + nested(500) + ', "b": [1, {"c": ' + nested(500) + '}], "d": 2}'
    healed = from_json(heal(text.encode()))
    assert (healed["b"][0], healed["d"]) == (1, 2)


@pytest.mark.parametrize(
    "text",
    [
        b'"' * (MEGABYTE + 1),
        b'"' + b'\\"' * (MEGABYTE // 2),
        b'"' + b"\\" * MEGABYTE,
        b"\\" * MEGABYTE,
        b"[" * MEGABYTE,
        b"]" * MEGABYTE,
        b"[" * (MEGABYTE // 2) + b"]" * (MEGABYTE // 2),
        b'{"a":' * (MEGABYTE // 5),
        (b"1" * (NUMBER_LENGTH_MAX - 1) + b",") * (MEGABYTE // NUMBER_LENGTH_MAX),
        b"1" * MEGABYTE,
        b'"' + rb"\ud800" * (MEGABYTE // 6) + b'"',
        b'"' + rb"\u" * (MEGABYTE // 2) + b'"',
        b'"' + rb"\\\ud800" * (MEGABYTE // 8),
    ],
    ids=lambda text: repr(text[:12]),
)
def test_a_megabyte_made_to_be_slow_is_read_once(text: bytes):
    assert len(heal(text)) <= len(text) + 2
