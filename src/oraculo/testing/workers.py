"""A user's worker in a world: the production code that runs worker functions, one life after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from oraculo.simulation.faults import Life
from oraculo.simulation.scene import Scene
from oraculo.testing.broker import FaultyBroker, WorkerConnection
from oraculo.testing.process import restart
from oraculo.wire.mensagem import Mensagem
from oraculo.worker.answers import Handler, WorkerFunction
from oraculo.worker.running import WorkerRun
from oraculo.worker.transport import BrokerTransport
from oraculo.worker.worker import Worker

_ORDER = "mensagem"  # the argument that is the whole order


@dataclass(frozen=True, slots=True)
class WorkerCall:
    """One call of a worker function. `ticket_id` is the same for every attempt and every redelivery of a task."""

    function: str
    params: dict[str, Any]
    correlation_id: str
    ticket_id: str
    attempt: int
    at_s: float  # since the world began


class CallsInline:
    """Plain functions run where they are called, one at a time: in a world nothing happens beside something else."""

    async def run(self, function: Callable[[], Any]) -> Any:
        """Call it."""
        return function()

    def close(self) -> None:
        """There is nothing to end."""


class WorkerLives:
    """The process of one worker: it dies, its orders come again, and it starts again."""

    def __init__(self, scene: Scene, broker: FaultyBroker, worker: Worker, calls: list[WorkerCall]) -> None:
        self._scene = scene
        self._broker = broker
        self._worker = worker
        self._handlers = {queue: _recorded(scene, calls, handler) for queue, handler in worker.handlers.items()}
        self.life: Life | None = None
        self.lives = 0

    async def run(self) -> None:
        """Live, again and again."""
        while True:
            self.lives += 1
            life = self.life = Life(self._scene, self.lives, "worker")
            transport = BrokerTransport(WorkerConnection(self._broker, life))
            running = WorkerRun(
                self._handlers,
                transport,
                name=f"worker-{self.lives}",
                concurrency=self._worker.concurrency,
                patience_s=self._worker.patience,
                threads=CallsInline(),
            )
            life.spawn(running.run)
            await life.died.wait()
            await restart(self._scene)

    def kill(self, why: str) -> None:
        """Let its process die now."""
        if self.life is not None:
            self.life.kill(why)


def _recorded(scene: Scene, calls: list[WorkerCall], handler: Handler) -> Handler:
    """The same handler; its calls are written down."""
    if not isinstance(handler, WorkerFunction):
        return handler
    function, wanted = handler.function, handler.wants

    def begin(given: dict[str, Any]) -> dict[str, Any]:
        order: Mensagem = given[_ORDER]
        params, ticket, attempt = order.payload.get("parametros", {}), order.ticket_id or "", order.tentativa or 1
        calls.append(WorkerCall(handler.name, params, order.correlation_id, ticket, attempt, scene.loop.time()))
        scene.log(f"call {handler.name} {ticket[-12:]}.{attempt}")
        return {name: given[name] for name in wanted}

    def plain(**given: Any) -> Any:
        return function(**begin(given))

    async def waiting(**given: Any) -> Any:
        return await function(**begin(given))

    return replace(handler, function=waiting if handler.is_async else plain, wants=wanted | {_ORDER})
