"""The engine `local`: the kernel in one process, with effects, timers and recovery of its own.

Where several processes share a store, each is a replica that also looks after what dead ones left; one of them keeps
the ceiling for all, from the journal.
"""

from __future__ import annotations

from datetime import timedelta

from oraculo.runtime.effects.runner import EffectRunner
from oraculo.runtime.kernel.ceiling.upkeep import CeilingUpkeep, ceiling_of, fleet_ceiling, has_fleet_ceiling
from oraculo.runtime.kernel.commands import CommandQueue
from oraculo.runtime.kernel.kernel import Kernel
from oraculo.runtime.kernel.options import KernelOptions, KernelPorts
from oraculo.runtime.kernel.states import States
from oraculo.runtime.kernel.takeover import TAKEOVER_DELAY
from oraculo.runtime.kernel.timers import TimerLoop


def local_engine(ports: KernelPorts, options: KernelOptions) -> Kernel:
    """Assemble an engine that does everything: it commits, carries out effects, runs timers, and takes over."""
    queue = CommandQueue()
    timers = TimerLoop(ports.clock, queue.enqueue)
    return _assemble(ports, options, queue, timers=timers, takeover_delay=TAKEOVER_DELAY)


def local_front(ports: KernelPorts, options: KernelOptions) -> Kernel:
    """Assemble an engine that commits and carries out what is handed in here; timers, and what dead processes left, are
    looked after by other processes on the same store."""
    return _assemble(ports, options, CommandQueue())


def _assemble(
    ports: KernelPorts,
    options: KernelOptions,
    queue: CommandQueue,
    *,
    timers: TimerLoop | None = None,
    takeover_delay: timedelta | None = None,
) -> Kernel:
    states, ceiling = States(ports.store), ceiling_of(ports, options)
    effects = EffectRunner(
        ports,
        options,
        queue.enqueue,
        states.still_owed,
        filter_owed=states.filter_owed,
        look_at=states.look_at,
        ceiling=ceiling,
        fleet_ceiling=has_fleet_ceiling(ports, options),
    )
    kernel = Kernel(ports, options, queue, states, effects, timers=timers, takeover_delay=takeover_delay)
    fleet = fleet_ceiling(ports, options, effects)
    if fleet is not None:
        effects.held_back_by_fleet = lambda: fleet.held_back
        kernel.add("ceiling of the fleet", fleet.run)
    if ceiling is not None:
        upkeep = CeilingUpkeep(ceiling, ports, states, effects.rescore)
        kernel.add("ceiling", upkeep.run, prepare=upkeep.prepare)
    return kernel
