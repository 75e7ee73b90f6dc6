"""Finds the evidence for a question in the indexed pages: ranked passages, their neighbours and citations."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from cpq.app.transaction import Tx
from cpq.retrieval.search import table_source
from cpq.retrieval.search.index import Where
from cpq.retrieval.search.lexicon import terms
from cpq.retrieval.search.retrieval_notes import note
from cpq.retrieval.web import repository
from cpq.retrieval.web.repository import StoredPage, StoredPassage
from cpq.retrieval.web.rules.brief import Evidence
from cpq.retrieval.web.rules.questions import Question, is_known, telling

CANDIDATES = 60
RELEVANT_FROM = 0.2
RELEVANT_SHARE = 0.6
ANSWERED_FROM = 0.7
"""A part of the question with a passage of this score is answered: the core's band `likely_good`."""

NEIGHBOURS_OF = 3
NEIGHBOUR_SHARE = 0.8
"""A neighbour has no score of its own; it ranks below the passage it explains."""

SHAPE_BONUS = 0.1
CITATION_CHARACTERS_MAX = 600


@dataclass
class Findings:
    """The result of one search of the corpus."""

    evidence: list[Evidence]
    best: dict[str, float]
    """For each part of the question, the score of its best passage."""
    eligible: int
    ranking: str
    pages: dict[str, StoredPage]
    indexed: Set[str]
    """The ids of all indexed pages, on any site."""

    def relevant(self) -> list[Evidence]:
        """The passages not far below the best; a long tail costs tokens and adds little."""
        top = max((each.score for each in self.evidence), default=0.0)
        return [each for each in self.evidence if each.score >= max(RELEVANT_FROM, RELEVANT_SHARE * top)]

    @property
    def quality(self) -> float:
        return sum(self.best.values()) / len(self.best) if self.best else 0.0

    def is_answered(self) -> bool:
        return all(score >= ANSWERED_FROM for score in self.best.values())


def find(tx: Tx, question: Question, where: Where, known: Set[str], *, limit: int) -> Findings:
    """Search each part of the question on its own; a passage counts by the part it answers best."""
    corpus = table_source.current(tx, repository.SOURCE)
    scores: dict[tuple[str, int], tuple[float, str]] = {}
    best: dict[str, float] = {}
    eligible, ranking = 0, "lexical"
    for part in question.parts:
        found = corpus.search(part, limit=max(limit, CANDIDATES), where=where)
        eligible, ranking = max(eligible, found.eligible), found.mode
        best[part] = found.hits[0].score if found.hits else 0.0
        for hit in found.hits:
            if hit.score > scores.get(hit.payload, (-1.0, ""))[0]:
                scores[hit.payload] = (hit.score, part)
    passages = repository.read_passages(tx, scores)
    pages = repository.pages_by_id(tx, {page_id for page_id, _ in passages})
    several = len(question.parts) > 1
    ranked: list[Evidence] = []
    texts: set[str] = set()
    for place, (score, part) in sorted(scores.items(), key=lambda item: (-item[1][0], item[0])):
        passage = passages.get(place)
        if passage is None or place[0] not in pages or passage.text in texts:
            continue  # The page changed meanwhile, or another page has the same text.
        texts.add(passage.text)
        if known and is_known(passage.text, known):
            continue
        worth = min(1.0, score + SHAPE_BONUS) if _has_shape(question, passage.text) else score
        ranked.append(as_evidence(passage, pages[place[0]], worth, part, several=several))
    ranked.sort(key=lambda each: (-each.score, each.url, each.ordinal))
    findings = Findings(ranked[:limit], best, eligible, ranking, pages, corpus.documents())
    note(tx, question.parts[0], ranking, [each.score for each in findings.relevant()])
    return findings


def as_evidence(
    passage: StoredPassage, page: StoredPage, score: float, part: str | None = None, *, several: bool = False
) -> Evidence:
    return Evidence(
        url=page.url,
        title=page.title,
        headings=passage.headings,
        text=passage.text,
        score=score,
        tokens=passage.tokens,
        ordinal=passage.ordinal,
        sub_query=part if several else None,
        images=passage.images,
        citation=_citation(passage.text, part) if part else None,
    )


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


_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])")


def _citation(text: str, part: str) -> str | None:
    """The sentence or row with the most terms of the question, verbatim; None when it is too long."""
    wanted = telling(part)
    best, most = None, 0
    is_code = False
    for row in text.split("\n"):
        if row.startswith("```"):
            is_code = not is_code
            continue
        for sentence in [row] if is_code or row.startswith("|") else _SENTENCE.split(row):
            quotation = sentence.strip()
            held = len(wanted & terms(quotation))
            if held > most and len(quotation) <= CITATION_CHARACTERS_MAX:
                best, most = quotation, held
    return best


def _has_shape(question: Question, text: str) -> bool:
    return (question.wants_code and "```" in text) or (question.wants_table and "\n|--" in text)
