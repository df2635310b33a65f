"""Settings of workers that register, and of who gets which ticket."""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.core.vocabulary import Priority, RiskBand
from oraculo.errors import SettingsError
from oraculo.settings import readers as read
from oraculo.settings.declare import group, setting
from oraculo.settings.policy_groups import WORDS
from oraculo.settings.readers import Reader

WEIGHTS_SUM_TOLERANCE = 0.001


def _some_of(*allowed: str) -> Reader[tuple[str, ...]]:
    def parse(value: str) -> tuple[str, ...]:
        found = WORDS.parse(value)
        if not set(found) <= set(allowed):
            raise ValueError
        return found

    return Reader(parse, f"some of {', '.join(allowed)}, with commas between or as a JSON list; empty: none")


@dataclass(frozen=True, slots=True)
class OutsideRegistrySettings:
    """Another registry of workers, as the original has it."""

    host: str = setting(
        "SERVICE_REGISTRY_HOST",
        "",
        read.database_host,
        "Host of another registry of workers, over gRPC (extra `grpc`): the best of its workers are listed here, too; "
        "empty: none",
    )
    port: int = setting("SERVICE_REGISTRY_PORT", "50051", read.whole(1, 65535), "Its port")
    timeout_s: float = setting(
        "SERVICE_REGISTRY_TIMEOUT_SECONDS", "3", read.number(0.1, 60), "How long it may take to answer"
    )
    most: int = setting("SERVICE_REGISTRY_MAX_RESULTS", "5", read.whole(1, 1000), "How many workers it is asked for")
    interval_s: float = setting(
        "SERVICE_REGISTRY_CACHE_TTL_SECONDS", "10", read.number(1, 600), "For how long its answer is not asked again"
    )
    audience: str = setting(
        "SERVICE_REGISTRY_JWT_AUDIENCE",
        "service-registry.neural-hive.local",
        read.word,
        "With SPIFFE_ENABLED: the audience of the token that it is shown",
    )


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
    outside: OutsideRegistrySettings = group(OutsideRegistrySettings, "Another registry of workers")


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
    predicted: bool = setting(
        "ENABLE_ML_ENHANCED_SCHEDULING",
        "true",
        read.flag,
        "`false`: what is predicted (ORACULO_PREDICTIONS) does not count where workers are chosen",
    )
    turn_s: float = setting(
        "SCHEDULER_WORKER_TURN_SECONDS",
        "30",
        read.number(0.1, 3600),
        "Passed over for so long because others are faster or it fails too often, a worker gets a ticket all the same",
    )
    offers: bool = setting(
        "SCHEDULER_OFFERS",
        "false",
        read.flag,
        "Workers of a broker that register are chosen, too: each gets in a queue of its own what was chosen for it, "
        "and takes from no other ([offers](scheduler.md#offers-on-brokers)). Needs ENABLE_INTELLIGENT_SCHEDULER and "
        "ORACULO_WORKER_REGISTRY; set it for both, server and workers",
    )
    offer_s: float = setting(
        "SCHEDULER_OFFER_SECONDS",
        "5",
        read.number(0.5, 300),
        "How long a worker has to begin what it was offered; then the ticket goes elsewhere",
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
    retry_preempted: bool = setting(
        "SCHEDULER_PREEMPTION_RETRY_PREEMPTED_TASKS",
        "true",
        read.flag,
        "`false`: a ticket that made room does not go out again: it has failed, with the code `preemptado`",
    )
    retry_delay_s: float = setting(
        "SCHEDULER_PREEMPTION_RETRY_DELAY_SECONDS",
        "300",
        read.number(60, 3600),
        "After how long a ticket that made room goes out again; none of its attempts is used up",
    )


@dataclass(frozen=True, slots=True)
class AffinitySettings:
    """Who is close to which ticket."""

    enabled: bool = setting(
        "SCHEDULER_ENABLE_AFFINITY",
        "false",
        read.flag,
        "Where workers are chosen, a worker that did others of the same plan is preferred, and critical tickets are "
        "spread over workers ([affinity](scheduler.md#who-is-close))",
    )
    plan: float = setting(
        "SCHEDULER_AFFINITY_PLAN_WEIGHT", "0.6", read.number(0, 1), "What tickets of the same plan count for"
    )
    anti: float = setting(
        "SCHEDULER_AFFINITY_ANTI_WEIGHT",
        "0.3",
        read.number(0, 1),
        "What it counts against a worker, for a critical ticket, that it has one already",
    )
    intent: float = setting(
        "SCHEDULER_AFFINITY_INTENT_WEIGHT",
        "0.1",
        read.number(0, 1),
        "What tickets of the same intent count for that the worker has in hand (Fluxo C). The three weights are 1 "
        "together",
    )
    full_at: int = setting(
        "SCHEDULER_AFFINITY_PLAN_THRESHOLD",
        "3",
        read.whole(1, 1000),
        "So many tickets of a plan, or of an intent, are as close as can be",
    )
    kept_s: float = setting(
        "SCHEDULER_AFFINITY_CACHE_TTL_SECONDS",
        "0",
        read.number(0, 2592000),
        "For how many seconds it counts that a ticket of a plan went to a worker; 0: as long as the plan runs",
    )
    bands: tuple[str, ...] = setting(
        "SCHEDULER_AFFINITY_ANTI_AFFINITY_RISK_BANDS",
        "critical,high",
        _some_of(*RiskBand),
        "Tickets of plans of these risk bands are critical",
    )
    priorities: tuple[str, ...] = setting(
        "SCHEDULER_AFFINITY_ANTI_AFFINITY_PRIORITIES",
        "CRITICAL,HIGH",
        _some_of(*Priority),
        "So are tickets of these priorities",
    )


def check_choices(chosen: SchedulerSettings, registry: WorkerRegistrySettings, affinity: AffinitySettings) -> None:
    """SettingsError: offers are on, and what they need is off; or the weights of affinity are not 1 together."""
    _check_affinity(affinity)
    if chosen.offers and not (chosen.enabled and registry.enabled):
        wanted = "false unless ENABLE_INTELLIGENT_SCHEDULER and ORACULO_WORKER_REGISTRY are true"
        raise SettingsError("SCHEDULER_OFFERS", "true", wanted)


def _check_affinity(chosen: AffinitySettings) -> None:
    """SettingsError: the weights are not 1 together."""
    total = chosen.plan + chosen.anti + chosen.intent
    if abs(total - 1) > WEIGHTS_SUM_TOLERANCE:
        raise SettingsError(
            "SCHEDULER_AFFINITY_PLAN_WEIGHT",
            f"{chosen.plan:g}",
            f"such that it is 1 together with SCHEDULER_AFFINITY_ANTI_WEIGHT and SCHEDULER_AFFINITY_INTENT_WEIGHT, "
            f"which are {chosen.anti:g} and {chosen.intent:g}",
        )
