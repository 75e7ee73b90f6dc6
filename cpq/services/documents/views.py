"""The read shape of an issued document."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import TypedDict

from cpq.services.documents.repository import IssuedDocument
from cpq.services.quotes.answer_fields import Number


class QuotePdf(TypedDict):
    quote_id: str
    number: Number
    version: int
    pdf_generated: bool
    document_id: str
    file_path: str
    file_name: str
    """A readable name for the file."""
    file_size_bytes: int
    checksum: str
    """`sha256:` and 64 hexadecimal digits, of the bytes of the file."""
    pages: int
    template_used: str
    locale: str
    stamp: str | None
    """Why it may not go to a customer: not_approved, expired, cancelled or superseded; null when it may."""
    fingerprint: str
    resource_uri: str
    warnings: list[str]
    generated_at: datetime
    outcome: str
    message: str


def answer(document: IssuedDocument, number: str, path: str, outcome: str) -> QuotePdf:
    """The answer of the tools for an issued document."""
    warnings = []
    if document.stamp:
        warnings.append("It is stamped on every page, because this version may not go to a customer now.")
    if document.missing:
        warnings.append(f"No font has these characters, which show as boxes: {' '.join(document.missing)}")
    return {
        "quote_id": document.quote_id,
        "number": number,
        "version": document.version,
        "pdf_generated": True,
        "document_id": document.id,
        "file_path": path,
        "file_name": f"{document.quote_id}-v{document.version}-{document.template}-{document.locale}.pdf",
        "file_size_bytes": document.size,
        "checksum": f"sha256:{document.checksum}",
        "pages": document.pages,
        "template_used": document.template,
        "locale": document.locale,
        "stamp": document.stamp,
        "fingerprint": document.fingerprint,
        "resource_uri": (f"quote://{document.quote_id}/pdf/{document.version}/{document.template}/{document.locale}"),
        "warnings": warnings,
        "generated_at": document.created_at,
        "outcome": outcome,
        "message": "Document made." if outcome == "created" else _message_of_known(document),
    }


def _message_of_known(document: IssuedDocument) -> str:
    """Explains why new templates or branding do not show; the document of a draft follows them."""
    if ":draft:" in document.state:
        return "The document existed already."
    return "The document existed already, in the design of its time. A new version uses the current design."
