"""Settings → single adapters and engines. Which one is meant is said by a URL's scheme; clients are imported when they
are asked for, and a missing one names the extra to install."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

from oraculo.adapters.archives.json_lines import JsonLinesArchive
from oraculo.adapters.brokers.connect import broker_of as broker_of
from oraculo.adapters.brokers.registry import scheme_of
from oraculo.adapters.identity.argon2 import Argon2Hasher
from oraculo.adapters.order_data.folder import FolderOrderData
from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.signing import ed25519
from oraculo.adapters.signing.process import SigningProcess
from oraculo.adapters.signing.verifying import VerifyingProcess
from oraculo.adapters.sinks.flow_topics import FlowTopics
from oraculo.adapters.sinks.otel import Tracer, connected
from oraculo.adapters.sinks.ticket_webhooks import TicketWebhooks
from oraculo.adapters.sinks.webhook import WebhookNotifier
from oraculo.adapters.stores.sealed_rows import UNSEALED
from oraculo.adapters.stores.sqlite.store import SqliteStore
from oraculo.core.access import AccessRole
from oraculo.core.breaking import BreakerRules
from oraculo.core.retention import read_rules
from oraculo.errors import MissingExtraError, SettingsError
from oraculo.ports.api_keys import ApiKeys
from oraculo.ports.cache import Cache
from oraculo.ports.clock import Clock
from oraculo.ports.data_keys import DataKeys
from oraculo.ports.identity import IdentityProvider
from oraculo.ports.order_data import OrderData
from oraculo.ports.store import Store
from oraculo.ports.token_keys import TokenKeys
from oraculo.runtime.breakers import BreakerBook
from oraculo.runtime.durations.learning import PROJECTION as DURATIONS
from oraculo.runtime.effects.references import OrderReferences
from oraculo.runtime.local_users import UserDirectory
from oraculo.runtime.retention import RetentionRounds
from oraculo.runtime.signatures import SignatureRing
from oraculo.runtime.sla.monitor import PROJECTION as SERVICE_LEVELS
from oraculo.runtime.token_ring import SignMany, TokenRing
from oraculo.runtime.trails import PROJECTION as TRAILS
from oraculo.settings.settings import Settings
from oraculo.wire import requests, strict_json
from oraculo.wire.order_links import OrderLinks
from oraculo.wire.requests import Defaults, Requisicao

if TYPE_CHECKING:
    from oraculo.adapters.sinks.mongo import MongoAudit
    from oraculo.adapters.stores.postgres.store import PostgresStore
    from oraculo.engines.temporal.connection import Address


SMALL_MESSAGE_SCHEMES = frozenset(("kafka", "nats"))  # whose servers take a mebibyte unless told otherwise
SMALL_ORDER_BYTES, LARGE_ORDER_BYTES = 768 * 1024, 8 * 1024 * 1024


def references_of(settings: Settings, store: DataKeys, sealing: Sealing) -> OrderReferences | None:
    """How orders refer to data that are too large for the broker; None when they carry everything."""
    if not settings.order_data:
        return None
    small = any(scheme_of(url.strip()) in SMALL_MESSAGE_SCHEMES for url in settings.broker.split(","))
    limit = settings.order_max_bytes or (SMALL_ORDER_BYTES if small else LARGE_ORDER_BYTES)
    data = order_data_of(settings, sealing)

    async def reload_keys() -> None:
        sealing.take(await store.data_keys())

    return OrderReferences(data, OrderLinks(data.link_key, settings.url), limit, reload_keys)


def order_data_of(settings: Settings, sealing: Sealing = UNSEALED) -> OrderData:
    """Where large data of orders are kept. SettingsError: the bucket cannot be one, or has no credentials."""
    if not settings.order_data.startswith("s3:"):
        return FolderOrderData(settings.order_data, sealing)
    from oraculo.adapters.order_data.s3 import S3OrderData, place_of
    from oraculo.adapters.order_data.sigv4 import S3Credentials

    try:
        place = place_of(settings.order_data)
    except ValueError as error:
        raise SettingsError("ORACULO_ORDER_DATA", settings.order_data, str(error)) from None
    s3 = settings.s3
    if not s3.access_key or not s3.secret_key:
        name = "AWS_SECRET_ACCESS_KEY" if s3.access_key else "AWS_ACCESS_KEY_ID"
        raise SettingsError(name, "", f"it is needed for ORACULO_ORDER_DATA={settings.order_data}")
    endpoint = s3.endpoint or f"https://s3.{s3.region}.amazonaws.com"
    return S3OrderData(place, endpoint, s3.region, S3Credentials(s3.access_key, s3.secret_key, s3.session), sealing)


def breakers_of(settings: Settings, store: Store, clock: Clock) -> BreakerBook | None:
    """The breakers of destinations; None when they are off."""
    wanted = settings.breaker
    if not wanted.failures:
        return None
    first, longest = timedelta(seconds=wanted.probe_s), timedelta(seconds=wanted.probe_max_s)
    return BreakerBook(store, clock, BreakerRules(wanted.failures, first, max(first, longest)))


def retention_of(settings: Settings, store: Store, clock: Clock) -> RetentionRounds | None:
    """What forgets ended orchestrations by itself; None when nothing does."""
    wanted = settings.retention
    rules = read_rules(wanted.rules)
    if not rules:
        return None
    archive = JsonLinesArchive(wanted.archive) if wanted.archive else None
    types = {FlowTopics.name: FlowTopics.tipo, TicketWebhooks.name: TicketWebhooks.tipo}
    return RetentionRounds(store, clock, rules, archive, types, unused_projections(settings))


def unused_projections(settings: Settings) -> list[str]:
    """Projections that no process with these settings moves: what they have not read may be forgotten, too."""
    used = {
        FlowTopics.name: settings.takes_plans,
        TicketWebhooks.name: settings.takes_plans and settings.webhooks.tickets != "off",
        DURATIONS: settings.predictions.enabled,
        SERVICE_LEVELS: settings.sla.enabled,
        TRAILS: settings.trails.enabled,
    }
    return [name for name, moved in used.items() if not moved]


async def tokens_of(settings: Settings, store: TokenKeys, clock: Clock, stack: AsyncExitStack) -> TokenRing | None:
    """What gives orders their tokens and signatures and judges tokens of answers, ready to be used; None when there
    are none."""
    if settings.result_tokens == "off" and settings.signatures.orders == "off":
        return None
    process = SigningProcess()
    ring = token_ring(store, clock, required=settings.result_tokens == "require", sign_many=process.sign_many)
    await ring.open()
    stack.callback(process.close)
    return ring


def token_ring(store: TokenKeys, clock: Clock, *, required: bool, sign_many: SignMany | None = None) -> TokenRing:
    """The keys of tokens of a store, not yet read."""
    return TokenRing(store, clock, ed25519.key_of, ed25519.new_secret, required=required, sign_many=sign_many)


async def signature_ring(
    settings: Settings, store: ApiKeys, clock: Clock, stack: AsyncExitStack
) -> SignatureRing | None:
    """The keys that messages are signed with, ready to be used; None where no signature is looked at."""
    if settings.signatures.results == "off" and settings.signatures.requests == "off":
        return None
    ed25519.key_of(ed25519.new_secret())  # what is not installed is said now
    process, required = VerifyingProcess(), settings.signatures.results == "require"
    stack.callback(process.close)
    ring = SignatureRing(store, clock, ed25519.verify, process.verify_many, answers_signed=required)
    await ring.reload()
    return ring


def store_of(
    url: str, *, exclusive: bool = False, may_migrate: bool = True, sealing: Sealing = UNSEALED
) -> SqliteStore | PostgresStore:
    """The store of a SQLite or PostgreSQL URL. `exclusive` refuses a second engine where only one may be; without
    `may_migrate` a database whose schema is not up to date is refused. `sealing` seals payloads, and opens them."""
    if scheme_of(url) == "sqlite":
        return SqliteStore(sqlite_path(url), exclusive=exclusive, may_migrate=may_migrate, sealing=sealing)
    try:
        from oraculo.adapters.stores.postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        raise MissingExtraError("postgresql://", "postgres") from error
    return PostgresStore(url, may_migrate=may_migrate, sealing=sealing)


def sqlite_path(url: str) -> str:
    """The path in `sqlite:///relative.db` or `sqlite:////absolute.db`; `:memory:` for `sqlite://`."""
    path = url.partition("://")[2]
    return path[1:] if path.startswith("/") and len(path) > 1 else ":memory:"


def temporal_of(settings: Settings) -> Address:
    """The address of Temporal."""
    try:
        module = import_module("oraculo.engines.temporal.connection")
    except ModuleNotFoundError as error:
        raise MissingExtraError("ORACULO_ENGINE=temporal", "temporal") from error
    address: Address = module.Address(
        settings.temporal.host,
        settings.temporal.port,
        settings.temporal.namespace,
        settings.temporal.task_queue,
        settings.temporal.tls,
        settings.temporal.api_key,
    )
    return address


def identity_of(settings: Settings, clock: Clock) -> IdentityProvider | None:
    """The identity provider whose users are let in, or None."""
    oidc = settings.oidc
    if not oidc.issuer:
        return None
    try:
        from oraculo.adapters.identity.oidc import OidcOptions, OidcProvider
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "cryptography":
            raise
        raise MissingExtraError("ORACULO_OIDC_ISSUER", "oidc") from None
    pairs = (pair.rpartition("=") for pair in oidc.roles)
    options = OidcOptions(
        oidc.issuer,
        oidc.client_id,
        oidc.client_secret,
        oidc.audience or oidc.client_id,
        oidc.role_claim,
        {value.strip(): AccessRole(role.strip()) for value, _, role in pairs},
        f"{settings.url.rstrip('/')}/login",
        oidc.tenant_claim,
    )
    return OidcProvider(options, clock)


def users_of(settings: Settings, store: Store, clock: Clock) -> UserDirectory | None:
    """The people who log in with a password; None where there are none."""
    return UserDirectory(store, clock, Argon2Hasher()) if settings.local_users else None


def cache_of(settings: Settings) -> Cache | None:
    """The cache of ORACULO_CACHE or REDIS_CLUSTER_NODES; None when there is none."""
    cache = settings.cache
    if not cache.url and not cache.cluster_nodes:
        return None
    kind = import_module("oraculo.adapters.caches.redis").RedisCache
    login = {} if cache.url else {"password": cache.password, "tls": cache.tls}
    made: Cache = kind(cache.url or cache.cluster_nodes, **login, pause_s=cache.pause_s)
    return made


def audit_writer(settings: Settings, observe: Callable[[str, str, float], None] | None = None) -> Any:
    """The writer to the MongoDB of MONGODB_URI, which must be set."""
    try:
        module = import_module("oraculo.adapters.sinks.mongo.writer")
    except ModuleNotFoundError as error:
        raise MissingExtraError("MONGODB_URI", "mongo") from error
    names = import_module("oraculo.adapters.sinks.mongo.collections")
    may_lack = {
        names.TICKETS: settings.mongodb.fail_open_tickets,
        names.VALIDATIONS: settings.mongodb.fail_open_validations,
        names.RESULTS: settings.mongodb.fail_open_results,
    }
    return module.Writer(
        settings.mongodb.uri,
        settings.mongodb.database,
        max_pool=settings.mongodb.max_pool,
        min_pool=settings.mongodb.min_pool,
        fail_open=[name for name, may in may_lack.items() if may],
        called={names.TICKETS: settings.mongodb.tickets, names.WORKFLOWS: settings.mongodb.workflows},
        **({} if observe is None else {"observe": observe}),
    )


def audit_of(settings: Settings, store: Store, observe: Callable[[str, str, float], None]) -> MongoAudit | None:
    """The audit in MongoDB; None when MONGODB_URI is not set."""
    if not settings.mongodb.uri:
        return None
    writer = audit_writer(settings, observe)
    made: MongoAudit = import_module("oraculo.adapters.sinks.mongo").MongoAudit(writer, store.load)
    return made


def defaults_of(settings: Settings) -> Defaults:
    return Defaults(
        timeout_s=settings.defaults.timeout_ms / 1000,
        ticket_timeout_s=settings.defaults.ticket_timeout_s,
        max_tentativas=settings.defaults.max_attempts,
        retry_base_s=settings.defaults.retry_base_s,
        retry_cap_s=settings.defaults.retry_cap_s,
        retry_factor=settings.defaults.retry_factor,
        queues=settings.queue_names,
    )


def tracer_of(settings: Settings) -> Tracer | None:
    """The tracer; None when traces are off: then nothing of OpenTelemetry is imported."""
    if not settings.traces.endpoint:
        return None
    return connected(
        settings.traces.endpoint,
        settings.traces.protocol,
        settings.traces.headers,
        settings.traces.service,
        settings.broker,
        ratio=settings.traces.ratio,
        parent_based=settings.traces.sampler.startswith("parentbased"),
    )


def task_types_of(path: str) -> dict[str, Requisicao]:
    """The task types in a JSON file. Raises SettingsError when it cannot be read as such."""
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


def webhooks_of(settings: Settings, clock: Clock) -> WebhookNotifier:
    """What delivers webhooks, as the settings allow."""
    return WebhookNotifier(settings.webhooks.secrets, settings.webhooks.allow, clock=clock.now)
