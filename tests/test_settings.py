"""Environment → settings: defaults, what wins, and one clear line for a wrong value."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from operator import attrgetter
from pathlib import Path

import pytest

from oraculo import redaction
from oraculo.adapters.registry.local import LocalRegistry
from oraculo.bootstrap.adapters import defaults_of
from oraculo.bootstrap.flow import codec_of, flow_rules
from oraculo.bootstrap.workers import affinity_of, preemption_of
from oraculo.core.flow.service_levels import BACKOFF as FLOW_BACKOFF
from oraculo.core.flow.service_levels import CompensationRules
from oraculo.core.plan import Backoff
from oraculo.errors import SettingsError
from oraculo.settings import readers as settings_readers
from oraculo.settings import settings
from oraculo.settings.dotenv import read_dotenv
from oraculo.settings.settings import VARIABLES, Settings, load

PLAIN = '{"type": "record", "name": "CognitivePlan", "fields": []}'


def loaded(**variables: str) -> Settings:
    return load(variables, dotenv=None)


def test_pyamqp_is_what_celery_calls_amqp() -> None:
    assert loaded(ORACULO_BROKER="pyamqp://guest@rabbitmq//").broker == "amqp://guest@rabbitmq//"
    assert loaded(ORACULO_BROKER="redis://r, pyamqp://a:b@c/v").broker == "redis://r,amqp://a:b@c/v"


SEED = (Path(__file__).parent / "seed_004.env").read_text(encoding="utf-8")  # the block of seed 004, as printed


def test_the_defaults_of_the_contract() -> None:
    one = loaded()
    assert (one.store, one.broker, one.engine) == ("sqlite:///oraculo.db", "memory://", "local")
    assert (one.host, one.port, one.url) == ("127.0.0.1", 8000, "http://127.0.0.1:8000")


def test_every_variable_has_help_and_a_name_of_its_own() -> None:
    assert all(variable.help for variable in VARIABLES)
    assert len({variable.name for variable in VARIABLES}) == len(VARIABLES) >= 72


def test_settings_without_an_environment_are_the_defaults() -> None:
    assert Settings() == loaded()


class TestGiven:
    def test_a_variable_that_is_set_to_its_default_counts_as_given(self) -> None:
        assert loaded(SLA_DEFAULT_TIMEOUT_MS="3600000").is_given("SLA_DEFAULT_TIMEOUT_MS")
        assert not loaded().is_given("SLA_DEFAULT_TIMEOUT_MS", "ORACULO_STORE")

    def test_the_timeout_of_plans_is_the_given_one_also_when_it_equals_the_default(self) -> None:
        assert flow_rules(loaded()).timeout == timedelta(hours=4)
        assert flow_rules(loaded(SLA_DEFAULT_TIMEOUT_MS="3600000")).timeout == timedelta(hours=1)

    def test_the_waits_of_plans_are_the_given_ones_also_when_one_equals_the_default(self) -> None:
        general = Backoff(timedelta(seconds=1), timedelta(seconds=60))
        assert flow_rules(loaded()).backoff == FLOW_BACKOFF != general
        assert flow_rules(loaded(ORACULO_RETRY_BASE_S="1")).backoff == general
        assert flow_rules(loaded(ORACULO_RETRY_CAP_S="60")).backoff == general

    def test_options_of_a_command_win_over_the_environment(self) -> None:
        one = load({"ORACULO_PORT": "1", "ORACULO_HOST": "::1"}, None, options={"ORACULO_PORT": "2"})
        assert (one.port, one.host) == (2, "::1")


class TestUnknown:
    def test_a_misspelt_variable_is_named_with_the_nearest_one(self) -> None:
        assert list(loaded(ORACULO_BROKR="amqp://h").warnings()) == [
            "ORACULO_BROKR is not a setting: did you mean ORACULO_BROKER?"
        ]

    def test_a_variable_like_no_other_is_named_alone(self) -> None:
        assert list(loaded(ORACULO_XYZ="1").warnings()) == ["ORACULO_XYZ is not a setting"]

    def test_variables_of_collectors_tests_and_others_are_left_alone(self) -> None:
        others = {"ORACULO_FEEDS_ALLOW": "h:1", "ORACULO_TEST_RUN": "1", "ORACULO_SERVICES": "redis", "PATH": "/bin"}
        assert list(load(others, None).warnings()) == []

    def test_a_variable_in_the_file_is_named_too(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text("ORACULO_ENGIN=celery\n", encoding="utf-8")
        assert load({}, tmp_path / ".env").unknown == ("ORACULO_ENGIN",)


@pytest.mark.parametrize(
    ("variable", "value", "field", "read"),
    [
        ("ORACULO_PORT", "0", "port", 0),
        ("ORACULO_PORT", " 9000 ", "port", 9000),
        ("ORACULO_STORE", "sqlite:////var/lib/o.db", "store", "sqlite:////var/lib/o.db"),
        ("SLA_DEFAULT_TIMEOUT_MS", "1500", "defaults.timeout_ms", 1500),
        ("ORACULO_RETRY_BASE_S", "0.25", "defaults.retry_base_s", 0.25),
        ("LOG_LEVEL", "debug", "logs.level", "DEBUG"),
        ("ORACULO_WEBHOOK_ALLOW", "a:1, b:2 ,", "webhooks.allow", ("a:1", "b:2")),
        ("ORACULO_API_KEY", "çhave", "api_key", "çhave"),
        ("ORACULO_URL", "https://o.example", "url", "https://o.example"),
        ("MONGODB_URI", "mongodb://a:1,b:2/?replicaSet=rs0", "mongodb.uri", "mongodb://a:1,b:2/?replicaSet=rs0"),
        ("MONGODB_FAIL_OPEN_EXECUTION_TICKETS", "True", "mongodb.fail_open_tickets", True),
        ("ORACULO_CAPABILITIES", "gpu=cuda+python, web = js", "flow_c.capabilities", ("gpu=cuda+python", "web = js")),
    ],
)
def test_values_are_read(variable: str, value: str, field: str, read: object) -> None:
    assert attrgetter(field)(loaded(**{variable: value})) == read


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
        ("KAFKA_SCHEMA_REGISTRY_URL", "registry:8081"), ("KAFKA_MESSAGE_FORMAT", "xml"),
        ("KAFKA_SECURITY_PROTOCOL", "TLS"),
        ("KAFKA_SASL_MECHANISM", "GSSAPI"), ("SLA_TICKET_MIN_TIMEOUT_MS", "0"),
        ("SLA_TICKET_TIMEOUT_BUFFER_MULTIPLIER", "nan"), ("SCHEDULER_MAX_PARALLEL_TICKETS", "0"),
        ("SCHEDULER_OFFERS", "true"), ("SCHEDULER_OFFER_SECONDS", "0.1"),
        ("SCHEDULER_AFFINITY_PLAN_WEIGHT", "0.7"), ("SCHEDULER_AFFINITY_PLAN_THRESHOLD", "0"),
        ("SCHEDULER_AFFINITY_ANTI_AFFINITY_RISK_BANDS", "critical,grave"),
        ("SCHEDULER_AFFINITY_ANTI_AFFINITY_PRIORITIES", '["URGENT"]'),
        ("ORACULO_CAPABILITIES", "gpu"), ("ORACULO_CAPABILITIES", "g/u=cuda"), ("ORACULO_CAPABILITIES", "gpu=cuda+"),
        ("ORACULO_CAPABILITIES", "gpu=a,gpu=b"), ("ORACULO_CAPABILITIES", "=a"),
        ("MONGODB_URI", "http://h/"), ("MONGODB_URI", "mongodb"), ("MONGODB_MAX_POOL_SIZE", "0"),
        ("POSTGRES_HOST", "bad host"), ("POSTGRES_HOST", "h:5432"),
        ("TEMPORAL_HOST", "bad host!"), ("TEMPORAL_HOST", ""), ("TEMPORAL_HOST", "h:7233"), ("TEMPORAL_NAMESPACE", ""),
        ("TEMPORAL_NAMESPACE", "a b"), ("TEMPORAL_TASK_QUEUE", ""), ("MONGODB_DATABASE", "a/b"),
        ("MONGODB_DATABASE", ""), ("POSTGRES_DATABASE", ""), ("POSTGRES_USER", ""),
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
        assert "a/b" not in str(one.shown()) and "a%2F" not in str(loaded(ORACULO_STORE=one.store).shown())

    def test_oraculo_store_comes_first(self) -> None:
        assert loaded(POSTGRES_HOST="db", ORACULO_STORE="sqlite:///x.db").store == "sqlite:///x.db"
        assert "%2Frun%2Fpostgresql" in loaded(POSTGRES_HOST="/run/postgresql").store

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
        assert dataclasses.astuple(one.kafka.topics) == (
            "plans.consensus", "execution.tickets", "execution.results", "telemetry.orchestration",
            "orchestration.incidents",
        )  # fmt: skip
        assert (one.kafka.group_id, one.flow_c.max_parallel_tickets) == ("orchestrator-dynamic", 100)
        assert (one.flow_c.min_timeout_ms, one.flow_c.timeout_multiplier) == (60_000, 3.0)

    def test_whoever_logs_in_needs_a_name_and_a_protocol_for_it(self) -> None:
        with pytest.raises(SettingsError, match="KAFKA_SASL_USERNAME"):
            loaded(KAFKA_SECURITY_PROTOCOL="SASL_SSL")
        with pytest.raises(SettingsError, match="KAFKA_SECURITY_PROTOCOL"):
            loaded(KAFKA_SASL_USERNAME="u", KAFKA_SASL_PASSWORD="segredo")
        one = loaded(KAFKA_SECURITY_PROTOCOL="SASL_SSL", KAFKA_SASL_USERNAME="u", KAFKA_SASL_PASSWORD="segredo")
        assert one.shown()["KAFKA_SASL_PASSWORD"] == "***"

    def test_files_of_kafka_exist_where_they_are_used(self) -> None:
        missing = {"KAFKA_SSL_CA_LOCATION": "/nowhere/ca.pem"}
        assert loaded(**missing).kafka.ca == "/nowhere/ca.pem"  # without TLS nobody opens it
        with pytest.raises(SettingsError, match=r"KAFKA_SSL_CA_LOCATION='/nowhere/ca.pem'.*a file that exists"):
            loaded(KAFKA_SECURITY_PROTOCOL="SSL", **missing)
        with pytest.raises(SettingsError, match="with KAFKA_SSL_CERTIFICATE_LOCATION"):
            loaded(KAFKA_SECURITY_PROTOCOL="SSL", KAFKA_SSL_KEY_LOCATION="/nowhere/key.pem")


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
    assert loaded(ORACULO_API_KEY="").shown() == {"ORACULO_API_KEY": ""}
    assert loaded().shown() == {}


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
        assert (one.defaults.timeout_ms, one.logs.level) == (3_600_000, "INFO")
        assert (one.engine, one.server_metrics_port, one.takes_plans) == ("temporal", 9090, True)

    def test_shapes_of_lines(self, tmp_path: Path) -> None:
        text = "\n# comment\n  A=1\nexport B=2\nC='x y'\nD=\"z\"\nE=\nF=a=b\nG = spaced \nH='\n"
        assert read_dotenv(self.write(tmp_path, text)) == {
            "A": "1", "B": "2", "C": "x y", "D": "z", "E": "", "F": "a=b", "G": "spaced", "H": "'",
        }  # fmt: skip

    @pytest.mark.parametrize("line", ["NOTHING", "=1", "A B=1", "A-B=1"])
    def test_a_line_that_is_none_is_named_by_number(self, tmp_path: Path, line: str) -> None:
        with pytest.raises(SettingsError, match=r"\.env:2="):
            read_dotenv(self.write(tmp_path, f"A=1\n{line}\n"))

    @pytest.mark.parametrize("line", ["sk-live-4711", "MY KEY=sk-live-4711", "  sk-live-4711 # my key"])
    def test_a_line_that_is_none_is_not_shown_it_may_hold_a_secret(self, tmp_path: Path, line: str) -> None:
        with pytest.raises(SettingsError) as refused:
            load({}, dotenv=self.write(tmp_path, f"A=1\n{line}\n"))
        assert "4711" not in str(refused.value)

    def test_the_environment_wins_over_the_file_and_the_file_over_the_defaults(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "ORACULO_PORT=1\nORACULO_HOST=0.0.0.0\n")
        one = load({"ORACULO_PORT": "2"}, dotenv=path)
        assert (one.port, one.host, one.engine) == (2, "0.0.0.0", "local")

    def test_a_key_of_the_environment_does_not_go_to_a_server_that_only_the_file_names(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "ORACULO_URL=http://attacker.example:8000\n")
        one = load({"ORACULO_API_KEY": "orc_live_mine"}, dotenv=path)
        with pytest.raises(SettingsError, match=r"ORACULO_URL='http://attacker\.example:8000'") as refused:
            one.key_for()
        assert "orc_live_mine" not in str(refused.value)
        assert one.key_for("http://chosen.example") == "orc_live_mine"  # the user named it

    @pytest.mark.parametrize(
        ("variables", "file"),
        [
            ({}, "ORACULO_URL=http://mine.example\nORACULO_API_KEY=k\n"),
            ({"ORACULO_URL": "http://mine.example", "ORACULO_API_KEY": "k"}, "ORACULO_URL=http://attacker.example\n"),
            ({"ORACULO_URL": "http://mine.example"}, "ORACULO_API_KEY=k\n"),
            ({"ORACULO_API_KEY": "k"}, "ORACULO_URL=http://localhost:9\n"),
            ({"ORACULO_API_KEY": "k"}, "ORACULO_URL=http://[::1]:9\n"),
            ({"ORACULO_API_KEY": "k"}, "ORACULO_PORT=9\n"),
        ],
    )
    def test_a_key_goes_to_a_server_of_its_own_source_and_to_this_machine(
        self, tmp_path: Path, variables: dict[str, str], file: str
    ) -> None:
        assert load(variables, dotenv=self.write(tmp_path, file)).key_for() == "k"

    def test_no_file_is_no_fault(self, tmp_path: Path) -> None:
        assert read_dotenv(tmp_path / "none") == {}

    def test_the_real_environment_is_read_by_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ORACULO_PORT", "4321")
        assert load(dotenv=None).port == 4321


def test_temporal_is_chosen_by_either_variable_and_the_engine_s_own_comes_first() -> None:
    assert load({"TEMPORAL_ENABLED": "true"}, None).engine == "temporal"
    assert load({"TEMPORAL_ENABLED": "true", "ORACULO_ENGINE": "local"}, None).engine == "local"
    assert load({"TEMPORAL_HOST": "temporal"}, None).engine == "temporal"
    assert load({"TEMPORAL_HOST": "temporal", "ORACULO_ENGINE": "local"}, None).engine == "local"
    assert load({"TEMPORAL_HOST": "temporal", "TEMPORAL_ENABLED": "false"}, None).engine == "local"
    assert load({"TEMPORAL_NAMESPACE": "n"}, None).engine == "local"
    assert load({"ORACULO_ENGINE": "temporal"}, None).temporal.task_queue == "orchestration-tasks"
    with pytest.raises(SettingsError, match="TEMPORAL_TLS='talvez' is not allowed: true or false"):
        load({"TEMPORAL_TLS": "talvez"}, None)


def test_the_lists_of_what_is_allowed_are_not_empty() -> None:
    assert settings_readers.STORES and settings.ENGINES


@pytest.mark.parametrize(
    ("value", "known"),
    [("true", True), ("on", True), ("YES", True), ("1", True), ("false", False), ("Off", False), ("no", False)],
)
def test_every_switch_understands_the_usual_words(value: str, known: bool) -> None:
    settings = load({"ORACULO_LOCAL_USERS": value, "ORACULO_SLA": value, "TEMPORAL_TLS": value}, None)
    assert (settings.local_users, settings.sla.enabled, settings.temporal.tls) == (known,) * 3


def test_values_of_the_original_reach_what_they_are_for() -> None:
    chosen = loaded(
        ORACULO_RETRY_FACTOR="3",
        COMPENSATION_MAX_RETRIES="0",
        COMPENSATION_TIMEOUT_SECONDS="7.5",
        COMPENSATION_FAIL_OPEN="false",
    )
    assert defaults_of(chosen).retry_factor == 3.0
    rules = flow_rules(chosen)
    assert rules.backoff == dataclasses.replace(FLOW_BACKOFF, factor=3.0)
    assert rules.undo == CompensationRules(True, timedelta(seconds=7.5), 1, True)
    assert flow_rules(loaded()).undo == CompensationRules()
    assert not flow_rules(loaded(COMPENSATION_ENABLED="off")).undo.enabled
    assert affinity_of(loaded(SCHEDULER_AFFINITY_CACHE_TTL_SECONDS="60").affinity).kept == timedelta(minutes=1)
    assert affinity_of(loaded().affinity).kept is None
    again = preemption_of(loaded(SCHEDULER_PREEMPTION_RETRY_PREEMPTED_TASKS="false").scheduler)
    assert (again.retry_delay_s, preemption_of(loaded().scheduler).retry_delay_s) == (None, 300.0)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"MONGODB_COLLECTION_TICKETS": "audit_chain"}, "MONGODB_COLLECTION_TICKETS"),
        ({"MONGODB_COLLECTION_WORKFLOWS": "execution_tickets"}, "MONGODB_COLLECTION_WORKFLOWS"),
        ({"MONGODB_COLLECTION_TICKETS": "system.users"}, "MONGODB_COLLECTION_TICKETS"),
    ],
)
def test_a_collection_that_serves_something_else_is_refused(variables: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=f"{said}.*a collection that serves nothing else"):
        loaded(**variables)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (None, "a folder that exists"),
        ({}, "a folder with Avro schemas, such as cognitive-plan.avsc"),
        ({"a/incident.txt": "{}"}, "a folder with Avro schemas"),
        ({"cognitive-plan.avsc": "{"}, "a folder with schemas that can be read"),
        ({"cognitive-plan.avsc": '{"type": "record", "name": "Other"}'}, "is the record CognitivePlan"),
        ({"a/cognitive-plan.avsc": PLAIN, "b/cognitive-plan.avsc": PLAIN}, "a folder with one cognitive-plan.avsc"),
        ({"cognitive-plan.avsc": PLAIN.replace("[]", '[{"name": "x", "type": "quark"}]')}, "a folder of Avro schemas"),
    ],
)
def test_a_folder_of_schemas_that_is_none_is_refused(files: dict[str, str] | None, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "schemas"
    for name, text in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if files is not None:
        folder.mkdir(exist_ok=True)
    chosen = loaded(SCHEMAS_BASE_PATH=str(folder), KAFKA_BOOTSTRAP_SERVERS="k:9092", KAFKA_MESSAGE_FORMAT="avro")
    with pytest.raises(SettingsError, match=f"SCHEMAS_BASE_PATH.*{said}"):
        codec_of(chosen, LocalRegistry())
