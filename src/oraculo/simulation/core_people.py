"""What people and other systems do to an orchestration of a world of the core: signals, decisions, and that children
have ended which had to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oraculo.core.commands import Approve, ConfirmCancel, Signal
from oraculo.core.vocabulary import Verdict
from oraculo.core.waits import WaitKind
from oraculo.simulation import plans
from oraculo.simulation.wait_rules import HELD, wait_of

if TYPE_CHECKING:
    from oraculo.simulation.core_world import CoreWorld


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
