"""Path patterns: what people expect of them, whatever they type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.retrieval.search.globs import matcher

PATHS = ["a.md", "a.md.bak", "epics/one.md", "epics/deep/two.md", "epics-old.md", "[x].md", "b/c/d/e.md", "{.md"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.md", ["a.md"]),
        ("./a.md", ["a.md"]),
        ("/epics", ["epics/one.md", "epics/deep/two.md"]),
        ("epics/", ["epics/one.md", "epics/deep/two.md"]),
        ("epics/*", ["epics/one.md"]),
        ("epics/**", ["epics/one.md", "epics/deep/two.md"]),
        ("**/*.md", [path for path in PATHS if path.endswith(".md")]),
        ("*.md", ["a.md", "epics-old.md", "[x].md", "{.md"]),
        ("?.md", ["a.md", "{.md"]),
        ("[a-c].md", ["a.md"]),
        ("[!a].md", ["{.md"]),
        ("{a,epics/one}.md", ["a.md", "epics/one.md"]),
        ("**/{two,e}.md", ["epics/deep/two.md", "b/c/d/e.md"]),
        ("b/**/e.md", ["b/c/d/e.md"]),
        ("b/*/e.md", []),
        ("nothing*", []),
        ("[", []),
        ("{.md", ["{.md"]),
        ("[z-a].md", []),
    ],
)
def test_d3_07_patterns_match_what_people_expect(pattern, expected):
    passes = matcher(pattern)
    assert sorted(path for path in PATHS if passes(path)) == sorted(expected)


@given(st.text(alphabet="*?[]{},!a-z/.\\", max_size=60), st.text(alphabet="az/.*[", max_size=60))
def test_d3_07_no_pattern_raises(pattern, path):
    matcher(pattern)(path)


@pytest.mark.parametrize("pattern", ["*a" * 200 + "b", "**/" * 200 + "b", "{a,b}" * 200, "[" * 400, "*" * 1000 + "b"])
def test_a_hostile_pattern_comes_to_an_end(pattern):
    """A matcher that tries all ways would not, before the sun goes out."""
    assert not matcher(pattern)("a" * 400 + "/" + "a" * 400)
