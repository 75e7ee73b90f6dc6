"""Documents for customers: a version of a quote, a template and a locale give a PDF, always the same bytes."""

from __future__ import annotations

from cpq.documents.design import TEMPLATES
from cpq.documents.issuing import design_of, issue, read_document, read_pdf
from cpq.documents.ordering import Wish
from cpq.documents.verifying import read_checksum, verify
from cpq.documents.workers import APT_LINE

__all__ = [
    "APT_LINE",
    "TEMPLATES",
    "Wish",
    "design_of",
    "issue",
    "read_checksum",
    "read_document",
    "read_pdf",
    "verify",
]
