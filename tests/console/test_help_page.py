"""The pages of the guide in the console: all of them, with links that lead somewhere."""

import re

from cpq.base.settings import GUIDE
from tests.support.console import Console


def test_every_page_of_the_guide_is_a_page_whose_links_lead_somewhere(sqlite_console: Console):
    visitor = sqlite_console.signed_in("rosa", "sales_rep")
    pages = {"": visitor.get("/console/guide").text}
    pages |= {path.stem: visitor.get(f"/console/guide/{path.stem}").text for path in GUIDE.glob("*.md")}
    for name, page in pages.items():
        content = page.partition("<article")[2].partition("</article>")[0]
        assert "<h1" in content, name
        assert "&lt;!--" not in content, name
        assert "<img" not in content, name
        for target, anchor in re.findall(r'href="(?!https://)([^"#]*)(#[^"]*)?"', content):
            assert not target or target.startswith("/console/guide/"), f"{name}: {target}"
            there = pages[target.rpartition("/")[2] or name]
            assert not anchor or f'id="{anchor[1:]}"' in there, f"{name}: {target}{anchor}"
    assert {path.stem for path in GUIDE.glob("*.md")} - {"README"} <= set(
        re.findall(r"/console/guide/(\w+)", pages[""])
    )


def test_a_page_that_is_not_in_the_guide_is_missing(sqlite_console: Console):
    visitor = sqlite_console.signed_in("rosa", "sales_rep")
    for name in ("nothing", "..%2F..%2FREADME", "README.md"):
        assert visitor.get(f"/console/guide/{name}").status_code == 404
