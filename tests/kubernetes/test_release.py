"""Releases of the chart on a real API server: install, upgrade, rollback, and what is refused."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest
from tools.chart.values import CHART

from kubernetes_room import Room

pytestmark = pytest.mark.timeout(300)
RELEASE = "orchestrator-dynamic"
ROOT = CHART.parents[1]


def test_the_commands_of_the_original_work_as_printed(room: Room) -> None:
    """`helm lint .`, install with an image tag, upgrade with another timeout; only the namespace is another."""
    assert room.run("helm", "lint", ".").returncode == 0
    done = room.run(
        *("helm", "upgrade", "--install", RELEASE, ".", "--namespace", room.name, "--create-namespace"),
        *("--values", "values.yaml", "--set", "image.tag=1.0.0", "--wait"),
    )
    assert done.returncode == 0, done.stderr
    room.await_pods(RELEASE, 2)
    assert room.exists("horizontalpodautoscaler", RELEASE)
    key = room.get("secret", f"{RELEASE}-secrets")["data"]["ORACULO_API_KEY"]
    assert len(base64.b64decode(key)) == 43
    pods = room.cluster.kubectl("get", "pods", "-n", room.name, "-l", "app.kubernetes.io/name=orchestrator-dynamic")
    assert pods.count("Running") == 2
    room.cluster.kubectl("config", "set-context", "--current", "--namespace", room.name)
    done = room.run("helm", "upgrade", RELEASE, ".", "--set", "config.sla.defaultTimeoutMs=7200000")
    assert done.returncode == 0, done.stderr
    assert room.get("configmap", f"{RELEASE}-config")["data"]["SLA_DEFAULT_TIMEOUT_MS"] == "7200000"
    assert room.get("secret", f"{RELEASE}-secrets")["data"]["ORACULO_API_KEY"] == key  # made once, and kept


@pytest.mark.usefixtures("volume")
@pytest.mark.parametrize("values", ["values-demo.yaml", "values-production.yaml", "values-fluxo-c.yaml"])
def test_every_values_file_is_installed_where_only_restricted_pods_are_admitted(room: Room, values: str) -> None:
    room.secret("oraculo-secrets", {"ORACULO_API_KEY": "k"})
    room.secret("orchestrator-secrets", {"api-key": "k", "postgres-password": "segredo"})
    done = room.helm("install", RELEASE, ".", "--values", values, "--wait", "--timeout", "120s")
    assert done.returncode == 0, done.stderr
    room.await_pods(RELEASE, {"values-demo.yaml": 1, "values-production.yaml": 3}.get(values, 2))
    if values == "values-production.yaml":
        for kind in ("servicemonitor", "podmonitor", "prometheusrule"):
            assert room.exists(kind, RELEASE), kind
        assert room.exists("scaledobject", f"{RELEASE}-worker-relatorio")


def test_upgrade_from_the_chart_before_and_back(room: Room, tmp_path: Path) -> None:
    commits = subprocess.run(
        ["git", "-C", str(ROOT), "log", "--format=%H", "--", "helm-charts/orchestrator-dynamic"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    before = commits[1] if len(commits) > 1 else commits[0]
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", before, "helm-charts/orchestrator-dynamic"], check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(tmp_path)], input=packed, check=True)
    old = tmp_path / "helm-charts" / "orchestrator-dynamic"
    done = room.helm("install", RELEASE, old, "--set", "image.tag=1.0.0", "--wait")
    assert done.returncode == 0, done.stderr
    done = room.helm("upgrade", RELEASE, ".", "--set", "image.tag=1.1.0", "--wait")
    assert done.returncode == 0, done.stderr
    assert room.exists("job", f"{RELEASE}-migrate")  # the hook ran before the pods changed
    image = room.get("deployment", RELEASE)["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image.endswith(":1.1.0")
    done = room.helm("rollback", RELEASE, "1", "--wait")
    assert done.returncode == 0, done.stderr
    image = room.get("deployment", RELEASE)["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image.endswith(":1.0.0")
    room.await_pods(RELEASE, 2)
    assert room.helm("uninstall", RELEASE, "--wait").returncode == 0
    assert not room.exists("deployment", RELEASE)


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that says why."""
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith("Use --debug")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_a_missing_secret_is_named_before_anything_is_installed(room: Room) -> None:
    said = refusal(room.helm("install", RELEASE, ".", "--values", "values-fluxo-c.yaml"))
    assert f"there is no Secret orchestrator-secrets in the namespace {room.name}" in said
    room.secret("orchestrator-secrets", {"postgres-password": "segredo"})
    said = refusal(room.helm("install", RELEASE, ".", "--values", "values-fluxo-c.yaml"))
    assert "the Secret orchestrator-secrets has no key api-key (secrets.keys.apiKey)" in said
    assert not room.exists("deployment", RELEASE)


def test_tls_by_the_server_needs_its_certificate_and_is_installed_with_it(room: Room) -> None:
    options = ("--set", "topics.manage=none", "--set", "tls.existingSecret=server-certificate")
    said = refusal(room.helm("install", RELEASE, ".", *options))
    assert f"tls.existingSecret: there is no Secret server-certificate in the namespace {room.name}" in said
    room.secret("server-certificate", {"tls.crt": "c", "tls.key": "k"})
    said = refusal(room.helm("install", RELEASE, ".", *options))
    assert "the Secret server-certificate has no key ca.crt (tls.caKey)" in said
    done = room.helm("install", RELEASE, ".", *options, "--set", "tls.caKey=", "--wait")
    assert done.returncode == 0, done.stderr
    room.await_pods(RELEASE, 2)
    (container,) = room.get("deployment", RELEASE)["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"


def test_a_broken_image_fails_the_install_and_an_upgrade_leaves_the_old_pods(room: Room) -> None:
    none = ("--set", "topics.manage=none", "--set", "migrations.mode=init")
    done = room.helm("install", RELEASE, ".", *none, "--set", "image.tag=1.0.0", "--wait")
    assert done.returncode == 0, done.stderr
    room.await_pods(RELEASE, 2)
    done = room.helm("upgrade", RELEASE, ".", *none, "--set", "image.tag=broken", "--wait", "--timeout", "10s")
    assert done.returncode == 1
    assert "context deadline exceeded" in done.stderr
    pods = room.cluster.kubectl("get", "pods", "-n", room.name, "-l", "app.kubernetes.io/version=1.0.0")
    assert pods.count("Running") == 2  # surge 1, unavailable 0
