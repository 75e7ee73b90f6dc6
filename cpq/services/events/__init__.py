"""Events: stored in the transaction of the change, then delivered to webhooks, signed and in order."""

from typing import TYPE_CHECKING

from cpq.base.late_modules import export_late

if TYPE_CHECKING:
    from cpq.services.events.outbox import EventName, get, list_events, of_subject, publish, replay

export_late(__name__, __file__)

__all__ = ["EventName", "get", "list_events", "of_subject", "publish", "replay"]
