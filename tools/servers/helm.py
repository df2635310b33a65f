"""Helm and kubeconform, and the schemas that rendered objects are checked against: what tests of the chart use.

python -m tools.servers.helm     builds what is not here yet
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tools.servers import kubernetes_schemas
from tools.servers.go_build import SERVERS, GoProgram, NotBuiltError, kept
from tools.servers.server import Server

MODULES = SERVERS / "kubernetes_go"
KUBERNETES = ("1", "36")  # the version that Helm renders for when there is no cluster
_VERSIONS = " ".join(
    f"-X helm.sh/helm/v3/pkg/{package}.k8sVersion{part}={value}"
    for package in ("lint/rules", "chartutil")
    for part, value in zip(("Major", "Minor"), KUBERNETES, strict=True)
)


def helm() -> GoProgram:
    module = "helm.sh/helm/v3"
    made = GoProgram("Helm", MODULES / "helm", module, f"{module}/cmd/helm", kept() / "bin" / "helm", _VERSIONS)
    said = f"-X {module}/internal/version.version=v{made.version}"
    return GoProgram(made.title, made.folder, module, made.package, made.path, f"{said} {_VERSIONS}")


def kubeconform() -> GoProgram:
    module = "github.com/yannh/kubeconform"
    package = f"{module}/cmd/kubeconform"
    return GoProgram("kubeconform", MODULES / "kubeconform", module, package, kept() / "bin" / "kubeconform")


def schemas() -> Path:
    """The folder of JSON schemas, for kubeconform."""
    return kept() / "schemas"


def build() -> None:
    """Everything that is not here yet."""
    helm().build()
    kubeconform().build()
    kubernetes_schemas.write(schemas())


class Helm(Server):
    """Not a server: a program that tests call."""

    name = "helm"

    @classmethod
    def missing(cls) -> str | None:
        """Builds it when it is not here yet; not in the middle of a test, since that takes minutes."""
        there = helm().current and kubeconform().current and kubernetes_schemas.current(schemas())
        if there:
            return None
        if "ORACULO_TEST_RUN" in os.environ:
            return "it is not built yet (make services)"
        try:
            build()
        except NotBuiltError as error:
            return str(error)
        return None

    @classmethod
    def version(cls) -> str:
        return helm().version


if __name__ == "__main__":
    try:
        build()
    except NotBuiltError as error:
        sys.exit(str(error))
