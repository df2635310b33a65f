"""A Kubernetes for the tests of this folder: a real API server with a fake node. `make test-kubernetes` runs them.

One cluster serves all; each test has a namespace of its own.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator

import pytest
from tools.servers import kubernetes, kubernetes_schemas
from tools.servers.reaper import record

import servers
from kubernetes_room import Room

DEFINITIONS = ("scaledobjects", "servicemonitors", "podmonitors", "prometheusrules")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kubernetes.Cluster]:
    if "ORACULO_TEST_KUBERNETES" not in os.environ:
        pytest.skip("a target of its own: make test-kubernetes")
    reason = kubernetes.missing()
    if reason:
        pytest.fail(f"not built: {reason}", pytrace=False)
    with kubernetes.Cluster(tmp_path_factory.mktemp("kubernetes")) as started:
        for process in started.processes:
            record(servers.run_folder(), process)
        for path in kubernetes_schemas.custom_definitions():
            if path.stem.rpartition("_")[2] in DEFINITIONS:
                started.kubectl("apply", "--server-side", "--filename", str(path))
        yield started


@pytest.fixture
def room(cluster: kubernetes.Cluster) -> Iterator[Room]:
    """A namespace in which only restricted pods are admitted."""
    name = f"t-{secrets.token_hex(4)}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    yield Room(cluster, name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def volume(cluster: kubernetes.Cluster) -> Iterator[None]:
    """A volume for the next claim: nothing makes one here."""
    name = f"volume-{secrets.token_hex(4)}"
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": "/data"},
    }
    document = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
    cluster.kubectl("apply", "-f", "-", given=json.dumps(document))
    yield
    cluster.kubectl("delete", "persistentvolume", name, "--wait=false")
