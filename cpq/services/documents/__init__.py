"""Documents for customers: a quote version, a template and a locale always give the same PDF bytes."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.services.documents.commands import changed_files, issue, read_document, read_pdf, restore_files
    from cpq.services.documents.design import EVERY_TEMPLATE, TEMPLATES, design_of
    from cpq.services.documents.document_request import DocumentRequest
    from cpq.services.documents.file_store import Store
    from cpq.services.documents.scan_code import read_code
    from cpq.services.documents.verification import Standing, read_checksum, standing, verify
    from cpq.services.documents.worker_pool import APT_LINE

export_late(__name__, __file__)

__all__ = [
    "APT_LINE",
    "EVERY_TEMPLATE",
    "TEMPLATES",
    "DocumentRequest",
    "Standing",
    "Store",
    "changed_files",
    "design_of",
    "issue",
    "read_checksum",
    "read_code",
    "read_document",
    "read_pdf",
    "restore_files",
    "standing",
    "verify",
]
