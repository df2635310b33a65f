"""An orchestrator, a worker and brokers as real processes, a load on them, and the means to hurt each."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from tools.servers.server import Server as Service

from acceptance.conftest import Server
from acceptance.journals import check, counted, owed, unfinished
from forked import Forked
from waiting import eventually

WORKER = "slow_work:worker"
HERE = str(Path(__file__).parent)
PATIENCE = 90.0  # seconds for everything to end once the faults are over
NAMES = ("rabbitmq", "redis", "nats", "kafka")
# They notice soon what died and give soon to others what it held; with the defaults that would be most of a test.
QUICK = {
    "rabbitmq": "?confirm_timeout=1&heartbeat=3",
    "redis": "?confirm_timeout=1&lease=2",
    "nats": "?confirm_timeout=1&lease=2",
    "kafka": "?confirm_timeout=1&lease=2",
}
WIDE = 1_000_000  # numbers of wide orchestrations begin here


def through(url: str, port: int) -> str:
    """The same URL on another port: that of a proxy before the server."""
    return re.sub(r"(://[^/?]*?:)\d+", rf"\g<1>{port}", url, count=1)


class WorkerProcess:
    """`oraculo worker` on a broker."""

    def __init__(self, folder: Path, broker: str, target: str = WORKER) -> None:
        self.folder, self.broker, self.target = folder, broker, target
        self.env: dict[str, str] = {}
        self._process: Forked | None = None

    def start(self) -> Self:
        self.folder.mkdir(exist_ok=True)
        env = {**os.environ, "ORACULO_BROKER": self.broker, "LOG_LEVEL": "WARNING", "PYTHONPATH": HERE} | self.env
        self._process = Forked(["worker", self.target], self.folder, env, self.folder / "stderr.log")
        return self

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE)
            self._process.stdout.close()


class Fleet:
    """One orchestrator and one worker on `broker` (a URL, or several), with `services` behind it."""

    def __init__(self, folder: Path, broker: str, services: Sequence[Service], **env: str) -> None:
        self.folder = folder
        self.services = list(services)
        self.server = Server(folder, [])
        self.server.env |= {"ORACULO_BROKER": broker, "ORACULO_TICKET_TIMEOUT_S": "60", **env}
        self.worker = WorkerProcess(folder / "worker", broker)
        self.accepted: dict[str, int] = {}  # correlation_id → number
        self.hit: list[int] = []  # how much each fault of `hurt` found under way
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._submit)
        self._pace = 0.05

    def __enter__(self) -> Self:
        for service in self.services:
            service.start()
        self.server.up()
        self.worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(30)
        self.worker.kill()
        if self.server.running:
            self.server.kill()
        for service in self.services:
            service.kill()

    # -- load --------------------------------------------------------------------------------------------------------

    def load(self, pace: float = 0.05) -> None:
        """W1 orchestrations, one after another, until `rest`."""
        self._pace = pace
        self._thread.start()

    def _submit(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            self.submit(number)
            self._stop.wait(self._pace)

    def submit(self, number: int, width: int = 0) -> str:
        """What gets no answer is sent again with the same id, for ever."""
        name = f"pedido-{number}"
        body: dict[str, Any] = {"correlation_id": name, "timeout_s": 600}
        if width and number % 2 == 0:
            item = {"fonte": "bench_lento", "parametros": {"n": "${{ item }}"}}
            body["tarefas"] = {"m": {"para_cada": list(range(width)), "faz": item}}
        elif width:
            body["coletas"] = [{"fonte": "bench_lento", "parametros": {"n": n}} for n in range(width)]
        else:
            body["coletas"] = [{"fonte": f"bench_{one}", "parametros": {"n": number}} for one in "abc"]
            body["execucoes"] = [{"executador": "bench_soma"}]
        while not self._stop.is_set():
            answer = self.server.call("POST", "/api/v1/orchestrations", json=body)
            if answer is not None and answer.status_code == 202:
                self.accepted[name] = width or -number
                break
            assert answer is None or answer.status_code == 503, answer.text
            self._stop.wait(0.05)
        return name

    def hurt(self, how: Callable[[], None], width: int = 200) -> None:
        """In the middle of a wide orchestration: the broker or the worker has its orders, most answers are missing."""
        name = self.submit(WIDE + len(self.hit), width)
        self.until(lambda: owed(self.server.store, name) < width, "the broker has its orders", pause=0.01)
        how()
        self.hit.append(unfinished(self.server.store, name))

    def rest(self) -> None:
        """No more load."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(30)
        self._stop.clear()

    # -- looking -----------------------------------------------------------------------------------------------------

    def until(self, what: Callable[[], bool], why: str, patience: float = PATIENCE, pause: float = 0.05) -> float:
        """Seconds until it was so."""
        began = time.monotonic()
        try:
            eventually(what, why, within=patience, pause=pause)
        except AssertionError as error:
            error.add_note(self._state())
            raise
        return time.monotonic() - began

    def _state(self) -> str:
        """What a reader of a failed test wants to see."""
        logs = {one: (one / "stderr.log").read_text()[-3000:] for one in (self.folder, self.folder / "worker")}
        return "\n".join(
            [
                f"submitting: {self._thread.is_alive()}, accepted: {len(self.accepted)}, completed: {self.completed()}",
                f"brokers: {self.brokers()}",
                *(f"{folder.name}: {log}" for folder, log in logs.items()),
            ]
        )

    def json(self, path: str) -> Any:
        answer = self.server.call("GET", path)
        return None if answer is None or answer.status_code != 200 else answer.json()

    def completed(self) -> float:
        """Orchestrations that ended since the orchestrator started."""
        return sum(self.metric("orchestration_workflows_completed_total").values())

    def metric(self, name: str) -> dict[str, float]:
        """Labels → value; empty when the orchestrator is not there."""
        answer = self.server.call("GET", "/metrics")
        if answer is None:
            return {}
        found = re.findall(rf"^{name}(\{{.*?\}})? (\S+)$", answer.text, re.MULTILINE)
        return {labels: float(value) for labels, value in found}

    def some_more(self, count: int = 3) -> None:
        """Orchestrations are ending: the system lives, and it is under load."""
        before = self.completed()
        self.until(lambda: self.completed() - before >= count, f"{count} more orchestrations")

    def brokers(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json("/api/v1/brokers") or {"brokers": [], "eventos": []}
        return found

    def active(self) -> str:
        return next((one["nome"] for one in self.brokers()["brokers"] if one["publica"]), "")

    # -- the end -----------------------------------------------------------------------------------------------------

    def verify(self) -> Counter[str]:
        """Everything that was accepted ended well and once; every counter adds up; nothing is left in a queue."""
        assert sum(map(bool, self.hit)) >= len(self.hit) / 2, f"most faults found nothing to interrupt: {self.hit}"
        for name, number in self.accepted.items():
            result = self.server.result(name, PATIENCE)
            assert result["status"] == "concluida", (name, result["status"], result)
            if number > 0:
                data = (
                    result["tarefas"]["m"]["resultados"]
                    if "tarefas" in result
                    else [one["dados"] for one in result["coletas"]]
                )
                assert [one["n"] for one in data] == list(range(number))
            else:
                assert [one["dados"] for one in result["coletas"]] == [{"n": -number}] * 3
                assert result["execucoes"][0]["resultado"]["soma"] == -3 * number, result
        self.until(self._drained, "every queue is empty")
        self._received_adds_up()
        assert self.server.terminate() == 0
        seen = check(self.server.store)
        assert seen["concluida"] == seen["orchestrations"] == len(self.accepted)
        counts = counted(self.server.store)
        answers = {key: n for key, n in counts.items() if key[0].startswith("orquestrador_resultados")}
        applied = sum(n for (_, verdict), n in answers.items() if verdict == "applied")
        assert applied == seen["answers applied"], (applied, seen)
        assert sum(n for (_, verdict), n in counts.items() if verdict == "quarantined") == seen["dead letters"]
        for (_, verdict), n in answers.items():
            seen[verdict] += n
        return seen

    def _drained(self) -> bool:
        found = self.brokers()["brokers"]
        return bool(found) and all(one["ok"] and not one["aguardando"] for one in found)

    def _received_adds_up(self) -> None:
        """Within one life of the orchestrator: what was taken = the verdicts + what was given back."""

        def equal() -> bool:
            received = sum(self.metric("orchestration_messages_received_total").values())
            returned = sum(self.metric("orchestration_messages_returned_total").values())
            verdicts = self.metric("orchestration_messages_total")
            queued = sum(n for labels, n in verdicts.items() if ".dlq" not in labels)
            return received == returned + queued

        self.until(equal, "received = verdicts + returned")
