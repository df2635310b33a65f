"""CPython of the other versions that Oráculo supports, for tests of a release: from Maven Central, pinned by hash.

    python -m tools.release.interpreters     fetches what is missing and says where each is

One that is installed on this machine comes first. The others are the builds that JavaCPP
publishes as org.bytedeco:cpython. They go to `.services/python/`; MAVEN_CENTRAL_URL names another repository.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tools.servers.go_build import kept

CENTRAL = "https://repo.maven.apache.org/maven2"
ANSWER_TIMEOUT_S = 60.0
PLATFORM = "linux-x86_64"
PINNED = {  # version of Python → version of the artefact, sha256 of the jar
    "3.12": ("3.12.1-1.5.10", "a135fcf4dc01adebf7ea439252276fc3196db80f7e0dd3da0b61f1ec489b68bd"),
    "3.13": ("3.13.5-1.5.12", "50ad91aa0baa57f0235bb666b87d8bf2a44e215d28c250de1030502906af143b"),
}
VERSIONS = ("3.11", *PINNED)


class NoInterpreterError(Exception):
    """There is no Python of this version here, and none can be fetched."""


def interpreter(version: str) -> Path:
    """A working Python of that version; fetched when it is not here."""
    for candidate in _installed(version):
        if _works(candidate, version):
            return candidate
    if version not in PINNED or (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise NoInterpreterError(f"python{version} is not installed, and there is none to fetch for this machine")
    return _fetched(version)


def _installed(version: str) -> Iterator[Path]:
    """Interpreters that may be of that version: on the PATH, and those of pyenv, whose shims refuse inactive ones."""
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield Path(on_path)
    home = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(home.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)


def _works(python: Path, version: str) -> bool:
    check = f"import sys, ssl, ctypes, zlib, venv; sys.exit('%d.%d' % sys.version_info[:2] != {version!r})"
    return subprocess.run([str(python), "-c", check], capture_output=True, check=False).returncode == 0


def _fetched(version: str) -> Path:
    artefact, sha256 = PINNED[version]
    home = kept() / "python" / artefact
    found = home / "org/bytedeco/cpython" / PLATFORM / "bin" / f"python{version}"
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(home.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            _unpack(_jar(artefact, sha256), home)
            found.chmod(0o755)
    if not _works(found, version):
        raise NoInterpreterError(f"{found} does not run here")
    return found


def _jar(artefact: str, sha256: str) -> bytes:
    base = os.environ.get("MAVEN_CENTRAL_URL", CENTRAL).rstrip("/")
    url = f"{base}/org/bytedeco/cpython/{artefact}/cpython-{artefact}-{PLATFORM}.jar"
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_TIMEOUT_S) as answer:
            content: bytes = answer.read()
    except OSError as error:
        raise NoInterpreterError(f"{url}: {error}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise NoInterpreterError(f"{url} is not the file that was pinned")
    return content


def _unpack(jar: bytes, home: Path) -> None:
    part = home.with_name(f"{home.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    archive = part / "jar"
    archive.write_bytes(jar)
    with zipfile.ZipFile(archive) as content:
        content.extractall(part)
    archive.unlink()
    root = part / "org/bytedeco/cpython" / PLATFORM
    for library in root.glob("libffi.so.*"):  # extension modules look for it beside themselves
        for modules in root.glob("lib/python3.*/lib-dynload"):
            shutil.copy(library, modules / library.name)
    part.rename(home)


if __name__ == "__main__":
    for wanted in VERSIONS:
        try:
            sys.stdout.write(f"{wanted}  {interpreter(wanted)}\n")
        except NoInterpreterError as error:
            sys.stdout.write(f"{wanted}  missing: {error}\n")
