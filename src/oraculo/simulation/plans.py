"""Random plans: stages with every fan-in rule, and directed acyclic graphs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from oraculo.core.flow.cognitive import CognitivePlan, FlowRules, TaskNode, plan_of
from oraculo.core.plan import Backoff, NoticeTargets, Plan, Task, graph, stages
from oraculo.core.vocabulary import FanIn, Kind, Priority, RiskBand, TaskType
from oraculo.plans import writer
from oraculo.wire import named_plans, names
from oraculo.wire.requests import Defaults

FONTES = ("blog", "video", "loja")
EXECUTADORES = ("resumo", "grafico")
QUEUES = tuple(names.queue_of(Kind.COLETA, name) for name in FONTES) + tuple(
    names.queue_of(Kind.EXECUCAO, name) for name in EXECUTADORES
)
NOTICES = "avisos"
SIGNALS = ("s0", "s1")
BACKOFF = Backoff(timedelta(seconds=0.5), timedelta(seconds=4))
NO_DEADLINE_S = 20 * 24 * 3600.0


def attempts(rng: Random, masked: bool) -> int:
    return rng.choice((1, 2, 3, 4)) if masked else rng.choice((1, 1, 1, 3))


def ticket_timeout(rng: Random, masked: bool) -> float:
    return round(rng.uniform(0.5, 9.0), 3) if masked else NO_DEADLINE_S


def plan_timeout(rng: Random, masked: bool) -> float:
    return round(rng.choice((rng.uniform(3, 15), rng.uniform(15, 60))), 3) if masked else NO_DEADLINE_S * 1.4


def task(rng: Random, kind: Kind, masked: bool) -> Task:
    name = rng.choice(FONTES if kind is Kind.COLETA else EXECUTADORES)
    timeout = timedelta(seconds=ticket_timeout(rng, masked))
    return Task(kind, name, names.queue_of(kind, name), b'{"n":1}', timeout, attempts(rng, masked))


def staged(rng: Random, masked: bool, notify: NoticeTargets) -> Plan:
    coletas = [task(rng, Kind.COLETA, masked) for _ in range(rng.choice((0, 1, 2, 3, 4)))]
    least = 0 if coletas else 1
    execucoes = [task(rng, Kind.EXECUCAO, masked) for _ in range(rng.randint(least, 3))]
    mode = rng.choice((FanIn.TODOS, FanIn.QUORUM, FanIn.PRIMEIRO, FanIn.TODAS_OK))
    minimo = rng.randint(1, len(coletas or execucoes)) if mode is FanIn.QUORUM else None
    timeout = timedelta(seconds=plan_timeout(rng, masked))
    return stages(coletas, execucoes, mode=mode, minimo=minimo, timeout=timeout, backoff=BACKOFF, notify=notify)


def dag(rng: Random, masked: bool, notify: NoticeTargets) -> Plan:
    """Each task depends on some of the tasks before it."""
    count = rng.randint(1, 7)
    tasks = {f"t{n}": task(rng, rng.choice((Kind.COLETA, Kind.EXECUCAO)), masked) for n in range(count)}
    depends = {f"t{n}": [f"t{m}" for m in range(n) if rng.random() < 0.35] for n in range(count)}
    timeout = timedelta(seconds=plan_timeout(rng, masked))
    return graph(tasks, depends, timeout=timeout, backoff=BACKOFF, notify=notify)


def notify(rng: Random) -> NoticeTargets:
    webhook = "https://example.com/fim" if rng.random() < 0.3 else None
    return NoticeTargets(webhook, NOTICES if rng.random() < 0.5 else None)


def any_plan(rng: Random, masked: bool) -> Plan:
    return (staged if rng.random() < 0.6 else dag)(rng, masked, notify(rng))


def urgent(rng: Random) -> Priority:
    """A priority that a plan asks for."""
    return rng.choice(tuple(Priority))


def flow(rng: Random, masked: bool, priority: Priority | None = None) -> Plan:
    """A cognitive plan of Fluxo C: each task depends on some before it; a failure may have to be undone, and a human
    may have to agree first, unless it is about its priority."""

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
        requires_approval=rng.random() < 0.2 and priority is None,
        priority=priority,
        compensate=rng.random() < 0.8,
    )
    rules = FlowRules(timeout=timedelta(seconds=plan_timeout(rng, masked)), backoff=BACKOFF)
    now = datetime.fromtimestamp(0, UTC)
    return plan_of(wanted, rules, now, partial(names.queue_of, Kind.EXECUCAO), name="flow", notify=notify(rng))


def as_map(rng: Random, call: dict[str, Any], masked: bool) -> dict[str, Any]:
    """A map whose items do what this call does. What stands around the call stays around the map."""
    inner = ("fonte", "executador", "timeout_s", "max_tentativas", "retentativa")
    around = {word: value for word, value in call.items() if word not in (*inner, "parametros", "fan_in")}
    faz = {word: call[word] for word in inner if word in call}
    faz["parametros"] = {"v": "${{ item }}", "i": "${{ indice }}", "n": "${{ entrada.n }}"}
    if rng.random() < 0.4:
        faz["quando"] = rng.choice(("${{ item > 2 }}", "${{ item != 1 }}", "${{ 10 / item > 2 }}", "${{ indice < 1 }}"))
    items = [rng.randint(0, 5) for _ in range(rng.choice((0, 1, 2, 3, 3, 4, 6)))]
    made: dict[str, Any] = {**around, "para_cada": items, "faz": faz}
    if rng.random() < 0.2:
        made["para_cada"] = "${{ entrada.lista.filter(x, x > 1) }}"
    if rng.random() < 0.6:
        made["ao_mesmo_tempo"] = rng.randint(1, 3)
    modo = rng.choice(("todos", "todos", "todas_ok", "quorum", "primeiro"))
    made["fan_in"] = {"modo": modo, **({"minimo": rng.randint(1, 3)} if modo == "quorum" else {})}
    if masked and rng.random() < 0.3:
        made["timeout_s"] = round(rng.uniform(1, 12), 3)
    return made


def maps_request(rng: Random, masked: bool) -> dict[str, Any]:
    """Named tasks, some of which are maps."""
    body = tasks_request(rng, masked)
    body["entrada"]["lista"] = [rng.randint(0, 5) for _ in range(rng.randint(0, 5))]
    tasks: dict[str, Any] = body["tarefas"]
    for name, task in tasks.items():
        if rng.random() < 0.5:
            tasks[name] = as_map(rng, task, masked)
    for task in tasks.values():  # a map offers other words than the call that it was
        for name, other in tasks.items():
            if "para_cada" in other and isinstance(task.get("quando"), str):
                for word in ("dados", "resultado"):
                    task["quando"] = task["quando"].replace(f"{name}.{word}.v >= 0", f"{name}.resultados.size() > 0")
    return body


def as_loop(rng: Random, name: str, call: dict[str, Any], masked: bool) -> dict[str, Any]:
    """A loop whose rounds do what this call does. What stands around the call stays around the loop."""
    inner = ("fonte", "executador", "timeout_s", "max_tentativas", "retentativa")
    around = {word: value for word, value in call.items() if word not in (*inner, "parametros")}
    faz = {word: call[word] for word in inner if word in call}
    faz["parametros"] = {"i": "${{ indice }}", "antes": f"${{{{ {name}.resultado }}}}", "n": "${{ entrada.n }}"}
    if rng.random() < 0.1:
        faz["parametros"]["x"] = f"${{{{ {name}.resultado.nada }}}}"
    result = f"{name}.resultado"
    condition = rng.choice(
        (f"{result}.v % 3 == 0", "indice >= 2", f"{result}.v % 5 == 1 || indice > 3", "false", f"{result} == null")
    )
    loop: dict[str, Any] = {"faz": faz, "pare_quando": f"${{{{ {condition} }}}}", "no_maximo": rng.randint(1, 6)}
    if rng.random() < 0.4:
        loop["pausa_s"] = rng.choice((0, 0.5, 3))
    if rng.random() < 0.4:
        loop["ao_esgotar"] = rng.choice(("falha", "segue"))
    made: dict[str, Any] = {**around, "repete": loop}
    if masked and rng.random() < 0.3:
        made["timeout_s"] = round(rng.uniform(1, 12), 3)
    return made


def loops_request(rng: Random, masked: bool) -> dict[str, Any]:
    """Named tasks, some of which are loops, and some maps."""
    body = tasks_request(rng, masked)
    body["entrada"]["lista"] = [rng.randint(0, 5) for _ in range(rng.randint(0, 5))]
    tasks: dict[str, Any] = body["tarefas"]
    for name, task in tasks.items():
        if "quando" in task and ".v >= 0" in task["quando"]:
            task["quando"] = "${{ entrada.n > 4 }}"
        choice = rng.random()
        if choice < 0.6:
            tasks[name] = as_loop(rng, name, task, masked)
        elif choice < 0.7:
            tasks[name] = as_map(rng, task, masked)
    return body


def loops_plan(rng: Random, masked: bool) -> Plan:
    """The plan of a request with loops."""
    return named_plans.plan_of(named_plans.load(loops_request(rng, masked)), Defaults(retry_base_s=0.5, retry_cap_s=4))


def as_child(rng: Random, call: dict[str, Any], masked: bool) -> dict[str, Any]:
    """A child in the place of this call; sometimes for each item, or round after round."""
    child: dict[str, Any] = {"tipo": "relatorio", "parametros": {"n": "${{ entrada.n }}"}}
    if rng.random() < 0.3:
        child = {"tarefas": {"a": {"fonte": "blog", "parametros": {"n": "${{ entrada.n }}"}}}, "entrada": {"n": 1}}
    body: dict[str, Any] = {"filha": child}
    if rng.random() < 0.3:
        body |= {"max_tentativas": rng.randint(1, 3), "retentativa": {"base_s": 0.1, "teto_s": 1}}
    if masked and rng.random() < 0.3:
        body["timeout_s"] = round(rng.uniform(1, 12), 3)
    kept = ("depende", "fan_in", "quando", "opcional")
    around: dict[str, Any] = {word: value for word, value in call.items() if word in kept}
    choice = rng.random()
    if choice < 0.2:
        around.pop("fan_in", None)
        items = [rng.randint(0, 5) for _ in range(rng.randint(0, 4))]
        return {**around, "para_cada": items, "faz": body, "ao_mesmo_tempo": rng.randint(1, 3)}
    if choice < 0.4:
        loop = {"faz": body, "pare_quando": "${{ indice >= 1 }}", "no_maximo": rng.randint(1, 4)}
        return {**around, "repete": loop}
    return {**around, **body}


def children_request(rng: Random, masked: bool) -> dict[str, Any]:
    """Named tasks, some of which are children."""
    body = tasks_request(rng, masked)
    tasks: dict[str, Any] = body["tarefas"]
    for name, task in tasks.items():
        if "quando" in task and ".v >= 0" in task["quando"]:
            task["quando"] = "${{ entrada.n > 4 }}"
        if rng.random() < 0.6:
            tasks[name] = as_child(rng, task, masked)
    return body


def children_plan(rng: Random, masked: bool) -> Plan:
    """The plan of a request with children."""
    body = children_request(rng, masked)
    return named_plans.plan_of(named_plans.load(body), Defaults(retry_base_s=0.5, retry_cap_s=4))


def maps_plan(rng: Random, masked: bool) -> Plan:
    """The plan of a request with maps."""
    return named_plans.plan_of(named_plans.load(maps_request(rng, masked)), Defaults(retry_base_s=0.5, retry_cap_s=4))


def tasks_request(rng: Random, masked: bool) -> dict[str, Any]:
    """Named tasks as a user writes them: each depends on some before it, with any fan-in, and may be optional."""
    count = rng.randint(1, 7)
    tasks: dict[str, Any] = {}
    for number in range(count):
        key, chosen = rng.choice((("fonte", FONTES), ("executador", EXECUTADORES)))
        one: dict[str, Any] = {
            key: rng.choice(chosen),
            "parametros": {"n": rng.choice((number, "${{ entrada.n }}", "n ${{ entrada.n + 1 }}"))},
            "timeout_s": ticket_timeout(rng, masked),
            "max_tentativas": attempts(rng, masked),
        }
        if tasks and rng.random() < 0.3:
            other = rng.choice(list(tasks))
            data = "dados" if "fonte" in tasks[other] else "resultado"
            choices = ("entrada.n > 4", f"{other}.ok", f"{other}.status != 'erro'", f"{other}.{data}.v >= 0")
            one["quando"] = f"${{{{ {rng.choice(choices)} }}}}"
        needs = [name for name in tasks if rng.random() < 0.4]
        rng.shuffle(needs)
        if needs:
            one["depende"] = needs
            modo = rng.choice(("todas_ok", "todas_ok", "todos", "quorum", "primeiro", "fechadas"))
            one["fan_in"] = {"modo": modo, **({"minimo": rng.randint(1, len(needs))} if modo == "quorum" else {})}
        if rng.random() < 0.25:
            one["opcional"] = True
        if rng.random() < 0.3:
            one["retentativa"] = {"base_s": 0.1, "teto_s": rng.choice((0.2, 9.0)), "nao_em": rng.choice(([], ["x"]))}
        tasks[f"t{number}"] = one
    wanted = notify(rng)
    body: dict[str, Any] = {
        "tarefas": tasks,
        "timeout_s": plan_timeout(rng, masked),
        "entrada": {"n": rng.randint(0, 9)},
    }
    if rng.random() < 0.5:
        body["saida"] = {"n": rng.choice(("${{ entrada.n }}", "${{ t0.status }}", "${{ entrada.x }}"))}
    if wanted.webhook or wanted.queue:
        body["notificar"] = {k: v for k, v in (("webhook", wanted.webhook), ("fila", wanted.queue)) if v}
    return body


def waits_request(rng: Random, masked: bool) -> dict[str, Any]:
    """Named tasks, some of which wait: for signals, decisions or seconds. Half of them have no deadline."""
    body = tasks_request(rng, masked)
    tasks = body["tarefas"]
    for name in list(tasks):
        if name != "t0" and rng.random() < 0.5:
            kept = {key: tasks[name][key] for key in ("depende", "fan_in", "opcional") if key in tasks[name]}
            tasks[name] = {"espera": _wait(rng), **kept}
            if rng.random() < 0.3:
                tasks[name]["quando"] = "${{ entrada.n > 2 }}"
    tasks["w"] = {"espera": _wait(rng)}
    for one in tasks.values():
        if "quando" in one and ".v >= 0" in one["quando"]:
            one["quando"] = "${{ entrada.n > 4 }}"
    if rng.random() < 0.5:
        del body["timeout_s"]
    return body


def _wait(rng: Random) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if rng.random() < 0.4:
        more = {"timeout_s": round(rng.uniform(0.5, 20.0), 3), "ao_expirar": rng.choice(("falha", "segue"))}
    choice = rng.random()
    if choice < 0.5:
        return {"sinal": rng.choice(SIGNALS), **more}
    if choice < 0.75:
        return {"aprovacao": {}, "ao_recusar": rng.choice(("falha", "segue")), **more}
    return {"segundos": rng.choice((0, 1.5, 30, "${{ entrada.n }}"))}


def waits_plan(rng: Random, masked: bool) -> Plan:
    """The plan of a request with waits; some have maps beside them."""
    body = waits_request(rng, masked)
    if rng.random() < 0.3:
        tasks: dict[str, Any] = body["tarefas"]
        body["entrada"]["lista"] = [rng.randint(0, 5) for _ in range(rng.randint(0, 5))]
        for name, task in tasks.items():
            if "espera" not in task and rng.random() < 0.5:
                tasks[name] = as_map(rng, task, masked)
    return named_plans.plan_of(named_plans.load(body), Defaults(retry_base_s=0.5, retry_cap_s=4))


def undo_plan(rng: Random, masked: bool) -> Plan:
    """The plan of a request some of whose tasks, items and waits say how they are undone."""
    body = rng.choice((tasks_request, maps_request, waits_request))(rng, masked)
    tasks: dict[str, Any] = body["tarefas"]
    for name, task in list(tasks.items()):
        if ("fonte" in task or "executador" in task) and rng.random() < 0.15:
            tasks[name] = as_loop(rng, name, task, masked)
            tasks[name]["repete"]["faz"]["desfaz"] = _undo(rng, masked, "${{ [indice, feito] }}")
            for other in tasks.values():  # a loop offers other words than the call that it was
                if f"{name}.dados" in other.get("quando", ""):
                    other["quando"] = "${{ entrada.n > 4 }}"
    for task in tasks.values():
        if rng.random() < 0.7:
            task["desfaz"] = _undo(rng, masked, "${{ feito }}")
        if "faz" in task and rng.random() < 0.8:
            task["faz"]["desfaz"] = _undo(rng, masked, rng.choice(("${{ [item, indice, feito] }}", "${{ feito.v }}")))
    return named_plans.plan_of(named_plans.load(body), Defaults(retry_base_s=0.5, retry_cap_s=4))


def _undo(rng: Random, masked: bool, what: str) -> dict[str, Any]:
    return {
        "executador": "desfaz",
        "parametros": rng.choice(({"n": 1}, {"w": what})),
        "timeout_s": ticket_timeout(rng, masked),
        "max_tentativas": attempts(rng, masked),
    }


def tasks_plan(rng: Random, masked: bool) -> Plan:
    """The plan of a request with named tasks, in either vocabulary."""
    body = tasks_request(rng, masked)
    document = named_plans.load(body)
    if rng.random() < 0.5:
        document = named_plans.load(writer.write(document, "en"))
    return named_plans.plan_of(document, Defaults(retry_base_s=0.5, retry_cap_s=4))


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


BY_WORLD = {
    "core": any_plan,
    "flow": flow,
    "tasks": tasks_plan,
    "maps": maps_plan,
    "loops": loops_plan,
    "children": children_plan,
    "waits": waits_plan,
    "undo": undo_plan,
}
