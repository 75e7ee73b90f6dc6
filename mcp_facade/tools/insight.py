"""The toolset `insight`: what is behind a quote, and whether what somebody holds in hand is ours."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from pydantic import Field

from cpq import documents
from cpq.access import Permission
from cpq.db import Tx
from cpq.errors import bad_field
from cpq.views import VerifiedPdf
from mcp_facade.arguments import Checksum, Encoded
from mcp_facade.registry import tool


@tool(title="Verify a PDF", toolset="insight", needs=Permission.READ)
def quote_verify_pdf(
    tx: Tx,
    *,
    checksum: Annotated[
        Checksum | None, Field(description="SHA-256 of the file: `sha256:` and 64 digits. Enough to recognise it.")
    ] = None,
    content_base64: Annotated[
        Encoded | None, Field(description="The file itself in base64; can also tell a changed one from a foreign one.")
    ] = None,
) -> VerifiedPdf:
    """Check whether a PDF is a document we issued, of which version, and whether that version counts now.

    Give the checksum or the file. `verdict` is `issued`, `altered` (it names a quote of ours, but its bytes are not
    those we issued) or `unknown`. `is_current_approved` is true only for an unstamped document of the current version
    that is approved or needs no approval.
    """
    if (checksum is None) == (content_base64 is None):
        raise bad_field("/checksum", "Give either the checksum or the content.", allowed=["checksum", "content_base64"])
    if checksum is not None:
        return documents.verify(tx, checksum=documents.read_checksum(checksum))
    try:
        content = base64.b64decode(content_base64 or "", validate=True)
    except (binascii.Error, ValueError):
        raise bad_field("/content_base64", "This is not base64.") from None
    return documents.verify(tx, content=content)


TOOLS = (quote_verify_pdf,)
