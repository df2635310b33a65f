"""How cost grows beyond one machine: limits reckoned from measured parts, and a simulation that checks them.

Input is what `scaling_parts.py` measured. The limits are simple division: what a part needs for one orchestration
against what there is of it. The simulation plays replicas that take what has come to them, compute, write, and wait for
the tail of the journal, which one commit holds at a time; it shows what division cannot: how large batches grow, and
how long a step waits.

    python -m benchmarks.scaling_model --parts PARTS.json --json SCALING.json
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

REPLICAS = (10, 100, 1000)
DATABASE_CORES = 16
BROKER_CORES = 1  # Redis computes on one
CONNECTIONS_OF_A_REPLICA = 6
CONNECTIONS_USUAL = 100  # max_connections of PostgreSQL, as it comes
BATCH_MAX_STEPS = 512
SIMULATED_S = 6.0
WARM_UP_S = 2.0  # of them, in which nothing is counted
SHARES = (0.1, 0.5, 0.8)  # of what the lowest limit allows
EXCHANGE_MS = 0.3  # from a replica to the database and back, in one data centre


@dataclass(frozen=True, slots=True)
class Limit:
    """What a part allows: orchestrations a second, and what it is called."""

    part: str
    per_second: float


@dataclass(frozen=True, slots=True)
class Played:
    """What the simulation saw at one offered rate."""

    replicas: int
    offered: float  # orchestrations a second
    done: float
    wait_p50_s: float  # of one step, from when it came until it was durable
    wait_p99_s: float
    steps_a_commit: float
    tail_busy: float  # share of the time


def limits(parts: Mapping[str, Any], replicas: int) -> list[Limit]:
    """Every limit of so many replicas, the lowest first. A worker of its own core stands beside each replica."""
    steps = parts["steps_each"]
    full = parts["tail_hold_ms"] / BATCH_MAX_STEPS + parts["tail_hold_ms_each_step"]
    found = [
        Limit("replicas", replicas * 1000 / parts["orchestrator_cpu_ms_each"]),
        Limit("workers", replicas * 1000 / parts["worker_cpu_ms_each"]),
        Limit(f"database, {DATABASE_CORES} cores", DATABASE_CORES * 1000 / parts["database_cpu_ms_each"]),
        Limit("one Redis", BROKER_CORES * 1000 / parts["broker_cpu_ms_each"]),
        Limit("tail of the journal", 1000 / (steps * full)),
    ]
    return sorted(found, key=lambda one: one.per_second)


def connections(replicas: int) -> int:
    """Connections that PostgreSQL has to allow."""
    return replicas * CONNECTIONS_OF_A_REPLICA


@dataclass(slots=True)
class _Replica:
    waiting: deque[float] = field(default_factory=deque)  # when each step came
    batch: list[float] = field(default_factory=list)


class Simulation:
    """One run at one rate. Steps come at random instants to random replicas; the seed decides all of it."""

    def __init__(self, parts: Mapping[str, Any], replicas: int, offered: float, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._compute_s = parts["orchestrator_cpu_ms_each"] / parts["steps_each"] / 1000
        self._write_s = parts["database_cpu_ms_each"] / parts["steps_each"] / 1000
        self._hold_s = parts["tail_hold_ms"] / 1000
        self._hold_step_s = parts["tail_hold_ms_each_step"] / 1000
        self._rate = offered * parts["steps_each"]
        self._steps_each = parts["steps_each"]
        self._offered = offered
        self._replicas = [_Replica() for _ in range(replicas)]
        self._events: list[tuple[float, int, str, int]] = []
        self._number = 0
        self._tail: deque[int] = deque()
        self._tail_taken = False
        self._tail_busy_s = 0.0
        self._cores: deque[int] = deque()
        self._cores_free = DATABASE_CORES
        self._waits: list[float] = []
        self._commits = 0
        self._counted_from = 0.0

    def run(self, seconds: float = SIMULATED_S, warm_up: float = WARM_UP_S) -> Played:
        self._counted_from = warm_up
        now = 0.0
        self._plan(self._random.expovariate(self._rate), "came", 0)
        while now < seconds:
            now, _, what, who = heapq.heappop(self._events)
            if what == "came":
                chosen = self._random.randrange(len(self._replicas))
                self._replicas[chosen].waiting.append(now)
                self._begin(chosen, now)
                self._plan(now + self._random.expovariate(self._rate), "came", 0)
            elif what == "computed":
                self._cores.append(who)
                self._write(now)
            elif what == "written":
                self._cores_free += 1
                self._write(now)
                self._tail.append(who)
                self._hold(now)
            else:
                self._tail_taken = False
                self._committed(who, now)
                self._hold(now)
        return self._played(now - warm_up)

    def _plan(self, at: float, what: str, who: int) -> None:
        self._number += 1
        heapq.heappush(self._events, (at, self._number, what, who))

    def _begin(self, who: int, now: float) -> None:
        replica = self._replicas[who]
        if replica.batch or not replica.waiting:
            return
        count = min(len(replica.waiting), BATCH_MAX_STEPS)
        replica.batch = [replica.waiting.popleft() for _ in range(count)]
        self._plan(now + count * self._compute_s + EXCHANGE_MS / 1000, "computed", who)

    def _write(self, now: float) -> None:
        while self._cores and self._cores_free:
            who = self._cores.popleft()
            self._cores_free -= 1
            self._plan(now + len(self._replicas[who].batch) * self._write_s, "written", who)

    def _hold(self, now: float) -> None:
        if self._tail and not self._tail_taken:
            who = self._tail.popleft()
            self._tail_taken = True
            held = self._hold_s + len(self._replicas[who].batch) * self._hold_step_s
            if now >= self._counted_from:
                self._tail_busy_s += held
            self._plan(now + held, "committed", who)

    def _committed(self, who: int, now: float) -> None:
        replica = self._replicas[who]
        if now >= self._counted_from:
            self._waits += [now - at for at in replica.batch]
            self._commits += 1
        replica.batch = []
        self._begin(who, now)

    def _played(self, seconds: float) -> Played:
        waits = sorted(self._waits)
        count = len(waits)
        return Played(
            len(self._replicas),
            round(self._offered, 1),
            round(count / self._steps_each / seconds, 1),
            round(waits[count // 2], 4),
            round(waits[count * 99 // 100], 4),
            round(count / self._commits, 1),
            round(min(1.0, self._tail_busy_s / seconds), 3),
        )


def played(parts: Mapping[str, Any], shares: Sequence[float] = SHARES) -> list[Played]:
    """The simulation at shares of what the lowest limit allows, for each number of replicas."""
    return [
        Simulation(parts, replicas, limits(parts, replicas)[0].per_second * share).run()
        for replicas in REPLICAS
        for share in shares
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Limits and a simulation of many replicas, from measured parts.")
    parser.add_argument("--parts", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    wanted = parser.parse_args()
    parts = json.loads(wanted.parts.read_text())
    record = {
        "parts": parts,
        "limits": {str(count): [asdict(one) for one in limits(parts, count)] for count in REPLICAS},
        "connections": {str(count): connections(count) for count in REPLICAS},
        "played": [asdict(one) for one in played(parts)],
    }
    wanted.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
