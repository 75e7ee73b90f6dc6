"""Other libraries to compare with: each is a module, or None where it is not installed. `make bench` sees to them."""

import importlib
from typing import Any


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


bm25s = _installed("bm25s")
clingo = _installed("clingo")
usearch = _installed("usearch.index")
zen = _installed("zen")
