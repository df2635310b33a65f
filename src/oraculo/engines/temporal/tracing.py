"""The spans that Temporal's SDK makes, inside those of the orchestration they are about. Imported when traces are on.

The SDK's interceptor makes them, here and in workflows and activities, and makes none while a history is replayed. What
is said to a workflow is said inside the span of its orchestration; that travels in a header of Temporal, so whichever
process runs the workflow goes on with the same trace. Where no trace is, or it is not sampled, there is no header.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Tracer, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from temporalio.contrib.opentelemetry import TracingInterceptor

from oraculo.wire.trace_context import HEADER


class Sampled(TraceContextTextMapPropagator):
    """Injects no header for a trace that is not sampled."""

    def inject(self, carrier: Any, context: Context | None = None, *args: Any, **options: Any) -> None:
        if get_current_span(context).get_span_context().trace_flags.sampled:
            super().inject(carrier, context, *args, **options)


class Tracing:
    def __init__(self, tracer: Tracer) -> None:
        self._form = Sampled()
        self.interceptor = TracingInterceptor(tracer)
        self.interceptor.text_map_propagator = self._form

    @contextmanager
    def inside(self, traceparent: str | None) -> Iterator[None]:
        """What is said to Temporal meanwhile is part of this trace; None: of none, whatever is going on around it."""
        token = attach(self._form.extract({HEADER: traceparent} if traceparent else {}, Context()))
        try:
            yield
        finally:
            detach(token)
