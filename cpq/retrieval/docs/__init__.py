"""The docs toolset: Markdown pages of one folder, searched by words and meaning, and read page by page."""

from cpq.retrieval.docs.toolset import (
    TOP_K_DEFAULT,
    TOP_K_MAX,
    DocsFound,
    DocsPage,
    DocsPages,
    DocsSection,
    DocsStatus,
    get_page,
    get_section,
    index,
    list_pages,
    loops,
    read,
    require,
    search,
    status,
)

__all__ = [
    "TOP_K_DEFAULT",
    "TOP_K_MAX",
    "DocsFound",
    "DocsPage",
    "DocsPages",
    "DocsSection",
    "DocsStatus",
    "get_page",
    "get_section",
    "index",
    "list_pages",
    "loops",
    "read",
    "require",
    "search",
    "status",
]
