"""From settings to the parts of Fluxo C: its topics, their broker, and the form of its records."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from oraculo.adapters.brokers.connect import broker_of
from oraculo.adapters.brokers.registry import scheme_of
from oraculo.adapters.brokers.routing import RoutingBroker
from oraculo.adapters.registry.folder import folder_schemas
from oraculo.adapters.registry.local import LocalRegistry
from oraculo.adapters.sinks.flow_topics import FlowTopics
from oraculo.adapters.sinks.prometheus.readings import Readings
from oraculo.adapters.sinks.ticket_webhooks import TicketWebhooks
from oraculo.adapters.sinks.webhook_signing import key_of
from oraculo.core.flow.cognitive import FLOW_SLA, FlowRules
from oraculo.core.flow.service_levels import BACKOFF, CompensationRules, SlaRules
from oraculo.core.plan import Backoff
from oraculo.errors import SettingsError, WireError
from oraculo.ports.broker import Broker
from oraculo.ports.notifier import Notifier
from oraculo.ports.projection import Sink
from oraculo.ports.registry import Registry
from oraculo.settings.groups import AUTO, CompensationSettings
from oraculo.settings.settings import Settings
from oraculo.wire import strict_json
from oraculo.wire.flow import approvals, schemas, telemetry
from oraculo.wire.flow.codec import AVRO, JSON, Codec, parsed
from oraculo.wire.flow.topics import Topics


def topics_of(settings: Settings) -> Topics:
    topics = settings.kafka.topics
    return Topics(topics.consensus, topics.tickets, topics.results, topics.telemetry, topics.incidents)


def broker_for(settings: Settings) -> Broker:
    """The broker of ORACULO_BROKER; with the topics of Fluxo C on a Kafka of their own where there is one."""
    topics = topics_of(settings)
    groups = dict.fromkeys(topics.read, settings.kafka.group_id) if settings.takes_plans else {}
    main = broker_of(_with_workers(settings), settings.broker_dwell_s, groups)
    if not settings.takes_plans or not settings.kafka.servers or _same_cluster(settings):
        return main
    return RoutingBroker(main, broker_of(kafka_url(settings), groups=groups), topics.every)


def _with_workers(settings: Settings) -> str:
    """ORACULO_BROKER, where a Kafka that has the topics of Fluxo C knows in which group the original's workers are."""
    if not settings.takes_plans or (settings.kafka.servers and not _same_cluster(settings)):
        return settings.broker
    return ",".join(_named(url.strip(), settings) for url in settings.broker.split(","))


def _named(url: str, settings: Settings) -> str:
    if scheme_of(url) != "kafka" or "workers=" in urlsplit(url).query:
        return url
    option = urlencode({"workers": _workers(settings)})
    return f"{url}{'&' if urlsplit(url).query else '?'}{option}"


def _workers(settings: Settings) -> str:
    return f"{settings.kafka.topics.tickets}:{settings.kafka.workers_group_id}"


def _same_cluster(settings: Settings) -> bool:
    """Whether ORACULO_BROKER is the Kafka of KAFKA_BOOTSTRAP_SERVERS."""
    if scheme_of(settings.broker) != "kafka" or "," in settings.broker:
        return False
    where = urlsplit(settings.broker).netloc.rpartition("@")[2]
    return (where if ":" in where else f"{where}:9092") in _servers(settings)


def _servers(settings: Settings) -> list[str]:
    return [server.strip() for server in settings.kafka.servers.split(",")]


def kafka_url(settings: Settings) -> str:
    """The URL that KAFKA_BOOTSTRAP_SERVERS and its companions make. Records published there are compressed."""
    first, *others = _servers(settings)
    options = {"compression": "gzip", "workers": _workers(settings)}
    if others:
        options["servers"] = " ".join(others)
    if settings.kafka.security_protocol.endswith("SSL"):
        options["tls"] = "1"
        files = {"tls_ca": settings.kafka.ca, "tls_cert": settings.kafka.cert, "tls_key": settings.kafka.key}
        options |= {name: path for name, path in files.items() if path}
    who = ""
    if settings.kafka.user:
        options["sasl"] = settings.kafka.sasl_mechanism
        who = f"{quote(settings.kafka.user, safe='')}:{quote(settings.kafka.password, safe='')}@"
    return f"kafka://{who}{first}/?{urlencode(options)}"


def on_kafka(settings: Settings) -> bool:
    """Whether the topics of Fluxo C are topics of Kafka."""
    return bool(settings.kafka.servers) or all(scheme_of(url.strip()) == "kafka" for url in settings.broker.split(","))


def registry_of(settings: Settings) -> Registry:
    texts = schemas_of(settings)
    if not settings.kafka.schema_registry:
        return LocalRegistry(texts)
    from oraculo.adapters.registry.http import HttpRegistry  # brings an HTTP client

    written = topics_of(settings).records if format_of(settings) == AVRO else {}
    return HttpRegistry(settings.kafka.schema_registry, written, texts=texts)


def schemas_of(settings: Settings) -> dict[str, str]:
    """The schemas of SCHEMAS_BASE_PATH by their records; none without it. SettingsError: it has none or a wrong one."""
    if not settings.kafka.schemas:
        return {}
    try:
        return folder_schemas(Path(settings.kafka.schemas))
    except ValueError as error:
        raise SettingsError("SCHEMAS_BASE_PATH", settings.kafka.schemas, str(error)) from None


def format_of(settings: Settings) -> str:
    """The form in which records are written. Avro is for Kafka alone; there, when the setting leaves it open, as the
    original does: Avro with a schema registry, JSON without."""
    if not on_kafka(settings):
        return JSON
    asked = settings.kafka.message_format
    if asked != AUTO:
        return asked
    return AVRO if settings.kafka.schema_registry else JSON


def codec_of(settings: Settings, registry: Registry) -> Codec:
    """The codec that writes in the form of the settings, and reads Avro and JSON."""
    texts = schemas_of(settings)
    made = Codec(registry, format_of(settings), written=texts)
    try:
        for text in texts.values() if made.format == AVRO else ():
            parsed(text)
    except WireError as error:
        raise SettingsError("SCHEMAS_BASE_PATH", settings.kafka.schemas, f"a folder of Avro schemas: {error}") from None
    return made


def topics_sink(settings: Settings, broker: Broker, codec: Codec) -> FlowTopics:
    topics = topics_of(settings)
    where = {
        **topics.records,
        schemas.TELEMETRY_FRAME: topics.telemetry,
        telemetry.APPROVAL_REQUEST: topics.approval_requests,
    }
    if isinstance(broker, RoutingBroker):  # all of them are there
        broker = broker.other
    return FlowTopics(broker, where, partial(_encode, codec))


def ticket_webhooks_of(settings: Settings, notifier: Notifier, readings: Readings) -> list[Sink]:
    """What tells the addresses in the metadata of tickets, where that is wanted; `readings` show what becomes of it."""
    if settings.webhooks.tickets == "off":
        return []
    key = key_of(settings.webhooks.secrets[0]) if settings.webhooks.secrets else None
    made = TicketWebhooks(notifier, settings.webhooks.tickets, key)
    readings.ticket_webhooks = lambda: made.counts
    return [made]


def _encode(codec: Codec, record: str, value: dict[str, Any]) -> bytes:
    """The frame is JSON, as the original has it; a request for approval is what its approval service reads."""
    if record == telemetry.APPROVAL_REQUEST and codec.format == AVRO:
        return codec.encode(schemas.COGNITIVE_PLAN, approvals.plan_record(value))
    if record in (telemetry.APPROVAL_REQUEST, schemas.TELEMETRY_FRAME):
        return strict_json.compact(value)
    return codec.encode(record, value)


def flow_rules(settings: Settings) -> FlowRules:
    """The rules for plans: four hours and waits of their own between attempts, unless the plan says otherwise or the
    setting for every orchestration was given."""
    defaults = settings.defaults
    timeout = FLOW_SLA
    if settings.is_given("SLA_DEFAULT_TIMEOUT_MS"):
        timeout = timedelta(milliseconds=defaults.timeout_ms)
    backoff = BACKOFF
    if settings.is_given("ORACULO_RETRY_BASE_S", "ORACULO_RETRY_CAP_S"):
        backoff = Backoff(timedelta(seconds=defaults.retry_base_s), timedelta(seconds=defaults.retry_cap_s))
    backoff = replace(backoff, factor=defaults.retry_factor)
    return FlowRules(
        topic=settings.kafka.topics.tickets,
        sla=SlaRules(settings.flow_c.min_timeout_ms, settings.flow_c.timeout_multiplier),
        timeout=timeout,
        backoff=backoff,
        offers=dict(_offer(one) for one in settings.flow_c.capabilities),
        undo=undo_rules(settings.flow_c.undo),
    )


def undo_rules(chosen: CompensationSettings) -> CompensationRules:
    """How tickets are undone."""
    attempts = None if chosen.retries is None else chosen.retries + 1
    return CompensationRules(chosen.enabled, timedelta(seconds=chosen.timeout_s), attempts, not chosen.fail_open)


def _offer(said: str) -> tuple[str, frozenset[str]]:
    name, _, can = said.partition("=")
    return name.strip(), frozenset(part.strip() for part in can.split("+"))
