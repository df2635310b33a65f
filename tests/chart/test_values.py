"""Every value of the chart has an effect, a type and an explanation; a wrong one is refused by name."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml
from tools.chart import generate
from tools.chart.values import CHART, Value, read

from chart.rendering import (
    API_KEY,
    EVERYTHING,
    KNOWN_APIS,
    SCALED,
    SECURED,
    RenderError,
    merged,
    objects,
    pod_specs,
    text,
    variables,
)

BASE: dict[str, Any] = {"secrets": {"apiKey": API_KEY}}
DEMO: dict[str, Any] = {
    "replicaCount": 1,
    "autoscaling": {"enabled": False},
    "store": {"sqlite": {"enabled": True}},
    "config": {"postgres": {"host": ""}, "kafka": {"bootstrapServers": ""}, "temporal": {"enabled": False}},
}
WORLDS: dict[str, dict[str, Any]] = {
    "everything": EVERYTHING,
    "defaults": BASE,
    "scaled": merged(EVERYTHING, SCALED),
    "workers by processor time": merged(EVERYTHING, {"components": {"worker": {"autoscaling": {"enabled": True}}}}),
    "secured": merged(EVERYTHING, SECURED),
    "secured, no identities": merged(EVERYTHING, SECURED, {"config": {"spiffe": {"enabled": False}}}),
    "one pod": merged(BASE, DEMO),
    "one pod, other servers": merged(BASE, {"replicaCount": 1, "autoscaling": {"enabled": False}}),
    "existing secret": {"secrets": {"existingSecret": "there"}},
    "strimzi": merged(BASE, {"topics": {"manage": "strimzi"}}),
    "triggers": merged(BASE, {"autoscaling": {"enabled": False}, "keda": {"triggers": [{"type": "cpu"}]}}),
}
MARKED = ("everything", "scaled", "workers by processor time", "secured", "one pod")
WITHOUT_CLUSTER = {"secrets.check"}  # tests/kubernetes shows its effect: there has to be a cluster to ask
IN_OBJECTS = {  # no variable of theirs is read: they decide about other variables, volumes or annotations
    "observability.otelEnabled",
    "spiffe.trustDomain",
    "spiffe.enableX509",
    "vault.enabled",
}
ORIGINAL = [  # values of the original's chart, group by group
    f"{group}.{name}" if group else name
    for group, names in {
        "": "replicaCount imagePullSecrets resources startupProbe livenessProbe readinessProbe podSecurityContext "
        "securityContext volumes volumeMounts affinity topologySpreadConstraints podAnnotations podLabels tolerations "
        "nodeSelector component layer",
        "image": "repository tag pullPolicy",
        "deployment": "strategy",
        "autoscaling": "enabled minReplicas maxReplicas targetCPUUtilizationPercentage "
        "targetMemoryUtilizationPercentage",
        "service": "type annotations",
        "service.ports.http": "port targetPort",
        "service.ports.grpc": "port targetPort",
        "service.ports.metrics": "port targetPort",
        "podDisruptionBudget": "enabled minAvailable",
        "networkPolicy": "enabled ingress egress",
        "serviceMonitor": "enabled interval scrapeTimeout",
        "serviceAccount": "create name",
        "istio": "enabled mtls.mode",
        "opa": "enabled replicas image.repository image.tag image.pullPolicy resources service.port config.logLevel "
        "config.logFormat",
        "secrets": "postgresUser postgresPassword mongodbUri redisPassword kafkaSaslUsername kafkaSaslPassword",
        "config": "serviceName serviceVersion environment logLevel",
        "config.temporal": "enabled host port namespace taskQueue tlsEnabled",
        "config.kafka": "bootstrapServers consensusTopic ticketsTopic consumerGroupId securityProtocol saslMechanism "
        "saslUsername saslPassword sslCaLocation sslCertificateLocation sslKeyLocation schemaRegistryUrl "
        "schemasBasePath",
        "config.postgres": "host port database sslMode",
        "config.redis": "clusterNodes sslEnabled",
        "config.mongodb": "database maxPoolSize minPoolSize collectionTickets collectionWorkflows "
        "persistence.failOpenExecutionTickets persistence.failOpenValidationAudit persistence.failOpenWorkflowResults",
        "config.scheduler": "enableIntelligentScheduler enableMlEnhancedScheduling maxParallelTickets enablePreemption "
        "enableAffinity",
        "config.scheduler.preemption": "minPreemptorPriority maxPreemptablePriority gracePeriodSeconds maxConcurrent "
        "workerCooldownSeconds retryPreemptedTasks retryDelaySeconds",
        "config.scheduler.affinity": "planWeight antiWeight intentWeight planThreshold cacheTtlSeconds "
        "antiAffinityRiskBands antiAffinityPriorities",
        "config.sla": "defaultTimeoutMs checkIntervalSeconds alertThresholdPercent ticketMinTimeoutMs "
        "ticketTimeoutBufferMultiplier proactiveMonitoringEnabled budgetCriticalThreshold deadlineWarningThreshold",
        "config.slaManagement": "enabled host port timeoutSeconds cacheTtlSeconds",
        "config.serviceRegistry": "host port timeoutSeconds maxResults cacheTtlSeconds",
        "config.retry": "maxAttempts initialIntervalMs backoffCoefficient maxIntervalMs",
        "config.circuitBreaker": "enabled failMax timeoutSeconds recoveryTimeoutSeconds",
        "config.compensation": "enabled maxRetries timeoutSeconds failOpen",
        "config.ml": "predictionsEnabled driftDetectionEnabled driftBaselineEnabled backfillErrors",
        "config.observability": "otelEnabled otelExporterEndpoint tracingSamplingRate prometheusPort",
        "config.opa": "enabled host port timeoutSeconds retryAttempts cacheTtlSeconds failOpen",
        "config.vault": "enabled address namespace kubernetesRole",
        "config.spiffe": "enabled socketPath trustDomain jwtAudience enableX509 fallbackAllowed "
        "serviceRegistryJwtAudience",
    }.items()
    for name in names.split()
]
ALSO = {"POD_NAMESPACE", "PROMETHEUS_PORT"}  # for programs beside it; the original has them
OTHER: dict[str, Any] = {  # where another value cannot be guessed
    "keda.triggers": [{"type": "cron", "metadata": {}}],
    "brokers.urls": ["amqp://another"],
    "components.worker.classes": {"other": {"target": "other:worker", "queues": ["other"]}},
    "components.worker.keda.triggers": [{"type": "cron", "metadata": {}}],
    "image.digest": f"sha256:{'0' * 64}",
    "publicUrl": "https://another.example",
    "oidc.issuer": "https://another.example",
    "oidc.roles": {"flipped": "auditor"},
    "tls.clientCertificates": "",  # `required` is refused with these probes
    "networkPolicy.extraPorts": [4711],
    "networkPolicy.webhooks.ports": [8443],
    "networkPolicy.webhooks.except": ["192.0.2.0/24"],
    "networkPolicy.egress": [{"ports": [{"port": 4711}]}],
    "config.spiffe.identities": [{"id": "spiffe://casa.example/another", "role": "leitor"}],
    "config.spiffe.trustDomain": "another.example",  # contradicts identities of the other
    "settings": {"ORACULO_MAX_OPEN": 5},
    "config.redis.clusterNodes": "redis:7000",
    "secrets.existingSecret": "another",  # would hide all other secrets
    "opa.existingConfigMap": "another",
    "config.postgres.host": "another",
    "config.kafka.saslUsername": "ana",  # needs another protocol than the default
}


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for name in reversed(path):
        value = {name: value}
    return value


def another(value: Value, world: dict[str, Any]) -> Any:
    """A value of the same type that this world does not have."""
    if value.key in OTHER:
        return OTHER[value.key]
    if "enum" in value.schema:
        return next(one for one in reversed(value.schema["enum"]) if one != value.default)
    match value.default:
        case bool():
            return not present(value, world)
        case int() | float():
            return min(value.default + 1, value.schema.get("maximum", value.default + 1))
        case str() | None if "integer" in value.schema["type"] or "number" in value.schema["type"]:
            return 7
        case str() | None:
            return "flipped"
        case list():
            strings = value.schema.get("items", {}).get("type") == "string"
            return ["flipped"] if strings else [{"name": "flipped"}]
        case _:
            return {"flipped": "true"}


def present(value: Value, world: Any) -> Any:
    """What the world says, else the default."""
    for name in value.path:
        if name not in world:
            return value.default
        world = world[name]
    return world


def unique(value: Value, number: int) -> Any:
    """A value that is found again in a rendering; None where there is none."""
    if value.key in OTHER or not {"enum", "maximum"}.isdisjoint(value.schema):
        return None
    if isinstance(value.default, bool | dict | list):
        return None
    if isinstance(value.default, float):
        return 20_000.5 + number
    return f"unique{number}u" if value.schema["type"] == "string" else 20_000 + number


def encoded(value: Any) -> str:
    """As it is in a Secret."""
    return base64.b64encode(str(value).encode()).decode()


def test_readme_and_schema_are_as_the_values_say() -> None:
    assert generate.main(["--check"]) == 0


def environment_rows() -> list[dict[str, Any]]:
    """The table of values and their variables."""
    found: list[dict[str, Any]] = yaml.safe_load((CHART / "files" / "environment.yaml").read_text(encoding="utf-8"))
    return found


def test_every_variable_that_a_value_becomes_is_read_or_decides_about_others() -> None:
    unread = {row["key"] for row in environment_rows() if not generate.READ.intersection(row["set"])}
    assert unread == IN_OBJECTS


def test_every_value_of_the_original_is_a_value_here() -> None:
    """So the test below flips all of them."""
    here = {one.key for one in read()}
    assert [key for key in ORIGINAL if key not in here and key.rpartition(".")[0] not in here] == []


@pytest.mark.parametrize("key", ["optimizer", "grpc", "prometheusPushgateway"])
def test_a_value_that_the_original_never_rendered_is_refused_by_name(key: str) -> None:
    with pytest.raises(RenderError, match=f"at '/config': additional properties '{key}' not allowed"):
        text(merged(BASE, {"config": {key: {"enabled": True}}}))


@pytest.mark.parametrize("world", MARKED)
def test_a_variable_that_is_rendered_is_a_setting_or_declared(world: str) -> None:
    found = objects(WORLDS[world])
    rendered = set(variables(found))
    for _, spec in pod_specs(found):
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            rendered |= {one["name"] for one in container.get("env", ())}
    assert "ORACULO_HOST" in rendered
    original = {name for row in environment_rows() for name in row["set"]}
    assert rendered - generate.READ - original - ALSO == set()


@pytest.mark.timeout(300)
def test_every_value_has_an_effect() -> None:
    """First as many as can be told apart in one rendering, then each of the others alone, world after world."""
    values = [one for one in read() if one.key not in WITHOUT_CLUSTER]
    marks = {one: mark for number, one in enumerate(values) if (mark := unique(one, number)) is not None}
    marked = [nested(one.path, mark) for one, mark in marks.items()]
    with ThreadPoolExecutor(2) as pool:
        shown = "".join(pool.map(lambda world: text(merged(*marked, WORLDS[world])), MARKED))
        seen = {one for one, mark in marks.items() if str(mark) in shown or encoded(mark) in shown}
        assert len(seen) > 150
        plain = dict(zip(WORLDS, pool.map(text, WORLDS.values()), strict=True))
        plain["nothing known"] = text(EVERYTHING, apis=())
        rest = [one for one in values if one not in seen]
        results = pool.map(lambda one: _has_effect(one, plain), rest)
        assert [one.key for one, effect in zip(rest, results, strict=True) if not effect] == []


def _has_effect(value: Value, plain: dict[str, str]) -> bool:
    for name, before in plain.items():
        world, apis = (EVERYTHING, ()) if name == "nothing known" else (WORLDS[name], KNOWN_APIS)
        changed = merged(world, nested(value.path, another(value, world)))
        try:
            if changed != world and text(changed, apis=apis) != before:
                return True
        except RenderError:
            continue  # it contradicts this world; another shows what it does
    return False


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"replicaCounts": 3}, "additional properties 'replicaCounts' not allowed"),
        ({"config": {"sla": {"defaultTimeoutMz": 1}}}, "at '/config/sla': additional properties 'defaultTimeoutMz'"),
        ({"config": {"logLevel": "LOUD"}}, "at '/config/logLevel': value must be one of 'DEBUG'"),
        ({"replicaCount": "two"}, "at '/replicaCount': got string, want integer"),
        ({"terminationGracePeriodSeconds": 5}, "at '/terminationGracePeriodSeconds': minimum: got 5, want 30"),
    ],
)
def test_a_mistyped_value_is_named(values: dict[str, Any], said: str) -> None:
    with pytest.raises(RenderError) as refused:
        text(values)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"keda": {"enabled": True, "triggers": [{"type": "cpu"}]}},
            "autoscaling.enabled and keda.enabled scale the same pods: switch one off",
        ),
        ({"autoscaling": {"enabled": False}, "keda": {"enabled": True}}, "keda.enabled needs keda.triggers"),
        (
            {"components": {"worker": {"enabled": True, "autoscaling": {"enabled": True}, "keda": {"enabled": True}}}},
            "components.worker.autoscaling.enabled and components.worker.keda.enabled scale the same pods",
        ),
        (
            {
                "components": {
                    "worker": {"enabled": True, "keda": {"enabled": True}, "classes": {"eco": {"target": "m:w"}}},
                }
            },
            "components.worker.classes.eco.queues is empty",
        ),
        ({"autoscaling": {"minReplicas": 11}}, "autoscaling.minReplicas is more than autoscaling.maxReplicas"),
        ({"store": {"sqlite": {"enabled": True}}}, "store.sqlite.enabled is for one pod"),
        ({"config": {"postgres": {"host": ""}}}, "there is no store: set config.postgres.host"),
        ({"brokers": {"urls": ["amqp://u:segredo@host"]}}, "brokers.urls[0] has a password"),
        ({"config": {"kafka": {"bootstrapServers": ""}}}, "there is no broker that several pods can share"),
        ({"config": {"kafka": {"securityProtocol": "SASL_SSL"}}}, "config.kafka.securityProtocol is SASL_SSL"),
        ({"components": {"celeryWorker": {"enabled": True}}}, "components.celeryBeat are for engine=celery"),
        ({"engine": "temporal", "config": {"temporal": {"enabled": False}}}, "config.temporal.enabled is false"),
        ({"config": {"kafka": {"saslUsername": "ana"}}}, "config.kafka.saslUsername needs"),
        ({"settings": {"ORACULO_API_KEY": "x"}}, "settings.ORACULO_API_KEY is a secret"),
        ({"settings": {"ORACULO_OIDC_CLIENT_SECRET": "x"}}, "settings.ORACULO_OIDC_CLIENT_SECRET is a secret"),
        (
            {"config": {"kafka": {"schemaRegistryUrl": "https://ana:segredo@registry"}}},
            "KAFKA_SCHEMA_REGISTRY_URL has a password, and would be in the ConfigMap",
        ),
        (
            {"config": {"slaManagement": {"enabled": True}, "sla": {"proactiveMonitoringEnabled": False}}},
            "config.slaManagement.enabled needs config.sla.proactiveMonitoringEnabled",
        ),
        ({"oidc": {"issuer": "https://id.example"}}, "oidc.issuer needs oidc.clientId, and publicUrl"),
        ({"tls": {"clientCertificates": "optional"}}, "tls.clientCertificates needs tls.existingSecret"),
        (
            {"tls": {"existingSecret": "there", "clientCertificates": "required"}},
            "tls.clientCertificates is required, and startupProbe is httpGet",
        ),
        (
            {"config": SECURED["config"]},
            "config.spiffe.identities needs tls.clientCertificates: they are shown in certificates",
        ),
        (
            merged(SECURED, {"config": {"spiffe": {"trustDomain": "outra.example"}}}),
            "config.spiffe.identities[0] is not of config.spiffe.trustDomain outra.example",
        ),
        ({"settings": {"HTTPS_PROXY": "http://ana:segredo@proxy"}}, "HTTPS_PROXY has a password"),
    ],
)
def test_values_that_contradict_each_other_are_refused_with_one_line(values: dict[str, Any], said: str) -> None:
    with pytest.raises(RenderError) as refused:
        text(values)
    assert said in str(refused.value)
    assert (
        len(str(refused.value).replace("\n\nUse --debug flag to render out invalid YAML", "").strip().splitlines()) == 1
    )
    assert "segredo" not in str(refused.value)
