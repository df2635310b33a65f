"""Both clients against a real server; the same calls give the same answers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NotRequired, get_origin, get_type_hints

import pytest
from pydantic import BaseModel
from tools.client.generate import TARGET, generated

from cli.processes import Server
from oraculo import AsyncClient, Client, Plan
from oraculo.api import documents, run_documents, why_documents, worker_documents
from oraculo.client import calls as client_calls
from oraculo.client import results, why_results
from oraculo.errors import (
    ApiError,
    BatchRefusedError,
    ConflictError,
    ServerUnreachableError,
    SettingsError,
)
from waiting import DEADLINE_S

pytestmark = pytest.mark.xdist_group("client")

GOOD = {"coletas": [{"fonte": "eco", "parametros": {"a": [1, "ã"]}}], "execucoes": [{"executador": "soma"}]}


def test_submit_and_result(server: Server) -> None:
    with Client(server.url) as client:
        accepted = client.submit({**GOOD, "correlation_id": "c1"})
        assert (accepted.correlation_id, accepted.location) == ("c1", "/api/v1/orchestrations/c1")
        result = client.result("c1", wait=20)
        assert result is not None and result["status"] == "concluida"
        assert result["coletas"][0]["dados"] == {"a": [1, "ã"]}
        assert client.submit({**GOOD, "correlation_id": "c1"}).status == "concluida"


def test_answers_in_english_words(server: Server) -> None:
    for words, language in (("en", None), (None, "en")):
        with Client(server.url, words=words, language=language) as client:
            request = {**GOOD, "correlation_id": f"english-{words}"}
            [accepted] = client.submit_many([request])
            result: Any = client.result(accepted.correlation_id, wait=20)
            assert result["status"] == "completed" and result["collects"][0]["data"] == {"a": [1, "ã"]}
            assert client.submit(request).status == "completed"
            last = list(client.stream(accepted.correlation_id))[-1]
            assert (last["evento"], last["status"]) == ("orchestration_closed", "completed")
    with Client(server.url, language="en", words="pt") as client:
        assert client.get(accepted.correlation_id)["status"] == "concluida"
    with pytest.raises(ValueError, match="allowed: pt, en"):
        Client(server.url, words="fr")


async def test_submit_and_result_async(server: Server) -> None:
    async with AsyncClient(server.url) as client:
        accepted = await asyncio.gather(*(client.submit(GOOD) for _ in range(20)))
        results = await asyncio.gather(*(client.result(one.correlation_id) for one in accepted))
        assert all(one is not None and one["status"] == "concluida" for one in results)


def test_result_is_none_while_it_runs(server: Server) -> None:
    with Client(server.url) as client:
        name = client.submit({"coletas": [{"fonte": "ninguem"}]}).correlation_id
        assert client.result(name, wait=0) is None
        assert client.result(name, wait=0.2) is None
        assert client.cancel(name, "chega")["cancelada"] is True
        result = client.result(name, 0)
        assert result is not None and result["status"] == "cancelada"


@pytest.mark.parametrize("name", ["a/b", "..", ".", "é ü%2F", "a?b#c&d=e", "health", "x" * 128, "+", "日本"])
def test_any_id_works(server: Server, name: str) -> None:
    with Client(server.url) as client:
        assert client.submit({**GOOD, "correlation_id": name}).correlation_id == name
        result = client.result(name, DEADLINE_S)
        assert result is not None and result["correlation_id"] == name
        assert client.get(name)["correlation_id"] == name
        assert [event["seq"] for event in client.stream(name)] == [event["seq"] for event in client.events(name)]


def test_everything_else(server: Server) -> None:
    with Client(server.url) as client:
        client.submit({**GOOD, "correlation_id": "e1"})
        client.result("e1", DEADLINE_S)
        page = client.list(status=["concluida"], source="eco", limit=1)
        assert len(page.items) == 1
        following = client.list(status="concluida", limit=1, cursor=client.list(limit=1).cursor)
        assert following.items != page.items or not following.items
        ticket = client.get("e1")["tickets"][0]
        assert client.ticket(ticket["ticket_id"]) == ticket
        assert client.workers()["workers"][0]["filas"]
        assert client.put_task_type("t1", {"coletas": [{"fonte": "eco"}]}) == client.task_type("t1")
        assert "t1" in client.task_types()
        client.remove_task_type("t1")
        assert client.dead_letters().items == []
        assert client.health()["status"] == "ok" and client.ready()["status"] == "ok"
        assert client.submit(GOOD, "chave").correlation_id == client.submit(GOOD, "chave").correlation_id


def test_refusals_carry_the_problem(server: Server) -> None:
    with Client(server.url) as client:
        with pytest.raises(ApiError) as error:
            client.submit({"coletas": [{"fonte": "a b"}]})
        assert error.value.status == 422
        assert error.value.problem["errors"][0]["campo"] == "coletas.0.fonte"
        with pytest.raises(ApiError, match="nunca") as error:
            client.get("nunca")
        assert error.value.status == 404
        with pytest.raises(ApiError):
            list(client.stream("nunca"))
        with pytest.raises(ApiError):
            client.result("nunca", 5)


async def test_nobody_there() -> None:
    with Client("http://127.0.0.1:1") as client:
        for ask in (lambda: client.get("x"), lambda: client.result("x", 30), lambda: next(client.stream("x"))):
            with pytest.raises(ServerUnreachableError, match=r"127\.0\.0\.1:1"):
                ask()
    async with AsyncClient("http://127.0.0.1:1") as other:
        with pytest.raises(ServerUnreachableError):
            await other.submit(GOOD)


def test_where_and_who_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setenv("ORACULO_URL", server.url + "/")
    monkeypatch.setenv("ORACULO_API_KEY", "k")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # never for what is on this machine
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with Client() as client:
        assert client.url == server.url
        assert client.health()["status"] == "ok"
    for wrong in ("ftp://x", "nada", "http://"):
        with pytest.raises(SettingsError, match="ORACULO_URL"):
            Client(wrong)


def test_both_clients_have_the_same_methods_and_show_them() -> None:
    def public(kind: type) -> dict[str, Any]:
        return {name: value for name, value in vars(kind).items() if not name.startswith("_") and callable(value)}

    blocking, awaited = public(Client), public(AsyncClient)
    assert set(blocking) == set(awaited)
    for name, method in blocking.items():
        assert list(inspect.signature(method).parameters) == list(inspect.signature(awaited[name]).parameters)
        assert method.__doc__ and awaited[name].__doc__
    assert list(inspect.signature(Client.submit).parameters) == ["self", "request", "idempotency_key", "input"]


def test_the_asyncio_client_is_what_the_generator_writes() -> None:
    assert TARGET.read_text(encoding="utf-8") == generated(), "run: python -m tools.client.generate"


def test_submit_many_keeps_the_order_and_says_what_was_refused(server: Server) -> None:
    names = [f"many-{number}" for number in range(3)]
    with Client(server.url) as client:
        accepted = client.submit_many({**GOOD, "correlation_id": name} for name in names)
        assert [one.correlation_id for one in accepted] == names
        wanted: list[dict[str, Any]] = [
            {**GOOD, "correlation_id": "many-3"},
            {"coletas": []},
            {**GOOD, "correlation_id": "m4"},
            {"coletas": [{"fonte": "outra"}], "correlation_id": "many-0"},
        ]
        with pytest.raises(BatchRefusedError, match="2 of 4 were refused") as error:
            client.submit_many(wanted)
        first, bad, last, taken = error.value.items
        assert (first.correlation_id, last.correlation_id) == ("many-3", "m4")
        assert bad.status == 422 and isinstance(taken, ConflictError)
        assert client.get("m4")["correlation_id"] == "m4"
        assert client.submit_many([]) == []
        assert client.submit_many([GOOD], "key-1") == client.submit_many([GOOD], "key-1")


def test_submit_many_is_cut_into_calls_that_the_server_takes(server: Server) -> None:
    with Client(server.url) as client:
        wanted = [{"coletas": [{"fonte": "ninguem"}], "correlation_id": f"cut-{number}"} for number in range(1005)]
        accepted = client.submit_many(wanted)
    assert [one.correlation_id for one in accepted] == [one["correlation_id"] for one in wanted]


def test_a_conflict_has_an_error_of_its_own(server: Server) -> None:
    with Client(server.url) as client:
        client.submit({**GOOD, "correlation_id": "k1"})
        with pytest.raises(ConflictError) as error:
            client.submit({"coletas": [{"fonte": "outra"}], "correlation_id": "k1"})
        assert error.value.status == 409


async def test_portuguese_argument_names_still_work_and_warn(server: Server) -> None:
    with Client(server.url) as client:
        name = client.submit({"coletas": [{"fonte": "ninguem"}]}).correlation_id
        with pytest.warns(DeprecationWarning, match="motivo is called reason now"):
            assert client.cancel(name, motivo="chega")["cancelada"] is True  # type: ignore[call-arg]
        assert client.get(name)["motivo_cancelamento"] == "chega"
    async with AsyncClient(server.url) as other:
        with pytest.warns(DeprecationWarning, match="fonte is called source now"):
            assert (await other.list(fonte="nunca")).items == []  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("typed", "documented"),
    [
        (results.RunAggregate, run_documents.Aggregate), (results.TaskResult, run_documents.TarefaResult),
        (results.RunDetails, run_documents.Orchestration),
        (results.RunSummary, documents.Summary), (results.TicketDetails, run_documents.Ticket),
        (results.CollectResult, run_documents.ColetaResult), (results.ExecuteResult, run_documents.ExecucaoResult),
        (results.CancelAnswer, documents.Cancelled), (results.DecisionAnswer, documents.Decided),
        (results.DeadLetterDetails, documents.DeadLetter), (results.DeadLetterCount, documents.DeadLetterGroup),
        (results.RequeueAnswer, documents.Requeued), (results.BulkRequeueAnswer, documents.BulkRequeued),
        (results.DiscardAnswer, documents.Discarded), (results.BrokerStatus, documents.BrokerInfo),
        (results.BrokersStatus, documents.Brokers), (results.ReplicaStatus, documents.ReplicaInfo),
        (results.ReplicasStatus, documents.Replicas), (results.WorkerStatus, worker_documents.WorkerInfo),
        (results.QueueStatus, worker_documents.QueueInfo), (results.WorkersStatus, worker_documents.Workers),
        (why_results.Explanation, why_documents.Why), (why_results.DecisionDetails, why_documents.JournalDecision),
        (why_results.OpenTicketDetails, why_documents.OpenTicket),
        (why_results.PredictionResult, why_documents.PredictionCame),
        (results.ServerHealth, documents.Health), (results.ServerReadiness, documents.Ready),
    ],
)  # fmt: skip
def test_typed_results_have_the_fields_that_the_server_documents(typed: type, documented: type[BaseModel]) -> None:
    hints = get_type_hints(typed, include_extras=True)
    assert set(hints) == set(documented.model_fields)
    optional = {name for name, field in documented.model_fields.items() if not field.is_required()}
    assert {name for name, hint in hints.items() if get_origin(hint) is NotRequired} == optional


def test_stream_goes_on_after_the_server_was_killed(mortal: Callable[..., Server], tmp_path: Path) -> None:
    one = mortal("--worker", "trabalho:worker")
    may = tmp_path / "may"
    parameters = {"comecou": str(tmp_path / "began"), "pode": str(may)}
    seen: list[dict[str, Any]] = []
    with Client(one.url) as client:
        client.submit(
            {
                "correlation_id": "s1",
                "coletas": [{"fonte": "lento", "parametros": parameters}, {"fonte": "eco"}],
                "execucoes": [{"executador": "soma"}],
            }
        )
        for event in client.stream("s1"):
            seen.append(event)
            if event["evento"] == "ticket_concluded" and not may.exists():
                one.kill()
                one.start()
                may.touch()
        assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))
        assert seen[-1]["evento"] == "orchestration_closed"
        assert seen == client.events("s1")
        assert list(client.stream("s1", after=seen[-1]["seq"])) == []


async def test_result_and_stream_ride_out_a_restart_async(
    mortal: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_calls, "LONG_POLL_S", 0.2)
    one = mortal()
    async with AsyncClient(one.url) as client:
        await client.submit({"correlation_id": "s2", "coletas": [{"fonte": "ninguem"}]})
        asked, begun = asyncio.Event(), asyncio.Event()

        async def saw(response: Any) -> None:
            if response.request.url.path.endswith("/result"):
                asked.set()

        client._http.event_hooks["response"].append(saw)
        waiting = asyncio.create_task(client.result("s2", wait=60))
        watching = asyncio.create_task(_all(client, "s2", begun))
        await asked.wait()  # a server that was never reached is another story
        await begun.wait()
        for end in (one.kill, one.stop):
            await asyncio.to_thread(end)
            await asyncio.to_thread(one.start)
        assert not waiting.done() and not watching.done()
        await client.cancel("s2")
        result = await waiting
        assert result is not None and result["status"] == "cancelada"
        seen = await watching
        assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))


async def _all(client: AsyncClient, name: str, begun: asyncio.Event) -> list[dict[str, Any]]:
    seen = []
    async for event in client.stream(name):
        seen.append(event)
        begun.set()
    return seen


@pytest.mark.parametrize("words", ["pt", "en"])
def test_input_is_laid_over_a_plan_and_its_output_is_read(server: Server, words: str) -> None:
    plan = Plan(input={"a": 1, "b": 2})
    got = plan.collect("got", "eco", {"a": plan.input.a, "b": plan.input.b})
    plan.output = got.data
    with Client(server.url, words=words) as client:
        run = client.submit(plan, input={"a": 5})
        result = client.result(run.correlation_id, wait=DEADLINE_S)
        assert result is not None
        assert (result.output, result.correlation_id) == ({"a": 5, "b": 2}, run.correlation_id)
        assert (result.status, list(result.tasks)) == ({"pt": "concluida", "en": "completed"}[words], ["got"])


@pytest.mark.parametrize(
    ("request_", "sent"),
    [
        ({"tarefas": {}}, {"tarefas": {}, "entrada": {"x": 1}}),
        ({"tasks": {}, "input": {"x": 0, "y": 2}}, {"tasks": {}, "input": {"x": 1, "y": 2}}),
        ({"tipo": "t"}, {"tipo": "t", "parametros": {"x": 1}}),
        ({"type": "t", "params": {"y": 2}}, {"type": "t", "params": {"y": 2, "x": 1}}),
    ],
)
def test_input_goes_where_a_request_takes_it(request_: dict[str, Any], sent: dict[str, Any]) -> None:
    assert client_calls.with_input(request_, {"x": 1}) == sent


def test_input_of_a_request_that_has_none_is_refused(server: Server) -> None:
    with Client(server.url) as client, pytest.raises(ValueError, match="neither"):
        client.submit(GOOD, input={"x": 1})
