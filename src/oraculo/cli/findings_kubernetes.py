"""What `doctor --kubernetes` finds about a release of the chart: pods, probes, missing Secrets, jobs, versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oraculo import __version__
from oraculo.cli.findings import Finding, broken, fine, warning
from oraculo.cli.kubectl import Kubectl, KubectlError

OLDEST_MINOR = 27
RESTARTS_MAX = 3
_IMAGE = "see that the image and its tag exist, and that imagePullSecrets may pull it"
_CONFIG = "make the Secret or ConfigMap with the key that it names"
_FIXES = {
    "ErrImagePull": _IMAGE,
    "ImagePullBackOff": _IMAGE,
    "InvalidImageName": _IMAGE,
    "CreateContainerConfigError": _CONFIG,
}
Document = Mapping[str, Any]


def examine(kubectl: Kubectl, release: str) -> Iterator[Finding]:
    """One finding for each thing that was looked at; the first that makes all others pointless is the last."""
    selector = f"app.kubernetes.io/instance={release}"
    try:
        yield _versions(kubectl.versions())
        deployments = kubectl.get("deployments", selector)
        if not deployments:
            yield broken(
                "release",
                f"there is no {release} in the namespace {kubectl.namespace}",
                "helm list --all-namespaces; then --namespace and --release",
            )
            return
        for deployment in deployments:
            yield replicas(deployment, kubectl.namespace)
        pods = kubectl.get("pods", selector)
        for pod in pods:
            yield from of_pod(pod, kubectl.namespace)
        yield from references(deployments, kubectl)
        yield from probes(deployments)
        for job in kubectl.get("jobs", selector):
            yield from of_job(job, kubectl.namespace)
        yield from images(pods)
        for service in kubectl.get("services", selector):
            if service["metadata"]["labels"].get("app.kubernetes.io/component") == "api":
                yield readiness(kubectl, service)
    except KubectlError as error:
        yield broken(
            "cluster", str(error), "install kubectl, and see that `kubectl get pods` works with this configuration"
        )


def _versions(found: Document) -> Finding:
    server = found.get("serverVersion")
    if not server:
        raise KubectlError("the cluster does not answer")
    minor = int("".join(digit for digit in str(server["minor"]) if digit.isdigit()) or 0)
    if minor < OLDEST_MINOR:
        return broken("cluster", str(server["gitVersion"]), f"the chart needs Kubernetes 1.{OLDEST_MINOR} or newer")
    return fine("cluster", f"Kubernetes {server['gitVersion']}")


def replicas(deployment: Document, namespace: str) -> Finding:
    """Whether as many pods are ready as are wanted."""
    name, wanted = deployment["metadata"]["name"], deployment["spec"].get("replicas", 1)
    ready = deployment.get("status", {}).get("readyReplicas", 0)
    if ready < wanted:
        return broken(
            "deployment",
            f"{name}: {ready} of {wanted} pods ready",
            f"kubectl -n {namespace} describe deployment {name}",
        )
    return fine("deployment", f"{name}: {ready} of {wanted} pods ready")


def of_pod(pod: Document, namespace: str) -> Iterator[Finding]:
    """Why a pod is not ready, and whether it restarts; nothing when it is fine, or has done its work."""
    name, status = pod["metadata"]["name"], pod.get("status", {})
    if status.get("phase") == "Succeeded" or _is_job(pod):
        return
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            text = f"{name}: not on a node: {condition.get('message', condition.get('reason'))}"
            yield broken("pod", text, f"kubectl -n {namespace} describe pod {name}")
            return
    states = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    for state in states:
        waiting = state.get("state", {}).get("waiting", {})
        reason = waiting.get("reason", "")
        if reason and reason not in ("PodInitializing", "ContainerCreating"):
            fix = _FIXES.get(reason, f"kubectl -n {namespace} logs {name} -c {state['name']} --previous")
            yield broken("pod", f"{name}: {state['name']}: {reason}: {waiting.get('message', '')}".rstrip(": "), fix)
            return
    if not any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", ())):
        fix = f"kubectl -n {namespace} logs {name}; /ready says what is missing"
        yield broken("pod", f"{name}: {status.get('phase', 'unknown')}, its readiness probe does not succeed", fix)
    restarts = sum(state.get("restartCount", 0) for state in states)
    if restarts >= RESTARTS_MAX:
        fix = f"kubectl -n {namespace} logs {name} --previous"
        yield warning("restarts", f"{name}: {restarts}", fix)


def _is_job(pod: Document) -> bool:
    return any(owner["kind"] == "Job" for owner in pod["metadata"].get("ownerReferences", ()))


def references(deployments: list[dict[str, Any]], kubectl: Kubectl) -> Iterator[Finding]:
    """Secrets and ConfigMaps, and their keys, that pods name and the namespace does not have."""
    wanted = sorted({one for deployment in deployments for one in _wanted(deployment["spec"]["template"]["spec"])})
    try:
        there = {"Secret": _keys(kubectl, "secrets"), "ConfigMap": _keys(kubectl, "configmaps")}
    except KubectlError as error:
        yield warning("secrets", f"they could not be looked at: {error}", "ask with an account that may list secrets")
        return
    complete = True
    for kind, name, key in wanted:
        if name not in there[kind]:
            complete = False
            fix = (
                f"kubectl -n {kubectl.namespace} create {kind.lower()} {'generic ' if kind == 'Secret' else ''}{name} …"
            )
            yield broken(kind.lower(), f"{name}: named by pods, and there is none", fix)
        elif key and key not in there[kind][name]:
            complete = False
            yield broken(
                kind.lower(), f"{name}: has no key {key}", f"add the key {key}, or name another in secrets.keys"
            )
    if complete:
        names = sorted({name for kind, name, _ in wanted if kind == "Secret"})
        yield fine("secrets", ", ".join(names) or "none is needed")


def _keys(kubectl: Kubectl, plural: str) -> dict[str, set[str]]:
    """The keys of every object of a kind, by its name."""
    return {one["metadata"]["name"]: {*one.get("data", {}), *one.get("binaryData", {})} for one in kubectl.get(plural)}


def _wanted(spec: Document) -> Iterator[tuple[str, str, str]]:
    """Kind, name and key of what a pod cannot start without."""
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        for variable in container.get("env", ()):
            source = variable.get("valueFrom", {})
            for field, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
                if field in source and not source[field].get("optional"):
                    yield kind, source[field]["name"], source[field]["key"]
        for source in container.get("envFrom", ()):
            for field, kind in (("secretRef", "Secret"), ("configMapRef", "ConfigMap")):
                if field in source and not source[field].get("optional"):
                    yield kind, source[field]["name"], ""
    for volume in spec.get("volumes", ()):
        if "secret" in volume and not volume["secret"].get("optional"):
            yield "Secret", volume["secret"]["secretName"], ""
        if "configMap" in volume and not volume["configMap"].get("optional"):
            yield "ConfigMap", volume["configMap"]["name"], ""
    for secret in spec.get("imagePullSecrets", ()):
        yield "Secret", secret["name"], ""


def probes(deployments: list[dict[str, Any]]) -> Iterator[Finding]:
    """Whether containers of `oraculo` are probed, and whether life depends on more than the process."""
    for deployment in deployments:
        name = deployment["metadata"]["name"]
        for container in deployment["spec"]["template"]["spec"]["containers"]:
            if container.get("command", [""])[:1] != ["oraculo"]:
                continue
            absent = [probe for probe in ("livenessProbe", "readinessProbe") if probe not in container]
            if absent:
                yield warning("probes", f"{name}: no {' and no '.join(absent)}", "take the chart's own probes")
            elif container["livenessProbe"].get("httpGet", {}).get("path") == "/ready":
                text = f"{name}: the liveness probe asks /ready, which depends on the store"
                yield warning("probes", text, "let it ask /health: else an outage of the store restarts every pod")
            else:
                yield fine("probes", name)


def of_job(job: Document, namespace: str) -> Iterator[Finding]:
    """A job that failed; nothing about others."""
    for condition in job.get("status", {}).get("conditions", ()):
        if condition["type"] == "Failed" and condition["status"] == "True":
            name = job["metadata"]["name"]
            text = f"{name}: {condition.get('message', condition.get('reason', 'failed'))}"
            yield broken("job", text, f"kubectl -n {namespace} logs job/{name}")


def images(pods: list[dict[str, Any]]) -> Iterator[Finding]:
    """The versions that run: one, unless an upgrade is under way."""
    labels = [pod["metadata"].get("labels", {}) for pod in pods if not _is_job(pod)]
    running = sorted({str(one["app.kubernetes.io/version"]) for one in labels if "app.kubernetes.io/version" in one})
    if len(running) > 1:
        yield warning("versions", f"{', '.join(running)} run side by side", "wait for the rollout, or: helm rollback")
    elif running:
        yield fine("versions", f"{running[0]} runs; this is oraculo {__version__}")


def readiness(kubectl: Kubectl, service: Document) -> Finding:
    """What `/ready` of a pod says, asked through the API server."""
    name = service["metadata"]["name"]
    port = next(one["port"] for one in service["spec"]["ports"] if one["name"] == "http")
    try:
        document = kubectl.through_service(name, port, "/ready")
    except KubectlError as error:
        fix = f"kubectl -n {kubectl.namespace} port-forward service/{name} 8000:{port}; oraculo doctor --url http://127.0.0.1:8000"
        return warning("ready", f"{name} could not be asked: {error}", fix)
    state = document.get("status", "unknown")
    failing = [key for key, check in document.get("checks", {}).items() if not check.get("ok")]
    if state == "ok":
        return fine("ready", name)
    text = f"{name}: {state}; failing: {', '.join(failing) or 'nothing'}"
    return warning("ready", text, f"kubectl -n {kubectl.namespace} exec deployment/{name} -- oraculo doctor")
