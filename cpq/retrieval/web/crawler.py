"""Fetches and stores pages politely: robots.txt, a pause between requests, only changed pages, one at a time."""

from __future__ import annotations

import hashlib
import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from cpq.app import App, Call
from cpq.app.transaction import Tx
from cpq.base.clock import Effects
from cpq.base.errors import Code, CpqError
from cpq.base.settings import Settings
from cpq.retrieval.search import table_source, vector_repository
from cpq.retrieval.search.corpus import Corpus
from cpq.retrieval.web import repository
from cpq.retrieval.web.fetcher import Fetched, Fetcher, FetchError, Known
from cpq.retrieval.web.page_reader import decoded, read_page
from cpq.retrieval.web.repository import StoredPage
from cpq.retrieval.web.rules import robots
from cpq.retrieval.web.rules.addresses import Address, read_address, read_allowed
from cpq.retrieval.web.rules.page import BLOCKS_MAX, TOO_LONG
from cpq.retrieval.web.rules.page_passages import CHUNKS_MAX, passages_of

log = logging.getLogger("cpq.web")

ROBOTS_HOURS = 24
ROBOTS_AGAIN_SECONDS = 60
"""How long a robots.txt that could not be fetched is not requested again."""

READER = "2:"
"""Begins the content hash of a page: one that an earlier version read is read again at its next check."""

ORIGINS_MAX = 10_000
SLICE_SECONDS = 0.1
CRAWL_DEPTH_MAX = 10
EMBEDDED_A_ROUND = 4
EMBEDDED_AT_ONCE = 60
"""Six seconds of one core. The server embeds the rest between calls; until then passages are found by their words."""


Outcome = Literal["indexed", "updated", "unchanged", "fresh", "failed"]


@dataclass(frozen=True)
class Got:
    """The result for one address. `page` is the stored page; after a failure it may be an older version."""

    url: str
    outcome: Outcome
    page: StoredPage | None
    reason: str | None = None
    is_refused: bool = False

    @property
    def was_fetched(self) -> bool:
        return self.outcome in ("indexed", "updated")


class Web:
    """One per tenant: the robots rules of sites, the time of the next request to each, and the fetcher."""

    def __init__(self, settings: Settings, effects: Effects) -> None:
        self._effects = effects
        self._pause = settings.web_pause_seconds
        self._lock = threading.Lock()
        self._next_turn: dict[str, float] = {}
        self._robots: dict[str, tuple[float, robots.Robots | str]] = {}
        """Until when it is valid, and the rules, or why they could not be fetched."""
        self.fresh_for = timedelta(hours=settings.web_fresh_hours)
        self.fetcher = Fetcher(
            effects,
            allowed_hosts=read_allowed(settings.web_allowed_hosts),
            bytes_max=settings.web_page_bytes_max,
        )

    def fetch(
        self, address: Address, known_of: Callable[[Address], Known], call: Call, until: float = math.inf
    ) -> Fetched:
        """Fetch a page when its site allows it and its turn has come. `known_of` is called for each redirect."""

        def before_each(step: Address) -> None:
            rules = self._rules_of(step, call)
            if not rules.allows(step.target):
                raise FetchError("its site's robots.txt does not allow it", is_refused=True)
            self._wait_for_turn(step, rules.delay_seconds, call, until)

        return self.fetcher.fetch(
            address, known_of=known_of, before_each=before_each, may_go_on=lambda: _is_wanted(call)
        )

    def _rules_of(self, address: Address, call: Call) -> robots.Robots:
        """The rules of robots.txt. By RFC 9309 a missing file allows everything, and one that cannot be fetched
        nothing."""
        with self._lock:
            until, found = self._robots.get(address.origin, (0.0, robots.NOTHING))
        if self._effects.monotonic() < until:
            if isinstance(found, str):
                raise FetchError(found)
            return found
        place = Address(address.scheme, address.host, address.port, "/robots.txt")
        try:
            got = self.fetcher.fetch(
                place,
                may_go_on=lambda: _is_wanted(call),
                before_each=lambda step: self._wait_for_turn(step, 0.0, call),
                cut_bytes=robots.ROBOTS_BYTES_MAX,
            )
            whole = got.body if len(got.body) < robots.ROBOTS_BYTES_MAX else got.body.rpartition(b"\n")[0]
            rules = robots.read_robots(decoded(whole, got.content_type, is_html=False))
        except FetchError as error:
            if error.is_refused:
                raise
            is_missing = error.status is not None and 400 <= error.status < 500
            if not is_missing:
                reason = f"its robots.txt cannot be had: {error.reason}"
                if _is_wanted(call):  # Otherwise the caller cancelled, and the site did not fail.
                    self._remember(address, reason, ROBOTS_AGAIN_SECONDS)
                raise FetchError(reason) from None
            rules = robots.EVERYTHING
        self._remember(address, rules, ROBOTS_HOURS * 3600)
        return rules

    def _remember(self, address: Address, found: robots.Robots | str, seconds: float) -> None:
        with self._lock:
            if len(self._robots) >= ORIGINS_MAX:
                self._robots.clear()
            self._robots[address.origin] = (self._effects.monotonic() + seconds, found)

    def _wait_for_turn(self, address: Address, delay_seconds: float, call: Call, until: float = math.inf) -> None:
        """Reserve the next free turn of a site and wait for it, unless the call is cancelled."""
        pause = max(self._pause, delay_seconds)
        with self._lock:
            now = self._effects.monotonic()
            turn = max(now, self._next_turn.get(address.origin, now))
            if turn > until:
                raise FetchError("its site wants us to wait longer than this call may take", is_late=True)
            if len(self._next_turn) >= ORIGINS_MAX:
                self._next_turn.clear()
            self._next_turn[address.origin] = turn + pause
        while (left := turn - self._effects.monotonic()) > 0:
            call.check()
            self._effects.sleep(min(SLICE_SECONDS, left))


def web_of(app: App, tenant_id: str) -> Web:
    """The instance of a tenant, which may ask other private hosts than others; created on first use."""
    own = app.of(tenant_id)
    found: Web = own.kept.get(Web) or own.kept.setdefault(Web, Web(own.settings, app.effects))
    return found


def get_page(app: App, call: Call, address: Address, *, is_fresh_enough: bool = True, until: float = math.inf) -> Got:
    """Index a page, and fetch it only if needed. Never raises for failures of the other side.

    With `is_fresh_enough` a recently checked page is used as it is; otherwise the site is asked whether the page has
    changed. A page whose turn comes after `until`, a moment of the engine's clock, is not fetched.
    """
    web = web_of(app, call.principal.tenant_id)
    known = _look(app, call, address.url)
    if known is not None and is_fresh_enough and app.effects.now() < known.checked_at + web.fresh_for:
        return Got(address.url, "fresh", known)
    on_the_way: dict[str, StoredPage] = {}

    def known_of(step: Address) -> Known:
        """Validators belong to the page itself; an address that redirects to it is requested without them."""
        page = known if step == address else _look(app, call, step.url)
        if page is None or page.url != step.url:
            return Known()
        on_the_way[page.id] = page
        return page.known if page.content_hash.startswith(READER) else Known()

    try:
        fetched = web.fetch(address, known_of, call, until)
        call.check()
        return _keep(app, call, address, fetched)
    except FetchError as error:
        call.check()  # A page that was abandoned because the caller cancelled has not failed.
        log.info("page failed", extra={"url": address.url, "reason": error.reason})
        # A page that this address led to before may be fine: only the requested address has failed.
        noted = {
            page.id: page if error.is_late else _note_failure(app, call, page, error.reason)
            for page in on_the_way.values()
        }
        kept = noted.get(known.id, known) if known else next(reversed(noted.values()), None)
        return Got(address.url, "failed", kept, error.reason, error.is_refused)


def crawl(
    app: App,
    call: Call,
    addresses: Sequence[Address],
    *,
    depth: int,
    pages_max: int,
    seconds_max: float | None = None,
    on_start: Callable[[str, int], None] = lambda _url, _number: None,
) -> Iterator[Got]:
    """Fetch pages and the pages they link to on the same sites, nearest first; each is checked for changes.

    After `seconds_max` no further page is started: the pages read so far are worth more than a time-out.
    """
    began = app.effects.monotonic()
    sites = {address.host for address in addresses}
    waiting = deque((address, 0) for address in dict.fromkeys(addresses))
    met = {address.url for address in addresses}
    done: set[str] = set()
    while waiting and len(done) < pages_max:
        address, level = waiting.popleft()
        call.check()
        on_start(address.url, len(done) + 1)
        until = math.inf if seconds_max is None or not done else began + seconds_max
        got = get_page(app, call, address, is_fresh_enough=False, until=until)
        done.add(address.url)
        if got.page is not None:
            met.add(got.page.url)
            if level == 0:  # A requested page may have moved to another host, with its whole site.
                sites.add(read_address(got.page.url).host)
            if level < depth:
                for link in got.page.links:
                    target = read_address(link.url)
                    if target.host in sites and link.url not in met:
                        met.add(link.url)
                        waiting.append((target, level + 1))
        yield got
        if seconds_max is not None and waiting and app.effects.monotonic() - began >= seconds_max:
            log.warning("time limit is near", extra={"pages": len(done), "waiting": len(waiting)})
            return


def embed(app: App, call: Call, *, progress: Callable[[int, int], None] = lambda _done, _total: None) -> int:
    """Compute all missing vectors of web passages."""
    return vector_repository.embed(app, call, _corpus(app, call), progress=progress)


def embed_newest(app: App, call: Call, passages: int, *, until: float = math.inf) -> None:
    """Compute the vectors of the newest passages, at most as many as a caller may wait for, and none after `until`."""
    for done in range(0, min(EMBEDDED_AT_ONCE, passages), EMBEDDED_A_ROUND):
        call.check()
        if app.effects.monotonic() >= until:
            log.info("vectors are left to the server", extra={"passages": passages - done})
            return
        limit = min(EMBEDDED_A_ROUND, passages - done, EMBEDDED_AT_ONCE - done)
        vector_repository.embed(app, call, _corpus(app, call), limit=limit, newest_first=True)


def _corpus(app: App, call: Call) -> Corpus:
    found: Corpus = app.read_unaudited(call, lambda tx: {"corpus": table_source.current(tx, repository.SOURCE)})[
        "corpus"
    ]
    return found


def require_page(got: Got, field: str) -> StoredPage:
    """The page; CpqError when it was not read."""
    if got.page is not None:
        return got.page
    code = Code.VALIDATION_ERROR if got.is_refused else Code.UNAVAILABLE
    hint = "Ask for another page." if got.is_refused else "Check the address, try again later, or ask for another page."
    if got.is_refused and "private" in str(got.reason):
        hint += " The operator can allow a private host with CPQ_WEB_ALLOWED_HOSTS."
    raise CpqError(code, f"The page was not read: {got.reason}.", field=field, hint=hint)


def _keep(app: App, call: Call, asked: Address, fetched: Fetched) -> Got:
    before = _look(app, call, fetched.address.url)
    content_hash = READER + hashlib.sha256(fetched.body).hexdigest()
    if before is not None and (fetched.is_unchanged or before.content_hash == content_hash):
        page = app.upkeep(call, lambda tx: _confirm(tx, asked.url, before, fetched.known))
        return Got(asked.url, "unchanged", page)
    if fetched.is_unchanged:
        raise FetchError("it says that it has not changed, but it was never read")
    read, kind = read_page(fetched)
    passages = passages_of(read)
    if len(passages) >= CHUNKS_MAX or len(read.blocks) >= BLOCKS_MAX:
        read = replace(read, warning=read.warning or TOO_LONG)
    if read.warning:
        log.warning("page read in part", extra={"url": fetched.address.url, "reason": read.warning})

    def work(tx: Tx) -> StoredPage:
        kept = repository.keep(
            tx, fetched.address, read, passages, kind=kind, known=fetched.known, content_hash=content_hash
        )
        repository.lead(tx, asked.url, kept)
        return kept

    return Got(asked.url, "updated" if before else "indexed", app.upkeep(call, work))


def _confirm(tx: Tx, asked_url: str, page: StoredPage, known: Known) -> StoredPage:
    repository.lead(tx, asked_url, page)
    return repository.confirm(tx, page, known)


def _note_failure(app: App, call: Call, page: StoredPage, reason: str) -> StoredPage:
    return app.upkeep(call, lambda tx: repository.note_failure(tx, page, reason))


def _look(app: App, call: Call, url: str) -> StoredPage | None:
    return app.read_unaudited(call, lambda tx: repository.find_page(tx, url))


def _is_wanted(call: Call) -> bool:
    return not call.is_cancelled
