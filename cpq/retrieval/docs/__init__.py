"""The docs toolset: Markdown pages of one folder, searched by words and meaning, and read page by page.

`commands` has what the tools call, `views` what they answer with, `page_folder` the files.
"""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.retrieval.docs.commands import (
        TOP_K_DEFAULT,
        TOP_K_MAX,
        get_page,
        get_section,
        index,
        list_pages,
        loops,
        progress,
        read,
        require,
        search,
        status,
    )
    from cpq.retrieval.docs.views import DocsFound, DocsPage, DocsPages, DocsSection, DocsStatus

export_late(__name__, __file__)

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
    "progress",
    "read",
    "require",
    "search",
    "status",
]
