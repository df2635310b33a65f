"""A server of one technology that a module of tests has to itself, reached directly or through a proxy that fails."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self
from urllib.parse import urlencode, urlsplit

from tools.servers.kafka import Kafka
from tools.servers.proxy import Proxy
from tools.servers.server import Server, free_port

from oraculo.adapters.brokers.connect import broker_of
from oraculo.ports.broker import Broker
from servers import class_of

CONFIRM = 1.0  # seconds that a publish waits for the server's word
# What the tests want that is not the default: RabbitMQ leaves a worker time to declare its queue, and all of them give
# a silent connection more time than a test has.
OPTIONS = {
    "rabbitmq": {"declare_after": "0", "confirm_timeout": f"{CONFIRM:g}", "heartbeat": "3"},
    "redis": {"confirm_timeout": f"{CONFIRM:g}", "lease": "3"},
    "nats": {"confirm_timeout": f"{CONFIRM:g}", "lease": "3"},
    "kafka": {"confirm_timeout": f"{CONFIRM:g}", "lease": "3"},
}
WITHOUT_GROUPS = {"rabbitmq": "a queue of RabbitMQ gives each message to one consumer; exchanges make copies"}


class PrivateServer:
    """Use it as a context manager; `broker` connects to it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.server = class_of(name)(folder)
        self.proxy = Proxy(self.server.port)
        self._folder = folder

    def __enter__(self) -> Self:
        self.proxy.__enter__()
        if isinstance(self.server, Kafka):
            _advertise(self.server, self.proxy)
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.kill()
        self.proxy.__exit__()

    def heal(self) -> None:
        """As the next test expects it."""
        self.proxy.heal()
        if not self.server.running:
            self.server.start()

    def broker(self, stack: AsyncExitStack, *, proxied: bool = False, **options: str) -> Broker:
        port = self.proxy.port if proxied else self.server.port
        url = urlsplit(self.server.url)
        there = url._replace(netloc=url.netloc.replace(str(url.port), str(port)))
        broker = broker_of(there._replace(query=urlencode(OPTIONS.get(self.name, {}) | options)).geturl())
        stack.push_async_callback(broker.close)
        return broker

    async def kill(self) -> None:
        await asyncio.to_thread(self.server.kill)

    async def stop(self) -> None:
        await asyncio.to_thread(self.server.stop)

    async def start(self) -> None:
        await asyncio.to_thread(self.server.start)


def _advertise(server: Server, proxy: Proxy) -> None:
    """Kafka tells its clients where to connect to, so the proxy has a listener of its own there."""
    assert isinstance(server, Kafka)
    proxy.target_port = free_port()
    server.settings |= {
        "listeners": f"PLAINTEXT://127.0.0.1:{server.port},PROXIED://127.0.0.1:{proxy.target_port},"
        f"CONTROLLER://127.0.0.1:{server._controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{server.port},PROXIED://127.0.0.1:{proxy.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
