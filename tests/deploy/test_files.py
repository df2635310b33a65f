"""Files that deploy Oráculo, each checked by the program that knows its kind."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def tracked(*patterns: str) -> list[str]:
    """Files of this repository, new ones included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:  # an archive without its history
        found = [path.relative_to(ROOT) for pattern in patterns for path in ROOT.glob(f"**/{pattern}")]
        return sorted(str(path) for path in found if path.parts[0] not in (".venv", ".services", "node_modules"))
    return [name for name in done.stdout.split() if (ROOT / name).is_file()]


def check(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dockerfile() -> None:
    check(str(BIN / "hadolint"), "--failure-threshold", "style", "Dockerfile")


def test_shell_scripts() -> None:
    scripts = tracked("*.sh", ".ci/run")
    assert "deploy/compose/init-env.sh" in scripts
    check(str(BIN / "shellcheck"), *scripts)


def test_yaml() -> None:
    check(str(BIN / "yamllint"), "--strict", *tracked("*.yml", "*.yaml"))


class TestBuildContext:
    """What is sent to the builder: an allow-list, so that a new file is left out until it is asked for."""

    def test_everything_is_left_out_first(self) -> None:
        rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
        assert rules[0] == "*"
        allowed = {rule[1:] for rule in rules if rule.startswith("!")}
        assert allowed == {
            "pyproject.toml",
            "requirements.lock",
            "README.md",
            "LICENSE",
            "src",
            "deploy",
            "deploy/image",
        }
        assert rules.index("deploy/*") > rules.index("!deploy"), "of deploy/ nothing but what is named after it"

    def test_the_dockerfile_copies_nothing_else(self) -> None:
        copied = re.findall(r"^COPY (?!--from)(?:--\S+ )*(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.M)
        names = {name for line in copied for name in line.split()}
        assert names
        assert all(name.partition("/")[0] in {"src", "deploy"} or (ROOT / name).is_file() for name in names)
        assert {name for name in names if name.startswith("deploy/")} == {
            f"deploy/image/{name}" for name in ("locked.py", "install.sh", "healthcheck.py")
        }


class TestSystemd:
    @pytest.mark.parametrize("unit", ["oraculo.service", "oraculo-worker@.service"])
    def test_units(self, unit: str, tmp_path: Path) -> None:
        if shutil.which("systemd-analyze") is None:
            pytest.skip("systemd-analyze is not installed")
        text = (ROOT / "deploy/systemd" / unit).read_text().replace("/opt/oraculo/bin/oraculo", "/bin/true")
        (tmp_path / unit).write_text(text)
        done = subprocess.run(
            ["systemd-analyze", "verify", str(tmp_path / unit)], capture_output=True, text=True, check=False
        )
        ours = [line for line in done.stderr.splitlines() if unit.partition(".")[0].rstrip("@") in line]
        assert ours == []

    def test_systemd_waits_longer_than_a_drain_takes(self) -> None:
        from oraculo.cli.serve import STOP_TIMEOUT_S

        found = re.search(r"^TimeoutStopSec=(\d+)$", (ROOT / "deploy/systemd/oraculo.service").read_text(), re.M)
        assert found is not None
        assert int(found[1]) > STOP_TIMEOUT_S


def test_prometheus_of_compose(tmp_path: Path) -> None:
    from servers import use

    use("prometheus")
    shutil.copy(ROOT / "deploy/prometheus/rules.yml", tmp_path / "rules.yml")
    shutil.copy(ROOT / "deploy/compose/prometheus.yml", tmp_path / "prometheus.yml")
    check("promtool", "check", "config", str(tmp_path / "prometheus.yml"))
