"""Which servers there are, and what of each is installed here."""

from __future__ import annotations

import importlib
import subprocess
from dataclasses import dataclass

from tools.servers.server import Server

CLASSES = {
    "rabbitmq": "tools.servers.rabbitmq:RabbitMQ",
    "redis": "tools.servers.redis:Redis",
    "nats": "tools.servers.nats:Nats",
    "kafka": "tools.servers.kafka:Kafka",
    "postgres": "tools.servers.postgres:Postgres",
    "chromium": "tools.servers.chromium:Chromium",
    "prometheus": "tools.servers.prometheus:Prometheus",
    "ferretdb": "tools.servers.ferretdb:FerretDB",
    "temporal": "tools.servers.temporal:Temporal",
    "helm": "tools.servers.helm:Helm",
    "compose": "tools.servers.compose:Compose",
    "nginx": "tools.servers.proxies:Nginx",
    "caddy": "tools.servers.proxies:Caddy",
    "oidc": "tools.servers.oidc:Oidc",
    "opa": "tools.servers.opa:Opa",
    "s3": "tools.servers.s3:S3",
    "filebeat": "tools.servers.filebeat:Filebeat",
}

STAND_INS = {"kafka": "tools.servers.kafka:MockKafka"}  # where the real one cannot be had


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
