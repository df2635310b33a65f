"""Every setting, declared once, in groups: `settings.kafka.topics.tickets`, `settings.temporal.host`."""

from __future__ import annotations

from dataclasses import dataclass

from oraculo.errors import SettingsError
from oraculo.settings import readers as read
from oraculo.settings.declare import group, setting

AUTO = "auto"
MESSAGE_FORMATS = (AUTO, "avro", "json")
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MONTH_MS = 2_592_000_000
OTHER_COLLECTIONS = frozenset(  # of the audit, beside those that settings name
    (
        "cognitive_ledger",
        "validation_audit",
        "workflow_results",
        "incidents",
        "audit_chain",
        "audit_refused",
        "telemetry_buffer",
        "authorization_audit",
    )
)
PORT = read.whole(1, 65535)


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """The PostgreSQL that keeps state when ORACULO_STORE is not set."""

    host: str = setting(
        "POSTGRES_HOST",
        "",
        read.database_host,
        "When ORACULO_STORE is not set: state is kept in PostgreSQL on this host",
    )
    port: int = setting("POSTGRES_PORT", "5432", PORT, "Its port")
    database: str = setting(
        "POSTGRES_DATABASE",
        "oraculo",
        read.required,
        "Its database; one of Temporal's (`temporal`, `temporal_visibility`) is left to Temporal, and `oraculo` beside "
        "it is used, and made if need be",
    )
    user: str = setting("POSTGRES_USER", "oraculo", read.required, "The user that connects to it")
    password: str = setting("POSTGRES_PASSWORD", "", read.text, "The password of that user", secret=True)


@dataclass(frozen=True, slots=True)
class DefaultsSettings:
    """What an orchestration gets when its request does not say."""

    timeout_ms: int = setting(
        "SLA_DEFAULT_TIMEOUT_MS",
        "3600000",
        read.whole(1, MONTH_MS),
        "How long an orchestration may take when the request does not say; when it is set, plans of Fluxo C too "
        "(else they have four hours)",
    )
    ticket_timeout_s: float = setting(
        "ORACULO_TICKET_TIMEOUT_S",
        "60",
        read.number(0.01, 2592000),
        "How long one attempt may take when the request does not say",
    )
    max_attempts: int = setting(
        "ORACULO_MAX_TENTATIVAS", "3", read.whole(1, 100), "Attempts per ticket when the request does not say"
    )
    retry_base_s: float = setting(
        "ORACULO_RETRY_BASE_S",
        "1",
        read.number(0.001, 3600),
        "Longest wait before the second attempt; it grows from there. When this or ORACULO_RETRY_CAP_S is set, both "
        "apply to tickets of Fluxo C too",
    )
    retry_cap_s: float = setting(
        "ORACULO_RETRY_CAP_S", "60", read.number(0.001, 86400), "Longest wait between two attempts"
    )
    retry_factor: float = setting(
        "ORACULO_RETRY_FACTOR",
        "2",
        read.number(1, 100),
        "What that wait grows by from attempt to attempt; 1: it stays as it is. It applies to tickets of Fluxo C too",
    )


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """One process of several on one database."""

    name: str = setting(
        "ORACULO_REPLICA_NAME", "", read.text, "The name of this process among those on one database; else host:pid"
    )
    lease_s: float = setting(
        "ORACULO_REPLICA_LEASE_S",
        "10",
        read.number(1, 300),
        "How long a process on a shared database may give no sign of life before others take over",
    )


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """The Redis that several processes share as a cache."""

    url: str = setting(
        "ORACULO_CACHE",
        "",
        read.optional(read.url("redis", "rediss", several=False)),
        "Redis that several processes share as a cache, redis://; else none",
    )
    cluster_nodes: str = setting(
        "REDIS_CLUSTER_NODES",
        "",
        read.nodes,
        "When ORACULO_CACHE is not set: host:port of the cache, a server alone or any nodes of a cluster",
    )
    password: str = setting("REDIS_PASSWORD", "", read.text, "The password of REDIS_CLUSTER_NODES", secret=True)
    tls: bool = setting(
        "REDIS_SSL_ENABLED", "false", read.flag, "`true`: the connection to REDIS_CLUSTER_NODES is encrypted"
    )
    pause_s: float = setting(
        "REDIS_CIRCUIT_BREAKER_RECOVERY_TIMEOUT",
        "5",
        read.number(0.1, 3600),
        "How long the cache is left alone after a failure",
    )


@dataclass(frozen=True, slots=True)
class CelerySettings:
    """The servers of the engine `celery`."""

    broker: str = setting(
        "ORACULO_CELERY_BROKER",
        "",
        read.optional(read.url("amqp", "amqps", "pyamqp", "redis", "rediss", several=False)),
        "Where Celery's tasks travel, amqp:// (pyamqp:// too) or redis://; else as ORACULO_BROKER",
    )
    backend: str = setting(
        "ORACULO_CELERY_BACKEND",
        "",
        read.optional(read.url("redis", "rediss", several=False)),
        "Celery's result backend, redis://; else none",
    )


@dataclass(frozen=True, slots=True)
class TemporalSettings:
    """The server of the engine `temporal`."""

    enabled: bool = setting(
        "TEMPORAL_ENABLED",
        "false",
        read.flag,
        "When ORACULO_ENGINE is not set: `true`: the engine is `temporal`; `false`: it is not, although TEMPORAL_HOST "
        "is set",
    )
    host: str = setting(
        "TEMPORAL_HOST",
        "127.0.0.1",
        read.host,
        "Where Temporal is; when it is set, and neither ORACULO_ENGINE nor TEMPORAL_ENABLED is, the engine is "
        "`temporal`",
    )
    port: int = setting("TEMPORAL_PORT", "7233", PORT, "Its port")
    namespace: str = setting("TEMPORAL_NAMESPACE", "default", read.word, "Its namespace, which has to exist")
    task_queue: str = setting(
        "TEMPORAL_TASK_QUEUE", "orchestration-tasks", read.word, "The task queue of the workflows"
    )
    tls: bool = setting("TEMPORAL_TLS", "false", read.flag, "`true`: the connection to Temporal is encrypted")
    api_key: str = setting("TEMPORAL_API_KEY", "", read.text, "Key for Temporal, where it asks for one", secret=True)


@dataclass(frozen=True, slots=True)
class CompensationSettings:
    """What happens to tickets of Fluxo C that are done when another one fails for good."""

    enabled: bool = setting(
        "COMPENSATION_ENABLED", "true", read.flag, "`false`: nothing is undone, whatever a plan says"
    )
    retries: int | None = setting(
        "COMPENSATION_MAX_RETRIES",
        "",
        read.optional_whole(0, 99),
        "Attempts after the first of what undoes a ticket; empty: as many as the ticket had",
    )
    timeout_s: float = setting(
        "COMPENSATION_TIMEOUT_SECONDS", "120", read.number(0.01, 2592000), "How long one such attempt may take"
    )
    fail_open: bool = setting(
        "COMPENSATION_FAIL_OPEN",
        "true",
        read.flag,
        "`false`: where undoing a ticket fails, what it depended on is not undone either",
    )


@dataclass(frozen=True, slots=True)
class FlowCSettings:
    """The rules of Fluxo C."""

    mode: str = setting(
        "ORACULO_FLOW_C",
        "auto",
        read.one_of("auto", "on", "off"),
        "Whether decisions and plans of Fluxo C are taken; auto: with `memory://`, or where there is Kafka",
    )
    min_timeout_ms: int = setting(
        "SLA_TICKET_MIN_TIMEOUT_MS",
        "60000",
        read.whole(1, MONTH_MS),
        "Least time that one attempt of a ticket of Fluxo C gets",
    )
    timeout_multiplier: float = setting(
        "SLA_TICKET_TIMEOUT_BUFFER_MULTIPLIER",
        "3.0",
        read.number(0.01, 1000),
        "How many times its estimated duration that attempt gets",
    )
    max_parallel_tickets: int = setting(
        "SCHEDULER_MAX_PARALLEL_TICKETS",
        "100",
        read.whole(1, 1000000),
        "Tickets of Fluxo C, and of plans whose tasks have a priority, that may run at once; those with the highest "
        "priority go first",
    )
    capabilities: tuple[str, ...] = setting(
        "ORACULO_CAPABILITIES",
        "",
        read.offers,
        "What classes of workers can do (class=capability+capability, several with commas between): a task of Fluxo C "
        "goes to a class that has all the capabilities that it requires",
    )
    undo: CompensationSettings = group(CompensationSettings, "Compensation in Fluxo C")


@dataclass(frozen=True, slots=True)
class KafkaTopicsSettings:
    """The topics of Fluxo C."""

    consensus: str = setting(
        "KAFKA_CONSENSUS_TOPIC", "plans.consensus", read.topic, "Where consolidated decisions come from"
    )
    tickets: str = setting("KAFKA_TICKETS_TOPIC", "execution.tickets", read.topic, "Where tickets are published")
    results: str = setting("KAFKA_RESULTS_TOPIC", "execution.results", read.topic, "Where their results come from")
    telemetry: str = setting(
        "KAFKA_TELEMETRY_TOPIC",
        "telemetry.orchestration",
        read.topic,
        "Where the telemetry frame of a plan is published",
    )
    incidents: str = setting(
        "KAFKA_INCIDENTS_TOPIC", "orchestration.incidents", read.topic, "Where incidents are published"
    )


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The Kafka of Fluxo C, apart from ORACULO_BROKER."""

    servers: str = setting(
        "KAFKA_BOOTSTRAP_SERVERS",
        "",
        read.nodes,
        "`host:port` of the Kafka of Fluxo C, several with commas between; empty: its topics are on ORACULO_BROKER",
    )
    topics: KafkaTopicsSettings = group(KafkaTopicsSettings, "Topics of Fluxo C")
    group_id: str = setting(
        "KAFKA_CONSUMER_GROUP_ID",
        "orchestrator-dynamic",
        read.topic,
        "The consumer group that reads decisions and results of Fluxo C",
    )
    workers_group_id: str = setting(
        "KAFKA_WORKERS_GROUP_ID",
        "worker-agents",
        read.topic,
        "The consumer group of workers that are not Oráculo's: the depth of KAFKA_TICKETS_TOPIC is what neither they "
        "nor Oráculo's own have taken",
    )
    schema_registry: str = setting(
        "KAFKA_SCHEMA_REGISTRY_URL",
        "",
        read.optional(read.url("http", "https", several=False)),
        "Schema registry that knows other writers' Avro schemas; empty: the shipped schemas with their own ids",
    )
    schemas: str = setting(
        "SCHEMAS_BASE_PATH",
        "",
        read.text,
        "Folder of Avro schemas (`cognitive-plan.avsc` and the others of `oraculo schema avro`, in whatever folders "
        "below it): each takes the place of the shipped one where records are written and registered; empty: none",
    )
    message_format: str = setting(
        "KAFKA_MESSAGE_FORMAT",
        AUTO,
        read.one_of(*MESSAGE_FORMATS),
        "How records of Fluxo C are written on Kafka: `avro`, `json`, or `auto`: Avro with KAFKA_SCHEMA_REGISTRY_URL, "
        "JSON without, as the original's services read them",
    )
    security_protocol: str = setting(
        "KAFKA_SECURITY_PROTOCOL",
        "PLAINTEXT",
        read.one_of(*SECURITY_PROTOCOLS),
        f"How KAFKA_BOOTSTRAP_SERVERS is spoken to: {', '.join(SECURITY_PROTOCOLS)}",
    )
    sasl_mechanism: str = setting(
        "KAFKA_SASL_MECHANISM",
        "PLAIN",
        read.one_of(*SASL_MECHANISMS),
        f"How to log in there: {', '.join(SASL_MECHANISMS)}",
    )
    user: str = setting("KAFKA_SASL_USERNAME", "", read.text, "The user that logs in there")
    password: str = setting("KAFKA_SASL_PASSWORD", "", read.text, "The password of that user", secret=True)
    ca: str = setting(
        "KAFKA_SSL_CA_LOCATION",
        "",
        read.text,
        "With SSL: file of the authorities that those servers are known by; empty: those of the system",
    )
    cert: str = setting(
        "KAFKA_SSL_CERTIFICATE_LOCATION", "", read.text, "With SSL: file of the certificate to show them"
    )
    key: str = setting(
        "KAFKA_SSL_KEY_LOCATION", "", read.text, "File of its private key, without a password; empty: in the same file"
    )


@dataclass(frozen=True, slots=True)
class WebhooksSettings:
    """How webhooks are signed, and where they may go."""

    secrets: tuple[str, ...] = setting(
        "ORACULO_WEBHOOK_SECRET",
        "",
        read.secrets,
        "`whsec_…` that signs webhooks; several, separated by commas, while one is being replaced",
    )
    allow: tuple[str, ...] = setting(
        "ORACULO_WEBHOOK_ALLOW", "", read.several, "`host:port` that webhooks may reach although private or without TLS"
    )
    tickets: str = setting(
        "ORACULO_TICKET_WEBHOOKS",
        "off",
        read.one_of("off", "standard", "neural-hive"),
        "Tell `metadata.webhook_url` of a ticket of Fluxo C how it goes: `standard`, or `neural-hive` for the headers "
        "of the original too",
    )


@dataclass(frozen=True, slots=True)
class MongoDBSettings:
    """The MongoDB that the audit is written to."""

    uri: str = setting(
        "MONGODB_URI", "", read.mongodb, "MongoDB that the [audit](audit.md) is written to, `mongodb://…`; empty: none"
    )
    database: str = setting("MONGODB_DATABASE", "neural_hive_orchestration", read.mongodb_database, "Its database")
    max_pool: int = setting("MONGODB_MAX_POOL_SIZE", "100", read.whole(1, 10000), "Connections to it at most")
    min_pool: int = setting("MONGODB_MIN_POOL_SIZE", "10", read.whole(0, 10000), "Connections to it that are kept")
    fail_open_tickets: bool = setting(
        "MONGODB_FAIL_OPEN_EXECUTION_TICKETS",
        "false",
        read.flag,
        "Whether a ticket that MongoDB refuses for good may be left out; else the audit stops there",
    )
    fail_open_validations: bool = setting(
        "MONGODB_FAIL_OPEN_VALIDATION_AUDIT", "true", read.flag, "The same for the validation of a plan"
    )
    fail_open_results: bool = setting(
        "MONGODB_FAIL_OPEN_WORKFLOW_RESULTS", "true", read.flag, "The same for the result of an orchestration"
    )
    tickets: str = setting("MONGODB_COLLECTION_TICKETS", "execution_tickets", read.topic, "The collection of tickets")
    workflows: str = setting("MONGODB_COLLECTION_WORKFLOWS", "workflows", read.topic, "The collection of workflows")


def check_mongodb(chosen: MongoDBSettings) -> None:
    """SettingsError: fewer connections at most than are kept, or a collection that serves something else."""
    if chosen.min_pool > chosen.max_pool:
        raise SettingsError("MONGODB_MIN_POOL_SIZE", str(chosen.min_pool), "at most MONGODB_MAX_POOL_SIZE")
    for name, value, others in (
        ("MONGODB_COLLECTION_TICKETS", chosen.tickets, OTHER_COLLECTIONS),
        ("MONGODB_COLLECTION_WORKFLOWS", chosen.workflows, OTHER_COLLECTIONS | {chosen.tickets}),
    ):
        if value in others or value.startswith("system."):
            raise SettingsError(name, value, "a collection that serves nothing else")
