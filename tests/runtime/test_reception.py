"""Where requests arrive: from Python or HTTP, from a message, by task type."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oraculo.core.access import LOCAL
from oraculo.errors import (
    BusyError,
    DuplicateCorrelationError,
    PlanError,
    StoreUnavailableError,
    UnknownIdError,
    WireError,
)
from oraculo.ports.catalogue import Query
from oraculo.runtime.requests import RequestIntake
from oraculo.wire import names, requests
from oraculo.wire.requests import Defaults
from runtime.doubles import DirectEngine, FailingStore, ManualClock

ONE: dict[str, Any] = {"coletas": [{"fonte": "youtube"}]}
TYPE: dict[str, Any] = {
    "coletas": [{"fonte": "youtube", "parametros": {"limite": 5}}, {"fonte": "blog"}],
    "execucoes": [{"executador": "relatorio"}],
}


@pytest.fixture
def reception(engine: DirectEngine) -> RequestIntake:
    return RequestIntake(engine, engine.store, engine.clock, Defaults(), task_types={"fixo": requests.parse(TYPE)})


def request(**more: Any) -> requests.Requisicao:
    return requests.parse({**ONE, **more})


class TestAccept:
    async def test_durable_when_it_returns(self, reception: RequestIntake, store: FailingStore) -> None:
        accepted = await reception.accept(request(), actor=LOCAL)
        assert accepted.new
        assert await store.locate([accepted.correlation_id]) == {accepted.correlation_id: accepted.run}

    async def test_the_id_that_was_asked_for(self, reception: RequestIntake) -> None:
        accepted = await reception.accept(request(correlation_id="abc123"), actor=LOCAL)
        assert accepted.correlation_id == "abc123"

    async def test_the_same_id_and_body_again_is_the_same_run(
        self, reception: RequestIntake, store: FailingStore
    ) -> None:
        first = await reception.accept(request(correlation_id="abc123"), actor=LOCAL)
        again = await reception.accept(request(correlation_id="abc123"), actor=LOCAL)
        assert (again.run, again.new) == (first.run, False)
        assert len(await store.find(Query())) == 1

    async def test_the_same_id_with_another_body_is_refused(self, reception: RequestIntake) -> None:
        await reception.accept(request(correlation_id="abc123"), actor=LOCAL)
        with pytest.raises(DuplicateCorrelationError, match="correlation_id 'abc123'"):
            await reception.accept(request(correlation_id="abc123", timeout_s=5), actor=LOCAL)

    async def test_an_idempotency_key(self, reception: RequestIntake) -> None:
        first = await reception.accept(request(), "chave", actor=LOCAL)
        again = await reception.accept(request(), "chave", actor=LOCAL)
        assert (again.run, again.correlation_id, again.new) == (first.run, first.correlation_id, False)
        with pytest.raises(DuplicateCorrelationError, match="Idempotency-Key 'chave'"):
            await reception.accept(request(timeout_s=5), "chave", actor=LOCAL)

    async def test_many_at_once(self, reception: RequestIntake, store: FailingStore) -> None:
        accepted = await reception.accept_many([request() for _ in range(50)], actor=LOCAL)
        assert len({one.correlation_id for one in accepted}) == 50
        assert len(store.batches) == 1

    async def test_a_refusal_of_one_refuses_all(self, reception: RequestIntake, store: FailingStore) -> None:
        with pytest.raises(PlanError):
            await reception.accept_many([request(), requests.parse({})], actor=LOCAL)
        assert store.batches == []

    async def test_too_much_is_open(self, reception: RequestIntake, engine: DirectEngine) -> None:
        engine.busy = True
        with pytest.raises(BusyError):
            await reception.accept(request(), actor=LOCAL)

    async def test_a_store_that_is_away(self, reception: RequestIntake, store: FailingStore) -> None:
        store.failures = 1
        with pytest.raises(StoreUnavailableError):
            await reception.accept(request(correlation_id="abc123"), actor=LOCAL)
        assert (await reception.accept(request(correlation_id="abc123"), actor=LOCAL)).new

    async def test_a_webhook_is_checked(self, engine: DirectEngine) -> None:
        checked: list[str] = []

        def check(url: str) -> str | None:
            checked.append(url)
            return "private address" if "10." in url else None

        reception = RequestIntake(engine, engine.store, engine.clock, Defaults(), check_webhook=check)
        await reception.accept(request(notificar={"webhook": "https://example.com"}), actor=LOCAL)
        with pytest.raises(PlanError, match="private address") as error:
            await reception.accept(request(notificar={"webhook": "https://10.0.0.1"}), actor=LOCAL)
        assert error.value.where == "notificar.webhook" and len(checked) == 2

    async def test_runs_are_numbered_in_order(self, reception: RequestIntake, clock: ManualClock) -> None:
        runs = []
        for _ in range(5):
            runs.append((await reception.accept(request(), actor=LOCAL)).run)
            clock.forward(0.001)
        assert runs == sorted(set(runs))


class TestTaskTypes:
    async def test_a_request_by_type(self, reception: RequestIntake, engine: DirectEngine) -> None:
        accepted = await reception.accept(requests.parse({"tipo": "fixo", "parametros": {"canal": "x"}}), actor=LOCAL)
        state = await engine.states.state(accepted.run)
        assert [task.queue for task in state.plan.tasks] == [
            "escavador_youtube",
            "escavador_blog",
            "executador_relatorio",
        ]
        assert state.plan.tasks[0].parametros == b'{"limite":5,"canal":"x"}'
        assert state.plan.tipo == "fixo"

    async def test_an_unknown_type_lists_the_known_ones(self, reception: RequestIntake) -> None:
        await reception.put_task_type("semanal", TYPE)
        with pytest.raises(PlanError, match="unknown task type 'x'; known: fixo, semanal"):
            await reception.accept(requests.parse({"tipo": "x"}), actor=LOCAL)

    async def test_kept_in_the_store(self, reception: RequestIntake, engine: DirectEngine) -> None:
        await reception.put_task_type("semanal", TYPE)
        other = RequestIntake(engine, engine.store, engine.clock, Defaults())
        await other.load_task_types()
        assert set(other.task_types()) == {"semanal"}
        assert other.task_type("semanal") == reception.task_type("semanal")
        await other.remove_task_type("semanal")
        assert await engine.store.task_types() == {}
        with pytest.raises(UnknownIdError, match="no task type 'semanal'"):
            await other.remove_task_type("semanal")

    async def test_the_file_wins_over_the_store_and_cannot_be_changed_here(
        self, reception: RequestIntake, engine: DirectEngine
    ) -> None:
        await engine.store.put_task_type("fixo", json.dumps(ONE).encode(), engine.clock.now())
        await reception.load_task_types()
        assert len(reception.task_type("fixo").coletas) == 2
        for change in (reception.put_task_type("fixo", ONE), reception.remove_task_type("fixo")):
            with pytest.raises(PlanError, match="ORACULO_TASK_TYPES"):
                await change

    @pytest.mark.parametrize(
        "body",
        [{}, {"tipo": "fixo"}, {**ONE, "correlation_id": "a"}, {**ONE, "fan_in": {"modo": "quorum", "minimo": 2}}],
    )
    async def test_a_type_must_make_a_plan_by_itself(self, reception: RequestIntake, body: Any) -> None:
        with pytest.raises(PlanError):
            await reception.put_task_type("novo", body)

    async def test_a_type_is_validated_like_a_request(self, reception: RequestIntake, engine: DirectEngine) -> None:
        with pytest.raises(WireError):
            await reception.put_task_type("novo", {**ONE, "x": 1})
        assert await engine.store.task_types() == {}

    async def test_the_same_request_by_type_again_is_the_same_run_also_when_the_type_changed(
        self, reception: RequestIntake
    ) -> None:
        await reception.put_task_type("semanal", TYPE)
        wanted = requests.parse({"tipo": "semanal", "correlation_id": "a"})
        first = await reception.accept(wanted, actor=LOCAL)
        await reception.put_task_type("semanal", ONE)
        assert (await reception.accept(wanted, actor=LOCAL)).run == first.run


class TestFromMessage:
    def raw(self, payload: Any = ONE, **more: Any) -> bytes:
        return json.dumps(
            {
                "correlation_id": "abc123",
                "tipo_evento": "iniciar_coleta",
                "payload": payload,
                "timestamp": "2025-10-14T12:00:00Z",
                **more,
            }
        ).encode()

    async def fate(self, reception: RequestIntake, engine: DirectEngine, raw: bytes) -> str:
        (outcome,) = await engine.submit([reception.from_message(raw, names.REQUESTS)])
        return outcome.fate.value

    async def test_the_body_of_a_request_as_payload(
        self, reception: RequestIntake, engine: DirectEngine, store: FailingStore
    ) -> None:
        assert await self.fate(reception, engine, self.raw()) == "applied"
        assert await self.fate(reception, engine, self.raw()) == "duplicate"
        assert list(await store.locate(["abc123"])) == ["abc123"]
        assert await store.counts() == {(names.REQUESTS, "applied"): 1, (names.REQUESTS, "duplicate"): 1}

    async def test_by_task_type_and_with_the_same_id_inside(
        self, reception: RequestIntake, engine: DirectEngine
    ) -> None:
        payload = {"tipo": "fixo", "parametros": {"canal": "x"}, "correlation_id": "abc123"}
        assert await self.fate(reception, engine, self.raw(payload)) == "applied"

    async def test_the_id_taken_by_another_body_goes_to_the_dead_letters(
        self, reception: RequestIntake, engine: DirectEngine, store: FailingStore
    ) -> None:
        await self.fate(reception, engine, self.raw())
        other = self.raw({**ONE, "timeout_s": 9})
        assert await self.fate(reception, engine, other) == "quarantined"
        assert [(one.reason, one.body) for one in await store.dead_letters()] == [("conflict", other)]

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"payload": {}}, "invalid_plan"),
            ({"payload": {"fonte": "youtube", "parametros": {}}}, "invalid_request"),
            ({"payload": {"tipo": "x"}}, "invalid_plan"),
            ({"payload": {**ONE, "correlation_id": "outro"}}, "invalid_request"),
            ({"payload": {**ONE, "novo": 1}}, "invalid_request"),
            ({"ticket_id": "t"}, "unexpected_event"),
            ({"tipo_evento": "resultado_coleta"}, "unexpected_event"),
            ({"tipo_evento": "x"}, "unknown_event"),
            ({"timestamp": "ontem"}, "invalid_field"),
        ],
    )
    async def test_what_is_no_request_goes_to_the_dead_letters_with_the_reason(
        self, reception: RequestIntake, engine: DirectEngine, store: FailingStore, change: dict[str, Any], reason: str
    ) -> None:
        raw = self.raw(**change)
        assert await self.fate(reception, engine, raw) == "quarantined"
        (dead,) = await store.dead_letters()
        assert (dead.queue, dead.reason, dead.body) == (names.REQUESTS, reason, raw)
        assert await store.find(Query()) == []

    async def test_poison(self, reception: RequestIntake, engine: DirectEngine, store: FailingStore) -> None:
        for raw in (b"", b"\xff", b"[" * 100_000, b'{"a":1,"a":2}'):
            assert await self.fate(reception, engine, raw) == "quarantined"
        assert len(await store.dead_letters()) == 4
