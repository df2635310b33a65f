"""The queues that this process takes messages from: one consumer each, and the dead-letter queues beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from oraculo.core.access import Scope
from oraculo.ports.broker import Broker
from oraculo.ports.engine import Engine
from oraculo.ports.work import Work
from oraculo.runtime.consumer import Guard, Prepare, QueueConsumer, Submit, Translate
from oraculo.runtime.dead_letters import DeadLetterCollector
from oraculo.runtime.loops import Loops


class QueueConsumers:
    """`answered` is told of every answer; of those from a broker inside this process only where `hears_inside` says
    so, and that they are. `scopes` says for each queue what a message in it does: none is listened to without
    saying so. `guard_of` gives what judges messages that do that, if something does."""

    def __init__(
        self,
        broker: Broker,
        engine: Engine,
        answered: Callable[..., None] | None = None,
        guard_of: Callable[[Scope], Guard | None] = lambda _scope: None,
        hears_inside: bool = False,
    ) -> None:
        self._broker = broker
        self._guard_of = guard_of
        self._engine = engine
        self._answered = answered
        if answered is not None and broker.traits.volatile:
            self._answered = partial(answered, inside=True) if hears_inside else None
        self._consumers: list[QueueConsumer] = []
        self.queues: frozenset[str] = frozenset()  # that messages are taken from
        self.scopes: dict[str, Scope] = {}
        self._own_dead_letters: set[str] = set()  # queues whose dead letters are published by their consumer's `submit`
        self._loops = Loops()
        self._started = False

    def __iter__(self) -> Iterator[QueueConsumer]:
        return iter(self._consumers)

    def answers(
        self,
        queue: str,
        translate: Translate,
        prepare: Prepare | None = None,
        *,
        scope: Scope,
        plain: bool = False,
    ) -> None:
        """Take answers of workers from this queue. `plain`: an engine may hand them on as they came."""
        self.scopes[queue] = scope
        self._broker.expect(queue)
        submit = self._engine.answer if plain else partial(self._engine.submit, piecewise=True)
        consumer = QueueConsumer(
            self._broker,
            queue,
            translate,
            submit,
            heard=self._answered,
            prepare=prepare,
            guard=self._guard_of(scope),
            may_wait=_never if self._broker.traits.volatile else self._engine.only_counts,
        )
        self._take_from(consumer)

    def requests(
        self,
        queue: str,
        translate: Translate,
        submit: Submit | None = None,
        prepare: Prepare | None = None,
        *,
        scope: Scope,
    ) -> None:
        """Take messages that open orchestrations; they wait in their queue while too many are open."""
        self.scopes[queue] = scope
        self._add(queue, translate, submit, full=lambda: not self._engine.has_room(), prepare=prepare)

    def commands(
        self, queue: str, translate: Translate, submit: Submit, prepare: Prepare | None = None, *, scope: Scope
    ) -> None:
        """Take messages of any other kind."""
        self.scopes[queue] = scope
        self._add(queue, translate, submit, prepare=prepare)

    def _add(
        self,
        queue: str,
        translate: Translate,
        submit: Submit | None,
        full: Callable[[], bool] = lambda: False,
        prepare: Prepare | None = None,
    ) -> None:
        if submit is not None:
            self._own_dead_letters.add(queue)
        takes = submit or partial(self._engine.submit, piecewise=True)
        guard = self._guard_of(self.scopes[queue])
        self._take_from(QueueConsumer(self._broker, queue, translate, takes, full, prepare=prepare, guard=guard))

    def _take_from(self, consumer: QueueConsumer) -> None:
        """Once the others were started, it begins at once: the queue of a tenant that has just appeared."""
        self._consumers.append(consumer)
        self.queues |= {consumer.queue}
        if self._started:
            self._loops.add_started(f"consumer-{len(self._consumers)}", consumer.run)

    def start(self, *, dead_letters: bool) -> None:
        """Begin to take messages; with `dead_letters` also what was put into dead-letter queues."""
        for number, consumer in enumerate(self._consumers, 1):
            self._loops.add(f"consumer-{number}", consumer.run)
        if dead_letters:
            collector = DeadLetterCollector(
                self._broker,
                lambda: (self._engine.status().queues | self.queues) - self._own_dead_letters,
                partial(self._engine.submit, piecewise=True),
            )
            self._loops.add("dead letters", collector.run)
        self._loops.start()
        self._started = True

    async def stop(self) -> None:
        """Take nothing more. What was taken and is not durable yet goes back to its queue."""
        self._started = False
        await self._loops.stop()


def _never(_works: Sequence[Work]) -> bool:
    """What comes from this process comes together as it is."""
    return False
