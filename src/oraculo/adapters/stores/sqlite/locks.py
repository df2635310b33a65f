"""The files of a database, for its owner only, and its lock: one engine at a time. `flock` is POSIX only."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from oraculo.errors import StoreUnavailableError

PRIVATE_MODE = 0o600  # payloads are kept in clear: no other user of the machine reads them


def make_private(path: str) -> None:
    """Make the file of a database, and its folder, unless they are there. SQLite gives what it puts beside it the same
    mode. A file that is there keeps the mode that its owner gave it."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_MODE))


def lock(path: str) -> int:
    """Lock a file and return its descriptor; the lock ends when that is closed, or when the process dies, however it
    dies. StoreUnavailableError when another process holds it."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_MODE)
    except OSError as error:
        raise StoreUnavailableError(f"cannot open {path!r}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise StoreUnavailableError(
            f"another Oráculo is running on {path.removesuffix('.lock')!r}:"
            " stop it, or give this one another ORACULO_STORE"
        ) from None
    return descriptor
