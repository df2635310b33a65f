"""Where buildah and podman keep images and containers of tests: under `.services/`, never in the system's own store."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND_TIMEOUT_S = 1800.0


class ImageError(Exception):
    """A command of buildah, podman or mmdebstrap failed; the text is what it said last."""


def kept() -> Path:
    """The folder of everything that is built or fetched for tests; ORACULO_SERVICES names another one."""
    return Path(os.environ.get("ORACULO_SERVICES") or ROOT / ".services").resolve()


def environment() -> dict[str, str]:
    """Variables with which buildah and podman use our storage."""
    folder = kept() / "containers"
    folder.mkdir(parents=True, exist_ok=True)
    conf = folder / "storage.conf"
    wanted = f'[storage]\ndriver = "overlay"\ngraphroot = "{folder / "graph"}"\nrunroot = "{folder / "run"}"\n'
    if not conf.exists() or conf.read_text() != wanted:
        conf.write_text(wanted)
    working = folder / "tmp"
    working.mkdir(exist_ok=True)
    return {**os.environ, "CONTAINERS_STORAGE_CONF": str(conf), "TMPDIR": str(working), "BUILDAH_ISOLATION": "chroot"}


def run(
    command: Sequence[str], *, cwd: Path = ROOT, timeout: float = COMMAND_TIMEOUT_S, ok: Sequence[int] = (0,)
) -> str:
    """The standard output of a command that ended with one of these exit statuses."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ImageError(f"{' '.join(command[:3])} took more than {timeout:.0f} s") from None
    if done.returncode not in ok:
        raise ImageError(f"{' '.join(command[:3])}: {done.stderr[-4000:] or done.stdout[-4000:]}")
    return done.stdout
