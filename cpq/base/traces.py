"""Traces for OpenTelemetry: spans of calls, pages, transactions and documents.

They are sent to the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names. Without it nothing of OpenTelemetry's SDK is
loaded, and a span is an empty context manager. A span holds names, counts and codes, never an argument or an answer.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from cpq import __version__
from cpq.base.late_modules import LateModule

if TYPE_CHECKING:
    from opentelemetry import context, propagate, trace
    from opentelemetry.exporter.otlp.proto.http import trace_exporter
    from opentelemetry.sdk import resources
    from opentelemetry.sdk import trace as sdk
    from opentelemetry.sdk.trace import export
else:
    context = LateModule("opentelemetry.context")
    propagate = LateModule("opentelemetry.propagate")
    trace = LateModule("opentelemetry.trace")
    trace_exporter = LateModule("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    resources = LateModule("opentelemetry.sdk.resources")
    sdk = LateModule("opentelemetry.sdk.trace")
    export = LateModule("opentelemetry.sdk.trace.export")

log = logging.getLogger("cpq.traces")

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""OpenTelemetry's own variables: where a collector listens. Its other `OTEL_…` variables count as well."""

EXPORT_SECONDS = "2"
"""Time for one batch: a collector that is away must not hold up the end of the server."""

_NAMES = {
    "code": "cpq.code",
    "trace_id": "cpq.trace_id",
    "lines": "cpq.lines",
    "attempt": "cpq.attempt",
    "database": "db.system.name",
    "method": "http.request.method",
}
"""What a span may hold: the names of OpenTelemetry where it has one."""

_Value = str | int | float | bool
_NOTHING: AbstractContextManager[None] = nullcontext()


class _Exporting:
    provider: sdk.TracerProvider | None = None


def start() -> bool:
    """Send spans from now on, when a collector is named; False when none is, or the packages for it are missing."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return False
    if importlib.util.find_spec("opentelemetry.exporter") is None:
        log.warning("no traces are sent: install quotewright[otel], or unset OTEL_EXPORTER_OTLP_ENDPOINT")
        return False
    os.environ.setdefault("OTEL_EXPORTER_OTLP_TIMEOUT", EXPORT_SECONDS)
    about = {"service.name": os.environ.get("OTEL_SERVICE_NAME") or "quotewright", "service.version": __version__}
    provider = sdk.TracerProvider(resource=resources.Resource.create(about))
    provider.add_span_processor(export.BatchSpanProcessor(trace_exporter.OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    _Exporting.provider = provider
    return True


def flush() -> None:
    """Send the spans that wait, for a server that ends: a signal leaves it no time afterwards."""
    if _Exporting.provider is not None:
        _Exporting.provider.force_flush()


def span(name: str, **attributes: _Value) -> AbstractContextManager[Any]:
    """A span around the work inside, below the one that is open; an error that leaves it marks it as failed."""
    if _Exporting.provider is None:
        return _NOTHING
    tracer = trace.get_tracer("quotewright", __version__)
    return tracer.start_as_current_span(name, attributes=_named(attributes), record_exception=False)


def annotate(**attributes: _Value) -> None:
    """Add to the span that is open."""
    if _Exporting.provider is not None:
        trace.get_current_span().set_attributes(_named(attributes))


@contextmanager
def joined(headers: Mapping[str, str]) -> Iterator[None]:
    """Inside, spans belong to the trace that the headers of a request name (`traceparent`)."""
    if _Exporting.provider is None:
        yield
        return
    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)


def current_id() -> str | None:
    """The id of the trace that the work at hand belongs to, for the log."""
    if _Exporting.provider is None:
        return None
    found = trace.get_current_span().get_span_context()
    return trace.format_trace_id(found.trace_id) if found.is_valid else None


def _named(attributes: Mapping[str, _Value]) -> dict[str, _Value]:
    return {_NAMES[name]: value for name, value in attributes.items()}
