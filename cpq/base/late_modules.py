"""Modules that are imported when they are first used, so that a short command does not wait for what it never needs."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from typing import Any


class LateModule:
    """Stands for a module that is imported when one of its attributes is first read.

    Not `importlib.util.LazyLoader`: before Python 3.11.8 two threads that read the first attribute at once break it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


def export_late(package: str, file: str) -> None:
    """Give a package the names that its file imports under `if TYPE_CHECKING:`; each is imported when it is first read.

    The names are written once, where a person and the type checker look for them.
    """
    places = _type_checked_imports(Path(file))
    own = sys.modules[package]

    def read(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(places[name]), name)
        setattr(own, name, value)
        return value

    own.__getattr__ = read  # type: ignore[method-assign]  # PEP 562 reads it from the module, not from its class.


def _type_checked_imports(file: Path) -> dict[str, str]:
    """The module of each name that is imported for the type checker alone."""
    blocks = (node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.If))
    imports = (node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom) and node.module)
    return {alias.name: str(node.module) for node in imports for alias in node.names}
