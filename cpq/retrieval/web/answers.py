"""Answers a question from web pages: fetches them, searches, follows promising links, and writes the brief."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from cpq.app import App, Call
from cpq.app.transaction import Tx
from cpq.retrieval.search import table_source
from cpq.retrieval.search.index import Where
from cpq.retrieval.web import crawler, repository
from cpq.retrieval.web.evidence import (
    CANDIDATES,
    NOTHING,
    neighbours_of,
    rerank,
    retrieve,
    with_citations,
)
from cpq.retrieval.web.repository import StoredPage
from cpq.retrieval.web.rules.addresses import Address, read_address
from cpq.retrieval.web.rules.brief import Brief, Evidence, Stats, write_brief
from cpq.retrieval.web.rules.link_choice import Candidate, choose, topics
from cpq.retrieval.web.rules.link_trace import Step
from cpq.retrieval.web.rules.page import Link
from cpq.retrieval.web.rules.questions import Intent, Question, read_question, telling
from cpq.retrieval.web.rules.token_count import count_tokens

log = logging.getLogger("cpq.web")

EVIDENCE_MAX = 20

EXPANSIONS_AUTO = 5
EXPANSIONS_MAX = 20
DEPTH_MAX = 3
PLATEAU_STEPS = 2
PLATEAU_GAIN = 0.01
TIME_SHARE = 0.8
"""Share of a call's time limit after which it answers with what it has."""

FULL_CONTEXT_TOKENS = 4_000
PHASES = ("ingestion", "analysis", "retrieval", "reranking", "expansion", "locality", "merge")
LEADING_PAGES = 10
PREVIEW_MAX = 500

Report = Callable[..., None]
"""`on_progress(phase, detail, iteration=None, total=None)`."""


@dataclass(frozen=True)
class Answered:
    """A brief, and its figures for programs."""

    brief: Brief
    evidence: tuple[Evidence, ...]
    stats: Stats


@dataclass
class _Scope:
    """The pages to search: the whole sites of requested pages, and single pages that links led to."""

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
    """Answer from these pages and the pages they link to. The first is the seed; the others are read before it."""
    question = read_question(query, intent, tuple(constraints))
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
    """Answer from indexed pages: fetches nothing and follows no link."""
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
        watch = _Watch(app)
        retrieved = retrieve(tx, question, where, limit=top_k)
        watch.note("retrieval")
        found = rerank(tx, question, retrieved, frozenset(), limit=top_k)
        watch.note("reranking")
        evidence = with_citations(tx, found.relevant())
        watch.note("merge")
        stats = Stats(
            mode="chunk",
            ranking=found.ranking,
            indexing=found.waiting,
            documents_searched=scope_pages,
            documents_matched=len({each.url for each in evidence}),
            chunks_evaluated=found.eligible,
            stop_reason="search only" if evidence else "No chunks above relevance threshold.",
            total_ms=_milliseconds(app, started),
            phases_ms=watch.milliseconds(),
            notes=notes,
        )
        return _written(app, evidence, stats)

    return app.read_unaudited(call, work)


class _Watch:
    """The time of each phase; what happens within two phases counts for the inner one."""

    def __init__(self, app: App) -> None:
        self._now = app.effects.monotonic
        self._seconds: dict[str, float] = {}
        self._last = self._now()

    def note(self, phase: str) -> None:
        """Count the time since the last note for a phase."""
        now = self._now()
        self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._last
        self._last = now

    def milliseconds(self) -> dict[str, int]:
        return {phase: round(self._seconds[phase] * 1000) for phase in PHASES if phase in self._seconds}


class _Research:
    """The state of one question: what was found so far, and why it continued or stopped."""

    def __init__(self, app: App, call: Call, question: Question, known_context: str, on_progress: Report) -> None:
        self._app = app
        self._call = call
        self._question = question
        self._known = telling(known_context)
        self._report = on_progress
        self._started = app.effects.monotonic()
        self._deadline = self._started + TIME_SHARE * app.settings.tool_timeout_seconds
        self._watch = _Watch(app)
        self._asked: dict[str, StoredPage] = {}
        """The requested pages, by address."""
        self._scope = _Scope()
        self._candidates: dict[str, Candidate] = {}
        self._visited: set[str] = set()
        self._noted: set[str] = set()
        self._unnoted: list[tuple[str, tuple[Link, ...], int]] = []
        self._steps: list[Step] = []
        self._notes: list[str] = []
        self._ingested = 0
        self._unembedded = 0
        """Passages of pages that this call has fetched and that have no vectors yet."""
        self._seed_url = ""
        self._stop_reason = ""
        self._found = NOTHING

    def read_pages(self, addresses: Sequence[Address]) -> None:
        """Get the requested pages. A page that fails becomes a note, unless it is the seed."""
        began = self._app.effects.monotonic()
        seed, *others = dict.fromkeys(addresses)
        half = (began + self._deadline) / 2
        for address in (*others, seed):
            self._report("ingestion", f"Checking if {address.url} is indexed...")
            until = math.inf if address == seed else half  # Sites may demand long pauses, and the seed matters most.
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
            self._asked[page.url] = page
            if address == seed:
                self._seed_url = page.url
        self._embed()
        self._watch.note("ingestion")

    def analyse(self) -> None:
        parts = len(self._question.parts)
        self._report("analysis", f"Analyzing query — decomposed into {parts} sub-quer{'y' if parts == 1 else 'ies'}")
        self._watch.note("analysis")

    def look(self) -> None:
        """Search the pages in scope, and rank the passages by the rules of the question."""
        self._call.check()

        self._report("retrieval", f"Searching {len(self._scope.hosts)} sites...")
        found = self._app.read_unaudited(
            self._call, lambda tx: retrieve(tx, self._question, self._scope.where, limit=CANDIDATES)
        )
        self._watch.note("retrieval")
        self._report("reranking", f"Reranking {len(found.scores)} chunks...")
        self._found = self._app.read_unaudited(
            self._call, lambda tx: rerank(tx, self._question, found, self._known, limit=CANDIDATES)
        )
        self._watch.note("reranking")

    def expand(self, budget: int, *, is_off: bool) -> None:
        """Follow the most promising link and search again, until a reason to stop applies."""
        while not (reason := self._reason_to_stop(budget, is_off=is_off)):
            self._note_links_of_best()
            choice = self._best_link()
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
        self._watch.note("expansion")

    def conclude(self, *, is_off: bool) -> Answered:
        """Add the neighbours of the best passages, and write the brief."""
        self._call.check()
        self._report("locality", "Grabbing adjacent context...")
        evidence, mode, documents = self._app.read_unaudited(self._call, self._evidence)
        self._watch.note("merge")
        tokens = sum(each.tokens for each in evidence)
        self._report("merge", f"Assembling results ({len(evidence)} chunks, {tokens:,} tokens)...")
        notes = [*self._notes, *self._empty_notes(), *self._expansion_notes(is_off=is_off)]
        stop = self._stop_reason if evidence else "No chunks above relevance threshold."
        stats = Stats(
            mode=mode,
            ranking=self._found.ranking,
            indexing=self._found.waiting,
            documents_searched=documents,
            documents_matched=len({each.url for each in evidence}),
            chunks_evaluated=self._found.eligible,
            stop_reason=stop,
            iterations=len(self._steps),
            urls_ingested=self._ingested,
            total_ms=_milliseconds(self._app, self._started),
            phases_ms=self._watch.milliseconds(),
            notes=notes,
        )
        return _written(self._app, evidence, stats, self._steps, self._seed_url)

    def _reason_to_stop(self, budget: int, *, is_off: bool) -> str:
        self._call.check()
        if is_off:
            return "expansion switched off"
        if self._found.is_answered():
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
            self._watch.note("expansion")
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
        """Pages that were indexed before and answer well may have promising links too."""
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
        """Links of a page are candidates one level deeper, unless their page is being searched already."""
        for link in links:
            if link.url not in self._candidates and not self._is_searched(link.url):
                self._candidates[link.url] = Candidate(link, url, depth + 1)

    def _is_searched(self, url: str) -> bool:
        page_id = repository.page_id_of(url)
        return page_id in self._scope.page_ids or (
            page_id in self._found.indexed and read_address(url).host in self._scope.hosts
        )

    def _best_link(self) -> Candidate | None:
        """The link that promises most for the parts of the question without an answer yet."""
        parts = self._found.open_parts()
        wanted = frozenset().union(*map(telling, parts))
        links = list(self._candidates.values())
        names = topics(links, wanted, self._visited, DEPTH_MAX)
        near = self._app.read_unaudited(self._call, lambda tx: self._nearness(tx, parts, names))
        return choose(links, wanted, self._visited, DEPTH_MAX, near)

    def _nearness(self, tx: Tx, parts: Sequence[str], names: Sequence[str]) -> dict[str, float]:
        """For each topic, how near it is to the nearest part; empty without the model."""
        corpus = table_source.current(tx, repository.SOURCE)
        found = [corpus.nearness(part, names) or [] for part in parts]
        return {name: max(each) for name, *each in zip(names, *found, strict=False)}

    def _embed(self) -> None:
        if self._unembedded:
            half = (self._app.effects.monotonic() + self._deadline) / 2
            crawler.embed_newest(self._app, self._call, self._unembedded, until=half)
            self._unembedded = 0

    def _evidence(self, tx: Tx) -> tuple[list[Evidence], str, int]:
        """The passages of the brief: all when they are few, else the best with their neighbours."""
        documents, _, tokens = repository.totals(tx, self._scope.hosts, self._scope.page_ids)
        room = min(FULL_CONTEXT_TOKENS, self._app.settings.response_token_budget // 4)
        best = self._found.relevant()[:EVIDENCE_MAX]
        is_small = bool(best) and tokens <= room and len(self._found.pages) == documents
        others = self._found.everything()[len(best) :] if is_small else neighbours_of(tx, best)
        self._watch.note("locality")
        return [*with_citations(tx, best), *others], "full_context" if is_small else "chunk", documents

    def _empty_notes(self) -> list[str]:
        """Which requested pages have nothing, so that nobody takes another page's text for theirs."""
        found = {each.url for each in self._found.relevant()[:EVIDENCE_MAX]}
        elsewhere = "; the evidence is from other pages" if found else ""
        ended = [] if found or self._steps else [f"No link was followed: {self._stop_reason}."]
        return ended + [
            f"{url}, which was asked for, has no text that can be searched, only links or pictures{elsewhere}."
            if not page.passages
            else f"Nothing relevant was found on {url}, which was asked for{elsewhere}."
            for url, page in self._asked.items()
            if url not in found
        ]

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
