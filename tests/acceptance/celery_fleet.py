"""The fleet with the engine `celery`: PostgreSQL, RabbitMQ, a Celery worker of two processes, and beat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

import celery_processes
import servers
from acceptance.fleet import Fleet

SETTINGS = {
    "ORACULO_ENGINE": "celery",
    "ORACULO_REPLICA_LEASE_S": "2",  # the default of 10 s would be most of a test
}


class CeleryFleet(Fleet):
    def __init__(self, folder: Path, **env: str) -> None:
        self.rabbitmq, self.postgres = servers.own("rabbitmq", folder), servers.own("postgres", folder)
        settings = {**SETTINGS, "ORACULO_STORE": self.postgres.url, **env}
        super().__init__(folder, self.rabbitmq.url, [self.rabbitmq, self.postgres], **settings)
        self.server.store = self.postgres.url
        self.celery = celery_processes.worker(folder / "celery", self.server.env)
        self.beat = celery_processes.beat(folder / "celery", self.server.env)
        self._connection: psycopg.Connection | None = None
        self._completed = 0

    def __enter__(self) -> CeleryFleet:
        super().__enter__()
        self.beat.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.celery.kill()
        self.beat.kill()
        if self._connection is not None:
            self._connection.close()
        super().__exit__()

    def restart_celery(self, **env: str) -> None:
        """The worker and its processes are killed, if there are any; new ones have these settings too."""
        self.celery.kill()
        self.celery.env = {**self.server.env, **env}
        self.celery.start()

    def completed(self) -> float:
        """Orchestrations end in whichever process steps them; the database counts them all."""
        self._completed = self._ask("SELECT count(*) FROM runs WHERE closed_at IS NOT NULL") or self._completed
        return self._completed

    def settled(self) -> bool:
        return self._ask("SELECT count(*) FROM runs WHERE closed_at IS NULL OR owes > 0") == 0

    def _ask(self, sql: str) -> Any:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(self.postgres.url, autocommit=True, connect_timeout=2)
            return self._connection.execute(sql).fetchone()[0]
        except psycopg.OperationalError:
            return None

    def _received_adds_up(self) -> None:
        """Nothing to add up in one process. Whatever was taken is in the database before the last one ends."""
        self.until(self.settled, "nothing is owed")

    def _state(self) -> str:
        return "\n".join([super()._state(), self.celery.said()[-5000:], self.beat.said()[-1000:]])
