"""Containers of tests: podman with runc, read-only, without capabilities, on the network of this machine."""

from __future__ import annotations

import secrets
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tools.image.storage import environment, run

PODMAN = ("podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs")
HARD = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "all", "--security-opt", "no-new-privileges")
LIMITS = (
    "--ulimit",
    "nofile=4096:4096",
    "--ulimit",
    "nproc=4096:4096",
)  # podman's defaults need more rights than root's


class Container:
    """One container of an image, started when it is entered and removed when it is left."""

    def __init__(
        self,
        image: str,
        *command: str,
        env: Mapping[str, str] | None = None,
        data: Path | None = None,
        entrypoint: str | None = None,
    ) -> None:
        self.name = f"oraculo-{secrets.token_hex(6)}"
        self._arguments = ["--name", self.name, "--network", "host", "--no-healthcheck", *HARD, *LIMITS]
        for key, value in (env or {}).items():
            self._arguments += ["--env", f"{key}={value}"]
        if data is not None:
            self._arguments += ["--volume", f"{data}:/data"]
        if entrypoint is not None:
            self._arguments += ["--entrypoint", entrypoint]
        self._arguments += [image, *command]

    def __enter__(self) -> Self:
        run([*PODMAN, "run", "--detach", *self._arguments])
        return self

    def __exit__(self, *_: object) -> None:
        run([*PODMAN, "rm", "--force", "--time", "0", "--volumes", self.name])

    def once(self) -> subprocess.CompletedProcess[str]:
        """Run it to its end instead: exit status, standard output and standard error of what is inside."""
        return self._call("run", "--rm", *self._arguments)

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command inside the running container."""
        return self._call("exec", self.name, *command)

    def logs(self) -> str:
        done = self._call("logs", self.name)
        return done.stdout + done.stderr

    def running(self) -> bool:
        return self._state("{{.State.Running}}") == "true"

    def stop(self, within: int) -> float:
        """Seconds that it took to end after its stop signal; it is killed after `within`."""
        began = time.monotonic()
        self._call("stop", "--time", str(within), self.name)
        return time.monotonic() - began

    def exit_code(self) -> int:
        return int(self._state("{{.State.ExitCode}}"))

    def _state(self, template: str) -> str:
        return run([*PODMAN, "inspect", "--format", template, self.name]).strip()

    @staticmethod
    def _call(verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command: Sequence[str] = [*PODMAN, verb, *arguments]
        return subprocess.run(
            command,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
