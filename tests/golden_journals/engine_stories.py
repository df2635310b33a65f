"""Stories told to an orchestrator of real processes. Each gives the correlation_id of what it told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from contracts.engine_cases import EngineCase, answer, source, until

FAULT = [{"codigo": "quebrou", "mensagem": "não deu", "definitivo": False}]
FINAL = [{"codigo": "quebrou", "mensagem": "não deu de vez", "definitivo": True}]


class Told:
    """An engine, and a receiver of webhooks that says 500 once under /falha, 410 under /fim and 204 elsewhere."""

    def __init__(self, engine: EngineCase, receiver: str) -> None:
        self.engine, self.receiver = engine, receiver

    def submit(self, sources: int, **more: Any) -> tuple[str, list[str]]:
        options = {key: more.pop(key) for key in ("timeout", "attempts") if key in more}
        known = {"timeout_s": options.get("timeout"), "max_tentativas": options.get("attempts")}
        extra = {key: value for key, value in known.items() if value is not None}
        names = [source() for _ in range(sources)]
        coletas = [{"fonte": name, "parametros": {"n": n}, **extra} for n, name in enumerate(names)]
        return self.engine.submit(coletas=coletas, **more), names

    def plan(self, *tasks: dict[str, Any], **more: Any) -> tuple[str, list[str]]:
        """A plan of Fluxo C: its correlation_id, and the worker class of each task."""
        body, workers = _cognitive(*tasks, **more)
        return self.engine.call("POST", "/plans", json=body)["correlation_id"], workers

    async def do(self, name: str, dados: Any = 1, *, kind: str = "escavador", errors: Any = None) -> dict[str, Any]:
        """Take an order and answer it; the order."""
        order = await self.engine.take(name, kind)
        await self.engine.send(answer(order, dados, errors=errors))
        return order

    async def until(self, name: str, status: str, count: int) -> None:
        async def there() -> bool:
            tickets = self.engine.call("GET", f"/orchestrations/{name}")["tickets"]
            return sum(one["status"] == status for one in tickets) >= count

        await until(there)

    async def counted(self, verdict: str, before: int, more: int = 1) -> None:
        async def there() -> bool:
            return await self.engine.counted(verdict) >= before + more

        await until(there)


def _cognitive(*tasks: dict[str, Any], **more: Any) -> tuple[dict[str, Any], list[str]]:
    workers = [source() for _ in tasks]
    named = [
        {"task_id": f"t{n}", "task_type": "EXECUTE", "description": f"tarefa {n}", "worker": workers[n], **one}
        for n, one in enumerate(tasks)
    ]
    body = {
        "plan_id": f"plan-{source()}", "intent_id": "intent", "risk_band": "low", "tasks": named,
        "execution_order": [one["task_id"] for one in named], "correlation_id": f"corr-{source()}", **more,
    }  # fmt: skip
    return body, workers


async def collects_then_executes(told: Told) -> str:
    executor = source()
    name, names = told.submit(2, execucoes=[{"executador": executor}], notificar={"fila": f"avisos_{source()}"})
    for one in reversed(names):
        await told.do(one, [one])
    await told.do(executor, {"arquivo": "relatorio.pdf"}, kind="executador")
    return name


async def some_fail_and_the_rest_goes_through(told: Told) -> str:
    executor = source()
    name, (good, bad) = told.submit(2, execucoes=[{"executador": executor}])
    await told.do(bad, errors=FINAL)
    await told.do(good, "bom")
    await told.do(executor, kind="executador")
    return name


async def a_quorum_is_met(told: Told) -> str:
    executor = source()
    name, names = told.submit(3, fan_in={"modo": "quorum", "minimo": 2}, execucoes=[{"executador": executor}])
    for one in names[:2]:
        await told.do(one)
    await told.do(executor, kind="executador")
    return name


async def a_quorum_cannot_be_met(told: Told) -> str:
    name, names = told.submit(3, fan_in={"modo": "quorum", "minimo": 3}, execucoes=[{"executador": source()}])
    await told.do(names[1], errors=FINAL)
    return name


async def the_first_is_enough(told: Told) -> str:
    name, names = told.submit(3, fan_in={"modo": "primeiro"})
    await told.do(names[2], {"quem": "o último"})
    return name


async def fails_and_is_tried_again(told: Told) -> str:
    name, (one,) = told.submit(1)
    await told.do(one, errors=FAULT)
    order = await told.do(one, "agora sim")
    before = await told.engine.counted("duplicate")
    await told.engine.send(answer(order, "outra vez"))
    await told.counted("duplicate", before)
    return name


async def fails_too_often(told: Told) -> str:
    name, (one,) = told.submit(1, attempts=2, execucoes=[{"executador": source()}])
    await told.do(one, errors=FAULT)
    order = await told.engine.take(one)
    said = answer(order)
    said["payload"] = {"fonte": one, "status": "erro"}  # without saying which
    await told.engine.send(said)
    return name


async def silence_and_a_late_answer(told: Told) -> str:
    name, (one,) = told.submit(1, timeout=0.5, attempts=2)
    first = await told.engine.take(one)
    await told.engine.take(one)
    told.engine.result(name)
    before = await told.engine.counted("late")
    await told.engine.send(answer(first, "tarde"))
    await told.counted("late", before)
    return name


async def its_own_time_passes(told: Told) -> str:
    name, (first, _) = told.submit(2, execucoes=[{"executador": source()}], timeout_s=1.5)
    await told.do(first)
    return name


async def cancelled_without_a_reason(told: Told) -> str:
    name, (first, second) = told.submit(2, execucoes=[{"executador": source()}])
    await told.do(first)
    order = await told.engine.take(second)
    await told.until(name, "concluida", 1)
    told.engine.call("POST", f"/orchestrations/{name}/cancel")
    before = await told.engine.counted("late")
    await told.engine.send(answer(order, "tarde"))
    await told.counted("late", before)
    return name


async def cancelled_with_a_reason(told: Told) -> str:
    name, _ = told.submit(1)
    told.engine.call("POST", f"/orchestrations/{name}/cancel", json={"motivo": "pedido errado"})
    return name


async def answers_that_are_refused(told: Told) -> str:
    twice = source()
    name = told.engine.submit(coletas=[{"fonte": twice, "parametros": {"n": n}} for n in range(2)])
    orders = [await told.engine.take(twice) for _ in range(2)]
    before = await told.engine.counted("quarantined")
    said = answer(orders[0])
    bare = {key: value for key, value in said.items() if key not in ("ticket_id", "tentativa")}
    strange = {**said, "ticket_id": "0199e0a0-0000-8000-8000-000000000000"}
    await told.engine.send(bare, strange, {**said, "tentativa": 7})
    await told.counted("quarantined", before, 3)
    for order in orders:
        await told.engine.send(answer(order, "certo"))
    return name


async def a_webhook_fails_once(told: Told) -> str:
    name, (one,) = told.submit(1, notificar={"webhook": f"http://{told.receiver}/falha/{source()}"})
    await told.do(one)
    return name


async def a_webhook_is_gone(told: Told) -> str:
    name, (one,) = told.submit(
        1, notificar={"webhook": f"http://{told.receiver}/fim/{source()}", "fila": f"avisos_{source()}"}
    )
    await told.do(one)
    return name


async def fluxo_c_critical(told: Told) -> str:
    name, workers = told.plan(
        {"task_type": "BUILD", "estimated_duration_ms": 500, "parameters": {"repo": "x"}},
        {"task_type": "TEST", "dependencies": ["t0"]},
        {"task_type": "VALIDATE", "dependencies": ["t0"]},
        {"task_type": "DEPLOY", "dependencies": ["t1", "t2"]},
        risk_band="critical",
        priority="LOW",
    )
    for one in workers:
        await told.do(one, {"feito": one}, kind="executador")
    return name


async def _band(told: Told, band: str) -> str:
    name, (first, second) = told.plan({}, {"dependencies": ["t0"]}, risk_band=band)
    await told.do(first, kind="executador", errors=FAULT)
    await told.do(first, kind="executador")
    await told.do(second, kind="executador")
    return name


async def fluxo_c_high(told: Told) -> str:
    return await _band(told, "high")


async def fluxo_c_medium(told: Told) -> str:
    return await _band(told, "medium")


async def fluxo_c_low(told: Told) -> str:
    return await _band(told, "low")


async def fluxo_c_breaks_its_service_level(told: Told) -> str:
    name, (first, _, third) = told.plan({"timeout_ms": 600, "max_retries": 0}, {"dependencies": ["t0"]}, {})
    order = await told.engine.take(first, "executador")
    await told.do(third, kind="executador")
    await told.until(name, "timeout", 1)
    await asyncio.sleep(0.2)
    await told.engine.send(answer(order, "tarde"))
    await told.do(first, "desfeito", kind="executador")
    return name


async def fluxo_c_is_not_undone(told: Told) -> str:
    metadata = {"compensation": "off"}
    name, workers = told.plan({}, {"dependencies": ["t0"]}, {"dependencies": ["t1"]}, metadata=metadata)
    await told.do(workers[0], kind="executador")
    await told.do(workers[1], kind="executador", errors=FINAL)
    return name


async def fluxo_c_is_out_of_time(told: Told) -> str:
    body, (first, _) = _cognitive({}, {"dependencies": ["t0"]})
    asked = {"cognitive_plan": body, "correlation_id": body["correlation_id"], "sla_deadline_seconds": 2}
    told.engine.call("POST", "/workflows/start", json=asked)
    await told.do(first, kind="executador")
    return str(body["correlation_id"])


async def fluxo_c_is_undone(told: Told) -> str:
    name, workers = told.plan(
        {"task_type": "BUILD"},
        {"task_type": "TEST", "dependencies": ["t0"]},
        {"task_type": "DEPLOY", "dependencies": ["t1"], "max_retries": 0},
        {"task_type": "QUERY", "dependencies": ["t2"]},
        risk_band="medium",
    )
    await told.do(workers[0], kind="executador")
    await told.do(workers[1], kind="executador")
    await told.do(workers[2], kind="executador", errors=FINAL)
    await told.do(workers[2], "desfeito", kind="executador")
    await told.do(workers[1], kind="executador", errors=FINAL)
    await told.do(workers[0], "desfeito", kind="executador")
    return name


async def fluxo_c_is_cancelled_while_it_is_undone(told: Told) -> str:
    name, workers = told.plan({}, {"dependencies": ["t0"], "max_retries": 0})
    await told.do(workers[0], kind="executador")
    await told.do(workers[1], kind="executador", errors=FINAL)
    await told.engine.take(workers[1], "executador")
    told.engine.call("POST", f"/orchestrations/{name}/cancel", json={"motivo": "deixa como está"})
    return name


async def approved(told: Told) -> str:
    name, (one,) = told.plan({}, requires_approval=True)
    told.engine.call("POST", f"/orchestrations/{name}/approve", json={"por": "ana", "motivo": "revisado"})
    await told.do(one, kind="executador")
    return name


async def refused(told: Told) -> str:
    name, _ = told.plan({}, {"dependencies": ["t0"]}, requires_approval=True)
    told.engine.call("POST", f"/orchestrations/{name}/reject", json={"por": "ana", "motivo": "cedo demais"})
    return name


async def refused_without_a_word(told: Told) -> str:
    name, _ = told.plan({}, requires_approval=True)
    told.engine.call("POST", f"/orchestrations/{name}/reject", json={})
    return name


async def an_approval_expires(told: Told) -> str:
    body, _ = _cognitive({}, {"dependencies": ["t0"]}, requires_approval=True)
    asked = {"cognitive_plan": body, "correlation_id": body["correlation_id"], "sla_deadline_seconds": 1}
    told.engine.call("POST", "/workflows/start", json=asked)
    return str(body["correlation_id"])


STORIES: tuple[Callable[[Told], Awaitable[str]], ...] = (
    collects_then_executes,
    some_fail_and_the_rest_goes_through,
    a_quorum_is_met,
    a_quorum_cannot_be_met,
    the_first_is_enough,
    fails_and_is_tried_again,
    fails_too_often,
    silence_and_a_late_answer,
    its_own_time_passes,
    cancelled_without_a_reason,
    cancelled_with_a_reason,
    answers_that_are_refused,
    a_webhook_fails_once,
    a_webhook_is_gone,
    fluxo_c_critical,
    fluxo_c_high,
    fluxo_c_medium,
    fluxo_c_low,
    fluxo_c_breaks_its_service_level,
    fluxo_c_is_not_undone,
    fluxo_c_is_out_of_time,
    fluxo_c_is_undone,
    fluxo_c_is_cancelled_while_it_is_undone,
    approved,
    refused,
    refused_without_a_word,
    an_approval_expires,
)
