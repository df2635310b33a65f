"""The test kit: the same seed is the same world, every fault happens, and what is wrong with a function is found."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest

from oraculo import Plan, Worker, WorkError
from oraculo.errors import OraculoError
from oraculo.simulation.mutants_runtime import recovery_forgets_owed
from oraculo.testing import FaultRates, KitWorld, SeedFailedError, WorldOutcome, check, run
from oraculo.wire.requests import Defaults


def lines_worker(sent: list[str] | None = None, *, careful: bool = True) -> Worker:
    """A collector of three lines and an executor that sends each; a careless one forgets that it has done so."""
    worker, done = Worker(), sent if sent is not None else []

    @worker.collector("lines")
    async def lines(params: dict[str, Any]) -> list[str]:
        await asyncio.sleep(params.get("seconds", 0.1))
        return ["a", "b", "c"]

    @worker.executor("send")
    def send(params: dict[str, Any], ticket_id: str) -> dict[str, Any]:
        if not careful or ticket_id not in done:
            done.append(ticket_id)
        return {"sent": params["line"]}

    return worker


def lines_plan() -> Plan:
    plan = Plan()
    lines = plan.collect("lines", "lines")
    sent = plan.for_each("sent", lines.data, Plan.executor("send", {"line": Plan.item}))
    plan.output = sent.results
    return plan


def test_a_plan_runs_on_the_engine_and_its_result_is_that_of_the_api() -> None:
    outcome = run(lines_plan(), lines_worker())
    assert outcome.status == "concluida"
    assert outcome.output == [{"sent": "a"}, {"sent": "b"}, {"sent": "c"}]
    assert [(call.function, call.attempt) for call in outcome.calls] == [("lines", 1), *[("send", 1)] * 3]
    assert outcome.result["tarefas"]["lines"]["duracao_ms"] == 100


def test_every_fault_happens_and_nothing_is_lost() -> None:
    report = check(lines_plan(), lines_worker, seeds=40)
    assert report.seeds == 40
    assert all(report.tally[name] > 0 for name in ("kill", "drop", "duplicate", "late"))


def test_only_the_named_faults_happen() -> None:
    report = check(lines_plan(), lines_worker, seeds=15, faults="duplicate")
    assert report.tally["duplicate"] > 0
    assert not any(report.tally[name] for name in ("kill", "drop", "late"))


def test_a_function_that_is_not_idempotent_is_found_and_its_seed_shows_it_again() -> None:
    sent: list[str] = []

    async def story(world: KitWorld) -> None:
        sent.clear()
        await world.result(await world.submit(lines_plan()))
        assert len(sent) == 3, f"sent {len(sent)} times"

    def careless() -> Worker:
        return lines_worker(sent, careful=False)

    with pytest.raises(SeedFailedError, match=r"seed \d+ fails: AssertionError: sent \d times") as failed:
        check(story, careless, seeds=100)
    assert "call send" in str(failed.value)
    with pytest.raises(SeedFailedError, match=r"sent \d times"):
        run(story, careless, seed=failed.value.seed, faults="kill drop duplicate late")
    check(story, lambda: lines_worker(sent), seeds=[failed.value.seed])


def test_a_broken_engine_is_noticed() -> None:
    with recovery_forgets_owed(), pytest.raises(SeedFailedError, match="ended timeout, and concluida without faults"):
        check(lines_plan(), lines_worker, seeds=100, faults="kill")


def traces() -> list[str]:
    found: list[str] = []

    def note(outcome: WorldOutcome) -> None:
        found.append(outcome.trace)

    check(lines_plan(), lines_worker, seeds=range(50, 60), expect=note)
    return found


def test_the_same_seed_is_the_same_world_in_every_process() -> None:
    program = "import sys; sys.path.insert(0, 'tests'); from kit.test_kit import traces; print(traces())"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    other = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == str(traces())


def test_losing_the_last_attempt_too_ends_the_run_as_it_would_in_production() -> None:
    rates = FaultRates(drop=1.0, spare_last=False)
    outcome = run(lines_plan(), lines_worker(), faults=rates)
    assert outcome.status == "erro"
    assert outcome.result["tarefas"]["lines"]["tentativas"] == 3
    assert outcome.calls == []
    with pytest.raises(SeedFailedError, match="ended erro, and concluida without faults"):
        check(lines_plan(), lines_worker, seeds=1, faults=rates)


def test_signals_approvals_and_days_cost_nothing() -> None:
    plan = Plan(webhook="https://example.com/told")
    signal = plan.wait_signal("signal", "go")
    plan.wait_approval("approval", "?", needs=[signal])
    plan.wait_seconds("week", 7 * 86_400, needs=["approval"])
    plan.output = {"went": signal.data, "by": plan.task("approval").data.por}

    async def story(world: KitWorld) -> None:
        name = await world.submit(plan)
        began = world.now
        await world.signal(name, "go", {"fast": True})
        await world.waiting(name, "approval")
        await world.approve(name, by="Ana")
        result = await world.result(name, wait_s=8 * 86_400)
        assert result["saida"] == {"went": {"fast": True}, "by": "Ana"}
        assert (world.now - began).days == 7
        while not world.notices:
            await world.sleep(1)
        assert [told["status"] for told in world.notices] == ["concluida"]

    check(story, seeds=8)


def test_deaths_on_demand() -> None:
    async def story(world: KitWorld) -> list[int]:
        name = await world.submit({"collects": [{"source": "lines", "params": {"seconds": 30}}]})
        await world.sleep(10)
        world.kill()
        world.kill_workers()
        result = await world.result(name)
        assert result["status"] == "concluida"
        return [call.attempt for call in world.calls]

    assert run(story, lines_worker()).value == [1, 1]  # the same attempt: its order came again


def test_a_run_that_cannot_end_says_what_it_waits_for() -> None:
    with pytest.raises(TimeoutError, match=r"run-1 is em_execucao after 30 s of its world: .*lines"):
        run(lambda world: _hang(world))


async def _hang(world: KitWorld) -> None:
    await world.result(await world.submit(lines_plan()), wait_s=30)


def test_functions_fail_retry_and_time_out_as_in_production() -> None:
    worker = Worker()

    @worker.collector("flaky")
    def flaky(tentativa: int) -> int:
        if tentativa == 1:
            raise WorkError("not yet", code="early")
        return tentativa

    @worker.collector("slow")
    async def slow(tentativa: int) -> str:
        await asyncio.sleep(3600 if tentativa == 1 else 0)
        return await asyncio.to_thread(lambda: "done")

    @worker.collector("network")
    async def network() -> None:
        await asyncio.open_connection("127.0.0.1", 1)

    sources = [{"source": name} for name in ("flaky", "slow", "network")]
    found = run({"collects": sources, "fan_in": {"mode": "all"}}, worker, defaults=Defaults(ticket_timeout_s=5)).result
    assert [one["dados"] for one in found["coletas"]] == [2, "done", None]
    assert "no network" in found["coletas"][2]["erros"][-1]["mensagem"]


def test_task_types_may_be_given() -> None:
    types = {"all_lines": lines_plan().to_dict()}
    assert run({"type": "all_lines"}, lines_worker(), types=types).output == [{"sent": one} for one in "abc"]


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(ValueError, match="'fire' is no fault; there are kill, drop, duplicate, late"):
        check(lines_plan(), faults="fire")
    with pytest.raises(ValueError, match="drop is 2; a rate is from 0 to 1"):
        FaultRates(drop=2)
    with pytest.raises(OraculoError, match="source"):
        run({"collects": [{"sourc": "lines"}]})


async def test_a_running_event_loop_is_refused() -> None:
    with pytest.raises(RuntimeError, match="plain test function"):
        run(lines_plan())
