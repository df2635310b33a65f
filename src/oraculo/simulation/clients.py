"""Model clients: they ask for orchestrations until one is accepted, ask twice, ask for something else under the same
name, and cancel."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from oraculo.core.plan import Plan
from oraculo.errors import BusyError, DuplicateCorrelationError, StoreError, UnknownIdError
from oraculo.ports.broker import Outgoing
from oraculo.ports.work import Fate
from oraculo.simulation import plans, shapes
from oraculo.simulation.broker import Connection
from oraculo.simulation.faults import ProcessDiedError
from oraculo.simulation.process import DEFAULTS, Process
from oraculo.simulation.scene import Scene
from oraculo.simulation.watch import Watch
from oraculo.wire import names, requests, strict_json

_AWAY = (ProcessDiedError, StoreError, BusyError)


def prioritised(rng: Random, masked: bool) -> dict[str, Any]:
    """Named tasks of which some say how urgent they are, the first one always."""
    body = plans.tasks_request(rng, masked)
    for number, one in enumerate(body["tarefas"].values()):
        if number == 0 or rng.random() < 0.5:
            one["prioridade"] = rng.randint(1, 9)
    return body


@dataclass(slots=True)
class Client:
    """One orchestration that a client asks for."""

    scene: Scene
    process: Process
    watch: Watch
    connection: Connection
    name: str
    finished: bool = False
    accepted: bool = False
    key: str | None = None
    body: dict[str, Any] = field(default_factory=dict)

    async def run(self) -> None:
        rng, scene = self.scene.rng, self.scene
        await scene.sleep(0, scene.dials.horizon * 0.6)
        if scene.is_fleet and rng.random() < 0.5:
            self.body = {**prioritised(rng, scene.dials.masked), "correlation_id": self.name}
            await self._ask(rng.random())
            await self._end()
            return
        if scene.ceiling is not None:
            await self._plan(plans.flow(rng, scene.dials.masked, plans.urgent(rng)))
            await self._end()
            return
        choice = rng.random()
        if scene.shapes:
            self.body = {**shapes.shaped_request(rng, scene.dials.masked), "correlation_id": self.name}
            await self._ask(choice)
        elif choice < 0.2:
            await self._plan(plans.dag(rng, scene.dials.masked, plans.notify(rng)))
        else:
            if choice > 0.8:
                self.body = {**plans.tasks_request(rng, scene.dials.masked), "correlation_id": self.name}
            else:
                self.body = plans.request(rng, scene.dials.masked, self.name)
            await self._ask(choice)
        await self._end()

    async def _ask(self, choice: float) -> None:
        """By a message or a request."""
        self.scene.plans[self.name] = requests.plan_of(requests.parse(self.body), DEFAULTS)
        if choice < 0.45 and not self.scene.dials.volatile:
            await self._message(self.body)
        else:
            self.key = f"k-{self.name}" if self.scene.rng.random() < 0.3 else None
            await self._request(self.body)

    async def _end(self) -> None:
        rng, scene = self.scene.rng, self.scene
        self.accepted = True
        scene.count("orchestrations")
        scene.log(f"accepted {self.name}")
        if rng.random() < 0.25:
            await self._again()
        if rng.random() < 0.12:
            await self._cancel()
        self.finished = True

    async def _request(self, body: dict[str, Any]) -> None:
        """Over HTTP or in Python: when it returns, it is durable."""
        while True:
            try:
                accepted = await self.process.submit(body, self.key)
                break
            except _AWAY:
                await self.scene.sleep(0.1, 1.5)
        run = self.watch.by_name.get(self.name)
        if run is None or run != accepted.run:
            self.scene.violate("acceptance is durable", f"{self.name} was accepted and is not in the journal")
        if self.scene.trouble(self.scene.dials.lost_confirm):  # the answer was lost: ask again
            self.scene.count("confirms lost")
            await self._request(body)

    async def _plan(self, plan: Plan) -> None:
        self.scene.plans[self.name] = plan
        while True:
            try:
                await self.process.start(self.name, plan)
                break
            except _AWAY:
                await self.scene.sleep(0.1, 1.5)
        if self.name not in self.watch.by_name:
            self.scene.violate("acceptance is durable", f"{self.name} was accepted and is not in the journal")

    async def _message(self, body: dict[str, Any]) -> None:
        """Through the broker: when the broker confirms, it is the broker's."""
        envelope = {
            "correlation_id": self.name,
            "tipo_evento": "iniciar_coleta",
            "payload": {key: value for key, value in body.items() if key != "correlation_id"},
            "timestamp": self.scene.timestamp(),
        }
        raw = strict_json.dumps(envelope)
        while True:
            report = await self.connection.publish([Outgoing(names.REQUESTS, raw, "")])
            if report.complete and not self.scene.trouble(self.scene.dials.lost_confirm):
                return
            await self.scene.sleep(0.1, 1.5)

    async def _again(self) -> None:
        """The same again must be the same orchestration; another body under the same name must be refused."""
        if not self.body or self.name not in self.watch.by_name:
            return
        await self.scene.sleep(0, 3)
        other = {**self.body, "timeout_s": self.body.get("timeout_s", 100) + 1}
        if self.scene.rng.random() < 0.3 and not self.scene.dials.volatile:
            await self._message(other if self.scene.rng.random() < 0.5 else self.body)
            return
        same = self.scene.rng.random() < 0.5
        while True:
            try:
                accepted = await self.process.submit(self.body if same else other, self.key)
                if accepted.new or not same or accepted.run != self.watch.by_name[self.name]:
                    self.scene.violate("one orchestration per name", f"{self.name} was accepted again")
                return
            except DuplicateCorrelationError:
                if same:
                    self.scene.violate("one orchestration per name", f"the same request for {self.name} was refused")
                return
            except _AWAY:
                await self.scene.sleep(0.1, 1.5)

    async def look(self) -> None:
        """A client that keeps asking how an orchestration goes."""
        while True:
            await self.scene.sleep(0.01, 1.0)
            with suppress(*_AWAY):
                await self.process.look(self.name)

    async def _cancel(self) -> None:
        await self.scene.sleep(0, 6)
        while True:
            known = self.name in self.watch.by_name
            try:
                fate = await self.process.cancel(self.name)
                break
            except UnknownIdError:
                if known:
                    self.scene.violate("acceptance is durable", f"{self.name} is unknown to its orchestrator")
                return
            except _AWAY:
                await self.scene.sleep(0.1, 1.5)
        journal = self.watch.journals[self.watch.by_name[self.name]]
        if journal.status is None or (fate is Fate.APPLIED and not journal.cancelled):
            self.scene.violate("acceptance is durable", f"{self.name} was cancelled and goes on")
