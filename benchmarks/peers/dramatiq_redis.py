"""Dramatiq with one Redis as broker and for results (`dramatiq_groups.py` has the rest)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import brokers
import dramatiq_groups
import driver
from dramatiq.brokers.redis import RedisBroker

PORT = driver.port_of("redis")

broker = RedisBroker(host="127.0.0.1", port=PORT, socket_timeout=None)
client = dramatiq_groups.DramatiqClient(broker, PORT)


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[dramatiq_groups.DramatiqClient]:
    with brokers.running("redis", directory, PORT), dramatiq_groups.working("dramatiq_redis", directory):
        yield client


if __name__ == "__main__":
    driver.run(open_client, ["dramatiq", "redis"], ["redis"])
