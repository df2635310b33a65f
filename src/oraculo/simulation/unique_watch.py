"""What must hold of requests that exist once, said again without a line of the core: an equal one that may not be
begins no run, and each that was merged was merged rightly and is written down."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from math import inf
from typing import Any

from oraculo.core.events import OrchestrationClosed, OrchestrationStarted
from oraculo.core.state import Orchestration
from oraculo.ports.journal import Recorded
from oraculo.ports.store import Store
from oraculo.ports.unique_keys import RECENT_MAX_REQUESTS, KeyHolder
from oraculo.simulation.scene import Scene

RULE = "equal requests are one"
COUNTED = "what was merged is written down"


class UniqueWatch:
    """`states` are the committed ones."""

    def __init__(self, scene: Scene, states: Mapping[int, Orchestration]) -> None:
        self._scene = scene
        self._states = states
        self._runs: dict[str, list[tuple[datetime, int]]] = {}  # key → when its runs began, and which they are
        self._asked: dict[str, dict[str, Any]] = {}  # by the name that was asked for
        self._asked_at: dict[str, float] = {}
        self._closed_at: dict[int, float] = {}  # by the clock of the world, which no process sees
        self._merged: dict[int, list[str]] = {}  # run → names of requests whose clients were told that they are it

    def asked(self, name: str, rule: dict[str, Any]) -> None:
        self._asked[name], self._asked_at[name] = rule, self._scene.loop.time()

    def merged(self, name: str, run: int) -> None:
        """A client was told that its request is one with this run."""
        self._scene.count("requests merged")
        if run not in self._states:
            self._scene.violate("acceptance is durable", f"{name} was merged into a run that is not in the journal")
        self._merged.setdefault(run, []).append(name)

    def committed(self, recorded: Recorded) -> None:
        for event in recorded.events:
            if isinstance(event, OrchestrationClosed):
                self._closed_at[recorded.run] = self._scene.loop.time()
            if not isinstance(event, OrchestrationStarted) or event.plan.unique is None:
                continue
            earlier = self._runs.setdefault(event.plan.unique.key, [])
            if earlier:
                since, run = max(earlier)
                name = self._states[recorded.run].correlation_id
                if self._is_one(self._asked[name], run not in self._closed_at, since, recorded.at):
                    self._scene.violate(RULE, f"{name} began beside {self._states[run].correlation_id}")
            earlier.append((recorded.at, recorded.run))

    @staticmethod
    def _is_one(rule: dict[str, Any], is_open: bool, since: datetime, at: datetime) -> bool:
        """Return whether a request with this rule is one with a run of the same key."""
        if rule["modo"] == "aberta":
            return is_open
        return rule["modo"] == "sempre" or at < since + timedelta(seconds=rule["janela_s"])

    async def check_end(self, store: Store, by_messages: int) -> None:
        """`by_messages` were counted as merged."""
        told, written = by_messages, 0
        for since, run in (one for runs in self._runs.values() for one in runs):
            holder = await store.key_holder(run)
            names = self._merged.get(run, [])
            if holder is None:
                self._scene.violate(COUNTED, f"run {run} has no key")
                return
            told += len(names)
            written += holder.merged
            self._check_merged(holder, names, since)
        if told > written:
            self._scene.violate(COUNTED, f"{told} were merged, {written} are written down")

    def _check_merged(self, holder: KeyHolder, names: list[str], since: datetime) -> None:
        for one in holder.recent:
            name = one.correlation_id or ""
            was_open = self._asked_at[name] < self._closed_at.get(holder.run, inf)
            if not self._is_one(self._asked[name], was_open, since, one.at):
                self._scene.violate(RULE, f"{one.correlation_id} was merged into {holder.correlation_id} too late")
        missing = set(names) - {one.correlation_id for one in holder.recent}
        if missing and holder.merged <= RECENT_MAX_REQUESTS:
            self._scene.violate(COUNTED, f"{sorted(missing)} are missing at {holder.correlation_id}")
