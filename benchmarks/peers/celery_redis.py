"""Celery with one Redis as broker and as result backend (`celery_chords.py` has the rest)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import brokers
import celery_chords
import driver

PORT = driver.port_of("redis")
URL = f"redis://127.0.0.1:{PORT}/0"

app = celery_chords.app_on(URL, URL)


@contextlib.contextmanager
def open_client(directory: Path) -> Iterator[celery_chords.CeleryClient]:
    with brokers.running("redis", directory, PORT), celery_chords.working("celery_redis", app, directory) as client:
        yield client


if __name__ == "__main__":
    driver.run(open_client, ["celery", "kombu", "redis"], ["redis"])
