"""`oraculo doctor --kubernetes`: what it makes of pods and jobs. tests/kubernetes asks a real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.processes import Cli
from oraculo.cli import findings_kubernetes as found

READY = {"type": "Ready", "status": "True"}


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "status": {"phase": "Running", **status}}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"name": "oraculo", "restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}}}


def lines(one: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(finding.level, finding.detail, finding.fix) for finding in found.of_pod(one, "n")]


def test_a_pod_that_works_is_not_mentioned() -> None:
    assert lines(pod(conditions=[READY])) == []
    assert lines(pod(phase="Succeeded")) == []


def test_a_pod_that_is_on_no_node() -> None:
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes have room"}
    assert lines(pod(phase="Pending", conditions=[why])) == [
        ("broken", "p: not on a node: 0/3 nodes have room", "kubectl -n n describe pod p")
    ]


@pytest.mark.parametrize(
    ("reason", "fix"),
    [
        ("ImagePullBackOff", "see that the image and its tag exist, and that imagePullSecrets may pull it"),
        ("CreateContainerConfigError", "make the Secret or ConfigMap with the key that it names"),
        ("CrashLoopBackOff", "kubectl -n n logs p -c oraculo --previous"),
    ],
)
def test_a_container_that_cannot_start(reason: str, fix: str) -> None:
    one = pod(phase="Pending", initContainerStatuses=[waiting(reason, 'secret "x" not found')])
    assert lines(one) == [("broken", f'p: oraculo: {reason}: secret "x" not found', fix)]


def test_a_pod_whose_readiness_probe_fails_and_that_restarts() -> None:
    state = {"name": "oraculo", "restartCount": 4, "state": {"running": {}}}
    one = pod(conditions=[{"type": "Ready", "status": "False"}], containerStatuses=[state])
    assert [(level, detail) for level, detail, _ in lines(one)] == [
        ("broken", "p: Running, its readiness probe does not succeed"),
        ("warning", "p: 4"),
    ]


def test_a_job_that_failed_and_one_that_did_not() -> None:
    failed = {"type": "Failed", "status": "True", "message": "Job has reached the specified backoff limit"}
    (one,) = found.of_job({"metadata": {"name": "migrate"}, "status": {"conditions": [failed]}}, "n")
    assert (one.detail, one.fix) == (
        "migrate: Job has reached the specified backoff limit",
        "kubectl -n n logs job/migrate",
    )
    assert list(found.of_job({"metadata": {"name": "migrate"}, "status": {}}, "n")) == []


def test_a_liveness_probe_that_depends_on_the_store_is_a_warning() -> None:
    probe = {"httpGet": {"path": "/ready"}}
    container = {"name": "oraculo", "command": ["oraculo", "up"], "livenessProbe": probe, "readinessProbe": probe}
    spec = {"template": {"spec": {"containers": [container]}}}
    (one,) = found.probes([{"metadata": {"name": "d"}, "spec": spec}])
    assert (one.level, one.name) == ("warning", "probes")
    assert "/ready" in one.detail


def test_two_versions_side_by_side_are_a_warning() -> None:
    def labelled(version: str) -> dict[str, Any]:
        return {"metadata": {"name": version, "labels": {"app.kubernetes.io/version": version}}}

    (one,) = found.images([labelled("1"), labelled("2")])
    assert (one.level, one.detail) == ("warning", "1, 2 run side by side")
    (one,) = found.images([labelled("1"), labelled("1")])
    assert one.level == "ok"


def test_without_kubectl_it_says_so(alone: Cli, tmp_path: Path) -> None:
    checks = alone.json("doctor", "--kubernetes", code=1, PATH=str(tmp_path))["checks"]
    assert [(one["name"], one["detail"]) for one in checks] == [("cluster", "kubectl is not installed")]
