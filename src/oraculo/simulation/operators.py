"""Model operators: one gives orders whose attempts are used up another attempt, one pauses orchestrations, one signals
and decides."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

from oraculo.core.commands import Approve, Command, PauseRun, Prioritise, RequeueTicket, ResumeRun, Signal
from oraculo.core.waits import WaitKind, signal_task
from oraculo.errors import BusyError, StoreError
from oraculo.ports.work import Fate, Work
from oraculo.simulation.faults import ProcessDiedError
from oraculo.simulation.plans import SIGNALS
from oraculo.simulation.process import Process
from oraculo.simulation.watch import Watch
from oraculo.wire import quarantine

REQUEUED = "requeued"
PAUSED_WORLDS_SHARE = 0.4  # of worlds where orchestrations are paused
PRIORITISED_WORLDS_SHARE = 0.5  # of those under a ceiling


async def operator(process: Process, rng: Random) -> None:
    """While there are faults; `rng` is his own, so that the rest of the world is as without him."""
    while process.scene.faults:
        await asyncio.sleep(rng.uniform(0.5, 6))
        with suppress(ProcessDiedError, StoreError, BusyError):
            await _round(process, rng)


async def _round(process: Process, rng: Random) -> None:
    for letter in await process.store.dead_letters(reason=quarantine.ATTEMPTS_USED_UP, bodies=False):
        ticket = quarantine.exhausted_ticket(letter)
        if ticket is None or rng.random() < 0.5:
            continue
        run, position = ticket
        work = Work(RequeueTicket(position, quarantine.attempts_of(letter)), run=run)
        outcome = await process.work(work)
        process.scene.count(f"requeued {outcome.fate.value}")
        if outcome.fate in (Fate.APPLIED, Fate.DUPLICATE):
            await process.store.remove_dead_letters([letter.id], REQUEUED)


async def pauser(process: Process, watch: Watch, rng: Random) -> None:
    """Pause orchestrations and let them go on, also those that were paused when the faults are over; `rng` is his
    own."""
    often = process.scene.recalls
    if rng.random() >= PAUSED_WORLDS_SHARE and not often:
        return
    while True:
        await asyncio.sleep(rng.uniform(0.05, 1) if often else rng.uniform(0.2, 4))
        open_runs = [run for run, journal in watch.journals.items() if journal.status is None]
        chosen = [run for run in open_runs if watch.journals[run].pauses.paused or process.scene.faults]
        for run in chosen if not process.scene.faults else rng.sample(chosen, min(len(chosen), 1)):
            paused = watch.journals[run].pauses.paused
            with suppress(ProcessDiedError, StoreError, BusyError):
                outcome = await process.work(Work(ResumeRun("já pode") if paused else PauseRun("espera"), run=run))
                process.scene.count(f"{'resumed' if paused else 'paused'} {outcome.fate.value}")


async def prioritiser(process: Process, watch: Watch, rng: Random) -> None:
    """Change how urgent orchestrations are, while there are faults; `rng` is his own."""
    if rng.random() >= PRIORITISED_WORLDS_SHARE:
        return
    while process.scene.faults:
        await asyncio.sleep(rng.uniform(0.2, 2))
        open_runs = [run for run, journal in watch.journals.items() if journal.status is None]
        for run in rng.sample(open_runs, min(len(open_runs), 1)):
            with suppress(ProcessDiedError, StoreError, BusyError):
                outcome = await process.work(Work(Prioritise(rng.choice((1, 5, 9)), "urge"), run=run))
                process.scene.count(f"priority {outcome.fate.value}")


async def signaller(process: Process, watch: Watch, rng: Random) -> None:
    """Signal and decide: while there are faults now and then, and also where no task waits for it; then all that is
    waited for. `rng` is his own."""
    number = 0
    while True:
        await asyncio.sleep(rng.uniform(0.2, 3))
        for run in [run for run, journal in watch.journals.items() if journal.status is None]:
            wanted: list[Command] = _awaited(watch, run, rng)
            if process.scene.faults:
                wanted = [one for one in (*wanted, Signal("", rng.choice(SIGNALS))) if rng.random() < 0.3]
            for command in wanted:
                number += 1
                if isinstance(command, Signal):
                    command = Signal(f"sig-{number}", command.name, b"%d" % number)
                with suppress(ProcessDiedError, StoreError, BusyError):
                    outcome = await process.work(Work(command, run=run))
                    process.scene.count(f"{type(command).__name__} {outcome.fate.value}")


def _awaited(watch: Watch, run: int, rng: Random) -> list[Command]:
    """What the open waits of a run ask for."""
    held = watch.states[run].held
    signals = [Signal("", name) for name in SIGNALS for _ in held.get(signal_task(name), ())]
    return [*signals, *(Approve(rng.random() < 0.8, "ana", task=p) for p in held.get(WaitKind.APPROVAL, ()))]
