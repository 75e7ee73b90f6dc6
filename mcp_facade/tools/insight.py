"""The insight toolset: verification of issued documents. Agents read the docstrings."""

from __future__ import annotations

import base64
from typing import Annotated

from pydantic import Field

from cpq.app.access import Permission
from cpq.app.transaction import Tx
from cpq.base.errors import bad_field
from cpq.services import documents
from cpq.services.documents.verification import VerifiedPdf
from mcp_facade.arguments import Encoded
from mcp_facade.registry import tool


@tool(title="Verify a PDF", toolset="insight", needs=Permission.READ)
def quote_verify_pdf(
    tx: Tx,
    *,
    document: Annotated[
        Encoded, Field(description="The file in base64, or its checksum: `sha256:` and 64 hexadecimal digits.")
    ],
) -> VerifiedPdf:
    """Check whether a PDF is a document we issued, for which version, and whether that version counts now.

    `verdict` is `issued`, `altered` (it names a quote of ours, but its bytes are not those we issued; found only in
    the file, not by a checksum) or `unknown`. `is_current_approved` is true only for an unstamped document of the
    current version, if that version is approved or needs no approval.
    """
    if (checksum := documents.read_checksum(document)) is not None:
        return documents.verify(tx, checksum=checksum)
    try:
        content = base64.b64decode(document, validate=True)
    except ValueError:  # Also binascii.Error, for ASCII text that is not base64.
        raise bad_field("/document", "This is neither base64 nor sha256: and 64 hexadecimal digits.") from None
    return documents.verify(tx, content=content)


TOOLS = (quote_verify_pdf,)
