"""Answers a question from web pages: get them, look, follow promising links while that helps, and write the brief."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace

from cpq.app import App, Call
from cpq.app.transaction import Tx
from cpq.retrieval.search import table_corpus as search_storing
from cpq.retrieval.search.index import Where
from cpq.retrieval.search.terms import terms
from cpq.retrieval.web import crawler, repository
from cpq.retrieval.web.repository import StoredPage, StoredPassage
from cpq.retrieval.web.rules.addresses import Address, read_address
from cpq.retrieval.web.rules.brief import Brief, Evidence, Stats, write_brief
from cpq.retrieval.web.rules.link_choice import Candidate, choose
from cpq.retrieval.web.rules.link_trace import Step
from cpq.retrieval.web.rules.page import Link
from cpq.retrieval.web.rules.questions import Intent, Question, is_known, read_question, telling
from cpq.retrieval.web.rules.tokens import count_tokens

log = logging.getLogger("cpq.web")

EVIDENCE_MAX = 20
CANDIDATES = 60
RELEVANT_FROM = 0.2
RELEVANT_SHARE = 0.6
ANSWERED_FROM = 0.7
"""A part of the question with a passage of this score counts as answered: the core's band `likely_good`."""

EXPANSIONS_AUTO = 5
EXPANSIONS_MAX = 20
DEPTH_MAX = 3
PLATEAU_STEPS = 2
PLATEAU_GAIN = 0.01
TIME_SHARE = 0.8
"""Of the time a call may take; then it answers with what it has."""

FULL_CONTEXT_TOKENS = 4_000
LEADING_PAGES = 10
NEIGHBOURS_OF = 3
NEIGHBOUR_SHARE = 0.8
"""A neighbour has no score of its own; it stands below the passage it explains."""

SHAPE_BONUS = 0.1
CITATION_CHARACTERS_MAX = 600
PREVIEW_MAX = 500

Report = Callable[..., None]
"""`on_progress(phase, detail, iteration=None, total=None)`."""


@dataclass(frozen=True)
class Answered:
    """A brief, and what a program wants to know of it."""

    brief: Brief
    evidence: tuple[Evidence, ...]
    stats: Stats


@dataclass
class _Scope:
    """Which pages are searched: whole sites that were asked for, and single pages that were followed to."""

    hosts: set[str] = field(default_factory=set)
    page_ids: set[str] = field(default_factory=set)

    def add(self, page: StoredPage, *, whole_site: bool) -> None:
        self.page_ids.add(page.id)
        if whole_site:
            self.hosts.add(page.host)

    @property
    def where(self) -> Where:
        tags = [*map(repository.host_tag, sorted(self.hosts)), *map(repository.page_tag, sorted(self.page_ids))]
        return Where(any_tags=[tags], is_asked=False)


@dataclass
class _Found:
    """What a look at the corpus brought."""

    evidence: list[Evidence]
    best: dict[str, float]
    """For each part of the question, the score of its best passage."""
    eligible: int
    ranking: str
    pages: dict[str, StoredPage]
    indexed: Set[str]
    """The ids of all pages that can be found, of whatever site."""

    def relevant(self) -> list[Evidence]:
        """Without what is far below the best; a long tail costs tokens and says little."""
        top = max((each.score for each in self.evidence), default=0.0)
        return [each for each in self.evidence if each.score >= max(RELEVANT_FROM, RELEVANT_SHARE * top)]

    @property
    def quality(self) -> float:
        return sum(self.best.values()) / len(self.best) if self.best else 0.0

    def is_answered(self) -> bool:
        return all(score >= ANSWERED_FROM for score in self.best.values())


def answer(
    app: App,
    call: Call,
    addresses: Sequence[Address],
    query: str,
    *,
    intent: Intent | None = None,
    known_context: str = "",
    constraints: Sequence[str] = (),
    expansion_budget: int | None = None,
    on_progress: Report = lambda *_args, **_options: None,
) -> Answered:
    """Answer from these pages and what they lead to. The first is the seed; the others are read before it."""
    question = read_question(query, intent, tuple(constraints))
    asked = {
        "urls": " ".join(each.url for each in addresses),
        "query": query,
        "parts": len(question.parts),
        "intent": question.intent,
        "known_context": known_context,
        "constraints": "; ".join(constraints),
        "expansion_budget": expansion_budget,
    }
    log.debug("answer asked for", extra=asked)
    research = _Research(app, call, question, known_context, on_progress)
    research.read_pages(addresses)
    research.analyse()
    research.look()
    budget = EXPANSIONS_AUTO if expansion_budget is None else min(expansion_budget, EXPANSIONS_MAX)
    research.expand(budget, is_off=expansion_budget == 0)
    return research.conclude(is_off=expansion_budget == 0)


def search(
    app: App,
    call: Call,
    query: str,
    *,
    source_urls: Sequence[Address] | None = None,
    intent: Intent | None = None,
    top_k: int = EVIDENCE_MAX,
) -> Answered:
    """Answer from what is indexed: nothing is fetched and no link followed."""
    started = app.effects.monotonic()
    question = read_question(query, intent)

    def work(tx: Tx) -> Answered:
        notes: list[str] = []
        where = Where()
        scope_pages = repository.totals(tx)[0]
        if source_urls is not None:
            pages = {address.url: repository.find_page(tx, address.url) for address in source_urls}
            known = {page.id for page in pages.values() if page}
            notes = [
                f"Not indexed: {url} (call `ingest` or `answer` with it)." for url, page in pages.items() if not page
            ]
            where, scope_pages = Where(documents=known, is_asked=False), len(known)
        found = _look(tx, question, where, frozenset(), limit=top_k)
        evidence = found.relevant()
        spent = _milliseconds(app, started)
        stats = Stats(
            mode="chunk",
            ranking=found.ranking,
            documents_searched=scope_pages,
            documents_matched=len({each.url for each in evidence}),
            chunks_evaluated=found.eligible,
            stop_reason="search only" if evidence else "No chunks above relevance threshold.",
            total_ms=spent,
            phases_ms={"retrieval": spent},
            notes=notes,
        )
        return _written(app, evidence, stats)

    return app.read_unaudited(call, work)


class _Research:
    """One question at work. It holds what was found so far, and why it went on or stopped."""

    def __init__(self, app: App, call: Call, question: Question, known_context: str, on_progress: Report) -> None:
        self._app = app
        self._call = call
        self._question = question
        self._known = telling(known_context)
        self._report = on_progress
        self._started = app.effects.monotonic()
        self._deadline = self._started + TIME_SHARE * app.settings.tool_timeout_seconds
        self._spent: dict[str, int] = {}
        self._scope = _Scope()
        self._candidates: dict[str, Candidate] = {}
        self._visited: set[str] = set()
        self._noted: set[str] = set()
        self._unnoted: list[tuple[str, tuple[Link, ...], int]] = []
        self._steps: list[Step] = []
        self._notes: list[str] = []
        self._ingested = 0
        self._unembedded = 0
        """Passages of pages that this call has read, and that have no vectors yet."""
        self._seed_url = ""
        self._stop_reason = ""
        self._found = _Found([], {}, 0, "lexical", {}, frozenset())

    def read_pages(self, addresses: Sequence[Address]) -> None:
        """Get the pages that were asked for. One that fails is a note, unless it is the seed or none is left."""
        began = self._app.effects.monotonic()
        seed, *others = dict.fromkeys(addresses)
        half = (began + self._deadline) / 2
        for address in (*others, seed):
            self._report("ingestion", f"Checking if {address.url} is indexed...")
            until = math.inf if address == seed else half  # Sites may want long pauses, and the seed is what counts.
            got = crawler.get_page(self._app, self._call, address, until=until)
            if got.page is None and address != seed:
                self._notes.append(f"{address.url} was not read: {got.reason}.")
                continue
            page = crawler.require_page(got, "/url")
            if got.outcome == "failed":
                self._notes.append(f"{address.url} was read before, on {_day(page)}; now it was not: {got.reason}.")
            self._take(page, depth=0, was_fetched=got.was_fetched, whole_site=True)
            self._report("ingestion", f"Indexed {page.url} ({page.passages} chunks, {page.tokens:,} tokens)")
            self._visited.add(address.url)
            if address == seed:
                self._seed_url = page.url
        self._embed()
        self._spent["ingestion"] = _milliseconds(self._app, began)

    def analyse(self) -> None:
        parts = len(self._question.parts)
        self._report("analysis", f"Analyzing query — decomposed into {parts} sub-quer{'y' if parts == 1 else 'ies'}")

    def look(self) -> None:
        """Search what is there, and rank it by the rules of the question."""
        began = self._app.effects.monotonic()
        self._call.check()

        def work(tx: Tx) -> _Found:
            return _look(tx, self._question, self._scope.where, self._known, limit=CANDIDATES)

        self._report("retrieval", f"Searching {len(self._scope.hosts)} sites...")
        self._found = self._app.read_unaudited(self._call, work)
        self._report("reranking", f"Reranking {len(self._found.evidence)} chunks...")
        self._add_time("retrieval", began)

    def expand(self, budget: int, *, is_off: bool) -> None:
        """Follow the most promising link, look again, and go on while that helps."""
        began = self._app.effects.monotonic()
        while not (reason := self._reason_to_stop(budget, is_off=is_off)):
            self._note_links_of_best()
            choice = choose(self._candidates.values(), self._wanted(), self._visited, DEPTH_MAX)
            if choice is None:
                is_deep = any(
                    each.depth > DEPTH_MAX and each.link.url not in self._visited for each in self._candidates.values()
                )
                reason = "maximum depth" if is_deep and self._steps else "no promising links"
                break
            self._report(
                "expansion",
                f"Expanding to linked pages (iteration {len(self._steps) + 1}/{budget})...",
                iteration=len(self._steps) + 1,
                total=budget,
            )
            self._follow(choice)
        self._stop_reason = reason
        if self._steps:
            self._steps[-1] = replace(self._steps[-1], stop_reason=reason)
        self._add_time("expansion", began)

    def conclude(self, *, is_off: bool) -> Answered:
        """Add what stands beside the best passages, and write it all down."""
        self._call.check()
        self._report("locality", "Grabbing adjacent context...")
        began = self._app.effects.monotonic()
        evidence, mode, documents = self._app.read_unaudited(self._call, self._evidence)
        self._add_time("locality", began)
        tokens = sum(each.tokens for each in evidence)
        self._report("merge", f"Assembling results ({len(evidence)} chunks, {tokens:,} tokens)...")
        notes = [*self._notes, *self._expansion_notes(is_off=is_off)]
        stop = self._stop_reason if evidence else "No chunks above relevance threshold."
        stats = Stats(
            mode=mode,
            ranking=self._found.ranking,
            documents_searched=documents,
            documents_matched=len({each.url for each in evidence}),
            chunks_evaluated=self._found.eligible,
            stop_reason=stop,
            iterations=len(self._steps),
            urls_ingested=self._ingested,
            total_ms=_milliseconds(self._app, self._started),
            phases_ms=self._spent,
            notes=notes,
        )
        return _written(self._app, evidence, stats, self._steps, self._seed_url)

    def _reason_to_stop(self, budget: int, *, is_off: bool) -> str:
        self._call.check()
        if is_off:
            return "expansion switched off"
        if self._found.best and self._found.is_answered():
            return "sufficient evidence — every part of the question has a good passage"
        if len(self._steps) >= budget:
            return f"budget exhausted — {budget} of {budget} iterations"
        if self._app.effects.monotonic() >= self._deadline:
            log.warning("time limit is near", extra={"url": self._seed_url, "iterations": len(self._steps)})
            return "time limit — what was found so far is returned"
        gains = [step.score_after - step.score_before for step in self._steps if step.failure is None]
        if len(gains) >= PLATEAU_STEPS and max(gains[-PLATEAU_STEPS:]) < PLATEAU_GAIN:
            return f"score plateau — the last {PLATEAU_STEPS} pages added nothing"
        return ""

    def _follow(self, candidate: Candidate) -> None:
        began = self._app.effects.monotonic()
        url = candidate.link.url
        self._visited.add(url)
        self._report("expansion", f"Scraping {url[-80:]}...", iteration=len(self._steps) + 1)
        before = self._found.quality
        got = crawler.get_page(self._app, self._call, read_address(url), until=self._deadline)
        chunks = 0
        is_new = got.page is not None and got.page.id not in self._scope.page_ids
        if got.page is not None and is_new:
            chunks = got.page.passages
            self._visited.add(got.page.url)
            self._take(got.page, depth=candidate.depth, was_fetched=got.was_fetched, whole_site=False)
            if got.was_fetched:
                self._embed()
            self.look()
        step = Step(
            url=got.page.url if got.page and is_new else url,
            parent_url=candidate.parent_url,
            depth=candidate.depth,
            chunks=chunks,
            score_before=before,
            score_after=self._found.quality,
            milliseconds=_milliseconds(self._app, began),
            failure=got.reason if got.page is None else None,
        )
        self._steps.append(step)

    def _take(self, page: StoredPage, *, depth: int, was_fetched: bool, whole_site: bool) -> None:
        self._scope.add(page, whole_site=whole_site)
        self._ingested += was_fetched
        self._unembedded += page.passages if was_fetched else 0
        self._visited.add(page.url)
        self._noted.add(page.id)
        self._unnoted.append((page.url, page.links, depth))

    def _note_links_of_best(self) -> None:
        """Pages that were indexed before and answer well may lead on as well."""
        best = dict.fromkeys(repository.page_id_of(each.url) for each in self._found.evidence)
        while self._unnoted:
            self._note_links(*self._unnoted.pop(0))
        fresh = [page_id for page_id in list(best)[:LEADING_PAGES] if page_id not in self._noted]
        self._noted.update(fresh)
        if fresh:
            found = self._app.read_unaudited(self._call, lambda tx: repository.links_of(tx, fresh))
            for url, links in found:
                self._note_links(url, links, depth=0)

    def _note_links(self, url: str, links: Sequence[Link], depth: int) -> None:
        """Links of a page are candidates one step deeper, unless what they lead to is being searched already."""
        for link in links:
            if link.url not in self._candidates and not self._is_searched(link.url):
                self._candidates[link.url] = Candidate(link, url, depth + 1)

    def _is_searched(self, url: str) -> bool:
        page_id = repository.page_id_of(url)
        return page_id in self._scope.page_ids or (
            page_id in self._found.indexed and read_address(url).host in self._scope.hosts
        )

    def _wanted(self) -> frozenset[str]:
        """The terms of the parts that are not answered yet."""
        open_parts = [part for part, score in self._found.best.items() if score < ANSWERED_FROM]
        return frozenset().union(*(telling(part) for part in open_parts or self._question.parts))

    def _embed(self) -> None:
        if self._unembedded:
            crawler.embed_newest(self._app, self._call, self._unembedded)
            self._unembedded = 0

    def _evidence(self, tx: Tx) -> tuple[list[Evidence], str, int]:
        """The passages of the brief: all there are when they are few, else the best with their neighbours."""
        documents, _, tokens = repository.totals(tx, self._scope.hosts, self._scope.page_ids)
        room = min(FULL_CONTEXT_TOKENS, self._app.settings.response_token_budget // 4)
        best = self._found.relevant()[:EVIDENCE_MAX]
        if best and tokens <= room and len(self._found.pages) == documents:
            return self._everything(tx, best), "full_context", documents
        return [*best, *_neighbours(tx, best)], "chunk", documents

    def _everything(self, tx: Tx, best: Sequence[Evidence]) -> list[Evidence]:
        shown = {(repository.page_id_of(each.url), each.ordinal) for each in best}
        scores = {(repository.page_id_of(each.url), each.ordinal): each.score for each in self._found.evidence}
        rest = [
            _as_evidence(each, self._found.pages[each.page_id], scores.get((each.page_id, each.ordinal), 0.0))
            for each in repository.passages_of_pages(tx, list(self._found.pages))
            if (each.page_id, each.ordinal) not in shown
        ]
        return [*best, *rest]

    def _expansion_notes(self, *, is_off: bool) -> list[str]:
        count = len(self._steps)
        notes = []
        if not count and not is_off:
            notes.append("No expansion performed (single iteration).")
        if self._stop_reason.startswith("budget exhausted"):
            notes.append(f"Expansion budget exhausted (reached {count} of {count} iterations).")
        if any(step.depth >= DEPTH_MAX for step in self._steps):
            notes.append(
                f"Expansion reached maximum depth ({DEPTH_MAX}). "
                "Results may benefit from a more specific query or a different seed URL."
            )
        return notes

    def _add_time(self, phase: str, began: float) -> None:
        self._spent[phase] = self._spent.get(phase, 0) + _milliseconds(self._app, began)


def _look(tx: Tx, question: Question, where: Where, known: Set[str], *, limit: int) -> _Found:
    """Each part of the question for itself; a passage counts by the part that it answers best."""
    corpus = search_storing.current(tx, repository.SOURCE)
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
            continue  # It changed meanwhile, or says what another page says word for word.
        texts.add(passage.text)
        if known and is_known(passage.text, known):
            continue
        worth = min(1.0, score + SHAPE_BONUS) if _has_shape(question, passage.text) else score
        ranked.append(_as_evidence(passage, pages[place[0]], worth, part, several=several))
    ranked.sort(key=lambda each: (-each.score, each.url, each.ordinal))
    return _Found(ranked[:limit], best, eligible, ranking, pages, corpus.documents())


def _as_evidence(
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


def _neighbours(tx: Tx, best: Sequence[Evidence]) -> list[Evidence]:
    """The passages before and after the best ones, where they stand under the same heading."""
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
    """The sentence or row that holds most of what was asked, whole and word for word; None when it is too long."""
    wanted = telling(part)
    best, most = None, 0
    is_code = False
    for row in text.split("\n"):
        if row.startswith("```"):
            is_code = not is_code
            continue
        for sentence in [row] if is_code or row.startswith("|") else _SENTENCE.split(row):
            said = sentence.strip()
            held = len(wanted & terms(said))
            if held > most and len(said) <= CITATION_CHARACTERS_MAX:
                best, most = said, held
    return best


def _has_shape(question: Question, text: str) -> bool:
    return (question.wants_code and "```" in text) or (question.wants_table and "\n|--" in text)


def _written(
    app: App, evidence: Sequence[Evidence], stats: Stats, steps: Sequence[Step] = (), seed_url: str | None = None
) -> Answered:
    brief = write_brief(evidence, stats, app.settings.response_token_budget, steps, seed_url)
    extra = {
        "chunks": len(evidence),
        "tokens": count_tokens(brief.text),
        "mode": stats.mode,
        "stop_reason": stats.stop_reason,
    }
    log.info("brief written", extra=extra)
    if not evidence:
        log.warning("nothing relevant was found", extra={"chunks_evaluated": stats.chunks_evaluated})
    spent = {"budget": app.settings.response_token_budget, "split": brief.split, "preview": brief.text[:PREVIEW_MAX]}
    log.debug("budget spent", extra=spent)
    return Answered(brief, tuple(evidence), stats)


def _milliseconds(app: App, began: float) -> int:
    return round((app.effects.monotonic() - began) * 1000)


def _day(page: StoredPage) -> str:
    return f"{page.fetched_at:%Y-%m-%d}"
