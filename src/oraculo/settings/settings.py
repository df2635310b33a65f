"""Environment (or `.env`) → Settings. Read by bootstrap, api and cli only; everything below takes plain arguments.

A wrong value stops the start with one line that names the variable, the value and what is allowed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

from oraculo import redaction
from oraculo.errors import SettingsError
from oraculo.loopback import is_loopback
from oraculo.runtime.token_ring import MODES
from oraculo.settings import readers as read
from oraculo.settings import references as references_to
from oraculo.settings.access_groups import (
    OidcSettings,
    S3Settings,
    SealingSettings,
    SignatureSettings,
    SpiffeSettings,
    TlsSettings,
    VaultSettings,
)
from oraculo.settings.declare import group, read_group, setting, values_of, variables_of
from oraculo.settings.dotenv import read_dotenv
from oraculo.settings.foresight_groups import PredictionsSettings, SlaSettings, TrailsSettings
from oraculo.settings.groups import (
    CacheSettings,
    CelerySettings,
    DefaultsSettings,
    FlowCSettings,
    KafkaSettings,
    MongoDBSettings,
    PostgresSettings,
    ReplicaSettings,
    TemporalSettings,
    WebhooksSettings,
    check_mongodb,
)
from oraculo.settings.operation_groups import BreakerSettings, GrpcSettings, RetentionSettings
from oraculo.settings.policy_groups import OpaSettings, PoliciesSettings
from oraculo.settings.telling_groups import CollectorsSettings, LogsSettings, TracesSettings
from oraculo.settings.vault import VaultReader
from oraculo.settings.worker_groups import AffinitySettings, SchedulerSettings, WorkerRegistrySettings, check_choices
from oraculo.wire import names

ENGINES = ("local", "celery", "temporal")
# Variables of the project's own tests, which the processes that they start inherit.
TEST_VARIABLES = frozenset(("ORACULO_SERVICES", "ORACULO_REQUIRE_SERVICES", "ORACULO_CHAOS_KILLS"))
TEST_PREFIX = "ORACULO_TEST_"
NEAR_NAME_RATIO = 0.75  # likeness from which on a name is suggested for another
USUAL_METRICS_PORT = 9090  # where scrapers of Fluxo C look


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its value. `given` are the names of the variables that were set, also to their default;
    `unknown` are those with our prefix that are no setting."""

    store: str = setting("ORACULO_STORE", "sqlite:///oraculo.db", read.store_url, "Where state is kept")
    migrate_at_start: bool = setting(
        "ORACULO_MIGRATE_AT_START",
        "true",
        read.flag,
        "`true`: the schema of the store is brought up to date at start; `false`: an outdated one is refused until "
        "`oraculo migrate` has run",
    )
    broker: str = setting(
        "ORACULO_BROKER",
        "memory://",
        read.brokers,
        "How messages travel; several, separated by commas, with failover",
    )
    broker_dwell_s: float = setting(
        "ORACULO_BROKER_DWELL_S",
        "30",
        read.number(0, 86400),
        "How long a broker that failed is left alone at least before messages are published there again",
    )
    queues: tuple[str, ...] = setting(
        "ORACULO_QUEUES",
        "",
        read.queues,
        "Queues of destinations with other names than the usual ones (`escavador_youtube=videos`, several with commas "
        "between); workers of Oráculo need the same setting",
    )
    engine: str = setting(
        "ORACULO_ENGINE", "local", read.one_of(*ENGINES), "Execution engine: local, celery or temporal"
    )
    host: str = setting("ORACULO_HOST", "127.0.0.1", read.text, "Address to listen on; beyond loopback a key is needed")
    port: int = setting("ORACULO_PORT", "8000", read.whole(0, 65535), "Port to listen on; 0 takes a free one")
    url: str = setting(
        "ORACULO_URL",
        "http://127.0.0.1:8000",
        read.url("http", "https"),
        "Where the CLI and HTTP workers find the API",
    )
    api_key: str = setting(
        "ORACULO_API_KEY",
        "",
        read.text,
        "Key that every request must carry (Authorization: Bearer …), or one of `oraculo keys`",
        secret=True,
    )
    local_users: bool = setting(
        "ORACULO_LOCAL_USERS",
        "off",
        read.flag,
        "`on`: people of `oraculo users` log in at the dashboard with a password, and everybody is asked who they are",
    )
    result_tokens: str = setting(
        "ORACULO_RESULT_TOKENS",
        "off",
        read.one_of(*MODES),
        "Tokens of orders, which workers hand back ([security](security.md#answers-that-can-be-trusted)): `off`: none; "
        "`accept`: an answer with a wrong token is refused; `require`: one without a token, too",
    )
    task_types: str = setting("ORACULO_TASK_TYPES", "", read.file, 'JSON file of task types: {"tipo": request, …}')
    retry_rate: float = setting(
        "ORACULO_RETRY_RATE",
        "1000",
        read.number(0.01, 1000000),
        "Attempts after the first that one process sends to one queue in a second, at most",
    )
    lease_s: float = setting(
        "ORACULO_LEASE_S",
        "30",
        read.number(1, 3600),
        "How long an HTTP worker holds a message without a sign of life",
    )
    max_open: int = setting(
        "ORACULO_MAX_OPEN",
        "100000",
        read.whole(1, 100000000),
        "Orchestrations that may be open at once; more get 503, or wait in their queue",
    )
    metrics_port: int | None = setting(
        "ORACULO_METRICS_PORT",
        "",
        read.optional_port,
        "Port on which `/metrics` is served without a key, also by `oraculo worker`; empty: none, 0: a free one. When "
        "it is not set and TEMPORAL_HOST or KAFKA_BOOTSTRAP_SERVERS is, a server has it on 9090, if that is free",
    )
    tenant: str = setting(
        "ORACULO_TENANT",
        "default",
        read.tenant,
        "Tenant whose queues `oraculo worker` serves on a broker; over HTTP it is that of the key",
    )
    artefatos: str = setting(
        "ORACULO_ARTEFATOS",
        "relatorios",
        read.text,
        "Folder whose files the dashboard hands out when a result names them; empty: none",
    )
    order_data: str = setting(
        "ORACULO_ORDER_DATA",
        "dados_de_ordens",
        read.text,
        "Folder, or `s3://bucket/prefix`, for collected data that are too large to be part of an order, shared by "
        "processes on one database; empty: every order carries its data",
    )
    order_max_bytes: int = setting(
        "ORACULO_ORDER_MAX_BYTES",
        "0",
        read.whole(0, 67108864),
        "Collected data of more bytes go by reference (`dados_ref`); 0: 768 KiB with NATS and Kafka, else 8 MiB",
    )
    crash_at: str = setting(
        "ORACULO_CRASH_AT", "", read.text, "For tests of recovery: die at a named point, like after_commit:3"
    )
    signatures: SignatureSettings = group(SignatureSettings, "Signed messages")
    vault: VaultSettings = group(VaultSettings, "Vault")
    spiffe: SpiffeSettings = group(SpiffeSettings, "SPIFFE")
    s3: S3Settings = group(S3Settings, "S3")
    sealing: SealingSettings = group(SealingSettings, "Encryption at rest")
    oidc: OidcSettings = group(OidcSettings, "OpenID Connect")
    tls: TlsSettings = group(TlsSettings, "TLS")
    worker_registry: WorkerRegistrySettings = group(WorkerRegistrySettings, "Workers that register")
    scheduler: SchedulerSettings = group(SchedulerSettings, "Who gets which ticket")
    affinity: AffinitySettings = group(AffinitySettings, "Who is close to which ticket")
    defaults: DefaultsSettings = group(DefaultsSettings, "Deadlines and attempts")
    sla: SlaSettings = group(SlaSettings, "Service levels")
    predictions: PredictionsSettings = group(PredictionsSettings, "Predicted durations")
    trails: TrailsSettings = group(TrailsSettings, "Trails of workers")
    breaker: BreakerSettings = group(BreakerSettings, "Breakers")
    retention: RetentionSettings = group(RetentionSettings, "Retention")
    grpc: GrpcSettings = group(GrpcSettings, "gRPC")
    webhooks: WebhooksSettings = group(WebhooksSettings, "Webhooks")
    postgres: PostgresSettings = group(PostgresSettings, "PostgreSQL")
    replica: ReplicaSettings = group(ReplicaSettings, "Several processes")
    cache: CacheSettings = group(CacheSettings, "Cache")
    celery: CelerySettings = group(CelerySettings, "Celery")
    temporal: TemporalSettings = group(TemporalSettings, "Temporal")
    flow_c: FlowCSettings = group(FlowCSettings, "Fluxo C")
    kafka: KafkaSettings = group(KafkaSettings, "Kafka of Fluxo C")
    mongodb: MongoDBSettings = group(MongoDBSettings, "Audit in MongoDB")
    policies: PoliciesSettings = group(PoliciesSettings, "Policies")
    opa: OpaSettings = group(OpaSettings, "Open Policy Agent")
    logs: LogsSettings = group(LogsSettings, "Logs")
    traces: TracesSettings = group(TracesSettings, "Traces")
    given: frozenset[str] = frozenset()
    references: Mapping[str, str] = field(default_factory=dict, repr=False)  # variable → its text with references
    unknown: tuple[str, ...] = ()
    foreign_url: bool = False  # `.env` names the server, and the key is of the environment or of an option

    @property
    def takes_plans(self) -> bool:
        """Whether Fluxo C is on."""
        on_broker = any(part.strip().lower().startswith("kafka:") for part in self.broker.split(","))
        somewhere = bool(self.kafka.servers) or on_broker or self.broker.startswith("memory:")
        return self.flow_c.mode == "on" or (self.flow_c.mode == "auto" and somewhere)

    @property
    def server_metrics_port(self) -> int | None:
        """The port on which a server has `/metrics` beside the API; where there is Temporal or Kafka, the usual one."""
        if self.is_given("ORACULO_METRICS_PORT"):
            return self.metrics_port
        return USUAL_METRICS_PORT if self.is_given("TEMPORAL_HOST") or self.kafka.servers else None

    @property
    def queue_names(self) -> names.QueueNames:
        """The queues of destinations."""
        pairs = (tuple(map(str.strip, pair.partition("=")[::2])) for pair in self.queues)
        return names.QueueNames({usual: other for usual, other in pairs})

    def is_given(self, *variables: str) -> bool:
        """Whether one of these variables was set, to whatever value."""
        return not self.given.isdisjoint(variables)

    def key_for(self, url: str | None = None) -> str:
        """The key to send to the server of `url`, else of ORACULO_URL. SettingsError: `.env` names that server and the
        key comes from elsewhere. A folder of a stranger could so have it sent anywhere."""
        if url is None and self.api_key and self.foreign_url and not is_loopback(urlsplit(self.url).hostname or ""):
            allowed = (
                "the key ORACULO_API_KEY of the environment is sent to a server that the environment or --url names, "
                "not to one that only .env names"
            )
            raise SettingsError("ORACULO_URL", redaction.urls(self.url), allowed)
        return self.api_key

    def shown(self) -> dict[str, str]:
        """Every variable that was set and its value, with secrets hidden; a reference is shown as it is."""
        return {
            variable.name: variable.shown(self.references.get(variable.name) or _text(value))
            for variable, value in values_of(self)
            if variable.name in self.given
        }

    def secrets(self) -> Iterator[str]:
        """The values that must never be shown."""
        for variable, value in values_of(self):
            for text in value if isinstance(value, tuple) else (_text(value),):
                if variable.secret:
                    yield text
                    yield text.partition("=")[2]
                else:
                    yield from redaction.passwords_of(text)

    def warnings(self) -> Iterator[str]:
        """One line for each variable with our prefix that is no setting, with the nearest name there is."""
        known = [variable.name for variable in (*VARIABLES, *COLLECTOR_VARIABLES)]
        for name in self.unknown:
            near = get_close_matches(name, known, n=1, cutoff=NEAR_NAME_RATIO)
            yield f"{name} is not a setting" + (f": did you mean {near[0]}?" if near else "")


VARIABLES = tuple(variables_of(Settings))
COLLECTOR_VARIABLES = tuple(variables_of(CollectorsSettings))


def load(
    environment: Mapping[str, str] | None = None,
    dotenv: str | Path | None = ".env",
    *,
    options: Mapping[str, str] | None = None,
) -> Settings:
    """Read every setting. `options` (of a command line) win over the environment, which wins over `.env`, which wins
    over the defaults. Secrets among them are never shown from then on."""
    surrounding = environment if environment is not None else os.environ
    given = {**surrounding, **(options or {})}
    beside = read_dotenv(Path(dotenv)) if dotenv is not None else {}
    foreign_url = "ORACULO_URL" in beside and "ORACULO_URL" not in given and "ORACULO_API_KEY" in given
    references: dict[str, str] = {}

    vault: list[VaultReader] = []  # made for the first reference to it

    def in_vault(where: str) -> str:
        """Who asks Vault, and which one, is said by the environment: a stranger's `.env` gets no token of ours."""
        if not vault:
            there = partial(references_to.dereferenced, environment=surrounding)
            vault.append(VaultReader(read_group(VaultSettings, given, there), read_group(SpiffeSettings, given, there)))
        return vault[0].value(where)

    def dereferenced(name: str, reference: str) -> str:
        folder = Path(dotenv).parent if dotenv is not None and name not in given else None
        asks = None if name.startswith(("VAULT_", "SPIFFE_")) else in_vault
        content = references_to.dereferenced(name, reference, surrounding, folder, asks)
        references[name] = merged[name].strip()
        return content

    merged = {**beside, **given}
    known = {variable.name for variable in VARIABLES}
    settings = replace(
        read_group(Settings, merged, dereferenced),
        given=frozenset(known.intersection(merged)),
        references=references,
        unknown=_unknown(merged, known),
        foreign_url=foreign_url,
    )
    if not settings.is_given("ORACULO_STORE") and settings.postgres.host:
        settings = replace(settings, store=_postgres_url(settings.postgres))
    named = settings.is_given("TEMPORAL_HOST") and not settings.is_given("TEMPORAL_ENABLED")
    if not settings.is_given("ORACULO_ENGINE") and (settings.temporal.enabled or named):
        settings = replace(settings, engine="temporal")
    redaction.know(settings.secrets())
    _check(settings)
    return for_celery(settings) if settings.engine == "celery" else settings


def for_celery(settings: Settings) -> Settings:
    """The same for the engine `celery`, which needs a database and a broker that several processes can share."""
    if settings.store.lower().startswith("sqlite"):
        raise SettingsError(
            "ORACULO_STORE", redaction.urls(settings.store), "postgresql://… with ORACULO_ENGINE=celery"
        )
    if settings.broker.lower().startswith("memory"):
        raise SettingsError("ORACULO_BROKER", redaction.urls(settings.broker), "a server with ORACULO_ENGINE=celery")
    return replace(settings, engine="celery")


def _check(settings: Settings) -> None:
    """Check what several variables mean together."""
    if settings.defaults.retry_cap_s < settings.defaults.retry_base_s:
        raise SettingsError("ORACULO_RETRY_CAP_S", str(settings.defaults.retry_cap_s), "at least ORACULO_RETRY_BASE_S")
    check_mongodb(settings.mongodb)
    check_choices(settings.scheduler, settings.worker_registry, settings.affinity)
    _check_access(settings)
    taken = {names.RESULTS, names.REQUESTS}
    for variable, topic in values_of(settings.kafka.topics):
        if topic in taken:
            raise SettingsError(variable.name, topic, "a topic that serves nothing else")
        taken.add(topic)
    _check_kafka(settings.kafka)


def _check_kafka(kafka: KafkaSettings) -> None:
    protocol, user = kafka.security_protocol, kafka.user
    if protocol.startswith("SASL_") and not user:
        raise SettingsError("KAFKA_SASL_USERNAME", "", f"a name, with KAFKA_SECURITY_PROTOCOL={protocol}")
    if user and not protocol.startswith("SASL_"):
        raise SettingsError("KAFKA_SECURITY_PROTOCOL", protocol, "SASL_PLAINTEXT or SASL_SSL, with KAFKA_SASL_USERNAME")
    if not protocol.endswith("SSL"):
        return
    if kafka.key and not kafka.cert:
        raise SettingsError("KAFKA_SSL_KEY_LOCATION", kafka.key, "with KAFKA_SSL_CERTIFICATE_LOCATION, its certificate")
    for name, path in (("CA", kafka.ca), ("CERTIFICATE", kafka.cert), ("KEY", kafka.key)):
        if path and not Path(path).is_file():
            raise SettingsError(f"KAFKA_SSL_{name}_LOCATION", path, read.file.allowed)


def _check_access(settings: Settings) -> None:
    tls, oidc = settings.tls, settings.oidc
    for name, path in (("ORACULO_TLS_KEY", tls.key), ("ORACULO_TLS_CLIENT_CA", tls.client_ca)):
        if path and not tls.cert:
            raise SettingsError(name, path, "with ORACULO_TLS_CERT, the certificate of the server")
    if tls.spiffe and not tls.client_ca:
        raise SettingsError("ORACULO_SPIFFE_IDENTITIES", tls.spiffe, "with ORACULO_TLS_CLIENT_CA, who signs them")
    if oidc.issuer and not oidc.client_id:
        raise SettingsError("ORACULO_OIDC_CLIENT_ID", "", "a name, with ORACULO_OIDC_ISSUER")
    if oidc.client_id and not oidc.issuer:
        raise SettingsError("ORACULO_OIDC_ISSUER", "", "the provider of ORACULO_OIDC_CLIENT_ID")
    issuer = urlsplit(oidc.issuer)
    if issuer.scheme.lower() == "http" and not is_loopback(issuer.hostname or ""):
        raise SettingsError("ORACULO_OIDC_ISSUER", redaction.urls(oidc.issuer), "https:// beyond this machine")


def _unknown(given: Mapping[str, str], known: set[str]) -> tuple[str, ...]:
    ours = (name for name in given if name.startswith("ORACULO_") and not name.startswith(TEST_PREFIX))
    return tuple(sorted(set(ours) - known - {variable.name for variable in COLLECTOR_VARIABLES} - TEST_VARIABLES))


def _postgres_url(postgres: PostgresSettings) -> str:
    user, password, host, database = (
        quote(part, safe="") for part in (postgres.user, postgres.password, postgres.host, postgres.database)
    )
    login = f"{user}:{password}" if password else user
    return f"postgresql://{login}@{host}:{postgres.port}/{database}"


def _text(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
