"""What is asked for: a quote, its version, a template and a locale, and which document follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from cpq.app import recorded_state
from cpq.app.transaction import Tx
from cpq.base.errors import bad_field, nearest
from cpq.domain.quotes.lifecycle import VersionStatus
from cpq.domain.quotes.quote import Quote
from cpq.services.catalog import get_account
from cpq.services.documents import repository
from cpq.services.documents.content import gather, says_the_same, with_lines
from cpq.services.documents.design import EVERY_TEMPLATE, Design
from cpq.services.documents.locale import choose_locale
from cpq.services.documents.repository import DocumentKey, IssuedDocument
from cpq.services.documents.scan_code import make_code
from cpq.services.documents.stamp import SUPERSEDED, stamp_of
from cpq.services.quotes import repository as quote_repository
from cpq.services.quotes.readiness import require_reviewed


class DocumentRequest(NamedTuple):
    """The requested document. Defaults: the current version, and the account's locale."""

    quote_id: str
    template: str = "standard"
    locale: str | None = None
    version: int | None = None


@dataclass(frozen=True)
class ResolvedRequest:
    """A request with its version, stamp and content resolved."""

    key: DocumentKey
    number: str
    """The quote's number for people."""
    stamp: str | None
    fingerprint: str
    known: IssuedDocument | None
    content: dict[str, Any] | None
    """None when the document is known; `repository.find_content` then has the content."""


def resolve(tx: Tx, request: DocumentRequest, design: Design) -> ResolvedRequest:
    """Find the requested version and its document; gather the content unless the document was issued before."""
    require_template(request.template)
    found = quote_repository.load(tx, request.quote_id, version=request.version, with_lines=False)
    locale = locale_of(tx, found, request, design)
    stamp = stamp_of(tx, found)
    state = _draft_state(found, stamp, design) if found.version.status is VersionStatus.DRAFT else _state(found, stamp)
    key = DocumentKey(found.id, found.version.number, state, request.template, locale)
    known = repository.find_latest(tx, key)
    if known is not None:
        repository.require_recorded(tx, known)
    else:
        recorded_state.require(tx, found.id, found.version.number, also=recorded_state.RELIED_ON)
    content = None
    if known is None:
        found = with_lines(tx, found)
        require_reviewed(found)
        issued = _issued_content(tx, found, stamp, key)
        if issued and design.brand.verify_url and "code" not in issued["quote"]:
            # Content from before there were codes, or before the seller had an address.
            issued["quote"]["code"] = make_code(tx.tenant_id, issued["quote"], issued["lines"])
        content = issued or gather(tx, found, request.template, design, stamp, locale)
    return ResolvedRequest(key, found.number, stamp, found.version.fingerprint, known, content)


def require_template(template: str) -> None:
    if template not in EVERY_TEMPLATE:
        raise bad_field(
            "/template",
            f"There is no template {template!r}.",
            allowed=list(EVERY_TEMPLATE),
            nearest=nearest(template, EVERY_TEMPLATE) or None,
        )


def locale_of(tx: Tx, found: Quote, request: DocumentRequest, design: Design) -> str:
    return choose_locale(request.locale, get_account(tx, found.account_id)["locale"], design.labels)


def _draft_state(found: Quote, stamp: str | None, design: Design) -> str:
    """The state in the key of a draft's document, which follows edits and design; a submitted version is fixed."""
    return f"{stamp or 'final'}:draft:{found.edit}:{design.digest[:16]}"


def _state(found: Quote, stamp: str | None) -> str:
    return f"{stamp or 'final'}:{found.version.option_set or ''}"


def _issued_content(tx: Tx, found: Quote, stamp: str | None, key: DocumentKey) -> dict[str, Any] | None:
    """The content that the customer may have, if it still matches: of the document of a superseded version, else of
    one that was issued while this version was a draft without need of approval.

    It stays the content of the version even if account or catalogue change.
    """
    if stamp not in (None, SUPERSEDED) or found.version.status is VersionStatus.DRAFT:
        return None
    sent = repository.find_latest(tx, replace(key, state=_state(found, None))) if stamp else None
    content = repository.find_content(tx, sent.id) if sent else repository.find_draft_content(tx, key)
    if content is None or not says_the_same(content, found):
        return None
    return {**content, "quote": {**content["quote"], "stamp": stamp}}
