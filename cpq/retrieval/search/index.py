"""PURE. An immutable index in memory: a change makes a new index, and running searches keep the old one.

It consists of a few immutable segments, as in Lucene: a change adds a small segment and marks the replaced passages as
gone. Every passage that passes the filters is scored, so none is lost outside a nearest N; the order is score, then id.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpq.domain.catalog.spelling import nearest_words
from cpq.retrieval.search.english import is_english, may_be_meaningful, significance
from cpq.retrieval.search.index_columns import Bound, Number, bound, columns, strings
from cpq.retrieval.search.lexicon import Clash, Phrase, Reading, Slot, read_passage, read_query, terms, unit_of
from cpq.retrieval.search.packed_texts import Texts
from cpq.retrieval.search.passage_vectors import Mask, PassageVectors
from cpq.retrieval.search.postings import NO_ROWS, SPELT, Postings, Rows, common, is_among
from cpq.retrieval.search.scores import (
    ALSO_SHARE,
    CLASH_SHARE,
    TITLE_SHARE,
    Scale,
    as_analogue,
    as_named,
    as_quoted,
    confidence,
    density,
    eased,
    weight,
)
from cpq.retrieval.search.sequences import Sequences, hashed
from cpq.retrieval.search.spellings import Spellings
from cpq.retrieval.search.vectors import Vector

SCORE_STEPS = 10_000
"""Scores are compared to four digits, so that rounding of the last bit does not decide the order."""

FEW_PASSAGES = 20
"""So few passages are all listed to a query that may mean something, though it matches none of them."""

_TAG, _TITLE, _ALSO = "\0", "\1", "\4"
"""Prefixes of terms that are tags, or words of the title or of further texts; no word begins with them."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A searchable passage. `title`, `text` and `words` are searched but not kept; `payload` is kept."""

    id: str
    """Unique in the corpus; equal scores are ordered by id."""
    document_id: str
    """The document of the passage. Documents are replaced and removed as a whole."""
    text: str
    title: str = ""
    words: str = ""
    """Found by its words alone: codes, numbers and specs, which mean little to the model."""
    tags: Collection[str] = ()
    numbers: Mapping[str, Number] = field(default_factory=dict)
    is_prose: bool = False
    """Whether a denied word also counts as a term; see `lexicon.terms`."""
    payload: Any = None
    """Returned with the hit: provenance, or where to read the text."""

    also: Collection[str] = ()
    """Further texts: the uses of a thing, for example. A passage is as near as the nearest of its texts; their words
    count less than its own, because they are often those of other things."""

    @property
    def read(self) -> str:
        """The text that is embedded; its words are searched too."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts that are embedded."""
        return (self.read, *self.also)


@dataclass(frozen=True)
class Where:
    """Hard conditions, checked before ranking. A passage without a requested number or tag does not pass."""

    numbers: Mapping[str, tuple[Bound | None, Bound | None]] = field(default_factory=dict)
    """Smallest and largest value, both included; None for no bound."""
    all_tags: Collection[str] = ()
    any_tags: Collection[Collection[str]] = ()
    """At least one tag of each group."""
    documents: Collection[str] | None = None
    is_asked: bool = True
    """False for conditions that the caller did not ask for; then hits without any word of the query are dropped."""
    is_lenient: bool = False
    """True to return the best hits even when they match little of the query."""

    @property
    def is_open(self) -> bool:
        if self.is_lenient:
            return False
        return not self.is_asked or not (self.numbers or self.all_tags or self.any_tags or self.documents is not None)


ANYWHERE = Where()


class Hit(NamedTuple):
    id: str
    document_id: str
    score: float
    confidence: str
    similarity: float | None
    """Cosine of the vectors; None without a vector."""
    coverage: float
    payload: Any


class Found(NamedTuple):
    hits: list[Hit]
    eligible: int
    """How many passages passed the filters."""
    mode: str
    """`hybrid`, or `lexical` when only words counted."""
    corrections: dict[str, str]
    """Unknown words, and the words used instead."""
    words: tuple[str, ...]
    """The terms of the query, for excerpts."""
    waiting: str | None = None
    """While vectors are being made: how far that is."""


class Segment:
    """Passages that were indexed together. Everything but the vectors is fixed; vectors are added as they are
    computed."""

    def __init__(self, chunks: Sequence[Chunk], *, with_vectors: bool) -> None:
        # Arrays instead of small objects: objects take twice the memory, and lying between the temporary data of a
        # load they keep the system from reclaiming it.
        self.ids: NDArray[Any] | Texts = strings(chunk.id for chunk in chunks)
        self.documents = [chunk.document_id for chunk in chunks]
        self.payloads = [chunk.payload for chunk in chunks]
        self.numbers = columns([chunk.numbers for chunk in chunks])
        words: list[NDArray[np.uint16]] = []
        lengths: list[int] = []
        self.postings = Postings.of(_terms_of(chunks, words, lengths))
        self.sequences = Sequences.of(words)
        self.lengths = np.array(lengths, np.int32)
        """The number of words of each passage."""
        self.vectors = PassageVectors([chunk.texts for chunk in chunks], with_vectors=with_vectors)

    @classmethod
    def merged(cls, parts: Sequence[tuple[Segment, Mask]]) -> Segment:
        """The living passages of several segments as one segment."""
        whole = cls((), with_vectors=False)
        kept = [(part, np.flatnonzero(alive)) for part, alive in parts]
        whole.ids = np.concatenate([part.ids[rows] for part, rows in kept])
        whole.documents = [part.documents[row] for part, rows in kept for row in rows.tolist()]
        whole.payloads = [part.payloads[row] for part, rows in kept for row in rows.tolist()]
        names = {name for part, _ in kept for name in part.numbers}
        whole.numbers = {
            name: np.concatenate([part.numbers.get(name, np.full(len(part.ids), np.nan))[rows] for part, rows in kept])
            for name in names
        }
        whole.postings = Postings.merged([(part.postings, rows, len(part.ids)) for part, rows in kept])
        whole.lengths = np.concatenate([part.lengths[rows] for part, rows in kept])
        whole.sequences = Sequences.merged([(part.sequences, rows) for part, rows in kept])
        whole.vectors = PassageVectors.merged([(part.vectors, rows) for part, rows in kept])
        return whole

    @cached_property
    def spellings(self) -> Spellings:
        return Spellings.of(term.removeprefix(SPELT) for term in self.postings.terms() if term.startswith(SPELT))

    @cached_property
    def sizes(self) -> dict[str, list[str]]:
        """The terms that are a number with its unit, by unit."""
        found: dict[str, list[str]] = {}
        for term in self.postings.terms():
            if unit := unit_of(term):
                found.setdefault(unit, []).append(term)
        return found

    @cached_property
    def starts(self) -> Rows:
        """The first row of each document; the passages of a document are adjacent."""
        changes = [row for row, name in enumerate(self.documents) if not row or name != self.documents[row - 1]]
        return np.array(changes, np.int64)

    @cached_property
    def ranks(self) -> NDArray[np.int32]:
        """The rank of each passage in the order of ids."""
        ranks = np.empty(len(self.ids), np.int32)
        ranks[np.argsort(self.ids)] = np.arange(len(self.ids), dtype=np.int32)
        return ranks

    @cached_property
    def rows_of(self) -> dict[str, range]:
        ends = [*self.starts[1:].tolist(), len(self.ids)]
        return {self.documents[start]: range(start, end) for start, end in zip(self.starts.tolist(), ends, strict=True)}

    def eligible(self, alive: Mask, where: Where) -> Mask:
        mask = alive
        if where.documents is not None:
            mask = mask & self._mask(row for name in where.documents for row in self.rows_of.get(name, ()))
        for tag in where.all_tags:
            mask = mask & self._mask(self.postings.rows(_TAG + tag))
        for group in where.any_tags:
            mask = mask & self._having([_TAG + tag for tag in group])
        for name, (low, high) in where.numbers.items():
            column = self.numbers.get(name)
            if column is None:
                return np.zeros(len(self.ids), bool)
            mask = mask & ~np.isnan(column)
            mask = mask if low is None else mask & (column >= bound(low, np.inf))
            mask = mask if high is None else mask & (column <= bound(high, -np.inf))
        return mask

    @property
    def has_more(self) -> bool:
        """Whether a passage has further texts."""
        return len(self.vectors.owners) > 0

    def coverage(self, slots: Sequence[Slot], weights: Sequence[float]) -> NDArray[np.float64]:
        """For every passage, the share of the query's words that it holds, weighted by `scores.weight`."""
        whole = sum(weights)
        covered = np.zeros(len(self.ids), np.float64)
        for slot, share in zip(slots, weights, strict=True):
            text, title = share * (1 - TITLE_SHARE), share * TITLE_SHARE
            held = [(term, text * worth) for term, worth in slot.fillings]
            also = [(_ALSO + term, ALSO_SHARE * worth) for term, worth in held] if self.has_more else []
            self._add(covered, sorted([*held, *also], key=itemgetter(1), reverse=True))
            self._add(covered, [(_TITLE + term, title * worth) for term, worth in slot.fillings])
        return covered / whole if whole else covered

    def _add(self, covered: NDArray[np.float64], fillings: Sequence[tuple[str, float]]) -> None:
        """Add to every passage the worth of the best filling that it holds; `fillings` are sorted, best first."""
        held = [(rows, worth) for term, worth in fillings if len(rows := self.postings.rows(term))]
        if len(held) == 1:
            covered[held[0][0]] += held[0][1]
        elif held:
            best = np.zeros(len(covered), np.float64)
            for rows, worth in reversed(held):
                best[rows] = worth
            covered += best

    def quoting(self, phrase: Phrase) -> NDArray[np.float64] | None:
        """For every passage, 0 when it does not hold the words side by side, and up to 1 the more it is about them;
        None when no passage does."""
        rows = self._holding_words(phrase)
        dense = density(self.sequences.counts(phrase.core, rows), self.lengths[rows]) if len(rows) else rows
        if not dense.any():
            return None
        if phrase.name:
            is_whole = is_among(rows, self.postings.rows(phrase.name))
        elif phrase.words == phrase.core:
            is_whole = dense > 0
        else:
            is_whole = self.sequences.counts(phrase.words, rows) > 0
        found = np.zeros(len(self.ids), np.float64)
        found[rows] = dense / 2 + is_whole / 2
        return found

    def _holding_words(self, phrase: Phrase) -> Rows:
        """The passages that hold every word of the phrase, in order; rare words first, to compare few."""
        either = [(self.postings.rows(whole), list(map(self.postings.rows, parts))) for whole, parts in phrase.terms]
        held = [common(parts) if not len(whole) else np.union1d(whole, common(parts)) for whole, parts in either]
        return common(held)

    def clashing(self, clashes: Sequence[Clash]) -> Mask:
        """Which passages hold the opposite of what is asked for, and not what is asked for."""
        found = np.zeros(len(self.ids), bool)
        for clash in clashes:
            found |= self._having(clash.excluded) & ~self._having(clash.asked)
        return found

    def holding(self, all_of: Collection[str]) -> Mask:
        found = np.ones(len(self.ids), bool)
        for term in all_of:
            found &= self._having([term])
        return found

    def _having(self, any_of: Collection[str]) -> Mask:
        return self._mask(np.concatenate([NO_ROWS, *(self.postings.rows(term) for term in any_of)]))

    def _mask(self, rows: Iterable[int] | Rows) -> Mask:
        mask = np.zeros(len(self.ids), bool)
        mask[rows if isinstance(rows, np.ndarray) else list(rows)] = True
        return mask


class Index:
    """The searchable state at one moment. It never changes; `changed` makes the next one."""

    def __init__(self, parts: Sequence[tuple[Segment, Mask]] = ()) -> None:
        self._parts = tuple(parts)
        self._alive = [int(alive.sum()) for _, alive in self._parts]
        self._amounts: dict[str, Mapping[Decimal, int]] = {}

    def __len__(self) -> int:
        return sum(self._alive)

    def whole(self) -> Segment:
        """All living passages as one segment."""
        return Segment.merged(self._parts)

    def documents(self) -> Iterator[str]:
        for segment, alive in self._parts:
            yield from (segment.documents[start] for start in segment.starts.tolist() if alive[start])

    def hashes(self) -> Iterator[bytes]:
        for segment, alive in self._parts:
            yield from segment.vectors.hashes_of(alive)

    def changed(self, chunks: Iterable[Chunk], removed: Collection[str] = (), *, with_vectors: bool) -> Index:
        """The index with these documents in place of their old versions, and without the removed ones."""
        fresh = sorted(chunks, key=attrgetter("document_id", "id"))
        gone = {*removed, *(chunk.document_id for chunk in fresh)}
        known: dict[bytes, Vector] = {}
        parts = []
        for segment, alive in self._parts:
            rows = [row for name in gone if name in segment.rows_of for row in segment.rows_of[name] if alive[row]]
            if rows:
                known |= segment.vectors.of(rows)
                segment.vectors.forget(rows)
                alive = alive.copy()
                alive[rows] = False
            if alive.any():
                parts.append((segment, alive))
        if fresh:
            segment = Segment(fresh, with_vectors=with_vectors)
            segment.vectors.fill(known)
            parts.append((segment, np.ones(len(fresh), bool)))
        return Index(_tidied(parts))

    def missing(self, *, newest_first: bool = False) -> Iterator[bytes]:
        """The hashes of the texts without a vector; nothing may be filled during the iteration."""
        parts = [segment.vectors.missing for segment, _ in self._parts]
        return chain.from_iterable(map(reversed, reversed(parts)) if newest_first else parts)

    def has_missing(self) -> bool:
        return any(segment.vectors.missing for segment, _ in self._parts)

    def waiting(self) -> int:
        """How many passages have no vector yet."""
        return sum(int((alive & segment.vectors.waiting()).sum()) for segment, alive in self._parts)

    def text(self, name: bytes) -> str | None:
        """A text without a vector, by its hash."""
        texts = (segment.vectors.text(name) for segment, _ in self._parts)
        return next((text for text in texts if text is not None), None)

    def fill(self, vectors: Mapping[bytes, Vector]) -> int:
        return sum(segment.vectors.fill(vectors) for segment, _ in self._parts)

    def has_vectors(self) -> bool:
        return any(bool(segment.vectors.scales.any()) for segment, _ in self._parts)

    def search(self, text: str, vector: Vector | None, *, scale: Scale, limit: int, where: Where = ANYWHERE) -> Found:
        """The best of all passages that pass `where`."""
        total = len(self)
        read = read_query(text, self._count_of_words, self._near, with_denied=scale.is_prose)
        weights = [
            (1.0 if scale.is_prose else significance(slot.word))
            * weight(max((self._count_of_words(term) for term, _ in slot.fillings), default=0), total)
            for slot in read.slots
        ]
        of_slot = dict(zip((slot.word for slot in read.slots), weights, strict=True))
        strengths = [
            1.0 if not place else min(1.0, 2 * of_slot.get(phrase.name, 0.0) / sum(weights))
            for place, phrase in enumerate(read.phrases)
        ]
        vector = vector if self.has_vectors() else None
        ranked = [
            _Ranked(segment, segment.eligible(alive, where), read, weights, strengths, vector, scale)
            for segment, alive in self._parts
        ]
        mode = "lexical" if vector is None else "hybrid"
        words = tuple(term for slot in read.slots for term, _ in slot.fillings)
        eligible = sum(len(part.rows) for part in ranked)
        # Without a filter, a passage without any word of the query is no answer, unless nothing else is there: then
        # what is nearest in meaning is listed, and of few passages all.
        has_any = any(bool((part.steps > 0).any()) for part in ranked)
        is_doubtful = where.is_open and (not has_any or _is_nonsense(ranked, scale))
        is_known = vector is not None or eligible <= FEW_PASSAGES
        if limit < 1 or (is_doubtful and not (is_known and may_be_meaningful(text))):
            return Found([], eligible, mode, read.corrections, words)
        floor = 0 if where.is_open and has_any else -1
        best = [row for part in ranked for row in part.best(limit, floor)]
        chosen = heapq.nsmallest(limit, best, key=lambda row: (-row[0], row[1]))
        return Found([part.hit(row) for _, _, part, row in chosen], eligible, mode, read.corrections, words)

    def tags(self) -> set[str]:
        """Every tag of any passage."""
        found = {term for segment, _ in self._parts for term in segment.postings.terms() if term.startswith(_TAG)}
        return {term.removeprefix(_TAG) for term in found if self.count(term)}

    def matching(self, where: Where) -> list[str]:
        """The ids of all passages that pass, in order."""
        found = ((part, np.flatnonzero(part.eligible(alive, where))) for part, alive in self._parts)
        return sorted(part.ids[row] for part, rows in found for row in rows.tolist())

    def values(self, name: str) -> list[float]:
        """The numbers of this name, of all passages."""
        named = ((part.numbers[name], alive) for part, alive in self._parts if name in part.numbers)
        return [value for column, alive in named for value in column[alive & ~np.isnan(column)].tolist()]

    def amounts(self, unit: str) -> Mapping[Decimal, int]:
        """The numbers that passages have before this unit, and how many passages have each."""
        if unit not in self._amounts:
            terms = dict.fromkeys(term for segment, _ in self._parts for term in segment.sizes.get(unit, ()))
            counts = ((Decimal(term.removesuffix(unit)), self.count(term)) for term in terms)
            self._amounts[unit] = {number: count for number, count in counts if count}
        return self._amounts[unit]

    def count(self, term: str) -> int:
        """How many passages hold a term."""
        total = 0
        for (segment, alive), living in zip(self._parts, self._alive, strict=True):
            rows = segment.postings.rows(term)
            total += len(rows) if living == len(alive) else int(alive[rows].sum())
        return total

    def _count_of_words(self, term: str) -> int:
        """How many passages hold a term in any of their texts; one that holds it in two counts twice."""
        has_more = any(segment.has_more for segment, _ in self._parts)
        return min(self.count(term) + self.count(_ALSO + term), len(self)) if has_more else self.count(term)

    def _near(self, word: str) -> list[str]:
        """Known words that differ from this word by a small typing error."""
        found = {near for segment, _ in self._parts for near in segment.spellings.resembling(word)}
        return [] if is_english(word) else nearest_words(word, (near for near in found if self.count(SPELT + near)))


class _Ranked:
    """The eligible passages of one segment with their scores."""

    def __init__(
        self,
        segment: Segment,
        mask: Mask,
        read: Reading,
        weights: Sequence[float],
        strengths: Sequence[float],
        vector: Vector | None,
        scale: Scale,
    ) -> None:
        self.segment = segment
        self.rows: Rows = np.flatnonzero(mask)
        self.coverage = segment.coverage(read.slots, weights)[self.rows]
        self.similarity: NDArray[np.float64] | None = None
        self.has_vector = np.zeros(len(self.rows), bool)
        if vector is None:
            scores = scale.of_words(self.coverage)
        else:
            self.similarity, self.has_vector = segment.vectors.similarity(vector, self.rows)
            scores = scale.of_hybrid(self.similarity, self.coverage)
            if not self.has_vector.all():
                scores = np.where(self.has_vector, scores, scale.of_words(self.coverage))
        for phrase, strength in zip(read.phrases, strengths, strict=True):
            quoting = segment.quoting(phrase)
            scores = eased(scores, strength) if quoting is None else as_quoted(scores, quoting[self.rows], strength)
        if read.codes:
            is_named = segment.holding(read.codes)[self.rows]
            scores = np.where(is_named, as_named(scores, scale.of_words(self.coverage)), as_analogue(scores))
        if read.sizes:
            scores = np.where(segment.clashing(read.sizes)[self.rows], as_analogue(scores), scores)
        if read.clashes:
            scores = np.where(segment.clashing(read.clashes)[self.rows], scores * CLASH_SHARE, scores)
        self.steps: Rows = np.rint(scores * SCORE_STEPS).astype(np.int64)

    def best(self, limit: int, floor: int) -> Iterator[tuple[int, str, _Ranked, int]]:
        """The best `limit`, perhaps with some equal to the last, as (steps, id, self, place)."""
        places: Rows = np.flatnonzero(self.steps > floor)
        steps = self.steps[places]
        if len(places) > limit:
            last = np.partition(steps, len(places) - limit)[len(places) - limit]
            places = places[steps >= last]
        if len(places) > 4 * limit:  # Many equal scores, as when no passage has a word of the query.
            order = np.lexsort((self.segment.ranks[self.rows[places]], -self.steps[places]))
            places = places[order[:limit]]
        for place in places.tolist():
            yield int(self.steps[place]), self.segment.ids[self.rows[place]], self, place

    def hit(self, place: int) -> Hit:
        row = int(self.rows[place])
        score = int(self.steps[place]) / SCORE_STEPS
        return Hit(
            id=self.segment.ids[row],
            document_id=self.segment.documents[row],
            score=score,
            confidence=confidence(score),
            # Vectors are rounded to bytes, so that the cosine of a text with itself may be a little above 1.
            similarity=round(min(1.0, max(-1.0, float(self.similarity[place]))), 4)
            if self.similarity is not None and self.has_vector[place]
            else None,
            coverage=round(float(self.coverage[place]), 4),
            payload=self.segment.payloads[row],
        )


def _is_nonsense(ranked: Sequence[_Ranked], scale: Scale) -> bool:
    if any(part.coverage.any() for part in ranked):
        return False
    nearest = [part.similarity.max() for part in ranked if part.similarity is not None and len(part.similarity)]
    return max(nearest, default=0.0) < scale.nonsense_below


def _terms_of(
    chunks: Iterable[Chunk], words: list[NDArray[np.uint16]], lengths: list[int]
) -> Iterator[tuple[set[str], set[str]]]:
    """All terms and spellings of each passage; its words in order and their number go into the lists meanwhile."""
    for chunk in chunks:
        found = read_passage(chunk.read, chunk.words, with_denied=chunk.is_prose)
        found.terms.update(_TAG + tag for tag in chunk.tags)
        found.terms.update(_ALSO + term for text in chunk.also for term in terms(text, with_denied=chunk.is_prose))
        found.terms.update(_TITLE + term for term in terms(chunk.title, with_denied=chunk.is_prose))
        words.append(hashed(found.words))
        lengths.append(found.length)
        yield found.terms, found.spellings


def _tidied(parts: list[tuple[Segment, Mask]]) -> list[tuple[Segment, Mask]]:
    """Merge segments of similar size, like carrying in an addition: segments stay few, and a change is cheap on
    average."""
    parts = [_compacted(part) for part in parts]
    while len(parts) > 1 and 2 * len(parts[-1][0].ids) >= len(parts[-2][0].ids):
        parts[-2:] = [_merged(parts[-2:])]
    return parts


def _compacted(part: tuple[Segment, Mask]) -> tuple[Segment, Mask]:
    return _merged([part]) if 2 * int(part[1].sum()) < len(part[1]) else part


def _merged(parts: Sequence[tuple[Segment, Mask]]) -> tuple[Segment, Mask]:
    whole = Segment.merged(parts)
    return whole, np.ones(len(whole.ids), bool)
