"""Events: stored in the transaction of the change, then delivered to webhooks, signed and in order."""

from cpq.services.events.outbox import EventName, get, list_events, of_subject, publish, replay

__all__ = ["EventName", "get", "list_events", "of_subject", "publish", "replay"]
