"""Oráculo as it comes: `oraculo up` on SQLite and a broker, and `oraculo worker` beside it; asked over HTTP."""

from __future__ import annotations

import json
import os
import shlex
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import task_work
from peer import HERE, Part, Program, free_port, wait_for_port
from tools.servers.rabbitmq import RabbitMQ
from tools.servers.redis import Redis

COMMAND = shlex.split(os.environ.get("FAULTS_ORACULO", str(HERE.parents[1] / ".venv/bin/oraculo")))
ANSWER_TIMEOUT_S = 20.0


class Orchestrator(Program):
    """`oraculo up`, which is there when its port is."""

    def __init__(self, port: int, folder: Path, environment: dict[str, str]) -> None:
        super().__init__("oraculo", [*COMMAND, "up", "--port", str(port)], folder, environment)
        self.port = port

    def start(self) -> None:
        super().start()
        wait_for_port(self.port)


class OraculoPeer:
    packages: tuple[str, ...] = ()

    def __init__(self, folder: Path, variant: str, broker: str) -> None:
        server: Redis | RabbitMQ = RabbitMQ(folder / "rabbitmq") if broker == "rabbitmq" else Redis(folder / "redis")
        port = free_port()
        environment = {"ORACULO_BROKER": server.url, "ORACULO_STORE": f"sqlite:///{folder / 'oraculo.db'}"}
        worker = [*COMMAND, "worker", "oraculo_worker:worker", "--concurrency", str(task_work.CONCURRENCY)]
        self.url = f"http://127.0.0.1:{port}/api/v1/orchestrations"
        self.parts: dict[str, Part] = {
            "broker": server,
            "orchestrator": Orchestrator(port, folder, environment),
            "worker": Program("worker", worker, folder, {**environment, "PYTHONPATH": str(HERE)}),
        }
        self.settings = {"as it comes": ""}

    def submit(self, name: str) -> None:
        collects = [
            {"fonte": f"source-{index}", "parametros": {"name": name, "index": index}}
            for index in range(task_work.COLLECTS)
        ]
        body = {
            "correlation_id": name,
            "coletas": collects,
            "execucoes": [{"executador": "sum", "parametros": {"name": name}}],
        }
        self._ask(urllib.request.Request(self.url, json.dumps(body).encode(), {"Content-Type": "application/json"}))

    def outcome(self, name: str) -> tuple[str, Any] | None:
        found = self._ask(urllib.request.Request(f"{self.url}/{name}/result"))
        if found is None or found.get("status") in ("pendente", "em_execucao"):
            return None
        if found["status"] != "concluida":
            return "failed", found["status"]
        return "ended", found["execucoes"][0]["resultado"]

    def _ask(self, request: urllib.request.Request) -> Any:
        with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as answer:
            raw = answer.read()
        return json.loads(raw) if raw else None

    def close(self) -> None:
        pass
