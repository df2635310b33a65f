"""A base image made of Debian packages, for places where no image can be pulled.

    python -m tools.image.debian_base     installs what that needs, makes it when it is not here yet, says its name

The root file system is made once with mmdebstrap into `.services/base/`; delete it to get the packages of today.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
from pathlib import Path

from tools.image.storage import ImageError, kept, run
from tools.servers.install import Apt

SUITE = "bookworm"
NAME = f"localhost/oraculo-base:{SUITE}"
PACKAGES = ("python3", "python3-venv", "ca-certificates")
PROGRAMS = {"buildah": "buildah", "podman": "podman", "runc": "runc", "mmdebstrap": "mmdebstrap"}  # program → package
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
# What mmdebstrap copies from this machine has no place in an image.
CLEAN = 'rm -f "$1"/etc/resolv.conf "$1"/etc/hostname; : >"$1"/etc/apt/sources.list'

# What mmdebstrap mounts is seen by nobody else, who could keep it busy, and is gone when it ends.
OWN_MOUNTS = ("unshare", "--mount")


def missing() -> str | None:
    """What is not installed here; None when a base can be made and an image built."""
    if os.geteuid() != 0:
        return "images are built as root"
    absent = sorted(package for program, package in PROGRAMS.items() if shutil.which(program) is None)
    return f"apt-get install {' '.join(absent)}" if absent else None


def install() -> str | None:
    """What is still missing after an attempt to install it."""
    apt = Apt()
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None and (error := apt.install(package)):
            return error
    return missing()


def archive() -> Path:
    return kept() / "base" / f"{SUITE}.tar"


def base() -> str:
    """The name of the base image, which is made when it is not there. One process at a time."""
    folder = archive().parent
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive().exists():
            _bootstrap()
        if not _imported():
            _import(folder)
    return NAME


def _bootstrap() -> None:
    part = archive().with_suffix(".part")
    options = ["--mode=root", "--variant=minbase", "--format=tar", f"--include={','.join(PACKAGES)}"]
    options += [f"--customize-hook={CLEAN}", *(f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT)]
    run([*OWN_MOUNTS, "mmdebstrap", *options, SUITE, str(part)])
    part.rename(archive())


def _key() -> str:
    """Says which archive an image was made of."""
    found = archive().stat()
    return hashlib.sha256(f"{found.st_size}:{found.st_mtime_ns}".encode()).hexdigest()[:16]


def _imported() -> bool:
    try:
        labels = run(["buildah", "inspect", "--type", "image", "--format", "{{.OCIv1.Config.Labels}}", NAME])
    except ImageError:
        return False
    return _key() in labels


def _import(folder: Path) -> None:
    (folder / "Dockerfile").write_text(f"FROM scratch\nADD {archive().name} /\nLABEL oraculo.base={_key()}\n")
    run(["buildah", "bud", "--isolation", "chroot", "--tag", NAME, str(folder)], cwd=folder)


if __name__ == "__main__":
    reason = install()
    try:
        sys.exit(reason) if reason else print(base())  # noqa: T201
    except ImageError as error:
        sys.exit(str(error))
