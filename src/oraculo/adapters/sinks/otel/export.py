"""Spans → OpenTelemetry → OTLP, over gRPC or HTTP, in a thread of the SDK's own. The only module that imports it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from oraculo import __version__
from oraculo.adapters.sinks.otel.spans import Span
from oraculo.errors import MissingExtraError
from oraculo.redaction import redact
from oraculo.wire import trace_context as context

try:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Event, ReadableSpan, SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, Tracer
    from opentelemetry.util.types import Attributes
except ImportError as error:
    raise MissingExtraError("OTEL_EXPORTER_ENDPOINT", "otel") from error

QUEUE_MAX_SPANS = 50_000  # spans that wait at most; more are dropped
BATCH_SPANS = 512
BATCH_DELAY_MS = 1000
EXPORT_TIMEOUT_S = 4
_KINDS = {kind.name.lower(): kind for kind in SpanKind}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SCOPE = InstrumentationScope("oraculo", __version__)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class Exporter:
    """`protocol` is `grpc` or `http`, `service` a name and a version (empty: that of the code).
    `counts` says what became of the spans: `feito`, `enviado`, `perdido`."""

    def __init__(self, endpoint: str, protocol: str, headers: dict[str, str], service: tuple[str, str]) -> None:
        self.counts: Counter[str] = Counter({"feito": 0, "enviado": 0, "perdido": 0})
        name, version = service
        self._resource = _Resource(
            Resource.create(
                {
                    "service.name": name,
                    "service.version": version or __version__,
                    "neural.hive.component": "orchestrator",
                    "neural.hive.layer": "orchestration",
                }
            ).attributes
        )
        self._made = threading.Lock()
        exporter = _Counting(_exporter(endpoint, protocol, headers), self.counts)
        timeout_ms = EXPORT_TIMEOUT_S * 1000
        self._processor = BatchSpanProcessor(exporter, QUEUE_MAX_SPANS, BATCH_DELAY_MS, BATCH_SPANS, timeout_ms)

    def send(self, traceparent: str, spans: Iterable[Span]) -> None:
        """Never blocks for long: they wait in a queue, from which the oldest are dropped when it is full."""
        trace = int(context.trace_id(traceparent), 16)
        made = 0
        for span in spans:
            self._processor.on_end(self._readable(trace, span))
            made += 1
        self._count(made)

    def tracer(self) -> Tracer:
        """Of the SDK, for a library that makes its spans while things happen. It makes those whose parent is sampled,
        and no others; they are redacted, and go the way of all spans."""
        provider = TracerProvider(ParentBased(ALWAYS_OFF), self._resource, shutdown_on_exit=False)
        provider.add_span_processor(_Live(self._live))
        return provider.get_tracer("oraculo", __version__)

    def _live(self, span: ReadableSpan) -> None:
        self._processor.on_end(span)
        self._count(1)

    def _count(self, made: int) -> None:
        with self._made:
            self.counts["feito"] += made

    def _readable(self, trace: int, span: Span) -> ReadableSpan:
        return ReadableSpan(
            span.name,
            _context(trace, span.id),
            None if span.parent is None else _context(trace, span.parent, remote=True),
            self._resource,
            span.attributes,
            [Event(name, about, _nanoseconds(at)) for name, at, about in span.events],
            [Link(_context(trace, one)) for one in span.links],
            _KINDS[span.kind],
            status=Status() if span.error is None else Status(StatusCode.ERROR, span.error),
            start_time=_nanoseconds(span.start),
            end_time=_nanoseconds(span.end),
            instrumentation_scope=_SCOPE,
        )

    def close(self) -> None:
        """Send what waits, within the SDK's patience."""
        self._processor.shutdown()  # type: ignore[no-untyped-call]


class _Resource(Resource):
    """The encoder looks a span's resource up by its hash, and the original writes JSON for that every time."""

    def __hash__(self) -> int:
        return id(self)


class _Live(SpanProcessor):
    """Spans of a library, redacted: they show exceptions, and ids that users chose."""

    def __init__(self, send: Callable[[ReadableSpan], None]) -> None:
        self._send = send

    def on_end(self, span: ReadableSpan) -> None:
        status = span.status
        self._send(
            ReadableSpan(
                span.name,
                span.context,
                span.parent,
                span.resource,
                _redacted(span.attributes),
                [Event(one.name, _redacted(one.attributes), one.timestamp) for one in span.events],
                span.links,
                span.kind,
                status=Status(status.status_code, status.description and redact(status.description)),
                start_time=span.start_time,
                end_time=span.end_time,
                instrumentation_scope=span.instrumentation_scope,
            )
        )


def _redacted(attributes: Attributes) -> Attributes:
    return {name: redact(value) if isinstance(value, str) else value for name, value in (attributes or {}).items()}


class _Counting(SpanExporter):
    def __init__(self, inner: SpanExporter, counts: Counter[str]) -> None:
        self._inner = inner
        self._counts = counts

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        self._counts["enviado" if result is SpanExportResult.SUCCESS else "perdido"] += len(spans)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._inner.force_flush(timeout_millis)


def _exporter(endpoint: str, protocol: str, headers: dict[str, str]) -> SpanExporter:
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as OverGrpc

        insecure = urlsplit(endpoint).scheme != "https"
        named = {name.lower(): value for name, value in headers.items()}
        return OverGrpc(urlsplit(endpoint).netloc, insecure=insecure, headers=named, timeout=EXPORT_TIMEOUT_S)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as OverHttp

    path = endpoint if urlsplit(endpoint).path.strip("/") else f"{endpoint.rstrip('/')}/v1/traces"
    return OverHttp(path, headers=headers, timeout=EXPORT_TIMEOUT_S)


def _context(trace: int, span: str, *, remote: bool = False) -> SpanContext:
    return SpanContext(trace, int(span, 16), remote, _SAMPLED)


def _nanoseconds(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND * 1000
