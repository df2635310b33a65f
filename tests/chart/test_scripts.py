"""The scripts beside the chart, as far as they need no cluster; tests/kubernetes runs them on one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.chart.values import CHART

from cli.processes import Server

ROOT = CHART.parents[1]
PHASE2 = ROOT / "tests" / "phase2-orchestrator-test.sh"
SCRIPTS = (
    ROOT / "scripts" / "deploy" / "deploy-orchestrator-dynamic.sh",
    ROOT / "scripts" / "validation" / "validate-orchestrator-dynamic.sh",
    PHASE2,
)


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path)
    one.start()
    yield one
    one.kill()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_help_and_unknown_options(script: Path) -> None:
    assert run(script, "--help").stdout.startswith(f"usage: {script.name}")
    done = run(script, "--wat")
    assert (done.returncode, done.stderr) == (2, f"{script.name}: unknown option --wat (--help lists them)\n")


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    if shutil.which("kubectl") is None and not (ROOT / ".services" / "bin" / "kubectl").exists():
        pytest.skip("kubectl is not installed")
    path = f"{ROOT / '.services' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = run(SCRIPTS[1], "--json", KUBECONFIG=str(tmp_path / "none"), PATH=path)
    assert done.returncode == 1
    (check,) = json.loads(done.stdout)["checks"]
    assert check == {
        "status": "fail",
        "name": "cluster",
        "detail": "it does not answer: kubectl get --raw /readyz",
    }


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_integration_test_passes_on_a_running_oraculo(server: Server, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done = run(PHASE2, "--via", "api", "--json", "--artifacts", kept, ORACULO_URL=server.url, ORACULO_API_KEY="")
    assert done.returncode == 0, done.stderr
    assert report(done)["failed"] == 0
    assert {"plan.json", "decision.json", "workflow.json", "tickets.json"} <= {path.name for path in kept.iterdir()}
    assert len(json.loads((kept / "tickets.json").read_text())["tickets"]) == 3


def test_the_integration_test_fails_where_there_is_no_oraculo(tmp_path: Path) -> None:
    done = run(PHASE2, "--dry-run", "--json", "--artifacts", tmp_path)
    assert (done.returncode, report(done)["ok"]) == (0, True)
    nowhere = {"ORACULO_URL": "http://127.0.0.1:9", "ORACULO_API_KEY": ""}
    done = run(PHASE2, "--via", "api", "--json", "--artifacts", tmp_path, **nowhere)
    assert done.returncode == 1
    assert report(done)["checks"][-1]["detail"] == "http://127.0.0.1:9/health does not answer"


def test_what_helm_test_runs(tmp_path: Path) -> None:
    """Also where only answers with their token count; tests/chart/test_commands.py runs it where none is asked for."""
    script = CHART / "files" / "end_to_end.py"
    server = Server(tmp_path, ORACULO_RESULT_TOKENS="require")
    server.start()
    try:
        done = run(sys.executable, script, "20", ORACULO_URL=server.url, ORACULO_API_KEY="")
    finally:
        server.kill()
    assert (done.returncode, done.stdout) == (0, "orchestration: concluida\n")
    done = run(sys.executable, script, "0.2", ORACULO_URL="http://127.0.0.1:9", ORACULO_API_KEY="")
    assert done.returncode == 1
    assert done.stdout.startswith("orchestration: not ended after 0.2 s: ")
