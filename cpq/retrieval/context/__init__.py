"""The context toolset: chunks of code, documentation and data, searched by words and meaning."""

from cpq.retrieval.context.toolset import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    ContextFound,
    index,
    loops,
    require,
    search,
)

__all__ = ["LIMIT_DEFAULT", "LIMIT_MAX", "ContextFound", "index", "loops", "require", "search"]
