"""`oraculo worker`: the functions of a Worker in a process of their own.

Orders come from the broker of ORACULO_BROKER; with `memory://`, or with `--url`, they are leased over HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oraculo import redaction, settings
from oraculo.cli import inputs
from oraculo.cli.output import AsJson, Url, emit, note
from oraculo.cli.serve import run, signals
from oraculo.cli.texts import t
from oraculo.errors import ApiError, OraculoError, ServerUnreachableError

if TYPE_CHECKING:
    from oraculo.settings import Settings
    from oraculo.worker import Worker
    from oraculo.worker_http import HttpTransport

LOOK_AGAIN = 2.0


def worker(
    target: Annotated[str, typer.Argument(help=t("o.target"), metavar="MODULE:WORKER")],
    url: Url = None,
    concurrency: Annotated[int | None, typer.Option(help=t("o.concurrency"), show_default=False, min=1)] = None,
    name: Annotated[str | None, typer.Option(help=t("o.name"), show_default=False)] = None,
    lease: Annotated[float, typer.Option("--lease-s", help=t("o.lease"), min=1, max=3600)] = 30.0,
    json: AsJson = False,
) -> None:
    from oraculo import logs

    chosen = settings.load()
    logs.configure(chosen.log_level, chosen.log_format, chosen.service_name)
    found = inputs.worker(target)
    found.concurrency = concurrency or found.concurrency
    found.name = name or found.name
    found.tells = True
    if url is not None or chosen.broker.startswith("memory:"):
        work = _over_http(found, url or chosen.url, chosen.api_key, lease, json)
    else:
        work = _over_broker(found, chosen, json)
    run(_measured(found, chosen, work))


async def _measured(worker: Worker, chosen: Settings, work: Coroutine[Any, Any, None]) -> None:
    """With /metrics on a port of its own, when that is wanted."""
    if chosen.metrics_port is None:
        await work
        return
    from oraculo.adapters.sinks.prometheus.port import metrics_port
    from oraculo.adapters.sinks.prometheus.worker import WorkerMetrics

    metrics = WorkerMetrics(lambda: worker.busy)
    worker.meter = metrics
    async with metrics_port(chosen.host, chosen.metrics_port, metrics.exposition) as port:
        note(t("metrics-port", url=f"http://{chosen.host}:{port}/metrics"))
        await work


async def _over_broker(worker: Worker, chosen: Settings, json: bool) -> None:
    from oraculo.adapters.clock import MonotonicClock
    from oraculo.parts import broker_of
    from oraculo.runtime.probes import prober_of
    from oraculo.worker import BrokerTransport

    broker = broker_of(chosen.broker, chosen.broker_dwell_s)
    where = redaction.urls(chosen.broker)
    with signals(worker.stop):
        if json:
            emit({"worker": worker.name, "broker": where, "queues": worker.queues})
        note(t("working", name=worker.name, queues=", ".join(worker.queues), url=where))
        transport = BrokerTransport(broker, own=True)
        probing = asyncio.create_task(prober_of(broker, MonotonicClock(), transport.ears.values()).run())
        try:
            await worker.run(transport)
        finally:
            probing.cancel()
            await asyncio.gather(probing, return_exceptions=True)


async def _over_http(worker: Worker, url: str, api_key: str, lease: float, json: bool) -> None:
    from oraculo.worker_http import HttpTransport

    transport = HttpTransport(url, api_key, worker.name, lease)
    stopping = asyncio.Event()

    def stop() -> None:
        stopping.set()
        worker.stop()

    with signals(stop):
        await _reach(transport, stopping)
        if not stopping.is_set():
            if json:
                emit({"worker": worker.name, "url": transport.url, "queues": worker.queues})
            note(t("working", name=worker.name, queues=", ".join(worker.queues), url=transport.url))
        await worker.run(transport)


async def _reach(transport: HttpTransport, stopping: asyncio.Event) -> None:
    """A server that is not there yet is waited for; one that does not let us in is not."""
    said = False
    while not stopping.is_set():
        try:
            await transport.check()
            return
        except OraculoError as error:
            if not isinstance(error, ServerUnreachableError | ApiError) or (
                isinstance(error, ApiError) and error.status < 500
            ):
                await transport.close()
                raise
            if not said:
                note(t("waiting-server", error=error))
                said = True
            try:
                async with asyncio.timeout(LOOK_AGAIN):
                    await stopping.wait()
            except TimeoutError:
                pass
