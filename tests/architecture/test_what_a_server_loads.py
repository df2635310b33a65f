"""What a process that orchestrates loads: neither what draws on terminals nor what asks other servers over HTTP."""

from __future__ import annotations

import subprocess
import sys

SPARED = ("httpx2", "pygments", "rich")
PROGRAM = """
import importlib, sys
from oraculo.cli.lazy import import_logging
import_logging()
importlib.import_module({module!r})
print(*(name for name in {spared!r} if name in sys.modules))
"""


def loaded(module: str) -> list[str]:
    program = PROGRAM.format(module=module, spared=SPARED)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_an_orchestrator_loads_no_terminal_and_no_http_client() -> None:
    assert loaded("oraculo.service") == []


def test_the_question_is_answered_for_what_does_load_them() -> None:
    assert loaded("oraculo.client.client") == ["httpx2"]
