"""Settings → the parts of Fluxo C: where its topics are, who reads them, and in which form its records travel."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote, urlencode, urlsplit

from oraculo.adapters.brokers.routing import RoutingBroker
from oraculo.adapters.registry.http import HttpRegistry
from oraculo.adapters.registry.local import LocalRegistry
from oraculo.adapters.sinks.flow_topics import FlowTopics
from oraculo.core.cognitive import FLOW_SLA, FlowRules
from oraculo.core.plan import Backoff
from oraculo.core.ticket import BACKOFF, SlaRules
from oraculo.parts import broker_of, scheme_of
from oraculo.ports.broker import Broker
from oraculo.ports.registry import Registry
from oraculo.settings import VARIABLES, Settings
from oraculo.wire.flow import schemas, telemetry
from oraculo.wire.flow.codec import AVRO, JSON, Codec
from oraculo.wire.flow.topics import Topics


def topics_of(settings: Settings) -> Topics:
    return Topics(
        settings.kafka_consensus,
        settings.kafka_tickets,
        settings.kafka_results,
        settings.kafka_telemetry,
        settings.kafka_incidents,
    )


def broker_for(settings: Settings) -> Broker:
    """The broker of ORACULO_BROKER; with the topics of Fluxo C on a Kafka of their own where there is one."""
    topics = topics_of(settings)
    groups = dict.fromkeys(topics.read, settings.kafka_group) if settings.takes_plans else {}
    main = broker_of(settings.broker, settings.broker_dwell_s, groups)
    if not settings.takes_plans or not settings.kafka_servers or _same_cluster(settings):
        return main
    return RoutingBroker(main, broker_of(kafka_url(settings), groups=groups), topics.every)


def _same_cluster(settings: Settings) -> bool:
    """ORACULO_BROKER is that Kafka already."""
    if scheme_of(settings.broker) != "kafka" or "," in settings.broker:
        return False
    where = urlsplit(settings.broker).netloc.rpartition("@")[2]
    return (where if ":" in where else f"{where}:9092") in _servers(settings)


def _servers(settings: Settings) -> list[str]:
    return [server.strip() for server in settings.kafka_servers.split(",")]


def kafka_url(settings: Settings) -> str:
    """Of KAFKA_BOOTSTRAP_SERVERS and what belongs to it. What is published there is compressed."""
    first, *others = _servers(settings)
    options = {"compression": "gzip"}
    if others:
        options["servers"] = " ".join(others)
    if settings.kafka_security.endswith("SSL"):
        options["tls"] = "1"
    who = ""
    if settings.kafka_user:
        options["sasl"] = settings.kafka_sasl
        who = f"{quote(settings.kafka_user, safe='')}:{quote(settings.kafka_password, safe='')}@"
    return f"kafka://{who}{first}/?{urlencode(options)}"


def on_kafka(settings: Settings) -> bool:
    """Whether the topics of Fluxo C are topics of Kafka."""
    return bool(settings.kafka_servers) or all(scheme_of(url.strip()) == "kafka" for url in settings.broker.split(","))


def registry_of(settings: Settings) -> Registry:
    if not settings.kafka_registry:
        return LocalRegistry()
    return HttpRegistry(settings.kafka_registry, topics_of(settings).records)


def codec_of(settings: Settings, registry: Registry) -> Codec:
    """Avro on Kafka, JSON everywhere else; both are read everywhere."""
    return Codec(registry, AVRO if on_kafka(settings) else JSON)


def topics_sink(settings: Settings, broker: Broker, codec: Codec) -> FlowTopics:
    topics = topics_of(settings)
    where = {**topics.records, telemetry.APPROVAL_REQUEST: topics.approval_requests}
    if isinstance(broker, RoutingBroker):  # all of them are there
        broker = broker.other
    return FlowTopics(broker, where, codec.encode, plain=(schemas.TELEMETRY_FRAME, telemetry.APPROVAL_REQUEST))


def flow_rules(settings: Settings) -> FlowRules:
    """A plan has four hours, and waits of its own between attempts, unless it says otherwise, or somebody has changed
    what every orchestration gets."""
    patient = _changed(settings, "default_timeout_ms")
    retries = _changed(settings, "retry_base_s", "retry_cap_s")
    return FlowRules(
        topic=settings.kafka_tickets,
        sla=SlaRules(settings.ticket_min_timeout_ms, settings.ticket_timeout_buffer),
        timeout=timedelta(milliseconds=settings.default_timeout_ms) if patient else FLOW_SLA,
        backoff=Backoff(timedelta(seconds=settings.retry_base_s), timedelta(seconds=settings.retry_cap_s))
        if retries
        else BACKOFF,
        offers=dict(_offer(one) for one in settings.capabilities),
    )


def _changed(settings: Settings, *fields: str) -> bool:
    return any(getattr(settings, field) != float(VARIABLES[field].default) for field in fields)


def _offer(said: str) -> tuple[str, frozenset[str]]:
    name, _, can = said.partition("=")
    return name.strip(), frozenset(part.strip() for part in can.split("+"))
