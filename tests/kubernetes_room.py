"""A namespace of a cluster, as tests in tests/kubernetes use it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.chart.values import CHART
from tools.servers import kubernetes

COMMAND_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Room:
    """One namespace of the cluster."""

    cluster: kubernetes.Cluster
    name: str

    def run(
        self, *command: str | Path, given: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Any command, with kubectl and helm of this cluster first on the PATH, in the folder of the chart."""
        own = {**self.cluster.environment, "NAMESPACE": self.name, **environment}
        return subprocess.run(
            [str(part) for part in command],
            cwd=CHART,
            env={name: value for name, value in own.items() if value},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )

    def helm(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self.run("helm", "--namespace", self.name, *arguments)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.cluster.kubectl("-n", self.name, "get", kind, name, "-o", "json"))
        return found

    def exists(self, kind: str, name: str) -> bool:
        return bool(self.cluster.kubectl("-n", self.name, "get", kind, name, "-o", "name", check=False).strip())

    def await_pods(self, deployment: str, count: int) -> None:
        """Until so many pods are ready; a HorizontalPodAutoscaler raises their number a little after the install."""
        wanted = f"--for=jsonpath={{.status.readyReplicas}}={count}"
        self.cluster.kubectl("-n", self.name, "wait", f"deployment/{deployment}", "--timeout=60s", wanted)

    def secret(self, name: str, entries: dict[str, str]) -> None:
        literals = [f"--from-literal={key}={value}" for key, value in entries.items()]
        self.cluster.kubectl("-n", self.name, "create", "secret", "generic", name, *literals)
