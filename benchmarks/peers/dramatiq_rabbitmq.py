"""Dramatiq with RabbitMQ as broker and Redis for results (`dramatiq_groups.py` has the rest).

Messages are persistent and queues durable, as by default. Publisher confirms (`confirm_delivery`) are off by default
and are switched on here, as every row on RabbitMQ has them: whoever sends waits for RabbitMQ at every message.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import brokers
import dramatiq_groups
import driver
from dramatiq.brokers.rabbitmq import RabbitmqBroker

RABBITMQ, REDIS = driver.port_of("rabbitmq"), driver.port_of("redis")

broker = RabbitmqBroker(url=f"amqp://guest:guest@127.0.0.1:{RABBITMQ}/", confirm_delivery=True)
client = dramatiq_groups.DramatiqClient(broker, REDIS)


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[dramatiq_groups.DramatiqClient]:
    with (
        brokers.running("rabbitmq", directory, RABBITMQ),
        brokers.running("redis", directory, REDIS),
        dramatiq_groups.working("dramatiq_rabbitmq", directory),
    ):
        yield client


if __name__ == "__main__":
    driver.run(open_client, ["dramatiq", "pika", "redis"], ["rabbitmq", "redis"])
