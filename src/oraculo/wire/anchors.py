"""Signed anchors of the journal: where every chain of the audit stood at an instant, as JSON lines.

Each line names an orchestration, its last event and the hash of its chain up to there. The last line has the number and
the digest of all lines before it, and is signed (`wire/signatures.py`). A journal that agrees with an anchor has not
been changed since, up to the events that it names: the key is not in the database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

from oraculo.errors import WireError
from oraculo.wire import strict_json, views
from oraculo.wire.audit import Problem, Record
from oraculo.wire.signatures import MEMBER, Sign, Signature, signature_of, signed_body

LINE_MAX_BYTES: Final = 4096
KIND: Final = "oraculo-journal-anchor"


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where one chain stood. `ended_at` is when its orchestration had ended, if it had."""

    run: int
    correlation_id: str
    last_seq: int
    hash: str
    ended_at: str | None

    def problem(self, chain: Sequence[Record]) -> Problem | None:
        """What is wrong with a chain that this anchor is of; None when they agree. A chain may have grown."""
        for record in chain:
            if record["last_seq"] == self.last_seq:
                if record["hash"] == self.hash:
                    return None
                break
        detail = f"up to event {self.last_seq} it is not what was anchored"
        return Problem("altered", self.run, self.last_seq, self.correlation_id, detail)

    def lost(self) -> Problem:
        """The problem of an orchestration that the journal does not have any more."""
        detail = "it was anchored, is not in the journal any more, and was not pruned"
        return Problem("deleted", self.run, self.last_seq, self.correlation_id, detail)


def anchor_of(chain: Sequence[Record], ended_at: datetime | None) -> Anchor:
    """The anchor of a chain as it stands."""
    last = chain[-1]
    ended = None if ended_at is None else views.instant(ended_at)
    return Anchor(last["run"], last["correlation_id"], last["last_seq"], last["hash"], ended)


class AnchorWriter:
    """Writes anchors to a file; `finish` signs them."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest = sha256()
        self.count = 0

    def add(self, anchor: Anchor) -> None:
        values = (anchor.run, anchor.correlation_id, anchor.last_seq, anchor.hash, anchor.ended_at)
        line = strict_json.dumps(values) + b"\n"
        self._digest.update(line)
        self._file.write(line)
        self.count += 1

    def finish(self, at: datetime, key_id: str, sign: Sign) -> None:
        """Write the last line."""
        said = {"kind": KIND, "at": views.instant(at), "lines": self.count, "sha256": self._digest.hexdigest()}
        self._file.write(signed_body(strict_json.dumps(said), key_id, sign) + b"\n")


class AnchorReader:
    """Reads a file of anchors; WireError when it is not whole. `signature` and `at` are those of its last line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        digest, count, last = sha256(), 0, b""
        for line in _lines(path):
            if last:
                digest.update(last)
                count += 1
            last = line
        self._last_line = count
        said = _object(last)
        if (said.get("kind"), said.get("lines"), said.get("sha256")) != (KIND, count, digest.hexdigest()):
            raise WireError("invalid_anchor", "its last line does not fit those before it")
        signature = signature_of(last.rstrip(b"\n"), {})
        if signature is None:
            raise WireError("invalid_anchor", f"its last line has no {MEMBER}")
        self.signature: Signature = signature
        self.at = str(said.get("at"))

    def __iter__(self) -> Iterator[Anchor]:
        for number, line in enumerate(_lines(self._path)):
            if number == self._last_line:
                return
            run, name, seq, hash, ended = strict_json.loads(line)
            yield Anchor(int(run), str(name), int(seq), str(hash), ended)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while line := file.readline(LINE_MAX_BYTES):
            if not line.endswith(b"\n"):
                raise WireError("invalid_anchor", "it has been cut, or is no file of anchors")
            yield line


def _object(line: bytes) -> Mapping[str, Any]:
    found = strict_json.loads(line) if line else None
    if not isinstance(found, dict):
        raise WireError("invalid_anchor", "it has no last line")
    return found
