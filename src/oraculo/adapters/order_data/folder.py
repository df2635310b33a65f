"""Collected data in a folder: one file for each content, called by its SHA-256. Its time of change is until when it is
kept, so that nothing else has to be remembered. Several processes may share the folder."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.sealing.files import UNSEALED, SealedWriter, unsealed
from oraculo.ports.order_data import OpenedData, StoredData

LINK_KEY_FILE = "link.key"
LINK_KEY_BYTES = 32
GRACE = timedelta(hours=1)  # after its end, for whoever is reading
_DIGEST = re.compile(r"[0-9a-f]{64}")


class FolderOrderData:
    """The folder is made when it is first needed, for its owner alone."""

    def __init__(self, folder: str, sealing: Sealing = UNSEALED) -> None:
        self._folder = Path(folder)
        self._sealing = sealing

    def put(self, chunks: Iterable[bytes], until: datetime, tenant: str) -> StoredData:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._folder / f".{secrets.token_hex(8)}.tmp"
        digest, size = hashlib.sha256(), 0
        try:
            with open(draft, "xb", opener=_private) as file:
                writer = SealedWriter(file, self._sealing, tenant) if self._sealing.on else None
                for chunk in chunks:
                    digest.update(chunk)
                    size += len(chunk)
                    (file if writer is None else writer).write(chunk)
                if writer is not None:
                    writer.finish()
                _sync(file)
            path = self._folder / digest.hexdigest()
            kept_until = until.timestamp()
            with suppress(FileNotFoundError):
                kept_until = max(kept_until, path.stat().st_mtime)
            os.utime(draft, (kept_until, kept_until))
            draft.replace(path)
            self._sync_names()
        finally:
            draft.unlink(missing_ok=True)
        return StoredData(digest.hexdigest(), size)

    def open(self, digest: str) -> OpenedData | None:
        if _DIGEST.fullmatch(digest) is None:
            return None
        try:
            file = os.fdopen(os.open(self._folder / digest, os.O_RDONLY | os.O_NOFOLLOW), "rb")
        except FileNotFoundError:
            return None
        try:
            return unsealed(file, self._sealing)
        except BaseException:
            file.close()
            raise

    def link_key(self) -> bytes:
        path = self._folder / LINK_KEY_FILE
        if not path.is_file():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self._folder / f".{secrets.token_hex(8)}.tmp"
            with open(draft, "xb", opener=_private) as file:
                file.write(secrets.token_bytes(LINK_KEY_BYTES))
                _sync(file)
            with suppress(FileExistsError):  # another process was faster
                os.link(draft, path)
            draft.unlink()
            self._sync_names()
        key = path.read_bytes()
        if len(key) != LINK_KEY_BYTES:
            raise OSError(f"{path} has {len(key)} bytes, not {LINK_KEY_BYTES}: remove it, and another one is made")
        return key

    def _sync_names(self) -> None:
        """Make the names in the folder as durable as the files. Orders refer to them, and outlive a power cut."""
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def sweep(self, now: datetime) -> int:
        gone = 0
        last = (now - GRACE).timestamp()
        if not self._folder.is_dir():
            return 0
        for entry in os.scandir(self._folder):
            ours = _DIGEST.fullmatch(entry.name) or entry.name.endswith(".tmp")
            with suppress(FileNotFoundError):
                if ours and entry.stat(follow_symlinks=False).st_mtime < last:
                    os.unlink(entry.path)
                    gone += 1
        return gone


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
