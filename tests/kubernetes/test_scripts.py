"""The scripts of the original and `oraculo doctor --kubernetes`, on a real API server."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tools.chart.values import CHART

from kubernetes_room import Room

pytestmark = pytest.mark.timeout(300)
RELEASE = "orchestrator-dynamic"
ROOT = CHART.parents[1]
DEPLOY = ROOT / "scripts" / "deploy" / "deploy-orchestrator-dynamic.sh"
VALIDATE = ROOT / "scripts" / "validation" / "validate-orchestrator-dynamic.sh"
IMAGE = "registry.example/oraculo"
POD = """{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "kafka-0"},
 "spec": {"containers": [{"name": "kafka", "image": "kafka"}]}}"""


@pytest.fixture
def with_kafka(room: Room) -> Room:
    """A cluster in which Kafka has a pod, as far as anybody can see."""
    room.cluster.kubectl("create", "namespace", "kafka", check=False)
    room.cluster.kubectl("-n", "kafka", "apply", "-f", "-", given=POD)
    return room


def deploy(room: Room, *arguments: str, **environment: str) -> tuple[int, dict[str, Any], str]:
    done = room.run(DEPLOY, "--json", *arguments, **environment)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def doctor(room: Room) -> tuple[int, list[dict[str, str]]]:
    done = room.run(sys.executable, "-m", "oraculo", "doctor", "--kubernetes", "--namespace", room.name, "--json")
    return done.returncode, json.loads(done.stdout)["checks"]


def validate(room: Room) -> tuple[int, dict[str, Any]]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{room.cluster.environment['PATH']}"
    done = room.run(VALIDATE, "--json", PATH=path)
    return done.returncode, json.loads(done.stdout)


def failed(report: dict[str, Any]) -> list[str]:
    return [f"{one['name']}: {one['detail']}" for one in report["checks"] if one["status"] == "fail"]


def test_deploy_then_validate_end_0_and_with_a_broken_image_1(with_kafka: Room) -> None:
    room = with_kafka
    secret = {"POSTGRES_USER": "ana", "POSTGRES_PASSWORD": "segredo-plantado"}
    code, report, said = deploy(room, "--yes", "--image", f"{IMAGE}:1.0.0", **secret)
    assert (code, failed(report)) == (0, []), said
    assert report["ok"] is True
    assert "segredo-plantado" not in said
    assert set(room.get("secret", "orchestrator-secrets")["data"]) == {"api-key", "postgres-password", "postgres-user"}
    pod = room.get("deployment", RELEASE)["spec"]["template"]["spec"]["containers"][0]
    assert pod["image"] == f"{IMAGE}:1.0.0"
    code, report = validate(room)
    assert (code, failed(report)) == (0, [])
    assert {"deployment", "replicas", "service", "endpoints", "doctor"} <= {
        one["name"] for one in report["checks"] if one["status"] == "pass"
    }
    code, checks = doctor(room)
    assert code == 0, checks
    assert ("secrets", "orchestrator-secrets") in [(one["name"], one["detail"]) for one in checks]

    code, report, said = deploy(room, "--yes", "--image", f"{IMAGE}:broken", "--timeout", "15s")
    assert code == 1
    assert failed(report)[0].startswith("helm: ")


def test_what_cannot_start_fails_validate_and_doctor_says_why(room: Room) -> None:
    room.secret("orchestrator-secrets", {"api-key": "k"})
    options = ("--set", "topics.manage=none", "--set", "secrets.existingSecret=orchestrator-secrets")
    keys = ("--set", "secrets.keys.apiKey=api-key")
    done = room.helm("install", RELEASE, ".", *options, *keys, "--set", "image.tag=broken")
    assert done.returncode == 0, done.stderr
    room.cluster.kubectl("-n", room.name, "delete", "secret", "orchestrator-secrets")
    room.cluster.kubectl(
        *("-n", room.name, "wait", "pods", "--all", "--timeout=60s"),
        "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff",
    )
    code, checks = doctor(room)
    assert code == 1
    wrong = {one["name"]: one for one in checks if one["level"] == "broken"}
    assert "ImagePullBackOff" in wrong["pod"]["detail"]
    assert "imagePullSecrets" in wrong["pod"]["fix"]
    assert wrong["secret"]["detail"] == "orchestrator-secrets: named by pods, and there is none"
    assert wrong["deployment"]["detail"].startswith(f"{RELEASE}: 0 of ")
    code, report = validate(room)
    assert code == 1
    assert any(one.startswith("replicas: 0 of ") for one in failed(report))
    assert any(one.startswith("pod: ") and one.endswith("ImagePullBackOff") for one in failed(report))


def test_a_release_that_is_not_there(room: Room) -> None:
    code, checks = doctor(room)
    assert code == 1
    assert checks[-1]["detail"] == f"there is no {RELEASE} in the namespace {room.name}"
    code, report = validate(room)
    assert code == 1
    assert f"deployment: there is no {RELEASE} in the namespace {room.name}" in failed(report)


def test_deploy_asks_nothing_without_a_terminal(with_kafka: Room) -> None:
    code, report, _ = deploy(with_kafka, "--skip-build")
    assert (code, failed(report)) == (
        1,
        ["temporal: no service temporal-frontend in the namespace temporal; --yes goes on without it"],
    )
    code, report, _ = deploy(with_kafka, "--skip-build", "--yes")
    assert code == 1
    assert failed(report)[0].startswith("secret: POSTGRES_PASSWORD is not set, and there is no terminal to ask on")
    code, report, _ = deploy(with_kafka, "--skip-build", "--yes", "--existing-secret", "mine")
    assert failed(report) == [f"secret: there is no Secret mine in the namespace {with_kafka.name} (--existing-secret)"]


def test_a_dry_run_changes_nothing(with_kafka: Room) -> None:
    code, report, said = deploy(with_kafka, "--dry-run", "--yes", "--builder", "buildah", POSTGRES_PASSWORD="segredo")
    if code:  # where there is no buildah
        code, report, said = deploy(with_kafka, "--dry-run", "--yes", "--skip-build", POSTGRES_PASSWORD="segredo")
    assert (code, failed(report)) == (0, []), said
    assert "would run: helm upgrade --install" in said
    assert "segredo" not in said
    assert not with_kafka.exists("deployment", RELEASE)
    assert not with_kafka.exists("secret", "orchestrator-secrets")


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("localhost:5000/oraculo", "localhost:5000/oraculo:9.9.9"),
        ("localhost:5000/team/oraculo:1.2.3", "localhost:5000/team/oraculo:1.2.3"),
        (f"{IMAGE}:1.2.3@sha256:{'0' * 64}", f"{IMAGE}@sha256:{'0' * 64}"),
    ],
)
def test_an_image_is_named_with_port_tag_and_digest(room: Room, given: str, used: str) -> None:
    demo = ("--values", str(CHART / "values-demo.yaml"))
    code, report, said = deploy(room, "--dry-run", "--image", given, *demo, VERSION="9.9.9")
    assert (code, failed(report)) == (0, []), said
    (line,) = [one for one in said.splitlines() if one.startswith("would run: helm upgrade")]
    options = dict(part.split("=", 1) for part in line.split() if part.startswith("image."))
    shown = options["image.repository"]
    shown += f"@{options['image.digest']}" if "image.digest" in options else f":{options['image.tag']}"
    assert shown == used


@pytest.mark.usefixtures("volume")
def test_the_demo_needs_no_server_and_no_secret(room: Room) -> None:
    code, report, said = deploy(room, "--image", f"{IMAGE}:1.0.0", "--values", str(CHART / "values-demo.yaml"))
    assert (code, failed(report)) == (0, []), said
    assert room.exists("persistentvolumeclaim", f"{RELEASE}-data")


def test_a_mistyped_value_stops_deploy_with_its_name(room: Room, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("config: {sla: {defaultTimeoutMz: 1}}\n")
    code, report, _ = deploy(room, "--skip-build", "--values", str(values))
    assert code == 1
    assert "additional properties 'defaultTimeoutMz' not allowed" in failed(report)[0]
