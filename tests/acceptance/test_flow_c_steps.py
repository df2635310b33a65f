"""`kill -9` at every step of Fluxo C, of everything that can die there: the orchestrator, Temporal, Kafka.

A plan is a diamond of four tasks, one of which fails once. At a named point (runtime/crash.py) its orchestrator dies,
or stands still while a server dies. Whoever died is started again on the same port and data, and the plan ends as if
nothing had happened. POINTS says which points belong to which step.

`make test` visits each step with the engine `temporal`, all of them by one death, since plans do not know of each
other; with the engine `local` a few. `make chaos` visits every point, each by a death of its own.
"""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tools.servers.server import Server as Service
from tools.servers.temporal import settings_of

import servers
from acceptance.chaos import LONG
from acceptance.conftest import Server
from acceptance.hive import DIAMOND, Hive, ended, plan
from acceptance.journals import check, counted
from waiting import DEADLINE_S, eventually

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("flow_c_steps")]


@dataclass(frozen=True, slots=True)
class Point:
    """`found`: plans in the journal, tickets published, plans ended and frames told when an orchestrator gets there;
    None where that depends on who is quicker."""

    step: str
    at: str
    found: tuple[int, int, int, int] | None

    def __str__(self) -> str:
        return f"{self.step}-{self.at}"


Case = tuple[str, Point]  # with this engine, there
BEFORE_WORKFLOW = "before_begin:1"
POINTS = (
    Point("C1", BEFORE_WORKFLOW, (0, 0, 0, 0)),  # the plan is valid, and has no workflow yet
    Point("C1", "before_commit:1", (0, 0, 0, 0)),  # it has one, and is not accepted yet
    Point("C2", "after_commit:1", (1, 0, 0, 0)),  # it is accepted, its tickets exist
    Point("C2", "before_ack:1", None),  # and Kafka does not know that the decision was taken
    Point("C3", "before_publish:1", (1, 0, 0, 0)),  # the first ticket may go
    Point("C4", "after_publish:1", (1, 1, 0, 0)),  # Kafka has it, the journal does not know
    Point("C5", "before_ack:2", None),  # its result is durable, Kafka does not know
    Point("C5", "before_close:1", (1, 5, 0, 0)),  # the last result is consolidated, and not durable yet
    Point("C6", "before_frame:1", (1, 5, 1, 0)),  # the plan has ended, and nobody was told
    Point("C6", "after_frame:1", (1, 5, 1, 1)),  # Kafka has the frame, the journal does not know
)
USUAL = {
    "temporal": (
        BEFORE_WORKFLOW, "before_commit:1", "after_commit:1", "before_publish:1", "after_publish:1", "before_close:1",
        "before_frame:1",
    ),
    "local": ("before_commit:1", "before_publish:1", "after_frame:1"),
}  # fmt: skip
TRIES = {("a", "1"), ("b", "1"), ("b", "2"), ("c", "1"), ("d", "1")}


def cases(*engines: str) -> pytest.MarkDecorator:
    """Those that one death serves: the usual ones, or in `make chaos` each alone."""
    found = [(engine, point) for engine in engines for point in POINTS if LONG or point.at in USUAL[engine]]
    found = [one for one in found if one[0] == "temporal" or one[1].at != BEFORE_WORKFLOW]
    groups = {f"{engine}-{point}": [(engine, point)] for engine, point in found} if LONG else {"each": found}
    return pytest.mark.parametrize("cases", groups.values(), ids=groups)


@dataclass(frozen=True, slots=True)
class Place:
    kafka: Service
    temporal: Service


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("steps")
    with servers.own("kafka", folder) as kafka, servers.own("temporal", folder) as temporal:
        yield Place(kafka, temporal)


def answer(ticket: dict[str, Any]) -> dict[str, Any]:
    name, attempt = ticket["task_id"], ticket["metadata"]["attempt"]
    ok = (name, attempt) != ("b", "1")
    result = {"success": ok, "output": {"task": name}, "metadata": {"attempt": attempt}, "logs": []}
    return {"status": "COMPLETED" if ok else "FAILED", "result": result, "error_message": None if ok else "it broke"}


class Visit:
    """One plan, one orchestrator with a journal and topics of its own, which dies at the point; or it stands still
    there, while `victim` dies."""

    def __init__(self, folder: Path, place: Place, engine: str, point: Point, victim: Service | None) -> None:
        folder.mkdir()
        self.point, self.survives, self.cut_off = point, victim is not None, victim is place.kafka
        self.hive = Hive(place.kafka.url.removeprefix("kafka://"))
        self.plan_id = self.hive.topic("tickets").replace("execution.tickets", "plan")
        self.server = Server(folder, [])
        topics = {name: value for name, value in self.hive.settings.items() if name != "KAFKA_BOOTSTRAP_SERVERS"}
        # Whoever comes back waits until its former self has lost its lease; who stands still must not lose it.
        options = f"lease={10 if self.survives else 2}&confirm_timeout={1 if self.cut_off else 10}&partitions=1"
        self.server.env |= {
            "ORACULO_BROKER": f"{place.kafka.url}?{options}&group={self.plan_id}",
            **topics,
            **settings_of(place.temporal.url),
            "TEMPORAL_TASK_QUEUE": self.plan_id,
            "ORACULO_ENGINE": engine,
        }
        self.worker = self.hive.worker(answer)

    def begin(self) -> None:
        self.hive.decide(plan(self.plan_id, DIAMOND))
        self.worker.start()
        self.server.begin(ORACULO_CRASH_AT=self.point.at + (":stop" if self.survives else ""))

    def arrive(self) -> None:
        """It is at the point."""
        if self.survives:
            eventually(lambda: self.server.stopped)
        else:
            assert self.server.wait(DEADLINE_S) == -signal.SIGKILL, self.point
        assert self.point.found in (None, self._left_behind()), self.point

    def go_on(self) -> None:
        if self.survives:
            self.server.go_on()
        else:
            self.server.begin()

    def _left_behind(self) -> tuple[int, int, int, int]:
        with closing(sqlite3.connect(self.server.store)) as connection:
            plans, over = connection.execute("SELECT count(*), count(closed_at) FROM runs").fetchone()
        return plans, len(self._sent("tickets")), over, len(self._sent("telemetry"))

    def _sent(self, topic: str) -> list[tuple[Any, ...]]:
        return [(one.value(), *one.headers()) for one in self.hive.everything(self.hive.topic(topic))]

    def verify(self) -> None:
        result = ended(self.server, self.plan_id)
        told_again = self.point.at == "after_frame:1" and not self.survives
        frames = 2 if told_again else 1
        eventually(lambda: len(self._sent("telemetry")) >= frames)
        assert self.server.terminate() == 0
        self.worker.__exit__()
        metrics = result["fluxo_c"]["metrics"]
        assert (result["status"], result["fluxo_c"]["status"]) == ("concluida", "SUCCESS"), (self.point, result)
        assert (metrics["total_tickets"], metrics["successful_tickets"], metrics["total_retries"]) == (4, 4, 1)
        self._journal()
        assert {(one["task_id"], one["metadata"]["attempt"]) for one in self.worker.tickets} == TRIES, self.point
        if self.survives and not self.cut_off:
            assert len(self._sent("tickets")) == len(TRIES), "a ticket was sent again, although Kafka has it"
        told = self._sent("telemetry")  # at least once: a copy has the same id, and says the same
        assert len(set(told)) == 1, self.point
        assert len(told) == frames or self.cut_off, self.point

    def _journal(self) -> None:
        """It ends once, has no gap, replays to itself; each result counts once, and nobody was asked once too often."""
        seen = check(self.server.store)
        assert (seen["orchestrations"], seen["concluida"], seen["dead letters"]) == (1, 1, 0), (self.point, seen)
        assert (seen["attempts"], seen["answers applied"]) == (len(TRIES), 4), (self.point, seen)
        results = {verdict: n for (queue, verdict), n in counted(self.server.store).items() if "results" in queue}
        assert results.pop("applied") == len(TRIES), (self.point, results)
        assert set(results) <= {"duplicate"}, (self.point, results)

    def leave(self) -> None:
        if self.worker.is_alive():
            self.worker.__exit__()
        if self.server.running:
            self.server.kill()


def go_through(cases: Sequence[Case], folder: Path, place: Place, victim: Service | None = None) -> None:
    """A visit to each, all at once. `victim` dies while all of them stand still, and comes back."""
    visits = [Visit(folder / f"{engine}-{point}", place, engine, point, victim) for engine, point in cases]
    try:
        for visit in visits:
            visit.begin()
        for visit in visits:
            visit.arrive()
        if victim is not None:
            victim.kill()
        for visit in visits:
            visit.go_on()
        if victim is not None:
            victim.start()
        for visit in visits:
            visit.verify()
    finally:
        for visit in visits:
            visit.leave()


@cases("temporal", "local")
def test_the_orchestrator_dies(cases: list[Case], tmp_path: Path, place: Place) -> None:
    go_through(cases, tmp_path, place)


@cases("temporal", "local")
def test_kafka_dies(cases: list[Case], tmp_path: Path, place: Place) -> None:
    go_through(cases, tmp_path, place, victim=place.kafka)


@cases("temporal")
def test_temporal_dies(cases: list[Case], tmp_path: Path, place: Place) -> None:
    go_through(cases, tmp_path, place, victim=place.temporal)
