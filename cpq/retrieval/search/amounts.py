"""Searches a query also with its amounts in the units of the corpus, `75 kW` as `100 hp`, and says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

from cpq.domain.catalog import units
from cpq.domain.catalog.units import Converted, Unit
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.search.index import ANYWHERE, Found, Where
from cpq.retrieval.search.scores import LIKELY_GOOD
from cpq.services.catalog.views import UnitConversion

Stated = Mapping[Unit, Mapping[Decimal, int]]


class Searched(NamedTuple):
    found: Found
    conversions: list[UnitConversion]


def stated(corpus: Corpus, query: str) -> dict[Unit, Mapping[Decimal, int]]:
    """The amounts in the texts of a corpus, of the kinds that the query has."""
    kinds = units.kinds(query)
    return {unit: corpus.amounts(name.lower()) for name, unit in units.UNITS.items() if unit.kind in kinds}


def search(corpus: Corpus, query: str, amounts: Stated, *, limit: int, where: Where = ANYWHERE) -> Searched:
    """The best hits of the query as it is and with converted amounts; a passage has the best of its scores.

    Numbers further off are searched only until a good hit is found.
    """
    found = corpus.search(query, limit=limit, where=where)
    texts, made = units.converted(query, amounts)
    for tried, text in enumerate(texts, 1):
        found = _better(found, corpus.search(text, limit=limit, where=where), limit)
        if found.hits and found.hits[0].confidence == LIKELY_GOOD:
            return Searched(found, conversions(made, texts[:tried]))
    return Searched(found, conversions(made, texts))


def conversions(made: Iterable[Converted], texts: Iterable[str]) -> list[UnitConversion]:
    """What was converted, with the numbers that these texts have of it."""
    read = "\n".join(texts)
    return [_shown(one, read) for one in made]


def _shown(made: Converted, texts: str) -> UnitConversion:
    shown: UnitConversion = {"argument": "query", "from": str(made.amount), "to": made.shown}
    used = [made.text(choice) for choice in range(len(made.near)) if made.text(choice) in texts]
    if used:
        shown["searched"] = ", ".join(used)
    return shown


def _better(one: Found, other: Found, limit: int) -> Found:
    """Two searches with the same conditions as one; every passage with the better of its scores."""
    best = {hit.id: hit for hit in sorted((*one.hits, *other.hits), key=lambda hit: hit.score)}
    hits = sorted(best.values(), key=lambda hit: (-hit.score, hit.id))[:limit]
    words = tuple(dict.fromkeys((*one.words, *other.words)))
    return one._replace(hits=hits, corrections={**one.corrections, **other.corrections}, words=words)
