"""Every engine tells the same stories: real processes, a worker that the test plays, and journals that replay."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import quote

import pytest

from contracts.engine_cases import BREAKER_FAILURES, CASES, EngineCase, answer, source
from waiting import until

ENGINES = [pytest.param(name, marks=pytest.mark.xdist_group(f"engine-{name}")) for name in CASES]
AWAY: list[dict[str, Any]] = [{"codigo": "fora", "mensagem": "fora do ar"}]
FAULT = [{"codigo": "quebrou", "mensagem": "não deu", "definitivo": True}]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineCase]:
    case = CASES[request.param](tmp_path_factory.mktemp(request.param))
    try:
        case.start()
        yield case
    finally:
        case.close()


def collects(count: int, **options: Any) -> list[dict[str, Any]]:
    return [{"fonte": source(), "parametros": {"n": n}, **options} for n in range(count)]


async def test_the_whole_flow(engine: EngineCase) -> None:
    first, second = collects(2)
    executor = source()
    name = engine.submit(coletas=[first, second], execucoes=[{"executador": executor}])
    for one in (second, first):
        order = await engine.take(one["fonte"])
        assert order["payload"] == {"fonte": one["fonte"], "parametros": one["parametros"]}
        await engine.send(answer(order, [one["parametros"]]))
    order = await engine.take(executor, "executador")
    assert [one["dados"] for one in order["payload"]["dados"]] == [[{"n": 0}], [{"n": 1}]]
    await engine.send(answer(order, {"arquivo": "relatorio.pdf"}))
    result = engine.result(name)
    assert result["status"] == "concluida"
    assert [one["dados"] for one in result["coletas"]] == [[{"n": 0}], [{"n": 1}]]
    assert result["execucoes"][0]["resultado"]["resultado"] == {"arquivo": "relatorio.pdf"}
    events = await engine.journal(name)
    assert (events["TicketConcluded"], events["FanInClosed"], events["AttemptFailed"]) == (3, 2, 0)


async def test_two_tenants_with_the_same_id(engine: EngineCase) -> None:
    (one,) = collects(1)
    name = engine.submit(coletas=[one])
    with engine.within("acme"):
        assert engine.submit(coletas=[one], correlation_id=name) == name
        order = await engine.take(one["fonte"])
        assert order["correlation_id"] == name
        await engine.send(answer(order, "de acme"))
        result = engine.call("GET", f"/orchestrations/{name}/result?wait=60")
        assert (result["correlation_id"], result["coletas"][0]["dados"]) == (name, "de acme")
    await engine.send(answer(await engine.take(one["fonte"]), "de default"))
    assert engine.result(name)["coletas"][0]["dados"] == "de default"
    for inside in (name, f"espaco_acme.{name}"):
        assert (await engine.journal(inside))["TicketConcluded"] == 1


async def test_a_request_that_exists_once(engine: EngineCase) -> None:
    (one,) = collects(1)
    body = {"coletas": [one], "unica": {"modo": "aberta"}}
    name = engine.submit(**body)
    merged = [engine.call("POST", "/orchestrations", json={**body, "correlation_id": f"{name}-{n}"}) for n in range(3)]
    assert [(one["correlation_id"], one["juntada"]) for one in merged] == [(name, True)] * 3
    assert engine.call("GET", f"/orchestrations/{name}")["juntadas"]["total"] == 3
    await engine.send(answer(await engine.take(one["fonte"]), 1))
    assert engine.result(name)["status"] == "concluida"
    assert engine.submit(**body) != name
    await engine.send(answer(await engine.take(one["fonte"]), 2))
    assert (await engine.journal(name))["TicketConcluded"] == 1


async def test_a_lost_reply_is_asked_for_again(engine: EngineCase) -> None:
    (one,) = collects(1, timeout_s=0.5, max_tentativas=50)
    name = engine.submit(coletas=[one])
    first = await engine.take(one["fonte"])
    second = await engine.take(one["fonte"])
    assert (first["tentativa"], second["tentativa"]) == (1, 2)
    assert first["ticket_id"] == second["ticket_id"]
    await engine.send(answer(second, 2))
    result = engine.result(name)
    assert (result["status"], result["coletas"][0]["dados"]) == ("concluida", 2)
    events = await engine.journal(name)
    assert (events["AttemptFailed"], events["TicketConcluded"]) == (result["coletas"][0]["tentativas"] - 1, 1)


async def test_who_wants_to_know_is_told(engine: EngineCase) -> None:
    (one,) = collects(1)
    name = engine.submit(coletas=[one], notificar={"fila": f"avisos_{source()}"})
    await engine.send(answer(await engine.take(one["fonte"]), 1))
    assert engine.result(name)["status"] == "concluida"
    events = await engine.journal(name)
    assert (events["NoticeDelivered"], events["NoticeFailed"]) == (1, 0)


async def test_a_large_answer(engine: EngineCase) -> None:
    (one,) = collects(1)
    name = engine.submit(coletas=[one])
    await engine.send(answer(await engine.take(one["fonte"]), "x" * 700_000))
    assert engine.result(name)["coletas"][0]["dados"] == "x" * 700_000
    await engine.journal(name)


async def test_a_duplicate_counts_once(engine: EngineCase) -> None:
    first, second = collects(2)
    name = engine.submit(coletas=[first, second])
    before = await engine.counted("duplicate")
    said = answer(await engine.take(first["fonte"]), "a")
    await engine.send(said, said)
    await engine.send(said)
    await until(lambda: _more(engine, "duplicate", before + 2))
    await engine.send(answer(await engine.take(second["fonte"]), "b"))
    result = engine.result(name)
    assert [one["dados"] for one in result["coletas"]] == ["a", "b"]
    assert (await engine.journal(name))["TicketConcluded"] == 2


async def test_an_answer_that_disagrees_is_kept_and_changes_nothing(engine: EngineCase) -> None:
    first, second = collects(2)
    name = engine.submit(coletas=[first, second])
    before = await engine.counted("conflicting_answer")
    order = await engine.take(first["fonte"])
    applied = await engine.counted("applied")
    await engine.send(answer(order, "forjada"))
    await until(lambda: _more(engine, "applied", applied + 1))
    await engine.send(answer(order, "honesta"))
    await until(lambda: _more(engine, "conflicting_answer", before + 1))
    await engine.send(answer(await engine.take(second["fonte"]), "b"))
    assert [one["dados"] for one in engine.result(name)["coletas"]] == ["forjada", "b"]
    assert (await engine.journal(name))["ConflictingAnswerKept"] == 1


async def test_an_answer_without_the_token_of_its_attempt_has_no_effect(engine: EngineCase) -> None:
    """Orders have tokens, and only an answer with the right one counts; the others are dead letters."""
    first, second = collects(2, timeout_s=60)
    name = engine.submit(coletas=[first, second])
    mine, other = await engine.take(first["fonte"]), await engine.take(second["fonte"])
    before, forged = await engine.counted("quarantined"), answer(mine, "forjada")
    bare = {key: value for key, value in forged.items() if key != "token"}
    unnamed = {key: value for key, value in bare.items() if key not in ("ticket_id", "tentativa")}
    await engine.send(
        bare,
        unnamed,
        {**forged, "token": other["token"]},
        {**forged, "token": forged["token"][:-2] + ("AA" if forged["token"][-2] != "A" else "BA")},
        {**forged, "tentativa": 2},
        {**unnamed, "token": other["token"], "ticket_id": mine["ticket_id"]},
    )
    await until(lambda: _more(engine, "quarantined", before + 6))
    await engine.send({**unnamed, "payload": {**unnamed["payload"], "dados": "honesta"}, "token": mine["token"]})
    await engine.send(answer(other, "b"))
    assert [one["dados"] for one in engine.result(name)["coletas"]] == ["honesta", "b"]
    events = await engine.journal(name)
    assert (events["TicketConcluded"], events["LateAnswerKept"], events["ConflictingAnswerKept"]) == (2, 0, 0)
    letters = engine.call("GET", "/dead-letters?motivo=unauthenticated&limit=100")["dead_letters"]
    assert sum(letter["correlation_id"] == name for letter in letters) == 6


async def test_a_late_answer_is_kept_and_changes_nothing(engine: EngineCase) -> None:
    (one,) = collects(1, timeout_s=1, max_tentativas=1)
    name = engine.submit(coletas=[one])
    order = await engine.take(one["fonte"])
    result = engine.result(name)
    assert (result["status"], result["coletas"][0]["status"]) == ("erro", "timeout")
    before = await engine.counted("late")
    await engine.send(answer(order, "tarde"))
    await until(lambda: _more(engine, "late", before + 1))
    assert engine.result(name) == result
    assert (await engine.journal(name))["LateAnswerKept"] == 1


async def test_an_order_whose_attempts_are_used_up_is_requeued(engine: EngineCase) -> None:
    first, second = collects(2, max_tentativas=1)
    name = engine.submit(coletas=[first, second])
    failed = answer(await engine.take(first["fonte"]), None)
    failed["payload"] |= {"status": "erro", "erros": ["fora do ar"]}
    await engine.send(failed)
    path = f"/dead-letters?fila=escavador_{first['fonte']}&motivo=attempts_used_up"
    [letter] = await until(lambda: engine.call("GET", path)["dead_letters"], "the order is a dead letter")
    assert (letter["tentativas"], letter["detalhe"], letter["correlation_id"]) == (1, "fora do ar", name)
    told = engine.call("POST", f"/dead-letters/{letter['id']}/requeue")
    assert (told["situacao"], told["removida"]) == ("applied", True)
    again = await engine.take(first["fonte"])
    assert again["tentativa"] == 2
    await engine.send(answer(again, "a"), answer(await engine.take(second["fonte"]), "b"))
    result = engine.result(name)
    assert (result["status"], [one["tentativas"] for one in result["coletas"]]) == ("concluida", [2, 1])
    counted = await engine.journal(name)
    assert (counted["TicketFailed"], counted["TicketRequeued"]) == (1, 1)


async def test_a_paused_run_sends_nothing_and_its_deadlines_stand_still(engine: EngineCase) -> None:
    (one,), executor = collects(1, timeout_s=60, max_tentativas=1), source()
    name = engine.submit(coletas=[one], execucoes=[{"executador": executor, "timeout_s": 1}], timeout_s=90)
    order = await engine.take(one["fonte"])
    before = engine.call("POST", f"/orchestrations/{name}/pause", json={"motivo": "manutenção"})
    assert (before["pausada"], before["mudou"]) == (True, True)
    assert engine.call("POST", f"/orchestrations/{name}/pause")["mudou"] is False
    await engine.send(answer(order, [1]))  # what is with workers may finish
    await until(lambda: _tickets(engine, name, "concluida", 1))
    await asyncio.sleep(1.5)  # longer than the executor may take
    shown = engine.call("GET", f"/orchestrations/{name}")
    assert [ticket["tentativas"] for ticket in shown["tickets"]] == [1, 1]
    assert (shown["pausada"], shown["tickets"][1]["status"]) == (True, "pendente")
    after = engine.call("POST", f"/orchestrations/{name}/resume")
    assert after["pausada"] is False
    await engine.send(answer(await engine.take(executor, "executador"), "feito"))
    assert engine.result(name)["status"] == "concluida"
    events = await engine.journal(name)
    counted = (events["OrchestrationPaused"], events["OrchestrationResumed"], events["AttemptFailed"])
    assert (counted, events["TicketsDispatched"]) == ((1, 1, 0), 2)
    told = engine.call("GET", f"/orchestrations/{name}/events")["events"]
    began, ended = (next(e["em"] for e in told if e["evento"] == f"orchestration_{w}") for w in ("paused", "resumed"))
    moved = datetime.fromisoformat(after["prazo"]) - datetime.fromisoformat(before["prazo"])
    assert moved == datetime.fromisoformat(ended) - datetime.fromisoformat(began)


async def test_the_priority_of_a_run_is_changed_while_it_runs(engine: EngineCase) -> None:
    (one,) = collects(1, timeout_s=60)
    name = engine.submit(coletas=[one], timeout_s=90)
    order = await engine.take(one["fonte"])
    path = f"/orchestrations/{name}"
    first = engine.call("PATCH", path, json={"prioridade": 9, "motivo": "urge"})
    assert (first["prioridade"], first["mudou"]) == (9, True)
    assert engine.call("PATCH", path, json={"priority": 9})["mudou"] is False
    assert engine.call("GET", path)["prioridade"] == 9
    await engine.send(answer(order, [1]))
    assert engine.result(name)["status"] == "concluida"
    assert (await engine.journal(name))["PriorityChanged"] == 1


async def test_a_paused_destination_gets_its_order_once_when_it_is_resumed(engine: EngineCase) -> None:
    first, second = collects(2, timeout_s=60, max_tentativas=1)
    queue = f"escavador_{first['fonte']}"
    engine.call("POST", f"/queues/{queue}/pause", json={"motivo": "quota"})
    await asyncio.sleep(1.5)  # within which every process knows of it
    name = engine.submit(coletas=[first, second])
    await engine.send(answer(await engine.take(second["fonte"]), "b"))  # other destinations get theirs
    await until(lambda: _tickets(engine, name, "concluida", 1))
    assert engine.call("GET", f"/orchestrations/{name}")["tickets"][0]["status"] == "pendente"
    engine.call("POST", f"/queues/{queue}/resume")
    await engine.send(answer(await engine.take(first["fonte"]), "a"))
    assert [one["dados"] for one in engine.result(name)["coletas"]] == ["a", "b"]
    events = await engine.journal(name)
    assert (events["TicketConcluded"], events["AttemptFailed"], events["LateAnswerKept"]) == (2, 0, 0)


async def test_a_destination_that_keeps_failing_gets_one_probe_and_then_all(engine: EngineCase) -> None:
    (one,) = collects(1, timeout_s=60, max_tentativas=1)
    queue = f"escavador_{one['fonte']}"
    failing = [engine.submit(coletas=[one]) for _ in range(BREAKER_FAILURES)]
    for _ in failing:
        await engine.send(answer(await engine.take(one["fonte"]), errors=AWAY))
    assert {engine.result(name)["status"] for name in failing} == {"erro"}
    await until(lambda: _open_breakers(engine, queue), "the breaker opens")
    await asyncio.sleep(1.5)  # within which every process knows of it
    waiting = [engine.submit(coletas=[one]) for _ in range(3)]
    probe = await engine.take(one["fonte"])
    await until(lambda: _open_breakers(engine, queue)[0]["sondando"], "the probe is shown")

    def shown() -> list[str]:
        return sorted(engine.call("GET", f"/orchestrations/{name}")["tickets"][0]["status"] for name in waiting)

    await until(lambda: "em_execucao" in shown(), "the confirmation of the probe is written")
    assert shown() == ["em_execucao", "pendente", "pendente"]
    await engine.send(answer(probe, "a"))
    for _ in waiting[1:]:
        await engine.send(answer(await engine.take(one["fonte"]), "a"))
    assert {engine.result(name)["status"] for name in waiting} == {"concluida"}
    await until(lambda: not _open_breakers(engine, queue), "the breaker is shown closed")
    for name in waiting:
        events = await engine.journal(name)
        assert (events["TicketConcluded"], events["AttemptFailed"], events["LateAnswerKept"]) == (1, 0, 0)


def _open_breakers(engine: EngineCase, queue: str) -> list[dict[str, Any]]:
    return [one for one in engine.call("GET", "/breakers")["disjuntores"] if one["fila"] == queue]


async def test_its_own_time_passes(engine: EngineCase) -> None:
    name = engine.submit(coletas=collects(2), execucoes=[{"executador": source()}], timeout_s=0.5)
    result = engine.result(name)
    assert result["status"] == "timeout"
    assert [one["dados"] for one in result["coletas"]] == [None, None]
    await engine.journal(name)


def cognitive(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A plan of Fluxo C whose tasks go to classes of workers of their own."""
    named = [{"task_id": f"t{n}", "task_type": "EXECUTE", "description": "x", **one} for n, one in enumerate(tasks)]
    return {
        "plan_id": f"plan-{source()}", "intent_id": "intent", "risk_band": "low", "tasks": named,
        "execution_order": [one["task_id"] for one in named], "correlation_id": f"corr-{source()}", **more,
    }  # fmt: skip


async def test_a_plan_of_fluxo_c_is_approved_fails_and_is_undone(engine: EngineCase) -> None:
    first, second = source(), source()
    plan = cognitive(
        {"worker": first}, {"worker": second, "dependencies": ["t0"], "max_retries": 0}, requires_approval=True
    )
    taken = engine.call("POST", "/plans", json=plan)
    assert taken["status"] == "awaiting_approval"
    name = taken["correlation_id"]
    assert engine.call("POST", f"/orchestrations/{name}/approve", json={"por": "ana"})["aplicada"] is True
    await engine.send(answer(await engine.take(first, "executador"), "feito"))
    await engine.send(answer(await engine.take(second, "executador"), errors=FAULT))
    for worker in (second, first):
        undo = await engine.take(worker, "executador")
        assert undo["task_type"] == "COMPENSATE"
        await engine.send(answer(undo, "desfeito"))
    result = engine.result(name)
    assert (result["status"], result["fluxo_c"]["metrics"]["compensated_tickets"]) == ("parcial", 2)
    events = await engine.journal(name)
    assert (events["ApprovalGiven"], events["CompensationStarted"], events["TicketConcluded"]) == (1, 1, 3)
    again = engine.call("POST", "/plans", json=plan)
    assert again["correlation_id"] == name


async def test_named_tasks_with_a_failure_that_is_absorbed(engine: EngineCase) -> None:
    names = {task: source() for task in ("a", "b", "c", "d", "e")}
    name = engine.submit(
        tarefas={
            "a": {"fonte": names["a"]},
            "b": {"fonte": names["b"], "opcional": True, "max_tentativas": 9, "retentativa": {"nao_em": ["quebrou"]}},
            "c": {"executador": names["c"], "depende": ["b"]},
            "d": {"executador": names["d"], "depende": ["b", "a"]},
            "e": {"executador": names["e"], "depende": ["c", "d"], "fan_in": {"modo": "todos"}},
        }
    )
    await engine.send(answer(await engine.take(names["b"]), errors=[{**FAULT[0], "definitivo": False}]))
    await engine.send(answer(await engine.take(names["a"]), [1]))
    order = await engine.take(names["d"], "executador")
    given = [(one["tarefa"], one["status"], one["dados"]) for one in order["payload"]["dados"]]
    assert given == [("b", "erro", None), ("a", "concluida", [1])]
    await engine.send(answer(order, "feito"))
    order = await engine.take(names["e"], "executador")
    assert [(one["tarefa"], one["status"]) for one in order["payload"]["dados"]] == [
        ("c", "ignorada"), ("d", "concluida"),
    ]  # fmt: skip
    await engine.send(answer(order, "fim"))
    result = engine.result(name)
    assert result["status"] == "parcial"
    assert {task: one["status"] for task, one in result["tarefas"].items()} == {
        "a": "concluida", "b": "erro", "c": "ignorada", "d": "concluida", "e": "concluida",
    }  # fmt: skip
    assert result["tarefas"]["b"]["tentativas"] == 1
    events = await engine.journal(name)
    assert (events["TicketConcluded"], events["TicketFailed"], events["TicketsClosed"]) == (3, 1, 1)


async def test_what_was_done_is_undone_in_reverse(engine: EngineCase) -> None:
    names = {task: source() for task in ("a", "m", "z", "undo_a", "undo_m")}
    undo = {"executador": names["undo_a"], "parametros": {"id": "${{ feito.resultado.id }}"}}
    undo_item = {"executador": names["undo_m"], "parametros": {"x": "${{ [item, indice, feito.resultado] }}"}}
    name = engine.submit(
        tarefas={
            "a": {"executador": names["a"], "desfaz": undo},
            "m": {
                "para_cada": [7, 8],
                "ao_mesmo_tempo": 1,
                "faz": {"executador": names["m"], "desfaz": undo_item},
                "depende": ["a"],
            },
            "z": {"executador": names["z"], "depende": ["m"], "max_tentativas": 1},
        }
    )
    await engine.send(answer(await engine.take(names["a"], "executador"), {"id": "r1"}))
    for said in ("zero", "one"):
        await engine.send(answer(await engine.take(names["m"], "executador"), said))
    await engine.send(answer(await engine.take(names["z"], "executador"), errors=FAULT))
    for expected in ([8, 1, "one"], [7, 0, "zero"]):  # the last item first, one at a time
        order = await engine.take(names["undo_m"], "executador")
        assert order["payload"]["parametros"] == {"x": expected} and order["payload"]["dados"] == []
        shown = engine.call("GET", f"/orchestrations/{name}")
        assert shown["status"] == "em_execucao" and shown["desfazendo"]["desfecho"] == "erro"
        assert engine.call("POST", f"/orchestrations/{name}/cancel")["cancelada"] is False
        await engine.send(answer(order, "undone"))
    order = await engine.take(names["undo_a"], "executador")
    assert order["payload"]["parametros"] == {"id": "r1"}
    await engine.send(answer(order, "undone"))
    result = engine.result(name)
    assert result["status"] == "erro" and result["tarefas"]["a"]["desfeita"] == "concluida"
    assert result["tarefas"]["m"]["itens_desfeitos"] == {"total": 2, "concluidos": 2, "falhas": 0}
    events = await engine.journal(name)
    assert (events["CompensationStarted"], events["TicketConcluded"]) == (1, 6)


async def test_the_journal_names_who_asked_for_what(engine: EngineCase) -> None:
    first, second = collects(2)
    name = engine.submit(coletas=[first, second])
    said = answer(await engine.take(first["fonte"]), 1)
    engine.call("POST", "/results", json=said)
    await until(lambda: _tickets(engine, name, "concluida", 1))
    engine.call("POST", f"/orchestrations/{name}/cancel")
    engine.result(name)
    await engine.journal(name)
    told = engine.call("GET", f"/orchestrations/{name}/events")["events"]
    assert [(one["evento"], one["ator"]) for one in told if "ator" in one] == [
        ("orchestration_started", "local"),
        ("ticket_concluded", "local"),
        ("cancel_requested", "local"),
    ]


COSTLY = "${{ entrada.lista.map(x, entrada.lista.map(y, x + y).size()).sum() }}"  # too long for an event loop


async def test_expressions_of_named_tasks(engine: EngineCase) -> None:
    names = {task: source() for task in ("a", "b", "c", "d", "e")}
    name = engine.submit(
        entrada={"canal": "x", "lista": list(range(200))},
        tarefas={
            "a": {"fonte": names["a"], "parametros": {"canal": "${{ entrada.canal }}"}},
            "b": {"executador": names["b"], "quando": "${{ a.dados.n > 1 }}", "parametros": {"n": "${{ a.dados.n }}"}},
            "c": {"executador": names["c"], "quando": "${{ a.dados.n <= 1 }}"},
            "d": {"executador": names["d"], "depende": ["b", "c"], "parametros": {"n": COSTLY, "b": "b: ${{ b.ok }}"}},
            "e": {"executador": names["e"], "opcional": True, "parametros": {"x": "${{ a.dados.falta }}"}},
        },
        saida={"n": "${{ b.resultado.resultado }}", "muito": COSTLY},
    )
    order = await engine.take(names["a"])
    assert order["payload"]["parametros"] == {"canal": "x"}
    await engine.send(answer(order, {"n": 7}))
    order = await engine.take(names["b"], "executador")
    assert order["payload"]["parametros"] == {"n": 7}
    await engine.send(answer(order, "feito"))
    order = await engine.take(names["d"], "executador")
    assert order["payload"]["parametros"] == {"n": 40_000, "b": "b: true"}
    await engine.send(answer(order, "fim"))
    result = engine.result(name)
    assert (result["status"], result["saida"]) == ("parcial", {"n": "feito", "muito": 40_000})
    assert {task: one["status"] for task, one in result["tarefas"].items()} == {
        "a": "concluida", "b": "concluida", "c": "ignorada", "d": "concluida", "e": "erro",
    }  # fmt: skip
    assert result["tarefas"]["e"]["erros"][0]["codigo"] == "expressao"
    await engine.journal(name)


async def test_a_loop_until_its_condition_is_true(engine: EngineCase) -> None:
    """One that stops, with a pause; one that runs out and goes on; one whose round fails."""
    pagina, esgota, falha, fim = source(), source(), source(), source()
    name = engine.submit(
        entrada={"lista": list(range(200))},
        tarefas={
            "paginas": {
                "repete": {
                    "faz": {
                        "fonte": pagina,
                        "parametros": {"n": "${{ indice }}", "cursor": "${{ paginas.resultado }}"},
                    },
                    "pare_quando": "${{ paginas.resultado.fim }}",
                    "no_maximo": 5,
                    "pausa_s": 0.05,
                }
            },
            "esgota": {
                "repete": {
                    "faz": {"executador": esgota, "parametros": {"n": COSTLY}},
                    "pare_quando": "${{ false }}",
                    "no_maximo": 2,
                    "ao_esgotar": "segue",
                }
            },
            "falha": {
                "opcional": True,
                "repete": {
                    "faz": {"executador": falha, "max_tentativas": 1},
                    "pare_quando": "${{ true }}",
                    "no_maximo": 2,
                },
            },
            "fim": {"executador": fim, "depende": ["paginas", "esgota"]},
        },
        saida="${{ paginas.resultado }}",
    )
    await engine.send(answer(await engine.take(falha, "executador"), errors=FAULT))
    before: object = None
    for number in range(3):
        order = await engine.take(pagina)
        assert order["payload"]["parametros"] == {"n": number, "cursor": before}
        before = {"n": number, "fim": number == 2}
        await engine.send(answer(order, before))
    for number in range(2):
        order = await engine.take(esgota, "executador")
        assert order["payload"]["parametros"] == {"n": 40_000}
        await engine.send(answer(order, number))
    order = await engine.take(fim, "executador")
    collected, executed = (one["dados"] for one in order["payload"]["dados"])
    assert (collected, executed["resultado"]) == (before, 1)
    await engine.send(answer(order, "fim"))
    result = engine.result(name)
    assert (result["status"], result["saida"]) == ("parcial", before)
    assert {task: one["status"] for task, one in result["tarefas"].items()} == {
        "paginas": "concluida", "esgota": "concluida", "falha": "erro", "fim": "concluida",
    }  # fmt: skip
    assert result["tarefas"]["falha"]["erros"][0]["codigo"] == "rodada_com_falha"
    events = await engine.journal(name)
    assert (events["PlanGrown"], events["LoopEnded"], events["TicketConcluded"]) == (6, 3, 6)


async def test_children_begin_answer_and_end_with_their_parent(engine: EngineCase) -> None:
    """A child with an output, one for each item, one that fails and is begun again, one whose id is taken; then a
    parent that is cancelled."""
    um, item, falha, lento = source(), source(), source(), source()
    taken = engine.submit(correlation_id=f"conto-{um}/ocupada", coletas=[{"fonte": lento}])
    child = {
        "entrada": {"i": "${{ item }}"},
        "tarefas": {"x": {"fonte": item, "parametros": {"i": "${{ entrada.i }}"}}},
    }
    name = engine.submit(
        correlation_id=f"conto-{um}",
        rotulos=["k:1"],
        entrada={"lista": [1, 2]},
        tarefas={
            "um": {
                "filha": {
                    "entrada": {"n": "${{ entrada.lista.size() }}"},
                    "tarefas": {"a": {"fonte": um, "parametros": {"n": "${{ entrada.n }}"}}},
                    "saida": "${{ a.dados }}",
                }
            },
            "itens": {"para_cada": "${{ entrada.lista }}", "faz": {"filha": {**child, "saida": "${{ x.dados }}"}}},
            "falha": {
                "filha": {"coletas": [{"fonte": falha, "max_tentativas": 1}]},
                "max_tentativas": 2,
                "retentativa": {"base_s": 0},
            },
            "ocupada": {"opcional": True, "filha": {"coletas": [{"fonte": lento}]}},
        },
        saida={"um": "${{ um.resultado }}", "itens": "${{ itens.resultados }}", "f": "${{ falha.resultado.status }}"},
    )
    order = await engine.take(um)
    assert (order["correlation_id"], order["payload"]["parametros"]) == (f"{name}/um", {"n": 2})
    await engine.send(answer(order, "feito"))
    for _ in range(2):
        order = await engine.take(item)
        await engine.send(answer(order, order["payload"]["parametros"]["i"] * 10))
    await engine.send(answer(await engine.take(falha), errors=FAULT))
    order = await engine.take(falha)
    assert order["correlation_id"] == f"{name}/falha~2"
    await engine.send(answer(order, 1))
    result = engine.result(name)
    assert (result["status"], result["saida"]) == ("parcial", {"um": "feito", "itens": [10, 20], "f": "concluida"})
    assert result["tarefas"]["ocupada"]["erros"][0]["codigo"] == "id_ocupado"
    events = await engine.journal(name)
    assert (events["ChildEnded"], events["AttemptFailed"], events["TicketFailed"]) == (4, 1, 1)
    shown = engine.call("GET", f"/orchestrations/{quote(f'{name}/itens/1', safe='')}")
    assert (shown["pai"]["correlation_id"], shown["rotulos"], shown["status"]) == (name, ["k:1"], "concluida")
    engine.call("POST", f"/orchestrations/{quote(taken, safe='')}/cancel")
    await _a_cancelled_parent(engine)


async def _a_cancelled_parent(engine: EngineCase) -> None:
    source_ = source()
    inner = {"tarefas": {"b": {"filha": {"coletas": [{"fonte": source_}]}}}}
    name = engine.submit(tarefas={"a": {"filha": inner}})
    await engine.take(source_)
    engine.call("POST", f"/orchestrations/{name}/cancel")
    for child in (name, f"{name}/a", f"{name}/a/b"):
        path = f"/orchestrations/{quote(child, safe='')}"
        await until(lambda path=path: _has_status(engine, path, "cancelada"), f"the end of {child}")
    assert (await engine.journal(name))["ChildrenCancelled"] == 1


async def _has_status(engine: EngineCase, path: str, status: str) -> bool:
    return bool(engine.call("GET", path)["status"] == status)


async def test_a_map_over_a_list_that_was_collected(engine: EngineCase) -> None:
    """A window of two, an item that fails, one that is skipped; and a map too wide for the event loop."""
    lista, resumo, fim, largo = source(), source(), source(), source()
    name = engine.submit(
        tarefas={
            "lista": {"fonte": lista},
            "resumos": {
                "para_cada": "${{ lista.dados }}",
                "como": "v",
                "ao_mesmo_tempo": 2,
                "faz": {
                    "executador": resumo,
                    "max_tentativas": 1,
                    "quando": "${{ v.id != 2 }}",
                    "parametros": {"id": "${{ v.id }}", "n": "${{ indice }}"},
                },
            },
            "largo": {
                "para_cada": "${{ entrada.lista.map(x, entrada.lista).flatten() }}",
                "faz": {"fonte": largo, "quando": "${{ indice == 2499 }}", "parametros": {"n": "${{ item }}"}},
            },
            "fim": {"executador": fim, "depende": ["resumos"], "parametros": {"f": "${{ resumos.falhas }}"}},
        },
        entrada={"lista": list(range(50))},
        saida={"r": "${{ resumos.resultados }}", "largo": "${{ largo.total }}"},
    )
    await engine.send(answer(await engine.take(lista), [{"id": n} for n in range(5)]))
    open_orders = [await engine.take(resumo, "executador") for _ in range(2)]
    assert sorted(one["payload"]["parametros"]["n"] for one in open_orders) == [0, 1]
    seen = []
    while open_orders:
        order = open_orders.pop(0)
        number = order["payload"]["parametros"]["id"]
        seen.append(number)
        await engine.send(answer(order, errors=FAULT) if number == 1 else answer(order, f"r{number}"))
        if len(seen) + len(open_orders) < 4:
            open_orders.append(await engine.take(resumo, "executador"))
    assert sorted(seen) == [0, 1, 3, 4]
    order = await engine.take(largo)
    assert order["payload"]["parametros"] == {"n": 49}
    await engine.send(answer(order, "x"))
    order = await engine.take(fim, "executador")
    assert [one["indice"] for one in order["payload"]["parametros"]["f"]] == [1]
    assert [one["tarefa"] for one in order["payload"]["dados"]] == ["resumos"]
    await engine.send(answer(order, "fim"))
    result = engine.result(name)
    told = [one and one["resultado"] for one in result["tarefas"]["resumos"]["resultados"]]
    assert (result["status"], told) == ("parcial", ["r0", None, None, "r3", "r4"])
    assert (result["saida"]["largo"], result["tarefas"]["largo"]["status"]) == (2500, "concluida")
    events = await engine.journal(name)
    assert (events["PlanGrown"], events["MapEnded"], events["TicketConcluded"]) == (3, 2, 6)


async def test_many_runs_are_paused_resumed_cancelled_and_tried_again_at_once(engine: EngineCase) -> None:
    (one,) = collects(1, timeout_s=60, max_tentativas=1)
    label = f"lote:{one['fonte']}"
    names = [engine.submit(coletas=[one], rotulos=[label]) for _ in range(3)]
    for action in ("pause", "resume", "cancel", "retry"):
        asked = {"filtro": {"rotulo": label}, "acao": action}
        counted = engine.call("POST", "/orchestrations/bulk", json={**asked, "simular": True})
        done = engine.call("POST", "/orchestrations/bulk", json=asked)
        assert (counted["total"], done["feitas"], done["restantes"]) == (3, 3, 0), action
    waiting = {f"{name}~1" for name in names}
    while waiting:
        order = await engine.take(one["fonte"])  # those of the runs that were cancelled are there too
        if order["correlation_id"] in waiting:
            waiting.discard(order["correlation_id"])
            await engine.send(answer(order, [1]))
    assert [engine.result(name)["status"] for name in names] == ["cancelada"] * 3
    assert [engine.result(f"{name}~1")["status"] for name in names] == ["concluida"] * 3
    for name in names:
        events = await engine.journal(name)
        assert (events["OrchestrationPaused"], events["OrchestrationResumed"]) == (1, 1)


async def test_a_retry_does_again_what_failed_and_nothing_else(engine: EngineCase) -> None:
    lista, resumo, fim = source(), source(), source()
    item = {"executador": resumo, "max_tentativas": 1, "parametros": {"n": "${{ v }}"}}
    name = engine.submit(
        tarefas={
            "lista": {"fonte": lista},
            "resumos": {"para_cada": "${{ lista.dados }}", "como": "v", "faz": item},
            "ok": {"espera": {"sinal": "revisao"}, "depende": ["resumos"]},
            "fim": {"executador": fim, "depende": ["ok", "resumos"], "max_tentativas": 1},
        },
        saida="${{ resumos.resultados }}",
        rotulos=["conto:repete"],
    )
    await engine.send(answer(await engine.take(lista), [0, 1, 2]))
    for _ in range(3):
        order = await engine.take(resumo, "executador")
        number = order["payload"]["parametros"]["n"]
        await engine.send(answer(order, errors=FAULT) if number == 1 else answer(order, f"r{number}"))
    engine.call("POST", f"/orchestrations/{name}/signals/revisao", json={"dados": "sim"})
    await engine.send(answer(await engine.take(fim, "executador"), errors=FAULT))
    assert engine.result(name)["status"] == "erro"
    again = engine.call("POST", f"/orchestrations/{name}/retry", json={"de": "falhas"})
    assert (again["correlation_id"], again["origem"]) == (f"{name}~1", name)
    order = await engine.take(resumo, "executador")
    assert order["payload"]["parametros"] == {"n": 1}
    assert engine.call("POST", f"/orchestrations/{name}/retry", json={})["correlation_id"] == f"{name}~1", "one is open"
    await engine.send(answer(order, "r1"))
    order = await engine.take(fim, "executador")
    given = next(one["dados"] for one in order["payload"]["dados"] if one["tarefa"] == "resumos")
    assert [one["resultado"] for one in given] == ["r0", "r1", "r2"]
    await engine.send(answer(order, "fim"))
    result = engine.result(f"{name}~1")
    assert (result["status"], result["tarefas"]["ok"]["dados"]) == ("concluida", "sim")
    events = await engine.journal(f"{name}~1")
    assert (events["TicketConcluded"], events["PlanGrown"], events["MapRestored"], events["WaitStarted"]) == (
        2,
        0,
        1,
        0,
    )
    shown = engine.call("GET", f"/orchestrations/{name}")
    assert shown["retentativas"] == [f"{name}~1"]
    shown = engine.call("GET", f"/orchestrations/{name}~1")
    assert (shown["origem"], shown["de"], shown["rotulos"]) == (name, "falhas", ["conto:repete"])


async def test_cancelled(engine: EngineCase) -> None:
    first, second = collects(2)
    name = engine.submit(coletas=[first, second], execucoes=[{"executador": source()}])
    orders = [await engine.take(one["fonte"]) for one in (first, second)]
    await engine.send(answer(orders[0], 1))
    await until(lambda: _tickets(engine, name, "concluida", 1))
    engine.call("POST", f"/orchestrations/{name}/cancel")
    result = engine.result(name)
    assert result["status"] == "cancelada"
    assert [one["status"] for one in result["coletas"]] == ["concluida", "cancelada"]
    before = await engine.counted("late")
    await engine.send(answer(orders[1], 2))
    await until(lambda: _more(engine, "late", before + 1))
    assert engine.result(name) == result
    events = await engine.journal(name)
    assert (events["CancelRequested"], events["LateAnswerKept"]) == (1, 1)


async def test_all_of_them_and_one_failed(engine: EngineCase) -> None:
    good, bad = collects(2)
    executor = source()
    name = engine.submit(coletas=[good, bad], execucoes=[{"executador": executor}], fan_in={"modo": "todos"})
    await engine.send(answer(await engine.take(bad["fonte"]), errors=FAULT))
    await engine.send(answer(await engine.take(good["fonte"]), "bom"))
    order = await engine.take(executor, "executador")
    assert [one["status"] for one in order["payload"]["dados"]] == ["concluida", "erro"]
    await engine.send(answer(order, 1))
    assert engine.result(name)["status"] == "parcial"
    assert (await engine.journal(name))["TicketFailed"] == 1


@pytest.mark.parametrize(("fan_in", "needed"), [({"modo": "quorum", "minimo": 2}, 2), ({"modo": "primeiro"}, 1)])
async def test_enough_of_them(engine: EngineCase, fan_in: dict[str, Any], needed: int) -> None:
    wanted = collects(3)
    name = engine.submit(coletas=wanted, fan_in=fan_in)
    for one in wanted[:needed]:
        await engine.send(answer(await engine.take(one["fonte"]), one["parametros"]))
    result = engine.result(name)
    assert result["status"] == "concluida"
    ended = ["concluida"] * needed + ["cancelada"] * (3 - needed)
    assert [one["status"] for one in result["coletas"]] == ended
    events = await engine.journal(name)
    assert (events["TicketConcluded"], events["FanInClosed"]) == (needed, 1)


async def test_many_that_nobody_knew_before(engine: EngineCase) -> None:
    wanted = collects(12)
    name = engine.submit(coletas=wanted)
    await engine.send(*[answer(await engine.take(one["fonte"]), one["parametros"]) for one in wanted])
    assert engine.result(name)["status"] == "concluida"
    assert (await engine.journal(name))["TicketConcluded"] == 12


async def test_what_came_in_until_the_deadline(engine: EngineCase) -> None:
    answered, silent = collects(2, max_tentativas=1)
    executor = source()
    name = engine.submit(coletas=[answered, {**silent, "timeout_s": 0.5}], execucoes=[{"executador": executor}])
    await engine.send(answer(await engine.take(answered["fonte"]), "a tempo"))
    order = await engine.take(executor, "executador")
    assert [one["status"] for one in order["payload"]["dados"]] == ["concluida", "timeout"]
    await engine.send(answer(order, 1))
    assert engine.result(name)["status"] == "parcial"
    await engine.journal(name)


async def test_killed_and_restarted_halfway(engine: EngineCase) -> None:
    first, second = collects(2)
    executor = source()
    name = engine.submit(coletas=[first, second], execucoes=[{"executador": executor}])
    await engine.send(answer(await engine.take(first["fonte"]), 1))
    await until(lambda: _tickets(engine, name, "concluida", 1))
    engine.kill()
    await asyncio.to_thread(engine.start)
    await engine.send(answer(await engine.take(second["fonte"]), 2))
    order = await engine.take(executor, "executador")
    await engine.send(answer(order, 3))
    result = engine.result(name)
    assert (result["status"], [one["tentativas"] for one in result["coletas"]]) == ("concluida", [1, 1])
    events = await engine.journal(name)
    assert (events["TicketConcluded"], events["AttemptFailed"]) == (3, 0)


async def test_killed_while_a_map_runs(engine: EngineCase) -> None:
    """Every item is answered once, in whatever life its order went out. A task that Celery had begun comes back after
    minutes, so there the kill waits until all that was answered is recorded."""
    embedded = type(engine) is EngineCase
    width, one = (1000 if embedded else 20), source()
    name = engine.submit(
        tarefas={
            "m": {
                "para_cada": list(range(width)),
                "ao_mesmo_tempo": width // 2,
                "faz": {"fonte": one, "parametros": {"n": "${{ item }}"}, "timeout_s": 600},
            }
        }
    )
    answered: set[str] = set()
    killed = False
    while len(answered) < width:
        order = await engine.take(one)
        await engine.send(answer(order, order["payload"]["parametros"]["n"] * 2))
        answered.add(order["ticket_id"])
        if not killed and len(answered) == width // 2:
            killed = True
            if not embedded:
                await until(lambda: _tickets(engine, name, "concluida", width // 2))
            engine.kill()
            await asyncio.to_thread(engine.start)
    result = engine.result(name)
    assert (result["status"], result["tarefas"]["m"]["total"]) == ("concluida", width)
    assert result["tarefas"]["m"]["resultados"] == [2 * n for n in range(width)]
    events = await engine.journal(name)
    assert (events["PlanGrown"], events["MapEnded"], events["TicketConcluded"]) == (1, 1, width)


async def test_killed_while_expressions_are_evaluated(engine: EngineCase) -> None:
    """The kill may come before, while or after; the order goes out once they are evaluated, and the output comes."""
    one = source()
    name = engine.submit(
        entrada={"lista": list(range(400))},
        tarefas={"a": {"fonte": one, "parametros": {str(n): COSTLY for n in range(8)}}},
        saida=[COSTLY, "${{ a.dados }}"],
    )
    engine.kill()
    await asyncio.to_thread(engine.start)
    order = await engine.take(one)
    assert order["payload"]["parametros"] == {str(n): 160_000 for n in range(8)}
    await engine.send(answer(order, "feito"))
    result = engine.result(name)
    assert (result["status"], result["saida"]) == ("concluida", [160_000, "feito"])
    events = await engine.journal(name)
    assert (events["TasksAsked"], events["Resolved"]) == (2, 2)


async def test_waits_for_signals_decisions_and_time_and_is_killed_meanwhile(engine: EngineCase) -> None:
    """An early signal is kept through a kill, a key counts once, decisions count, seconds pass while nobody runs."""
    one = source()
    name = engine.submit(
        tarefas={
            "x": {"executador": one},
            "cedo": {"espera": {"sinal": "ok"}, "depende": ["x"]},
            "outro": {"espera": {"sinal": "ok"}, "depende": ["x"]},
            "pausa": {"espera": {"segundos": "${{ 1 }}"}},
            "nada": {"espera": {"sinal": "nunca", "timeout_s": 1, "ao_expirar": "segue"}},
            "aprova": {"espera": {"aprovacao": {"pergunta": "pagar?"}}, "depende": ["cedo", "outro"]},
        },
        saida=["${{ cedo.dados }}", "${{ outro.dados }}", "${{ aprova.dados.por }}", "${{ nada.dados }}"],
    )
    path, key = f"/orchestrations/{name}/signals/ok", {"Idempotency-Key": "k1"}
    assert engine.call("POST", path, json={"dados": 1}, headers=key) == {"tarefa": None}
    engine.kill()
    await asyncio.to_thread(engine.start)
    assert engine.call("POST", path, json={"dados": 1}, headers=key) == {"tarefa": None}
    await engine.send(answer(await engine.take(one, "executador"), "feito"))
    await until(lambda: _waits(engine, name, "outro"))
    assert engine.call("POST", path, json={"dados": 2}, headers={"Idempotency-Key": "k2"}) == {"tarefa": "outro"}
    await until(lambda: _waits(engine, name, "aprova"))
    engine.kill()
    await asyncio.to_thread(engine.start)
    decided = engine.call("POST", f"/orchestrations/{name}/approve", json={"por": "ana"})
    assert decided["aplicada"] is True
    result = engine.result(name)
    assert (result["status"], result["saida"]) == ("concluida", [1, 2, "ana", None])
    events = await engine.journal(name)
    assert (events["SignalReceived"], events["WaitStarted"], events["WaitEnded"]) == (2, 5, 5)


async def test_a_refused_task_cancels_the_run(engine: EngineCase) -> None:
    behind = {"executador": source(), "depende": ["ok"]}
    name = engine.submit(tarefas={"ok": {"espera": {"aprovacao": {}}}, "x": behind})
    engine.call("POST", f"/orchestrations/{name}/reject", json={"por": "rui", "motivo": "caro"})
    result = engine.result(name)
    assert (result["status"], result["tarefas"]["x"]["status"]) == ("cancelada", "cancelada")
    assert (await engine.journal(name))["ApprovalRefused"] == 1


def _waits(engine: EngineCase, name: str, task: str) -> bool:
    tickets = engine.call("GET", f"/orchestrations/{name}")["tickets"]
    return any(one["tarefa"] == task and one["status"] == "em_execucao" for one in tickets)


async def _more(engine: EngineCase, verdict: str, count: int) -> bool:
    return await engine.counted(verdict) >= count


async def _tickets(engine: EngineCase, name: str, status: str, count: int) -> bool:
    tickets = engine.call("GET", f"/orchestrations/{name}")["tickets"]
    return sum(one["status"] == status for one in tickets) == count


async def test_a_ticket_of_a_lost_worker_goes_elsewhere_at_once(engine: EngineCase) -> None:
    """The worker says that it has the ticket, and is not heard of again; its attempt uses up none."""
    (one,) = collects(1, max_tentativas=1, timeout_s=300)
    name = engine.submit(coletas=[one])
    order = await engine.take(one["fonte"])
    doing = [{"ticket_id": order["ticket_id"], "tentativa": 1}]
    said = {"worker": f"w-{one['fonte']}", "filas": [f"escavador_{one['fonte']}"], "executando": doing, "timeout_s": 5}
    engine.call("POST", "/workers", json=said)
    again = await engine.take(one["fonte"])
    assert (again["ticket_id"], again["tentativa"]) == (order["ticket_id"], 2)
    await engine.send(answer(again, [1]))
    assert engine.result(name)["status"] == "concluida"
    counted = await engine.journal(name)
    assert (counted["TicketWithdrawn"], counted["AttemptFailed"], counted["TicketConcluded"]) == (1, 0, 1)


async def test_a_worker_that_leases_is_chosen_and_the_journal_says_why(engine: EngineCase) -> None:
    (one,) = collects(1, timeout_s=300)
    queue = f"escavador_{one['fonte']}"
    for worker in ("busy", "free"):
        said = {"worker": f"{worker}-{one['fonte']}", "filas": [queue], "concorrencia": 1}
        engine.call("POST", "/workers", json=said)
    name = engine.submit(coletas=[one])
    asked = {"worker": f"free-{one['fonte']}", "max": 1, "wait": 20}
    (lease,) = engine.call("POST", f"/queues/{queue}/lease", json=asked)["mensagens"]
    chosen = await until(lambda: engine.call("GET", f"/orchestrations/{name}")["tickets"][0].get("alocacao"))
    assert (chosen["agent_id"], chosen["metodo"], chosen["tentativa"]) == (asked["worker"], "unico", 1)
    others = {other["agent_id"]: other["motivo"] for other in chosen["candidatos"][1:]}
    assert others == {f"busy-{one['fonte']}": "sem_pedido"}
    await engine.send(answer(lease["mensagem"], [1]))
    assert engine.result(name)["status"] == "concluida"
    assert (await engine.journal(name))["TicketAllocated"] == 1
