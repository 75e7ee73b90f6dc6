"""Counters and timings of this process, for `/metrics`. Labels never hold ids, names or tenants."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from cpq import __version__

REGISTRY = CollectorRegistry()

TOOL_CALLS = Counter("cpq_tool_calls", "Tool calls by outcome.", ["tool", "code"], registry=REGISTRY)
TOOL_SECONDS = Histogram(
    "cpq_tool_duration_seconds",
    "How long tool calls took.",
    ["tool"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60),
    registry=REGISTRY,
)
REPLAYS = Counter("cpq_idempotent_replays", "Answers returned again for a known key.", ["operation"], registry=REGISTRY)
RETRIES = Counter("cpq_db_retries", "Transactions that were run again.", registry=REGISTRY)
WRITE_WAIT_SECONDS = Histogram("cpq_db_write_wait_seconds", "How long writes waited for their turn.", registry=REGISTRY)
HTTP_REJECTED = Counter("cpq_http_rejected", "HTTP requests refused at the door.", ["reason"], registry=REGISTRY)
DELIVERIES = Counter("cpq_event_deliveries", "Attempts to deliver an event.", ["outcome"], registry=REGISTRY)
BUILD = Gauge("cpq_build_info", "The running version.", ["version"], registry=REGISTRY)
BUILD.labels(version=__version__).set(1)


def exposition() -> bytes:
    """All metrics in the Prometheus text format."""
    return generate_latest(REGISTRY)
