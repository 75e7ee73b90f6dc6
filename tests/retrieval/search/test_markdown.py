"""Markdown by its headings: nothing is lost, every heading has a breadcrumb of its own, front matter does no harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.retrieval.search.markdown import front_matter, listed, read

LINES = st.sampled_from(
    [
        "# One",
        "## Two",
        "## Two",
        "### Three ###",
        "##",
        "Setext",
        "===",
        "---",
        "text with words",
        "- item",
        "> # quoted",
        "```",
        "    # indented",
        "",
        "<!-- # comment -->",
        "One > Two",
        "## One > Two",
        "| a | b |",
        "\t",
        "## Two (2)",
    ]
)
pages = st.lists(LINES, max_size=40).map("\n".join) | st.text(alphabet="#-= \n\r`>ab\t\0\u2028é", max_size=200)


@given(pages)
def test_no_line_is_lost_and_no_two_sections_have_the_same_breadcrumb(text):
    document = read(text, "page.md")
    if not front_matter(text):
        kept = "\n".join(section.content for section in document.sections)
        assert "".join(kept.split()) == "".join(text.split())
    paths = [section.heading_path for section in document.sections]
    assert len(set(paths)) == len(paths)
    assert all(0 <= section.level <= 6 for section in document.sections)


def test_breadcrumbs_follow_the_levels_and_repeated_headings_are_counted():
    text = "before\n# A\n## B\nx\n## B\ny\n### C\n# A\n## B\n"
    paths = [section.heading_path for section in read(text, "p.md").sections]
    assert paths == ["p.md", "A", "A > B", "A > B (2)", "A > B (2) > C", "A (2)", "A (2) > B"]


def test_a_heading_that_looks_counted_does_not_take_anothers_place():
    paths = [section.heading_path for section in read("# B (2)\n# B\n# B\n", "p.md").sections]
    assert paths == ["B (2)", "B", "B (3)"]


def test_what_looks_like_a_heading_in_code_quotations_and_comments_is_none():
    text = "# Real\n```\n# no\n```\n> # no\n\n    # no\n\n<!--\n# no\n-->\n"
    assert [section.heading for section in read(text, "p.md").sections] == ["Real"]


def test_setext_headings_count_but_a_line_of_dashes_under_a_long_paragraph_does_not():
    text = "Title\n=====\nword\n\nPart\n----\nmore\n\n" + "long words " * 30 + "\n-\nend"
    assert [(s.heading, s.level) for s in read(text, "p.md").sections] == [("Title", 1), ("Part", 2)]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_is_one(newline):
    sections = read(newline.join(["# A", "x", "## B", "y"]), "p.md").sections
    assert [section.heading_path for section in sections] == ["A", "A > B"]
    assert sections[0].content == newline.join(["# A", "x"])


def test_front_matter_is_read_and_is_no_text():
    document = read("---\ntags: [a, b]\nreviewed: 2026-01-31\nnested: {x: 1}\nbad: .nan\n---\n# T\nx", "p.md")
    assert document.front_matter == {"tags": ["a", "b"], "reviewed": "2026-01-31", "bad": "nan"}
    assert [section.content for section in document.sections] == ["# T\nx"]


@pytest.mark.parametrize(
    "broken",
    [
        *("a: [", "a: b: c", "a: 2026-13-45", "\ta: 1", "x: !!python/object:os.system {}", "a: !!bool maybe"),
        *("a: !!int ''", "a: !!float ''", "a: !!timestamp foo", "!!bool maybe: a"),
        pytest.param("a: 0x" + "f" * 4000, id="a number that cannot be written"),
    ],
)
def test_front_matter_that_cannot_be_read_stays_as_text_and_is_told(broken):
    document = read(f"---\n{broken}\n---\n# T\nx", "p.md")
    assert document.problem is not None
    assert "the front matter is not YAML" in document.problem
    assert broken.strip() in document.sections[0].content
    assert document.sections[1].heading_path == "T"


def test_a_few_lines_of_yaml_cannot_become_billions_of_values():
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"{n}: &{n} [{', '.join(['*' + p] * 10)}]\n" for p, n in zip("abcdefgh", "bcdefghi", strict=True))
    assert read(f"---\n{bomb}---\n# T", "p.md").front_matter == {"a": ["x"] * 10}
    many = "many: [" + "1, " * 5000 + "1]"
    assert read(f"---\n{many}\n---\n# T", "p.md").front_matter == {}


def test_lines_around_a_paragraph_are_not_front_matter():
    sections = read("---\njust words\n---\n# T", "p.md").sections
    assert any("just words" in section.content for section in sections)


def test_lists_in_front_matter_are_understood_however_they_are_written():
    assert listed(["a", 1, None, " "]) == ["a", "1"]
    assert listed("a, b c") == ["a", "b", "c"]
    assert listed(None) == []
