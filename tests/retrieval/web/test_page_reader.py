"""What a page really is: its type, its characters, and the text of PDF, Markdown and plain text."""

from pathlib import Path

import pytest
import weasyprint
from hypothesis import given
from hypothesis import strategies as st

from cpq.retrieval.search.passages import PART_CHARACTERS
from cpq.retrieval.web.fetcher import Fetched, FetchError, Known
from cpq.retrieval.web.page_reader import decoded, kind_of, read_page
from cpq.retrieval.web.rules.addresses import Address, joined, read_address
from cpq.retrieval.web.rules.html_markdown import convert
from cpq.retrieval.web.rules.page import Block, Page
from cpq.retrieval.web.rules.page_passages import WHOLE_CHARACTERS_MAX, passages_of

BASE = read_address("https://vendor.example/docs/page")


def fetched(body: bytes, content_type: str) -> Fetched:
    return Fetched(BASE, 200, content_type, body, Known())


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("text/html", b"<p>x", "html"),
        ("text/plain", b"<!DOCTYPE html><p>x", "html"),
        ("application/octet-stream", b"\xef\xbb\xbf <html><p>x", "html"),
        ("text/html", b"%PDF-1.7 ...", "pdf"),
        ("application/pdf", b"<html>an error page</html>", "html"),
        ("text/markdown; charset=utf-8", b"# x", "markdown"),
        ("text/plain", b"x", "text"),
        ("", b"x", "text"),
        ("application/json", b'{"a": 1}', "text"),
    ],
)
def test_a_page_is_what_its_first_bytes_say(content_type: str, body: bytes, kind: str):
    assert kind_of(content_type, body) == kind


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html", b"\x89PNG\r\n\x1a\n\0\0\0"),
        ("image/png", b"not really"),
        ("application/pdf", b"no pdf"),
        ("text/plain", b"PK\x03\x04\x00\x00"),
        ("text/plain", bytes(range(1, 32)) * 9),
    ],
)
def test_what_is_neither_text_nor_pdf_is_refused(content_type: str, body: bytes):
    with pytest.raises(FetchError):
        kind_of(content_type, body)


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("Größe".encode(), "text/html; charset=utf-8", "Größe"),
        ("Größe".encode("latin-1"), "text/html; charset=ISO-8859-1", "Größe"),
        ("Größe".encode("latin-1"), "text/html; charset=utf-8", "Größe"),
        ("Größe".encode("latin-1"), "text/html", "Größe"),
        ("“Größe”".encode("windows-1252"), "text/html", "“Größe”"),
        (
            b"<meta charset='windows-1251'>" + "Привет".encode("windows-1251"),
            "text/html",
            "<meta charset='windows-1251'>Привет",
        ),
        ("“Größe”".encode("windows-1252"), "text/html; charset=iso-8859-1", "“Größe”"),
        ("“Größe”".encode("windows-1252"), "text/html; charset=latin1", "“Größe”"),
        ("“Größe”".encode("windows-1252"), "text/html; charset=us-ascii", "“Größe”"),
        ("“ğ”".encode("windows-1254"), "text/html; charset=iso-8859-9", "“ğ”"),
        ("鎔㐀".encode("gb18030"), "text/html; charset=gb2312", "鎔㐀"),
        ("①髙".encode("cp932"), "text/html; charset=Shift_JIS", "①髙"),
        ("똠".encode("cp949"), "text/html; charset=euc-kr", "똠"),
        (b"<meta charset=utf-16>" + "Größe ab".encode(), "text/html", "<meta charset=utf-16>Größe ab"),
        ("空気".encode("shift_jis"), "text/html; charset=Shift_JIS", "空気"),
        ("x".encode("utf-16"), "text/html", "x"),
        (b"\xef\xbb\xbfx", "text/html; charset=latin-1", "x"),
        (b"x" * 500 + b"\xff" + b"x" * 500, "text/html; charset=utf-8", "x" * 500 + "\ufffd" + "x" * 500),
        (b"x", "text/html; charset=rot13", "x"),
        (b"x", "text/html; charset=zlib", "x"),
        (b"x", "text/html; charset=punycode", "x"),
        (b"x", "text/html; charset=", "x"),
    ],
)
def test_a_charset_that_does_not_fit_is_not_believed(body: bytes, content_type: str, text: str):
    assert decoded(body, content_type, is_html=True) == text


@given(st.binary(max_size=300), st.sampled_from(["", "utf-8", "utf-16", "gb18030", "iso-2022-jp", "nonsense"]))
def test_any_bytes_are_some_text(body: bytes, charset: str):
    decoded(body, f"text/html; charset={charset}", is_html=True)


def test_f3_16_markdown_stays_as_it_is():
    """F3.16"""
    source = (
        "# Title\n\nSome *text* <b>as is</b>.\n\n```py\n# no heading\n\nx = 1\n```\n\n"
        "| a | b |\n|---|---|\n\n## Next\n[link](other.md)"
    )
    page, kind = read_page(fetched(source.encode(), "text/markdown"))
    assert kind == "markdown"
    assert page.blocks == (
        Block("heading", "Title", 1),
        Block("text", "Some *text* <b>as is</b>."),
        Block("code", "```py\n# no heading\n\nx = 1\n```"),
        Block("table", "| a | b |\n|---|---|"),
        Block("heading", "Next", 2),
        Block("text", "[link](other.md)"),
    )
    assert [link.url for link in page.links] == ["https://vendor.example/docs/other.md"]


@pytest.mark.parametrize(
    "source",
    ["# x" + " #" * 100_000 + " y", "# " + " " * 200_000, "[" * 200_000, "[a](" * 100_000, "[a](b" + " " * 200_000],
)
def test_markdown_that_is_written_to_take_for_ever_is_read_at_once(source: str):
    assert not read_page(fetched(source.encode(), "text/markdown"))[0].links


def test_markdown_links_are_looked_at_until_there_are_enough(monkeypatch: pytest.MonkeyPatch):
    met: list[str] = []

    def meeting(base: Address, reference: str) -> Address | None:
        met.append(reference)
        return joined(base, reference)

    monkeypatch.setattr("cpq.retrieval.web.page_reader.joined", meeting)
    page, _ = read_page(fetched(" ".join(f"[x]({n})" for n in range(3000)).encode(), "text/markdown"))
    assert len(page.links) == len(met) == 400
    page, _ = read_page(fetched(" ".join(f"[x](ftp:{n})" for n in range(9000)).encode(), "text/markdown"))
    assert (page.links, len(met)) == ((), 400 + 5000)


@pytest.mark.parametrize(
    ("source", "heading"),
    [("# Closed ##", "Closed"), ("# In C#", "In C#"), ("#\tTab  ", "Tab"), ("# a # b #", "a # b"), ("# ##", "##")],
)
def test_a_heading_loses_the_signs_that_close_it_and_no_others(source: str, heading: str):
    """F3.16"""
    assert read_page(fetched(source.encode(), "text/markdown"))[0].blocks == (Block("heading", heading, 1),)


def test_plain_text_is_read_in_paragraphs():
    page, kind = read_page(fetched(b"First line\nsecond\r\n\r\n  Next\n", "text/plain"))
    assert (kind, page.title, [block.text for block in page.blocks]) == (
        "text",
        "First line",
        ["First line\nsecond", "  Next"],
    )


def test_a_pdf_is_read_page_by_page_whatever_lies_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "json.py").write_text("raise SystemExit('imported from the current folder')")
    monkeypatch.chdir(tmp_path)
    second = "<p style='page-break-before: always'>Warranty: five years</p>"
    html = f"<title>Data sheet</title><p>Free air delivery 125 cfm</p>{second}"
    body = weasyprint.HTML(string=html).write_pdf()
    page, kind = read_page(fetched(body, "application/octet-stream"))
    assert (kind, page.title) == ("pdf", "Data sheet")
    assert [(block.kind, block.text) for block in page.blocks] == [
        ("heading", "Page 1"),
        ("text", "Free air delivery 125 cfm"),
        ("heading", "Page 2"),
        ("text", "Warranty: five years"),
    ]


@pytest.mark.parametrize("body", [b"%PDF-1.7", b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n" * 1000])
def test_a_broken_pdf_is_refused(body: bytes):
    with pytest.raises(FetchError, match="the PDF cannot be read"):
        read_page(fetched(body, "application/pdf"))


def test_passages_stay_in_their_section_and_know_its_headings():
    html = "<h1>Top</h1><p>a</p><h2>One</h2><p>b</p><p>c</p><h3>Deep</h3><p>d</p><h2>Two</h2><img src=i.png><p>e</p>"
    made = passages_of(convert(html, BASE))
    assert [(passage.headings, passage.text) for passage in made] == [
        (("Top",), "a"),
        (("Top", "One"), "b\n\nc"),
        (("Top", "One", "Deep"), "d"),
        (("Top", "Two"), "e"),
    ]
    assert [len(passage.images) for passage in made] == [0, 0, 0, 1]


def test_long_tables_and_listings_are_cut_by_lines_and_stay_readable():
    rows = "\n".join(f"| {n} | {'x' * 40} |" for n in range(400))
    code = "\n".join(f"line {n}" for n in range(2000))
    page = Page("t", (Block("table", f"| a | b |\n|---|---|\n{rows}"), Block("code", f"```py\n{code}\n```")))
    made = passages_of(page)
    for passage in made:
        assert len(passage.text) < WHOLE_CHARACTERS_MAX
        assert passage.text.startswith(("| a | b |\n|---|---|\n| ", "```py\nline "))
        assert passage.text.endswith(("|", "\n```"))
    assert sum(passage.text.count("line ") for passage in made) == 2000


@pytest.mark.parametrize(
    "block",
    [
        Block("table", "| " + "word " * 3000),
        Block("table", "| first\n| second\n" + "| word\n" * 3000),
        Block("table", "| a |\n|" + "-" * 6000 + "|\n" + "| word |\n" * 3000),
        Block("code", "```\n" + "word\n" * 3000 + "last"),
        Block("code", "```" + "word " * 3000),
        Block("code", "```" + "x" * 6000 + "\n" + "word\n" * 3000 + "```"),
    ],
)
def test_a_head_or_fence_that_is_none_is_not_repeated_and_nothing_is_lost(block: Block):
    made = passages_of(Page("t", (block,)))
    for word in ("word", "first", "second", "last"):
        assert sum(passage.text.count(word) for passage in made) == block.text.count(word)
    assert all(len(passage.text) < WHOLE_CHARACTERS_MAX for passage in made)


@given(
    st.lists(
        st.tuples(st.sampled_from(["heading", "text", "code", "table"]), st.text(alphabet="ab \n", max_size=3000)),
        max_size=8,
    )
)
def test_no_word_of_a_page_is_lost_in_its_passages(parts):
    blocks = tuple(
        Block(kind, text, 2 if kind == "heading" else 0) for kind, text in parts if text.strip() and kind == "text"
    )
    made = passages_of(Page("t", blocks))
    assert "".join("".join(passage.text.split()) for passage in made) == "".join(
        "".join(b.text.split()) for b in blocks
    )
    assert all(len(passage.text) <= PART_CHARACTERS for passage in made)
    assert [passage.ordinal for passage in made] == list(range(len(made)))
