"""The docs toolset: search and read the company's own pages. Agents read the docstrings."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.retrieval import docs
from cpq.retrieval.docs import DocsFound, DocsPage, DocsPages, DocsSection, DocsStatus
from mcp_facade.arguments import TopK, raw_text
from mcp_facade.long_question import LongQuestion
from mcp_facade.registry import tool

PATH_LENGTH_MAX = 4_096

RawText = Annotated[str, Field(min_length=1, max_length=PATH_LENGTH_MAX), BeforeValidator(raw_text)]
FilePath = Annotated[RawText, Field(description="A page's path as list_pages returns it: `terms/payment.md`.")]


@tool(title="Search the docs", toolset="docs", needs=Permission.READ)
def search_docs(
    tx: Tx,
    *,
    query: LongQuestion,
    top_k: Annotated[
        TopK, Field(description=f"Number of passages, 1 to {docs.TOP_K_MAX}; other values are clamped.")
    ] = docs.TOP_K_DEFAULT,
    file_filter: Annotated[
        RawText | None,
        Field(
            description="Only these pages: a path, a folder, or a pattern such as `terms/*`, `**/*.md`, `{a,b}.md`; "
            "`*` stays within one folder."
        ),
    ] = None,
) -> DocsFound:
    """Search the company's own pages: sales playbook, terms, product notes, policies in prose.

    Returns passages word for word, best first, each with its page and the breadcrumb of its headings; cite both. There
    is no threshold: judge by `score` (0 to 1) whether a passage answers the question. The breadcrumb shows when a
    passage is part of a longer section; get_section reads the whole section. Pages only describe: the engine decides
    prices and approvals, so check them with the quote tools.
    """
    return docs.search(tx, query, top_k=top_k, file_filter=file_filter)


@tool(title="Read a page", toolset="docs", needs=Permission.READ)
def get_page(tx: Tx, *, file_path: FilePath) -> DocsPage:
    """Read a whole page: all sections in order, each with its breadcrumb."""
    return docs.get_page(tx, file_path)


@tool(title="Read a section", toolset="docs", needs=Permission.READ)
def get_section(
    tx: Tx,
    *,
    file_path: FilePath,
    heading_path: Annotated[
        RawText, Field(description="The full breadcrumb, as search_docs and get_page return it: `Terms > Payment`.")
    ],
) -> DocsSection:
    """Read one section: its heading and the text up to the next heading. Long sections are not cut.

    When a heading occurs twice under the same parent heading, the second is `Name (2)`.
    """
    return docs.get_section(tx, file_path, heading_path)


@tool(title="List the pages", toolset="docs", needs=Permission.READ)
def list_pages(
    tx: Tx,
    *,
    prefix: Annotated[RawText | None, Field(description="Only pages in this folder: `terms` or `terms/`.")] = None,
) -> DocsPages:
    """List the pages, ordered by path, each with its title, its headings of the first two levels and its size."""
    return docs.list_pages(tx, prefix)


@tool(title="Status of the docs", toolset="docs", needs=Permission.READ)
def get_status(tx: Tx) -> DocsStatus:
    """Check whether the docs are healthy and fresh: version, counts, last change, model, git commits, broken files.

    `git` is null outside a repository. If `head_commit` and `origin_main` differ, somebody has to pull.
    """
    return docs.status(tx)


TOOLS = (search_docs, get_page, get_section, list_pages, get_status)
