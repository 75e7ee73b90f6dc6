"""Folders for the operator alone: customers, prices and documents are in them."""

from __future__ import annotations

from pathlib import Path


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, which nobody else can enter; whatever the umask is."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
