"""What a test may ask of a world: the verbs of a client, time that costs nothing, and deaths on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any, TypeVar

import orjson

from oraculo.core.access import LOCAL
from oraculo.errors import BusyError, DecisionError, StoreError, UnknownIdError
from oraculo.runtime.human_input import HumanInput
from oraculo.simulation.faults import ProcessDiedError
from oraculo.simulation.scene import Scene
from oraculo.testing.process import CommitsSeen, EngineLives, EngineParts
from oraculo.testing.workers import WorkerCall, WorkerLives
from oraculo.wire import strict_json, views

T = TypeVar("T")

RESULT_WAIT_S = 2 * 3600.0  # twice as long as a run may take that says nothing
_AWAY = (ProcessDiedError, StoreError, BusyError)


class KitWorld:
    """The world of one seed. Whatever is asked while the orchestrator is dead is asked again when it lives, as a client
    does it. `calls` are the calls of worker functions so far, in order; `random` belongs to the seed."""

    def __init__(
        self, seed: int, scene: Scene, engine: EngineLives, workers: list[WorkerLives], seen: CommitsSeen
    ) -> None:
        self.seed = seed
        self.random = Random(f"story {seed}")
        self.calls: list[WorkerCall] = []
        self.results: dict[str, bytes] = {}  # correlation_id → the result as it was read first
        self._scene = scene
        self._engine = engine
        self._workers = workers
        self._seen = seen
        self._names = 0

    # -- what a client does ------------------------------------------------------------------------------------------

    async def submit(self, request: Mapping[str, Any]) -> str:
        """Hand in a request or a `Plan`; return its correlation_id. WireError or PlanError: it is not acceptable."""
        body = dict(request)
        self._names += 1
        name = str(body.setdefault("correlation_id", f"run-{self._names}"))

        async def submit(parts: EngineParts) -> None:
            await parts.requests.accept(parts.requests.read(body), None, actor=LOCAL)

        await self._ask(submit)
        return name

    async def result(self, correlation_id: str, *, wait_s: float = RESULT_WAIT_S) -> dict[str, Any]:
        """Wait until it has ended and return its result, the document of `GET …/result`. TimeoutError says what it
        waits for when it has not ended after so many seconds of the world."""
        run = await self._run_of(correlation_id)
        loop, limit = self._scene.loop, self._scene.loop.time() + wait_s
        while run not in self._seen.ended:
            self._seen.news.clear()
            try:
                async with asyncio.timeout(limit - loop.time()):
                    await self._seen.news.wait()
            except TimeoutError:
                raise TimeoutError(await self._why(correlation_id, wait_s)) from None
        body = await self._ask(lambda parts: parts.engine.result(run))
        assert body is not None
        self.results.setdefault(correlation_id, body)
        document: dict[str, Any] = orjson.loads(body)
        return document

    async def show(self, correlation_id: str) -> dict[str, Any]:
        """Return an orchestration with its tickets, as the API shows it, in English sentences."""

        async def show(parts: EngineParts) -> dict[str, Any]:
            state = await parts.engine.state_of(correlation_id)
            if state is None:
                raise UnknownIdError("orchestration", correlation_id)
            document: dict[str, Any] = orjson.loads(strict_json.dumps(views.orchestration(state, "en")))
            return document

        return await self._ask(show)

    async def waiting(self, correlation_id: str, task: str, *, wait_s: float = RESULT_WAIT_S) -> None:
        """Wait until a task waits for a signal, an approval or an instant."""
        loop, limit = self._scene.loop, self._scene.loop.time() + wait_s
        while True:
            self._seen.news.clear()
            shown = (await self.show(correlation_id))["agregado"]
            if shown.get("tarefas", {}).get(task, {}).get("espera") is not None:
                return
            if shown.get("fim") is not None or loop.time() >= limit:
                raise TimeoutError(f"{task!r} does not wait: {await self._why(correlation_id, wait_s)}")
            try:
                async with asyncio.timeout(limit - loop.time()):
                    await self._seen.news.wait()
            except TimeoutError:
                continue

    async def signal(self, correlation_id: str, name: str, data: Any = None) -> None:
        """Send a signal."""
        key, dados = f"signal-{self._scene.number()}", strict_json.dumps(data)
        await self._ask(
            lambda parts: HumanInput(parts.engine).signal(correlation_id, name, dados, key=key, actor=LOCAL)
        )

    async def approve(self, correlation_id: str, *, task: str | None = None, by: str = "test") -> None:
        """Approve a task that waits for it."""
        await self._decide(correlation_id, True, task, by, "")

    async def reject(self, correlation_id: str, *, task: str | None = None, by: str = "test", reason: str = "") -> None:
        """Reject a task that waits for an approval."""
        await self._decide(correlation_id, False, task, by, reason)

    async def cancel(self, correlation_id: str, reason: str = "") -> None:
        """Cancel an orchestration."""
        await self._ask(lambda parts: parts.engine.cancel(correlation_id, reason, actor=LOCAL))

    # -- time and deaths ---------------------------------------------------------------------------------------------

    async def sleep(self, seconds: float) -> None:
        """Let so many seconds of the world pass."""
        await asyncio.sleep(seconds)

    @property
    def now(self) -> datetime:
        """The instant that it is in the world."""
        return datetime.fromtimestamp(self._scene.wall(), UTC)

    def kill(self) -> None:
        """Let the orchestrator die now, in the middle of whatever it does; it starts again by itself."""
        if self._engine.life is not None:
            self._engine.life.kill("the test kills it")

    def kill_workers(self) -> None:
        """Let every worker die now; their orders come again, and they start again by themselves."""
        for worker in self._workers:
            worker.kill("the test kills it")

    @property
    def notices(self) -> list[dict[str, Any]]:
        """The documents that webhooks were told, each once."""
        return [orjson.loads(body) for body in self._engine.notices.values()]

    # -- inside ------------------------------------------------------------------------------------------------------

    async def _ask(self, make: Callable[[EngineParts], Coroutine[Any, Any, T]]) -> T:
        while True:
            try:
                return await self._engine.ask(make)
            except _AWAY:
                await self._scene.sleep(0.05, 0.3)

    async def _run_of(self, correlation_id: str) -> int:
        run = await self._ask(lambda parts: parts.engine.run_of(correlation_id))
        if run is None:
            raise UnknownIdError("orchestration", correlation_id)
        return run

    async def _decide(self, correlation_id: str, approved: bool, task: str | None, by: str, reason: str) -> None:
        asked = 0

        async def decide(parts: EngineParts) -> None:
            nonlocal asked
            asked += 1
            said = HumanInput(parts.engine)
            try:
                await said.decide(correlation_id, approved, by, reason, task=task, actor=LOCAL)
            except DecisionError as error:
                if asked == 1 or error.reason != "not_waiting":  # it was taken, and the answer to that was lost
                    raise

        await self._ask(decide)

    async def _why(self, correlation_id: str, wait_s: float) -> str:
        shown = await self.show(correlation_id)
        return f"{correlation_id} is {shown['status']} after {wait_s:g} s of its world: {shown['espera']}"
