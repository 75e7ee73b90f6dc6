"""The context toolset: chunks of code, documentation and data, searched by words and meaning.

`commands` has what the tools call, `chunk_folder` the files, and `indexer` writes such files from a source folder.
"""

from cpq.retrieval.context.commands import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    index,
    loops,
    require,
    search,
)
from cpq.retrieval.context.views import ContextFound

__all__ = ["LIMIT_DEFAULT", "LIMIT_MAX", "ContextFound", "index", "loops", "require", "search"]
