"""BERT's list of word pieces, which ships with us: the order is that of the embedding model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path


@cache
def places() -> Mapping[str, int]:
    """The place of each piece: marks and letters first; then whole words and, after `##`, ends of words, the most
    common first."""
    listed = Path(__file__).with_name("wordpiece.txt").read_text(encoding="utf-8").splitlines()
    return {piece: place for place, piece in enumerate(listed)}
