"""Random plans: stages with every fan-in rule, and directed acyclic graphs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from oraculo.core.cognitive import CognitivePlan, FlowRules, TaskNode, plan_of
from oraculo.core.plan import Backoff, Notify, Plan, Task, graph, stages
from oraculo.core.vocabulary import FanIn, Kind, RiskBand, TaskType
from oraculo.wire import names

FONTES = ("blog", "video", "loja")
EXECUTADORES = ("resumo", "grafico")
QUEUES = tuple(names.queue_of(Kind.COLETA, name) for name in FONTES) + tuple(
    names.queue_of(Kind.EXECUCAO, name) for name in EXECUTADORES
)
NOTICES = "avisos"
BACKOFF = Backoff(timedelta(seconds=0.5), timedelta(seconds=4))
FOR_EVER = 20 * 24 * 3600.0


def attempts(rng: Random, masked: bool) -> int:
    return rng.choice((1, 2, 3, 4)) if masked else rng.choice((1, 1, 1, 3))


def ticket_timeout(rng: Random, masked: bool) -> float:
    return round(rng.uniform(0.5, 9.0), 3) if masked else FOR_EVER


def plan_timeout(rng: Random, masked: bool) -> float:
    return round(rng.choice((rng.uniform(3, 15), rng.uniform(15, 60))), 3) if masked else FOR_EVER * 1.4


def task(rng: Random, kind: Kind, masked: bool) -> Task:
    name = rng.choice(FONTES if kind is Kind.COLETA else EXECUTADORES)
    timeout = timedelta(seconds=ticket_timeout(rng, masked))
    return Task(kind, name, names.queue_of(kind, name), b'{"n":1}', timeout, attempts(rng, masked))


def staged(rng: Random, masked: bool, notify: Notify) -> Plan:
    coletas = [task(rng, Kind.COLETA, masked) for _ in range(rng.choice((0, 1, 2, 3, 4)))]
    least = 0 if coletas else 1
    execucoes = [task(rng, Kind.EXECUCAO, masked) for _ in range(rng.randint(least, 3))]
    mode = rng.choice(tuple(FanIn))
    minimo = rng.randint(1, len(coletas or execucoes)) if mode is FanIn.QUORUM else None
    timeout = timedelta(seconds=plan_timeout(rng, masked))
    return stages(coletas, execucoes, mode=mode, minimo=minimo, timeout=timeout, backoff=BACKOFF, notify=notify)


def dag(rng: Random, masked: bool, notify: Notify) -> Plan:
    """Each task depends on some of the tasks before it."""
    count = rng.randint(1, 7)
    tasks = {f"t{n}": task(rng, rng.choice((Kind.COLETA, Kind.EXECUCAO)), masked) for n in range(count)}
    depends = {f"t{n}": [f"t{m}" for m in range(n) if rng.random() < 0.35] for n in range(count)}
    timeout = timedelta(seconds=plan_timeout(rng, masked))
    return graph(tasks, depends, timeout=timeout, backoff=BACKOFF, notify=notify)


def notify(rng: Random) -> Notify:
    webhook = "https://example.com/fim" if rng.random() < 0.3 else None
    return Notify(webhook, NOTICES if rng.random() < 0.5 else None)


def any_plan(rng: Random, masked: bool) -> Plan:
    return (staged if rng.random() < 0.6 else dag)(rng, masked, notify(rng))


def flow(rng: Random, masked: bool) -> Plan:
    """A cognitive plan of Fluxo C: each task depends on some before it; a failure may have to be undone, and a human
    may have to agree first."""

    def node(n: int) -> TaskNode:
        return TaskNode(
            f"t{n}",
            rng.choice(tuple(TaskType)),
            dependencies=tuple(f"t{m}" for m in range(n) if rng.random() < 0.3),
            timeout_ms=round(ticket_timeout(rng, masked) * 1000),
            max_retries=attempts(rng, masked) - 1,
            worker=rng.choice(EXECUTADORES),
        )

    nodes = tuple(node(n) for n in range(rng.randint(1, 7)))
    order = tuple(rng.sample([one.task_id for one in nodes], len(nodes)))
    wanted = CognitivePlan(
        "plan",
        "intent",
        nodes,
        order,
        rng.choice(tuple(RiskBand)),
        requires_approval=rng.random() < 0.2,
        compensate=rng.random() < 0.8,
    )
    rules = FlowRules(timeout=timedelta(seconds=plan_timeout(rng, masked)), backoff=BACKOFF)
    now = datetime.fromtimestamp(0, UTC)
    return plan_of(wanted, rules, now, partial(names.queue_of, Kind.EXECUCAO), name="flow", notify=notify(rng))


def request(rng: Random, masked: bool, correlation_id: str | None) -> dict[str, Any]:
    """A request as a user writes it."""

    def item(key: str, chosen: tuple[str, ...]) -> dict[str, Any]:
        return {
            key: rng.choice(chosen),
            "parametros": {"n": rng.randint(0, 9)},
            "timeout_s": ticket_timeout(rng, masked),
            "max_tentativas": attempts(rng, masked),
        }

    coletas = [item("fonte", FONTES) for _ in range(rng.choice((0, 1, 2, 3, 4)))]
    execucoes = [item("executador", EXECUTADORES) for _ in range(rng.randint(0 if coletas else 1, 2))]
    modo = rng.choice(("todos", "quorum", "primeiro"))
    fan_in: dict[str, Any] = {"modo": modo}
    if modo == "quorum":
        fan_in["minimo"] = rng.randint(1, len(coletas or execucoes))
    wanted = notify(rng)
    body: dict[str, Any] = {
        "coletas": coletas,
        "execucoes": execucoes,
        "timeout_s": plan_timeout(rng, masked),
        "fan_in": fan_in,
    }
    if wanted.webhook or wanted.queue:
        body["notificar"] = {k: v for k, v in (("webhook", wanted.webhook), ("fila", wanted.queue)) if v}
    if correlation_id is not None:
        body["correlation_id"] = correlation_id
    return body


def unique_name(plan: Plan, position: int) -> bool:
    """No other task of the plan has this kind and name: an answer that names neither ticket nor attempt finds it."""
    wanted = plan.tasks[position]
    return sum(1 for task in plan.tasks if (task.kind, task.name) == (wanted.kind, wanted.name)) == 1
