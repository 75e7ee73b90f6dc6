"""Checks whether a file is an issued document, for which version, and whether that version is current."""

from __future__ import annotations

import re
import zlib
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from itertools import chain

import sqlalchemy as sa
from typing_extensions import TypedDict

from cpq.app.recorded_state import StateDiffersError
from cpq.app.transaction import Tx
from cpq.base.money import Amount
from cpq.domain.quotes.lifecycle import VersionStatus
from cpq.domain.quotes.quote import Quote
from cpq.services.documents import repository
from cpq.services.documents.content import says_the_same
from cpq.services.documents.file_store import checksum_of
from cpq.services.documents.repository import IssuedDocument
from cpq.services.documents.scan_code import ScanCode
from cpq.services.documents.stamp import stamp_of
from cpq.services.quotes import repository as quote_repository
from cpq.storage.schema import tables

STREAMS_MAX = 500
STREAM_BYTES_MAX = 1024**2
UNPACKED_BYTES_MAX = 16 * 1024**2
"""Of all streams together. A small hostile file can unpack to a thousand times its size; this takes a fifth of a
second to search, so that no process of its own is needed that could be killed."""

COUNTED = (VersionStatus.DRAFT, VersionStatus.APPROVED, VersionStatus.SENT, VersionStatus.ACCEPTED)
"""Statuses of a valid document; a draft or an approved version must also be allowed to be sent."""

_CHECKSUM = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})")
_MARK = re.compile(rb"\(([^()\\]{1,128}) v(\d{1,9}) ([0-9a-f]{64})\)")
_OBJECTS = re.compile(rb"/ObjStm")
"""In the head of a stream that holds objects, the properties of the file among them; pages and fonts hold none."""

_STREAM = re.compile(rb"stream\r?\n")
HEAD_BYTES_MAX = 1000


class Standing(StrEnum):
    CURRENT = "current"
    NOT_CURRENT = "not_current"
    UNKNOWN = "unknown"


class VerifiedPdf(TypedDict):
    verdict: str
    """issued: an unchanged issued document; altered: an issued document that was changed; unknown: not issued here."""
    checksum: str
    is_current_approved: bool
    """Whether it is unstamped and of the current version, and that version is approved or needs no approval."""
    message: str
    quote_id: str | None
    number: str | None
    """The quote's number for people."""
    version: int | None
    current_version: int | None
    version_status: str | None
    template: str | None
    locale: str | None
    stamp: str | None
    fingerprint: str | None
    total: Amount | None
    currency: str | None
    issued_at: datetime | None


def read_checksum(text: str) -> str | None:
    """The digits of a checksum, if the text is one."""
    found = _CHECKSUM.fullmatch(text)
    return found[1].lower() if found else None


def verify(tx: Tx, *, checksum: str | None = None, content: bytes | None = None) -> VerifiedPdf:
    """Verify a document by its bytes, or by their checksum."""
    checksum = checksum or checksum_of(content or b"")
    document = repository.find_by_checksum(tx, checksum)
    if document is not None:
        return _issued(tx, document)
    mark = _mark(content) if content is not None else None
    number = _number(tx, *mark) if mark else None
    if mark is None or number is None:
        return _unknown(checksum)
    return {
        **_unknown(checksum),
        "verdict": "altered",
        "quote_id": mark[0],
        "number": number,
        "version": mark[1],
        "fingerprint": mark[2],
        "message": f"It was a document of {_named(number, *mark[:2])}, and has been altered: do not trust it.",
    }


def standing(tx: Tx, code: ScanCode) -> Standing:
    """What a stranger may know of the documents that print this code."""
    printed = repository.printing(tx, code)
    if not printed:
        return Standing.UNKNOWN
    try:
        for document, _ in printed:
            repository.require_recorded(tx, document)
    except StateDiffersError:
        return Standing.UNKNOWN
    # In the older form, a stamped document has the same code as the one that may go out.
    unstamped = [content for document, content in printed if document.stamp is None]
    found = quote_repository.load(tx, code.quote_id, version=code.version)
    is_current = bool(unstamped) and _counts(tx, found) and all(says_the_same(one, found) for one in unstamped)
    return Standing.CURRENT if is_current else Standing.NOT_CURRENT


def _counts(tx: Tx, found: Quote) -> bool:
    """Whether the version is the current one, or the one that the customer has, and may be relied on."""
    version = found.version
    is_current = found.current_version == version.number or version.status is VersionStatus.SENT
    return is_current and version.status_at(tx.now) in COUNTED and stamp_of(tx, found) is None


def _issued(tx: Tx, document: IssuedDocument) -> VerifiedPdf:
    repository.require_recorded(tx, document)
    content = repository.find_content(tx, document.id)
    found = quote_repository.load(tx, document.quote_id, version=document.version)
    version = found.version
    status = version.status_at(tx.now)
    is_same = says_the_same(content, found)
    is_good = is_same and document.stamp is None and _counts(tx, found)
    return {
        "verdict": "issued",
        "checksum": f"sha256:{document.checksum}",
        "is_current_approved": is_good,
        "message": _message(document, found, status, is_good=is_good, is_same=is_same),
        "quote_id": document.quote_id,
        "number": found.number,
        "version": document.version,
        "current_version": found.current_version,
        "version_status": status,
        "template": document.template,
        "locale": document.locale,
        "stamp": document.stamp,
        "fingerprint": document.fingerprint,
        "total": content["option_sets"][0]["total"] if content["option_sets"] else None,
        "currency": version.currency,
        "issued_at": document.created_at,
    }


def _message(document: IssuedDocument, found: Quote, status: str, *, is_good: bool, is_same: bool) -> str:
    current = found.current_version
    of = f"A document of {_named(found.number, document.quote_id, document.version)}"
    if is_good:
        place = "the current one" if document.version == current else "the one that the customer has"
        return f"{of}, which is {place} and {status if status != VersionStatus.DRAFT else 'needs no approval'}."
    if document.version != current and status != VersionStatus.SENT:
        return f"{of}; version {current} is the current one."
    if not is_same:
        return f"{of}, which was changed since."
    if document.stamp is not None:
        return f"{of}, stamped because it was not allowed to go to a customer; the version is {status} now."
    return f"{of}, which is {status} now."


def _named(number: str, quote_id: str, version: int) -> str:
    return f"{number} ({quote_id}), version {version}"


def _unknown(checksum: str) -> VerifiedPdf:
    return {
        "verdict": "unknown",
        "checksum": f"sha256:{checksum}",
        "is_current_approved": False,
        "message": "No document with these bytes was issued here.",
        "quote_id": None,
        "number": None,
        "version": None,
        "current_version": None,
        "version_status": None,
        "template": None,
        "locale": None,
        "stamp": None,
        "fingerprint": None,
        "total": None,
        "currency": None,
        "issued_at": None,
    }


def _mark(content: bytes) -> tuple[str, int, str] | None:
    """Quote, version and fingerprint in the properties of the file, which may be in a compressed stream."""
    for part in chain((content,), _streams(content)):
        if found := _MARK.search(part):
            return found[1].decode("latin-1"), int(found[2]), found[3].decode()
    return None


def _streams(content: bytes) -> Iterator[bytes]:
    """The unpacked streams of objects, the last first, each and together up to a limit."""
    heads = deque((found.end() for found in _OBJECTS.finditer(content)), STREAMS_MAX)
    whole, left = memoryview(content), UNPACKED_BYTES_MAX
    while heads and left > 0:
        head = heads.pop()
        found = _STREAM.search(content, head, head + HEAD_BYTES_MAX)
        if found is None:
            continue
        start = found.end()
        try:
            # Twice as much is enough of the input; without an end, each stream would be read to the end of the file.
            part = zlib.decompressobj().decompress(whole[start : start + 2 * STREAM_BYTES_MAX], STREAM_BYTES_MAX)
        except zlib.error:
            continue
        left -= len(part)
        yield part


def _number(tx: Tx, quote_id: str, version: int, fingerprint: str) -> str | None:
    """The number of the quote that has this version at this price."""
    quote, priced = tables.quote, tables.quote_version.c
    query = sa.select(quote.c.number).where(
        tx.own(quote),
        tx.own(tables.quote_version),
        quote.c.id == quote_id,
        priced.quote_id == quote.c.id,
        priced.version == version,
        priced.fingerprint == fingerprint,
    )
    return tx.connection.scalar(query)
