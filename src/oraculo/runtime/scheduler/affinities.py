"""Who did what of which plan: where affinity is on, what the scores of workers are multiplied by (core/affinity.py).

The journal says who got the tickets of a plan; choices of this process are counted at once, those of others when the
plan is read again. What a worker has in hand is known by its leases.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from oraculo.core.affinity import NO_TIES, AffinityWeights, TicketTies, affinity
from oraculo.core.candidates import WorkerFacts
from oraculo.core.flow.profile import flow_in
from oraculo.core.state import Orchestration
from oraculo.core.vocabulary import Phase, Priority, RiskBand, Status

READ_AGAIN_S = 5.0  # a plan has thousands of tickets, and each of them is offered
PLAN, INTENT = "plan", "intent"  # as Fluxo C calls them in its metrics
PLANS_MAX = 2_000  # whose workers are known


@dataclass(frozen=True, slots=True)
class AffinityOptions:
    """`bands` and `priorities`: tickets of which are critical, and spread over workers. `kept`: for how long it counts
    that a ticket went to a worker; None: as long as its plan runs."""

    enabled: bool = False
    weights: AffinityWeights = field(default_factory=AffinityWeights)
    bands: frozenset[RiskBand] = frozenset({RiskBand.CRITICAL, RiskBand.HIGH})
    priorities: frozenset[Priority] = frozenset({Priority.CRITICAL, Priority.HIGH})
    kept: timedelta | None = None


@dataclass(slots=True)
class _Plan:
    read_at: float
    tickets: Counter[str]  # name of a worker → those that went to it, and did not fail


@dataclass(slots=True)
class Affinities:
    """The tickets of each plan by worker, where affinity is on."""

    options: AffinityOptions = field(default_factory=AffinityOptions)
    _plans: OrderedDict[int, _Plan] = field(default_factory=OrderedDict)

    def read(self, state: Orchestration, at: float, now: datetime) -> None:
        """Count who got the tickets of a plan, unless that was done a moment ago; `at`: the clock of the event loop."""
        if not self.options.enabled:
            return
        known = self._plans.pop(state.run, None)
        if known is None or at - known.read_at >= READ_AGAIN_S:
            kept = self.options.kept
            known = _Plan(at, _who_got(state, None if kept is None else now - kept))
        self._plans[state.run] = known
        if len(self._plans) > PLANS_MAX:
            self._plans.popitem(last=False)

    def ties_of(self, state: Orchestration, priority: Priority) -> TicketTies:
        """What a ticket of this priority has in common with others."""
        if not self.options.enabled:
            return NO_TIES
        flow = flow_in(state.plan)
        band = None if flow is None else flow.risk_band
        critical = priority in self.options.priorities or band in self.options.bands
        return TicketTies("" if flow is None else flow.intent_id, critical)

    def gave(self, run: int, worker: str) -> None:
        """A worker gets a ticket of a plan."""
        if (known := self._plans.get(run)) is not None:
            known.tickets[worker] += 1

    def did(self, run: int, worker: str) -> int:
        """How many tickets of a plan went to a worker."""
        known = self._plans.get(run)
        return 0 if known is None else known.tickets[worker]

    def shared(self, worker: WorkerFacts, run: int, ties: TicketTies) -> tuple[tuple[str, bool], ...]:
        """What a ticket may have in common with others, and whether the worker had any of those."""
        if not self.options.enabled:
            return ()
        of_plan = (PLAN, self.did(run, worker.name) > 0)
        if not ties.intent:
            return (of_plan,)
        return of_plan, (INTENT, any(one.intent == ties.intent for one in worker.ties))

    def of(self, worker: WorkerFacts, run: int, ties: TicketTies) -> float | None:
        """The affinity of a worker and a ticket; None: it is off."""
        if not self.options.enabled:
            return None
        return affinity(self.options.weights, self.did(run, worker.name), ties, worker.ties)


def _who_got(state: Orchestration, since: datetime | None) -> Counter[str]:
    return Counter(
        ticket.allocated.allocation.agent_id
        for ticket in state.tickets
        if ticket.allocated is not None
        and (since is None or ticket.allocated.at >= since)
        and (ticket.phase is Phase.RUNNING or ticket.status is Status.CONCLUIDA)
    )
