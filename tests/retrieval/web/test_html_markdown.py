"""HTML as Markdown: pages shaped like those of the real web, and each rule for itself."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpq.retrieval.web.rules.addresses import joined, read_address
from cpq.retrieval.web.rules.html_markdown import NOT_TAME, convert
from cpq.retrieval.web.rules.page import TOO_LONG, Page
from cpq.retrieval.web.rules.pipe_table import Cell, pipe_table

PAGES = Path(__file__).parent / "pages"
BASE = read_address("https://vendor.example/docs/page.html")


def shown(page: Page) -> str:
    """A page as one text, with what was noted beside it."""
    blocks = [f"{'#' * block.level} {block.text}" if block.kind == "heading" else block.text for block in page.blocks]
    images = [f"IMAGE {image.url} | {image.alt} | {image.caption}" for image in page.images]
    links = [f"LINK{' (menu)' if link.is_navigation else ''} {link.url} | {link.text}" for link in page.links]
    return "\n\n".join([f"TITLE {page.title}", *blocks, "\n".join([*images, *links])]) + "\n"


def text(html: str) -> str:
    return "\n\n".join(block.text for block in convert(html, BASE).blocks)


@pytest.mark.parametrize("name", ["documentation", "product", "readme", "tender"])
def test_f3_16_a_page_of_the_real_web_is_read_as_it_was_reviewed(name: str):
    """F3.16 to F3.23: the expected text was looked at by a person; a change shows in the diff."""
    page = convert((PAGES / f"{name}.html").read_text(encoding="utf-8"), BASE)
    assert shown(page) == (PAGES / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<pre><code class='language-c++'>a &lt; b</code></pre>", "```c++\na < b\n```"),
        ("<div class='highlight-python'><pre>x</pre></div>", "```python\nx\n```"),
        ("<pre class='brush: sql'>SELECT</pre>", "```sql\nSELECT\n```"),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        ("<pre>a<br>b</pre>", "```\na\nb\n```"),
        ("<pre><div>a</div><div>b<i>c</i></div>d</pre>", "```\na\nbc\nd\n```"),
        ("<pre></pre>", ""),
        ("<code>a`b</code>", "``a`b``"),
        ("<code>a<br>b</code>", "`a b`"),
    ],
)
def test_f3_18_listings_stand_in_fences_with_their_language(html: str, expected: str):
    assert text(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (r"<math alttext='\frac{a}{b}'><mi>other</mi></math>", r"$\frac{a}{b}$"),
        (
            "<math><semantics><mi>q</mi><annotation encoding='application/x-tex'>\\q</annotation></semantics></math>",
            r"$\q$",
        ),
        ("<math display='block'><mfrac><mn>1</mn><msqrt><mi>x</mi></msqrt></mfrac></math>", r"$$\frac{1}{\sqrt{x}}$$"),
        ("<math><msup><mi>x</mi><mn>2</mn></msup></math>", "$x^{2}$"),
        ("<math><mroot><mi>x</mi><mn>3</mn></mroot></math>", r"$\sqrt[3]{x}$"),
        ("<math><msubsup><mo>∑</mo><mi>i</mi><mi>n</mi></msubsup></math>", r"$\sum_{i}^{n}$"),
        ("<math><mfrac><mi>x</mi></mfrac></math>", "$x$"),
        ("<math><mystery>as text</mystery></math>", "$as text$"),
        ("<math></math>", ""),
    ],
)
def test_f3_19_a_formula_is_its_authors_source_else_its_structure_else_its_text(html: str, expected: str):
    assert text(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<dl><dt>A</dt><dd>one</dd></dl>", "**A**: one"),
        ("<dl><dd>alone</dd></dl>", "alone"),
        ("<dl><div><dt>A<dd>one</div><div><dt>B<dd>two</div></dl>", "**A**: one\n\n**B**: two"),
        (
            "<dl><dt>A<dd>one<dd>two<dt>B<dt>C<dd>three<dt>D</dl>",
            "**A**: one\n\n**A**: two\n\n**B, C**: three\n\n**D**",
        ),
    ],
)
def test_f3_20_definitions_stand_behind_their_terms(html: str, expected: str):
    assert text(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<div class='admonition warning'><p>Warning</p><p>Old.</p></div>", "⚠️ WARNING: Old."),
        ("<div class='admonition caution'>Hot</div>", "⚠️ CAUTION: Hot"),
        ("<div class='markdown-alert markdown-alert-note'>Know</div>", "ℹ️ NOTE: Know"),
        ("<div class='alert alert-info'>Know</div>", "ℹ️ INFO: Know"),
        ("<p class='note'>Mind</p>", "ℹ️ NOTE: Mind"),
        ("<p class='footnote-ref noted'>Plain</p>", "Plain"),
    ],
)
def test_f3_22_admonitions_are_labelled(html: str, expected: str):
    assert text(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>One</p><p>Two\n  three</p>", "One\n\nTwo three"),
        ("one<br>two<br/><br>three", "one\ntwo\nthree"),
        ("<custom-element>text</custom-element>", "text"),
        ("<p>a<script>b</script><style>c</style><!-- d -->e</p>", "a e"),
        ("500<sup>1</sup> m<sup>2</sup> H<sub>2</sub>O 10<sub>2</sub>", "500^1 m^2 H2O 10_2"),
        ("10<sup>-3</sup> x<sup></sup> y<sup><a href='#n'>[1]</a></sup>", "10^{-3} x y[1]"),
        ("<table><tr><td>only</td></tr></table>", "only"),
        ("<table></table>", ""),
        ("<ul></ul><ol><li></li></ol>", ""),
        ("<p>tag characters \U000e0041\U000e0042 and\u202e turned\u200b text</p>", "tag characters and turned text"),
        ("<select><option>no</option></select><button>no</button>yes", "yes"),
        (
            "<p>one <select><optgroup label=a><option>no<option>no</select> two <datalist><option>no</datalist>",
            "one two",
        ),
        ("<div><select><option>no</div>yes", "yes"),
    ],
)
def test_f3_23_everything_else_is_its_text_in_paragraphs(html: str, expected: str):
    assert text(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p hidden>no</p><div hidden>no</div>yes", "yes"),
        ("<p>yes<span hidden>no</span><b style='Display : None'>no</b></p>", "yes"),
        ("<ul style='color:red; visibility: hidden'><li>no</ul><div style=font-size:0px>no</div>yes", "yes"),
        ("<code>yes<i style='font-size:0'>no</i></code>", "`yes`"),
        (
            "<p style='font-size:0.0'>no</p><p style='font-size:0.9em'>yes</p><p style='x-display:none'>yes",
            "yes\n\nyes",
        ),
        ("<div hidden style=display:none><p hidden>no<i style=display:none>no</i></p></div>yes", "yes"),
        ("<h2>yes<span style='display:/**/none'>no</span></h2>", "yes"),
        ("<h2>yes<span style='display:/***/none;/*'>no</span></h2>", "yes"),
        (r"<p style='d\isplay:\6e one'>no</p><p style='display:\00006eone'>no</p><p style='\110000 \'>yes</p>", "yes"),
        ("<p style='position:absolute; LEFT: -9999px'>no</p><p style='text-indent:-10000em'>no</p>yes", "yes"),
        ("<p style='left:-12px;margin-left:-1.5em'>yes", "yes"),
        ("<template>no<template>no</template>no</template>yes", "yes"),
        ("<noscript>no<b>no</b></noscript><object>no<object>no</object>no</object>yes", "yes"),
        ("<ul><li>yes<template><li>no</template></ul><table><template><tr><td>no</template></table>", "- yes"),
        ("<body style=display:none>yes", "yes"),
    ],
)
def test_what_no_visitor_sees_is_not_read(html: str, expected: str):
    assert text(html) == expected


def test_f3_17_a_table_is_aligned_and_spans_are_filled():
    """F3.17"""
    html = "<table><tr><th>A</th><th>B</th></tr><tr><td rowspan=2>both</td><td>1</td></tr><tr><td>2</td></tr></table>"
    assert text(html) == "| A    | B   |\n|------|-----|\n| both | 1   |\n| both | 2   |"


def test_f3_21_pictures_are_noted_with_whole_addresses():
    """F3.21"""
    html = "<figure><img src='../a b.png' alt=' An  image '><figcaption>What <b>it</b> is</figcaption></figure>"
    image = convert(html, BASE).images[0]
    assert (image.url, image.alt, image.caption) == ("https://vendor.example/a%20b.png", "An image", "What it is")
    late = convert("<img src='data:image/gif;base64,xx' data-src='/late.png'>", BASE)
    assert [image.url for image in late.images] == ["https://vendor.example/late.png"]
    assert not convert("<img src='data:image/png;base64,xx'><img>", BASE).images


@pytest.mark.parametrize(
    "path", ["/", "/a/b.html", "/a//b", "/a/", "/%41", "//x.example/y", "/a/../b", "/a/./b", "/a.b.c", "/a b"]
)
def test_the_short_way_for_plain_links_leads_where_the_long_one_does(path: str):
    address = joined(BASE, path)
    assert [link.url for link in convert(f"<a href='{path}'>x</a>", BASE).links] == [address.url if address else None]


def test_a_menu_that_is_folded_still_leads_somewhere():
    page = convert("<nav><div hidden><a href=/a>A</a></div></nav><p hidden><a href=/b>B</a></p>text", BASE)
    assert [(link.url, link.is_navigation) for link in page.links] == [("https://vendor.example/a", True)]


def test_the_title_is_the_one_that_is_shown():
    html = "<!-- <title>Old</title> --><script>'<title>x'</script><svg><title>s</title></svg><TITLE lang=en>New</TITLE>"
    assert convert(html, BASE).title == "New"


def test_a_base_element_says_where_links_lead_from():
    page = convert("<base href='https://other.example/x/'><a href='y'>Y</a>", BASE)
    assert [link.url for link in page.links] == ["https://other.example/x/y"]


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000 + "deep",
        "<b>" * 5000 + "deep",
        "<ul><li>" * 20_000 + "deep",
        "<div><table><tr><td></div></table>" * 30_000 + "deep",
        "<form><div></form>" * 30_000 + "deep",
        "<b><div></b>" * 30_000 + "deep",
        "".join(f"<b id={n}>" for n in range(190)) + "<p>x" * 50_000 + "deep",
        f"<p {' '.join(f'a{n}' for n in range(200_000))}>deep",
        "<p>" + "<body a='>'b c d></body>" * 50_000 + "deep",
        "<BODY>" * 1500 + "deep",
        "".join(f"<p a{n}>" for n in range(100_000)) + "deep",
        "".join(f"<x{n}></x{n}>" for n in range(100_000)) + "deep",
        "<div>" * 190 + "</q>" * 20_000 + "deep",
        "<p a b c d e f g h i j k l m n o p>" * 65_000 + "deep",
    ],
    ids=lambda html: html[:12],
)
def test_f3_23_a_page_built_to_hurt_the_parser_is_stripped_with_a_warning(html: str):
    """F3.23"""
    page = convert(html, BASE)
    assert page.warning == NOT_TAME
    assert page.blocks[-1].text.endswith("deep")


def test_a_page_of_more_elements_than_there_is_room_for_is_stripped_with_a_warning(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cpq.retrieval.web.rules.html_guard.TAGS_MAX", 3000)
    assert convert("<p>x" * 3000, BASE).warning is None
    page = convert("<p>x" * 3000 + "<i>deep", BASE)
    assert (page.warning, page.blocks[-1].text) == (NOT_TAME, "xdeep")
    assert convert("<?>" * 3001, BASE).warning == NOT_TAME


@pytest.mark.parametrize("opening", ["<ul><li>", "<ul>", "<dl><dd>", "<div class=note>", "<ol><li><dl><dd>"])
@pytest.mark.parametrize("times", [31, 145, 900])
def test_f3_23_lists_in_lists_are_read_however_deep(opening: str, times: int):
    """F3.23"""
    page = convert(opening * times + "deep", BASE)
    assert "".join(block.text for block in page.blocks).endswith("deep")


def test_f3_23_a_page_that_the_walk_cannot_reach_the_end_of_is_stripped_with_a_warning(monkeypatch: pytest.MonkeyPatch):
    """F3.23"""
    monkeypatch.setattr("cpq.retrieval.web.rules.html_markdown.NEST_MAX", 10_000)
    monkeypatch.setattr("cpq.retrieval.web.rules.html_markdown.DEPTH_MAX", 10_000)
    page = convert("<ul><li>" * 900 + "deep", BASE)
    assert (page.warning, page.blocks[-1].text) == (NOT_TAME, "deep")


def test_a_short_page_does_not_become_a_long_one():
    lists = convert("<ul><li>" * 100 + "x<br>" * 20_000, BASE)
    assert sum(len(block.text) for block in lists.blocks) < 10 * 100_000
    listing = convert("<pre>" + "`" * 50_000 + "</pre>", BASE).blocks[0].text
    assert listing == "`" * 10 + "\n" + "`" * 9 + "\n" + "`" * 10
    long = "word " * 400
    for html in (f"<table><tr><td rowspan=900>{long}<td>a" + "<tr><td>x" * 900, f"<dl><dt>{long}" + "<dd>x" * 900):
        page = convert(html, BASE)
        assert sum(len(block.text) for block in page.blocks) < 10 * len(html)
        assert text(html).count("word") == 400


def test_a_page_that_takes_too_much_room_is_cut_with_a_warning(monkeypatch: pytest.MonkeyPatch):
    table = "<table><tr>" + f"<td>{'x' * 40}" * 50 + "<tr><td>x" * 100 + "</table>"
    whole = convert(table, BASE)
    assert (whole.warning, len(whole.blocks)) == (None, 1)
    monkeypatch.setattr("cpq.retrieval.web.rules.html_markdown.CHARACTERS_MAX", 1_000_000)
    page = convert("<h1>x</h1><ul><li>" + table * 100 + "</ul>", BASE)
    assert page.warning == TOO_LONG
    assert 500_000 < sum(len(block.text) for block in page.blocks) <= 1_000_001


def test_links_that_lead_nowhere_are_not_looked_at_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cpq.retrieval.web.rules.html_markdown.REFERENCES_MAX", 3)
    page = convert("<a href=/a>x</a><a href=ftp:1>x</a><img src=ftp:2><a href=/a#b>x</a><a href=/c>x</a>", BASE)
    assert [link.url for link in page.links] == ["https://vendor.example/a"]
    page = convert("<a href=/a#b>x</a><a href=/a#c>x</a><a href=/a#d>x</a><a href=/c>x</a>", BASE)
    assert [link.url for link in page.links] == ["https://vendor.example/a", "https://vendor.example/c"]


@pytest.mark.parametrize(
    "html",
    [
        "",
        "   ",
        "no tags at all",
        "<",
        "<p",
        "<p title='",
        "<!--",
        "<script>",
        "<script>" + "</script " * 100_000,
        '<a b="' * 100_000,
        "<" * 500_000,
        "<table><tr>" + "<td>x" * 50_000,
        "<table>" + "<tr><td rowspan=9999 colspan=9999>x" * 3000 + "</table>",
        "<table><tr><td>" * 100 + "x",
        "<a href=x>y</a>" * 20_000,
        "<a href=x>y</a> · " * 20_000,
        "<a href=x>y</a> … " * 20_000,
        "<p><a href=x>y</a>" + "." * 500_000 + "x",
        "<p><a href=x>y</a>" + "\ufdd0" * 500_000,
        "<ul>" + "<li><a href=x>y</a> - " * 10_000,
        "<img src=x>" * 20_000,
        "<h1>" + "x" * 1_000_000,
        "<div><div>" * 70 + "x",
        "<math>" + "<mrow>" * 150 + "<mi>x</mi>",
        "<dl>" + "<dt>x" * 10_000,
        "<dl>" + "<dt>x" * 30_000 + "<dd>x" * 30_000,
        f"<div class='{'lang ' * 50_000}'>" + "<pre>x</pre>" * 20_000,
        "<sup>" * 140 + "x y " * 250_000,
        "<nav hidden>" + "<a href=x><table><td>" * 60 + "x y " * 250_000,
        "".join(f"<a href='http://{'ä' * 900}{n}/'>x</a>" for n in range(1000)),
        "&#0;&#xD800;&#x110000;&bogus;",
        "\x00\x01\ufffe",
        "<title " * 200_000,
        "<div hidden style=display:none>" * 190 + "<i hidden>x</i>" * 30_000,
        "<nav hidden><a href=x style=display:none>" * 500,
        "<template>" * 1900 + "<object>" * 90,
        "<template>" * 190 + "<template><p>x</p></template>" * 20_000,
        f"<p style='{'/*' * 3000}'>x</p>" * 300,
        "<p style='" + "\\" * 30_001 + "'>x</p>",
        "<select>" + "<option>x" * 200_000,
        "<optgroup>x" * 200_000,
        f"<p style='font-size:{'0' * 3000}'>x</p>" * 600,
        "<svg><script>x</script><title>y</title></svg>z",
        "<plaintext>a</p>b",
        "<frameset><frame src=x></frameset>",
    ],
)
def test_hostile_pages_are_read_without_harm(html: str):
    page = convert(html, BASE)
    for block in page.blocks:
        assert block.text.strip()
        assert not set(block.text) & set("\x00\x01\u202e\ufffe\ud800")
    assert len(page.links) <= 400
    assert len(page.images) <= 200


@given(st.text(alphabet=st.sampled_from(list("<>/='\"!- abp&;\n")) | st.characters(), max_size=200))
def test_any_text_is_a_page(html: str):
    convert(html, BASE)


TAGS = (
    "<p> </p> <div> </div> <b> </b> <table> <tr> <td> </table> <ul> <li> <dl> <dt> <dd> <pre> </pre> <a> text <math>"
    " <mi> <h2> </h2> <br>"
)


@given(st.lists(st.sampled_from(TAGS.split()), max_size=60))
def test_any_order_of_tags_is_a_page_that_keeps_its_text(tags: list[str]):
    html = " ".join(tags)
    assert text(html).count("text") == tags.count("text")


CELLS = st.builds(Cell, st.text(alphabet="ab ", max_size=5), st.integers(1, 4), st.integers(1, 4), st.booleans())


@given(st.lists(st.lists(CELLS, max_size=6), max_size=6))
def test_every_row_of_a_table_is_as_wide_as_the_others(rows: list[list[Cell]]):
    written = pipe_table(rows)
    assert len({line.count("|") for line in written.splitlines()}) <= 1
