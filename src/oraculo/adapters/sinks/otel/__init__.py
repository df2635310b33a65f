"""Traces: an observer that sends the spans of an orchestration when it has ended, made from its journal.

So a trace is whole after a crash and on any replica, and covers workers that know nothing of tracing. What is not
sampled costs one look at a field.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import structlog

from oraculo.adapters.sinks.otel.spans import Span, spans_of
from oraculo.core.commands import RecordResult
from oraculo.core.events import OrchestrationStarted
from oraculo.core.step import Step
from oraculo.errors import StoreError
from oraculo.ports.catalogue import Catalogue, Query
from oraculo.ports.journal import Batch, Journal, Recorded
from oraculo.ports.observer import EventsByType
from oraculo.wire import trace_context as context

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer as LiveTracer

log = structlog.get_logger("oraculo.traces")

BATCH_JOURNALS = 64  # journals that are read together
RECOVERED_RUNS, RECOVERED_AGE = 500, timedelta(seconds=2)  # orchestrations that are looked at after a start
MAX_EVENTS_IN_MEMORY = 200_000  # that are kept in memory
MAX_ANSWERED_RUNS = 20_000  # orchestrations whose workers' contexts are kept
CLOSE_TIMEOUT_S = 5.0  # seconds for the last traces at a stop
RETRY_PAUSE_S = 1.0


_MESSAGING_SYSTEMS = {"amqp": "rabbitmq", "amqps": "rabbitmq", "rediss": "redis"}  # what OpenTelemetry calls a broker


def connected(
    endpoint: str,
    protocol: str,
    headers: Sequence[str],
    service: tuple[str, str],
    brokers: str,
    *,
    ratio: float,
    parent_based: bool,
) -> Tracer:
    """A tracer that sends to `endpoint`: over `grpc`, over `http`, or, with `auto`, as its port and path suggest."""
    place = urlsplit(endpoint)
    if protocol == "auto":
        protocol = "http" if place.port == 4318 or place.path.strip("/") else "grpc"
    named = {name.strip(): value.strip() for name, _, value in (pair.partition("=") for pair in headers)}
    schemes = {url.strip().partition("://")[0].lower() for url in brokers.split(",")}
    scheme = schemes.pop() if len(schemes) == 1 else "memory"
    system = "" if scheme == "memory" else _MESSAGING_SYSTEMS.get(scheme, scheme)
    exporter = import_module("oraculo.adapters.sinks.otel.export").Exporter  # the SDK comes with it
    return Tracer(exporter(endpoint, protocol, named, service), ratio=ratio, parent_based=parent_based, system=system)


class _History(Journal, Catalogue, Protocol):
    """The orchestrations of a store, and their events."""


class Sending(Protocol):
    counts: Counter[str]

    def send(self, traceparent: str, spans: Sequence[Span]) -> None: ...

    def tracer(self) -> LiveTracer: ...

    def close(self) -> None: ...


class Tracer:
    """`ratio` of the traces that begin here are sampled; with `parent_based`, one that began elsewhere is what its
    caller made of it. `system` is the broker, where there is one."""

    def __init__(self, exporter: Sending, *, ratio: float = 1.0, parent_based: bool = True, system: str = "") -> None:
        self.exporter = exporter
        self._threshold = round(ratio * (1 << 64))
        self._parent_based = parent_based
        self._system = system
        self._ended: dict[int, tuple[str, int]] = {}  # run → its context, first event whose spans are not sent yet
        self._answers: dict[int, dict[int, str]] = {}  # run → contexts of answers, by the number of their event
        self._seen: dict[int, list[Recorded]] = {}  # run → its journal from the first event on, as far as it is known
        self._events = 0  # in those
        self._arrived = asyncio.Event()

    # -- sampling ------------------------------------------------------------------------------------------------------

    def begin(self, given: str | None, run: int) -> str | None:
        """The context of a new orchestration: its caller's, or a trace of its own; None when that is not sampled. An
        empty text says that its request was not sampled."""
        if given is None:
            return self._new(context.workflow_span(run))
        if self._parent_based or not given:
            return given or None
        return f"{given[:53]}{'01' if self._chosen(context.trace_id(given)) else '00'}"

    def request(self, given: str | None) -> str | None:
        """The context of a span for a request; None when it is not sampled."""
        span = os.urandom(8).hex()
        if given is None:
            return self._new(span)
        if self._parent_based:
            return context.child(given, span) if context.sampled(given) else None
        return context.child(f"{given[:53]}01", span) if self._chosen(context.trace_id(given)) else None

    def _new(self, span: str) -> str | None:
        trace = os.urandom(16).hex()
        return context.make(trace, span) if self._chosen(trace) else None

    def _chosen(self, trace: str) -> bool:
        return int(trace[16:], 16) < self._threshold

    # -- the journal ---------------------------------------------------------------------------------------------------

    def saw(self, batch: Batch, _told: EventsByType) -> None:
        for step in batch.steps:
            traceparent = step.state.traceparent
            if traceparent is None or not step.events or not context.sampled(traceparent):
                continue
            run = step.state.run
            self._remember(run, step)
            if isinstance(step.cause, RecordResult) and step.cause.traceparent is not None:
                self._answers.setdefault(run, {})[step.first] = step.cause.traceparent
                if len(self._answers) > MAX_ANSWERED_RUNS:
                    del self._answers[next(iter(self._answers))]
            closed = step.state.closed_at
            if closed is not None and step.at >= closed:
                before = self._ended.get(run)
                if before is None and step.at == closed:
                    self._ended[run] = (traceparent, 1)
                elif before is None:
                    self._ended[run] = (traceparent, step.first)
                self._arrived.set()

    def _remember(self, run: int, step: Step) -> None:
        """What was seen need not be read. What is not known whole, because another process wrote some of it, or because
        there is too much, is left to the store."""
        journal = self._seen.get(run)
        if journal is None and step.first == 1:
            journal = self._seen[run] = []
        elif journal is None:
            return
        elif step.first != journal[-1].first + len(journal[-1].events):
            self._journal(run)
            return
        journal.append(Recorded(run, step.first, step.at, step.events))
        self._events += len(step.events)
        while self._events > MAX_EVENTS_IN_MEMORY:
            self._journal(next(iter(self._seen)))

    def _journal(self, run: int) -> list[Recorded]:
        """What is known of it, which is forgotten."""
        journal = self._seen.pop(run, [])
        self._events -= sum(len(one.events) for one in journal)
        return journal

    async def recover(self, store: _History) -> None:
        """Before the engine starts: what ended just before the last process did may not have been sent. Sent twice, it
        is the same spans with the same ids."""
        last = await store.last_instant()
        if last is None:
            return
        newest = await store.find(Query(limit=RECOVERED_RUNS, tenant=None))
        ended = [one.run for one in newest if one.closed_at and last - one.closed_at < RECOVERED_AGE]
        for run, journal in (await store.load(ended)).items() if ended else ():
            started = journal[0].events[0]
            if (
                isinstance(started, OrchestrationStarted)
                and started.traceparent
                and context.sampled(started.traceparent)
            ):
                self._ended[run] = (started.traceparent, 1)
                self._arrived.set()

    async def run(self, store: Journal) -> None:
        """Read the journals of what has ended, for ever."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._ended:
                try:
                    await self._some(store)
                except StoreError as error:
                    log.warning("traces wait for the store", error=str(error))
                    await asyncio.sleep(RETRY_PAUSE_S)

    async def _some(self, store: Journal) -> None:
        runs = list(self._ended)[:BATCH_JOURNALS]
        unknown = [run for run in runs if run not in self._seen]
        journals = await store.load(unknown) if unknown else {}
        chosen = [
            (*self._ended.pop(run), self._journal(run) or journals.get(run, []), self._answers.pop(run, {}))
            for run in runs
        ]
        await asyncio.to_thread(self._send, chosen)  # a wide orchestration has many spans

    def _send(self, chosen: Sequence[tuple[str, int, list[Recorded], dict[int, str]]]) -> None:
        for traceparent, first, journal, answers in chosen:
            try:
                spans = spans_of(traceparent, journal, answers, self._system)
                self.exporter.send(traceparent, [span for span in spans if span.number >= first])
            except Exception:  # one that cannot be made must not cost the others
                log.exception("a trace could not be made", **{"trace.id": context.trace_id(traceparent)})

    async def close(self, store: Journal) -> None:
        """What has ended is sent, as far as patience goes."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                while self._ended:
                    await self._some(store)
        except (StoreError, TimeoutError):
            log.warning("stopped with traces left", orchestrations=len(self._ended))
        await asyncio.to_thread(self.exporter.close)
