"""JSON schemas of Kubernetes, KEDA, prometheus-operator and Istio, made from the sources of their Go modules.

kubeconform takes one file for each kind: `deployment-apps-v1.json`. Unknown fields are refused by them, as by the API
server under strict validation.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tools.servers.go_build import NotBuiltError

DOWNLOAD_TIMEOUT_S = 600.0
INT_OR_STRING = {"oneOf": [{"type": "string"}, {"type": "integer"}]}


@dataclass(frozen=True, slots=True)
class Source:
    """A Go module, its hash, and the files in it that hold schemas."""

    module: str
    version: str
    hash: str
    files: str


KUBERNETES = Source(
    "k8s.io/kubernetes", "v1.36.3", "h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o=", "api/openapi-spec/swagger.json"
)
DEFINITIONS = (
    Source(
        "github.com/kedacore/keda/v2",
        "v2.21.0",
        "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=",
        "config/crd/bases/keda.sh_*.yaml",
    ),
    Source(
        "github.com/prometheus-operator/prometheus-operator",
        "v0.85.0",
        "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        "example/prometheus-operator-crd/monitoring.coreos.com_*monitors.yaml",
    ),
    Source(
        "github.com/prometheus-operator/prometheus-operator",
        "v0.85.0",
        "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
    Source(
        "istio.io/api",
        "v1.26.0",
        "h1:hYWzFonwfimFkzp3P4iKJ0bCyenIoYvEIOXrLi74tjg=",
        "kubernetes/customresourcedefinitions.gen.yaml",
    ),
)


class _Loader(yaml.CSafeLoader):
    """YAML as Go reads it: a bare `=` is text."""


_Loader.add_constructor("tag:yaml.org,2002:value", lambda loader, node: loader.construct_scalar(node))


def current(folder: Path) -> bool:
    """Whether the schemas are there, made by this file."""
    key = folder / "key"
    return key.exists() and key.read_text() == _key()


def write(folder: Path) -> None:
    """Make all schemas, unless they are there."""
    if current(folder):
        return
    folder.mkdir(parents=True, exist_ok=True)
    for kind, schema in (*_of_kubernetes(), *_of_definitions()):
        (folder / f"{kind}.json").write_text(json.dumps(schema))
    (folder / "key").write_text(_key())


def custom_definitions() -> list[Path]:
    """Files with the custom resource definitions, for a real API server."""
    return [path for source in DEFINITIONS for path in sorted(_folder(source).glob(source.files))]


def _key() -> str:
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _folder(source: Source) -> Path:
    """Where Go keeps the module; downloaded when it is not there, and refused when its hash is another."""
    go = shutil.which("go")
    if go is None:
        raise NotBuiltError("schemas come from Go modules, and there is no Go")
    done = subprocess.run(
        [go, "mod", "download", "-json", f"{source.module}@{source.version}"],
        cwd=tempfile.gettempdir(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DOWNLOAD_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise NotBuiltError(f"{source.module} cannot be had: {(done.stderr or done.stdout).strip()[-200:]}")
    found = json.loads(done.stdout)
    if found["Sum"] != source.hash:
        raise NotBuiltError(f"{source.module} {source.version} is {found['Sum']}, not {source.hash}")
    return Path(found["Dir"])


def _of_kubernetes() -> Iterator[tuple[str, dict[str, Any]]]:
    document = json.loads((_folder(KUBERNETES) / KUBERNETES.files).read_text(encoding="utf-8"))
    definitions = document["definitions"]
    for definition in definitions.values():
        for one in definition.get("x-kubernetes-group-version-kind", ()):
            if not one["kind"].endswith(("List", "Options")):
                yield _name(one["kind"], one["group"], one["version"]), _closed(definition, definitions, ())


def _of_definitions() -> Iterator[tuple[str, dict[str, Any]]]:
    with ThreadPoolExecutor(2) as pool:
        for documents in pool.map(_documents, custom_definitions()):
            for document in documents:
                spec = document["spec"]
                for version in spec["versions"]:
                    schema = _closed(version["schema"]["openAPIV3Schema"], {}, ())
                    schema["properties"] |= {"metadata": {"type": "object"}}
                    for name in ("apiVersion", "kind"):
                        schema["properties"].setdefault(name, {"type": "string"})
                    yield _name(spec["names"]["kind"], spec["group"], version["name"]), schema


def _documents(path: Path) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        return [one for one in yaml.load_all(file, _Loader) if one]


def _name(kind: str, group: str, version: str) -> str:
    return "-".join(part for part in (kind.lower(), group.partition(".")[0], version) if part)


def _closed(schema: dict[str, Any], definitions: dict[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
    """The schema with every reference written out and no unknown property allowed."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in above or name.endswith("JSONSchemaProps"):
            return {}
        return _closed(definitions[name], definitions, (*above, name))
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return dict(INT_OR_STRING)
    made: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties":
            made[name] = {key: _closed(one, definitions, above) for key, one in value.items()}
        elif name in ("items", "additionalProperties") and isinstance(value, dict):
            made[name] = _closed(value, definitions, above)
        elif name not in ("description", "default", "format", "pattern") and not name.startswith("x-kubernetes"):
            made[name] = value
    if "properties" in made and not schema.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    return made
