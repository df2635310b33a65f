"""Which servers there are, and what of each is installed here."""

from __future__ import annotations

import importlib
import subprocess
from dataclasses import dataclass

from services.server import Server

CLASSES = {
    "rabbitmq": "services.rabbitmq:RabbitMQ",
    "redis": "services.redis:Redis",
    "nats": "services.nats:Nats",
    "kafka": "services.kafka:Kafka",
    "postgres": "services.postgres:Postgres",
    "chromium": "services.chromium:Chromium",
    "prometheus": "services.prometheus:Prometheus",
    "ferretdb": "services.ferretdb:FerretDB",
    "temporal": "services.temporal:Temporal",
}

STAND_INS = {"kafka": "services.kafka:MockKafka"}  # where the real one cannot be had


def class_of(name: str, *, stand_in: bool = False) -> type[Server]:
    module, _, attribute = (STAND_INS if stand_in else CLASSES)[name].partition(":")
    found: type[Server] = getattr(importlib.import_module(module), attribute)
    return found


@dataclass(frozen=True, slots=True)
class Found:
    """`version` when it can be started; else `missing` says what is not there."""

    name: str
    version: str = ""
    missing: str = ""


def look(name: str) -> Found:
    try:
        kind = class_of(name)
        missing = kind.missing()
        return Found(name, missing=missing) if missing else Found(name, version=kind.version())
    except (ImportError, OSError, subprocess.SubprocessError) as error:
        return Found(name, missing=f"{type(error).__name__}: {error}")
