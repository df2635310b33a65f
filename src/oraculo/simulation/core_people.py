"""What people and other systems do to an orchestration of a world of the core: signals, decisions, that children have
ended which had to, that workers are lost, and which worker was chosen."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from oraculo.core.allocations import Allocation, AllocationMethod, Candidate, NotChosen
from oraculo.core.commands import AllocateTicket, Approve, ConfirmCancel, Signal, WithdrawTicket
from oraculo.core.vocabulary import Cause, Verdict
from oraculo.core.waits import WaitKind
from oraculo.simulation import allocation_rules, plans, withdrawal_rules
from oraculo.simulation.wait_rules import HELD, wait_of

if TYPE_CHECKING:
    from oraculo.simulation.core_world import CoreWorld

PREEMPTED_SHARE = 0.5  # of withdrawn attempts: their place was needed
LAPSES_IN_A_ROW = (1, 1, 2, 8, 24)
LAPSED_SHARE = 0.5  # of the others: a worker did not take in time what it was offered
LOSING_WORLDS_SHARE, LOSS_SHARE = 0.4, 0.2  # of worlds where workers are lost, and of their moments
CHOOSING_WORLDS_SHARE, CHOICE_SHARE = 0.4, 0.3  # of worlds where workers are chosen, and of their moments


def signal(world: CoreWorld) -> None:
    """A signal that is new, one that came before, or one with the id of another."""
    rng, waits = world.rng, world.journal.waits
    name = rng.choice((*plans.SIGNALS, "nobody")) if rng.random() < 0.1 else rng.choice(plans.SIGNALS)
    id, dados = f"id{rng.randrange(30)}", b"%d" % rng.randrange(3)
    found = [wait_of(world.state.plan, position) for position in range(len(world.state.tickets))]
    known = any(wait is not None and wait.signal == name for wait in found)
    if id in waits.signals:
        expected = Verdict.DUPLICATE if waits.signals[id] == (name, dados) else Verdict.SIGNAL_REUSED
    elif world.journal.status is not None:
        expected = Verdict.IDLE
    else:
        expected = Verdict.APPLIED if known else Verdict.UNKNOWN_SIGNAL
    world.do(Signal(id, name, dados), expected)


def decide_task(world: CoreWorld) -> None:
    """Of a task that may not even wait for it."""
    waiting = list(world.state.held.get(WaitKind.APPROVAL, ()))
    some = waiting if waiting and world.rng.random() < 0.8 else range(len(world.state.tickets))
    position = world.rng.choice(some)
    wait, held = wait_of(world.state.plan, position), world.journal.tickets[position].phase == HELD
    asked = held and wait is not None and wait.kind is WaitKind.APPROVAL
    approve = Approve(world.rng.random() < 0.7, "ana", "visto", task=position)
    world.do(approve, Verdict.APPLIED if asked else Verdict.IDLE)


def end_wait(world: CoreWorld, position: int) -> None:
    wait = wait_of(world.state.plan, position)
    assert wait is not None
    if wait.kind is WaitKind.SIGNAL:
        world.do(Signal(f"end{len(world.records)}", wait.signal), Verdict.APPLIED)
    else:
        world.do(Approve(True, "ana", task=position), Verdict.APPLIED)


def end_children(world: CoreWorld) -> None:
    """Some of those that have to end have ended; and some that have not to."""
    left = list(world.state.to_end.items())
    some = world.rng.sample(left, world.rng.randint(0, len(left)))
    strange = [(world.rng.randrange(len(world.state.tickets)), 7)] if world.rng.random() < 0.2 else []
    if some or strange:
        world.do(ConfirmCancel([*some, *strange]), Verdict.APPLIED if some else Verdict.IDLE)


def losses(seed: str) -> Random | None:
    """The chances that workers are lost, apart from those of the world; None in worlds where none is."""
    rng = Random(f"lost {seed}")
    return rng if rng.random() < LOSING_WORLDS_SHARE else None


def lose_worker(world: CoreWorld, rng: Random | None) -> None:
    """A worker is gone that has a ticket, or is said to have one, or its place is needed for another; sometimes the
    next attempt has to wait."""
    if rng is None or rng.random() >= LOSS_SHARE:
        return
    seen = world.journal.tickets
    busy = [p for p, one in enumerate(seen) if one.phase in ("owed", "running")]
    position = rng.choice(busy if busy and rng.random() < 0.9 else list(range(len(seen))))
    attempt = max(0, seen[position].attempt - (rng.random() < 0.2))
    wait = timedelta(seconds=rng.randint(1, 5)) if rng.random() < 0.3 else None
    cause, by = (Cause.PREEMPTADO, "urgent") if rng.random() < PREEMPTED_SHARE else (Cause.REALOCADO, "")
    if not by and rng.random() < LAPSED_SHARE:
        lapse_offers(world, position, attempt, rng.choice(LAPSES_IN_A_ROW))
        return
    command = WithdrawTicket(position, attempt, cause, "w", wait, by=by)
    world.do(command, withdrawal_rules.expected(world.journal, position, attempt, cause))


def lapse_offers(world: CoreWorld, position: int, attempt: int, times: int) -> None:
    """Workers do not begin what they are offered, one after the other."""
    for number in range(attempt, attempt + times):
        expected = withdrawal_rules.expected(world.journal, position, number, Cause.OFERTA_VENCIDA)
        world.do(WithdrawTicket(position, number, Cause.OFERTA_VENCIDA, "w"), expected)


def allocations(seed: str) -> Random | None:
    """The chances that workers are chosen, apart from those of the world; None in worlds where none is."""
    rng = Random(f"allocated {seed}")
    return rng if rng.random() < CHOOSING_WORLDS_SHARE else None


def choose_worker(world: CoreWorld, rng: Random | None) -> None:
    """A worker was chosen for a ticket that it may have, or that needs no work any more."""
    if rng is None or rng.random() >= CHOICE_SHARE:
        return
    seen = world.journal.tickets
    open_now = [p for p, one in enumerate(seen) if one.phase in ("owed", "running")]
    position = rng.choice(open_now if open_now and rng.random() < 0.8 else list(range(len(seen))))
    attempt = max(0, seen[position].attempt - (rng.random() < 0.2))
    worker = rng.choice("abc")
    chosen = Candidate(worker, 0.8, 1.0, 0.9, 0.5, 1.0)
    other = Candidate("z", 0.3, 0.6, 0.5, 0.1, 0.0, reason=NotChosen.SLOWER)
    allocation = Allocation(worker, AllocationMethod.BEST, 0.5, 0.8, (chosen, other), {NotChosen.SLOWER: 1})
    expected = allocation_rules.expected(world.journal, position, attempt)
    world.do(AllocateTicket(position, attempt, allocation), expected)
    allocation_rules.check_state(world.journal, world.state, position)
