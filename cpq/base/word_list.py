"""BERT's list of word pieces, which ships with us: the order is that of the embedding model."""

from __future__ import annotations

from pathlib import Path


def pieces() -> list[str]:
    """Marks and letters first; then whole words and, after `##`, ends of words, the most common first."""
    return Path(__file__).with_name("wordpiece.txt").read_text(encoding="utf-8").splitlines()
