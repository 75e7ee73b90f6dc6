"""The context toolset: chunks of code, documentation and data, searched by words and meaning.

`commands` has what the tools call, `chunk_folder` the files, and `indexer` writes such files from a source folder.
"""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.retrieval.context.commands import (
        LIMIT_DEFAULT,
        LIMIT_MAX,
        index,
        loops,
        require,
        search,
    )
    from cpq.retrieval.context.views import ContextFound

export_late(__name__, __file__)

__all__ = ["LIMIT_DEFAULT", "LIMIT_MAX", "ContextFound", "index", "loops", "require", "search"]
