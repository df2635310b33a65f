"""Environment → settings: defaults, what wins, and one clear line for a wrong value."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from oraculo import redaction, settings, settings_readers
from oraculo.errors import SettingsError
from oraculo.settings import VARIABLES, Settings, load, read_dotenv


def loaded(**variables: str) -> Settings:
    return load(variables, dotenv=None)


# The block of seed 004, as printed.
SEED = """\
# Temporal
TEMPORAL_HOST=temporal-frontend.temporal.svc.cluster.local
TEMPORAL_PORT=7233
TEMPORAL_NAMESPACE=neural-hive-mind
TEMPORAL_TASK_QUEUE=orchestration-tasks

# Kafka
KAFKA_BOOTSTRAP_SERVERS=kafka-bootstrap.kafka.svc.cluster.local:9092
KAFKA_CONSENSUS_TOPIC=plans.consensus
KAFKA_TICKETS_TOPIC=execution.tickets
KAFKA_CONSUMER_GROUP_ID=orchestrator-dynamic

# PostgreSQL (Temporal State)
POSTGRES_HOST=postgres-temporal-headless.temporal-postgres.svc.cluster.local
POSTGRES_PORT=5432
POSTGRES_DATABASE=temporal
POSTGRES_USER=temporal
POSTGRES_PASSWORD=<secret>

# MongoDB (Auditoria)
MONGODB_URI=mongodb://mongodb-0.mongodb-headless:27017,.../?replicaSet=rs0
MONGODB_DATABASE=neural_hive_orchestration

# Redis (Cache)
REDIS_CLUSTER_NODES=redis-cluster.redis-cluster.svc.cluster.local:6379

# SLA e Scheduler
SLA_DEFAULT_TIMEOUT_MS=3600000
SCHEDULER_MAX_PARALLEL_TICKETS=100

# Observabilidade
OTEL_EXPORTER_ENDPOINT=http://otel-collector:4317
LOG_LEVEL=INFO
"""


def test_the_defaults_of_the_contract() -> None:
    one = loaded()
    assert (one.store, one.broker, one.engine) == ("sqlite:///oraculo.db", "memory://", "local")
    assert (one.host, one.port, one.url) == ("127.0.0.1", 8000, "http://127.0.0.1:8000")


def test_every_field_has_a_variable_with_help_and_a_default_that_is_allowed() -> None:
    assert set(VARIABLES) == {field.name for field in dataclasses.fields(Settings)}
    for variable in VARIABLES.values():
        assert variable.help
        variable.read(variable.name, variable.default)
    assert len({variable.name for variable in VARIABLES.values()}) == len(VARIABLES)


@pytest.mark.parametrize(
    ("variable", "value", "field", "read"),
    [
        ("ORACULO_PORT", "0", "port", 0),
        ("ORACULO_PORT", " 9000 ", "port", 9000),
        ("ORACULO_STORE", "sqlite:////var/lib/o.db", "store", "sqlite:////var/lib/o.db"),
        ("SLA_DEFAULT_TIMEOUT_MS", "1500", "default_timeout_ms", 1500),
        ("ORACULO_RETRY_BASE_S", "0.25", "retry_base_s", 0.25),
        ("LOG_LEVEL", "debug", "log_level", "DEBUG"),
        ("ORACULO_WEBHOOK_ALLOW", "a:1, b:2 ,", "webhook_allow", ("a:1", "b:2")),
        ("ORACULO_API_KEY", "çhave", "api_key", "çhave"),
        ("ORACULO_URL", "https://o.example", "url", "https://o.example"),
        ("MONGODB_URI", "mongodb://a:1,b:2/?replicaSet=rs0", "mongodb_uri", "mongodb://a:1,b:2/?replicaSet=rs0"),
        ("MONGODB_FAIL_OPEN_EXECUTION_TICKETS", "True", "fail_open_tickets", True),
        ("ORACULO_CAPABILITIES", "gpu=cuda+python, web = js", "capabilities", ("gpu=cuda+python", "web = js")),
    ],
)
def test_values_are_read(variable: str, value: str, field: str, read: object) -> None:
    assert getattr(loaded(**{variable: value}), field) == read


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ORACULO_STORE", "oraculo.db"), ("ORACULO_STORE", "mysql://h/d"), ("ORACULO_STORE", ""),
        ("ORACULO_BROKER", "memory"), ("ORACULO_BROKER", "memory://,ftp://x"), ("ORACULO_BROKER", ","),
        ("ORACULO_ENGINE", "Local"), ("ORACULO_ENGINE", "airflow"),
        ("ORACULO_PORT", "65536"), ("ORACULO_PORT", "-1"), ("ORACULO_PORT", "80.0"), ("ORACULO_PORT", "http"),
        ("ORACULO_PORT", ""), ("ORACULO_PORT", "--5"), ("ORACULO_PORT", "²"), ("ORACULO_PORT", "٣"),
        ("ORACULO_PORT", "1e3"),
        ("ORACULO_URL", "127.0.0.1:8000"), ("ORACULO_URL", "http://[::1"), ("ORACULO_URL", "http://h:99999"),
        ("ORACULO_TASK_TYPES", "/no/such/file.json"), ("ORACULO_TASK_TYPES", "/"),
        ("ORACULO_TICKET_TIMEOUT_S", "0"), ("ORACULO_TICKET_TIMEOUT_S", "nan"), ("ORACULO_TICKET_TIMEOUT_S", "inf"),
        ("ORACULO_TICKET_TIMEOUT_S", "soon"), ("ORACULO_MAX_TENTATIVAS", "0"), ("ORACULO_MAX_TENTATIVAS", "101"),
        ("SLA_DEFAULT_TIMEOUT_MS", "0"), ("SLA_DEFAULT_TIMEOUT_MS", "1.5"), ("LOG_LEVEL", "LOUD"),
        ("ORACULO_LOG_FORMAT", "xml"), ("ORACULO_RETRY_CAP_S", "0.5"), ("ORACULO_MAX_OPEN", "0"),
        ("ORACULO_FLOW_C", "yes"), ("KAFKA_BOOTSTRAP_SERVERS", "kafka"), ("KAFKA_BOOTSTRAP_SERVERS", "kafka://k:9092"),
        ("KAFKA_CONSENSUS_TOPIC", "a b"), ("KAFKA_TICKETS_TOPIC", ""), ("KAFKA_RESULTS_TOPIC", "execution.tickets"),
        ("KAFKA_RESULTS_TOPIC", "orquestrador_resultados"), ("KAFKA_CONSUMER_GROUP_ID", "a/b"),
        ("KAFKA_SCHEMA_REGISTRY_URL", "registry:8081"), ("KAFKA_SECURITY_PROTOCOL", "TLS"),
        ("KAFKA_SASL_MECHANISM", "GSSAPI"), ("SLA_TICKET_MIN_TIMEOUT_MS", "0"),
        ("SLA_TICKET_TIMEOUT_BUFFER_MULTIPLIER", "nan"), ("SCHEDULER_MAX_PARALLEL_TICKETS", "0"),
        ("ORACULO_CAPABILITIES", "gpu"), ("ORACULO_CAPABILITIES", "g/u=cuda"), ("ORACULO_CAPABILITIES", "gpu=cuda+"),
        ("ORACULO_CAPABILITIES", "gpu=a,gpu=b"), ("ORACULO_CAPABILITIES", "=a"),
        ("MONGODB_URI", "http://h/"), ("MONGODB_URI", "mongodb"), ("MONGODB_MAX_POOL_SIZE", "0"),
        ("MONGODB_MIN_POOL_SIZE", "101"), ("MONGODB_FAIL_OPEN_VALIDATION_AUDIT", "maybe"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_one_line_that_names_variable_value_and_what_is_allowed(variable: str, value: str) -> None:
    with pytest.raises(SettingsError) as error:
        loaded(**{variable: value})
    line = str(error.value)
    assert line.startswith(f"{variable}={value!r} is not allowed: ") and "\n" not in line
    assert len(line) > len(f"{variable}={value!r} is not allowed: ")


def test_what_is_allowed_is_listed() -> None:
    with pytest.raises(SettingsError, match="one of local"):
        loaded(ORACULO_ENGINE="x")
    with pytest.raises(SettingsError, match="sqlite://"):
        loaded(ORACULO_STORE="x")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("amqp://guest:segredo@h:5672/", "amqp://guest:***@h:5672/"),
        ("amqp://u:p1@a/x,redis://:p2@b:6379/0,memory://", "amqp://u:***@a/x,redis://:***@b:6379/0,memory://"),
        ("amqp://u:p1@a,redis://u:p2@b", "amqp://u:***@a,redis://u:***@b"),
        ("postgresql://u:p%40ss@h/d?sslmode=x", "postgresql://u:***@h/d?sslmode=x"),
        ("postgresql://u:p@a:5432,b:5433/d", "postgresql://u:***@a:5432,b:5433/d"),
        ("postgresql://h/d?user=u&password=p&sslmode=x", "postgresql://h/d?user=u&password=***&sslmode=x"),
        ("amqp://u:p@ss@h", "amqp://u:***@h"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://h:80/a:b@c", "http://h:80/a:b@c"),
        ("sqlite:///oraculo.db", "sqlite:///oraculo.db"),
        ("http://[::1", "http://[::1"),
        ("", ""),
    ],
)
def test_passwords_are_never_shown(url: str, shown: str) -> None:
    assert redaction.urls(url) == shown


class TestPostgres:
    def test_several_hosts_are_one_store(self) -> None:
        url = "postgresql://u:p@a:5432,b:5433/d?target_session_attrs=read-write"
        assert loaded(ORACULO_STORE=url).store == url

    def test_its_own_variables_make_the_url(self) -> None:
        one = loaded(POSTGRES_HOST="db", POSTGRES_PASSWORD="a/b@c", POSTGRES_DATABASE="temporal", POSTGRES_PORT="6000")
        assert one.store == "postgresql://oraculo:a%2Fb%40c@db:6000/temporal"
        assert "a/b" not in str(one.shown()) and "a%2F" not in str(one.shown())

    def test_oraculo_store_comes_first(self) -> None:
        assert loaded(POSTGRES_HOST="db", ORACULO_STORE="sqlite:///x.db").store == "sqlite:///x.db"

    def test_a_wrong_port_is_named(self) -> None:
        with pytest.raises(SettingsError, match="POSTGRES_PORT"):
            loaded(POSTGRES_HOST="db", POSTGRES_PORT="x")


class TestFlowC:
    @pytest.mark.parametrize(
        ("variables", "on"),
        [
            ({}, True),
            ({"ORACULO_BROKER": "amqp://h"}, False),
            ({"ORACULO_BROKER": "amqp://h", "KAFKA_BOOTSTRAP_SERVERS": "k:9092"}, True),
            ({"ORACULO_BROKER": "amqp://h,kafka://k"}, True),
            ({"ORACULO_BROKER": "amqp://h", "ORACULO_FLOW_C": "on"}, True),
            ({"ORACULO_FLOW_C": "off", "KAFKA_BOOTSTRAP_SERVERS": "k:9092"}, False),
        ],
    )
    def test_when_plans_are_taken(self, variables: dict[str, str], on: bool) -> None:
        assert loaded(**variables).takes_plans is on

    def test_the_topics_of_the_original(self) -> None:
        one = loaded()
        assert [getattr(one, topic) for topic in settings.TOPICS] == [
            "plans.consensus", "execution.tickets", "execution.results", "telemetry.orchestration",
            "orchestration.incidents",
        ]  # fmt: skip
        assert (one.kafka_group, one.max_parallel_tickets) == ("orchestrator-dynamic", 100)
        assert (one.ticket_min_timeout_ms, one.ticket_timeout_buffer) == (60_000, 3.0)

    def test_whoever_logs_in_needs_a_name_and_a_protocol_for_it(self) -> None:
        with pytest.raises(SettingsError, match="KAFKA_SASL_USERNAME"):
            loaded(KAFKA_SECURITY_PROTOCOL="SASL_SSL")
        with pytest.raises(SettingsError, match="KAFKA_SECURITY_PROTOCOL"):
            loaded(KAFKA_SASL_USERNAME="u", KAFKA_SASL_PASSWORD="segredo")
        one = loaded(KAFKA_SECURITY_PROTOCOL="SASL_SSL", KAFKA_SASL_USERNAME="u", KAFKA_SASL_PASSWORD="segredo")
        assert one.shown()["KAFKA_SASL_PASSWORD"] == "***"


def test_a_password_is_not_shown_in_a_refusal_either() -> None:
    with pytest.raises(SettingsError) as error:
        loaded(ORACULO_BROKER="amqp://u:segredo@h,ftp://v:outro@h")
    assert "segredo" not in str(error.value) and "outro" not in str(error.value)


def test_shown_hides_secrets() -> None:
    shown = loaded(
        ORACULO_API_KEY="k", ORACULO_WEBHOOK_SECRET="whsec_a,whsec_b", ORACULO_WEBHOOK_ALLOW="a:1,b:2"
    ).shown()
    assert (shown["ORACULO_API_KEY"], shown["ORACULO_WEBHOOK_SECRET"]) == ("***", "***")
    assert shown["ORACULO_WEBHOOK_ALLOW"] == "a:1,b:2"
    assert loaded().shown()["ORACULO_API_KEY"] == ""
    assert set(shown) == {variable.name for variable in VARIABLES.values()}


class TestDotenv:
    def write(self, folder: Path, text: str) -> Path:
        path = folder / ".env"
        path.write_text(text, encoding="utf-8")
        return path

    def test_the_block_of_the_seeds_is_read_as_it_is(self, tmp_path: Path) -> None:
        values = read_dotenv(self.write(tmp_path, SEED))
        assert values["TEMPORAL_HOST"] == "temporal-frontend.temporal.svc.cluster.local"
        assert values["POSTGRES_PASSWORD"] == "<secret>"
        assert values["MONGODB_URI"] == "mongodb://mongodb-0.mongodb-headless:27017,.../?replicaSet=rs0"
        assert len(values) == 20
        one = load({}, dotenv=self.write(tmp_path, SEED))
        assert (one.default_timeout_ms, one.log_level) == (3_600_000, "INFO")

    def test_shapes_of_lines(self, tmp_path: Path) -> None:
        text = "\n# comment\n  A=1\nexport B=2\nC='x y'\nD=\"z\"\nE=\nF=a=b\nG = spaced \nH='\n"
        assert read_dotenv(self.write(tmp_path, text)) == {
            "A": "1", "B": "2", "C": "x y", "D": "z", "E": "", "F": "a=b", "G": "spaced", "H": "'",
        }  # fmt: skip

    @pytest.mark.parametrize("line", ["NOTHING", "=1", "A B=1", "A-B=1"])
    def test_a_line_that_is_none_is_named_by_number(self, tmp_path: Path, line: str) -> None:
        with pytest.raises(SettingsError, match=r"\.env:2="):
            read_dotenv(self.write(tmp_path, f"A=1\n{line}\n"))

    def test_the_environment_wins_over_the_file_and_the_file_over_the_defaults(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "ORACULO_PORT=1\nORACULO_HOST=0.0.0.0\n")
        one = load({"ORACULO_PORT": "2"}, dotenv=path)
        assert (one.port, one.host, one.engine) == (2, "0.0.0.0", "local")

    def test_no_file_is_no_fault(self, tmp_path: Path) -> None:
        assert read_dotenv(tmp_path / "none") == {}

    def test_the_real_environment_is_read_by_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ORACULO_PORT", "4321")
        assert load(dotenv=None).port == 4321


def test_temporal_is_chosen_by_either_variable_and_the_engine_s_own_comes_first() -> None:
    assert load({"TEMPORAL_ENABLED": "true"}, None).engine == "temporal"
    assert load({"TEMPORAL_ENABLED": "true", "ORACULO_ENGINE": "local"}, None).engine == "local"
    assert load({"ORACULO_ENGINE": "temporal"}, None).temporal_task_queue == "orchestration-tasks"
    with pytest.raises(SettingsError, match="TEMPORAL_TLS='talvez' is not allowed: true or false"):
        load({"TEMPORAL_TLS": "talvez"}, None)


def test_the_lists_of_what_is_allowed_are_not_empty() -> None:
    assert settings_readers.STORES and settings_readers.BROKERS and settings.ENGINES
