"""`oraculo up`: the whole product in one process and one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import Annotated, Any

import structlog
import typer
import uvicorn
from fastapi import FastAPI

from oraculo import __version__, logs, redaction
from oraculo.api import health
from oraculo.api.app import ROUTERS, create_app
from oraculo.api.auth import check_binding
from oraculo.api.connections import ConnectionGuard, connection_limit
from oraculo.api.tls import Handshake, RenewedServerContext, TlsAcceptor, TlsProtocol, server_context
from oraculo.cli import inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.keys import has_administrator
from oraculo.cli.output import AsJson, emit, note
from oraculo.cli.texts import t
from oraculo.cli.users import has_administrator as has_local_administrator
from oraculo.errors import MissingExtraError
from oraculo.ports.broker import Broker
from oraculo.runtime.tuning import tune
from oraculo.service import Oraculo, Role
from oraculo.settings import settings
from oraculo.settings.settings import Settings
from oraculo.worker.worker import Worker

log = structlog.get_logger("oraculo.serve")

REQUEST_DRAIN_S = 5  # seconds that requests under way may take at a stop
BROKER_LOOKS, BROKER_LOOK_INTERVAL_S = 100, 0.1  # at a broker after the start
WORKER_STOP_TIMEOUT_S = 10.0  # seconds that work inside this process may take at a stop
STOP_TIMEOUT_S = 28.0  # seconds after the first signal at which the process ends, whatever it is doing


def up(
    host: Annotated[str | None, typer.Option(help=t("o.host"), show_default=False)] = None,
    port: Annotated[int | None, typer.Option(help=t("o.port"), show_default=False, min=0, max=65535)] = None,
    worker: Annotated[list[str] | None, typer.Option(help=t("o.workers"), metavar="MODULE:WORKER")] = None,
    api_only: Annotated[bool, typer.Option("--api-only", help=t("o.api-only"))] = False,
    engine_only: Annotated[bool, typer.Option("--engine-only", help=t("o.engine-only"))] = False,
    flow_c: Annotated[bool, typer.Option("--flow-c", help=t("o.flow-c"))] = False,
    json: AsJson = False,
) -> None:
    if api_only and engine_only:
        raise CommandError(t("both-only"), Exit.USAGE)
    role = Role.API if api_only else Role.ENGINE if engine_only else Role.ALL

    options = {"ORACULO_HOST": host, "ORACULO_PORT": port, "ORACULO_FLOW_C": "on" if flow_c else None}
    chosen = settings.load(options={name: str(value) for name, value in options.items() if value is not None})
    check_binding(
        chosen,
        lambda: has_administrator(chosen) or (chosen.local_users and has_local_administrator(chosen)),
    )
    logs.configure(chosen.logs.level, chosen.logs.format, *chosen.traces.service)
    workers = [inputs.worker(target) for target in worker or ()]
    for one in workers:
        one.patience = min(one.patience, WORKER_STOP_TIMEOUT_S)
    with listening(chosen.host, chosen.port) as listener:
        url = url_of(listener, secure=bool(chosen.tls.cert))

        def ready() -> None:
            if json:
                emit({"url": url, "pid": os.getpid()})
            note(t("listening", version=__version__, url=url))
            if logs.stream is None:  # people read it
                for line in introduction(chosen, url, workers, role):
                    note(line)

        run(serve(chosen, workers, listener, ready, role))


def introduction(chosen: Settings, url: str, workers: list[Worker], role: Role) -> Iterator[str]:
    """What a person at the terminal wants to know of a server that has started."""
    served = role is not Role.ENGINE
    rows = [
        *([("up.dashboard", f"{url}/"), ("up.api", f"{url}/docs")] if served else []),
        ("up.store", redaction.urls(chosen.store)),
        ("up.broker", t("up.memory") if chosen.broker.startswith("memory:") else redaction.urls(chosen.broker)),
        ("up.workers", ", ".join(queue for one in workers for queue in one.queues) or t("up.no-workers")),
    ]
    width = max(len(t(name)) for name, _ in rows)
    yield from (f"  {t(name):<{width}}  {value}" for name, value in rows)
    yield t("up.stop")


def run(main: Coroutine[Any, Any, None]) -> None:
    """With uvloop where there is one."""
    try:
        import uvloop

        factory: Callable[[], asyncio.AbstractEventLoop] | None = uvloop.new_event_loop
    except ImportError:
        factory = None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """The socket is bound before anything else starts, so that a port in use is known at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise CommandError(f"ORACULO_HOST={host!r}: {error.strerror or error}", Exit.USAGE) from None
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(2048)
        except OSError as error:
            if error.errno in (48, 98, 10048):  # EADDRINUSE here and there
                raise CommandError(t("port-in-use", host=host, port=port)) from None
            raise CommandError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
        listener.setblocking(False)
        yield listener


def url_of(listener: socket.socket, *, secure: bool = False) -> str:
    host, port = listener.getsockname()[:2]
    return f"http{'s' if secure else ''}://{f'[{host}]' if ':' in host else host}:{port}"


async def serve(
    chosen: Settings,
    workers: list[Worker],
    listener: socket.socket,
    ready: Callable[[], None] = lambda: None,
    role: Role | None = None,
    stopping: Callable[[], None] = lambda: None,
) -> None:
    """Until a signal; then stop taking, finish what is under way, and end within half a minute. `stopping` is called
    first."""

    class Server(uvicorn.Server):
        accepting: asyncio.Task[None] | None = None
        looking: asyncio.Task[None] | None = None

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets if tls is None else [])
            if tls is not None:
                self.accepting = asyncio.create_task(
                    TlsAcceptor(guard, RenewedServerContext(chosen.tls, tls), self.secured).run(listener)
                )
            if self.started:
                ready()
                self.looking = asyncio.create_task(tell_of_broker(oraculo.broker))

        def secured(self, handshake: Handshake) -> TlsProtocol:
            return TlsProtocol(guard, handshake, self.config, self.server_state, self.lifespan.state)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for task in (self.accepting, self.looking):
                if task is not None:
                    task.cancel()
            await super().shutdown(sockets)

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # ours are set below: uvicorn's would end the process before the engine has stopped

    oraculo = Oraculo(chosen, workers=workers, role=role or Role.ALL)
    app = create_app(oraculo, routers=[health.router] if role is Role.ENGINE else ROUTERS)
    tls = server_context(chosen.tls)
    guard = ConnectionGuard(connection_limit())
    server = Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=REQUEST_DRAIN_S,
            timeout_keep_alive=75,
            ws="none",
            http=guard.protocol,  # type: ignore[arg-type]
        )
    )

    def stop() -> None:
        stopping()
        app.state.waits.stop()
        server.should_exit = True

    with signals(stop):
        async with oraculo, contextlib.AsyncExitStack() as stack:
            await serve_metrics(oraculo, chosen, stack)
            if role is not Role.ENGINE:
                await serve_grpc(app, chosen, stack)
                ask_registry(oraculo, chosen, stack)
            tune()
            await server.serve([listener])


async def tell_of_broker(broker: Broker) -> None:
    """Say once that a broker does not answer, and what becomes of requests meanwhile; nothing where it does."""
    for _ in range(BROKER_LOOKS):
        health = broker.health()
        if health.connected:
            return
        if health.error:
            note(t("up.broker-away"))
            return
        await asyncio.sleep(BROKER_LOOK_INTERVAL_S)


async def serve_metrics(oraculo: Oraculo, chosen: Settings, stack: contextlib.AsyncExitStack) -> None:
    """Serve `/metrics` on a port of its own. One that was not asked for by name is left out where it is taken."""
    port = chosen.server_metrics_port
    if port is None:
        return
    try:
        await stack.enter_async_context(oraculo.metrics_on(port))
    except OSError as error:
        if chosen.metrics_port is not None:
            raise
        log.warning(
            "metrics have no port of their own: ORACULO_METRICS_PORT names another", port=port, error=str(error)
        )


async def serve_grpc(app: FastAPI, chosen: Settings, stack: contextlib.AsyncExitStack) -> None:
    """Serve the services of the original on a port of their own, where one is set. MissingExtraError: there is no
    gRPC; CommandError: the port cannot be had."""
    if chosen.grpc.port is None:
        return
    try:
        from oraculo.apps.grpc_api.server import serving
    except ModuleNotFoundError as error:
        raise MissingExtraError("ORACULO_GRPC_PORT", "grpc") from error
    try:
        port = await stack.enter_async_context(serving(app, chosen.host, chosen.grpc.port))
    except OSError as error:
        raise CommandError(str(error)) from None
    note(t("up.grpc", address=f"{chosen.host}:{port}"))


def ask_registry(oraculo: Oraculo, chosen: Settings, stack: contextlib.AsyncExitStack) -> None:
    """Ask another registry for workers, where one is set, until `stack` is left. MissingExtraError: there is no
    gRPC."""
    if not chosen.worker_registry.outside.host:
        return
    try:
        from oraculo.apps.grpc_api.outside import OutsideRegistry
    except ModuleNotFoundError as error:
        raise MissingExtraError("SERVICE_REGISTRY_HOST", "grpc") from error
    asked = OutsideRegistry(oraculo.registry, chosen.worker_registry.outside, chosen.spiffe)
    stack.callback(asyncio.create_task(asked.run()).cancel)


@contextlib.contextmanager
def signals(stop: Callable[[], None]) -> Iterator[None]:
    """The first SIGTERM or SIGINT asks to stop, the second ends the process at once, and so does waiting too long."""
    loop = asyncio.get_running_loop()
    asked: list[asyncio.TimerHandle] = []

    def on_signal(number: int) -> None:
        if asked:
            os._exit(128 + number)
        asked.append(loop.call_later(STOP_TIMEOUT_S, os._exit, Exit.FAILED))
        note(t("stopping"))
        stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # not on Windows
            loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for timer in asked:
            timer.cancel()
