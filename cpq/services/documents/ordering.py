"""What is asked for, and what is known already: the version, its stamp, its locale, and the document issued before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.transaction import Tx
from cpq.base.errors import bad_field, nearest
from cpq.services import quotes
from cpq.services.catalog import get_account, repository
from cpq.services.documents.content import gather, says_the_same
from cpq.services.documents.design import TEMPLATES, Design
from cpq.services.documents.locale import choose_locale
from cpq.services.quotes import repository as quote_repository
from cpq.services.quotes.repository import Quote
from cpq.storage.schema import document
from cpq.storage.statements import AnyRow
from cpq.storage.upsert import insert_if_absent

WENT_OUT = ("sent", "accepted", "declined", "superseded")
STAMPS = {"cancelled": "cancelled", "pending_approval": "not_approved", "rejected": "not_approved"}
KEPT_MAX = 1_000
"""Versions of which a process remembers whether they may be sent."""

WITHOUT_LINES = ("executive_summary",)
"""Templates that do not list every line, and so have no limit to their number."""


class QuotePdf(TypedDict):
    quote_id: str
    version: int
    pdf_generated: bool
    document_id: str
    file_path: str
    file_name: str
    """What a person would call the file."""
    file_size_bytes: int
    checksum: str
    """`sha256:` and 64 hexadecimal digits, of the bytes of the file."""
    pages: int
    template_used: str
    locale: str
    stamp: str | None
    """Why it may not go to a customer: not_approved, expired or cancelled; null when it may."""
    fingerprint: str
    resource_uri: str
    warnings: list[str]
    generated_at: datetime
    outcome: str
    message: str


class Wish(NamedTuple):
    """A document that somebody wants. Without a version the current one, without a locale the account's."""

    quote_id: str
    template: str = "standard"
    locale: str | None = None
    version: int | None = None


@dataclass(frozen=True)
class Order:
    """A wish with everything that follows from it."""

    quote_id: str
    version: int
    template: str
    locale: str
    stamp: str | None
    state: str
    """What the bytes depend on besides: one of several documents that a version can have in its life."""
    fingerprint: str
    known: AnyRow | None
    content: dict[str, Any] | None
    """What it says; nothing when the document is known, and `content_of` then has it."""


def prepare(tx: Tx, wish: Wish, design: Design) -> Order:
    """Look up a version and say which document of it is wanted; gather what it says unless it was issued before."""
    require_template(wish.template)
    found = quote_repository.load(tx, wish.quote_id, version=wish.version, with_lines=False)
    locale = choose_locale(wish.locale, get_account(tx, found.root.account_id)["locale"], design.labels)
    stamp = stamp_of(tx, found)
    state = _state(found, stamp, design)
    version = found.version.version
    known = _known(tx, found.id, version, state, wish.template, locale)
    content = None
    if known is None:
        found = _with_lines(tx, found)
        content = _said_before(tx, found, stamp, wish.template, locale) or contents(
            tx, found, wish.template, design, stamp
        )
    return Order(found.id, version, wish.template, locale, stamp, state, found.version.fingerprint, known, content)


def contents(tx: Tx, found: Quote, template: str, design: Design, stamp: str | None) -> dict[str, Any]:
    """What a document of this version says; VALIDATION_ERROR when it would list too many lines."""
    found = _with_lines(tx, found)
    most = tx.settings.pdf_lines_max
    if template not in WITHOUT_LINES and len(found.lines) > most:
        raise bad_field(
            "/quote_id",
            f"The quote has {len(found.lines):,} lines; a document lists {most:,} at most.",
            maximum=most,
            hint="Take the template executive_summary, or `cpq export quote --format csv`.",
        )
    return gather(tx, found, attributes_shown=design.brand.attributes_shown, stamp=stamp)


def require_template(template: str) -> None:
    if template not in TEMPLATES:
        raise bad_field(
            "/template",
            f"There is no template {template!r}.",
            allowed=list(TEMPLATES),
            nearest=nearest(template, TEMPLATES) or None,
        )


def stamp_of(tx: Tx, found: Quote) -> str | None:
    """Why a version may not go to the customer now; None when it may, or has gone already."""
    status = found.version.status
    if status in WENT_OUT:
        return None
    if status == "approved" and found.version.expires_at <= tx.now:
        return "expired"
    if status in ("draft", "approved"):
        return None if _may_be_sent(tx, found) else "not_approved"
    return STAMPS.get(status, "not_approved")


def content_of(tx: Tx, document_id: str) -> dict[str, Any]:
    mine = tx.own(document) & (document.c.id == document_id)
    content: dict[str, Any] = tx.connection.execute(sa.select(document.c.content).where(mine)).scalar_one()
    return content


def find(tx: Tx, document_id: str) -> AnyRow:
    mine = tx.own(document) & (document.c.id == document_id)
    return tx.connection.execute(sa.select(*_WITHOUT_CONTENT).where(mine)).one()


def record(tx: Tx, order: Order, content: dict[str, Any], checksum: str, size: int, pages: int, missing: str) -> AnyRow:
    """Write down that the document was issued; who made the same at the same time finds that one."""
    key = {
        "quote_id": order.quote_id,
        "version": order.version,
        "state": order.state,
        "template": order.template,
        "locale": order.locale,
        "checksum": checksum,
    }
    mine = sa.and_(tx.own(document), *(document.c[name] == value for name, value in key.items()))
    row = {
        "tenant_id": tx.tenant_id,
        "id": tx.new_id("DOC-"),
        **key,
        "stamp": order.stamp,
        "size": size,
        "pages": pages,
        "missing": missing,
        "fingerprint": order.fingerprint,
        "content": content,
        "created_at": tx.now,
        "created_by": tx.caller,
    }
    once = insert_if_absent(tx.connection.dialect.name, document, "tenant_id", *key)
    tx.connection.execute(once.values(row))
    return tx.connection.execute(sa.select(*_WITHOUT_CONTENT).where(mine)).one()


def answer(row: AnyRow, path: str, outcome: str) -> QuotePdf:
    """What a caller is told of a document."""
    warnings = []
    if row.stamp:
        warnings.append("It is stamped on every page, because this version may not go to a customer now.")
    if row.missing:
        warnings.append(f"No font has these characters, which show as boxes: {' '.join(row.missing)}")
    return {
        "quote_id": row.quote_id,
        "version": row.version,
        "pdf_generated": True,
        "document_id": row.id,
        "file_path": path,
        "file_name": f"{row.quote_id}-v{row.version}-{row.template}-{row.locale}.pdf",
        "file_size_bytes": row.size,
        "checksum": f"sha256:{row.checksum}",
        "pages": row.pages,
        "template_used": row.template,
        "locale": row.locale,
        "stamp": row.stamp,
        "fingerprint": row.fingerprint,
        "resource_uri": f"quote://{row.quote_id}/pdf",
        "warnings": warnings,
        "generated_at": row.created_at,
        "outcome": outcome,
        "message": "Document made." if outcome == "created" else _said_of_known(row),
    }


def _said_of_known(row: AnyRow) -> str:
    """Who changed templates or branding and looks for it here is told why it does not show; a draft follows them."""
    if ":draft:" in row.state:
        return "The document was made before; these are its bytes."
    return (
        "The document was made before; these are its bytes, in the design of that time. A new version takes the design"
        " of today."
    )


def _may_be_sent(tx: Tx, found: Quote) -> bool:
    """Decided anew when anything changed that it follows from; asking once more for a long quote costs nothing then."""
    version, revision = found.version, repository.revision_of(tx)
    quote = (found.root.version, found.root.edit, version.status, found.root.expires_at <= tx.now)
    basis = (*quote, tx.policies.content_hash, revision)
    key = tx.tenant_id, found.id, version.version
    known: dict[tuple[str, str, int], tuple[object, bool]] = tx.kept.setdefault("documents.may_be_sent", {})
    kept = known.get(key)
    if kept is not None and kept[0] == basis:
        return kept[1]
    decided = quotes.may_be_sent(tx, _with_lines(tx, found))
    # Without a revision nobody says when products change, and one that changed meanwhile may have been read in part.
    if revision and repository.revision_of(tx) == revision:
        if len(known) >= KEPT_MAX:
            known.clear()
        known[key] = (basis, decided)
    return decided


_WITHOUT_CONTENT = [column for column in document.c if column is not document.c.content]


def _with_lines(tx: Tx, found: Quote) -> Quote:
    return found if found.lines else replace(found, lines=quote_repository.lines(tx, found.id, found.version.version))


def _state(found: Quote, stamp: str | None, design: Design) -> str:
    """A draft can still change, and so can the look of its document. What was submitted or went out stays as it is."""
    name = stamp or "final"
    if found.version.status == "draft":
        return f"{name}:draft:{found.root.edit}:{design.digest[:16]}"
    return f"{name}:{found.version.option_set or ''}"


def _said_before(tx: Tx, found: Quote, stamp: str | None, template: str, locale: str) -> dict[str, Any] | None:
    """What the customer may have in hand since this version was a draft that needed no approval, if it still holds.

    It stays the document of the version when it is sent, whatever became of the account or the catalogue meanwhile.
    """
    if stamp is not None or found.version.status == "draft":
        return None
    key = {"quote_id": found.id, "version": found.version.version, "template": template, "locale": locale}
    mine = sa.and_(tx.own(document), *(document.c[name] == value for name, value in key.items()))
    as_draft = document.c.state.startswith("final:draft:", autoescape=True)
    newest = sa.select(document.c.content).where(mine, as_draft).order_by(document.c.created_at.desc(), document.c.id)
    content: dict[str, Any] | None = tx.connection.scalar(newest.limit(1))
    return content if content is not None and says_the_same(content, found) else None


def _known(tx: Tx, quote_id: str, version: int, state: str, template: str, locale: str) -> AnyRow | None:
    """The last one issued: a document that could not be made again to the byte was issued anew."""
    key = {"quote_id": quote_id, "version": version, "state": state, "template": template, "locale": locale}
    mine = sa.and_(tx.own(document), *(document.c[name] == value for name, value in key.items()))
    chosen = sa.select(*_WITHOUT_CONTENT).where(mine).order_by(document.c.created_at.desc(), document.c.id.desc())
    return tx.connection.execute(chosen.limit(1)).one_or_none()
