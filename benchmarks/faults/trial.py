"""One trial: start a peer, submit at an even pace, kill one part of it in the middle, start it again, and count.

    trial.py --peer celery_redis --variant durable --fault worker

prints one JSON object. Nothing is known of the peer but what its own client says and what its tasks wrote down.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import peer as peers
import task_work

PEERS: dict[str, tuple[str, dict[str, str]]] = {
    "celery_redis": ("celery_peer:CeleryPeer", {"broker": "redis"}),
    "celery_rabbitmq": ("celery_peer:CeleryPeer", {"broker": "rabbitmq"}),
    "dramatiq_redis": ("dramatiq_peer:DramatiqPeer", {"broker": "redis"}),
    "dramatiq_rabbitmq": ("dramatiq_peer:DramatiqPeer", {"broker": "rabbitmq"}),
    "dbos_postgres": ("dbos_peer:DbosPeer", {}),
    "temporal": ("temporal_peer:TemporalPeer", {}),
    "oraculo_redis": ("oraculo_peer:OraculoPeer", {"broker": "redis"}),
    "oraculo_rabbitmq": ("oraculo_peer:OraculoPeer", {"broker": "rabbitmq"}),
}
FAULTS = ("none", "worker", "broker", "orchestrator")
WARM_UP = 5
OFFER_INTERVAL_S = 0.12
OFFER_TIMEOUT_S = 60.0
DOWN_S = 2.0  # between the kill and the new start
SETTLE_TIMEOUT_S = 90.0  # after the new start; what has not ended then is stuck
WARM_UP_TIMEOUT_S = 90.0


@dataclass
class Trial:
    peer: peers.Peer
    offered: int
    accepted: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def start(self) -> None:
        """Servers first, each part once."""
        started: list[peers.Part] = []
        for name in ("broker", "orchestrator", "worker"):
            part = self.peer.parts[name]
            if not any(part is one for one in started):
                part.start()
                started.append(part)

    def warm_up(self) -> None:
        until = time.monotonic() + WARM_UP_TIMEOUT_S
        names = [f"warm-{number}" for number in range(WARM_UP)]
        for name in names:
            while True:
                try:
                    self.peer.submit(name)
                    break
                except Exception:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.3)
        while not all(self._ended(name) for name in names):
            if time.monotonic() > until:
                raise RuntimeError("the warm-up did not end")
            time.sleep(0.1)

    def offer(self) -> None:
        """Submit at an even pace until so many are accepted; for one that is refused another one is submitted."""
        began = time.monotonic()
        for number in itertools.count():
            if len(self.accepted) >= self.offered or time.monotonic() > began + OFFER_TIMEOUT_S:
                return
            time.sleep(max(0.0, began + number * OFFER_INTERVAL_S - time.monotonic()))
            name = f"orchestration-{number}"
            try:
                self.peer.submit(name)
            except Exception as error:
                self.refused[name] = repr(error)[:200]
            else:
                self.accepted.append(name)

    def run(self, fault: str) -> dict[str, Any]:
        offering = threading.Thread(target=self.offer, daemon=True)
        offering.start()
        while len(self.accepted) < self.offered // 3:
            time.sleep(0.01)
        if fault != "none":
            part = self.peer.parts[fault]
            part.kill()
            time.sleep(DOWN_S)
            part.start()
        back = time.monotonic()
        while time.monotonic() < back + SETTLE_TIMEOUT_S:
            if not offering.is_alive() and all([self._ended(name) for name in self.accepted]):
                break
            time.sleep(0.5)
        return {"seconds_after_the_fault": round(time.monotonic() - back, 1), "still_submitting": offering.is_alive()}

    def _ended(self, name: str) -> bool:
        if name not in self.outcomes:
            with contextlib.suppress(Exception):  # it cannot be asked now
                found = self.peer.outcome(name)
                if found is not None:
                    self.outcomes[name] = found
        return name in self.outcomes

    def counted(self, ledger: Path) -> dict[str, Any]:
        accepted = set(self.accepted)
        performed = {key: times for key, times in task_work.performed(ledger).items() if key[1] in accepted}
        ended = {name: outcome for name, outcome in self.outcomes.items() if name in accepted}
        right = [name for name, (how, what) in ended.items() if how == "ended" and task_work.is_right(what)]
        wrong = {name: outcome for name, outcome in ended.items() if name not in right}
        return {
            "refused": len(self.refused),
            "accepted": len(accepted),
            "right": len(right),
            "wrong": len(wrong),
            "stuck": len(accepted) - len(ended),
            "executes_doubled": sum(times > 1 for (kind, _, _), times in performed.items() if kind == "execute"),
            "collects_doubled": sum(times > 1 for (kind, _, _), times in performed.items() if kind == "collect"),
            "examples": {
                "refused": dict(list(self.refused.items())[:2]),
                "wrong": {name: repr(outcome)[:200] for name, outcome in list(wrong.items())[:2]},
            },
        }


def load(name: str, folder: Path, variant: str) -> peers.Peer:
    module, _, attribute = PEERS[name][0].partition(":")
    made: peers.Peer = getattr(importlib.import_module(module), attribute)(folder, variant, **PEERS[name][1])
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--variant", default="default")
    parser.add_argument("--fault", choices=FAULTS, required=True)
    parser.add_argument("-n", type=int, default=120, help="orchestrations that are submitted until they are accepted")
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs")
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))  # stop what was started
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    ledger = folder / "ledger"
    os.environ[task_work.LEDGER] = str(ledger)
    peer = load(wanted.peer, folder, wanted.variant)
    trial = Trial(peer, wanted.n)
    try:
        trial.start()
        trial.warm_up()
        result = trial.run(wanted.fault) | trial.counted(ledger)
    finally:
        for part in peer.parts.values():
            part.kill()
        peer.close()
        if not wanted.keep:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(folder, file=sys.stderr)
    same = [name for name in FAULTS[1:] if wanted.fault in peer.parts and peer.parts[name] is peer.parts[wanted.fault]]
    result |= {"peer": wanted.peer, "variant": wanted.variant, "fault": wanted.fault, "killed_part_is": same}
    result["settings"] = peer.settings
    result["versions"] = {name: importlib.metadata.version(name) for name in peer.packages}
    print(json.dumps(result), flush=True)
    os._exit(0)  # clients of killed servers keep threads that do not end


if __name__ == "__main__":
    main()
