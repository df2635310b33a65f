"""Celery with RabbitMQ as broker and Redis as result backend (`celery_chords.py` has the rest).

Messages are persistent and queues durable, as by default. Publisher confirms are off by default and are switched on
here, as every row on RabbitMQ has them: the client then waits for RabbitMQ at every task that it sends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import brokers
import celery_chords
import driver

RABBITMQ, REDIS = driver.port_of("rabbitmq"), driver.port_of("redis")

app = celery_chords.app_on(
    f"amqp://guest:guest@127.0.0.1:{RABBITMQ}//",
    f"redis://127.0.0.1:{REDIS}/0",
    broker_transport_options={"confirm_publish": True},
)


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[celery_chords.CeleryClient]:
    with (
        brokers.running("rabbitmq", directory, RABBITMQ),
        brokers.running("redis", directory, REDIS),
        celery_chords.working("celery_rabbitmq", app, directory) as client,
    ):
        yield client


if __name__ == "__main__":
    driver.run(open_client, ["celery", "kombu", "amqp", "redis"], ["rabbitmq", "redis"])
