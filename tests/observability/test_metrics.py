"""What the journal says is what is counted: one orchestration after another, told to the metrics."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from api.conftest import settings_for
from core.given import RUN, Story, at, plan
from core.test_flow import made, node
from oraculo.adapters.sinks.prometheus import Metrics
from oraculo.adapters.sinks.prometheus.deadlines import Deadlines
from oraculo.api.plans import desk_of
from oraculo.api.serving import store_of
from oraculo.core.access import LOCAL
from oraculo.core.commands import RecordResult
from oraculo.core.plan import Plan
from oraculo.core.step import Step
from oraculo.core.ticket_id import ticket_id
from oraculo.core.vocabulary import Priority, RiskBand
from oraculo.ports.journal import Batch
from oraculo.ports.observer import group_by_type
from oraculo.service import Oraculo
from oraculo.wire import names
from runtime.doubles import FailingBroker
from waiting import until

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(metrics: Metrics) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return samples(metrics)[name, tuple(sorted(labels.items()))]


class Told(Story):
    """A story whose every step is seen by the metrics."""

    def __init__(self, plan: Plan, run: int = RUN, metrics: Metrics | None = None) -> None:
        self.metrics = metrics or Metrics()
        super().__init__(plan, run=run)

    def recorded(self, before: int, done: Step) -> Step:
        super().recorded(before, done)
        self.metrics.saw(Batch(done.at, [done]), group_by_type([done]))
        return done


def test_a_success() -> None:
    story = Told(plan(2, 1))
    story.confirm(when=1)
    story.ok(0, when=2)
    story.ok(1, when=3)
    story.ok(2, when=5)
    metrics = story.metrics
    assert value(metrics, "orchestration_workflows_started_total", status="started", risk_band="none") == 1
    assert value(metrics, "orchestration_workflows_completed_total", status="concluida", risk_band="none") == 1
    assert value(metrics, "orchestration_workflow_duration_seconds_sum", status="concluida", risk_band="none") == 5
    generated = {"risk_band": "none", "priority": "NORMAL"}
    assert value(metrics, "orchestration_tickets_generated_total", task_type="coleta", **generated) == 2
    assert value(metrics, "orchestration_tickets_generated_total", task_type="execucao", **generated) == 1
    assert value(metrics, "orchestration_tickets_published_total", status="confirmed") == 3  # one answer overtook it
    assert value(metrics, "orchestration_tickets_completed_total", status="concluida", task_type="coleta") == 2
    assert value(metrics, "orchestration_ticket_duration_seconds_sum", status="concluida", task_type="coleta") == 5
    assert value(metrics, "orchestration_ticket_generation_duration_seconds_sum") == 1
    assert value(metrics, "orchestration_journal_events_total") == story.state.version


def test_retries_by_number_and_failures_by_cause() -> None:
    story = Told(plan(1, attempts=13))
    for _ in range(12):
        story.confirm()
        story.fail(0)
        due = story.ticket(0).due_at
        assert due is not None
        story.wake(when=(due - at(0)).total_seconds())
    story.confirm()
    story.fail(0)
    metrics = story.metrics
    retries = "orchestration_retries_total"
    assert [value(metrics, retries, task_type="coleta", retry_attempt=str(n)) for n in range(1, 10)] == [1] * 9
    assert value(metrics, retries, task_type="coleta", retry_attempt="10+") == 3
    assert value(metrics, "orchestration_attempt_failures_total", task_type="coleta", causa="erro") == 13
    assert value(metrics, "orchestration_tickets_completed_total", status="erro", task_type="coleta") == 1


def test_a_ticket_and_an_orchestration_out_of_time() -> None:
    metrics = Metrics()
    ticket, whole = Told(plan(1), RUN, metrics), Told(plan(2, timeout=20), RUN + 1, metrics)
    ticket.confirm(when=1)
    ticket.wake(when=32)
    whole.wake(when=20.25)
    assert value(metrics, "orchestration_sla_violations_total", risk_band="none", task_type="coleta") == 3
    lateness = "orchestration_deadline_lateness_seconds_sum"
    assert value(metrics, lateness, task_type="coleta") == 1
    assert value(metrics, lateness, task_type="workflow") == 0.25
    assert value(metrics, "orchestration_deadline_approaching_total") == 1  # that of the ticket ended before


def test_a_message_that_no_broker_takes_was_not_published() -> None:
    story = Told(plan(1))
    story.do(RecordResult(False, b"null", [{"codigo": "mensagem_recusada"}], True, ticket_id(RUN, 0), 1))
    metrics = story.metrics
    assert value(metrics, "orchestration_tickets_published_total", status="refused") == 1
    assert value(metrics, "orchestration_tickets_published_total", status="confirmed") == 0


def test_duplicates_by_where_they_came() -> None:
    metrics = Metrics()
    counts = Counter({(names.RESULTS, "duplicate"): 2, (f"{names.REQUESTS}@redis", "duplicate"): 3})
    metrics.saw(Batch(at(0), counts=counts), {})
    assert value(metrics, "orchestrator_duplicates_detected_total", component="results") == 2
    assert value(metrics, "orchestrator_duplicates_detected_total", component="requests") == 3


def test_conflicting_answers_are_counted() -> None:
    story = Told(plan(1))
    story.ok(0)
    story.ok(0, b'"other"')
    assert value(story.metrics, "orchestration_conflicting_answers_total") == 1


PLAN = {
    "plan_id": "p1", "intent_id": "i1", "risk_band": "medium", "execution_order": ["a"],
    "tasks": [{"task_id": "a", "task_type": "EXECUTE", "description": "a", "dependencies": []}],
}  # fmt: skip


class TestDeadlines:
    def test_the_most_urgent_one_is_known_and_each_is_noticed_once(self) -> None:
        deadlines = Deadlines()
        for number, timeout in enumerate((100, 50, 200)):
            deadlines.saw(Story(plan(1, timeout=timeout), run=RUN + number).state)
        assert deadlines.least(at(0)) == {"none": 50}
        assert [deadlines.approaching(at(second)) for second in (39, 40, 41, 80, 300)] == [0, 1, 0, 1, 1]
        assert deadlines.ended(RUN + 1, at(45)) == 0  # it was noticed
        assert deadlines.least(at(0)) == {"none": 100}

    def test_what_ends_between_two_looks_is_noticed_too(self) -> None:
        deadlines = Deadlines()
        deadlines.saw(Story(plan(1, timeout=100)).state)
        assert deadlines.ended(RUN, at(90)) == 1
        assert deadlines.approaching(at(91)) == 0

    def test_those_that_ended_are_forgotten(self) -> None:
        deadlines = Deadlines()
        state = Story(plan(1, timeout=100)).state
        for number in range(5000):
            state.run = number
            deadlines.saw(state)
            if number % 2:
                deadlines.least(at(0))  # somebody looks while it is open
            deadlines.ended(number, at(1))
        assert all(len(heap) <= 1001 for heap in (*deadlines._by_deadline.values(), deadlines._by_threshold))
        assert deadlines.least(at(0)) == {}

    def test_each_risk_band_has_its_own(self) -> None:
        deadlines = Deadlines()
        deadlines.saw(Story(plan(1, timeout=100)).state)
        for number, band in enumerate((RiskBand.HIGH, RiskBand.LOW), 1):
            deadlines.saw(Story(made(node("a"), band=band), run=RUN + number).state)
        left = 4 * 3600.0
        assert deadlines.least(at(0)) == {"none": 100, "high": left, "low": left}
        deadlines.forget(RUN + 1)
        assert deadlines.least(at(0)) == {"none": 100, "low": left}


def test_how_urgent_tickets_were_that_went() -> None:
    name = "orchestration_scheduler_priority_score"
    story = Told(made(node("a"), node("b"), band=RiskBand.MEDIUM, priority=Priority.CRITICAL))
    story.confirm(0)
    assert value(story.metrics, f"{name}_count", risk_band="medium") == 1
    assert value(story.metrics, f"{name}_sum", risk_band="medium") == 0.5685
    story.confirm(1, when=100)  # of three minutes more than half are gone
    assert round(value(story.metrics, f"{name}_sum", risk_band="medium"), 6) == round(0.5685 + 0.6885, 6)
    assert value(story.metrics, f"{name}_count", risk_band="high") == 0


async def test_after_a_restart_the_time_that_is_left_is_known_by_risk_band(tmp_path: Path) -> None:
    name = "orchestration_sla_remaining_seconds"
    async with Oraculo(settings_for(tmp_path)) as oraculo:
        for one, seconds in (("a", 600), ("b", 900)):
            await oraculo.submit({"coletas": [{"fonte": "youtube"}], "timeout_s": seconds, "correlation_id": one})
        await desk_of(oraculo).accept(PLAN, actor=LOCAL)
        await oraculo.engine.drained()
    async with Oraculo(settings_for(tmp_path)) as oraculo:
        await until(lambda: len(shown_of(oraculo, name)) == 2)
        found = shown_of(oraculo, name)
        assert set(found) == {"none", "medium"}
        assert 0 < found["none"] <= 600 and 3 * 3600 < found["medium"] <= 4 * 3600
        ended = next(known for known in oraculo.metrics._deadlines.urgent() if known[1].correlation_id == "a")
        await oraculo.cancel("a")
        await until(lambda: shown_of(oraculo, name)["none"] > 600)
        oraculo.metrics._deadlines.opened(*ended)  # as one knows it whose neighbour has ended it
        await until(lambda: shown_of(oraculo, name)["none"] < 600)
        await oraculo.metrics.check_deadlines(store_of(oraculo))
        assert shown_of(oraculo, name)["none"] > 600


def shown_of(oraculo: Oraculo, name: str) -> dict[str, float]:
    """The values of a gauge, by risk band."""
    return {
        dict(labels)["risk_band"]: value for (one, labels), value in samples(oraculo.metrics).items() if one == name
    }


async def test_a_process_measures_itself(tmp_path: Path) -> None:
    async with Oraculo(settings_for(tmp_path)) as oraculo:
        await oraculo.submit({"coletas": [{"fonte": "youtube"}], "timeout_s": 60})
        await oraculo.submit({"coletas": [{"fonte": "youtube"}], "correlation_id": "a"})
        await oraculo.submit({"coletas": [{"fonte": "youtube"}], "correlation_id": "a"})
        for wrong in ({"coletas": 1}, {"tipo": "unknown"}):
            try:
                await oraculo.submit(wrong)
            except Exception:
                continue
        await oraculo.engine.drained()
        await until(lambda: value(oraculo.metrics, "orchestration_event_loop_lag_seconds_count") != 0)
        found = samples(oraculo.metrics)

    def one(name: str, **labels: str) -> float:
        return found[name, tuple(sorted(labels.items()))]

    assert one("orchestration_workflows_active") == 2
    assert 0 < one("orchestration_sla_remaining_seconds", risk_band="none") <= 60
    assert one("orchestration_plan_validations_total", result="invalid") == 2
    assert one("orchestration_plan_validations_total", result="valid") == 3
    assert one("orchestrator_idempotency_cache_hits_total", component="requests") == 1
    assert one("neural_hive_orchestrator_correlation_id_missing_total") == 1
    assert one("orchestration_store_up") == 1
    assert one("orchestration_queue_depth", fila="escavador_youtube") == 2
    assert one("orchestration_outbox_oldest_seconds") == 0
    assert one("process_resident_memory_bytes") > 0
    assert not any(name.startswith("orchestration_kafka") for name, _ in found)


async def test_what_no_broker_takes_grows_old(tmp_path: Path) -> None:
    broker = FailingBroker()
    broker.failures = 10_000
    async with Oraculo(settings_for(tmp_path), broker=broker) as oraculo:
        before = oraculo.now()
        await oraculo.submit({"coletas": [{"fonte": "youtube"}]})
        await until(lambda: value(oraculo.metrics, "orchestration_outbox_oldest_seconds") > 0.1)
        oldest = oraculo.status().effects.oldest
        assert oldest is not None and oldest >= before
        broker.failures = 0
