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
    preemption: bool = setting(
        "SCHEDULER_ENABLE_PREEMPTION",
        "false",
        read.flag,
        "Where every worker is full, one is told to stop a less urgent ticket for a more urgent one "
        "([preemption](scheduler.md#room-for-what-is-urgent))",
    )
    preemptor: str = setting(
        "SCHEDULER_PREEMPTION_MIN_PREEMPTOR_PRIORITY",
        "HIGH",
        read.one_of("NORMAL", "HIGH", "CRITICAL"),
        "The least priority for which others make room",
    )
    victim: str = setting(
        "SCHEDULER_PREEMPTION_MAX_PREEMPTABLE_PRIORITY",
        "LOW",
        read.one_of("LOW", "NORMAL", "HIGH"),
        "The highest priority that makes room",
    )
    grace_s: float = setting(
        "SCHEDULER_PREEMPTION_GRACE_PERIOD_SECONDS",
        "30",
        read.number(5, 300),
        "How long a worker has to stop; then its lease ends. Heartbeats come twice as often",
    )
    preemptions: int = setting(
        "SCHEDULER_PREEMPTION_MAX_CONCURRENT", "5", read.whole(1, 20), "Workers that are told to stop something at once"
    )
    cooldown_s: float = setting(
        "SCHEDULER_PREEMPTION_WORKER_COOLDOWN_SECONDS",
        "60",
        read.number(10, 600),
        "How long a worker that made room is left in peace",
    )
    retry_delay_s: float = setting(
        "SCHEDULER_PREEMPTION_RETRY_DELAY_SECONDS",
        "300",
        read.number(60, 3600),
        "After how long a ticket that made room goes out again; none of its attempts is used up",
    )
