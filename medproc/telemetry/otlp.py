"""The collector: sends spans by OTLP over HTTP. Only this module imports OpenTelemetry."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from medproc.env_values import headers_of
from medproc.telemetry.spans import TraceSpan

SEND_S = 5.0
"""Seconds of one request with its repetitions."""

# The library logs each refused request with the collector's own words. `traces` logs one line.
logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)


class _DerivedIds(IdGenerator):
    """Hands out the ids of the span that is made next."""

    def __init__(self) -> None:
        self.of: TraceSpan | None = None

    def generate_span_id(self) -> int:
        assert self.of is not None  # noqa: S101 - narrows the type; `Collector` sets it
        return self.of.span_id

    def generate_trace_id(self) -> int:
        assert self.of is not None  # noqa: S101 - narrows the type; `Collector` sets it
        return self.of.trace_id


class _Ended(SpanProcessor):
    """Keeps the spans that have ended."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


# OpenTelemetry's BatchSpanProcessor was rejected: its flush ignores the timeout, and its thread
# starts again in each fork, also in a fork that gives up its rights and must have one thread.
class Collector:
    """The receiver of spans. One thread at a time uses it."""

    def __init__(self) -> None:
        self._ids = _DerivedIds()
        self._ended = _Ended()
        provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource({"service.name": settings.OTEL_SERVICE_NAME}),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        provider.add_span_processor(self._ended)
        self._tracer = provider.get_tracer("medproc")
        headers = settings.OTEL_EXPORTER_OTLP_HEADERS
        self._exporter = OTLPSpanExporter(
            endpoint=f"{str(settings.OTEL_EXPORTER_OTLP_ENDPOINT).rstrip('/')}/v1/traces",
            headers=headers_of(headers) if headers else None,
            timeout=SEND_S,
            compression=Compression.Gzip,
        )

    def send(self, spans: Sequence[TraceSpan]) -> bool:
        """Send spans; return whether the collector has taken them."""
        for span in spans:
            self._make(span)
        made, self._ended.spans = self._ended.spans, []
        return self._exporter.export(made) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # the library gives no types

    def _make(self, span: TraceSpan) -> None:
        self._ids.of = span
        context = None
        if span.parent_id is not None:
            parent = SpanContext(
                span.trace_id,
                span.parent_id,
                is_remote=True,
                trace_flags=TraceFlags(TraceFlags.SAMPLED),
            )
            context = set_span_in_context(NonRecordingSpan(parent))
        made = self._tracer.start_span(
            span.name, context, attributes=span.attributes, start_time=_ns(span.began_at)
        )
        if span.has_failed:
            made.set_status(Status(StatusCode.ERROR))
        made.end(end_time=_ns(max(span.began_at, span.ended_at)))


def _ns(at: datetime) -> int:
    return round(at.timestamp() * 1_000_000) * 1000
