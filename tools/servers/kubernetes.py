"""A Kubernetes of its own for tests: API server, controllers, scheduler and etcd are real; nodes and pods are kwok's.

    python -m tools.servers.kubernetes     builds what is not here yet (twenty minutes once)

Nothing runs in pods: kwok declares a pod ready when it is on a node, and a job complete. Only a pod whose image has the
tag `broken` never starts. What a pod would do is shown elsewhere, by running the image. All programs listen on
127.0.0.1; all that they write is in one folder.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import yaml
from tools.servers import helm
from tools.servers.go_build import GoProgram, NotBuiltError, kept
from tools.servers.helm import MODULES
from tools.servers.server import Server, ServerFailedError, free_port

VERSION = "k8s.io/component-base/version"
STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
BROKEN = """\
phase: Pending
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  restartCount: 0
  state:
    waiting: {reason: ImagePullBackOff, message: {{ printf "Back-off pulling image %s" .image | Quote }}}
{{ end }}
"""
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "kwok-0",
        "annotations": {"kwok.x-k8s.io/node": "fake"},
        "labels": {"kubernetes.io/hostname": "kwok-0", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
    },
    "status": {
        "allocatable": {"cpu": "32", "memory": "256Gi", "pods": "110"},
        "capacity": {"cpu": "32", "memory": "256Gi", "pods": "110"},
    },
}


def programs() -> list[GoProgram]:
    """Everything that a cluster is made of, and kubectl."""
    return [*(_kubernetes(name) for name in _KUBERNETES), etcd(), kwok()]


_KUBERNETES = ("kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def _kubernetes(name: str) -> GoProgram:
    module = "k8s.io/kubernetes"
    made = GoProgram(name, MODULES / "kubernetes", module, f"{module}/cmd/{name}", kept() / "bin" / name)
    major, minor, _ = made.version.split(".")
    flags = f"-X {VERSION}.gitVersion=v{made.version} -X {VERSION}.gitMajor={major} -X {VERSION}.gitMinor={minor}"
    return GoProgram(name, made.folder, module, made.package, made.path, flags)


def kubectl() -> Path:
    return _kubernetes("kubectl").path


def etcd() -> GoProgram:
    module = "go.etcd.io/etcd/server/v3"
    return GoProgram("etcd", MODULES / "etcd", module, module, kept() / "bin" / "etcd")


def kwok() -> GoProgram:
    module = "sigs.k8s.io/kwok"
    return GoProgram("kwok", MODULES / "kwok", module, f"{module}/cmd/kwok", kept() / "bin" / "kwok")


def stages() -> Path:
    """What kwok does with nodes and pods; from the sources of kwok itself."""
    return kept() / "kwok-stages.yaml"


def _stages() -> str:
    """The stages of kwok, and one for images that cannot be had."""
    folder = kwok().module_folder("sigs.k8s.io/kwok") / "kustomize" / "stage"
    documents = [yaml.safe_load((folder / name).read_text()) for name in STAGES]
    label = '.metadata.labels["app.kubernetes.io/version"]'
    for one in documents:
        if one["metadata"]["name"] == "pod-ready":
            chosen = one["spec"]["selector"]["matchExpressions"]
            chosen.append({"key": label, "operator": "NotIn", "values": ["broken"]})
    broken = {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": "pod-broken"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {
                "matchExpressions": [
                    {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
                    {"key": label, "operator": "In", "values": ["broken"]},
                    {"key": ".status.containerStatuses", "operator": "DoesNotExist"},
                ]
            },
            "next": {"statusTemplate": BROKEN},
        },
    }
    return str(yaml.safe_dump_all([*documents, broken], sort_keys=False))


def missing() -> str | None:
    """What is not built; None when a cluster can be started."""
    absent = [one.title for one in programs() if not one.current]
    if not stages().exists():
        absent.append("stages of kwok")
    return f"{', '.join(absent)} (make services-kubernetes)" if absent else helm.Helm.missing()


def build() -> None:
    """Everything that is not here yet, one after the other."""
    helm.build()
    for one in programs():
        one.build()
    stages().write_text(_stages())


class _Program(Server):
    """One process of the cluster; `reached` tells when it works."""

    def __init__(self, folder: Path, name: str, arguments: list[str], reached: list[str]) -> None:
        super().__init__(folder)
        self.name = name
        self._arguments = arguments
        self._reached = reached

    def command(self) -> list[str]:
        return [str(kept() / "bin" / self.name), *self._arguments]

    def answers(self) -> bool:
        return not self._reached or subprocess.run(self._reached, capture_output=True, check=False).returncode == 0


class Cluster:
    """A cluster with one node. A context manager: all processes end with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self._running: list[_Program] = []
        self._token = secrets.token_hex(16)

    @property
    def environment(self) -> dict[str, str]:
        """For kubectl and helm: this cluster, and no file of the user's."""
        own = {
            name: str(self.folder / name.lower()) for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")
        }
        path = f"{kept() / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, **own, "KUBECONFIG": str(self.kubeconfig), "PATH": path}

    @property
    def processes(self) -> list[int]:
        """Of everything that runs."""
        return [one.pid for one in self._running if one.pid is not None]

    def kubectl(self, *arguments: str, given: str | None = None, check: bool = True) -> str:
        """What kubectl says."""
        done = subprocess.run(
            [str(kubectl()), *arguments],
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise ServerFailedError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for one in reversed(self._running):
            one.stop(10)
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)

    def _start(self) -> None:
        pki = self.folder / "pki"
        pki.mkdir(parents=True)
        key, public = pki / "sa.key", pki / "sa.pub"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        subprocess.run(
            ["openssl", "rsa", "-in", str(key), "-pubout", "-out", str(public)], check=True, capture_output=True
        )
        (pki / "tokens.csv").write_text(f'{self._token},admin,admin,"system:masters"\n')
        server = free_port()
        self.kubeconfig.write_text(json.dumps(self._config(server, pki / "apiserver.crt")))
        store = self._etcd()
        ask = [str(kubectl()), "--kubeconfig", str(self.kubeconfig), "--request-timeout=2s"]
        self._run(
            "kube-apiserver",
            [
                f"--etcd-servers={store}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                f"--secure-port={server}",
                f"--cert-dir={pki}",
                f"--service-account-key-file={public}",
                f"--service-account-signing-key-file={key}",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--authorization-mode=RBAC",
                f"--token-auth-file={pki / 'tokens.csv'}",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--endpoint-reconciler-type=none",
                "--enable-priority-and-fairness=false",
            ],
            [*ask, "get", "--raw", "/readyz"],
        )
        common = [f"--kubeconfig={self.kubeconfig}"]
        local = ["--leader-elect=false", "--bind-address=127.0.0.1"]
        self._run(
            "kube-controller-manager",
            [
                *common,
                *local,
                f"--service-account-private-key-file={key}",
                f"--root-ca-file={pki / 'apiserver.crt'}",
                "--horizontal-pod-autoscaler-sync-period=2s",
                f"--secure-port={free_port()}",
                f"--cert-dir={pki / 'controllers'}",
            ],
            [*ask, "get", "serviceaccount", "default"],
        )
        self._run(
            "kube-scheduler", [*common, *local, f"--secure-port={free_port()}", f"--cert-dir={pki / 'scheduler'}"], []
        )
        self.kubectl("apply", "-f", "-", given=json.dumps(NODE))
        port = free_port()
        kwok_arguments = [
            *common,
            f"--config={stages()}",
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=40",
            "--node-ip=127.0.0.1",
            f"--node-port={port}",
            f"--server-address=127.0.0.1:{port}",
            "--cidr=10.1.0.0/16",
        ]
        self._run("kwok", kwok_arguments, [*ask, "wait", "--for=condition=Ready", "node/kwok-0", "--timeout=1s"])

    def _etcd(self) -> str:
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        arguments = {
            "data-dir": str(self.folder / "etcd"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "log-level": "warn",
        }
        health = ["curl", "--silent", "--fail", f"{client}/health"]
        self._run("etcd", ["--unsafe-no-fsync", *(f"--{name}={value}" for name, value in arguments.items())], health)
        return client

    def _run(self, name: str, arguments: list[str], reached: list[str]) -> None:
        program = _Program(self.folder, name, arguments, reached)
        self._running.append(program)
        program.start()

    def _config(self, port: int, certificate: Path) -> dict[str, Any]:
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(certificate)}
        context = {"cluster": "test", "user": "admin"}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self._token}}],
            "contexts": [{"name": "test", "context": context}],
            "current-context": "test",
        }


if __name__ == "__main__":
    try:
        build()
    except NotBuiltError as error:
        sys.exit(str(error))
