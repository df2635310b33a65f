"""Prometheus and promtool from the distribution's package: one process, one folder, one port."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.servers.server import Server

PROGRAMS = ("prometheus", "promtool")


class Prometheus(Server):
    """`targets` are scraped (host:port), `rules` are files of rules; set both before `start`."""

    name = "prometheus"

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        *,
        targets: Sequence[str] = (),
        rules: Sequence[Path] = (),
        interval: str = "500ms",
    ) -> None:
        super().__init__(folder, port)
        self.targets = list(targets)
        self.rules = list(rules)
        self.interval = interval

    @classmethod
    def missing(cls) -> str | None:
        absent = [name for name in PROGRAMS if not shutil.which(name)]
        return f"{', '.join(absent)} (Debian: apt-get install prometheus)" if absent else None

    @classmethod
    def version(cls) -> str:
        """`prometheus, version 2.42.0+ds (…)` → `2.42.0+ds`."""
        done = subprocess.run(["prometheus", "--version"], check=True, capture_output=True, text=True)
        return (done.stdout or done.stderr).split()[2]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        file = self.folder / "prometheus.yml"
        config = {
            "global": {"scrape_interval": self.interval, "evaluation_interval": self.interval},
            "rule_files": [str(path) for path in self.rules],
            "scrape_configs": [{"job_name": "oraculo", "static_configs": [{"targets": self.targets}]}],
        }
        file.write_text(json.dumps(config))  # JSON is YAML
        return [
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--log.level=warn",
        ]

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=0.5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant query: `metric` and `value` of each."""
        found = self._get("/api/v1/query", query=expression)["result"]
        assert isinstance(found, list)
        return found

    def alerts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("/api/v1/alerts")["alerts"]
        return found

    def scrapes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("/api/v1/targets")["activeTargets"]
        return found

    def _get(self, path: str, **parameters: str) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(parameters)}", timeout=10) as answer:
                document = json.load(answer)
        except urllib.error.HTTPError as error:
            raise ValueError(f"{parameters}: {error.read().decode(errors='replace')}") from None
        data: dict[str, Any] = document["data"]
        return data
