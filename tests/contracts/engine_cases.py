"""The engines that the stories run on: each a handful of real processes, and a worker that the test plays itself.

A new engine joins with a class that starts and kills its processes, and a line in CASES.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from tools.servers.temporal import settings_of

import celery_processes
import servers
from acceptance.conftest import Server
from acceptance.journals import replay
from databases import database
from oraculo.adapters.brokers.connect import broker_of
from oraculo.bootstrap.adapters import store_of
from oraculo.core import events as ev
from oraculo.ports.broker import Broker, Outgoing, Settlement, publish_confirmed
from oraculo.wire import names
from waiting import DEADLINE_S, eventually, until

NO_HEADERS: Mapping[str, str] = {}
BREAKER_FAILURES = 6  # more than any other story has in a row
FIELDS = ("correlation_id", "ticket_id", "tentativa", "token")


class EngineCase:
    """An orchestrator on SQLite and its own memory; workers come over HTTP."""

    broker_url = "memory://"

    headers: Mapping[str, str] = NO_HEADERS  # of every request
    prefix = ""  # of every queue

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.up = Server(folder, [])
        self.store_url = self.up.env["ORACULO_STORE"]
        self.prepare()
        self.up.env |= {"ORACULO_STORE": self.store_url, "ORACULO_BROKER": self.broker_url, "ORACULO_FLOW_C": "on"}
        self.up.env |= {"ORACULO_RESULT_TOKENS": "require"}
        self.up.env |= {"ORACULO_BREAKER_FAILURES": str(BREAKER_FAILURES), "ORACULO_BREAKER_PROBE_S": "1"}
        self.up.env |= {"ENABLE_INTELLIGENT_SCHEDULER": "true"}
        self.up.env |= self.settings()

    def prepare(self) -> None:
        """The servers that it needs."""

    def settings(self) -> dict[str, str]:
        return {}

    def start(self) -> None:
        """It takes requests when this returns."""
        self.up.up()

    def kill(self) -> None:
        """Every process of the engine, at once."""
        if self.up.running:
            self.up.kill()

    def close(self) -> None:
        self.kill()

    # -- one who asks ------------------------------------------------------------------------------------------------

    def call(
        self, method: str, path: str, *, headers: Mapping[str, str] = NO_HEADERS, **options: Any
    ) -> dict[str, Any]:
        """A request that is made again as long as a server behind this one has no time for it."""

        def answered() -> Any:
            answer = self.up.call(method, f"/api/v1{path}", headers={**self.headers, **headers}, **options)
            assert answer is not None, (self.folder / "stderr.log").read_text()[-3000:]
            return answer if answer.status_code != httpx2.codes.SERVICE_UNAVAILABLE else None

        answer = eventually(answered, f"an answer to {method} {path}")
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def submit(self, **request: Any) -> str:
        request = {"correlation_id": f"conto-{secrets.token_hex(4)}", **request}  # asked twice, it is still one
        name: str = self.call("POST", "/orchestrations", json=request)["correlation_id"]
        return name

    def result(self, name: str) -> dict[str, Any]:
        return self.up.result(name, DEADLINE_S)

    @contextmanager
    def within(self, tenant: str) -> Iterator[None]:
        """Ask and work as somebody of this tenant."""
        key = self.call("POST", "/keys", json={"role": "admin", "tenant": tenant})["key"]
        self.headers, self.prefix = {"Authorization": f"Bearer {key}"}, f"espaco_{tenant}."
        try:
            yield
        finally:
            self.headers, self.prefix = {}, ""

    # -- one who works -----------------------------------------------------------------------------------------------

    async def take(self, fonte: str, kind: str = "escavador") -> dict[str, Any]:
        """The next order of that source, or of that executor."""
        body = {"max": 1, "wait": 5, "worker": "teste"}
        path = f"/queues/{kind}_{fonte}/lease"
        found = await until(lambda: self.call("POST", path, json=body)["mensagens"], f"an order in {kind}_{fonte}")
        order: dict[str, Any] = found[0]["mensagem"]
        return order

    async def send(self, *answers: dict[str, Any]) -> None:
        self.call("POST", "/results", json=list(answers))

    # -- one who looks afterwards ------------------------------------------------------------------------------------

    async def journal(self, name: str) -> Counter[str]:
        """Event → how often, of an orchestration that is finished with the world; it replays to itself."""
        async with store_of(self.store_url) as store:
            run = (await store.locate([name]))[name]
            await until(lambda: self._settled(store, run))
            recorded = (await store.load([run]))[run]
        replay(run, recorded)
        events = [event for one in recorded for event in one.events]
        assert sum(isinstance(event, ev.OrchestrationClosed) for event in events) == 1
        return Counter(type(event).__name__ for event in events)

    async def _settled(self, store: Any, run: int) -> bool:
        return all(one.run != run for one in await store.live())

    async def counted(self, verdict: str) -> int:
        """Answers that came to this, so far."""
        async with store_of(self.store_url) as store:
            found = await store.counts()
        return sum(n for (queue, one), n in found.items() if queue.startswith(names.RESULTS) and one == verdict)


class OnServers(EngineCase):
    """PostgreSQL and a broker; the worker has nothing but the broker."""

    def prepare(self) -> None:
        self.store_url = asyncio.run(database())
        self.broker_url = self.make_broker()

    def make_broker(self) -> str:
        return servers.redis_database()

    async def take(self, fonte: str, kind: str = "escavador") -> dict[str, Any]:
        async def fetch(broker: Broker) -> dict[str, Any]:
            async with asyncio.timeout(DEADLINE_S):
                while not (found := await broker.fetch(f"{self.prefix}{kind}_{fonte}", limit=1, wait=5)):
                    pass
            await broker.settle([Settlement(one) for one in found])
            order: dict[str, Any] = json.loads(found[0].body)
            return order

        return await self._with_broker(fetch)

    async def send(self, *answers: dict[str, Any]) -> None:
        messages = [Outgoing(self.prefix + names.RESULTS, json.dumps(answer).encode(), "") for answer in answers]
        await self._with_broker(lambda broker: publish_confirmed(broker, messages))

    async def _with_broker(self, work: Callable[[Broker], Awaitable[Any]]) -> Any:
        broker = broker_of(self.broker_url)
        try:
            return await work(broker)
        finally:
            await broker.close()


class OnCelery(OnServers):
    """Beside it a Celery worker with two processes, and beat."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        env = {**self.up.env, "LOG_LEVEL": "WARNING"}
        self.celery = [celery_processes.worker(folder, env), celery_processes.beat(folder, env)]

    def make_broker(self) -> str:
        self._rabbitmq = servers.own("rabbitmq", self.folder).start()
        return f"{self._rabbitmq.url}?declare_after=0"

    def settings(self) -> dict[str, str]:
        return {"ORACULO_ENGINE": "celery", "ORACULO_REPLICA_LEASE_S": "2"}

    def start(self) -> None:
        for one in self.celery:
            one.start()
        super().start()
        for one in self.celery:
            one.wait()

    def kill(self) -> None:
        for one in self.celery:
            one.kill()
        super().kill()

    def close(self) -> None:
        super().close()
        self._rabbitmq.kill()


class OnCeleryAndRedis(OnCelery):
    """Redis carries the messages, Celery's tasks and their results."""

    def make_broker(self) -> str:
        return servers.redis_database()

    def settings(self) -> dict[str, str]:
        return {**super().settings(), "ORACULO_CELERY_BACKEND": self.broker_url}

    def close(self) -> None:
        self.kill()


class OnTemporal(EngineCase):
    """Beside it a Temporal server; the workflows run in the orchestrator's own process."""

    def settings(self) -> dict[str, str]:
        return {**settings_of(servers.shared("temporal")), "TEMPORAL_TASK_QUEUE": f"contos-{secrets.token_hex(4)}"}


class OnTemporalAndServers(OnTemporal, OnServers):
    """The workflows run in the processes that share a database and a broker."""


CASES: dict[str, type[EngineCase]] = {
    "local": EngineCase,
    "local-postgres-redis": OnServers,
    "celery-rabbitmq": OnCelery,
    "celery-redis": OnCeleryAndRedis,
    "temporal": OnTemporal,
}


def source() -> str:
    """That nobody used before."""
    return f"f{secrets.token_hex(4)}"


def answer(order: dict[str, Any], dados: Any = None, *, errors: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """What a worker says to this order."""
    asked = order["payload"]
    payload: dict[str, Any] = {"status": "erro" if errors else "ok", "erros": errors or []}
    if order["tipo_evento"] == "iniciar_coleta":
        tipo, payload["fonte"], payload["dados"] = "resultado_coleta", asked["fonte"], dados
    else:
        tipo, payload["executador"], payload["resultado"] = "resultado_execucao", asked["executador"], dados
    echoed = {field: order[field] for field in FIELDS if field in order}
    return {**echoed, "tipo_evento": tipo, "payload": payload, "timestamp": "2025-10-14T12:00:00Z"}
