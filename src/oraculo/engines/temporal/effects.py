"""The effect runner of this engine: each thing is sent once in this process.

An activity that is tried again, because Temporal went away before it heard of the first try, finds here what was sent
already, and what of it is confirmed.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from oraculo.core.commands import ConfirmDispatch, RecordDelivery, RecordResult
from oraculo.core.effects import AskPolicies, Effect, EndChildren, Evaluate, Notify, Publish, Recall
from oraculo.core.events import DispatchConfirmed, Event, NoticeDelivered, NoticeFailed, NoticeGivenUp
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.ports.effects import EffectBacklog
from oraculo.ports.work import Work
from oraculo.runtime.effects.owed import FilterOwed, LookAt, OwedOrder, StillOwed
from oraculo.runtime.effects.runner import EffectRunner
from oraculo.runtime.kernel.ceiling.ceiling import ConcurrencyCeiling
from oraculo.runtime.kernel.ceiling.upkeep import has_fleet_ceiling
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts

Order = tuple[int, int]  # position and attempt
REMEMBERED_MAX_RUNS = 20_000


@dataclass(slots=True)
class Sent:
    """What was sent of one orchestration, as long as the journal does not say so."""

    orders: dict[Order, bool] = field(default_factory=dict)  # → a broker confirmed it
    notices: set[Order] = field(default_factory=set)  # number and attempt
    pauses: int = 0  # that the orchestration had behind it
    changed: asyncio.Event | None = None  # an activity waits for confirmations


class IdempotentEffectRunner:
    """Carries out each effect once, with an EffectRunner. `report` takes the outcomes that no activity here waits
    for."""

    def __init__(
        self,
        ports: KernelPorts,
        options: KernelOptions,
        report: Callable[[Sequence[Work]], None],
        still_owed: StillOwed,
        filter_owed: FilterOwed,
        look_at: LookAt,
        ceiling: ConcurrencyCeiling[OwedOrder] | None = None,
    ) -> None:
        self._fleet_ceiling = has_fleet_ceiling(ports, options)
        self._runner = EffectRunner(
            ports,
            options,
            self._reported,
            still_owed,
            filter_owed=filter_owed,
            look_at=look_at,
            ceiling=ceiling,
            fleet_ceiling=self._fleet_ceiling,
            confirm_delay_s=0.0,
        )
        self._report = report
        self._sent: OrderedDict[int, Sent] = OrderedDict()
        self.rescore = self._runner.rescore

    # -- the port ----------------------------------------------------------------------------------------------------

    def take(self, state: Orchestration, effects: Iterable[Effect]) -> None:
        self._runner.take(state, self._all_new(state, effects))

    def take_together(self, owed: Sequence[tuple[Orchestration, Sequence[Effect]]]) -> None:
        self._runner.take_together([(state, self._all_new(state, effects)) for state, effects in owed])

    def _all_new(self, state: Orchestration, effects: Iterable[Effect]) -> list[Effect]:
        return [effect for given in effects if (effect := self._new(state, given)) is not None]

    @property
    def failing_since(self) -> datetime | None:
        """Since when nothing can be published."""
        return self._runner.failing_since

    def order(self, state: Orchestration, tickets: Iterable[Order]) -> None:
        """Publish orders that the ceiling of the fleet lets out. That a broker has them is told to the workflow: no
        activity waits for it."""
        self._runner.order(state, tickets)

    def held_back_by(self, fleet: Callable[[], int]) -> None:
        """Show what waits for the ceiling of the fleet, in the process that has it."""
        self._runner.held_back_by_fleet = fleet

    def settled(self, state: Orchestration) -> None:
        self._runner.settled(state)

    def ended(self, run: int) -> None:
        self._runner.ended(run)
        sent = self._sent.get(run)
        if sent is not None:
            sent.orders.clear()
            self._forget(run, sent)

    def unrecorded(self, run: int) -> None:
        """Nothing: what is confirmed is told to the workflow."""

    async def run(self) -> None:
        await self._runner.run()

    async def close(self) -> None:
        await self._runner.close()

    def backlog(self) -> EffectBacklog:
        return self._runner.backlog()

    # -- once --------------------------------------------------------------------------------------------------------

    def _new(self, state: Orchestration, effect: Effect) -> Effect | None:
        """Return what of this effect was not sent yet, and remember it."""
        sent = self._of(state.run)
        if isinstance(effect, Notify):
            notice = (effect.notice, effect.attempt)
            if notice in sent.notices:
                return None
            sent.notices.add(notice)
            return effect
        if isinstance(effect, Evaluate | AskPolicies | EndChildren | Recall):
            return effect
        if self._fleet_ceiling and isinstance(effect, Publish) and state.plan.profile.has_ceiling:
            return None  # the ceiling has it from the journal
        if state.pauses != sent.pauses:  # what a pause kept from being sent is sent now
            sent.orders = {order: True for order, confirmed in sent.orders.items() if confirmed}
            sent.pauses = state.pauses
        tickets = [order for order in effect.tickets if order not in sent.orders]
        sent.orders.update(dict.fromkeys(tickets, False))
        return replace(effect, tickets=tickets) if tickets else None

    def _of(self, run: int) -> Sent:
        sent = self._sent.setdefault(run, Sent())
        self._sent.move_to_end(run)
        while len(self._sent) > REMEMBERED_MAX_RUNS:
            self._sent.popitem(last=False)
        return sent

    def _reported(self, works: list[Work]) -> None:
        left = []
        for work in works:
            sent = self._sent.get(work.run)
            if sent is not None and self._settles(sent, work):
                continue
            left.append(work)
        if left:
            self._report(left)

    @staticmethod
    def _settles(sent: Sent, work: Work) -> bool:
        """Return whether an activity here waits for this outcome and will record it."""
        match work.command:
            case ConfirmDispatch(tickets):
                if not all(order in sent.orders for order in tickets):  # the ceiling of the fleet sent it
                    return False
                sent.orders.update(dict.fromkeys(tickets, True))
            case RecordDelivery():
                return False
            case RecordResult(ticket=ticket, attempt=attempt) if ticket is not None and attempt is not None:
                refused = parse_ticket_id(ticket)  # the broker will never take it: nothing to wait for
                if refused is not None:
                    sent.orders.pop((refused[1], attempt), None)
        if sent.changed is None:
            return False
        sent.changed.set()
        return isinstance(work.command, ConfirmDispatch)

    # -- for activities ----------------------------------------------------------------------------------------------

    @contextmanager
    def watched(self, run: int) -> Iterator[None]:
        """Keep what is confirmed meanwhile from being reported: the caller asks for it, with `wait_confirmed`."""
        sent = self._of(run)
        sent.changed = asyncio.Event()
        try:
            yield
        finally:
            sent.changed = None
            self._forget(run, sent)

    async def wait_confirmed(self, run: int, orders: Collection[Order], timeout_s: float) -> list[Order]:
        """Return those that a broker has confirmed: all that may go now, or as many as it is after `timeout_s`."""
        sent = self._of(run)
        assert sent.changed is not None, "the caller has to watch the run"
        holds = self._runner.holds
        try:
            async with asyncio.timeout(timeout_s):
                while any(sent.orders.get(order) is False and not holds(run, order[0]) for order in orders):
                    sent.changed.clear()
                    await sent.changed.wait()
        except TimeoutError:
            pass
        return [order for order in orders if sent.orders.get(order)]

    def recorded(self, run: int, events: Iterable[Event]) -> None:
        """Forget what the journal has."""
        sent = self._sent.get(run)
        if sent is None:
            return
        for event in events:
            match event:
                case DispatchConfirmed(tickets):
                    for order in tickets:
                        sent.orders.pop(order, None)
                case NoticeDelivered(number, attempt) | NoticeFailed(number, attempt) | NoticeGivenUp(number, attempt):
                    sent.notices.discard((number, attempt))
        self._forget(run, sent)

    def _forget(self, run: int, sent: Sent) -> None:
        if not sent.orders and not sent.notices and sent.changed is None:
            self._sent.pop(run, None)
