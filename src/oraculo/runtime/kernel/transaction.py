"""One transaction in the making: the steps, dead letters and counts of many pieces of work, committed at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from oraculo.core.commands import Start
from oraculo.core.state import Orchestration
from oraculo.core.step import Step
from oraculo.core.tenants import in_tenant, local_name, tenant_of
from oraculo.core.uniqueness import Uniqueness
from oraculo.errors import OraculoError
from oraculo.ports.dead_letters import DeadLetter
from oraculo.ports.journal import Batch, Key
from oraculo.ports.unique_keys import KeyHolder, MergedRequest
from oraculo.ports.work import Fate, Outcome, Work
from oraculo.runtime.kernel import exhausted
from oraculo.runtime.kernel.cache import StateCache
from oraculo.wire import quarantine, strict_json
from oraculo.wire.result import document

BROKEN = "broken"  # another message of the same orchestration made its step fail


@dataclass(slots=True)
class Closed:
    """An orchestration that ended in a transaction, and its final document."""

    state: Orchestration
    result: bytes


@dataclass(slots=True)
class Transaction:
    """`keys` are the idempotency keys that are taken, `holders` the runs that hold keys of requests that exist once;
    those of this transaction included. `erased` are the runs that are there by name and cannot be read any more."""

    batch: Batch
    works: Sequence[Work] = ()
    keys: dict[str, Key] = field(default_factory=dict)
    holders: dict[str, KeyHolder] = field(default_factory=dict)
    erased: Mapping[str, int] = field(default_factory=dict)
    outcomes: list[tuple[Work, Outcome]] = field(default_factory=list)
    closed: list[Closed] = field(default_factory=list)
    broken: set[int] = field(default_factory=set)  # runs that take no part, because a step of theirs failed

    @property
    def at(self) -> datetime:
        return self.batch.at

    @property
    def steps(self) -> list[Step]:
        return self.batch.steps

    def add(self, done: Step, was_closed: bool) -> None:
        """Write this step, and the final document when the orchestration ended with it."""
        state = done.state
        self.batch.steps.append(done)
        self.batch.dead.extend(exhausted.letters(done))
        if state.closed_at is not None and not was_closed:
            result = strict_json.dumps(document(state, done.at))
            self.batch.results[state.run] = result
            self.closed.append(Closed(state, result))

    def add_key(self, key: Key) -> None:
        """Take an idempotency key."""
        self.batch.keys.append(key)
        self.keys[key.key] = key

    def hold(self, state: Orchestration) -> None:
        """Let a run that begins hold the key that its request exists once by."""
        unique = state.plan.unique
        if unique is not None:
            key, since = unique_key(state.correlation_id, unique), state.started_at
            holder = KeyHolder(key, state.run, state.correlation_id, since, unique.remembered_until(since))
            self.holders[key] = self.batch.holders[state.run] = holder

    def merge(self, work: Work, start: Start, holder: KeyHolder) -> Outcome:
        """Write down that a request is one with the run that holds its key."""
        asked = None if work.fresh or work.key is not None else local_name(start.correlation_id)
        holder.add(MergedRequest(self.at, asked, start.actor))
        self.batch.holders[holder.run] = holder
        if work.key is not None and not holder.forgotten:
            self.add_key(replace(work.key, run=holder.run))
        return self.count(work, Outcome(Fate.MERGED, "", holder.run, holder.correlation_id))

    def count(self, work: Work, outcome: Outcome) -> Outcome:
        """Count what became of a message; work that did not come from a queue is not counted."""
        if work.queue:
            self.batch.counts[work.source, outcome.fate] += 1
        return outcome

    def quarantine(self, work: Work, dead: DeadLetter, run: int = 0) -> Outcome:
        """Keep the bytes and the reason. A command that did not come as a message has nothing to keep."""
        if work.queue:
            self.batch.dead.append(dead)
            self.batch.counts[work.source, Fate.QUARANTINED] += 1
        return Outcome(Fate.QUARANTINED, dead.reason, run, work.correlation_id)

    def leave_out(self, runs: Mapping[int, OraculoError], cache: StateCache) -> None:
        """Take these orchestrations out of the transaction and tell their callers why; the rest goes on."""
        batch = self.batch
        batch.steps = [done for done in batch.steps if done.state.run not in runs]
        batch.keys = [key for key in batch.keys if key.run not in runs]
        batch.holders = {run: one for run, one in batch.holders.items() if run not in runs}
        batch.dead = [one for one in batch.dead if (quarantine.exhausted_ticket(one) or (0, 0))[0] not in runs]
        self.closed = [closed for closed in self.closed if closed.state.run not in runs]
        for run in runs:
            batch.results.pop(run, None)
            cache.drop(run)
        kept = []
        for work, outcome in self.outcomes:
            if outcome.run in runs and outcome.fate is not Fate.QUARANTINED:
                work.refuse(runs[outcome.run])
                if work.queue and outcome.reason != BROKEN:
                    batch.counts[work.source, outcome.fate.value] -= 1  # it will come again
            else:
                kept.append((work, outcome))
        self.outcomes = kept


def unique_key(correlation_id: str, unique: Uniqueness) -> str:
    """The key of a request as it is in the store: keys of different tenants are different ones."""
    return in_tenant(tenant_of(correlation_id), unique.key)
