"""What must hold among processes that share a database, kept in books of its own from what was seen of each.

Nothing here asks the database who is a member or who owes what: leases are counted from joining and renewing, and debts
from who committed an order that the journal does not yet call confirmed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from oraculo.core.events import OrchestrationResumed, TicketsDispatched
from oraculo.ports.journal import Recorded
from oraculo.simulation.invariants import CheckedJournal
from oraculo.simulation.scene import Scene

COMMIT_MAX_S = 5.5  # between the instant at which a transaction is decided and its commit
OWED = "owed"


class ReplicaRules:
    """`journals` are the committed ones, as the checks read them. A world of one process joins nothing."""

    def __init__(self, scene: Scene, journals: Mapping[int, CheckedJournal]) -> None:
        self._scene = scene
        self._journals = journals
        self._leases: dict[int, tuple[timedelta, float]] = {}  # epoch → its length, and when it was begun or renewed
        self._ended: set[int] = set()  # epochs that left by themselves
        self._gone: set[int] = set()  # epochs that somebody took over from
        self._epoch_of: dict[int, int] = {}  # life → its epoch
        self._senders: dict[tuple[int, int, int], int] = {}  # run, position, attempt → epoch that committed the order

    @property
    def shared(self) -> bool:
        return bool(self._leases)

    # -- members -----------------------------------------------------------------------------------------------------

    def joined(self, life: int, epoch: int, lease: timedelta) -> None:
        if epoch in self._leases:
            self._scene.violate("every membership is new", f"epoch {epoch} was given out twice")
        self._leases[epoch] = lease, self._scene.loop.time()
        self._epoch_of[life] = epoch

    def renewed(self, epoch: int) -> None:
        if epoch in self._gone:
            self._scene.violate("who was taken over from is out", f"epoch {epoch} renewed its lease")
        self._leases[epoch] = self._leases[epoch][0], self._scene.loop.time()

    def left(self, epoch: int) -> None:
        self._ended.add(epoch)

    def outside(self, lives: Sequence[int]) -> list[int]:
        """The lives that were taken over from and that have not joined again."""
        return [life for life in lives if self._epoch_of.get(life) in self._gone]

    def check_members(self, lives: Sequence[int]) -> None:
        """In the end everybody who lives is a member again."""
        for life in self.outside(lives):
            self._scene.violate("who lives is a member", f"life {life} was taken over from and did not join again")

    # -- commits -----------------------------------------------------------------------------------------------------

    def committed(self, life: int, at: datetime, recorded: Sequence[Recorded]) -> None:
        if not self.shared:
            return
        epoch = self._epoch_of.get(life, 0)
        if epoch in self._gone:
            self._scene.violate("who was taken over from is out", f"epoch {epoch} wrote after another took over")
        age = (self._scene.database_clock() - at).total_seconds()
        if not -0.001 <= age <= COMMIT_MAX_S:
            self._scene.violate("all go by one clock", f"a commit of life {life} is {age:g} s old")
        for one in recorded:
            for event in one.events:
                if isinstance(event, TicketsDispatched):
                    for position in event.tickets:
                        self._senders[one.run, position, event.attempt] = epoch
                elif isinstance(event, OrchestrationResumed):  # who lets it go on sends all that it owes
                    self._senders |= {order: epoch for order in self._senders if order[0] == one.run}

    # -- taking over -------------------------------------------------------------------------------------------------

    def took_over(self, mine: int, dead: Sequence[int], runs: Sequence[int]) -> None:
        for epoch in dead:
            self._scene.count("takeovers")
            self._scene.log(f"epoch {mine} takes over from {epoch}: {len(runs)} runs")
            if epoch == mine:
                self._scene.violate("one takeover for each death", f"epoch {mine} took over from itself")
            if epoch in self._gone:
                self._scene.violate("one takeover for each death", f"epoch {epoch} was taken over from before")
            lease, since = self._leases[epoch]
            left = since + lease.total_seconds() - self._scene.loop.time()
            if left > 0 and epoch not in self._ended:
                self._scene.violate("a lease is respected", f"epoch {epoch} had {left:g} s left")
            self._gone.add(epoch)
        forgotten = {run for epoch in dead for run in self._debts_of(epoch)} - set(runs)
        if forgotten:
            names = [self._journals[run].name for run in sorted(forgotten)]
            self._scene.violate("debts are taken over", f"orders of {names} were left with the dead {list(dead)}")
        for order, sender in self._senders.items():
            if sender in dead:
                self._senders[order] = mine

    def _debts_of(self, epoch: int) -> set[int]:
        """The runs with an order that this member committed and that is not known to have reached a broker. A run
        that is paused owes none until it goes on."""
        found = set()
        for (run, position, attempt), sender in self._senders.items():
            ticket = self._journals[run].tickets[position]
            paused = self._journals[run].pauses.paused
            if sender == epoch and ticket.phase == OWED and ticket.attempt == attempt and not paused:
                found.add(run)
        return found
