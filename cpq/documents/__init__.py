"""Documents for customers: a version of a quote, a template and a locale give a PDF, always the same bytes."""

from __future__ import annotations

from cpq.documents.design import TEMPLATES
from cpq.documents.exporting import FORMATS, export
from cpq.documents.issuing import design_of, issue, read_document, read_pdf
from cpq.documents.ordering import Wish
from cpq.documents.verifying import read_checksum, verify

__all__ = [
    "FORMATS",
    "TEMPLATES",
    "Wish",
    "design_of",
    "export",
    "issue",
    "read_checksum",
    "read_document",
    "read_pdf",
    "verify",
]
