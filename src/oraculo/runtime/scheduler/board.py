"""What waits for a worker in one queue and who asks for it, in this process; `match` brings them together.

Tickets are offered in the order of core/ticket_order.py; of each, those that ask are judged by core/candidates.py. It
decides and remembers, and does nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import nlargest
from random import Random

from oraculo.core import candidates
from oraculo.core.affinity import NO_TIES, TicketTies
from oraculo.core.allocations import CANDIDATES_MAX_RECORDED, Allocation, AllocationMethod, Candidate, NotChosen
from oraculo.core.candidates import ANY_SIZE, NEAR_EQUAL_SCORE, Pace, TicketNeeds, TicketSize, WorkerFacts
from oraculo.core.ticket_order import FairShares, aged, urgency_class
from oraculo.core.vocabulary import Priority
from oraculo.core.worker_scores import WorkerHealth
from oraculo.ports.broker import Delivery
from oraculo.runtime.scheduler.affinities import Affinities

ASKERS_MAX_REMEMBERED = 2000  # anyone may call himself anything
ASKED_LATELY_S = 5.0  # what a worker was told that did not ask for longer is forgotten


@dataclass(slots=True, eq=False)
class Offer:
    """A message that waits here. Anyone may have what is no order of ours."""

    delivery: Delivery
    came_at: float  # on the clock of the event loop
    run: int = 0
    position: int = 0
    attempt: int = 0
    needs: TicketNeeds = field(default_factory=TicketNeeds)
    score: float = 0.0
    since: datetime | None = None
    timeout: timedelta = timedelta()
    is_order: bool = False
    size: TicketSize = ANY_SIZE
    priority: Priority = Priority.NORMAL
    ties: TicketTies = NO_TIES
    undoes: bool = False  # another ticket
    made_room_for: str = ""  # the ticket for which its worker is told to stop
    refused: dict[str, float] = field(default_factory=dict)  # key of a worker → until when policies have said no
    trusted: dict[str, float] = field(default_factory=dict)  # … → until when faster ones should be done with it

    def is_refused(self, key: str, at: float) -> bool:
        """Return whether policies have refused to give it to this worker."""
        return self.refused.get(key, 0.0) > at

    def urgency(self, now: datetime) -> float:
        """How urgent it is now."""
        return self.score if self.since is None else aged(self.score, now - self.since, self.timeout)


@dataclass(slots=True, eq=False)
class ChosenOffer:
    """An offer and the worker that gets it; `allocation` is None of what is no order. `shared`: what it may have in
    common with other tickets, and whether the worker had any of those; empty where affinity is off."""

    offer: Offer
    key: str
    allocation: Allocation | None
    shared: tuple[tuple[str, bool], ...] = ()


@dataclass(slots=True, eq=False)
class Asker:
    """A worker that waits for up to `limit` messages, until an instant on the clock of the event loop."""

    key: str
    limit: int
    got: asyncio.Future[list[ChosenOffer]]
    until: float


@dataclass(slots=True)
class Board:
    """One queue. `passed_over` says since when a worker sees others preferred; `asked` is set when a worker asks."""

    queue: str
    offers: list[Offer] = field(default_factory=list)
    askers: list[Asker] = field(default_factory=list)
    shares: FairShares = field(default_factory=FairShares)
    passed_over: dict[str, float] = field(default_factory=dict)
    last_asked: dict[str, float] = field(default_factory=dict)
    asked_at: float = 0.0
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def forget(self, key: str) -> None:
        """A worker begins anew: it got something, or did not ask for a while."""
        self.passed_over.pop(key, None)
        for one in self.offers:
            one.trusted.pop(key, None)

    def ordered(self, now: datetime) -> list[Offer]:
        """Offers in the order in which they are offered."""
        self.shares.keep({one.run for one in self.offers})
        keyed = [(one, one.urgency(now)) for one in self.offers]
        keyed.sort(key=lambda pair: (-urgency_class(pair[1]), self.shares.got(pair[0].run), -pair[1]))
        return [one for one, _ in keyed]


class Matcher:
    """Chooses among the workers of a board. One that was passed over for `turn_s` seconds gets the next that it may
    have. `affinities` say who is close to which ticket."""

    def __init__(self, rng: Random, turn_s: float, affinities: Affinities) -> None:
        self.rng = rng
        self.turn_s = turn_s
        self.affinities = affinities

    def match(
        self, board: Board, workers: dict[str, WorkerFacts], now: datetime, at: float
    ) -> list[tuple[Asker, list[ChosenOffer]]]:
        """Take out of the board what goes to whom. `workers` are all that are known at this queue, by key; `at` is the
        clock of the event loop."""
        if not board.askers or not board.offers:
            return []
        return _Round(self, board, workers, now, at).run()


class _Round:
    """One look at a board."""

    def __init__(
        self, matcher: Matcher, board: Board, workers: dict[str, WorkerFacts], now: datetime, at: float
    ) -> None:
        self._matcher = matcher
        self._board = board
        self._workers = workers
        self._now = now
        self._at = at
        self._fastest_s = candidates.fastest_s(workers.values())
        self._paces: dict[tuple[str, TicketNeeds], Pace | None] = {}
        self._asking: dict[str, list[Asker]] = {}
        self._chosen: dict[Asker, list[ChosenOffer]] = {}
        self._ahead = 0.0  # what the offers before this one weigh that no worker got
        for asker in board.askers:
            self._asking.setdefault(asker.key, []).append(asker)
            workers[asker.key].asks += asker.limit
        for key in self._asking:
            if at - board.last_asked.get(key, at) > ASKED_LATELY_S:
                board.forget(key)
            board.last_asked[key] = at
        if len(board.last_asked) > ASKERS_MAX_REMEMBERED:
            board.last_asked = dict.fromkeys(self._asking, at)
            board.passed_over = {key: since for key, since in board.passed_over.items() if key in self._asking}

    def run(self) -> list[tuple[Asker, list[ChosenOffer]]]:
        board = self._board
        held_back: set[str] = set()
        for offer in self._ordered():
            chosen = self._choose(offer, held_back)
            if chosen is None:
                self._ahead += offer.size.weight
                continue
            self._give(chosen)
            if not self._asking:
                break
        for key in held_back:
            if key in self._asking:
                board.passed_over.setdefault(key, self._at)
        return list(self._chosen.items())

    def _ordered(self) -> list[Offer]:
        """Offers in their order. Where one worker asks alone, of those that are as urgent and whose plans got as much
        the ones of a plan come first that it did most of."""
        board, affinities = self._board, self._matcher.affinities
        ordered = board.ordered(self._now)
        if not affinities.options.enabled or len(self._asking) != 1:
            return ordered
        (key,) = self._asking
        name = self._workers[key].name

        def place(one: Offer) -> tuple[int, int, int]:
            urgent = -urgency_class(one.urgency(self._now))
            return urgent, board.shares.got(one.run), -affinities.did(one.run, name)

        return sorted(ordered, key=place)

    def _give(self, one: ChosenOffer) -> None:
        board, worker = self._board, self._workers[one.key]
        asker = self._asking[one.key][0]
        board.offers.remove(one.offer)
        board.shares.serve(one.offer.run)
        board.forget(one.key)
        worker.asks -= 1
        worker.in_flight += 1
        if one.offer.is_order:
            self._matcher.affinities.gave(one.offer.run, worker.name)
        if one.offer.ties != NO_TIES:
            worker.ties = (*worker.ties, one.offer.ties)
        if one.offer.needs.resources:
            used = dict(worker.used)
            for name, wanted in one.offer.needs.resources:
                used[name] = used.get(name, 0) + wanted
            worker.used = used
        self._chosen.setdefault(asker, []).append(one)
        if asker in board.askers:
            board.askers.remove(asker)
        asker.limit -= 1
        if not asker.limit:
            self._asking[one.key].pop(0)
            if not self._asking[one.key]:
                del self._asking[one.key]

    def _choose(self, offer: Offer, held_back: set[str]) -> ChosenOffer | None:
        """The worker that gets an offer; None when no worker that asks is to have it now."""
        askers = [self._workers[key] for key in self._asking]
        if not offer.is_order:
            return ChosenOffer(offer, askers[0].key, None)
        able = [one for one in askers if self._lacks(one, offer) is None]
        fit = [one for one in able if self._better_left(one, offer) is None]
        left = [one for one in able if one not in fit]
        held_back.update(one.key for one in left)
        turns = [one for one in left if self._passed_over_s(one) >= self._matcher.turn_s]
        if turns:
            best, method = max(turns, key=self._passed_over_s), AllocationMethod.TURN
        elif fit:
            best, method = self._best(fit, offer)
            if candidates.is_outpaced(best, self._faster(best, offer), self._ahead, offer.size.weight):
                method = AllocationMethod.OVERDUE
        else:
            return None
        shared = self._matcher.affinities.shared(best, offer.run, offer.ties)
        return ChosenOffer(offer, best.key, self._explained(best, method, offer), shared)

    def _passed_over_s(self, worker: WorkerFacts) -> float:
        return self._at - self._board.passed_over.get(worker.key, self._at)

    def _lacks(self, worker: WorkerFacts, offer: Offer) -> NotChosen | None:
        why = candidates.lacks(worker, offer.needs)
        return NotChosen.POLICY if why is None and offer.is_refused(worker.key, self._at) else why

    def _better_left(self, worker: WorkerFacts, offer: Offer) -> NotChosen | None:
        """Why a worker that could have an offer is better left without it; None: it is not. What the others were
        trusted with and did not take in time is not kept from it."""
        if worker.health is WorkerHealth.DOENTE:
            return NotChosen.UNHEALTHY
        faster, weight = self._faster(worker, offer), offer.size.weight
        if faster is None or not candidates.is_outpaced(worker, faster, self._ahead, weight):
            return None
        until = offer.trusted.setdefault(worker.key, self._at + faster.done_s(self._ahead, weight))
        return NotChosen.SLOWER if self._at <= until else None

    def _faster(self, worker: WorkerFacts, offer: Offer) -> Pace | None:
        """The pace of those that are faster and could do this ticket too, now or when they have room."""
        key = (worker.key, offer.needs)
        if offer.refused or key not in self._paces:
            others = [one for one in self._workers.values() if self._could(one, offer)]
            pace = candidates.pace_of_faster(worker, others)
            if offer.refused:
                return pace
            self._paces[key] = pace
        return self._paces[key]

    def _could(self, worker: WorkerFacts, offer: Offer) -> bool:
        if worker.health is WorkerHealth.DOENTE or offer.is_refused(worker.key, self._at):
            return False
        return candidates.lacks(worker, offer.needs) in (None, NotChosen.NO_ROOM, NotChosen.RESOURCES)

    def _best(self, fit: list[WorkerFacts], offer: Offer) -> tuple[WorkerFacts, AllocationMethod]:
        if len(fit) == 1:
            return fit[0], AllocationMethod.ONLY
        scores = {one.key: self._scored(one, offer).score for one in fit}
        top = max(scores.values())
        near = [one for one in fit if top - scores[one.key] <= NEAR_EQUAL_SCORE]
        if len(near) == 1:
            return near[0], AllocationMethod.BEST
        drawn = self._matcher.rng.sample(near, 2)
        return min(drawn, key=lambda one: (one.in_flight, -scores[one.key])), AllocationMethod.TWO_DRAWN

    def _scored(self, worker: WorkerFacts, offer: Offer, reason: NotChosen | None = None) -> Candidate:
        close = self._matcher.affinities.of(worker, offer.run, offer.ties)
        return candidates.scored(worker, self._fastest_s, reason, offer.size.weight, close)

    def _explained(self, best: WorkerFacts, method: AllocationMethod, offer: Offer) -> Allocation:
        size = offer.size
        chosen = self._scored(best, offer)
        refused: dict[NotChosen, int] = {}
        others: list[Candidate] = []
        for one in self._workers.values():
            if one.key == best.key:
                continue
            why = self._lacks(one, offer)
            if why is None and one.asks <= 0:
                why = NotChosen.NOT_ASKING
            why = why or self._better_left(one, offer) or NotChosen.LOWER_SCORE
            refused[why] = refused.get(why, 0) + 1
            others.append(self._scored(one, offer, why))
        shown = nlargest(CANDIDATES_MAX_RECORDED - 1, others, key=lambda one: (one.score, one.agent_id))
        priority = round(min(1.0, offer.urgency(self._now)), 4)
        named = (chosen, *shown)
        return Allocation(best.name, method, priority, chosen.score, named, refused, size.p50_ms, size.p90_ms)
