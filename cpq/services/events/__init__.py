"""Events: published with the change itself, and delivered to webhooks afterwards, signed and in order."""

from cpq.services.events.outbox import EventName, get, list_events, of_subject, publish, replay

__all__ = ["EventName", "get", "list_events", "of_subject", "publish", "replay"]
