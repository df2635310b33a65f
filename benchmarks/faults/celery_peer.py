"""Celery: a chord of collects whose callback is the execute; results and the chord's counter in Redis.

Its workers import this module too. "default" is Celery as it comes; "durable" is what its documentation recommends for
tasks that must not be lost.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import task_work
from celery import Celery, chord
from celery.result import AsyncResult
from peer import Part, Program
from tools.servers.rabbitmq import RabbitMQ
from tools.servers.redis import Redis

VISIBILITY_TIMEOUT_S = 15
DURABLE: dict[str, Any] = {
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "worker_prefetch_multiplier": 1,
    "result_backend_always_retry": True,
}


def application() -> Celery:
    app = Celery("faults", broker=os.environ["FAULTS_BROKER"], backend=os.environ["FAULTS_BACKEND"])
    app.conf.update(worker_hijack_root_logger=False, **settings_of(os.environ["FAULTS_VARIANT"]))
    app.task(name="collect")(task_work.collect)
    app.task(name="execute")(execute)
    return app


def settings_of(variant: str) -> dict[str, Any]:
    if variant == "default":
        return {}
    on_rabbitmq = os.environ["FAULTS_BROKER"].startswith("amqp")
    options = {"confirm_publish": True} if on_rabbitmq else {"visibility_timeout": VISIBILITY_TIMEOUT_S}
    return {**DURABLE, "broker_transport_options": options}


def execute(results: list[dict[str, Any]], orchestration: str) -> dict[str, int]:
    return task_work.execute(orchestration, results)


class CeleryPeer:
    packages = ("celery", "kombu", "redis")

    def __init__(self, folder: Path, variant: str, broker: str) -> None:
        redis = Redis(folder / "redis")
        rabbitmq = RabbitMQ(folder / "rabbitmq") if broker == "rabbitmq" else None
        os.environ |= {
            "FAULTS_BROKER": redis.url if rabbitmq is None else rabbitmq.url,
            "FAULTS_BACKEND": redis.url,
            "FAULTS_VARIANT": variant,
        }
        worker = [sys.executable, "-m", "celery", "-A", "celery_peer:app", "worker", "--loglevel=WARNING"]
        self.worker = Program("worker", [*worker, f"--concurrency={task_work.CONCURRENCY}"], folder)
        self.parts: dict[str, Part] = {"broker": rabbitmq or redis, "orchestrator": redis, "worker": self.worker}
        self.settings = {name: str(value) for name, value in settings_of(variant).items()} or {"as it comes": ""}
        self._app: Celery | None = None

    @property
    def app(self) -> Celery:
        if self._app is None:
            self._app = application()
        return self._app

    def submit(self, name: str) -> None:
        tasks = self.app.tasks
        header = [tasks["collect"].s(name, index) for index in range(task_work.COLLECTS)]
        chord(header)(tasks["execute"].s(name).set(task_id=name))

    def outcome(self, name: str) -> tuple[str, Any] | None:
        meta = AsyncResult(name, app=self.app)._get_task_meta()
        if meta["status"] == "SUCCESS":
            return "ended", meta["result"]
        return ("failed", repr(meta["result"])) if meta["status"] in ("FAILURE", "REVOKED") else None

    def close(self) -> None:
        if self._app is not None:
            with contextlib.suppress(Exception):
                self._app.close()


if "FAULTS_VARIANT" in os.environ:  # the worker's process
    app = application()
