"""Servers for tests: one that all tests of a run share, or one of a test's own that it may kill."""

from __future__ import annotations

import atexit
import importlib
import tempfile
from pathlib import Path

from services.server import Server

CLASSES = {
    "rabbitmq": "services.rabbitmq:RabbitMQ",
    "redis": "services.redis:Redis",
    "nats": "services.nats:Nats",
    "kafka": "services.kafka:Kafka",
}
_shared: dict[str, Server] = {}


def class_of(name: str) -> type[Server]:
    module, _, attribute = CLASSES[name].partition(":")
    found: type[Server] = getattr(importlib.import_module(module), attribute)
    return found


def shared(name: str) -> str:
    """The URL of a running server that other tests use too: use queue names of your own, and never stop it."""
    if name not in _shared:
        server = class_of(name)(Path(tempfile.mkdtemp(prefix=f"oraculo-{name}-")))
        atexit.register(server.kill)
        _shared[name] = server.start()
    return _shared[name].url


def own(name: str, folder: Path) -> Server:
    """A server that is not started yet and that only this test knows. Use it as a context manager."""
    return class_of(name)(folder / name)
