"""Stores the pages that were read, finds them by any address that leads to them, and feeds the search core."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from cpq.app import corpus_changes
from cpq.app.transaction import Tx
from cpq.retrieval.search.index import Chunk
from cpq.retrieval.search.scores import PROSE
from cpq.retrieval.search.table_source import Source
from cpq.retrieval.web.fetcher import FetchError, Known
from cpq.retrieval.web.rules.addresses import URL_LENGTH_MAX, Address
from cpq.retrieval.web.rules.page import Image, Link, Page
from cpq.retrieval.web.rules.page_passages import Passage
from cpq.storage.schema import tables
from cpq.storage.statements import AnyRow, insert_many
from cpq.storage.upsert import upsert

CORPUS = "web"
PAGES_MAX = 50_000
"""For each tenant. An agent can request pages all day; the operator decides what stays."""


@dataclass(frozen=True)
class StoredPage:
    """A page without its text."""

    id: str
    url: str
    host: str
    title: str
    kind: str
    known: Known
    content_hash: str
    passages: int
    tokens: int
    links: tuple[Link, ...]
    warning: str | None
    failure: str | None
    fetched_at: datetime
    checked_at: datetime


@dataclass(frozen=True)
class StoredPassage:
    page_id: str
    ordinal: int
    headings: tuple[str, ...]
    text: str
    tokens: int
    images: tuple[Image, ...]


def find_page(tx: Tx, url: str) -> StoredPage | None:
    """The page at an address, also through a redirect."""
    by_alias = sa.select(tables.web_alias.c.page_id).where(tx.own(tables.web_alias), tables.web_alias.c.url == url)
    mine = tx.own(tables.web_page) & sa.or_(
        tables.web_page.c.url == url, tables.web_page.c.id == by_alias.scalar_subquery()
    )
    rows = tx.connection.execute(sa.select(tables.web_page).where(mine)).all()
    exact = next((row for row in rows if row.url == url), rows[0] if rows else None)
    return _stored(exact) if exact is not None else None


def pages_by_id(tx: Tx, ids: Collection[str]) -> dict[str, StoredPage]:
    """Pages without their links, which are large and seldom needed."""
    rows = tx.connection.execute(sa.select(*_BARE).where(tx.own_among(tables.web_page.c.id, ids)))
    return {row.id: _stored(row) for row in rows}


def links_of(tx: Tx, ids: Collection[str]) -> list[tuple[str, tuple[Link, ...]]]:
    """The links of these pages, each with the address of its page, ordered by address."""
    mine = sa.select(tables.web_page.c.url, tables.web_page.c.links).where(tx.own_among(tables.web_page.c.id, ids))
    return [(row.url, _links(row.links)) for row in tx.connection.execute(mine.order_by(tables.web_page.c.url))]


def list_pages(tx: Tx, limit: int) -> list[StoredPage]:
    """Pages ordered by address, without their links."""
    mine = sa.select(*_BARE).where(tx.own(tables.web_page))
    return [_stored(row) for row in tx.connection.execute(mine.order_by(tables.web_page.c.url).limit(limit))]


def totals(tx: Tx, hosts: Collection[str] | None = None, ids: Collection[str] = ()) -> tuple[int, int, int]:
    """The number of pages, passages and tokens, in all or on these hosts and of these pages."""
    mine = tx.own(tables.web_page)
    if hosts is not None:
        mine &= sa.or_(tx.own_among(tables.web_page.c.host, hosts), tx.own_among(tables.web_page.c.id, ids))
    counted = sa.select(
        sa.func.count(),
        sa.func.coalesce(sa.func.sum(tables.web_page.c.passages), 0),
        sa.func.coalesce(sa.func.sum(tables.web_page.c.tokens), 0),
    )
    pages, passages, tokens = tx.connection.execute(counted.where(mine)).one()
    return int(pages), int(passages), int(tokens)


def read_passages(tx: Tx, wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], StoredPassage]:
    """These passages by page and ordinal; missing ones are left out."""
    pairs = set(wanted)
    ids = {page_id for page_id, _ in pairs}
    ordinals = {ordinal for _, ordinal in pairs}
    mine = tx.own_among(tables.web_passage.c.page_id, ids) & tables.web_passage.c.ordinal.in_(sorted(ordinals))
    rows = tx.connection.execute(sa.select(tables.web_passage).where(mine))
    return {(row.page_id, row.ordinal): _passage(row) for row in rows if (row.page_id, row.ordinal) in pairs}


def keep(
    tx: Tx, address: Address, page: Page, passages: Sequence[Passage], *, kind: str, known: Known, content_hash: str
) -> StoredPage:
    """Replace the stored page, and mark it as changed for the search core."""
    page_id = page_id_of(address.url)
    before = pages_by_id(tx, [page_id]).get(page_id)
    if before is None and totals(tx)[0] >= PAGES_MAX:
        raise FetchError(f"{PAGES_MAX:,} pages are kept already; the operator can take some away: cpq web forget")
    stored = StoredPage(
        id=page_id,
        url=address.url,
        host=address.host,
        title=page.title,
        kind=kind,
        known=known,
        content_hash=content_hash,
        passages=len(passages),
        tokens=sum(passage.tokens for passage in passages),
        links=page.links,
        warning=page.warning,
        failure=None,
        fetched_at=tx.now,
        checked_at=tx.now,
    )
    tx.connection.execute(upsert(tx.connection.dialect.name, tables.web_page).values(_row(tx, stored)))
    tx.connection.execute(
        sa.delete(tables.web_passage).where(tx.own(tables.web_passage), tables.web_passage.c.page_id == page_id)
    )
    insert_many(tx.connection, tables.web_passage, [_passage_row(tx, page_id, passage) for passage in passages])
    # An address that redirected before may now have a page of its own.
    tx.connection.execute(
        sa.delete(tables.web_alias).where(tx.own(tables.web_alias), tables.web_alias.c.url == address.url)
    )
    tx.sizes.append(sum(len(one.text) for one in passages) + sum(len(link.url) + len(link.text) for link in page.links))
    corpus_changes.touch(tx, CORPUS, [page_id])
    return stored


def confirm(tx: Tx, page: StoredPage, known: Known) -> StoredPage:
    """Record that a page has not changed."""
    kept = Known(known.etag or page.known.etag, known.last_modified or page.known.last_modified)
    values = {"etag": kept.etag, "last_modified": kept.last_modified, "checked_at": tx.now, "failure": None}
    tx.connection.execute(sa.update(tables.web_page).where(_is(tx, page.id)).values(values))
    return replace(page, known=kept, checked_at=tx.now, failure=None)


def note_failure(tx: Tx, page: StoredPage, reason: str) -> StoredPage:
    """Record why there is no newer version; the last good one stays."""
    tx.connection.execute(sa.update(tables.web_page).where(_is(tx, page.id)).values(failure=reason))
    return replace(page, failure=reason)


def lead(tx: Tx, url: str, page: StoredPage) -> None:
    """Record that an address redirects to a page."""
    if url == page.url:
        return
    row = {"tenant_id": tx.tenant_id, "url": url, "page_id": page.id}
    tx.connection.execute(upsert(tx.connection.dialect.name, tables.web_alias).values(row))


def forget(tx: Tx, pages: Sequence[StoredPage]) -> None:
    """Delete pages with their passages and the addresses that lead to them."""
    ids = [page.id for page in pages]
    for table, column in (
        (tables.web_passage, tables.web_passage.c.page_id),
        (tables.web_alias, tables.web_alias.c.page_id),
        (tables.web_page, tables.web_page.c.id),
    ):
        tx.connection.execute(sa.delete(table).where(tx.own_among(column, ids)))
    corpus_changes.touch(tx, CORPUS, ids)


def page_id_of(url: str) -> str:
    return hashlib.blake2b(url.encode(), digest_size=10).hexdigest()


def host_tag(host: str) -> str:
    return f"host={host}"


def page_tag(page_id: str) -> str:
    return f"page={page_id}"


def _gather(tx: Tx, documents: Collection[str] | None) -> Iterator[Chunk]:
    columns = (
        tables.web_passage.c.page_id,
        tables.web_passage.c.ordinal,
        tables.web_passage.c.headings,
        tables.web_passage.c.text,
    )
    joined = sa.select(tables.web_page.c.title, tables.web_page.c.host, *columns).join(
        tables.web_page,
        (tables.web_page.c.tenant_id == tables.web_passage.c.tenant_id)
        & (tables.web_page.c.id == tables.web_passage.c.page_id),
    )
    mine = tx.own(tables.web_passage) if documents is None else tx.own_among(tables.web_passage.c.page_id, documents)
    for row in tx.connection.execute(joined.where(mine)):
        yield Chunk(
            id=f"{row.page_id}/{row.ordinal:05}",
            document_id=row.page_id,
            title=" › ".join(dict.fromkeys([row.title, *row.headings])),
            text=row.text,
            tags=(host_tag(row.host), page_tag(row.page_id)),
            payload=(row.page_id, row.ordinal),
            is_prose=True,
        )


_BARE = [column for column in tables.web_page.c if column.name != "links"]

SOURCE = Source(CORPUS, PROSE, _gather)


def _is(tx: Tx, page_id: str) -> sa.ColumnElement[bool]:
    return tx.own(tables.web_page) & (tables.web_page.c.id == page_id)


def _row(tx: Tx, page: StoredPage) -> dict[str, object]:
    values = {name: getattr(page, name) for name in tables.web_page.c.keys() if hasattr(page, name)}  # noqa: SIM118 - of columns
    links = [[link.url, link.text, link.is_navigation] for link in page.links]
    return {**values, "tenant_id": tx.tenant_id, "links": links, **asdict(page.known)}


def _stored(row: AnyRow) -> StoredPage:
    values = {name: getattr(row, name) for name in StoredPage.__dataclass_fields__ if name not in ("known", "links")}
    return StoredPage(**values, links=_links(getattr(row, "links", ())), known=Known(row.etag, row.last_modified))


def _links(written: Iterable[tuple[str, str, bool]]) -> tuple[Link, ...]:
    """The links, without those longer than an address may be, which an earlier version stored."""
    return tuple(Link(url, text, is_menu) for url, text, is_menu in written if len(url) <= URL_LENGTH_MAX)


def _passage_row(tx: Tx, page_id: str, passage: Passage) -> dict[str, object]:
    return {
        "tenant_id": tx.tenant_id,
        "page_id": page_id,
        "ordinal": passage.ordinal,
        "headings": list(passage.headings),
        "text": passage.text,
        "tokens": passage.tokens,
        "images": [[image.url, image.alt, image.caption] for image in passage.images],
    }


def _passage(row: AnyRow) -> StoredPassage:
    images = tuple(Image(url, alt, caption, 0) for url, alt, caption in row.images)
    return StoredPassage(row.page_id, row.ordinal, tuple(row.headings), row.text, row.tokens, images)
