"""Notes what a call searched for and how well it was found, for the record of queries."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal

from cpq.app.call import Retrieval
from cpq.app.transaction import Tx
from cpq.retrieval.search.scores import PROBABLE_MISS, confidence


def note(tx: Tx, query: str, mode: str, scores: Collection[float]) -> None:
    """Note a search and the scores of its hits. Of several searches of one call, the last counts."""
    best = max(scores, default=None)
    band = None if best is None else confidence(best)
    score = None if best is None else Decimal(f"{best:.4f}")
    is_failed = band in (None, PROBABLE_MISS)
    tx.retrieved[:] = [Retrieval(query, len(scores), mode, score, band, is_failed)]


def note_unscored(tx: Tx, query: str, mode: str, hits: int) -> None:
    """Note a search whose hits have no score."""
    tx.retrieved[:] = [Retrieval(query, hits, mode, None, None, is_failed=not hits)]
