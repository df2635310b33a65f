"""The engine `celery`: the kernel with Celery tasks in the place of an effect runner, and no timers.

`oraculo up` runs it to take requests and the answers of workers, which are plain JSON: a few it records itself, many it
hands over to the tasks `resultado_coleta` and `resultado_execucao`. Every process of a Celery worker runs it to execute
tasks. Deadlines are looked after by the task `varrer`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import timedelta

from celery import Celery

from oraculo.chunks import chunks_by_size
from oraculo.core.commands import RecordResult
from oraculo.core.state import Orchestration
from oraculo.core.tenants import tenant_of
from oraculo.core.vocabulary import Kind
from oraculo.engines.celery_engine.application import verify
from oraculo.engines.celery_engine.effects import CeleryEffectRunner, TaskSender
from oraculo.engines.celery_engine.routes import SEALED, results_queue
from oraculo.ports.message_seal import MessageSeal
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime.kernel.ceiling.upkeep import fleet_ceiling, has_fleet_ceiling
from oraculo.runtime.kernel.commands import CommandQueue
from oraculo.runtime.kernel.kernel import Kernel
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.kernel.states import States

TASK_MAX_BYTES = 512 * 1024  # of messages in one task
RECORDED_HERE_MAX_ANSWERS = 16  # that came at once, while nothing else waits: a task costs as much as a transaction
STOP_PATIENCE_S = 5.0  # Celery ends a worker that takes much longer, and what is left undone is in the journal
TAKEOVER_DELAY = timedelta(seconds=5)  # what is overdue for so long is woken here: beat may not run


def celery_engine(ports: KernelPorts, options: KernelOptions, app: Celery) -> Kernel:
    """Assemble the engine of `oraculo up`. One process of the fleet at a time has the ceiling."""
    verify(app)
    queue, states, sender = CommandQueue(), States(ports.store), TaskSender(app, ports.clock)
    ceiling = fleet_ceiling(ports, options, sender)
    effects = CeleryEffectRunner(
        sender,
        scheduled(ports, options),
        lambda: 0 if ceiling is None else ceiling.held_back,
        report=queue.enqueue,
        children=ports.children,
        policies=ports.policies,
    )
    answers = AnswerHandover(queue, sender, ports.seal)
    kernel = Kernel(
        ports,
        options,
        queue,
        states,
        effects,
        takeover_delay=TAKEOVER_DELAY,
        answers=answers.hand_over,
        stop_patience_s=STOP_PATIENCE_S,
    )
    if ceiling is not None:
        kernel.add("ceiling", ceiling.run)
    return kernel


def celery_front(ports: KernelPorts, options: KernelOptions, app: Celery) -> Kernel:
    """Assemble the engine of a process that commits what is handed in here and leaves the rest to others: one that only
    takes requests, or one of a Celery worker."""
    verify(app)
    queue, states = CommandQueue(), States(ports.store)
    effects = CeleryEffectRunner(
        TaskSender(app, ports.clock),
        scheduled(ports, options),
        report=queue.enqueue,
        children=ports.children,
        policies=ports.policies,
    )
    return Kernel(ports, options, queue, states, effects, stop_patience_s=STOP_PATIENCE_S)


def scheduled(ports: KernelPorts, options: KernelOptions) -> Callable[[Orchestration], bool]:
    """Return what says of an orchestration whether the ceiling sends its orders."""
    if not has_fleet_ceiling(ports, options):
        return lambda _state: False
    return lambda state: state.plan.profile.has_ceiling


class AnswerHandover:
    """Hands answers of workers to the tasks that record them, sealed where payloads are. A few are recorded here:
    they are durable sooner, and no other process has to load their orchestration first."""

    def __init__(self, queue: CommandQueue, sender: TaskSender, seal: MessageSeal | None = None) -> None:
        self._queue = queue
        self._sender = sender
        self._seal = seal

    async def hand_over(self, works: list[Work]) -> list[Outcome]:
        """Send answers on as they came. A few, and those that are too large for a task, or cannot be read, are dealt
        with here. Durable when it returns."""
        few = len(works) <= RECORDED_HERE_MAX_ANSWERS and self._queue.idle
        ours = works if few else [work for work in works if not _fits(work)]
        outcomes = dict(zip(map(id, ours), await self._queue.submit(ours, piecewise=True), strict=True))
        for task, theirs in _by_task([work for work in works if id(work) not in outcomes]).items():
            messages = [await self._message(work) for work in theirs]
            for some in chunks_by_size(messages, TASK_MAX_BYTES, _body_length):
                await self._sender.send(task, results_queue(task), {"mensagens": some})
        return [outcomes.get(id(work)) or Outcome(Fate.APPLIED) for work in works]

    async def _message(self, work: Work) -> dict[str, str]:
        origin = {"fila": work.queue, "broker": work.broker}
        if self._seal is None:
            return {"corpo": work.body.decode(), **origin}
        sealed = await self._seal.seal(tenant_of(work.queue), work.body)
        return {SEALED: b64encode(sealed).decode(), **origin}


def _body_length(message: dict[str, str]) -> int:
    return len(message.get("corpo") or message[SEALED])


def _fits(work: Work) -> bool:
    """True if a task can judge the body alone as it was judged here: nothing of it stood in headers."""
    return isinstance(work.command, RecordResult) and len(work.body) <= TASK_MAX_BYTES and not work.fixed


def _by_task(works: Sequence[Work]) -> dict[str, list[Work]]:
    found: dict[str, list[Work]] = {}
    for work in works:
        if isinstance(work.command, RecordResult):
            found.setdefault(_task_of(work.command), []).append(work)
    return found


def _task_of(answer: RecordResult) -> str:
    return "resultado_execucao" if answer.kind is Kind.EXECUCAO else "resultado_coleta"
