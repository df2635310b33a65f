"""`oraculo topics`: the Kafka topics of Fluxo C, made where they are missing and compared with what they need."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oraculo.adapters.brokers.registry import scheme_of
from oraculo.bootstrap import foresight
from oraculo.bootstrap.flow import kafka_url, topics_of
from oraculo.cli.exits import CommandError, Exit
from oraculo.cli.output import AsJson, emit, note, say
from oraculo.cli.texts import t
from oraculo.errors import MissingExtraError
from oraculo.settings.settings import Settings, load
from oraculo.wire.flow.topic_table import MESSAGE_MAX_BYTES, REPLICAS, TopicNeed, needs_of

if TYPE_CHECKING:
    from oraculo.adapters.brokers.kafka.topic_admin import ClusterFound, TopicAdmin, TopicFound
    from oraculo.adapters.brokers.kafka.url import Options

NEWS_TIMEOUT_S = 15.0  # brokers hear of a new topic a little later than the one that made it

Partitions = Annotated[
    int | None, typer.Option("--partitions", min=1, max=10_000, help=t("o.partitions"), show_default=False)
]
Replication = Annotated[
    int | None, typer.Option("--replication", min=1, max=100, help=t("o.replication"), show_default=False)
]


@dataclass(frozen=True, slots=True)
class TopicVerdict:
    """One topic: what it needs, what there is of it, and what was done about that."""

    need: TopicNeed
    replicas: int
    found: TopicFound | None
    done: str = ""  # created, grown

    @property
    def state(self) -> str:
        if self.found is None:
            return "missing"
        if self.found.partitions < self.need.partitions:
            return "too_few_partitions"
        if self.found.replicas < self.replicas:
            return "too_few_replicas"
        return self.done or "ok"

    @property
    def ok(self) -> bool:
        return self.state in ("ok", "created", "grown")

    @property
    def forgets_early(self) -> bool:
        """Whether records are kept for a shorter time than they should be."""
        kept = self.found.retention if self.found is not None else None
        return kept is not None and kept < self.need.retention

    def document(self) -> dict[str, Any]:
        found = self.found
        return {
            "topic": self.need.name,
            "state": self.state,
            "partitions": found.partitions if found else 0,
            "partitions_needed": self.need.partitions,
            "replicas": found.replicas if found else 0,
            "replicas_needed": self.replicas,
            "retention_ms": _milliseconds(found.retention) if found and found.retention is not None else None,
            "retention_ms_needed": _milliseconds(self.need.retention),
        }

    def line(self) -> str:
        return t(f"topic.{self.state}", **self.document())


def check(partitions: Partitions = None, replication: Replication = None, json: AsJson = False) -> None:
    _report(asyncio.run(_look(_needs(partitions), replication)), json)


def ensure(
    partitions: Partitions = None,
    replication: Replication = None,
    grow: Annotated[bool, typer.Option("--grow", help=t("o.grow"))] = False,
    json: AsJson = False,
) -> None:
    _report(asyncio.run(_ensure(_needs(partitions), replication, grow)), json)


def _report(verdicts: Sequence[TopicVerdict], json: bool) -> None:
    ok = all(one.ok for one in verdicts)
    if json:
        emit({"ok": ok, "topics": [one.document() for one in verdicts]})
    else:
        for one in verdicts:
            if one.ok:
                say(one.line())
    for one in verdicts:
        if not one.ok:
            note(f"oraculo: {one.line()}")
        elif one.forgets_early:
            note(f"oraculo: {t('topic.forgets', **one.document())}")
    if not ok:
        raise typer.Exit(Exit.FAILED)


def _needs(partitions: int | None) -> list[TopicNeed]:
    known = load()
    sla = foresight.topics_of(known).values() if known.sla.enabled else ()
    return needs_of(topics_of(known), partitions, sla)


async def _look(needs: Sequence[TopicNeed], replication: int | None) -> list[TopicVerdict]:
    return _verdicts(needs, replication, await _admin().look(need.name for need in needs))


def _verdicts(
    needs: Sequence[TopicNeed], replication: int | None, cluster: ClusterFound, done: dict[str, str] | None = None
) -> list[TopicVerdict]:
    replicas = replication or min(REPLICAS, cluster.brokers)
    return [
        TopicVerdict(need, replicas, cluster.topics.get(need.name), (done or {}).get(need.name, "")) for need in needs
    ]


async def _ensure(needs: Sequence[TopicNeed], replication: int | None, grow: bool) -> list[TopicVerdict]:
    """Make what is missing; give existing topics more partitions only when `grow` says so. Nothing is ever lowered."""
    admin, names = _admin(), [need.name for need in needs]
    done: dict[str, str] = {}
    for one in _verdicts(needs, replication, await admin.look(names)):
        if one.state == "missing":
            await admin.create(one.need.name, one.need.partitions, one.replicas, _config(one))
            done[one.need.name] = "created"
        elif one.state == "too_few_partitions" and grow:
            await admin.grow(one.need.name, one.need.partitions)
            done[one.need.name] = "grown"
    loop = asyncio.get_running_loop()
    until = loop.time() + NEWS_TIMEOUT_S
    while True:
        verdicts = _verdicts(needs, replication, await admin.look(names), done)
        if all(one.ok for one in verdicts if one.need.name in done) or loop.time() > until:
            return verdicts
        await asyncio.sleep(0.2)


def _config(verdict: TopicVerdict) -> dict[str, str]:
    return {
        "cleanup.policy": "delete",
        "max.message.bytes": str(MESSAGE_MAX_BYTES),
        "min.insync.replicas": "2" if verdict.replicas > 2 else "1",
        "retention.ms": str(_milliseconds(verdict.need.retention)),
    }


def _admin() -> TopicAdmin:
    try:
        from oraculo.adapters.brokers.kafka.topic_admin import TopicAdmin
    except ModuleNotFoundError as error:
        raise MissingExtraError("kafka://", "kafka") from error
    return TopicAdmin(_options(load()))


def _options(known: Settings) -> Options:
    """Of the Kafka that has the topics of Fluxo C."""
    from oraculo.adapters.brokers.kafka.url import parse

    if known.kafka.servers:
        return parse(kafka_url(known))
    for url in known.broker.split(","):
        if scheme_of(url.strip()) == "kafka":
            return parse(url.strip())
    raise CommandError(t("no-kafka"), Exit.USAGE)


def _milliseconds(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)
