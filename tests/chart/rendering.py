"""Renders the chart with Helm, as tests of the chart want it."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from tools.chart.values import CHART
from tools.servers import helm

RELEASE = "orchestrator-dynamic"
NAMESPACE = "neural-hive-orchestration"
API_KEY = "chave-dos-testes-0123456789-abcdefgh"
FILES = ("values.yaml", "values-demo.yaml", "values-production.yaml", "values-fluxo-c.yaml")
KNOWN_APIS = ("monitoring.coreos.com/v1", "security.istio.io/v1")

# What is off by default, on: together with `values.yaml`, objects and variables of every kind.
EVERYTHING: dict[str, Any] = {
    "engine": "celery",
    "brokers": {"urls": ["amqp://rabbitmq", "nats://nats:4222"], "dwellSeconds": 20},
    "service": {"ports": {"grpc": {"enabled": True}}},
    "networkPolicy": {"webhooks": {"enabled": True}},
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "grafanaDashboard": {"enabled": True},
    "opa": {"enabled": True},
    "certificates": {"existingSecret": "certificates"},
    "secrets": {"apiKey": API_KEY},
    "components": {
        "engine": {"enabled": True},
        "worker": {"enabled": True},
        "celeryWorker": {"enabled": True},
        "celeryBeat": {"enabled": True},
    },
    "config": {
        "kafka": {"securityProtocol": "SASL_SSL"},
        "redis": {"clusterNodes": "redis:6379"},
        "serviceRegistry": {"host": "registry"},
        "slaManagement": {"enabled": True},
        "observability": {"otelEnabled": True},
        "opa": {"enabled": True},
        "vault": {"enabled": True, "namespace": "hive"},
        "spiffe": {"enabled": True},
    },
}
SCALED: dict[str, Any] = {
    "autoscaling": {"enabled": False},
    "keda": {"enabled": True, "triggers": [{"type": "cpu", "metadata": {"value": "60"}}]},
    "components": {
        "engine": {"autoscaling": {"enabled": True}},
        "celeryWorker": {"autoscaling": {"enabled": True}},
        "worker": {"keda": {"enabled": True}},
    },
}

SECURED: dict[str, Any] = {  # who is let in, by which means, and files that pods share
    "publicUrl": "https://oraculo.example",
    "tls": {"existingSecret": "server-certificate", "clientCertificates": "optional", "clientCaKey": "clients.crt"},
    "oidc": {
        "issuer": "https://id.example:8443/realms/casa",
        "clientId": "oraculo",
        "audience": "oraculo-api",
        "roleClaim": "realm_access.roles",
        "tenantClaim": "espaco",
        "roles": {"ops": "operador", "chefia": "admin"},
    },
    "resultTokens": "require",
    "signatures": {"results": "require", "requests": "accept", "orders": "require"},
    "sharedVolume": {"existingClaim": "shared"},
    "config": {
        "spiffe": {
            "enabled": True,
            "trustDomain": "casa.example",
            "identities": [
                {
                    "id": "spiffe://casa.example/ns/trabalho/sa/escavador",
                    "role": "trabalhador",
                    "queues": ["escavador_youtube"],
                    "tenant": "acme",
                },
                {"id": "spiffe://casa.example/ns/sala/sa/painel", "role": "leitor"},
            ],
        }
    },
    "components": {
        "worker": {
            "classes": {
                "acme": {
                    "target": "oraculo.collectors.all:worker",
                    "queues": ["escavador_blog"],
                    "tenant": "acme",
                    "apiKeySecret": {"name": "acme-key", "key": "key"},
                    "signingKeySecret": {"name": "acme-key", "key": "signing"},
                }
            }
        }
    },
}


class RenderError(Exception):
    """Helm refused the values; the text is what it said."""


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """One map of all, later ones win."""
    made: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            deeper = isinstance(value, Mapping) and isinstance(made.get(key), Mapping)
            made[key] = merged(made[key], value) if deeper else value
    return made


def text(values: Mapping[str, Any] | None = None, *arguments: str, apis: tuple[str, ...] = KNOWN_APIS) -> str:
    """All manifests as YAML, tests and hooks included."""
    command = [str(helm.helm().path), "template", RELEASE, str(CHART), "--namespace", NAMESPACE]
    command += [part for api in apis for part in ("--api-versions", api)]
    command += [*arguments, "--values", "-"]
    given = yaml.safe_dump(dict(values or {}))
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RenderError(done.stderr)
    return done.stdout


def objects(values: Mapping[str, Any] | None = None, *arguments: str) -> list[dict[str, Any]]:
    """All manifests."""
    return [one for one in yaml.safe_load_all(text(values, *arguments)) if one]


def of_file(name: str, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """All manifests of one of the shipped values files."""
    return objects(values, "--values", str(CHART / name))


def kind(found: list[dict[str, Any]], wanted: str, name: str | None = None) -> dict[str, Any]:
    """The one object of that kind and name."""
    (one,) = [each for each in found if each["kind"] == wanted and name in (None, each["metadata"]["name"])]
    return one


def pod_specs(found: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every pod that would run, with the name of its object."""
    for one in found:
        name = f"{one['kind']}/{one['metadata']['name']}"
        if one["kind"] == "Pod":
            yield name, one["spec"]
        elif one["kind"] in ("Deployment", "Job"):
            yield name, one["spec"]["template"]["spec"]


def variables(found: list[dict[str, Any]]) -> dict[str, str]:
    """What a pod of `oraculo up` has in its environment: the ConfigMap, and the Secret where the chart makes it."""
    made = dict(kind(found, "ConfigMap", f"{RELEASE}-config")["data"])
    for one in found:
        if one["kind"] == "Secret" and one["metadata"]["name"] == f"{RELEASE}-secrets":
            made |= {key: base64.b64decode(value).decode() for key, value in one["data"].items()}
    return made


def kubeconform(manifests: str | Path) -> subprocess.CompletedProcess[str]:
    """Check manifests against the schemas."""
    where = f"{helm.schemas()}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    command = [str(helm.kubeconform().path), "-strict", "-summary", "-schema-location", where, "-"]
    return subprocess.run(command, input=str(manifests), capture_output=True, text=True, check=False)
