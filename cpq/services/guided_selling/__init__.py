"""Guided selling: guides in the database, and the products that a customer's answers lead to."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.services.guided_selling.commands import ask
    from cpq.services.guided_selling.importer import export_guides, import_guides

export_late(__name__, __file__)

__all__ = ["ask", "export_guides", "import_guides"]
