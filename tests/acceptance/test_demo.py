"""The demo, as `make run` calls it: without a terminal it does the job and ends."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from acceptance.journals import check


def test_demo_writes_the_report_and_ends(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "oraculo", "demo", "--port", "0", "--dir", str(tmp_path / "demo"), "--json"],
        cwd=tmp_path,
        env={**os.environ, "ORACULO_API_KEY": ""},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["status"] == "concluida"
    pdf, html = (Path(name) for name in outcome["arquivos"])
    assert pdf.read_bytes().startswith(b"%PDF")
    page = html.read_text(encoding="utf-8")
    assert "RabbitMQ em 20 minutos" in page
    assert "<svg" in page
    assert check(tmp_path / "demo" / "oraculo.db")["concluida"] == 1


def test_demo_takes_a_free_port_when_the_usual_one_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "oraculo", "demo", "--dir", str(tmp_path / "demo"), "--json"],
            cwd=tmp_path,
            env={**os.environ, "ORACULO_API_KEY": "", "ORACULO_PORT": str(taken)},
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["status"] == "concluida"
    assert outcome["url"] != f"http://127.0.0.1:{taken}"


def test_demo_says_why_the_port_asked_for_cannot_be_used(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "oraculo", "demo", "--dir", str(tmp_path / "demo"), "--port", str(taken)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == 1
    assert f"port {taken} of 127.0.0.1 is in use" in done.stderr
