"""Finds the evidence for a question in the indexed pages: ranked passages, their neighbours and citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from cpq.app.transaction import Tx
from cpq.retrieval.search import table_source
from cpq.retrieval.search.index import Where
from cpq.retrieval.search.retrieval_notes import note
from cpq.retrieval.web import repository
from cpq.retrieval.web.repository import StoredPage, StoredPassage
from cpq.retrieval.web.rules.brief import Evidence
from cpq.retrieval.web.rules.questions import Question, asked_words, is_answered_by, is_known
from cpq.retrieval.web.rules.quotation import best_quotation

CANDIDATES = 60
RELEVANT_FROM = 0.2
RELEVANT_SHARE = 0.6
ANSWERED_FROM = 0.7
"""A part of the question with a passage of this score may be answered: the core's band `likely_good`."""

NEIGHBOURS_OF = 3
NEIGHBOUR_SHARE = 0.8
"""A neighbour has no score of its own; it ranks below the passage it explains."""

SHAPE_BONUS = 0.1
CITED_BY_MEANING = 2
"""Passages whose sentences are compared with the question by meaning, at 5 to 10 ms a sentence."""


@dataclass
class Findings:
    """The result of one search of the corpus."""

    evidence: list[Evidence]
    best: dict[str, float]
    """For each part of the question, the score of its best passage."""
    answered: Set[str]
    """The parts with a good passage that holds their rare words."""
    eligible: int
    ranking: str
    pages: dict[str, StoredPage]
    indexed: Set[str]
    """The ids of all indexed pages, on any site."""
    waiting: str | None = None
    """While vectors are being made: how far that is."""

    def relevant(self) -> list[Evidence]:
        """The passages not far below the best; a long tail costs tokens and adds little."""
        top = max((each.score for each in self.evidence), default=0.0)
        return [each for each in self.evidence if each.score >= max(RELEVANT_FROM, RELEVANT_SHARE * top)]

    def everything(self) -> list[Evidence]:
        """All passages but those of relevance 0."""
        return [each for each in self.evidence if round(each.score, 2) > 0]

    @property
    def quality(self) -> float:
        return sum(self.best.values()) / len(self.best) if self.best else 0.0

    def is_answered(self) -> bool:
        return bool(self.best) and self.answered >= self.best.keys()

    def open_parts(self) -> list[str]:
        return [part for part in self.best if part not in self.answered] or list(self.best)


NOTHING = Findings([], {}, frozenset(), 0, "lexical", {}, frozenset())


@dataclass
class Retrieved:
    """The passages that the core found for each part of a question, not yet read."""

    scores: dict[tuple[str, int], tuple[float, str]]
    """For each passage its best score, and the part it answers best."""
    good: dict[str, list[tuple[str, int]]]
    """For each part, the passages that score well for it."""
    best: dict[str, float]
    weights: dict[str, dict[str, float]]
    """For each part, how rare each of its words is."""
    eligible: int
    ranking: str
    indexed: Set[str]
    waiting: str | None


def retrieve(tx: Tx, question: Question, where: Where, *, limit: int) -> Retrieved:
    """Search each part of the question on its own; a passage counts by the part it answers best."""
    corpus = table_source.current(tx, repository.SOURCE)
    weights = {part: {word: corpus.rarity(word) for word in asked_words(part)} for part in question.parts}
    found = Retrieved({}, {}, {}, weights, 0, "lexical", corpus.documents(), None)
    for part in question.parts:
        result = corpus.search(part, limit=max(limit, CANDIDATES), where=where)
        found.eligible, found.ranking = max(found.eligible, result.eligible), result.mode
        found.waiting = result.waiting
        found.best[part] = result.hits[0].score if result.hits else 0.0
        found.good[part] = [hit.payload for hit in result.hits if hit.score >= ANSWERED_FROM]
        for hit in result.hits:
            if hit.score > found.scores.get(hit.payload, (-1.0, ""))[0]:
                found.scores[hit.payload] = (hit.score, part)
    return found


def rerank(tx: Tx, question: Question, found: Retrieved, known: Set[str], *, limit: int) -> Findings:
    """Read the passages and order them by the rules of the question, without those that the caller knows."""
    passages = repository.read_passages(tx, found.scores)
    pages = repository.pages_by_id(tx, {page_id for page_id, _ in passages})
    ranked: list[Evidence] = []
    texts: set[str] = set()
    for place, (score, part) in sorted(found.scores.items(), key=lambda item: (-item[1][0], item[0])):
        passage = passages.get(place)
        if passage is None or place[0] not in pages or passage.text in texts:
            continue  # The page changed meanwhile, or another page has the same text.
        texts.add(passage.text)
        if known and is_known(passage.text, known):
            continue
        worth = min(1.0, score + SHAPE_BONUS) if _has_shape(question, passage.text) else score
        ranked.append(_as_evidence(passage, pages[place[0]], worth, part))
    ranked.sort(key=lambda each: (-each.score, each.url, each.ordinal))
    read = {
        place: " ".join((pages[place[0]].title, *passage.headings, passage.text))
        for place, passage in passages.items()
        if place[0] in pages
    }
    good = {part: [read[place] for place in places if place in read] for part, places in found.good.items()}
    findings = Findings(
        ranked[:limit],
        found.best,
        _answered(question, good, found.weights),
        found.eligible,
        found.ranking,
        pages,
        found.indexed,
        found.waiting,
    )
    note(tx, question.parts[0], found.ranking, [each.score for each in findings.relevant()])
    return findings


def _answered(
    question: Question, good: Mapping[str, Sequence[str]], weights: Mapping[str, Mapping[str, float]]
) -> frozenset[str]:
    """The parts that one of their good passages answers; the whole of several parts may be answered by all together."""
    answered = {part for part in question.parts if any(is_answered_by(text, weights[part]) for text in good[part])}
    whole, *others = question.parts
    if others and answered.issuperset(others) and is_answered_by(" ".join(chain(*good.values())), weights[whole]):
        answered.add(whole)
    return frozenset(answered)


def _as_evidence(passage: StoredPassage, page: StoredPage, score: float, part: str) -> Evidence:
    return Evidence(
        url=page.url,
        title=page.title,
        headings=passage.headings,
        text=passage.text,
        score=score,
        tokens=passage.tokens,
        ordinal=passage.ordinal,
        sub_query=part,
        images=passage.images,
    )


def with_citations(tx: Tx, evidence: Sequence[Evidence]) -> list[Evidence]:
    """Each passage with the sentence or row that answers its part of the question best; the first ones by meaning."""
    corpus = table_source.current(tx, repository.SOURCE)
    made = []
    for place, each in enumerate(evidence):
        part = each.sub_query or ""
        nearness = partial(corpus.nearness, part) if place < CITED_BY_MEANING else _no_nearness
        made.append(replace(each, citation=best_quotation(each.text, asked_words(part), nearness)))
    return made


def _no_nearness(_texts: Sequence[str]) -> None:
    return None


def neighbours_of(tx: Tx, best: Sequence[Evidence]) -> list[Evidence]:
    """The passages before and after the best ones, if they are under the same heading."""
    shown = {(repository.page_id_of(each.url), each.ordinal) for each in best}
    beside: dict[tuple[str, int], Evidence] = {}
    for each in best[:NEIGHBOURS_OF]:
        for ordinal in (each.ordinal - 1, each.ordinal + 1):
            place = (repository.page_id_of(each.url), ordinal)
            if place not in shown:
                beside.setdefault(place, each)
    found = repository.read_passages(tx, beside)
    made = []
    for place, passage in found.items():
        each = beside[place]
        if passage.headings == each.headings:
            score = round(each.score * NEIGHBOUR_SHARE, 4)
            made.append(
                replace(
                    each,
                    text=passage.text,
                    score=score,
                    tokens=passage.tokens,
                    ordinal=passage.ordinal,
                    images=passage.images,
                    is_adjacent=True,
                    citation=None,
                )
            )
    return made


def _has_shape(question: Question, text: str) -> bool:
    return (question.wants_code and "```" in text) or (question.wants_table and "\n|--" in text)
