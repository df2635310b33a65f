"""Asks a cluster through kubectl, with the user's own configuration: there is no second way to log in."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

from oraculo.errors import OraculoError
from oraculo.wire import strict_json

KUBECTL_TIMEOUT_S = 20.0


class KubectlError(OraculoError):
    """kubectl is not there, or the cluster refused; the text is its last line."""


class Kubectl:
    """kubectl in one namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def get(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        """All objects of a kind, or those that a label selector matches."""
        chosen = ["--selector", selector] if selector else []
        found: list[dict[str, Any]] = self._json("get", kind, *chosen, "--output", "json")["items"]
        return found

    def versions(self) -> dict[str, Any]:
        """Of kubectl and of the API server."""
        return self._json("version", "--output", "json")

    def through_service(self, service: str, port: int, path: str) -> dict[str, Any]:
        """What a pod behind a Service answers, by way of the API server."""
        where = f"/api/v1/namespaces/{self.namespace}/services/http:{service}:{port}/proxy{path}"
        return self._json("get", "--raw", where)

    def _json(self, *arguments: str) -> dict[str, Any]:
        kubectl = shutil.which("kubectl")
        if kubectl is None:
            raise KubectlError("kubectl is not installed")
        command = [kubectl, "--namespace", self.namespace, "--request-timeout=10s", *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=KUBECTL_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise KubectlError(f"kubectl {arguments[0]}: no answer within {KUBECTL_TIMEOUT_S:.0f} s") from None
        if done.returncode:
            last = next(iter(reversed(done.stderr.strip().splitlines())), f"exit status {done.returncode}")
            raise KubectlError(last.removeprefix("Error from server "))
        try:
            found = strict_json.loads(done.stdout.encode())
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise KubectlError(f"kubectl {arguments[0]}: the answer is not a JSON object")
        return found
