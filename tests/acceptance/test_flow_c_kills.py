"""Fluxo C while it is being hurt: the orchestrator dies between any two steps, Kafka is killed. Every plan ends once,
no ticket is worked on twice, and what was to be told is told, in order.

`make test` kills each once; `make chaos` (ORACULO_CHAOS_KILLS) more often, and at every point between two steps.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import servers
from acceptance.chaos import LONG, times
from acceptance.conftest import Server
from acceptance.fleet import QUICK
from acceptance.hive import DIAMOND, Hive, plan
from acceptance.journals import check
from waiting import eventually

KILLS = times(1)
POINTS = ["after_commit:2", "before_commit:2", "before_commit:3", "after_publish:1", "after_publish:2", "before_ack:1",
          "before_ack:3"]  # fmt: skip


def orchestrator(server: Callable[..., Server], url: str, hive: Hive) -> Server:
    one = server()
    topics = {name: value for name, value in hive.settings.items() if name != "KAFKA_BOOTSTRAP_SERVERS"}
    one.env |= {"ORACULO_BROKER": url + QUICK["kafka"], **topics}
    return one


def hive_of(url: str) -> Hive:
    return Hive(url.removeprefix("kafka://").rstrip("/"))


def plans_of(messages: list[Any]) -> list[str]:
    return [json.loads(one.value())["correlation"]["plan_id"] for one in messages]


@pytest.mark.parametrize("point", POINTS if LONG else [])
def test_a_crash_between_two_steps(server: Callable[..., Server], point: str) -> None:
    url = servers.shared("kafka")
    if servers.imitated("kafka"):
        pytest.skip("only an imitation of Kafka is here")
    hive = hive_of(url)
    one = orchestrator(server, url, hive)
    one.up(ORACULO_CRASH_AT=point)
    with hive.worker() as worker:
        hive.decide(plan("crash", DIAMOND))
        until = time.monotonic() + 60
        while one.running:
            assert time.monotonic() < until, "it did not crash"
            time.sleep(0.05)
        one.wait()
        one.up()
        told = hive.read(hive.topic("telemetry"), lambda seen: len(seen) >= 1)
        assert plans_of(told)[0] == "crash"
        assert {attempt for _, attempt in worker.attempts} == {"1"}
        assert len(worker.attempts) == 4
    assert one.terminate() == 0
    seen = check(one.store)
    assert (seen["concluida"], seen["attempts"]) == (1, 4)


@pytest.mark.timeout(300 + 60 * KILLS)
def test_the_orchestrator_and_kafka_are_killed_in_turn(server: Callable[..., Server], tmp_path: Path) -> None:
    kafka = servers.own("kafka", tmp_path)
    with kafka:
        hive = hive_of(kafka.url)
        one = orchestrator(server, kafka.url, hive)
        one.up()
        brought = 0

        def bring(count: int) -> None:
            nonlocal brought
            for _ in range(count):
                hive.decide(plan(f"p{brought}", DIAMOND))
                brought += 1

        with hive.worker() as worker:
            for _ in range(KILLS):
                seen = len(worker.tickets)
                bring(15)
                eventually(lambda seen=seen: len(worker.tickets) > seen)
                one.kill()
                one.up()
                bring(5)
                seen = len(worker.tickets)
                eventually(lambda seen=seen: len(worker.tickets) > seen)
                kafka.kill()
                kafka.start()
                bring(5)
            told = hive.read(hive.topic("telemetry"), lambda seen: len(set(plans_of(seen))) == brought, 150)
        assert one.terminate() == 0
        found = check(one.store)
    assert (found["orchestrations"], found["concluida"]) == (brought, brought)
    assert found["attempts"] == 4 * brought, "a ticket was tried again although nobody failed"
    print(f"\n{KILLS} kills of each: {brought} plans, {found['attempts']} tickets, {len(told)} frames")
