"""Signed messages on their way in: whose they are, and what of others has no effect."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from oraculo.adapters.signing import ed25519
from oraculo.core.access import LOCAL, AccessRole, Scope
from oraculo.core.commands import RecordResult, Start
from oraculo.ports.work import Work
from oraculo.runtime.signatures import UNKNOWN_MAX_READS, MessageGuard
from oraculo.service import Oraculo
from oraculo.settings.settings import load
from oraculo.wire.signatures import HEADER, encoded, signed_body, signed_header
from oraculo.wire.ticket_tokens import HEADER as TOKEN_HEADER

RESULTS, REQUESTS = "orquestrador_resultados", "orquestrador_requisicoes"


@dataclass
class Key:
    id: str
    secret: bytes

    def sign(self, body: bytes) -> bytes:
        return signed_body(body, self.id, ed25519.private_key(self.secret).sign)


@pytest.fixture
async def oraculo(tmp_path: Path) -> AsyncIterator[Oraculo]:
    chosen = {
        "ORACULO_STORE": f"sqlite:///{tmp_path}/o.db",
        "ORACULO_RESULT_SIGNATURES": "require",
        "ORACULO_REQUEST_SIGNATURES": "require",
        "ORACULO_RESULT_TOKENS": "accept",
        "ORACULO_ORDER_DATA": "",
    }
    async with Oraculo(load(chosen, None)) as oraculo:
        yield oraculo


async def make_key(oraculo: Oraculo, role: AccessRole, *queues: str, tenant: str = "default", **more: Any) -> Key:
    secret = ed25519.new_secret()
    public = encoded(ed25519.key_of(secret).public)
    key, _ = await oraculo.keys.create(role, by=LOCAL, queues=queues, tenant=tenant, public_key=public, **more)
    return Key(key.id, secret)


async def order_of(oraculo: Oraculo, name: str) -> dict[str, Any]:
    body = {"coletas": [{"fonte": "youtube"}], "correlation_id": name}
    await oraculo.requests.accept(oraculo.requests.read(body), actor=LOCAL)
    (lease,) = await oraculo.leases.lease("escavador_youtube", 1, 5, "w")
    order: dict[str, Any] = orjson.loads(lease.delivery.body)
    return order


def answer(order: dict[str, Any], **more: Any) -> bytes:
    said = {
        "correlation_id": order["correlation_id"],
        "tipo_evento": "resultado_coleta",
        "payload": {"fonte": "youtube", "status": "ok", "dados": "honesta"},
        "timestamp": "2025-10-14T12:00:00Z",
        "ticket_id": order["ticket_id"],
        "tentativa": order["tentativa"],
    }
    return orjson.dumps({name: value for name, value in {**said, **more}.items() if value is not None})


def guard_of(oraculo: Oraculo, scope: Scope = Scope.RESULT_WRITE) -> MessageGuard:
    guards = oraculo._opened.guards
    found = guards.of(scope)
    assert found is not None
    return found


async def judged(oraculo: Oraculo, body: bytes, headers: dict[str, str] | None = None, queue: str = RESULTS) -> Work:
    given = headers or {}
    if queue.endswith(RESULTS):
        work, scope = oraculo.answers(body, queue, given), Scope.RESULT_WRITE
    else:
        work, scope = oraculo.requests.from_message(body, queue, given), Scope.RUN_SUBMIT
    (found,) = await guard_of(oraculo, scope).judged([(body, given)], [work])
    return found


def reason(work: Work) -> str | None:
    return None if work.dead is None else work.dead.reason


async def test_an_answer_counts_as_that_of_the_worker_who_signed_it(oraculo: Oraculo) -> None:
    worker, order = await make_key(oraculo, AccessRole.TRABALHADOR, "escavador_youtube"), await order_of(oraculo, "a")
    work = await judged(oraculo, worker.sign(answer(order)))
    assert isinstance(work.command, RecordResult) and work.command.actor == worker.id and not work.fixed
    headers = {HEADER: signed_header(answer(order), worker.id, ed25519.private_key(worker.secret).sign)}
    work = await judged(oraculo, answer(order), headers)
    assert isinstance(work.command, RecordResult) and work.command.actor == worker.id
    assert work.fixed  # whoever gets the body alone cannot judge it


async def test_what_others_sign_or_leave_unsigned_has_no_effect(
    oraculo: Oraculo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oraculo.kernel_ports.signatures, "_reads_left", 100)
    worker = await make_key(oraculo, AccessRole.TRABALHADOR, "escavador_youtube")
    elsewhere = await make_key(oraculo, AccessRole.TRABALHADOR, "escavador_blog")
    reader, foreign = (
        await make_key(oraculo, AccessRole.LEITOR),
        await make_key(oraculo, AccessRole.TRABALHADOR, "escavador_youtube", tenant="acme"),
    )
    revoked = await make_key(oraculo, AccessRole.TRABALHADOR, "escavador_youtube")
    await oraculo.keys.revoke(revoked.id, by=LOCAL)
    order, other = await order_of(oraculo, "a"), await order_of(oraculo, "b")
    signed = worker.sign(answer(order))
    tail = signed[len(answer(order)) - 1 :]
    wrong = {
        "bare": answer(order),
        "with the token": answer(order, token=order.get("token")),
        "of a stranger": Key(worker.id, bytes(32)).sign(answer(order)),
        "of no key": Key("kzzzzzzzzzzz", worker.secret).sign(answer(order)),
        "moved to another ticket": answer(other)[:-1] + tail,
        "changed": signed.replace(b"honesta", b"forjada"),
        "of a revoked key": revoked.sign(answer(order)),
        "of a reader": reader.sign(answer(order)),
        "of another tenant": foreign.sign(answer(order)),
        "that names no ticket": worker.sign(answer(order, ticket_id=None, tentativa=None)),
        "that names no attempt": worker.sign(answer(order, tentativa=None)),
    }
    for name, body in wrong.items():
        assert reason(await judged(oraculo, body)) == "unauthenticated", name
    assert reason(await judged(oraculo, elsewhere.sign(answer(order)))) == "forbidden_queue"
    unnamed = worker.sign(answer(order, ticket_id=None, tentativa=None))
    assert reason(await judged(oraculo, unnamed, {TOKEN_HEADER: order["token"]})) == "unauthenticated"
    assert reason(await judged(oraculo, worker.sign(answer(order)))) is None


async def test_a_request_is_that_of_the_key_that_signed_it(oraculo: Oraculo) -> None:
    sender, reader = await make_key(oraculo, AccessRole.REMETENTE), await make_key(oraculo, AccessRole.LEITOR)
    document = {
        "correlation_id": "pedida",
        "tipo_evento": "iniciar_coleta",
        "payload": {"coletas": [{"fonte": "youtube"}]},
        "timestamp": "2025-10-14T12:00:00Z",
    }
    body = orjson.dumps(document)
    assert reason(await judged(oraculo, body, queue=REQUESTS)) == "unauthenticated"
    assert reason(await judged(oraculo, reader.sign(body), queue=REQUESTS)) == "unauthenticated"
    work = await judged(oraculo, sender.sign(body), queue=REQUESTS)
    assert isinstance(work.command, Start) and work.command.actor == sender.id


async def test_a_key_that_is_new_is_looked_for(oraculo: Oraculo, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts at once, and names that are none make the store be asked a few times at most."""
    order, reads = await order_of(oraculo, "a"), 0
    ring = oraculo.kernel_ports.signatures
    assert ring is not None
    before = ring.reload

    async def counted() -> None:
        nonlocal reads
        reads += 1
        await before()

    monkeypatch.setattr(ring, "reload", counted)
    worker = await make_key(oraculo, AccessRole.TRABALHADOR, "escavador_youtube")
    assert reason(await judged(oraculo, worker.sign(answer(order)))) is None and reads == 1
    for _ in range(3 * UNKNOWN_MAX_READS):
        await judged(oraculo, Key("kzzzzzzzzzzz", worker.secret).sign(answer(order)))
    assert reads <= UNKNOWN_MAX_READS


async def test_an_order_is_the_orchestrators_when_one_of_its_keys_signed_it(tmp_path: Path) -> None:
    chosen = {"ORACULO_STORE": f"sqlite:///{tmp_path}/o.db", "ORACULO_ORDER_SIGNATURES": "require"}
    async with Oraculo(load(chosen, None)) as oraculo:
        keys = oraculo.kernel_ports.order_keys
        assert keys is not None and oraculo.answers.public_keys == keys.public_keys
        body = {"coletas": [{"fonte": "youtube"}], "correlation_id": "a"}
        await oraculo.requests.accept(oraculo.requests.read(body), actor=LOCAL)
        (lease,) = await oraculo.leases.lease("escavador_youtube", 1, 5, "w")
        order = lease.delivery
        assert "token" not in orjson.loads(order.body)
        assert keys.has_signed(order.body, order.headers)
        assert not keys.has_signed(order.body.replace(b"youtube", b"youtubf"), order.headers)
        assert not keys.has_signed(order.body, {})
        forged = orjson.dumps({**orjson.loads(order.body), "payload": {"fonte": "youtube", "parametros": {"x": 1}}})
        await oraculo.leases.release(lease.lease_id)
        from oraculo.ports.broker import Outgoing, publish_confirmed

        await publish_confirmed(oraculo.broker, [Outgoing("escavador_youtube", forged, "f", dict(order.headers))])
        leased = [one for _ in range(2) for one in await oraculo.leases.lease("escavador_youtube", 5, 0.2, "w")]
        assert [one.delivery.body for one in leased] == [order.body]
        (dead,) = await oraculo.broker.fetch("escavador_youtube.dlq", limit=5, wait=5)
        assert dead.body == forged and dead.headers["oraculo-motivo"] == "unauthenticated"


async def test_whoever_submitted_a_plan_neither_approves_it_nor_says_that_it_was(tmp_path: Path) -> None:
    chosen = {
        "ORACULO_STORE": f"sqlite:///{tmp_path}/o.db",
        "ORACULO_REQUEST_SIGNATURES": "require",
        "ORACULO_FLOW_C": "on",
    }
    async with Oraculo(load(chosen, None)) as oraculo:
        operator = await make_key(oraculo, AccessRole.OPERADOR)
        approver = await make_key(oraculo, AccessRole.APROVADOR)
        plans = oraculo.plans
        assert plans is not None
        node = {"task_id": "a", "task_type": "query", "description": "a", "dependencies": []}
        plan = {
            **{"plan_id": "p1", "intent_id": "i1", "tasks": [node], "execution_order": ["a"], "risk_band": "high"},
            **{"requires_approval": True, "approval_status": "approved", "correlation_id": "flow"},
        }

        async def sent(body: bytes, scope: Scope) -> Work:
            read = plans.from_message if scope is Scope.RUN_SUBMIT else plans.approval_from_message
            (work,) = await guard_of(oraculo, scope).judged([(body, {})], [read(body, "topic", {})])
            submit = plans.submit if scope is Scope.RUN_SUBMIT else plans.submit_approvals
            await submit([work])
            return work

        assert reason(await sent(orjson.dumps(plan), Scope.RUN_SUBMIT)) == "unauthenticated"
        assert reason(await sent(operator.sign(orjson.dumps(plan)), Scope.RUN_SUBMIT)) is None
        state = await oraculo.engine.state_of("flow")
        assert state is not None and state.actor == operator.id
        assert [ticket.status.value for ticket in state.tickets] == ["pendente"]
        yes = orjson.dumps({"plan_id": "p1", "decision": "approved", "approved_by": "ceo@empresa.com"})
        assert reason(await sent(yes, Scope.PLAN_APPROVE)) == "unauthenticated"
        assert reason(await sent(operator.sign(yes), Scope.PLAN_APPROVE)) == "own_plan"
        assert reason(await sent(approver.sign(yes), Scope.PLAN_APPROVE)) is None
        recorded = [event for step in await oraculo.store.events(state.run, 0, 100) for event in step.events]
        assert [getattr(one, "actor", None) for one in recorded if type(one).__name__ == "ApprovalGiven"] == [
            approver.id
        ]
