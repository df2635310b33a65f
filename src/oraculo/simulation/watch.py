"""Sees every commit, publish, fetch and acknowledgement of every life, and checks them against each other."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import orjson

from oraculo.adapters.stores.instants import from_micros_or_none
from oraculo.adapters.stores.sqlite.connections import fetch
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.replay import replay_step
from oraculo.core.state import Orchestration
from oraculo.core.ticket_id import parse_ticket_id
from oraculo.core.vocabulary import Kind
from oraculo.ports.broker import Delivery, Outgoing
from oraculo.ports.journal import Batch, Recorded
from oraculo.simulation import task_rules
from oraculo.simulation.breaker_watch import BreakerWatch
from oraculo.simulation.choice_watch import ChoiceWatch
from oraculo.simulation.facts import Answer
from oraculo.simulation.family import FamilyWatch
from oraculo.simulation.invariants import CheckedJournal
from oraculo.simulation.offer_watch import to_own_queues
from oraculo.simulation.pause_watch import PauseWatch
from oraculo.simulation.plans import NOTICES
from oraculo.simulation.replica_rules import ReplicaRules
from oraculo.simulation.scene import Scene
from oraculo.simulation.under_ceiling import Alive, CeilingWatch
from oraculo.simulation.unique_watch import UniqueWatch
from oraculo.wire import names, records

_ROW = "SELECT status, version, wake_at, owes, open, closed_at FROM runs WHERE run = ?"
MAX_LATENESS = timedelta(seconds=1.1)
SHARED_MAX_LATENESS = timedelta(seconds=3.5)  # the process that should have woken it may be gone: another one looks
HTTP = "http"  # answers that came over HTTP; counted like a queue
INTAKES = (names.RESULTS, names.REQUESTS, HTTP)


def intake(queue: str) -> str:
    """The queue without the broker that its messages came from, which is counted apart where there are several."""
    return queue.partition("@")[0]


class Watch:
    def __init__(self, scene: Scene, store: SqliteStore) -> None:
        self.scene = scene
        self.store = store
        self.journals: dict[int, CheckedJournal] = {}
        self.by_name: dict[str, int] = {}
        self.states: dict[int, Orchestration] = {}  # replayed from the journal alone
        self.confirmed_ids: set[str] = set()
        self.delivered: set[str] = set()
        self.notices: dict[str, bytes] = {}
        self.dead: set[bytes] = set()
        self.quiet_at: datetime | None = None  # from then on nothing excuses a late timer
        self.ceiling = CeilingWatch(scene, self.states)
        self.choices = ChoiceWatch(scene)
        self.paused = PauseWatch(scene, self.journals)
        self.breakers = BreakerWatch(scene, self.states)
        self.unique = UniqueWatch(scene, self.states)
        scene.on_breaker = self.breakers.written
        self.replicas = ReplicaRules(scene, self.journals)
        self.family = FamilyWatch(scene, self.journals)
        self._position = 0
        self._books: Counter[tuple[int, str, str]] = Counter()  # (life, queue, what) → how many
        self._pace: dict[int, float] = {}  # life → the clock it shows, less the time that passed

    # -- what journals ask -------------------------------------------------------------------------------------------

    def answer(self, digest: int) -> Answer | None:
        return self.scene.answer(digest)

    def confirmed(self, message_id: str) -> bool:
        return message_id in self.confirmed_ids or message_id in self.family.begun

    def honest_timeouts(self) -> bool:
        return self.scene.honest_timeouts()

    # -- commits -----------------------------------------------------------------------------------------------------

    async def committed(self, batch: Batch, life: Alive) -> None:
        self.scene.count("commits")
        if not self.replicas.shared:
            self._clock(batch.at, life)
        for (queue, _verdict), number in batch.counts.items():
            if intake(queue) in INTAKES:
                self._book(life, intake(queue), "counted", number)
        self.dead.update(letter.body for letter in batch.dead)
        touched: set[int] = set()
        news = await self.store.tail(self._position, 1000)
        for recorded in news:
            self._position = recorded.position
            self._record(recorded, life)
            touched.add(recorded.run)
        self.replicas.committed(life.number, batch.at, news)
        for done in {done.state.run: done for done in batch.steps}.values():
            run = done.state.run
            if run not in touched:
                self.scene.violate("commits are durable", f"the steps of {run} are not in the journal")
            elif done.state != self.states[run]:
                self.scene.violate("fold(journal) == state", f"{done.state.correlation_id} in memory differs")
        for run in sorted(touched):
            self.catalogued(run)
            if self.family.untold(run):
                self.family.ended(run, await self.store.result(run))

    def _clock(self, at: datetime, life: Alive) -> None:
        shown = at.timestamp() - self.scene.loop.time()
        if abs(self._pace.setdefault(life.number, shown) - shown) > 0.5:
            self.scene.violate("the clock is steady", f"life {life.number} shows {at}")

    def _record(self, recorded: Recorded, life: Alive) -> None:
        body = records.encode(recorded.events)
        self.scene.log(f"commit {recorded.run & 0xFFFFF:05x} {recorded.first} {_kinds(recorded)}")
        self.scene.trace.mix(body)
        journal = self.journals.get(recorded.run)
        if journal is None:
            journal = self.journals[recorded.run] = CheckedJournal(self, self.scene.violate)
        self.scene.count("events", len(recorded.events))
        journal.read(recorded)
        self.by_name[journal.name] = recorded.run
        self.scene.plans.setdefault(journal.name, journal.plan)  # of a child, which no client asked for
        due_at = recorded.at - journal.late_by
        most = SHARED_MAX_LATENESS if self.replicas.shared else MAX_LATENESS
        if self.quiet_at is not None and due_at > self.quiet_at and journal.late_by > most:
            self.scene.violate("timers are punctual", f"{journal.name}: late by {journal.late_by}")
        again = replay_step(self.states.get(recorded.run), recorded)
        self.states[recorded.run] = again.state
        self.ceiling.committed(recorded)
        self.choices.committed(recorded)
        self.unique.committed(recorded)
        self.paused.committed(recorded, life)
        self.family.committed(recorded)
        self.breakers.committed(recorded)
        if again.events != recorded.events:
            self.scene.violate("replay gives the same", f"{journal.name} from event {recorded.first}")

    def catalogued(self, run: int) -> None:
        state = self.states[run]
        rows = self.store.connections.run_inline(lambda connection: fetch(connection, _ROW, (run,)))
        status, version, wake_at, owes, still_open, closed_at = rows[0]
        shown = (status, version, from_micros_or_none(wake_at), owes, still_open, from_micros_or_none(closed_at))
        wanted = (state.status.value, state.version, state.wake_at(), state.owes, state.open, state.closed_at)
        if shown != wanted:
            self.scene.violate("the catalogue tells the truth", f"{state.correlation_id}: {shown}, expected {wanted}")

    # -- messages out ------------------------------------------------------------------------------------------------

    def publishing(self, messages: Sequence[Outgoing], life: Alive) -> None:
        own, orders = to_own_queues(messages)
        for message in own:
            self.choices.offers.publishing(message, life.number)
        for message in orders:
            self.scene.count("published")
            self.scene.log(f"publish {message.queue} {message.message_id[-12:]}")
            if message.queue == NOTICES:
                self.noticed(message.message_id, message.body)
            else:
                wrong = self._ghost(message)
                if wrong:
                    self.scene.violate("no ghosts", f"{message.message_id}: {wrong}")
                else:
                    body = orjson.loads(message.body)
                    run, position = parse_ticket_id(body["ticket_id"]) or (0, 0)
                    order = (run, position, body["tentativa"])
                    self.ceiling.publishing(order, life)
                    self.paused.publishing(order, life, shared=self.replicas.shared)
                    self.breakers.publishing(order, message.queue)

    def _ghost(self, message: Outgoing) -> str | None:
        """What is wrong with an order, seen from what is committed."""
        body = orjson.loads(message.body)
        parsed = parse_ticket_id(body["ticket_id"])
        journal = self.journals.get(parsed[0]) if parsed else None
        if parsed is None or journal is None:
            return "its orchestration is not committed"
        position, attempt = parsed[1], body["tentativa"]
        seen, task = journal.tickets[position], journal.plan.tasks[position]
        if attempt > seen.attempt or seen.phase == "waiting" or attempt < 1:
            return f"attempt {attempt} is not committed"
        if (message.message_id, message.queue) != (f"{body['ticket_id']}.{attempt}", task.queue):
            return f"wrong name or queue {message.queue}"
        if task.kind is Kind.EXECUCAO and body["payload"]["dados"] != self._inputs(journal, position):
            return "it carries other data than its gate collected"
        return None

    @staticmethod
    def _inputs(journal: CheckedJournal, position: int) -> list[dict[str, object]]:
        plan, spec = journal.plan, task_rules.spec_of(journal.plan, position)
        if spec is not None:
            return task_rules.given_to(plan, position, journal.tickets, journal.grown_result)
        if journal.maps.is_item(position) or journal.loops.is_round(position):
            return []
        gate = plan.tasks[position].after
        wanted: list[dict[str, object]] = []
        for one in plan.gates[gate].inputs if gate is not None else ():
            task, seen = plan.tasks[one], journal.tickets[one]
            key = "fonte" if task.kind is Kind.COLETA else "executador"
            wanted.append({key: task.name, "status": seen.status.value, "dados": orjson.loads(seen.dados)})
        return wanted

    def published(self, messages: Sequence[Outgoing]) -> None:
        for message in messages:
            if message.queue == NOTICES:
                self.took(message.message_id)
            else:
                self.confirmed_ids.add(message.message_id)

    def noticed(self, identity: str, body: bytes) -> None:
        """A notice on its way: of an end that is committed, always under the same id, always the same."""
        document = orjson.loads(body)
        journal = self.journals.get(self.by_name.get(document["correlation_id"], 0))
        if journal is None or journal.status is None:
            self.scene.violate("no ghosts", f"notice {identity} of an end that is not committed")
            return
        if document["status"] != journal.status.value:
            self.scene.violate("one notice per end", f"{identity} says {document['status']}")
        if identity not in notice_ids(journal):
            self.scene.violate("one notice per end", f"{identity} is not an id of {journal.name}")
        if self.notices.setdefault(identity, body) != body:
            self.scene.violate("one notice per end", f"{identity} was sent with two bodies")

    def took(self, identity: str) -> None:
        self.delivered.add(identity)

    # -- messages in -------------------------------------------------------------------------------------------------

    def _book(self, life: Alive, queue: str, what: str, number: int) -> None:
        books, life_number = self._books, life.number
        books[life_number, queue, what] += number
        handed = self._received(life_number, queue)
        counted, acked = books[life_number, queue, "counted"], books[life_number, queue, "acked"]
        if counted > handed:
            self.scene.violate("conservation", f"{queue}: {counted} counted, {handed} received")
        if acked > counted:
            self.scene.violate("no ack before the commit", f"{queue}: {acked} acknowledged, {counted} counted")

    def balanced(self, life: Alive) -> list[str]:
        """Queues where this life received something that is not counted."""
        books = self._books
        return [
            f"{queue}: {received} received, {books[life.number, queue, 'counted']} counted"
            for queue in INTAKES
            if (received := self._received(life.number, queue)) != books[life.number, queue, "counted"]
        ]

    def _received(self, life: int, queue: str) -> int:
        """What was given back came again, unless it was counted all the same: the commit was in doubt."""
        books = self._books
        return books[life, queue, "handed"] - books[life, queue, "back"] + books[life, queue, "doubt"]

    def in_doubt(self, batch: Batch, life: Alive) -> None:
        """Committed, and the engine is told that it is not."""
        self.paused.in_doubt(batch)
        for (queue, _verdict), number in batch.counts.items():
            if intake(queue) in INTAKES:
                self._book(life, intake(queue), "doubt", number)

    def handed(self, queue: str, deliveries: Sequence[Delivery], life: Alive) -> None:
        if queue in INTAKES and deliveries:
            self.scene.count("received", len(deliveries))
            self._book(life, queue, "handed", len(deliveries))

    def settling(self, acked: Sequence[Delivery], back: Sequence[Delivery], life: Alive) -> None:
        for delivery in back:
            if delivery.queue in INTAKES:
                self._book(life, delivery.queue, "back", 1)
        for delivery in acked:
            if delivery.queue in INTAKES:
                self._book(life, delivery.queue, "acked", 1)
            if delivery.queue in (names.RESULTS, HTTP) and not self._known(delivery.body):
                self.scene.violate("no ack before the commit", f"an answer of {delivery.queue} left no trace")

    def _known(self, raw: bytes) -> bool:
        """The effect of an answer is in the database: recorded, a duplicate of something recorded, or quarantined."""
        if (raw or b"\0") in self.dead:
            return True
        answer = self.scene.answer(zlib.crc32(raw) or 1)
        parsed = parse_ticket_id(answer.ticket) if answer else None
        if answer is None or parsed is None:
            return False
        answered = self.journals[parsed[0]].tickets[parsed[1]].answered
        return answer.attempt in answered if answer.echoed else bool(answered)


def notice_ids(journal: CheckedJournal) -> list[str]:
    """The one id that each notice of an orchestration has."""
    notify = journal.plan.notify
    ids = [f"orc_{journal.run:x}_0"] if notify.webhook else []
    if notify.queue:
        ids.append(f"{journal.name}.{len(ids)}")
    return ids


def _kinds(recorded: Recorded) -> str:
    return " ".join(type(event).__name__ for event in recorded.events)
