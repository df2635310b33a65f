"""`oraculo worker`: the functions of a Worker in a process of their own.

Orders come from the broker of ORACULO_BROKER; with `memory://`, or with `--url`, they are leased over HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from oraculo import redaction
from oraculo.cli import inputs
from oraculo.cli.output import AsJson, Url, emit, note
from oraculo.cli.serve import run, signals
from oraculo.cli.texts import t
from oraculo.errors import ApiError, OraculoError, ServerUnreachableError
from oraculo.settings import settings

if TYPE_CHECKING:
    from oraculo.settings.settings import Settings
    from oraculo.worker.http import HttpTransport
    from oraculo.worker.transport import Meter
    from oraculo.worker.worker import Worker

SERVER_RETRY_S = 2.0


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
    logs.configure(chosen.logs.level, chosen.logs.format, *chosen.traces.service)
    inputs.show_warnings(chosen)
    found = inputs.worker(target)
    found.concurrency = concurrency or found.concurrency
    found.name = name or found.name
    run(_work(found, chosen, url, lease, json))


async def _work(worker: Worker, chosen: Settings, url: str | None, lease: float, json: bool) -> None:
    from oraculo.worker.connect import connected
    from oraculo.worker.http import HttpTransport

    stopping = asyncio.Event()

    def stop() -> None:
        stopping.set()
        worker.stop()

    with signals(stop):
        async with (
            _metrics(worker, chosen) as meter,
            connected(chosen, worker.name, url=url, lease_s=lease) as transport,
        ):
            over_http = isinstance(transport, HttpTransport)
            queue_names = chosen.queue_names if over_http else chosen.queue_names.within(chosen.tenant)
            if isinstance(transport, HttpTransport):
                await _reach(transport, stopping)
                where = {"url": transport.url}
            else:
                where = {"broker": redaction.urls(chosen.broker)}
            if not stopping.is_set():
                queues = [queue_names.instead_of(queue) for queue in worker.queues]
                if json:
                    emit({"worker": worker.name, **where, "queues": queues})
                place = next(iter(where.values()))
                note(t("working", name=worker.name, queues=", ".join(queues), url=place))
            await worker.run(
                transport,
                meter=meter,
                log_orders=True,
                queue_names=queue_names,
                register=chosen.worker_registry.enabled,
                offers=chosen.scheduler.offers,
            )


@asynccontextmanager
async def _metrics(worker: Worker, chosen: Settings) -> AsyncIterator[Meter | None]:
    """Serve /metrics on a port of its own, when that is wanted."""
    if chosen.metrics_port is None:
        yield None
        return
    from oraculo.adapters.sinks.prometheus.port import metrics_port
    from oraculo.adapters.sinks.prometheus.worker import WorkerMetrics

    metrics = WorkerMetrics(lambda: worker.busy)
    async with metrics_port(chosen.host, chosen.metrics_port, metrics.exposition) as port:
        note(t("metrics-port", url=f"http://{chosen.host}:{port}/metrics"))
        yield metrics


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
                async with asyncio.timeout(SERVER_RETRY_S):
                    await stopping.wait()
            except TimeoutError:
                pass
