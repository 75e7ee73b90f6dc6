"""Orders: what customers accepted, and the agreements that their orders make up."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.services.orders.order_record import Signature, record_order, record_past_order, require_base
    from cpq.services.orders.repository import load_agreement, of_quote, orders_of, waiting, waiting_note

export_late(__name__, __file__)

__all__ = [
    "Signature",
    "load_agreement",
    "of_quote",
    "orders_of",
    "record_order",
    "record_past_order",
    "require_base",
    "waiting",
    "waiting_note",
]
