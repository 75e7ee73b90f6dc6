"""Link text is not evidence: blocks of nothing but links are left out, and their links kept."""

import pytest

from cpq.retrieval.web.page_reader import read_page
from cpq.retrieval.web.rules.addresses import read_address
from cpq.retrieval.web.rules.html_markdown import convert
from cpq.retrieval.web.rules.page_passages import passages_of
from tests.retrieval.web.test_page_reader import fetched

BASE = read_address("https://vendor.example/docs/page.html")


def texts(html: str) -> list[str]:
    return [block.text for block in convert(html, BASE).blocks]


@pytest.mark.parametrize(
    ("html", "label"),
    [
        ("<p><a href='/x'>Oil change intervals</a></p>", "Oil change intervals"),
        ("<ul><li><a href='/x'>Oil</a></li><li><a href='/y'>Belts</a></li></ul>", "Oil"),
        ("<ol><li><a href='#oil'>Oil change</a> ....... 12</li><li><a href='/x'>Belts</a> … 14</li></ol>", "Belts"),
        ("<p>See also <a href='/x'>the manual</a>.</p>", "the manual"),
        ("<p><a href='/x'>Warranty</a> · <a href='/y'>Service</a></p>", "Warranty"),
        ("<p>" + " · ".join(f"<a href='/{n}'>Model {n}</a>" for n in range(90)) + "</p>", "Model 89"),
        ("<a href='/x'><div>Oil change intervals</div></a>", "Oil change intervals"),
        ("<table><tr><td><a href='/x'>Oil</a></td><td><a href='/y'>Belts</a></td></tr></table>", "Oil"),
        ("<ul><li><a href='/x'><code>drain()</code></a></li></ul>", "`drain()`"),
    ],
)
def test_a_block_of_nothing_but_links_is_a_menu(html: str, label: str):
    page = convert(html, BASE)
    assert page.blocks == ()
    assert label in [link.text for link in page.links]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>Maker: <a href='/x'>Atlas</a></p>", "Maker: Atlas"),
        ("<p>The <a href='/x'> oil </a> is changed <a href='#n'>[1]</a>.</p>", "The oil is changed [1]."),
        (
            "<ol><li><a href='/x'>Open the panel</a></li><li>Drain the oil</li></ol>",
            "1. Open the panel\n2. Drain the oil",
        ),
        ("<p><a href='tel:+4930'>+49 30</a></p>", "+49 30"),
        ("<dl><dt>Maker</dt><dd><a href='/x'>Atlas</a></dd></dl>", "**Maker**: Atlas"),
        (
            "<a href='/x'><p>The oil of every machine is changed after 4000 hours.</p></a>",
            "The oil of every machine is changed after 4000 hours.",
        ),
        (
            "<table><tr><th>Model</th><th>hp</th></tr><tr><td><a href='/x'>AX1</a></td><td>5</td></tr></table>",
            "| Model | hp  |\n|-------|-----|\n| AX1   | 5   |",
        ),
    ],
)
def test_a_link_within_text_or_data_stays(html: str, expected: str):
    assert texts(html) == [expected]


def test_of_a_menu_with_a_heading_in_it_only_the_heading_stays():
    items = "".join(f"<li><a href='/{n}'>Model AX{n}</a></li>" for n in range(9))
    assert texts(f"<ul><li>Rotary compressors<ul>{items}</ul></li></ul>") == ["- Rotary compressors"]


def test_markdown_stays_as_it_is_but_its_menus_are_no_passages():
    source = b"# Manual\n\nOil is changed yearly, see [more](more.md).\n\n- [Oil change](oil.md)\n- [Belts](belts.md)\n"
    page, _ = read_page(fetched(source, "text/markdown"))
    assert [block.text for block in page.blocks][-1] == "- [Oil change](oil.md)\n- [Belts](belts.md)"
    assert [passage.text for passage in passages_of(page)] == ["Oil is changed yearly, see [more](more.md)."]
    assert len(page.links) == 3
