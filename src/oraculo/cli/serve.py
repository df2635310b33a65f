"""`oraculo up`: the whole product in one process and one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oraculo import __version__, settings
from oraculo.cli import inputs
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, emit, note
from oraculo.cli.texts import t

if TYPE_CHECKING:
    from oraculo.bootstrap import Role
    from oraculo.settings import Settings
    from oraculo.worker import Worker

DRAIN = 5  # seconds that requests under way may take at a stop
WORKER_PATIENCE = 10.0  # seconds that work inside this process may take at a stop
LATEST = 28.0  # seconds after the first signal at which the process ends, whatever it is doing


def up(
    host: Annotated[str | None, typer.Option(help=t("o.host"), show_default=False)] = None,
    port: Annotated[int | None, typer.Option(help=t("o.port"), show_default=False, min=0, max=65535)] = None,
    worker: Annotated[list[str] | None, typer.Option(help=t("o.workers"), metavar="MODULE:WORKER")] = None,
    api_only: Annotated[bool, typer.Option("--api-only", help=t("o.api-only"))] = False,
    engine_only: Annotated[bool, typer.Option("--engine-only", help=t("o.engine-only"))] = False,
    flow_c: Annotated[bool, typer.Option("--flow-c", help=t("o.flow-c"))] = False,
    json: AsJson = False,
) -> None:
    from oraculo import logs
    from oraculo.api.auth import check_binding
    from oraculo.bootstrap import Role

    if api_only and engine_only:
        raise CommandError(t("both-only"), Exit.USAGE)
    role = Role.API if api_only else Role.ENGINE if engine_only else Role.ALL

    chosen = settings.load()
    if host is not None:
        chosen = replace(chosen, host=host)
    if port is not None:
        chosen = replace(chosen, port=port)
    if flow_c:
        chosen = replace(chosen, flow_c="on")
    check_binding(chosen)
    logs.configure(chosen.log_level, chosen.log_format, chosen.service_name)
    workers = [inputs.worker(target) for target in worker or ()]
    for one in workers:
        one.patience = min(one.patience, WORKER_PATIENCE)
    with listening(chosen.host, chosen.port) as listener:
        url = url_of(listener)

        def ready() -> None:
            if json:
                emit({"url": url, "pid": os.getpid()})
            note(t("listening", version=__version__, url=url))

        run(serve(chosen, workers, listener, ready, role))


def run(main: Coroutine[Any, Any, None]) -> None:
    """With uvloop when it is installed (extra `fast`)."""
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


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    chosen: Settings,
    workers: list[Worker],
    listener: socket.socket,
    ready: Callable[[], None] = lambda: None,
    role: Role | None = None,
) -> None:
    """Until a signal; then stop taking, finish what is under way, and end within half a minute."""
    import uvicorn

    from oraculo.api import health
    from oraculo.api.app import ROUTERS, create_app
    from oraculo.bootstrap import Oraculo, Role
    from oraculo.runtime.tuning import tune

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready()

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # ours are set below: uvicorn's would end the process before the engine has stopped

    oraculo = Oraculo(chosen, workers=workers, role=role or Role.ALL)
    app = create_app(oraculo, routers=[health.router] if role is Role.ENGINE else ROUTERS)
    server = Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=DRAIN,
            timeout_keep_alive=75,
            ws="none",
        )
    )

    def stop() -> None:
        app.state.waits.stop()
        server.should_exit = True

    with signals(stop):
        async with oraculo, contextlib.AsyncExitStack() as stack:
            if chosen.metrics_port is not None:
                await stack.enter_async_context(oraculo.metrics_on(chosen.metrics_port))
            tune()
            await server.serve([listener])


@contextlib.contextmanager
def signals(stop: Callable[[], None]) -> Iterator[None]:
    """The first SIGTERM or SIGINT asks to stop, the second ends the process at once, and so does waiting too long."""
    loop = asyncio.get_running_loop()
    asked: list[asyncio.TimerHandle] = []

    def on_signal(number: int) -> None:
        if asked:
            os._exit(128 + number)
        asked.append(loop.call_later(LATEST, os._exit, Exit.FAILED))
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
