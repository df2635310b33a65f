"""Chromium from the distribution's package: the browser that tests of the dashboard drive. Playwright starts it."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.util import find_spec

from tools.servers.server import Server

PROGRAM = "chromium"


class Chromium(Server):
    name = "chromium"

    @classmethod
    def missing(cls) -> str | None:
        if find_spec("playwright") is None:
            return "playwright (pip install playwright)"
        return None if shutil.which(PROGRAM) else f"{PROGRAM} (Debian: apt-get install chromium)"

    @classmethod
    def version(cls) -> str:
        said = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout
        found = re.search(r"\d+\.\d+", said)
        return found[0] if found else said.strip()

    @classmethod
    def program(cls) -> str:
        found = shutil.which(PROGRAM)
        assert found is not None
        return found
