"""The effect runner: what was committed and is owed to the world is carried out here, and its outcome comes back as a
command.

Publishing and notifying happen after the commit and off the path of the next one. The parts: the ceiling and the pacer
say when an order may go, the publisher sends it, confirmations are recorded a moment later, notices are tried once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime

import structlog

from oraculo.core.commands import RecordResult
from oraculo.core.effects import AskPolicies, Begin, Effect, EndChildren, Evaluate, Notify, Publish, Recall
from oraculo.core.reasons import MESSAGE_REFUSED
from oraculo.core.state import Orchestration
from oraculo.core.tenants import local_name
from oraculo.core.ticket_id import recent_ticket_id, ticket_id
from oraculo.errors import StoreError
from oraculo.ports.broker import Outgoing
from oraculo.ports.effects import EffectBacklog
from oraculo.ports.work import Work
from oraculo.runtime.effects.confirmations import CONFIRM_DELAY_S, Confirmations
from oraculo.runtime.effects.evaluations import Evaluations
from oraculo.runtime.effects.held import HeldOrders
from oraculo.runtime.effects.notices import Notices
from oraculo.runtime.effects.owed import FilterOwed, LookAt, OwedOrder, StillOwed, keep_all, look_at_nothing
from oraculo.runtime.effects.pacing import RetryPacer
from oraculo.runtime.effects.postponed import Postponed
from oraculo.runtime.effects.publisher import Publisher, Receivers
from oraculo.runtime.effects.references import KEPT_LONGER, deadline
from oraculo.runtime.effects.verdicts import Verdicts
from oraculo.runtime.kernel.ceiling.ceiling import ConcurrencyCeiling, score_of
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.wire.ticket_tokens import TicketClaim

log = structlog.get_logger("oraculo.perform")


class EffectRunner:
    """`report` takes the commands that outcomes become; `still_owed` filters out orders that are known to be settled,
    `filter_owed` asks the store as well, `look_at` what others wrote there; `ceiling` holds orders of plans that
    have one back while too many tickets are with workers; with `fleet_ceiling` they come from that of the fleet instead
    (`order`)."""

    def __init__(
        self,
        ports: KernelPorts,
        options: KernelOptions,
        report: Callable[[list[Work]], None],
        still_owed: StillOwed = lambda _run, tickets: tickets,
        *,
        filter_owed: FilterOwed = keep_all,
        look_at: LookAt = look_at_nothing,
        ceiling: ConcurrencyCeiling[OwedOrder] | None = None,
        fleet_ceiling: bool = False,
        confirm_delay_s: float = CONFIRM_DELAY_S,
    ) -> None:
        self._broker = ports.broker
        self._clock = ports.clock
        self._writer = ports.writer
        self._references = ports.references
        self._tokens = ports.tokens
        self._report = report
        self._still_owed = still_owed
        self._filter_owed = filter_owed
        self._look_at = look_at
        self._ceiling = ceiling
        self._fleet_ceiling = fleet_ceiling
        self.held_back_by_fleet: Callable[[], int] = lambda: 0
        self._confirmations = Confirmations(report, still_owed, confirm_delay_s)
        receivers = Receivers(
            self._confirmed,
            self._refused,
            self._postpone,
            self._all_wanted,
            self._write,
            self._prepare,
            self._sign,
            self._take_back,
            self._may_recall,
        )
        self._publisher = Publisher(ports.broker, ports.clock, receivers)
        self._postponed = Postponed(self._publisher.add_wanted)
        rate = options.retry_rate
        self._pacer = None if rate is None else RetryPacer(rate, self._publisher.add_wanted)
        self._notices = Notices(ports.broker, ports.notifier, report, ports.store.result, ports.children)
        self._children = ports.children
        self._evaluations = Evaluations(report)
        self._verdicts = Verdicts(ports.policies, report)
        self._gate, self._breakers = ports.gate, ports.breakers
        self._held = HeldOrders(self._may_not_go)
        if self._gate is not None:
            self._gate.listen(self._release)
        if self._breakers is not None:
            self._breakers.listen(self._release, self._probe_of)
        self._recalls: dict[int, int] = {}  # run → how many pauses it had when its orders were recalled last
        self._priorities: dict[int, int] = {}  # run → what an operator changed its priority to
        self._published = 0
        self._gathers = False  # more is taken before anything is let out under the ceiling

    # -- in ----------------------------------------------------------------------------------------------------------

    def take(self, state: Orchestration, effects: Iterable[Effect]) -> None:
        """Queue what these effects ask for. The messages are written when it is their turn to be published."""
        for effect in effects:
            match effect:
                case Publish(tickets):
                    self._take_orders(state, tickets)
                case Notify(number, attempt):
                    if state.owes_notice(number, attempt):
                        self._notices.take(state, number, attempt)
                case Evaluate():
                    self._evaluations.take(state)
                case AskPolicies():
                    self._verdicts.take(state)
                case Recall():
                    self._recalls[state.run] = state.pauses
                case Begin(tickets):
                    self._children.begin(state, tickets, self._report)
                case EndChildren(tickets):
                    self._children.end(state, tickets, self._report)

    def take_together(self, owed: Sequence[tuple[Orchestration, Sequence[Effect]]]) -> None:
        self._gathers = True
        try:
            for state, effects in owed:
                self.take(state, effects)
        finally:
            self._gathers = False
        if self._ceiling is not None:
            self._let_out(self._ceiling)

    @property
    def failing_since(self) -> datetime | None:
        """Since when nothing can be published."""
        return self._publisher.failing_since

    def order(self, state: Orchestration, tickets: Iterable[tuple[int, int]]) -> None:
        """Publish orders that the ceiling of the fleet lets out."""
        now = self._clock.now()
        for position, attempt in self._not_under_way(state, list(tickets)) if state.pauses else tickets:
            since = state.tickets[position].dispatched_at if attempt == 1 else None
            self._send(OwedOrder(state, position, attempt, since or now, pauses=state.pauses))
        self._publisher.go()

    def _take_orders(self, state: Orchestration, tickets: Sequence[tuple[int, int]]) -> None:
        if self._fleet_ceiling and state.plan.profile.has_ceiling:
            return
        now = self._clock.now()
        ceiling = self._ceiling if state.plan.profile.has_ceiling else None
        if state.pauses:
            tickets = self._not_under_way(state, tickets)
        pauses, pacer = state.pauses - (state.paused is not None), self._pacer  # its pause may follow in this commit
        for position, attempt in tickets:
            since = state.tickets[position].dispatched_at if attempt == 1 else None
            owed = OwedOrder(state, position, attempt, since or now, None, pauses, state.tickets[position].running)
            if ceiling is not None:
                score = score_of(state, position, owed.since, self._clock, self._priorities)
                owed.maybe_sent = ceiling.add(owed.order, score, owed)
            elif attempt == 1 or pacer is None or pacer.may_go(owed):
                self._publisher.add(owed)
        if ceiling is not None and not self._gathers:
            self._let_out(ceiling)
        self._publisher.go()

    def _not_under_way(self, state: Orchestration, tickets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Leave out orders that were on their way when a pause began, and are still: they go on, and not twice."""
        under_way = self._publisher.renew(state.run, state.pauses).union(self._confirmations.of(state.run))
        return [one for one in tickets if one not in under_way]

    def _send(self, owed: OwedOrder) -> None:
        """Publish it now, or a retry when it is its turn."""
        if not owed.is_retry or self._pacer is None or self._pacer.may_go(owed):
            self._publisher.add(owed)

    def _let_out(self, ceiling: ConcurrencyCeiling[OwedOrder]) -> None:
        due = ceiling.due(self._wanted)
        for owed in due:
            self._send(owed)
        if due:
            self._publisher.go()

    def settled(self, state: Orchestration) -> None:
        if self._ceiling is not None and state.plan.profile.has_ceiling:
            self._ceiling.settle(state)
            if state.priority is not None and self._priorities.get(state.run) != state.priority:
                self._priorities[state.run] = state.priority
                self._ceiling.rescore(self._wanted)
            if len(self._ceiling):
                self._let_out(self._ceiling)

    def rescore(self) -> None:
        """Let out what may go under the ceiling now; what waits has become more urgent."""
        if self._ceiling is not None:
            self._ceiling.rescore(self._wanted)
            self._let_out(self._ceiling)

    def ended(self, run: int) -> None:
        self._confirmations.forget(run)
        self._recalls.pop(run, None)
        self._priorities.pop(run, None)

    # -- what became of it -------------------------------------------------------------------------------------------

    def _wanted(self, owed: OwedOrder) -> bool:
        """Return whether its ticket still needs this order. A broker that forgets is told again of tickets that are
        running, too."""
        if self._is_recalled(owed):
            return False
        if self._broker.forgets(owed.queue):
            return True
        return bool(self._still_owed(owed.run, [(owed.position, owed.attempt)]))

    def _is_recalled(self, owed: OwedOrder) -> bool:
        """Return whether it may not go now: its orchestration was paused after it was taken, and asks for it anew when
        it goes on; or its destination is paused, or its breaker open, and it is kept until that is over."""
        return self._is_asked_anew(owed) or self._held.take(owed)

    def _is_asked_anew(self, owed: OwedOrder) -> bool:
        """Return whether a pause recalled it. An order of a ticket that is running is not owed, and no resume asks for
        it: it goes in any case, as it does in a recovery while the orchestration is paused."""
        return not owed.was_running and owed.pauses < self._recalls.get(owed.run, 0)

    def _take_back(self, owed: OwedOrder) -> bool:
        """Return whether it may not go now; if it was never sent, it takes no place under the ceiling meanwhile."""
        recalled = self._is_recalled(owed)
        if recalled and self._ceiling is not None and owed.message is None and not owed.maybe_sent:
            self._ceiling.take_back(owed.order)
        return recalled

    def _may_recall(self) -> bool:
        """False while nothing is paused and no breaker has ever opened: no order is recalled then."""
        gate, breakers = self._gate, self._breakers
        if self._recalls or (gate is not None and gate.any_paused):
            return True
        return breakers is not None and breakers.any_known

    def _may_not_go(self, owed: OwedOrder) -> bool:
        if self._gate is not None and self._gate.holds(owed.queue):
            return True
        return self._breakers is not None and not self._breakers.lets_through(owed.queue, owed.order)

    async def _probe_of(self, queue: str) -> tuple[int, int, int] | None:
        """The oldest order that is kept for a queue and still wanted; None while the queue is paused."""
        if self._gate is not None and self._gate.holds(queue):
            return None
        for owed in self._held.of(queue):
            if not self._is_asked_anew(owed) and await self._all_wanted([owed]):
                return owed.order
            self._held.drop(owed)
        return None

    def _release(self) -> None:
        """Send what was kept and may go now, as far as it is still wanted."""
        released = self._held.release()
        ceiling = self._ceiling
        self._publisher.add_wanted([one for one in released if not self._is_limited(one)])
        for owed in released:
            if ceiling is not None and self._is_limited(owed):
                score = score_of(owed.state, owed.position, owed.since, self._clock, self._priorities)
                owed.maybe_sent |= ceiling.add(owed.order, score, owed)
        if ceiling is not None:
            self._let_out(ceiling)

    def _is_limited(self, owed: OwedOrder) -> bool:
        """Return whether the ceiling of this process holds it back."""
        return self._ceiling is not None and owed.state.plan.profile.has_ceiling

    async def _all_wanted(self, owed: Sequence[OwedOrder]) -> Sequence[OwedOrder]:
        """Filter out orders that their tickets need no longer. While the store is away all are kept."""
        by_run: dict[tuple[int, bool], list[OwedOrder]] = {}
        for one in owed:
            by_run.setdefault((one.run, self._broker.forgets(one.queue)), []).append(one)
        try:
            await self._look_at(list({run for run, _ in by_run}))
        except StoreError:
            return owed
        kept: list[OwedOrder] = []
        for (run, running_too), orders in by_run.items():
            pairs = [(one.position, one.attempt) for one in orders]
            try:
                left = set(await self._filter_owed(run, pairs, running_too=running_too))
            except StoreError:
                left = set(pairs)
            kept += [one for one, pair in zip(orders, pairs, strict=True) if pair in left]
        return kept

    def _write(self, owed: Sequence[OwedOrder], now: datetime) -> Iterator[Outgoing]:
        """Write the messages of orders of one run, which may have been taken at different times."""
        first = 0
        for number in range(1, len(owed) + 1):
            if number == len(owed) or owed[number].state is not owed[first].state:
                pairs = [(one.position, one.attempt) for one in owed[first:number]]
                yield from self._writer.write(owed[first].state, pairs, now)
                first = number

    def _prepare(self, owed: Sequence[OwedOrder]) -> Awaitable[None] | None:
        """Store what these orders, which are of one run, are too large to carry; None when that is nothing."""
        if self._references is None or not owed or not self._references.may_refer(owed[0].state):
            return None
        state, now = owed[0].state, self._clock.now()
        wanted = self._references.prepare(state, [one.position for one in owed], now)
        if not wanted:
            return None
        until = max(deadline(state, one.position, now) for one in owed) + KEPT_LONGER
        return self._references.store(state, wanted, until)

    def _sign(self, owed: Iterable[OwedOrder]) -> Awaitable[None] | None:
        """Sign the tokens of these orders; None when there is nothing to wait for."""
        if self._tokens is None:
            return None
        return self._tokens.prepare(
            TicketClaim(recent_ticket_id(one.run, one.position), one.attempt, local_name(one.state.correlation_id))
            for one in owed
        )

    def _confirmed(self, owed: Sequence[OwedOrder]) -> None:
        self._published += len(owed)
        self._postponed.confirmed(owed)
        self._confirmations.add(owed)

    def _refused(self, owed: OwedOrder, reason: str) -> None:
        """Fail the ticket at once: the broker will never take its message."""
        queue = owed.queue
        log.error("the broker will never take this message", queue=queue, run=owed.run, reason=reason)
        problem: list[dict[str, object]] = [
            {"codigo": MESSAGE_REFUSED, "mensagem": f"{queue}: {reason}", "definitivo": True}
        ]
        failed = RecordResult(False, b"null", problem, True, ticket_id(owed.run, owed.position), owed.attempt)
        self._report([Work(failed, run=owed.run)])

    def _postpone(self, owed: Sequence[OwedOrder], reason: str) -> None:
        self._postponed.add(owed, reason)

    def unrecorded(self, run: int) -> list[tuple[int, int]] | None:
        return self._confirmations.unrecorded(run)

    # -- life --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        await self._publisher.run()

    async def flush(self) -> None:
        """Carry out what was taken, now: returns when orders are confirmed, refused or postponed, and every notice was
        tried once."""
        notices = set(self._notices.flying)
        await self._publisher.flush()
        if notices:
            await asyncio.wait(notices)

    async def close(self) -> None:
        self._confirmations.close()
        self._postponed.close()
        if self._pacer is not None:
            self._pacer.close()
        await self._notices.close()
        await self._evaluations.close()
        await self._verdicts.close()
        await self._children.close()
        await self._publisher.close()

    # -- to look at --------------------------------------------------------------------------------------------------

    def holds(self, run: int, position: int) -> bool:
        """Return whether the order of a ticket waits for room under the ceiling, or for its destination."""
        waits = self._ceiling is not None and self._ceiling.holds(run, position)
        return waits or (bool(self._held) and self._held.has(run, position))

    @property
    def postponed(self) -> set[tuple[int, int, int]]:
        """(run, position, attempt) of what waits for its queue, or for its turn."""
        paced = () if self._pacer is None else self._pacer.orders
        return {owed.order for owed in (*self._postponed.orders, *self._held.orders, *paced)}

    def backlog(self) -> EffectBacklog:
        heads = [since for since in (self._publisher.oldest, self._postponed.oldest) if since is not None]
        return EffectBacklog(
            waiting=self._publisher.waiting
            + len(self._postponed)
            + len(self._notices.flying)
            + len(self._evaluations)
            + len(self._children)
            + len(self._confirmations),
            held_back=self.held_back_by_fleet() + (0 if self._ceiling is None else len(self._ceiling)),
            paused=len(self._held),
            oldest=min(heads, default=None),
            published=self._published,
            failing_since=self._publisher.failing_since,
            without_queue=self._postponed.counts,
        )
