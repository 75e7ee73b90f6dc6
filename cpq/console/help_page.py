"""The guide: the product's own documentation, one Markdown file for each page."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from starlette.responses import Response

from cpq.app import Answer
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError
from cpq.base.settings import GUIDE
from cpq.console.visit import Visit

FIRST = "README"
_MARKS = re.compile(r"<!--.*?-->\n?", re.DOTALL)


def show(visit: Visit) -> Response:
    """Shows a page of the guide; its first page lists the others."""

    def work(_tx: Tx) -> Answer:
        return {}

    visit.read("guide", work)
    name = visit.request.path_params.get("name", FIRST)
    if name not in {path.stem for path in GUIDE.glob("*.md")}:
        raise CpqError(Code.NOT_FOUND, "The guide has no such page.")
    title, content = _page(name)
    return visit.page("guide.html", title=title, content=Markup(content), is_first=name == FIRST)  # noqa: S704 # Our own file.


@lru_cache
def _page(name: str) -> tuple[str, str]:
    """The title of a page, and its text as HTML."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(_MARKS.sub("", (GUIDE / f"{name}.md").read_text(encoding="utf-8")))
    title = next(after.content for token, after in pairwise(tokens) if token.type == "heading_open")
    for token, after in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", anchor(after.content))
        elif token.type == "table_open":
            token.attrSet("class", "plain")
        elif token.type == "th_open":
            token.attrSet("scope", "col")
        token.children = _within_the_console(token.children or [])
    html = reader.renderer.render(tokens, reader.options, {})
    html = html.replace("<pre>", '<pre tabindex="0">')
    return title, html.replace("<table", '<div class="wide" tabindex="0"><table').replace("</table>", "</table></div>")


def anchor(heading: str) -> str:
    """The name of a heading in addresses, as code hosts make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _within_the_console(tokens: list[Token]) -> list[Token]:
    """Links between pages lead to pages of the console; what is not here stands as text, and pictures are left out."""
    kept: list[Token] = []
    is_dead = False
    for token in tokens:
        if token.type == "link_open":
            address = str(token.attrGet("href"))
            page = re.fullmatch(r"([\w-]+)\.md(#[\w-]+)?", address)
            if page:
                token.attrSet("href", f"/console/guide/{page[1]}{page[2] or ''}")
            is_dead = not page and not address.startswith(("#", "https://"))
        if token.type != "image" and not (is_dead and token.type in ("link_open", "link_close")):
            kept.append(token)
    return kept
