"""What is owed → brokers, each thing once in this process: an activity that is tried again, because Temporal went away
before it heard of the first try, finds here what was sent already, and what of it is confirmed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from oraculo.core.commands import ConfirmDispatch, RecordDelivery, RecordResult
from oraculo.core.effects import Effect, Notify, Publish
from oraculo.core.events import DispatchConfirmed, Event, NoticeDelivered, NoticeFailed, NoticeGivenUp
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.ports.broker import Broker
from oraculo.ports.clock import Clock
from oraculo.ports.notifier import Notifier
from oraculo.runtime.notices import Report
from oraculo.runtime.perform import Performer
from oraculo.runtime.work import Work

Order = tuple[int, int]  # position and attempt
MOST = 20_000  # orchestrations that are remembered


@dataclass(slots=True)
class Sent:
    """What was sent of one orchestration, as long as the journal does not say so."""

    orders: dict[Order, bool] = field(default_factory=dict)  # → a broker confirmed it
    notices: set[Order] = field(default_factory=set)  # number and attempt
    changed: asyncio.Event | None = None  # somebody waits for confirmations


class OncePerformer(Performer):
    """`report` gets what nobody here waits for."""

    confirm_after = 0.0

    def __init__(
        self, broker: Broker, notifier: Notifier | None, clock: Clock, report: Report, *more: Any, **options: Any
    ) -> None:
        super().__init__(broker, notifier, clock, self._reported, *more, **options)
        self._pass_on = report
        self._sent: OrderedDict[int, Sent] = OrderedDict()

    def take(self, state: Orchestration, effects: Iterable[Effect]) -> None:
        super().take(state, [effect for given in effects if (effect := self._new(state, given)) is not None])

    def _new(self, state: Orchestration, effect: Effect) -> Effect | None:
        sent = self._of(state.run)
        if isinstance(effect, Notify):
            notice = (effect.notice, effect.attempt)
            if notice in sent.notices:
                return None
            sent.notices.add(notice)
            return effect
        tickets = [order for order in effect.tickets if order not in sent.orders]
        sent.orders.update(dict.fromkeys(tickets, False))
        return Publish(tickets) if tickets else None

    def _of(self, run: int) -> Sent:
        sent = self._sent.setdefault(run, Sent())
        self._sent.move_to_end(run)
        while len(self._sent) > MOST:
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
            self._pass_on(left)

    @staticmethod
    def _settles(sent: Sent, work: Work) -> bool:
        """Somebody here waits for it and will record it."""
        match work.command:
            case ConfirmDispatch(tickets):
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

    @contextmanager
    def watched(self, run: int) -> Iterator[None]:
        """What is confirmed meanwhile is not reported: who is inside asks for it, with `settled`."""
        sent = self._of(run)
        sent.changed = asyncio.Event()
        try:
            yield
        finally:
            sent.changed = None
            self._forget(run, sent)

    async def settled(self, run: int, orders: Collection[Order], patience: float) -> list[Order]:
        """Those that a broker has confirmed: all that may go now, or as many as it is after so many seconds."""
        sent = self._of(run)
        assert sent.changed is not None, "who asks has to watch"
        try:
            async with asyncio.timeout(patience):
                while any(sent.orders.get(order) is False and not self.holds(run, order[0]) for order in orders):
                    sent.changed.clear()
                    await sent.changed.wait()
        except TimeoutError:
            pass
        return [order for order in orders if sent.orders.get(order)]

    def recorded(self, run: int, events: Iterable[Event]) -> None:
        """The journal has these."""
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

    def ended(self, run: int) -> None:
        super().ended(run)
        sent = self._sent.get(run)
        if sent is not None:
            sent.orders.clear()
            self._forget(run, sent)

    def _forget(self, run: int, sent: Sent) -> None:
        if not sent.orders and not sent.notices and sent.changed is None:
            self._sent.pop(run, None)
