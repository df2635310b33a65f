"""What the chart renders: valid objects, restricted pods, probes, secrets where they belong, settings that load."""

from __future__ import annotations

import base64
import functools
import re
import subprocess
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.chart.values import CHART
from tools.servers import helm

from chart import rendering
from chart.rendering import API_KEY, EVERYTHING, FILES, RELEASE, SCALED, SECURED, kind, merged
from oraculo import __version__
from oraculo.api.spiffe import SpiffeIdentities
from oraculo.settings import settings
from oraculo.wire.flow.topic_table import needs_of
from oraculo.wire.flow.topics import Topics

SECRETS = {"secrets": {"apiKey": API_KEY, "postgresPassword": "segredo"}}
CASES: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in FILES} | {
    "everything": ("values.yaml", EVERYTHING),
    "scaled": ("values.yaml", merged(EVERYTHING, SCALED)),
    "workers by processor time": (
        "values.yaml",
        merged(EVERYTHING, {"components": {"worker": {"autoscaling": {"enabled": True}}}}),
    ),
    "secured": ("values.yaml", merged(EVERYTHING, SECURED)),
    "without hooks": ("values.yaml", {"useHelmHooks": False, "migrations": {"mode": "job"}}),
}


@functools.cache
def rendered(case: str) -> str:
    name, values = CASES[case]
    return rendering.text(values, "--values", str(CHART / name))


def found_in(case: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(rendered(case)) if one]


def test_chart_and_image_have_the_version_of_oraculo() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert {chart["version"], chart["appVersion"]} == {__version__}
    assert values["config"]["serviceVersion"] == "", "that of the code, whatever image.tag says"


@pytest.mark.parametrize("name", FILES)
def test_lint_has_nothing_to_say(name: str) -> None:
    command = [str(helm.helm().path), "lint", "--strict", str(CHART), "--values", str(CHART / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "0 chart(s) failed" in done.stdout


@pytest.mark.parametrize("case", CASES)
def test_every_object_is_as_its_schema_says(case: str) -> None:
    done = rendering.kubeconform(rendered(case))
    assert done.returncode == 0, done.stdout
    assert "Skipped: 0" in done.stdout


def test_a_field_that_kubernetes_does_not_know_is_found() -> None:
    broken = rendered("values.yaml").replace("restartPolicy: Never", "restartPolicies: Never")
    done = rendering.kubeconform(broken)
    assert done.returncode == 1
    assert "additional properties 'restartPolicies' not allowed" in done.stdout


def violations(spec: dict[str, Any]) -> list[str]:
    """What the pod security level `restricted` forbids."""
    found = [f"{name} is set" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    pod = spec.get("securityContext", {})
    allowed = {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
    for volume in spec.get("volumes", ()):
        found += [f"volume {kind}" for kind in volume if kind != "name" and kind not in allowed]
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        own = container.get("securityContext", {})
        both = {**pod, **own}
        wanted = {
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "privileged": not own.get("privileged"),
            "capabilities": own.get("capabilities", {}).get("drop") == ["ALL"] and not own["capabilities"].get("add"),
            "runAsNonRoot": both.get("runAsNonRoot") is True and both.get("runAsUser") != 0,
            "seccompProfile": both.get("seccompProfile", {}).get("type") in ("RuntimeDefault", "Localhost"),
            "hostPort": not any("hostPort" in port for port in container.get("ports", ())),
        }
        found += [f"{container['name']}: {name}" for name, kept in wanted.items() if not kept]
    return found


@pytest.mark.parametrize("case", CASES)
def test_every_pod_is_restricted_and_needs_no_token(case: str) -> None:
    pods = dict(rendering.pod_specs(found_in(case)))
    assert pods
    for name, spec in pods.items():
        assert violations(spec) == [], name
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True, name
            assert {"cpu", "memory"} <= container["resources"]["limits"].keys(), name


@pytest.mark.parametrize(
    "broken",
    [
        {"securityContext": {"capabilities": {"drop": []}}},
        {"podSecurityContext": {"runAsUser": 0}},
        {"extraVolumes": [{"name": "host", "hostPath": {"path": "/"}}]},
    ],
)
def test_the_check_of_pods_finds_what_is_not_restricted(broken: dict[str, Any]) -> None:
    pods = rendering.pod_specs(rendering.objects(broken))
    assert all(violations(spec) for _, spec in pods)


def test_every_setting_that_is_a_secret_has_its_place_in_the_secret() -> None:
    """One that is missing here could only be given in a ConfigMap."""
    there = set(yaml.safe_load((CHART / "files" / "secrets.yaml").read_text()).values())
    assert {one.name for one in settings.VARIABLES if one.secret} - there == set()


def planted() -> dict[str, str]:
    names = yaml.safe_load((CHART / "files" / "secrets.yaml").read_text())
    return {name: f"plantado-{number}-{name}" for number, name in enumerate(names)}


def test_a_secret_is_in_the_secret_and_nowhere_else() -> None:
    secrets = planted()
    for one in rendering.objects(merged(EVERYTHING, {"secrets": secrets})):
        shown = yaml.safe_dump(one)
        if one["kind"] == "Secret":
            assert {base64.b64decode(value).decode() for value in one["data"].values()} == set(secrets.values())
        else:
            for secret in secrets.values():
                assert secret not in shown
                assert base64.b64encode(secret.encode()).decode() not in shown


def test_with_an_existing_secret_the_chart_makes_none_and_reads_every_key_from_it() -> None:
    secrets = planted()
    keys = {name: f"key-of-{name}" for name in secrets}
    shown = rendering.text(merged(EVERYTHING, {"secrets": {**secrets, "existingSecret": "there", "keys": keys}}))
    objects = [one for one in yaml.safe_load_all(shown) if one]
    assert not [one for one in objects if one["kind"] == "Secret"]
    assert not any(secret in shown for secret in secrets.values())
    (container,) = kind(objects, "Deployment", RELEASE)["spec"]["template"]["spec"]["containers"]
    read = [one["valueFrom"]["secretKeyRef"] for one in container["env"] if "secretKeyRef" in one.get("valueFrom", {})]
    assert {one["key"] for one in read} == set(keys.values()) - {keys["signingKey"]}, "that one is the workers' alone"
    assert {one["name"] for one in read} == {"there"}
    assert [one["key"] for one in read if not one.get("optional")] == ["key-of-apiKey"]


def test_workers_get_no_secret_of_a_database() -> None:
    objects = rendering.objects(merged(EVERYTHING, {"secrets": {"existingSecret": "there"}}))
    (container,) = kind(objects, "Deployment", f"{RELEASE}-worker-relatorio")["spec"]["template"]["spec"]["containers"]
    read = {one["name"] for one in container["env"] if "secretKeyRef" in one.get("valueFrom", {})}
    assert {"ORACULO_API_KEY", "ORACULO_BROKER", "ORACULO_SIGNING_KEY"} <= read
    assert not {name for name in read if name.startswith(("POSTGRES", "MONGODB", "REDIS", "ORACULO_STORE"))}
    written = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    given = {
        "ORACULO_API_KEY": API_KEY,
        "KAFKA_SASL_USERNAME": "ana",
        "POSTGRES_HOST": "",
    }  # the store is in the Secret
    known = settings.load({**rendering.variables(objects), **given, **written}, None)
    assert (known.engine, known.broker) == ("local", "amqp://rabbitmq,nats://nats:4222")


@pytest.mark.parametrize("name", FILES)
def test_oraculo_takes_the_environment_of_every_values_file(name: str) -> None:
    own = {} if name in ("values-production.yaml", "values-fluxo-c.yaml") else SECRETS
    given = {"ORACULO_API_KEY": API_KEY, "POSTGRES_PASSWORD": "segredo", "POSTGRES_USER": "ana"}
    known = settings.load({**given, **rendering.variables(rendering.of_file(name, own))}, None)
    assert known.host == "0.0.0.0"
    assert known.api_key == API_KEY
    assert known.metrics_port == 9090
    assert known.unknown == ()
    assert not known.is_given("SLA_DEFAULT_TIMEOUT_MS", "ORACULO_RETRY_BASE_S", "ORACULO_RETRY_CAP_S")
    assert known.migrate_at_start is False  # an init container has done it
    wanted = {
        "values.yaml": ("temporal", "postgresql", "kafka://kafka-bootstrap.kafka.svc.cluster.local:9092/"),
        "values-demo.yaml": ("local", "sqlite", "memory://"),
        "values-production.yaml": ("local", "postgresql", "memory://"),  # the broker is in the Secret
        "values-fluxo-c.yaml": ("temporal", "postgresql", "kafka://kafka-bootstrap.kafka.svc.cluster.local:9092/"),
    }[name]
    assert (known.engine, known.store.partition(":")[0], known.broker) == wanted


def test_values_arrive_as_settings(tmp_path: Path) -> None:
    files = {f"ssl{name}Location": str(tmp_path / f"{name}.pem") for name in ("Ca", "Certificate", "Key")}
    for path in files.values():
        Path(path).touch()
    values = {
        "config": {
            "sla": {"defaultTimeoutMs": 7_200_000, "ticketTimeoutBufferMultiplier": 2.5},
            "retry": {"maxAttempts": 7, "initialIntervalMs": 250, "maxIntervalMs": 9000},
            "temporal": {"tlsEnabled": True},
            "redis": {"clusterNodes": "a:6379,b:6379", "sslEnabled": True},
            "observability": {"otelEnabled": True, "tracingSamplingRate": 0.25},
            "kafka": {"bootstrapServers": "a:9093, b:9093", "securityProtocol": "SSL", **files},
        },
        "settings": {"ORACULO_MAX_OPEN": 5_000_000},
    }
    secrets = merged(SECRETS, {"secrets": {"redisPassword": "senha"}})
    known = settings.load(rendering.variables(rendering.objects(merged(secrets, values))), None)
    cache = known.cache
    assert (cache.url, cache.cluster_nodes, cache.password, cache.tls) == ("", "a:6379,b:6379", "senha", True)
    defaults = known.defaults
    assert (defaults.timeout_ms, defaults.max_attempts) == (7_200_000, 7)
    assert (defaults.retry_base_s, defaults.retry_cap_s) == (0.25, 9)
    assert (known.temporal.tls, known.traces.ratio, known.flow_c.timeout_multiplier) == (True, 0.25, 2.5)
    assert (known.max_open, known.predictions.enabled) == (5_000_000, True)
    ca, certificate, key = files.values()
    assert (known.kafka.ca, known.kafka.cert, known.kafka.key) == (ca, certificate, key)
    options = f"servers=b:9093&tls=1&tls_ca={ca}&tls_cert={certificate}&tls_key={key}"
    assert known.broker == f"kafka://a:9093/?{options}"


@pytest.mark.parametrize(
    ("values", "failures", "probe_s", "probe_max_s"),
    [
        ({}, 5, 30, 60),
        ({"failMax": 9, "timeoutSeconds": 120, "recoveryTimeoutSeconds": 7}, 9, 7, 120),
        ({"enabled": False, "failMax": 9}, 0, 30, 600),  # the defaults of the settings: no breaker
    ],
)
def test_breakers_arrive_as_settings(values: dict[str, Any], failures: int, probe_s: float, probe_max_s: float) -> None:
    given = merged(SECRETS, {"config": {"circuitBreaker": values}})
    known = settings.load(rendering.variables(rendering.objects(given)), None)
    breaker = known.breaker
    assert (breaker.failures, breaker.probe_s, breaker.probe_max_s) == (failures, probe_s, probe_max_s)
    assert known.opa.breaker is values.get("enabled", True)
    if failures:
        assert (known.opa.breaker_failures, known.opa.breaker_reset_s) == (failures, probe_max_s)


@pytest.mark.parametrize(
    ("values", "enabled", "near"),
    [
        ({}, True, 0.8),
        ({"proactiveMonitoringEnabled": False, "alertThresholdPercent": 0.5}, False, 0.5),
        ({"alertThresholdPercent": 0.5, "deadlineWarningThreshold": 0.9}, True, 0.9),
    ],
)
def test_service_levels_arrive_as_settings(values: dict[str, Any], enabled: bool, near: float) -> None:
    known = settings.load(rendering.variables(rendering.objects(merged(SECRETS, {"config": {"sla": values}}))), None)
    assert (known.sla.enabled, known.sla.near) == (enabled, near)


def environment_of(objects: list[dict[str, Any]], name: str, folder: Path) -> dict[str, str]:
    """The variables of the first container of a Deployment; files of TLS are in `folder` instead."""
    (container, *_) = kind(objects, "Deployment", name)["spec"]["template"]["spec"]["containers"]
    written = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    found = {"ORACULO_API_KEY": API_KEY, "KAFKA_SASL_USERNAME": "ana", **rendering.variables(objects), **written}
    folders = re.compile("/etc/oraculo/(tls|spiffe)(?=/)")
    return {key: folders.sub(str(folder), value) for key, value in found.items()}


def test_what_the_chart_once_ignored_arrives_as_settings() -> None:
    given = {
        "serviceVersion": "9.9",
        "mongodb": {"collectionTickets": "bilhetes", "collectionWorkflows": "fluxos"},
        "scheduler": {
            "enableMlEnhancedScheduling": False,
            "preemption": {"retryPreemptedTasks": False},
            "affinity": {"cacheTtlSeconds": 14400},
        },
        "sla": {"checkIntervalSeconds": 30, "budgetCriticalThreshold": 0.3},
        "slaManagement": {"enabled": True, "host": "sla", "port": 8001, "timeoutSeconds": 4, "cacheTtlSeconds": 11},
        "serviceRegistry": {
            "host": "registry", "port": 50052, "timeoutSeconds": 4, "maxResults": 6, "cacheTtlSeconds": 11,
        },
        "retry": {"backoffCoefficient": 1.5},
        "circuitBreaker": {"redisRecoveryTimeoutSeconds": 60},
        "compensation": {"enabled": True, "maxRetries": 3, "timeoutSeconds": 60, "failOpen": False},
        "ml": {"driftDetectionEnabled": False, "driftBaselineEnabled": False, "backfillErrors": True},
        "spiffe": {
            "enabled": True, "jwtAudience": "vault", "fallbackAllowed": True, "serviceRegistryJwtAudience": "registry",
        },
    }  # fmt: skip
    read, plain = (
        settings.load(rendering.variables(rendering.objects(merged(SECRETS, {"config": config}))), None)
        for config in (given, {})
    )
    sla, outside, undo = read.sla, read.worker_registry.outside, read.flow_c.undo
    asked = sla.management
    assert (read.traces.service_version, plain.traces.service_version) == ("9.9", "")
    assert (read.mongodb.tickets, read.mongodb.workflows) == ("bilhetes", "fluxos")
    assert (read.scheduler.predicted, read.scheduler.retry_preempted, read.affinity.kept_s) == (False, False, 14400)
    assert (sla.interval_s, sla.critical) == (30, 0.3)
    assert (asked.enabled, asked.host, asked.port, asked.timeout_s, asked.interval_s) == (True, "sla", 8001, 4, 11)
    assert (outside.host, outside.port, outside.timeout_s, outside.most) == ("registry", 50052, 4, 6)
    assert (outside.interval_s, outside.audience) == (11, "registry")
    assert (read.defaults.retry_factor, read.cache.pause_s) == (1.5, 60)
    assert (undo.enabled, undo.retries, undo.timeout_s, undo.fail_open) == (True, 3, 60, False)
    assert (read.predictions.drift, read.predictions.baseline, read.predictions.past_errors) == (False, False, True)
    assert (read.spiffe.enabled, read.spiffe.audience, read.spiffe.fallback) == (True, "vault", True)
    nothing = settings.load({}, None)
    for group in ("flow_c.undo", "affinity.kept_s", "cache", "defaults", "spiffe", "worker_registry.outside"):
        usual = attrgetter(group)(nothing)
        assert attrgetter(group)(plain) == usual, f"{group}: the chart's defaults are those of the product"
    assert (plain.sla.interval_s, plain.sla.critical, plain.sla.management.enabled) == (15, 0.2, False)


def test_tls_users_and_tokens_arrive_as_settings(tmp_path: Path) -> None:
    for name in ("tls.crt", "tls.key", "ca.crt", "clients.crt"):
        (tmp_path / name).touch()
    objects = found_in("secured")
    given = kind(objects, "ConfigMap", f"{RELEASE}-identities")["data"]
    (tmp_path / "identities.toml").write_text(given["identities.toml"])
    ids = SpiffeIdentities(str(tmp_path / "identities.toml"))
    worker_of = ids.actor_of("spiffe://casa.example/ns/trabalho/sa/escavador")
    reader = ids.actor_of("spiffe://casa.example/ns/sala/sa/painel")
    assert worker_of is not None
    assert reader is not None
    assert (worker_of.tenant, worker_of.queues) == ("acme", frozenset({"espaco_acme.escavador_youtube"}))
    assert (reader.tenant, reader.queues) == ("default", None)
    for name in (RELEASE, f"{RELEASE}-engine"):
        known = settings.load(environment_of(objects, name, tmp_path), None)
        tls = known.tls
        assert tls.spiffe == f"{tmp_path}/identities.toml"
        files = (f"{tmp_path}/tls.crt", f"{tmp_path}/tls.key", f"{tmp_path}/clients.crt", "optional")
        assert (tls.cert, tls.key, tls.client_ca, tls.client) == files
        assert (known.url, known.result_tokens) == ("https://oraculo.example", "require")
        oidc = known.oidc
        assert (oidc.issuer, oidc.client_id) == ("https://id.example:8443/realms/casa", "oraculo")
        assert (oidc.audience, oidc.role_claim, oidc.tenant_claim) == ("oraculo-api", "realm_access.roles", "espaco")
        assert set(oidc.roles) == {"ops=operador", "chefia=admin"}
        assert (known.order_data, known.artefatos) == ("/shared/dados_de_ordens", "/shared/relatorios")
        signed = known.signatures
        assert (signed.results, signed.requests, signed.orders) == ("require", "accept", "require")
        assert known.unknown == ()
    worker = settings.load(environment_of(objects, f"{RELEASE}-worker-acme", tmp_path), None)
    assert worker.tls.spiffe == ""
    assert worker.url == f"https://{RELEASE}.{rendering.NAMESPACE}.svc:8000"
    assert (worker.tls.cert, worker.tls.url_ca, worker.tenant) == ("", f"{tmp_path}/ca.crt", "acme")
    policy = kind(objects, "NetworkPolicy")["spec"]
    assert 8443 in {port["port"] for rule in policy["egress"] for port in rule.get("ports", ())}


def test_the_key_of_the_server_is_where_it_serves_and_probes_speak_tls() -> None:
    objects = found_in("secured")
    serving = {f"Deployment/{RELEASE}", f"Deployment/{RELEASE}-engine"}
    for name, spec in rendering.pod_specs(objects):
        (volume,) = [one["secret"] for one in spec["volumes"] if one["name"] == "tls"] or [None]
        if name == "Deployment/opa":
            assert volume is None
        elif name in serving:
            assert volume == {"secretName": "server-certificate"}
            (container,) = spec["containers"]
            probes = [container[one]["httpGet"] for one in ("startupProbe", "livenessProbe", "readinessProbe")]
            assert {one["scheme"] for one in probes} == {"HTTPS"}
        else:
            assert volume["items"] == [{"key": "ca.crt", "path": "ca.crt"}], name
    without = rendering.objects(merged(EVERYTHING, SECURED, {"tls": {"caKey": ""}}))
    mounting = {n for n, spec in rendering.pod_specs(without) if any(v["name"] == "tls" for v in spec["volumes"])}
    assert mounting == serving, "no items would be all keys"


def test_a_class_of_workers_has_a_key_of_its_own_and_no_data_of_orders() -> None:
    objects = found_in("secured")
    spec = kind(objects, "Deployment", f"{RELEASE}-worker-acme")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    for variable, wanted in (("ORACULO_API_KEY", "key"), ("ORACULO_SIGNING_KEY", "signing")):
        (key,) = [one["valueFrom"]["secretKeyRef"] for one in container["env"] if one["name"] == variable]
        assert key == {"name": "acme-key", "key": wanted}
    names = [one["name"] for one in container["env"]]
    assert len(names) == len(set(names)), "Kubernetes would take the last, and patches the first"
    shared = {one["mountPath"] for one in container["volumeMounts"] if one["name"] == "shared"}
    assert shared == {"/shared/relatorios"}


@pytest.mark.parametrize(
    ("values", "folder"),
    [
        ({}, ""),  # of several pods, the one that is asked would not have them
        (
            {
                "replicaCount": 1,
                "autoscaling": {"enabled": False},
                "store": {"sqlite": {"enabled": True}},
            },
            "/data/dados_de_ordens",
        ),
        ({"sharedVolume": {"existingClaim": "shared"}}, "/shared/dados_de_ordens"),
    ],
)
def test_data_of_orders_are_kept_where_every_pod_finds_them(values: dict[str, Any], folder: str) -> None:
    assert rendering.variables(rendering.objects(merged(SECRETS, values)))["ORACULO_ORDER_DATA"] == folder


def test_probes_ask_the_process_for_life_and_the_store_for_readiness() -> None:
    (container,) = kind(found_in("values.yaml"), "Deployment", RELEASE)["spec"]["template"]["spec"]["containers"]
    assert (
        container["startupProbe"]["httpGet"]
        == container["livenessProbe"]["httpGet"]
        == {"path": "/health", "port": "http"}
    )
    assert container["readinessProbe"]["httpGet"] == {"path": "/ready", "port": "http"}
    periods = [
        (container[one]["periodSeconds"], container[one]["failureThreshold"])
        for one in ("startupProbe", "livenessProbe")
    ]
    assert periods == [(10, 30), (15, 3)]
    assert container["command"] == ["oraculo", "up"]


@pytest.mark.parametrize("case", ["values.yaml", "everything", "scaled"])
def test_what_is_scaled_has_one_scaler_and_no_number_of_its_own(case: str) -> None:
    objects = found_in(case)
    targets = [one["spec"]["scaleTargetRef"]["name"] for one in objects if "scaleTargetRef" in one.get("spec", {})]
    assert len(targets) == len(set(targets))
    for one in objects:
        if one["kind"] == "Deployment":
            assert ("replicas" in one["spec"]) is (one["metadata"]["name"] not in targets), one["metadata"]["name"]
    names = {one["metadata"]["name"] for one in objects if one["kind"] == "Deployment"}
    assert set(targets) <= names


def test_keda_counts_the_queues_of_a_class() -> None:
    trigger = kind(found_in("scaled"), "ScaledObject", f"{RELEASE}-worker-relatorio")["spec"]["triggers"][0]
    assert trigger["type"] == "prometheus"
    wanted = 'fila=~"escavador_youtube|escavador_blog|executador_relatorio"'
    assert trigger["metadata"]["query"] == f"sum(max by (fila) (orchestration_queue_depth{{{wanted}}}))"


def test_jobs_read_nothing_that_is_made_after_them() -> None:
    """A hook runs before the ConfigMap, the Secret and the service account of its release exist."""
    objects = found_in("values.yaml")
    jobs = {one["metadata"]["name"]: one for one in objects if one["kind"] == "Job"}
    hooks = {name: job["metadata"]["annotations"]["helm.sh/hook"] for name, job in jobs.items()}
    assert hooks == {f"{RELEASE}-migrate": "pre-upgrade", f"{RELEASE}-topics": "pre-install,pre-upgrade"}
    secret = kind(objects, "Secret", f"{RELEASE}-hooks")
    assert secret["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    for job in jobs.values():
        spec = job["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        assert spec["serviceAccountName"] == "default"
        assert "envFrom" not in container
        assert {
            one["valueFrom"]["secretKeyRef"]["name"]
            for one in container["env"]
            if "valueFrom" in one and "secretKeyRef" in one["valueFrom"]
        } == {f"{RELEASE}-hooks"}
        assert {one["name"]: one["value"] for one in container["env"] if "value" in one} == kind(
            objects, "ConfigMap", f"{RELEASE}-config"
        )["data"]
    assert jobs[f"{RELEASE}-migrate"]["spec"]["template"]["spec"]["containers"][0]["command"] == ["oraculo", "migrate"]
    assert jobs[f"{RELEASE}-topics"]["spec"]["template"]["spec"]["containers"][0]["command"] == [
        "oraculo",
        "topics",
        "ensure",
    ]
    (migrate,) = kind(objects, "Deployment", RELEASE)["spec"]["template"]["spec"]["initContainers"]
    assert migrate["command"] == ["oraculo", "migrate"]


def test_helm_test_answers_nothing_where_answers_have_to_be_signed() -> None:
    spec = kind(found_in("secured"), "Pod")["spec"]
    assert ([one["name"] for one in spec["containers"]], "initContainers" in spec) == (["doctor"], False)
    spec = kind(found_in("values.yaml"), "Pod")["spec"]
    assert [one["name"] for one in (*spec["initContainers"], *spec["containers"])] == ["doctor", "end-to-end"]


def test_a_plain_job_has_another_name_when_it_would_do_something_else() -> None:
    plain = {"useHelmHooks": False, "secrets": {"apiKey": API_KEY}}

    def names(values: dict[str, Any]) -> set[str]:
        return {one["metadata"]["name"] for one in rendering.objects(merged(plain, values)) if one["kind"] == "Job"}

    assert len(names({})) == 2
    assert names({}) == names({})
    assert not names({}) & names({"image": {"tag": "9.9.9"}})


def test_rules_and_dashboard_are_the_projects_own() -> None:
    objects = found_in("values-production.yaml")
    rules = kind(objects, "PrometheusRule")["spec"]
    assert rules == yaml.safe_load((Path(CHART).parents[1] / "deploy/prometheus/rules.yml").read_text())
    board = kind(objects, "ConfigMap", f"{RELEASE}-dashboard")["data"]["orchestration-flow-c.json"]
    assert board.strip() == (Path(CHART).parents[1] / "deploy/grafana/orchestration-flow-c.json").read_text().strip()
    jobs = set(re.findall(r'up\{job="(\w+)"\}', yaml.safe_dump(rules)))
    assert jobs == {kind(objects, "ServiceMonitor")["spec"]["endpoints"][0]["relabelings"][0]["replacement"]}


def test_kafka_topics_are_those_of_the_command() -> None:
    kafka, sla = {"ticketsTopic": "meus.tickets"}, {"proactiveMonitoringEnabled": False}
    values = {"topics": {"manage": "strimzi"}, "config": {"kafka": kafka, "sla": sla}}
    objects = rendering.objects(merged(SECRETS, values))
    made = {one["spec"]["topicName"]: one for one in objects if one["kind"] == "KafkaTopic"}
    wanted = needs_of(Topics(tickets="meus.tickets"))
    assert {name: (one["spec"]["partitions"], one["spec"]["config"]["retention.ms"]) for name, one in made.items()} == {
        need.name: (need.partitions, round(need.retention.total_seconds() * 1000)) for need in wanted
    }
    assert made["meus.tickets.dlq"]["metadata"]["name"] == "meus-tickets-dlq"
    told = {"config": {"sla": {"proactiveMonitoringEnabled": True}}, "settings": {"SLA_ALERTS_TOPIC": "meus.alertas"}}
    with_sla = merged(SECRETS, values, told)
    alerted = {one["spec"]["topicName"] for one in rendering.objects(with_sla) if one["kind"] == "KafkaTopic"}
    assert alerted - made.keys() == {"meus.alertas", "sla.violations", "sla.budgets", "sla.freeze.events"}
    assert not [one for one in objects if one["kind"] == "Job" and one["metadata"]["name"].endswith("topics")]


def test_network_policy_allows_what_is_configured_and_names_by_the_label_of_kubernetes() -> None:
    policy = kind(found_in("values.yaml"), "NetworkPolicy")["spec"]
    ports = {port["port"] for rule in policy["egress"] for port in rule.get("ports", ())}
    assert ports == {53, 5432, 7233, 9092}
    assert "kubernetes.io/metadata.name: monitoring" in yaml.safe_dump(policy["ingress"])
    users = merged(
        SECRETS, {"settings": {"ORACULO_OIDC_ISSUER": "https://id.example/realm", "ORACULO_OIDC_CLIENT_ID": "o"}}
    )
    policy = kind(rendering.objects(users), "NetworkPolicy")["spec"]
    assert 443 in {port["port"] for rule in policy["egress"] for port in rule.get("ports", ())}


def test_a_release_is_named_as_the_chart_or_after_it() -> None:
    assert f"name: {RELEASE}\n" in rendering.text(SECRETS)
    command = [str(helm.helm().path), "template", "hive", str(CHART)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"name: hive-{RELEASE}\n" in shown
