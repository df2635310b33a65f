"""The parameters that workers say they take: kept in the store, and held against every request.

A worker whose functions have typed parameters declares a JSON Schema for each of its queues. From then on a request
whose parameters cannot fit is refused before anything starts. What an expression will give is not known by then, and
the worker checks it itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import structlog

from oraculo.core.named_tasks import named_in
from oraculo.core.plan import Plan, Task
from oraculo.core.vocabulary import Kind
from oraculo.errors import PlanError, StoreError
from oraculo.ports.clock import Clock
from oraculo.ports.store import Store
from oraculo.wire import parameter_schema, strict_json

log = structlog.get_logger("oraculo.schemas")

LOOK_INTERVAL_S = 5.0


class ParameterSchemaBook:
    """Knows the schemas, takes them in and checks plans."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._schemas: dict[str, dict[str, Any]] = {}

    def of(self, queue: str) -> dict[str, Any] | None:
        """The schema of a queue; None when no worker declared one."""
        return self._schemas.get(queue)

    async def put(self, queue: str, schema: Any) -> bool:
        """Keep the schema of a queue; durable when it returns. False: it is the one that was there. WireError: it
        cannot be used."""
        checked = parameter_schema.checked(schema)
        if self._schemas.get(queue) == checked:
            return False
        await self._store.put_parameter_schema(queue, strict_json.dumps(checked), self._clock.now())
        self._schemas[queue] = checked
        log.info("parameters declared", queue=queue)
        return True

    async def remove(self, queue: str) -> bool:
        """Forget the schema of a queue; False: there was none."""
        self._schemas.pop(queue, None)
        return await self._store.remove_parameter_schema(queue)

    def check(self, plan: Plan) -> None:
        """Raise PlanError when parameters of the plan do not fit what their workers take."""
        if not self._schemas:
            return
        for where, task in _orders(plan):
            schema = self._schemas.get(task.queue)
            if schema is None:
                continue
            parameters = strict_json.loads_trusted(task.parametros)
            found = parameter_schema.faults(schema, parameters)
            if found:
                told = "; ".join(f"{_place(where, one.path)}: {one.message}" for one in found)
                raise PlanError(f"{told} (declared by the workers of {task.queue})", _place(where, found[0].path))

    async def refresh(self) -> None:
        """Read what is declared now."""
        found = await self._store.parameter_schemas()
        self._schemas = {queue: strict_json.loads_trusted(body) for queue, body in found.items()}

    async def run(self) -> None:
        """Look what was declared to other processes, for ever; nothing where this one has the store to itself."""
        while self._store.sharing is not None:
            await asyncio.sleep(LOOK_INTERVAL_S)
            try:
                await self.refresh()
            except StoreError as error:
                log.debug("schemas not read: store unavailable", error=str(error))


def _place(where: str, path: str) -> str:
    return f"{where}.{path}" if path else where


def _orders(plan: Plan) -> Iterator[tuple[str, Task]]:
    """Every order that a plan may send, and where its parameters stand in the request."""
    named = named_in(plan)
    if named is None:
        numbers = {Kind.COLETA: 0, Kind.EXECUCAO: 0}
        for task in plan.tasks:
            word = "coletas" if task.kind is Kind.COLETA else "execucoes"
            yield f"{word}.{numbers[task.kind]}.parametros", task
            numbers[task.kind] += 1
        return
    for task, one in zip(plan.tasks, named.named, strict=False):
        at = f"tarefas.{one.name}"
        inner = [(at, task, one)]
        if one.map is not None:
            inner.append((f"{at}.faz", one.map.task, one.map.item))
        if one.loop is not None:
            inner.append((f"{at}.repete.faz", one.loop.task, one.loop.item))
        for place, order, spec in inner:
            if order.kind.is_sent:
                yield f"{place}.parametros", order
            if spec.undo is not None:
                yield f"{place}.desfaz.parametros", spec.undo.task
