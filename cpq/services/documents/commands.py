"""Issues documents: known ones from the store, new ones rendered by a worker, then stored and recorded."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cpq.app import Answer, App, Call, Command, Outcome, Record
from cpq.app.access import ENGINE, Permission
from cpq.app.reconciliation import Finding
from cpq.app.transaction import Tx
from cpq.base.errors import Code, CpqError, bad_field
from cpq.base.settings import Settings
from cpq.base.text import canonical_json
from cpq.services.documents import document_request, repository, views
from cpq.services.documents.design import Design, design_of
from cpq.services.documents.document_request import DocumentRequest
from cpq.services.documents.file_store import Store, checksum_of
from cpq.services.documents.repository import DocumentKey, IssuedDocument
from cpq.services.documents.worker_pool import Made, workers_for

log = logging.getLogger("cpq.documents")

BYTES_MAX = 64 * 1024**2
STAGES = {"waiting": 0, "starting": 0, "composing": 1, "laying out": 2, "writing": 3}

Progress = Callable[[int, int, str], None]
"""Called with steps done, steps in total and the current stage; raises when the call is cancelled."""


def issue(app: App, call: Call, record: Record, request: DocumentRequest, progress: Progress) -> Outcome | Answer:
    """The requested document, within a call that is admitted. A plain answer when it existed and nothing was written.

    Rendering happens outside of any transaction; file and record are stored together, or neither.
    """
    store, design = Store(app.settings.home), design_of(app.of(call.principal.tenant_id).settings)
    earlier = app.recall(call, record.command)
    if earlier is not None:
        _restore(app, call, str(earlier["document_id"]), store, design, progress)
        return app.write_within(call, record, lambda _tx: earlier)
    asked = app.read_unaudited(call, lambda tx: document_request.resolve(tx, request, design))
    known = asked.known
    if known is not None and store.read(known.checksum) is not None:
        found: Answer = dict(views.answer(known, asked.number, str(store.path(known.checksum)), "no_change"))
        return app.write_within(call, record, lambda _tx: found) if record.command.idempotency_key else found
    content = asked.content or app.read_unaudited(
        call, lambda tx: repository.find_content(tx, known.id if known else "")
    )
    made = _render(app, design, asked.key, asked.stamp, content, progress)
    checksum = checksum_of(made.pdf)

    def keep(tx: Tx) -> Answer:
        document = repository.record(
            tx,
            asked.key,
            content,
            stamp=asked.stamp,
            fingerprint=asked.fingerprint,
            checksum=checksum,
            size=len(made.pdf),
            pages=made.pages,
            missing=made.missing,
        )
        return dict(views.answer(document, asked.number, str(store.path(checksum)), "created"))

    with store.incoming(made.pdf):
        return app.write_within(call, record, keep)


def read_pdf(app: App, call: Call, request: DocumentRequest) -> bytes:
    """The bytes of the requested document, for an edge that shows it at once."""
    asked = {"quote_id": request.quote_id, "template": request.template, "version": request.version}
    command = Command("quote_pdf", Permission.READ, asked, subject=request.quote_id)
    with app.admitted(call, command) as record:
        made = issue(app, call, record, request, lambda _done, _total, _what: None)
    answer = made.answer if isinstance(made, Outcome) else made
    return read_document(app.settings, answer["checksum"])


def read_document(settings: Settings, checksum: str) -> bytes:
    """The bytes of a document that was just issued."""
    content = Store(settings.home).read(checksum.removeprefix("sha256:"))
    assert content is not None, "it was there a moment ago"
    return content


def restore_files(app: App, progress: Callable[[int, int], None]) -> tuple[int, int]:
    """Render again every document whose file is lost or damaged; returns how many are back, and how many cannot be."""
    store = Store(app.settings.home)
    lost: list[tuple[Call, str]] = []
    for tenant_id in app.read_unaudited(app.new_call(ENGINE), repository.tenants):
        call = app.new_call(replace(ENGINE, tenant_id=tenant_id))
        found = app.read_unaudited(call, repository.checksums)
        lost += [(call, document_id) for document_id, checksum in found if store.read(checksum) is None]
    restored = 0
    for done, (call, document_id) in enumerate(lost):
        progress(done, len(lost))
        try:
            design = design_of(app.of(call.principal.tenant_id).settings)
            _restore(app, call, document_id, store, design, lambda _done, _total, _what: None)
            restored += 1
        except CpqError as error:
            log.warning("a document cannot be restored", extra={"document": document_id, "reason": error.message})
    return restored, len(lost) - restored


def changed_files(tx: Tx) -> list[Finding]:
    """The documents whose file on this machine has other bytes than were issued. A lost file is rendered again."""
    store = Store(tx.settings.home)
    return [
        Finding(document_id, "file", f"document {document_id}: its file was changed")
        for document_id, checksum in repository.checksums(tx)
        if store.path(checksum).exists() and store.read(checksum) is None
    ]


def _restore(app: App, call: Call, document_id: str, store: Store, design: Design, progress: Progress) -> None:
    """Render a document again if its file is missing on this machine, so that an earlier answer stays true."""

    def find(tx: Tx) -> IssuedDocument:
        found = repository.find(tx, document_id)
        repository.require_recorded(tx, found)
        return found

    document = app.read_unaudited(call, find)
    if store.read(document.checksum) is not None:
        return
    content = app.read_unaudited(call, lambda tx: repository.find_content(tx, document_id))
    made = _render(app, design, document, document.stamp, content, progress)
    if checksum_of(made.pdf) != document.checksum:
        raise CpqError(
            Code.UNAVAILABLE,
            "The file of the document is missing, and the current design does not give the same bytes.",
            hint="Ask without the idempotency_key, or with a new one, for a document in the current design.",
        )
    with store.incoming(made.pdf):
        return


def _render(
    app: App,
    design: Design,
    document: DocumentKey | IssuedDocument,
    stamp: str | None,
    content: dict[str, Any],
    progress: Progress,
) -> Made:
    job = {"content": content, "template": document.template, "locale": document.locale, "stamp": stamp}
    lines = len(content["lines"])
    pages_expected = 2 + lines // 25

    def report(pages: int, what: str) -> None:
        total = pages_expected * 2
        done = {0: 0, 1: 1, 2: min(1 + pages, total - 2), 3: total - 1}[STAGES[what]]
        progress(done, total, f"{what}, page {pages}" if what == "laying out" else what)

    made = workers_for(design.folder).render(
        canonical_json(job).encode(),
        effects=app.effects,
        seconds_max=app.settings.pdf_timeout_seconds,
        progress=report,
    )
    if len(made.pdf) > BYTES_MAX:
        raise bad_field(
            "/quote_id",
            f"The document is too large: {len(made.pdf):,} bytes. Nothing was stored.",
            maximum=BYTES_MAX,
            hint="Use the template executive_summary or compact, or split the quote.",
        )
    progress(pages_expected * 2, pages_expected * 2, "done")
    return made
