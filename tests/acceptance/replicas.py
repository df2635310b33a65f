"""Several orchestrators on one PostgreSQL database and one broker, a load on them, and the means to hurt each."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import psycopg

from acceptance.conftest import Server
from acceptance.fleet import WorkerProcess
from acceptance.journals import check, counted
from databases import unbound
from waiting import eventually

LEASE = 2.0  # seconds
PATIENCE = 90.0


class Replica(Server):
    def __init__(self, folder: Path, name: str, store: str, broker: str, *arguments: str, **env: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder, list(arguments))
        self.name = name
        self.env |= {
            "ORACULO_STORE": store,
            "ORACULO_BROKER": broker,
            "ORACULO_REPLICA_NAME": name,
            "ORACULO_REPLICA_LEASE_S": f"{LEASE:g}",
            "ORACULO_TICKET_TIMEOUT_S": "60",
            **env,
        }

    def freeze(self) -> None:
        assert self.popen is not None
        self.popen.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.popen is not None
        self.popen.send_signal(signal.SIGCONT)


class Replicas:
    """`count` replicas and a worker. `load` submits in the background, each request to any that answers."""

    def __init__(self, folder: Path, store: str, broker: str, count: int = 3, **env: str) -> None:
        self.store = store
        self.all = [Replica(folder / f"r{n}", f"r{n}", store, broker, **env) for n in range(count)]
        self.worker = WorkerProcess(folder / "worker", broker)
        self.accepted: list[str] = []
        self.hit: list[int] = []  # how much each fault found under way
        self.refused: Counter[int] = Counter()  # status of answers that were no 202
        self._luck = random.Random(1)
        self._threads: list[threading.Thread] = []
        self._wanted = 0
        self._next = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        for one in self.all:
            one.up()
        self.worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._wanted = 0
        for thread in self._threads:
            thread.join(30)
        self.worker.kill()
        for one in self.all:
            if one.running:
                one.thaw()
                one.kill()

    # -- load --------------------------------------------------------------------------------------------------------

    def load(self, count: int = 1_000_000, threads: int = 4, pace: float = 0.02) -> None:
        """In the background, until so many are accepted, or until `rest(now=True)`."""
        self._wanted = count
        self._threads = [threading.Thread(target=self._submit, args=(pace,)) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _submit(self, pace: float) -> None:
        while True:
            with self._lock:
                if self._next >= self._wanted:
                    return
                self._next += 1
                number = self._next
            self.submit(number)
            time.sleep(pace)

    def submit(self, number: int) -> None:
        """What gets no answer is sent again with the same id, to any replica."""
        body: dict[str, Any] = {"correlation_id": f"pedido-{number}", "timeout_s": 600}
        body["coletas"] = [{"fonte": f"bench_{one}", "parametros": {"n": number}} for one in "abc"]
        body["execucoes"] = [{"executador": "bench_soma"}]
        while self._wanted:
            answer = self._luck.choice(self.all).call("POST", "/api/v1/orchestrations", json=body, timeout=5)
            if answer is not None and answer.status_code == 202:
                self.accepted.append(f"pedido-{number}")
                return
            if answer is not None:
                self.refused[answer.status_code] += 1
                assert answer.status_code == 503, answer.text
                assert answer.headers["content-type"] == "application/problem+json", answer.text
            time.sleep(0.05)

    def rest(self, *, now: bool = False) -> None:
        """All that was asked for is accepted; `now`: no more than has been asked for so far."""
        if now:
            with self._lock:
                self._wanted = min(self._wanted, self._next)
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    # -- looking -----------------------------------------------------------------------------------------------------

    def until(self, what: Callable[[], bool], why: str, patience: float = PATIENCE) -> float:
        """Seconds until it was so."""
        began = time.monotonic()
        try:
            eventually(what, why, within=patience)
        except AssertionError as error:
            error.add_note("\n".join(f"{one.name}: {(one.cwd / 'stderr.log').read_text()[-2000:]}" for one in self.all))
            raise
        return time.monotonic() - began

    def members(self, ask: Replica) -> list[str]:
        answer = ask.call("GET", "/api/v1/replicas")
        return [] if answer is None or answer.status_code != 200 else [one["nome"] for one in answer.json()["replicas"]]

    def fences(self, ask: Replica) -> int:
        answer = ask.call("GET", "/api/v1/replicas")
        return 0 if answer is None or answer.status_code != 200 else int(answer.json()["cercas"])

    def ended(self) -> int:
        """How many orchestrations have ended."""
        with psycopg.connect(unbound(self.store)) as connection:
            rows = connection.execute("SELECT count(*) FROM runs WHERE closed_at IS NOT NULL").fetchall()
        return int(rows[0][0])

    def unfinished(self) -> int:
        """How many tickets are not closed yet."""
        with psycopg.connect(unbound(self.store)) as connection:
            rows = connection.execute("SELECT coalesce(sum(open), 0) FROM runs WHERE closed_at IS NULL").fetchall()
        return int(rows[0][0])

    def some_more(self, count: int = 5) -> None:
        before = self.ended()
        self.until(lambda: self.ended() >= before + count, f"{count} more orchestrations end")

    # -- the end -----------------------------------------------------------------------------------------------------

    def verify(self) -> Counter[str]:
        """Everything that was accepted ended well and once; answers were counted once; every journal replays."""
        assert sum(map(bool, self.hit)) >= len(self.hit) / 2, f"most faults found nothing to interrupt: {self.hit}"
        for name in self.accepted:
            number = int(name.rpartition("-")[2])
            result = self._luck.choice(self.all).result(name, PATIENCE)
            assert result["status"] == "concluida", (name, result)
            assert result["execucoes"][0]["resultado"]["soma"] == 3 * number, result
        for one in self.all:
            assert one.terminate() == 0
        seen = check(self.store)
        assert seen["concluida"] == seen["orchestrations"] == len(self.accepted) == len(set(self.accepted))
        counts = counted(self.store)
        applied = sum(n for (queue, verdict), n in counts.items() if verdict == "applied" and "resultados" in queue)
        assert applied == seen["answers applied"], (applied, seen)
        for (queue, verdict), n in counts.items():
            if "resultados" in queue:
                seen[verdict] += n
        return seen
