"""Settings and role → the engine. Engines of other frameworks are imported when they are asked for."""

from __future__ import annotations

import os
import socket
from datetime import timedelta

from oraculo.adapters.sinks.otel import Tracer
from oraculo.bootstrap.adapters import temporal_of
from oraculo.bootstrap.celery import celery_of
from oraculo.bootstrap.roles import Role
from oraculo.engines.local import local_engine, local_front
from oraculo.ports.engine import Engine
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.settings.settings import Settings


def options_of(settings: Settings) -> KernelOptions:
    """Return the settings of the kernel."""
    return KernelOptions(
        name=settings.replica.name or f"{socket.gethostname()}:{os.getpid()}",
        lease=timedelta(seconds=settings.replica.lease_s),
        max_open=settings.max_open,
        ceiling=settings.flow_c.max_parallel_tickets,
        retry_rate=settings.retry_rate,
        tickets_queue=settings.kafka.topics.tickets,
    )


def engine_of(
    settings: Settings, role: Role, ports: KernelPorts, options: KernelOptions, tracer: Tracer | None = None
) -> Engine:
    """Assemble the engine that the settings name, as far as this role needs it."""
    if settings.engine == "celery":
        return _celery(settings, role, ports, options)
    if settings.engine == "temporal":
        return _temporal(settings, role, ports, options, tracer)
    return (local_engine if role.consumes else local_front)(ports, options)


def _celery(settings: Settings, role: Role, ports: KernelPorts, options: KernelOptions) -> Engine:
    app = celery_of(settings)
    from oraculo.engines.celery_engine.engine import celery_engine, celery_front

    return (celery_engine if role.consumes else celery_front)(ports, options, app)


def _temporal(
    settings: Settings, role: Role, ports: KernelPorts, options: KernelOptions, tracer: Tracer | None
) -> Engine:
    """Temporal's SDK makes spans of its own when traces are on."""
    address, tracing = temporal_of(settings), None
    from oraculo.engines.temporal.engine import temporal_engine, temporal_front

    if tracer is not None:
        from oraculo.engines.temporal.tracing import Tracing

        tracing = Tracing(tracer.exporter.tracer())
    return (temporal_engine if role.consumes else temporal_front)(ports, options, address, tracing)
