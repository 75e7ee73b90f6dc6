"""Searches and reads the Markdown pages of the caller's tenant: CPQ_DOCS_DIR, or its folder in CPQ_DOCS_DIRS.

Without CPQ_DOCS_DIR the main tenant has the guide of the product."""

from __future__ import annotations

import logging
from pathlib import Path
from posixpath import normpath

import sqlalchemy as sa

from cpq import __version__
from cpq.app import App
from cpq.app.transaction import Tx
from cpq.base.background import Loop
from cpq.base.errors import Code, CpqError, bad_field, nearest, next_call
from cpq.base.settings import Settings
from cpq.base.tenant_folders import MAIN_TENANT
from cpq.retrieval.docs import git
from cpq.retrieval.docs.page_folder import PageFolder, State
from cpq.retrieval.docs.pages import Page
from cpq.retrieval.docs.views import (
    NOTICE,
    DocsFound,
    DocsPage,
    DocsPages,
    DocsSection,
    DocsStatus,
    hit_view,
    page_view,
    section_view,
    summary_view,
)
from cpq.retrieval.search import vector_repository
from cpq.retrieval.search.globs import matcher, relative
from cpq.retrieval.search.index import Where
from cpq.retrieval.search.installed_model import is_installed
from cpq.retrieval.search.retrieval_notes import note
from cpq.retrieval.search.vector_repository import Progress, no_progress
from cpq.retrieval.search.vectors import DIMENSIONS

log = logging.getLogger("cpq.docs")

TOP_K_DEFAULT = 5
TOP_K_MAX = 20
LOOK_SECONDS = 0.5
NAME_LENGTH_MAX = 300
MODEL_NAME = "all-MiniLM-L6-v2"

_KEPT = "docs"


def search(tx: Tx, query: str, *, top_k: int = TOP_K_DEFAULT, file_filter: str | None = None) -> DocsFound:
    """The passages that answer a query best, from the files that match the filter."""
    folder = _folder(tx)
    started = tx.effects.monotonic()
    folder.wait_for_vectors()
    pages = _refreshed(tx, folder).pages
    passes = matcher(file_filter) if file_filter else None
    documents = None if passes is None else {path for path in pages if passes(path)}
    where = Where(documents=documents, is_lenient=True)
    found = folder.corpus.search(query, limit=max(1, min(top_k, TOP_K_MAX)), where=where)
    hits = [hit for hit in found.hits if hit.score >= tx.settings.search_score_min]
    note(tx, query, found.mode, [hit.score for hit in hits])
    answer: DocsFound = {
        "results": [hit_view(hit.payload, hit.payload.found(hit.id), hit.score) for hit in hits],
        "total_chunks": found.eligible,
        "query_ms": round((tx.effects.monotonic() - started) * 1000, 1),
        "mode": found.mode,
        "notice": NOTICE,
    }
    if found.waiting:
        answer["indexing"] = found.waiting
    return answer


def get_page(tx: Tx, file_path: str) -> DocsPage:
    return page_view(_page(tx, file_path))


def get_section(tx: Tx, file_path: str, heading_path: str) -> DocsSection:
    """The section under exactly this breadcrumb, with its parts joined."""
    page = _page(tx, file_path)
    parts = page.section(heading_path)
    if not parts:
        known = list(dict.fromkeys(part.section_path for part in page.parts()))
        raise CpqError(
            Code.NOT_FOUND,
            f"No section found at heading: {_short(heading_path)} in {page.path}. "
            "Use get_page to see available sections.",
            field="/heading_path",
            nearest=_nearest(heading_path, known),
            next_call=next_call("get_page", file_path=page.path),
        )
    return section_view(page, parts)


def list_pages(tx: Tx, prefix: str | None = None) -> DocsPages:
    """All pages by path; with `prefix`, those below that folder, or else those whose path starts with it."""
    pages = sorted(_refreshed(tx, _folder(tx)).pages.values(), key=lambda page: page.path)
    if prefix and (start := relative(prefix).rstrip("/")):
        below = [page for page in pages if page.path == start or page.path.startswith(f"{start}/")]
        pages = below or [page for page in pages if page.path.startswith(start)]
    return {"pages": [summary_view(page) for page in pages], "total_pages": len(pages), "notice": NOTICE}


def progress(tx: Tx) -> tuple[int, int]:
    """How many different passages of the tenant's pages have a stored vector, and how many there are."""
    folder = _folder(tx)
    folder.refresh()
    texts = folder.corpus.hashes()
    return len(texts & vector_repository.stored_names(tx, folder.corpus.name)), len(texts)


def status(tx: Tx) -> DocsStatus:
    """Whether the toolset works, and how fresh its index is."""
    folder = _folder(tx)
    state, corpus = _refreshed(tx, folder), folder.corpus
    return {
        "server": {
            "version": __version__,
            "uptime_seconds": int(tx.effects.monotonic() - folder.started_at),
            "docs_root": str(folder.root.absolute()),
        },
        "index": {
            "total_pages": len(state.pages),
            "total_chunks": len(corpus),
            "last_indexed": state.indexed_at,
            "db_path": tx.settings.database_name,
            "db_size_bytes": _database_bytes(tx),
        },
        "embedding": {
            "model": MODEL_NAME,
            "dimensions": DIMENSIONS,
            "provider": "local" if is_installed() else "none",
            "waiting": len(corpus.missing()),
        },
        "git": git.facts(folder.root),
        "problems": [{"file_path": path, "problem": problem} for path, problem in sorted(state.problems.items())],
    }


def read(app: App, progress: Progress) -> None:
    """Read every new or changed page; a search finds its words at once."""
    _folder(app).refresh(progress)


def index(app: App, progress: Progress = no_progress, *, forgets: bool = True) -> None:
    """Read every page, compute every missing vector, and with `forgets` delete the vectors of texts that are gone."""
    folder = _folder(app)
    folder.refresh()
    folder.complete_vectors(app, progress, forgets=forgets)


def loops(app: App) -> list[Loop]:
    """The background work of a server: reads changed pages and computes vectors."""
    return [_folder(app, tenant_id).loop(app, LOOK_SECONDS) for tenant_id in app.settings.docs_roots]


def require(settings: Settings) -> None:
    """Raise when a folder does not exist, so that a server does not start without pages, or lies in another's."""
    roots = settings.docs_roots
    if settings.docs_dir is None:
        log.info("CPQ_DOCS_DIR is not set: the toolset docs has the guide of the product")
    for tenant_id, root in roots.items():
        variable = "CPQ_DOCS_DIR" if tenant_id == MAIN_TENANT else "CPQ_DOCS_DIRS"
        if not root.is_dir():
            raise bad_field(
                variable,
                f"{variable}: there is no folder {root}.",
                hint="Set it to the folder with your Markdown, or leave the toolset docs out of CPQ_TOOLSETS.",
            )
        for other, folder in roots.items():
            if other != tenant_id and root.resolve().is_relative_to(folder.resolve()):
                raise bad_field(
                    variable,
                    f"{variable}: the folder {root} of {tenant_id} is within {folder} of {other}, who would read it.",
                    hint="Give each tenant a folder outside those of the others.",
                )


def _folder(owner: App | Tx, tenant_id: str = MAIN_TENANT) -> PageFolder:
    """The folder of a tenant in this process, for a transaction that of its caller; created on first use."""
    tenant_id = owner.tenant_id if isinstance(owner, Tx) else tenant_id
    own = owner if isinstance(owner, Tx) else owner.of(tenant_id)
    kept: PageFolder | None = own.kept.get((_KEPT, tenant_id))
    if kept is None:
        fresh = PageFolder(_root(own.settings, tenant_id), owner.effects, tenant_id)
        kept = own.kept.setdefault((_KEPT, tenant_id), fresh)
    return kept


def _refreshed(tx: Tx, folder: PageFolder) -> State:
    """The pages as the files are now."""
    state = folder.refresh()
    if not folder.is_watched:
        folder.load_vectors(tx)
    return state


def _root(settings: Settings, tenant_id: str) -> Path:
    """The folder of a tenant. Another tenant's is never used instead."""
    root = settings.docs_roots[MAIN_TENANT] if tenant_id == MAIN_TENANT else settings.docs_dir
    if root is None:
        raise CpqError(
            Code.UNAVAILABLE,
            f"The tenant {tenant_id} has no folder of pages.",
            hint="The operator puts its Markdown into CPQ_HOME/tenants/ID/docs, or names a folder in CPQ_DOCS_DIRS.",
        )
    return root


def _page(tx: Tx, file_path: str) -> Page:
    folder = _folder(tx)
    pages = _refreshed(tx, folder).pages
    root = f"{folder.root.absolute()}/"
    wanted = relative(file_path.removeprefix(root))
    page = pages.get(wanted) or pages.get(relative(normpath(wanted)))
    if page is None:
        raise CpqError(
            Code.NOT_FOUND,
            f"No page found at path: {_short(file_path)}. Use list_pages to discover available pages.",
            field="/file_path",
            nearest=_nearest(wanted, list(pages)),
            next_call=next_call("list_pages"),
        )
    return page


def _nearest(wanted: str, known: list[str]) -> list[str] | None:
    """Known names that end like the wanted one; else those spelt alike."""
    wanted = wanted[-NAME_LENGTH_MAX:]
    leaf = [path for path in known if path.lower().endswith(wanted.lower())]
    return [_short(path) for path in leaf[:3] or nearest(wanted, known[:2_000])] or None


def _database_bytes(tx: Tx) -> int:
    if tx.settings.is_sqlite:
        return tx.settings.sqlite_path.stat().st_size
    return int(tx.connection.scalar(sa.text("SELECT pg_database_size(current_database())")) or 0)


def _short(text: str) -> str:
    return text if len(text) <= NAME_LENGTH_MAX else f"{text[:NAME_LENGTH_MAX]}…"
