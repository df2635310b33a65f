"""Environment (or `.env`) → Settings. Read by bootstrap, api and cli only; everything below takes plain arguments.

A wrong value stops the start with one line that names the variable, the value and what is allowed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from oraculo import redaction
from oraculo.errors import SettingsError
from oraculo.wire import names

STORES = ("sqlite", "postgresql", "postgres")
BROKERS = ("memory", "amqp", "amqps", "redis", "rediss", "nats", "kafka")
ENGINES = ("local", "celery", "temporal")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOG_FORMATS = ("auto", "json", "text")
_PASSWORD_OPTION = re.compile(r"([?&](?:ssl)?password=)[^&#\s]*", re.IGNORECASE)
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOPICS = ("kafka_consensus", "kafka_tickets", "kafka_results", "kafka_telemetry", "kafka_incidents")
OTEL_PROTOCOLS = ("auto", "grpc", "http")
OTEL_SAMPLERS = ("parentbased_traceidratio", "traceidratio")


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable: its name, its default as written, how it is read, and what it is for."""

    name: str
    default: str
    read: Callable[[str, str], Any]
    help: str
    secret: bool = False


def _text(_name: str, value: str) -> str:
    return value


def _one_of(*allowed: str) -> Callable[[str, str], str]:
    def read(name: str, value: str) -> str:
        if value not in allowed:
            raise SettingsError(name, value, f"one of {', '.join(allowed)}")
        return value

    return read


def _number(low: float, high: float) -> Callable[[str, str], float]:
    def read(name: str, value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not low <= number <= high:
            raise SettingsError(name, value, f"a number from {low:g} to {high:g}")
        return number

    return read


def _whole(low: int, high: int) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        if not value.isascii() or not value.removeprefix("-").isdigit() or not low <= int(value) <= high:
            raise SettingsError(name, value, f"a whole number from {low} to {high}")
        return int(value)

    return read


def _url(*schemes: str) -> Callable[[str, str], str]:
    allowed = ", ".join(f"{scheme}://" for scheme in schemes)

    def read(name: str, value: str) -> str:
        for part in value.split(","):
            if part.strip().partition("://")[0].lower() not in schemes or "://" not in part or not _is_url(part):
                raise SettingsError(name, redact(value), f"a URL that begins with one of {allowed}")
        return value

    return read


def store_url(name: str, value: str) -> str:
    """One database. libpq lets a URL name several hosts, with commas between."""
    scheme, found, _ = value.partition("://")
    if not found or scheme.lower() not in STORES:
        raise SettingsError(name, redact(value), "a URL that begins with sqlite:// or postgresql://")
    return value


def _brokers(name: str, value: str) -> str:
    """One URL, or several in order of preference. What lives in this process cannot stand in for a server."""
    _url(*BROKERS)(name, value)
    parts = [part.strip() for part in value.split(",")]
    if len(parts) > 1 and any(part.lower().startswith("memory:") for part in parts):
        raise SettingsError(name, redact(value), "memory:// alone, or a list of servers")
    if len(set(parts)) != len(parts):
        raise SettingsError(name, redact(value), "each broker once")
    return value


def _nodes(name: str, value: str) -> str:
    if value and not all(re.fullmatch(r"[^\s:/@,]+:\d{1,5}", node.strip()) for node in value.split(",")):
        raise SettingsError(name, value, "host:port, several separated by commas")
    return value


def _topic(name: str, value: str) -> str:
    if not names.is_queue_name(value):
        raise SettingsError(name, value, "a name of letters, digits, '.', '_' and '-'")
    return value


def _optional_url(*schemes: str) -> Callable[[str, str], str]:
    """One URL, or nothing."""
    read = _url(*schemes)

    def optional(name: str, value: str) -> str:
        if "," in value:
            raise SettingsError(name, redact(value), "one URL")
        return read(name, value) if value else ""

    return optional


def _mongodb(name: str, value: str) -> str:
    """A URL of MongoDB may name several hosts, with commas between."""
    if value and not value.lower().startswith(("mongodb://", "mongodb+srv://")):
        raise SettingsError(name, redact(value), "a URL that begins with mongodb:// or mongodb+srv://")
    return value


def _flag(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false", "1", "0"):
        raise SettingsError(name, value, "true or false")
    return value.lower() in ("true", "1")


def _file(name: str, value: str) -> str:
    if value and not Path(value).is_file():
        raise SettingsError(name, value, "the path of a file that exists")
    return value


def _optional(read: Callable[[str, str], str]) -> Callable[[str, str], str]:
    return lambda name, value: read(name, value) if value else value


def _pairs(name: str, value: str) -> tuple[str, ...]:
    pairs = _list(name, value)
    if not all(pair.partition("=")[0].strip() and pair.partition("=")[2] for pair in pairs):
        raise SettingsError(name, redaction.HIDDEN, "name=value, several with commas between")
    return pairs


def _yes(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false", "1", "0"):
        raise SettingsError(name, value, "true or false")
    return value.lower() in ("true", "1")


def _list(_name: str, value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


VARIABLES: dict[str, Variable] = {
    "store": Variable("ORACULO_STORE", "sqlite:///oraculo.db", store_url, "where state is kept"),
    "postgres_host": Variable(
        "POSTGRES_HOST", "", _text, "when ORACULO_STORE is not set: state is kept in PostgreSQL on this host"
    ),
    "postgres_port": Variable("POSTGRES_PORT", "5432", _whole(1, 65535), "its port"),
    "postgres_database": Variable("POSTGRES_DATABASE", "oraculo", _text, "its database"),
    "postgres_user": Variable("POSTGRES_USER", "oraculo", _text, "who connects to it"),
    "postgres_password": Variable("POSTGRES_PASSWORD", "", _text, "the password of that user", True),
    "broker": Variable(
        "ORACULO_BROKER", "memory://", _brokers, "how messages travel; several, separated by commas, with failover"
    ),
    "broker_dwell_s": Variable(
        "ORACULO_BROKER_DWELL_S",
        "30",
        _number(0, 86400),
        "how long a broker that failed is left alone at least before messages are published there again",
    ),
    "engine": Variable("ORACULO_ENGINE", "local", _one_of(*ENGINES), "who drives the core"),
    "host": Variable("ORACULO_HOST", "127.0.0.1", _text, "address to listen on; beyond loopback an API key is needed"),
    "port": Variable("ORACULO_PORT", "8000", _whole(0, 65535), "port to listen on; 0 takes a free one"),
    "url": Variable(
        "ORACULO_URL", "http://127.0.0.1:8000", _url("http", "https"), "where the CLI and HTTP workers find the API"
    ),
    "api_key": Variable(
        "ORACULO_API_KEY", "", _text, "key that every request must carry (Authorization: Bearer …)", True
    ),
    "task_types": Variable("ORACULO_TASK_TYPES", "", _file, 'JSON file of task types: {"tipo": request, …}'),
    "ticket_timeout_s": Variable(
        "ORACULO_TICKET_TIMEOUT_S",
        "60",
        _number(0.01, 2592000),
        "how long one attempt may take when the request does not say",
    ),
    "max_tentativas": Variable(
        "ORACULO_MAX_TENTATIVAS", "3", _whole(1, 100), "attempts per ticket when the request does not say"
    ),
    "retry_base_s": Variable(
        "ORACULO_RETRY_BASE_S",
        "1",
        _number(0.001, 3600),
        "longest wait before the second attempt; it doubles from there",
    ),
    "retry_cap_s": Variable("ORACULO_RETRY_CAP_S", "60", _number(0.001, 86400), "longest wait between two attempts"),
    "default_timeout_ms": Variable(
        "SLA_DEFAULT_TIMEOUT_MS",
        "3600000",
        _whole(1, 2592000000),
        "how long an orchestration may take when the request does not say",
    ),
    "lease_s": Variable(
        "ORACULO_LEASE_S", "30", _number(1, 3600), "how long an HTTP worker holds a message without a sign of life"
    ),
    "cache": Variable(
        "ORACULO_CACHE",
        "",
        _optional_url("redis", "rediss"),
        "Redis that several processes share as a cache, redis://; else none",
    ),
    "redis_cluster_nodes": Variable(
        "REDIS_CLUSTER_NODES",
        "",
        _nodes,
        "when ORACULO_CACHE is not set: host:port of the cache, several for a cluster",
    ),
    "celery_broker": Variable(
        "ORACULO_CELERY_BROKER",
        "",
        _optional_url("amqp", "amqps", "redis", "rediss"),
        "where Celery's tasks travel, amqp:// or redis://; else as ORACULO_BROKER",
    ),
    "celery_backend": Variable(
        "ORACULO_CELERY_BACKEND", "", _optional_url("redis", "rediss"), "Celery's result backend, redis://; else none"
    ),
    "temporal_enabled": Variable(
        "TEMPORAL_ENABLED", "false", _yes, "true: when ORACULO_ENGINE is not set, the engine is temporal"
    ),
    "temporal_host": Variable("TEMPORAL_HOST", "127.0.0.1", _text, "where Temporal is, for the engine temporal"),
    "temporal_port": Variable("TEMPORAL_PORT", "7233", _whole(1, 65535), "its port"),
    "temporal_namespace": Variable("TEMPORAL_NAMESPACE", "default", _text, "its namespace, which has to exist"),
    "temporal_task_queue": Variable(
        "TEMPORAL_TASK_QUEUE", "orchestration-tasks", _text, "the task queue of the workflows"
    ),
    "temporal_tls": Variable("TEMPORAL_TLS", "false", _yes, "true: the connection to Temporal is encrypted"),
    "temporal_api_key": Variable("TEMPORAL_API_KEY", "", _text, "key for Temporal, where it asks for one", True),
    "replica_name": Variable(
        "ORACULO_REPLICA_NAME", "", _text, "what this process is called among those on one database; else host:pid"
    ),
    "replica_lease_s": Variable(
        "ORACULO_REPLICA_LEASE_S",
        "10",
        _number(1, 300),
        "how long a process on a shared database may give no sign of life before others take over",
    ),
    "max_open": Variable(
        "ORACULO_MAX_OPEN",
        "100000",
        _whole(1, 100000000),
        "orchestrations that may be open at once; more get 503, or wait in their queue",
    ),
    "flow_c": Variable(
        "ORACULO_FLOW_C",
        "auto",
        _one_of("auto", "on", "off"),
        "whether decisions and plans of Fluxo C are taken; auto: with `memory://`, or where there is Kafka",
    ),
    "kafka_servers": Variable(
        "KAFKA_BOOTSTRAP_SERVERS",
        "",
        _nodes,
        "host:port of the Kafka of Fluxo C, several with commas between; empty: its topics are on ORACULO_BROKER",
    ),
    "kafka_consensus": Variable(
        "KAFKA_CONSENSUS_TOPIC", "plans.consensus", _topic, "where consolidated decisions come from"
    ),
    "kafka_tickets": Variable("KAFKA_TICKETS_TOPIC", "execution.tickets", _topic, "where tickets are published"),
    "kafka_results": Variable("KAFKA_RESULTS_TOPIC", "execution.results", _topic, "where their results come from"),
    "kafka_telemetry": Variable(
        "KAFKA_TELEMETRY_TOPIC", "telemetry.orchestration", _topic, "where the telemetry frame of a plan is published"
    ),
    "kafka_incidents": Variable(
        "KAFKA_INCIDENTS_TOPIC", "orchestration.incidents", _topic, "where incidents are published"
    ),
    "kafka_group": Variable(
        "KAFKA_CONSUMER_GROUP_ID",
        "orchestrator-dynamic",
        _topic,
        "the consumer group that reads decisions and results of Fluxo C",
    ),
    "kafka_registry": Variable(
        "KAFKA_SCHEMA_REGISTRY_URL",
        "",
        _optional_url("http", "https"),
        "schema registry that knows other writers' Avro schemas; empty: the shipped schemas with their own ids",
    ),
    "kafka_security": Variable(
        "KAFKA_SECURITY_PROTOCOL", "PLAINTEXT", _one_of(*SECURITY_PROTOCOLS), "how KAFKA_BOOTSTRAP_SERVERS is spoken to"
    ),
    "kafka_sasl": Variable("KAFKA_SASL_MECHANISM", "PLAIN", _one_of(*SASL_MECHANISMS), "how one logs in there"),
    "kafka_user": Variable("KAFKA_SASL_USERNAME", "", _text, "who logs in there"),
    "kafka_password": Variable("KAFKA_SASL_PASSWORD", "", _text, "the password of that user", True),
    "ticket_min_timeout_ms": Variable(
        "SLA_TICKET_MIN_TIMEOUT_MS",
        "60000",
        _whole(1, 2592000000),
        "least time that one attempt of a ticket of Fluxo C gets",
    ),
    "ticket_timeout_buffer": Variable(
        "SLA_TICKET_TIMEOUT_BUFFER_MULTIPLIER",
        "3.0",
        _number(0.01, 1000),
        "how many times its estimated duration that attempt gets",
    ),
    "max_parallel_tickets": Variable(
        "SCHEDULER_MAX_PARALLEL_TICKETS",
        "100",
        _whole(1, 1000000),
        "tickets of Fluxo C that may run at once, over all plans; those with the highest priority go first",
    ),
    "webhook_secrets": Variable(
        "ORACULO_WEBHOOK_SECRET",
        "",
        _list,
        "whsec_… that signs webhooks; several, separated by commas, while one is being replaced",
        True,
    ),
    "webhook_allow": Variable(
        "ORACULO_WEBHOOK_ALLOW", "", _list, "host:port that webhooks may reach although private or without TLS"
    ),
    "artefatos": Variable(
        "ORACULO_ARTEFATOS",
        "relatorios",
        _text,
        "folder whose files the dashboard hands out when a result names them; empty: none",
    ),
    "metrics_port": Variable(
        "ORACULO_METRICS_PORT",
        "",
        lambda name, value: _whole(0, 65535)(name, value) if value else None,
        "port on which `/metrics` is served without a key, also by `oraculo worker`; empty: none, 0: a free one",
    ),
    "mongodb_uri": Variable(
        "MONGODB_URI", "", _mongodb, "MongoDB that the audit is written to, `mongodb://…`; empty: none"
    ),
    "mongodb_database": Variable("MONGODB_DATABASE", "neural_hive_orchestration", _text, "its database"),
    "mongodb_max_pool": Variable("MONGODB_MAX_POOL_SIZE", "100", _whole(1, 10000), "connections to it at most"),
    "mongodb_min_pool": Variable("MONGODB_MIN_POOL_SIZE", "10", _whole(0, 10000), "connections to it that are kept"),
    "fail_open_tickets": Variable(
        "MONGODB_FAIL_OPEN_EXECUTION_TICKETS",
        "false",
        _flag,
        "whether a ticket that MongoDB refuses for good may be left out; else the audit stops there",
    ),
    "fail_open_validations": Variable(
        "MONGODB_FAIL_OPEN_VALIDATION_AUDIT", "true", _flag, "the same for the validation of a plan"
    ),
    "fail_open_results": Variable(
        "MONGODB_FAIL_OPEN_WORKFLOW_RESULTS", "true", _flag, "the same for the result of an orchestration"
    ),
    "log_level": Variable(
        "LOG_LEVEL", "INFO", lambda name, value: _one_of(*LOG_LEVELS)(name, value.upper()), "how much is logged"
    ),
    "log_format": Variable(
        "ORACULO_LOG_FORMAT", "auto", _one_of(*LOG_FORMATS), "json, text, or auto: text on a terminal"
    ),
    "otel_endpoint": Variable(
        "OTEL_EXPORTER_ENDPOINT",
        "",
        _optional(_url("http", "https")),
        "where traces are sent (OTLP), like `http://otel-collector:4317`; empty: no traces",
    ),
    "otel_protocol": Variable(
        "OTEL_EXPORTER_PROTOCOL",
        "auto",
        _one_of(*OTEL_PROTOCOLS),
        "grpc, http, or auto: http for port 4318 or an address with a path",
    ),
    "otel_headers": Variable(
        "OTEL_EXPORTER_HEADERS", "", _pairs, "name=value that is sent along, several with commas between", True
    ),
    "otel_sampler": Variable(
        "OTEL_TRACES_SAMPLER",
        "parentbased_traceidratio",
        _one_of(*OTEL_SAMPLERS),
        "whether a caller's decision to sample is followed",
    ),
    "otel_ratio": Variable(
        "OTEL_TRACES_SAMPLER_ARG", "1", _number(0, 1), "share of the traces that begin here which are sampled"
    ),
    "service_name": Variable("OTEL_SERVICE_NAME", "oraculo", _text, "what logs and traces call this service"),
    "crash_at": Variable(
        "ORACULO_CRASH_AT", "", _text, "for tests of recovery: die at a named point, like after_commit:3"
    ),
}


@dataclass(frozen=True, slots=True)
class Settings:
    store: str
    postgres_host: str
    postgres_port: int
    postgres_database: str
    postgres_user: str
    postgres_password: str
    broker: str
    broker_dwell_s: float
    engine: str
    host: str
    port: int
    url: str
    api_key: str
    task_types: str
    ticket_timeout_s: float
    max_tentativas: int
    retry_base_s: float
    retry_cap_s: float
    default_timeout_ms: int
    lease_s: float
    cache: str
    redis_cluster_nodes: str
    celery_broker: str
    celery_backend: str
    temporal_enabled: bool
    temporal_host: str
    temporal_port: int
    temporal_namespace: str
    temporal_task_queue: str
    temporal_tls: bool
    temporal_api_key: str
    replica_name: str
    replica_lease_s: float
    max_open: int
    flow_c: str
    kafka_servers: str
    kafka_consensus: str
    kafka_tickets: str
    kafka_results: str
    kafka_telemetry: str
    kafka_incidents: str
    kafka_group: str
    kafka_registry: str
    kafka_security: str
    kafka_sasl: str
    kafka_user: str
    kafka_password: str
    ticket_min_timeout_ms: int
    ticket_timeout_buffer: float
    max_parallel_tickets: int
    webhook_secrets: tuple[str, ...]
    webhook_allow: tuple[str, ...]
    artefatos: str
    metrics_port: int | None
    mongodb_uri: str
    mongodb_database: str
    mongodb_max_pool: int
    mongodb_min_pool: int
    fail_open_tickets: bool
    fail_open_validations: bool
    fail_open_results: bool
    log_level: str
    log_format: str
    otel_endpoint: str
    otel_protocol: str
    otel_headers: tuple[str, ...]
    otel_sampler: str
    otel_ratio: float
    service_name: str
    crash_at: str

    @property
    def takes_plans(self) -> bool:
        """Whether Fluxo C is on."""
        kafka = self.kafka_servers or any(part.strip().lower().startswith("kafka:") for part in self.broker.split(","))
        return self.flow_c == "on" or (self.flow_c == "auto" and (bool(kafka) or self.broker.startswith("memory:")))

    def shown(self) -> dict[str, str]:
        """Every variable and its value, with secrets hidden."""
        values = {}
        for field in fields(self):
            variable = VARIABLES[field.name]
            value = getattr(self, field.name)
            text = ",".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
            values[variable.name] = "***" if variable.secret and text else redact(text)
        return values

    def secrets(self) -> Iterator[str]:
        """The values that must never be shown."""
        for field in fields(self):
            value = getattr(self, field.name)
            for text in value if isinstance(value, tuple) else (str(value),):
                if VARIABLES[field.name].secret:
                    yield text
                    yield text.partition("=")[2]
                else:
                    yield from redaction.passwords_of(text)


def load(environment: Mapping[str, str] | None = None, dotenv: str | Path | None = ".env") -> Settings:
    """The environment wins over `.env`, which wins over the defaults. Secrets in it are never shown from then on."""
    given = dict(environment if environment is not None else os.environ)
    if dotenv is not None:
        given = {**read_dotenv(Path(dotenv)), **given}
    values = {
        field: variable.read(variable.name, given.get(variable.name, variable.default).strip())
        for field, variable in VARIABLES.items()
    }
    if "ORACULO_STORE" not in given and values["postgres_host"]:
        values["store"] = _postgres_url(values)
    if "ORACULO_ENGINE" not in given and values["temporal_enabled"]:
        values["engine"] = "temporal"
    settings = Settings(**values)
    redaction.know(settings.secrets())
    if settings.retry_cap_s < settings.retry_base_s:
        raise SettingsError("ORACULO_RETRY_CAP_S", str(settings.retry_cap_s), "at least ORACULO_RETRY_BASE_S")
    _check_kafka(settings)
    if settings.mongodb_min_pool > settings.mongodb_max_pool:
        raise SettingsError("MONGODB_MIN_POOL_SIZE", str(settings.mongodb_min_pool), "at most MONGODB_MAX_POOL_SIZE")
    return for_celery(settings) if settings.engine == "celery" else settings


def _check_kafka(settings: Settings) -> None:
    """What the variables of Kafka mean together."""
    seen = {names.RESULTS, names.REQUESTS}
    for field in TOPICS:
        topic = getattr(settings, field)
        if topic in seen:
            raise SettingsError(VARIABLES[field].name, topic, "a topic that serves nothing else")
        seen.add(topic)
    secured = settings.kafka_security.startswith("SASL_")
    if secured and not settings.kafka_user:
        raise SettingsError(
            "KAFKA_SASL_USERNAME", "", f"a name, with KAFKA_SECURITY_PROTOCOL={settings.kafka_security}"
        )
    if settings.kafka_user and not secured:
        raise SettingsError(
            "KAFKA_SECURITY_PROTOCOL", settings.kafka_security, "SASL_PLAINTEXT or SASL_SSL, with KAFKA_SASL_USERNAME"
        )


def for_celery(settings: Settings) -> Settings:
    """The same for the engine `celery`, which needs a database and a broker that several processes can share."""
    if settings.store.lower().startswith("sqlite"):
        raise SettingsError("ORACULO_STORE", redact(settings.store), "postgresql://… with ORACULO_ENGINE=celery")
    if settings.broker.lower().startswith("memory"):
        raise SettingsError("ORACULO_BROKER", redact(settings.broker), "a server with ORACULO_ENGINE=celery")
    return replace(settings, engine="celery")


def _postgres_url(values: Mapping[str, Any]) -> str:
    user, password, host, database = (
        quote(values[f"postgres_{part}"], safe="") for part in ("user", "password", "host", "database")
    )
    who = f"{user}:{password}" if password else user
    return f"postgresql://{who}@{host}:{values['postgres_port']}/{database}"


def read_dotenv(path: Path) -> dict[str, str]:
    """`NAME=value` lines; `#` begins a comment, quotes around a value are dropped, `export ` is tolerated."""
    if not path.is_file():
        return {}
    values = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip().removeprefix("export ").strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals or not name.strip().replace("_", "").isalnum():
            raise SettingsError(f"{path}:{number}", line, "NAME=value")
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        values[name.strip()] = value
    return values


def _is_url(text: str) -> bool:
    try:
        _ = urlsplit(text.strip()).port
    except ValueError:
        return False
    return True


def redact(urls: str) -> str:
    """A URL, or several with commas between, without the passwords."""
    return _PASSWORD_OPTION.sub(r"\1***", redaction.urls(urls))
