"""Model workers: they answer, fail, hang, answer twice, answer late, die in the middle, send rubbish.

A worker takes orders from the broker (outside the process, or inside it when the broker is the in-process one) or
leases them over HTTP from the gateway.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.errors import BrokerError, BusyError, StoreError, UnknownIdError
from oraculo.ports.broker import Delivery, Outgoing, Settlement
from oraculo.runtime.lease import Lease
from oraculo.simulation.broker import Connection
from oraculo.simulation.facts import Answer
from oraculo.simulation.faults import Life, ProcessDiedError
from oraculo.simulation.process import Process
from oraculo.simulation.scene import Scene
from oraculo.simulation.task_rules import unique_name
from oraculo.wire import mensagem, names, strict_json

MASKED = {"ok": 50, "fail": 10, "definitive": 3, "hang": 5, "twice": 6, "late": 6, "die": 6, "bare": 6, "rubbish": 5}
UNMASKED = {"ok": 55, "fail": 5, "definitive": 2, "twice": 8, "die": 8, "bare": 6, "rubbish": 6}


@dataclass(slots=True)
class Order:
    message: mensagem.Mensagem
    run: int
    position: int
    attempt: int


def read(body: bytes) -> Order:
    message = mensagem.parse(body)
    parsed = parse_ticket_id(message.ticket_id or "")
    assert parsed is not None
    return Order(message, *parsed, message.tentativa or 1)


class Behaviour:
    """What one worker does with one order, and the answers it writes."""

    def __init__(self, scene: Scene, order: Order, can_die: bool) -> None:
        self.scene = scene
        self.order = order
        weights = MASKED if scene.dials.masked else UNMASKED
        self.kind = scene.rng.choices(list(weights), list(weights.values()))[0]
        payload = order.message.payload
        if scene.broken and (payload.get("fonte") or payload.get("executador")) in scene.broken:
            self.kind = "fail"
        if self.kind == "die" and not can_die:
            self.kind = "ok"
        plan = scene.plans[order.message.correlation_id]
        if self.kind == "bare" and not (order.position < len(plan.tasks) and unique_name(plan, order.position)):
            self.kind = "ok"
        scene.count(f"worker {self.kind}")
        scene.log(f"worker has …{(order.message.ticket_id or '')[-12:]}.{order.attempt}, will: {self.kind}")

    async def work(self) -> list[bytes] | None:
        """The answers to send one after the other; None when the worker is gone."""
        scene = self.scene
        if self.kind == "late":
            await scene.sleep(3, 14)
        else:
            await scene.sleep(0.001, 1.2)
        answers = self._honest()
        return answers if answers is None else [*self._forged(), *answers]

    def _forged(self) -> list[bytes]:
        """What a forger says to the same order, before its worker answers."""
        message, forger = self.order.message, self.scene.forger
        if forger is None:
            return []
        key = "fonte" if message.tipo_evento == "iniciar_coleta" else "executador"
        forged = forger.answers(message, self._envelope({key: message.payload[key], "status": "ok"}))
        self.scene.count("forged answers", len(forged))
        return [strict_json.dumps(one) for one in forged]

    def _honest(self) -> list[bytes] | None:
        scene = self.scene
        match self.kind:
            case "hang" | "die":
                return None
            case "fail":
                return [self._answer(ok=False)]
            case "definitive":
                return [self._answer(ok=False, definitivo=True)]
            case "twice":
                return [self._answer(), self._answer(ok=scene.rng.random() < 0.5)]
            case "bare":
                return [self._answer(echoed=False)]
            case "rubbish":
                return [self._rubbish(), self._answer()]
            case _:
                return [self._answer()]

    def _answer(self, *, ok: bool = True, definitivo: bool = False, echoed: bool = True) -> bytes:
        message, scene = self.order.message, self.scene
        collects = message.tipo_evento == "iniciar_coleta"
        key = "fonte" if collects else "executador"
        value = {"v": scene.number()}
        payload: dict[str, Any] = {key: message.payload[key], "status": "ok" if ok else "erro"}
        payload["dados"] = value if ok else None
        payload["erros"] = [] if ok else [{"codigo": "x", "mensagem": "não deu", "definitivo": definitivo}]
        body = self._envelope(payload)
        if echoed:
            body |= {"ticket_id": message.ticket_id, "tentativa": self.order.attempt}
        if message.token is not None:
            body["token"] = message.token
        raw = strict_json.dumps(body)
        dados = payload["dados"] if collects else payload
        scene.said(raw, Answer(message.ticket_id or "", self.order.attempt, ok, definitivo, dados, echoed))
        return raw

    def _envelope(self, payload: dict[str, Any]) -> dict[str, Any]:
        message = self.order.message
        answer = "resultado_coleta" if message.tipo_evento == "iniciar_coleta" else "resultado_execucao"
        return {
            "correlation_id": message.correlation_id,
            "tipo_evento": answer,
            "payload": payload,
            "timestamp": self.scene.timestamp(),
        }

    def _rubbish(self) -> bytes:
        """Something that must end in quarantine."""
        scene, envelope = self.scene, self._envelope({"dados": self.scene.number()})
        choice = scene.rng.randrange(6)
        if choice == 0:
            return b"{%d" % scene.number()
        if choice == 1:
            return b"[%d]" % scene.number()
        if choice == 2:
            envelope["tipo_evento"] = "iniciar_coleta"
        elif choice == 3:
            envelope["correlation_id"] = f"nobody-{scene.number()}"
        elif choice == 4:
            envelope |= {"ticket_id": self.order.message.ticket_id, "tentativa": 99}
        else:
            envelope["ticket_id"] = "not-a-ticket"
        return orjson.dumps(envelope)


async def broker_worker(scene: Scene, connect: Callable[[], Connection | MemoryBroker], queue: str, life: Life) -> None:
    """Takes from a broker for ever, several orders at a time. `life` is the process (or the machine) it lives in."""
    connection = connect()
    while True:
        try:
            deliveries = await connection.fetch(queue, limit=scene.rng.randint(1, 4), wait=5.0)
        except BrokerError:
            await scene.sleep(0.1, 1.0)
            continue
        for delivery in deliveries:
            life.spawn(lambda delivery=delivery: _serve(scene, connection, delivery))  # type: ignore[misc]


async def _serve(scene: Scene, connection: Connection | MemoryBroker, delivery: Delivery) -> None:
    external = isinstance(connection, Connection)
    behaviour = Behaviour(scene, read(delivery.body), can_die=external)
    answers = await behaviour.work()
    if answers is None:
        if behaviour.kind == "die" and isinstance(connection, Connection) and delivery.tag in connection.unsettled:
            del connection.unsettled[delivery.tag]
            connection.broker.arrive_in(0.05, delivery.queue, delivery.body, True, delivery.headers)
        return
    for raw in answers:
        await send(scene, connection, raw)
    with suppress(BrokerError):
        await connection.settle([Settlement(delivery)])


async def send(scene: Scene, connection: Connection | MemoryBroker, raw: bytes) -> None:
    """Send an answer until it is confirmed; a lost confirmation makes a duplicate."""
    while True:
        report = await connection.publish([Outgoing(names.RESULTS, raw, "")])
        if report.complete:
            if not scene.trouble(scene.dials.lost_confirm / 2):
                return
            scene.count("confirms lost")
        await scene.sleep(0.1, 1.0)


async def http_worker(scene: Scene, process: Process, queue: str, life: Life, number: int = 0) -> None:
    """Leases from whichever process is up."""
    name = f"w-{queue}-{number}" if number else f"w-{queue}"
    while True:
        try:
            leases = await process.lease(queue, name)
        except (ProcessDiedError, StoreError, BrokerError):
            await scene.sleep(0.1, 0.6)
            continue
        for lease in leases:
            life.spawn(lambda lease=lease: _serve_lease(scene, process, lease))  # type: ignore[misc]


async def _serve_lease(scene: Scene, process: Process, lease: Lease) -> None:
    behaviour = Behaviour(scene, read(lease.delivery.body), can_die=True)
    answers = await behaviour.work()
    if answers is None:
        return
    if scene.trouble(0.05):
        try:
            await process.release(lease.lease_id)
            return
        except (ProcessDiedError, UnknownIdError):
            pass
    for raw in answers:
        while True:
            try:
                await process.result(raw)
                if not scene.trouble(scene.dials.lost_confirm / 4):
                    break
            except (ProcessDiedError, StoreError, BusyError):
                pass
            await scene.sleep(0.1, 0.8)
