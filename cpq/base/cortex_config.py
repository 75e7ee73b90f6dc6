"""What a user of Cortex has set for the context toolset: its variables, and `.cortex/config.yml` of the project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cpq.base.late_modules import LateModule

if TYPE_CHECKING:
    import yaml
else:
    yaml = LateModule("yaml")

CHUNKS_VARIABLE, ENDPOINT_VARIABLE = "CORTEX_CHUNKS_DIR", "CORTEX_EMBEDDING_ENDPOINT"
DIMENSIONS = 384
"""Of the model in this process."""

FILE = Path(".cortex", "config.yml")
USUAL_CHUNKS = Path(".cortex", "chunks")


class Cortex(NamedTuple):
    chunks_dir: Path | None
    """From the variable, else from the file; None when neither says where chunks are."""
    refused: tuple[str, str] | None = None
    """The name and the reason of what we cannot do, for a server that searches chunks."""
    warning: str | None = None
    """Why the file has no effect."""


def read(variables: Mapping[str, str], folder: Path) -> Cortex:
    """The settings of Cortex. `embedding.endpoint` of its file is where Cortex starts a model; we bring our own."""
    refused = None
    if endpoint := variables.get(ENDPOINT_VARIABLE):
        refused = (ENDPOINT_VARIABLE, f"{ENDPOINT_VARIABLE} asks for the embeddings of {endpoint}")
    if named := variables.get(CHUNKS_VARIABLE):
        return Cortex(Path(named), refused)
    try:
        found = _content(folder / FILE)
        dimensions = _part(found, "embedding").get("dimensions", DIMENSIONS)
        chunks = _part(found, "server").get("chunks_dir")
        if chunks is not None and not (isinstance(chunks, str) and chunks.strip()):
            raise ValueError("server.chunks_dir is not the name of a folder")
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        return Cortex(None, refused, f"{FILE} cannot be used and has no effect: {reason}")
    if found and dimensions != DIMENSIONS:
        refused = refused or (str(FILE), f"{FILE} asks for embeddings of {dimensions} dimensions")
    usual = folder / USUAL_CHUNKS
    return Cortex(folder / chunks if chunks else usual if found and usual.is_dir() else None, refused)


def _content(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    if found is not None and not isinstance(found, dict):
        raise ValueError("it is no list of names and values")
    return found or {}


def _part(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = found.get(name) or {}
    if not isinstance(part, dict):
        raise ValueError(f"{name} is no list of names and values")
    return part
