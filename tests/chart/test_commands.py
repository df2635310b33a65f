"""What the chart's pods would run exists, and the pod of the demo works when it is run here."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tools.chart.values import CHART
from tools.servers.server import free_port

from chart import rendering
from chart.rendering import API_KEY, EVERYTHING, RELEASE, kind, merged

ORACULO = str(Path(sys.executable).with_name("oraculo"))


def containers(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        container
        for _, spec in rendering.pod_specs(found)
        for container in (*spec.get("initContainers", ()), *spec["containers"])
        if container["name"] != "opa"
    ]


def test_every_command_of_a_pod_exists() -> None:
    """With --help each says what it would do: an unknown command or option does not."""
    args = ["--worker", "oraculo.collectors.all:worker", "--port", "8001"]
    topics = {"manage": "job", "args": ["--partitions", "3"]}
    found = containers(rendering.objects(merged(EVERYTHING, {"components": {"api": {"args": args}}, "topics": topics})))
    commands = {tuple(container["command"]) for container in found}
    programs = {command[0] for command in commands}
    assert programs == {"oraculo", "celery", "python"}
    for command in commands:
        if command[0] == "oraculo":
            done = subprocess.run([ORACULO, *command[1:], "--help"], capture_output=True, text=True, check=False)
            assert done.returncode == 0, (command, done.stderr)
        elif command[0] == "celery":
            assert command[1] == "-A"
            assert importlib.util.find_spec(command[2]) is not None, command


def test_the_target_of_the_shipped_class_of_workers_is_there() -> None:
    found = kind(rendering.objects(EVERYTHING), "Deployment", f"{RELEASE}-worker-relatorio")
    (container,) = found["spec"]["template"]["spec"]["containers"]
    module, _, name = container["command"][2].partition(":")
    assert hasattr(importlib.import_module(module), name)


@pytest.fixture
def demo(tmp_path: Path) -> dict[str, str]:
    """The environment of the demo's pod, with a folder and ports of its own."""
    found = rendering.of_file("values-demo.yaml", {"secrets": {"apiKey": API_KEY}})
    own = {
        "ORACULO_STORE": f"sqlite:///{tmp_path}/oraculo.db",
        "ORACULO_PORT": str(free_port()),
        "ORACULO_METRICS_PORT": str(free_port()),
        "ORACULO_ARTEFATOS": str(tmp_path),
        "ORACULO_RELATORIOS": str(tmp_path),
    }
    own["ORACULO_URL"] = f"http://127.0.0.1:{own['ORACULO_PORT']}"
    return {**rendering.variables(found), **own}


def test_the_pod_of_the_demo_runs_and_does_what_helm_test_asks(demo: dict[str, str], tmp_path: Path) -> None:
    deployment = kind(rendering.of_file("values-demo.yaml", {"secrets": {"apiKey": API_KEY}}), "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    environment = {"PATH": os.environ["PATH"], **demo}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    (migrate,) = spec["initContainers"]
    done = run(ORACULO, *migrate["command"][1:])
    assert done.returncode == 0, done.stderr
    (container,) = spec["containers"]
    with subprocess.Popen(
        [ORACULO, *container["command"][1:]], env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as up:
        try:
            done = run(sys.executable, str(CHART / "files" / "end_to_end.py"), "60")
            assert (done.returncode, done.stdout) == (0, "orchestration: concluida\n"), done.stderr
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                with urllib.request.urlopen(
                    demo["ORACULO_URL"] + container[probe]["httpGet"]["path"], timeout=10
                ) as said:
                    assert said.status == 200
            metrics = f"http://127.0.0.1:{demo['ORACULO_METRICS_PORT']}/metrics"
            with urllib.request.urlopen(metrics, timeout=10) as said:
                assert b"orchestration_" in said.read()
            done = run(ORACULO, "doctor", "--url", demo["ORACULO_URL"])
            assert done.returncode == 0, done.stdout
        finally:
            up.terminate()
        assert up.wait(40) == 0
