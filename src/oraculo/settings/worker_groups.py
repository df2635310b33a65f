"""Settings of workers that register, and of who gets which ticket."""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.settings import readers as read
from oraculo.settings.declare import setting


@dataclass(frozen=True, slots=True)
class WorkerRegistrySettings:
    """The registry of workers."""

    enabled: bool = setting(
        "ORACULO_WORKER_REGISTRY",
        "false",
        read.flag,
        "Python workers register and say that they are alive, over HTTP or in the queue `orquestrador_workers`, which "
        "the server then reads ([workers](workers.md#workers-that-register)); set it for both. Over HTTP any worker "
        "may register without it",
    )
    timeout_s: float = setting(
        "ORACULO_WORKER_TIMEOUT_S",
        "120",
        read.number(5, 3600),
        "Silent for so long, a registered worker is lost: its tickets go elsewhere. It is asked for a sign of life "
        "four times as often",
    )


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """Who gets which ticket."""

    enabled: bool = setting(
        "ENABLE_INTELLIGENT_SCHEDULER",
        "false",
        read.flag,
        "A worker that leases over HTTP gets the tickets that are best for it, and every choice is recorded with its "
        "candidates ([scheduler](scheduler.md))",
    )
    turn_s: float = setting(
        "SCHEDULER_WORKER_TURN_SECONDS",
        "30",
        read.number(0.1, 3600),
        "Passed over for so long because others are faster or it fails too often, a worker gets a ticket all the same",
    )
