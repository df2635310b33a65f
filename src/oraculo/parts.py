"""Settings → single adapters and engines. Which one is meant is said by a URL's scheme; clients are imported when they
are asked for, and a missing one names the extra to install."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from oraculo.adapters.brokers.breaker import DWELL
from oraculo.adapters.brokers.failover import FailoverBroker
from oraculo.adapters.brokers.memory import MemoryBroker
from oraculo.adapters.sinks.otel import Tracer, connected
from oraculo.adapters.stores.sqlite import SqliteStore
from oraculo.engines.local import LocalEngine
from oraculo.errors import MissingExtraError, SettingsError
from oraculo.ports.broker import Broker
from oraculo.ports.cache import Cache
from oraculo.ports.clock import Clock
from oraculo.ports.store import Store
from oraculo.settings import Settings
from oraculo.wire import requests, strict_json
from oraculo.wire.requests import Defaults, Requisicao

if TYPE_CHECKING:
    from oraculo.adapters.sinks.mongo import MongoAudit
    from oraculo.adapters.stores.postgres.store import PostgresStore
    from oraculo.engines.temporal.link import Address


def store_of(url: str, *, exclusive: bool = False) -> SqliteStore | PostgresStore:
    """Of a SQLite URL or a PostgreSQL one. `exclusive` refuses a second engine where only one may be."""
    if scheme_of(url) == "sqlite":
        return SqliteStore(sqlite_path(url), exclusive=exclusive)
    try:
        from oraculo.adapters.stores.postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        raise MissingExtraError("postgresql://", "postgres") from error
    return PostgresStore(url)


def sqlite_path(url: str) -> str:
    """`sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite://` (in memory)."""
    path = url.partition("://")[2]
    return path[1:] if path.startswith("/") and len(path) > 1 else ":memory:"


def scheme_of(url: str) -> str:
    return url.partition("://")[0].lower()


_SERVERS = {  # scheme → extra, module, class; clients are imported when they are asked for
    "amqp": ("rabbitmq", "rabbitmq", "RabbitMQBroker"),
    "amqps": ("rabbitmq", "rabbitmq", "RabbitMQBroker"),
    "redis": ("redis", "redis_streams", "RedisBroker"),
    "rediss": ("redis", "redis_streams", "RedisBroker"),
    "nats": ("nats", "nats_jetstream", "NatsBroker"),
    "kafka": ("kafka", "kafka", "KafkaBroker"),
}


def broker_of(urls: str, dwell: float = DWELL, groups: Mapping[str, str] | None = None) -> Broker:
    """`memory://`, the URL of a server, or several with commas between: then with failover, the first one first.
    `groups`: queues that Kafka's consumers read in a group of that name."""
    members = [_one_broker(url.strip(), groups or {}) for url in urls.split(",")]
    if len(members) == 1:
        return members[0]
    return FailoverBroker(members, dwell=dwell)


def _one_broker(url: str, groups: Mapping[str, str]) -> Broker:
    scheme = scheme_of(url)
    options = {"groups": groups} if scheme == "kafka" else {}
    if scheme == "memory":
        return MemoryBroker()
    extra, module, name = _SERVERS[scheme]
    try:
        found: Broker = getattr(import_module(f"oraculo.adapters.brokers.{module}"), name)(url, **options)
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{scheme}://", extra) from error
    return found


def engine_of(
    settings: Settings, store: Store, broker: Broker, clock: Clock, *, tracer: Tracer | None = None, **options: Any
) -> LocalEngine:
    if settings.engine == "local":
        return LocalEngine(store, broker, clock, **options)
    if settings.engine == "temporal":
        return _temporal(settings, store, broker, clock, tracer=tracer, **options)
    module = import_module("oraculo.engines.celery.engine")
    made: LocalEngine = module.CeleryEngine(store, broker, clock, **options)
    return made


def _temporal(
    settings: Settings, store: Store, broker: Broker, clock: Clock, *, tracer: Tracer | None, **options: Any
) -> LocalEngine:
    """Temporal's SDK makes spans of its own when traces are on."""
    address = temporal_of(settings)
    if tracer is not None:
        options["tracing"] = import_module("oraculo.engines.temporal.tracing").Tracing(tracer.exporter.tracer())
    module = import_module("oraculo.engines.temporal.engine")
    made: LocalEngine = module.TemporalEngine(store, broker, clock, address=address, **options)
    return made


def temporal_of(settings: Settings) -> Address:
    """Where Temporal is."""
    try:
        link = import_module("oraculo.engines.temporal.link")
    except ModuleNotFoundError as error:
        raise MissingExtraError("ORACULO_ENGINE=temporal", "temporal") from error
    address: Address = link.Address(
        settings.temporal_host,
        settings.temporal_port,
        settings.temporal_namespace,
        settings.temporal_task_queue,
        settings.temporal_tls,
        settings.temporal_api_key,
    )
    return address


def cache_of(settings: Settings) -> Cache | None:
    """One server is asked as such, several are a cluster."""
    nodes = settings.redis_cluster_nodes
    where = settings.cache or (f"redis://{nodes}" if nodes and "," not in nodes else nodes)
    if not where:
        return None
    made: Cache = import_module("oraculo.adapters.caches.redis").RedisCache(where)
    return made


def audit_writer(settings: Settings, observe: Callable[[str, str, float], None] | None = None) -> Any:
    """Of MONGODB_URI, which must be set."""
    try:
        module = import_module("oraculo.adapters.sinks.mongo.writer")
    except ModuleNotFoundError as error:
        raise MissingExtraError("MONGODB_URI", "mongo") from error
    names = import_module("oraculo.adapters.sinks.mongo.collections")
    may_lack = {
        names.TICKETS: settings.fail_open_tickets,
        names.VALIDATIONS: settings.fail_open_validations,
        names.RESULTS: settings.fail_open_results,
    }
    return module.Writer(
        settings.mongodb_uri,
        settings.mongodb_database,
        max_pool=settings.mongodb_max_pool,
        min_pool=settings.mongodb_min_pool,
        fail_open=[name for name, may in may_lack.items() if may],
        **({} if observe is None else {"observe": observe}),
    )


def audit_of(settings: Settings, store: Store, observe: Callable[[str, str, float], None]) -> MongoAudit | None:
    """None when no MongoDB is named."""
    if not settings.mongodb_uri:
        return None
    writer = audit_writer(settings, observe)
    made: MongoAudit = import_module("oraculo.adapters.sinks.mongo").MongoAudit(writer, store.load)
    return made


def defaults_of(settings: Settings) -> Defaults:
    return Defaults(
        timeout_s=settings.default_timeout_ms / 1000,
        ticket_timeout_s=settings.ticket_timeout_s,
        max_tentativas=settings.max_tentativas,
        retry_base_s=settings.retry_base_s,
        retry_cap_s=settings.retry_cap_s,
    )


def tracer_of(settings: Settings) -> Tracer | None:
    """None when traces are off: then nothing of OpenTelemetry is imported."""
    if not settings.otel_endpoint:
        return None
    return connected(
        settings.otel_endpoint,
        settings.otel_protocol,
        settings.otel_headers,
        settings.service_name,
        settings.broker,
        ratio=settings.otel_ratio,
        parent_based=settings.otel_sampler.startswith("parentbased"),
    )


def task_types_of(path: str) -> dict[str, Requisicao]:
    """The task types of a JSON file; a fault in it stops the start."""
    if not path:
        return {}
    try:
        with open(path, "rb") as file:
            content = strict_json.loads(file.read())
        if not isinstance(content, dict):
            raise ValueError('a JSON object {"tipo": request, …} is needed')
        return {tipo: requests.parse(body) for tipo, body in content.items()}
    except Exception as error:
        raise SettingsError("ORACULO_TASK_TYPES", path, str(error)) from None
