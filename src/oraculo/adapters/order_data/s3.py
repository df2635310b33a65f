"""Collected data in a bucket of S3, or of a server that speaks it: an object for each content and the hour until which
it is kept, `<prefix><sha256>.<hour>.<key>`, so that nothing else has to be remembered and no process deletes what
another one still refers to. `<key>` names the key that it is sealed with, `0` is none."""

from __future__ import annotations

import hashlib
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import IO, BinaryIO, cast
from urllib.parse import urlsplit

import httpx2

from oraculo.adapters.order_data.sigv4 import EMPTY_SHA256, S3Credentials, S3Request, signed_headers
from oraculo.adapters.sealing.codec import Sealing
from oraculo.adapters.sealing.files import UNSEALED, SealedWriter, unsealed
from oraculo.ports.order_data import OpenedData, StoredData

SCHEME = "s3"
LINK_KEY_OBJECT = "link.key"
LINK_KEY_BYTES = 32
GRACE = timedelta(hours=1)  # after its end, for whoever is reading
HOUR_S = 3600
TIMEOUT_S = 30.0
CHUNK_BYTES = 256 * 1024
SPOOL_MAX_BYTES = 1024 * 1024  # in memory; more goes to a file
NO_KEY = "0"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"([0-9a-f]{64})\.(\d{1,12})\.([0-9a-f]{1,64})")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[\w./-]{0,512}", re.ASCII)
_KEYS = re.compile(r"<Key>([^<]*)</Key>")
_NEXT = re.compile(r"<NextContinuationToken>([^<]*)</NextContinuationToken>")


@dataclass(frozen=True, slots=True)
class S3Place:
    """A bucket and what names of objects in it begin with."""

    bucket: str
    prefix: str = ""


def place_of(url: str) -> S3Place:
    """The place that `s3://bucket/prefix` names. ValueError: it names none."""
    parts = urlsplit(url)
    prefix = parts.path.strip("/")
    if parts.scheme != SCHEME or not _BUCKET.fullmatch(parts.netloc) or not _PREFIX.fullmatch(prefix) or parts.query:
        raise ValueError("s3://bucket/prefix is needed, with letters, digits and ._/- in the prefix")
    return S3Place(parts.netloc, f"{prefix}/" if prefix else "")


class S3OrderData:
    """`endpoint` is the address of the server, under which buckets are paths. What cannot be done is an OSError."""

    def __init__(
        self,
        place: S3Place,
        endpoint: str,
        region: str,
        credentials: S3Credentials,
        sealing: Sealing = UNSEALED,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._place = place
        self._region = region
        self._credentials = credentials
        self._sealing = sealing
        self._clock = clock
        self._host = urlsplit(endpoint).netloc
        no_idle = httpx2.Limits(max_keepalive_connections=0)  # so that there is nothing to close
        self._client = httpx2.Client(base_url=endpoint.rstrip("/"), timeout=TIMEOUT_S, trust_env=False, limits=no_idle)

    def put(self, chunks: Iterable[bytes], until: datetime, tenant: str) -> StoredData:
        key = self._sealing.secret_for(tenant).id if self._sealing.on else NO_KEY
        hour = -(-int(until.timestamp()) // HOUR_S)
        with tempfile.SpooledTemporaryFile(SPOOL_MAX_BYTES) as file:
            stored = self._write(cast(BinaryIO, file), chunks, tenant)
            for _, (_, kept, sealed_with) in self._named(f"{stored.digest}."):
                if kept >= hour and sealed_with == key:
                    return stored
            self._send(f"{stored.digest}.{hour}.{key}", cast(BinaryIO, file))
        return stored

    def open(self, digest: str) -> OpenedData | None:
        if _DIGEST.fullmatch(digest) is None:
            return None
        latest = sorted(self._named(f"{digest}."), key=lambda one: one[1][1], reverse=True)
        for name, _ in latest:
            file = self._received(name)
            try:
                found = None if file is None else unsealed(file, self._sealing)
            except BaseException:
                if file is not None:
                    file.close()
                raise
            if found is not None:
                return found
        return None

    def link_key(self) -> bytes:
        key = self._content(LINK_KEY_OBJECT)
        if key is None:
            made = secrets.token_bytes(LINK_KEY_BYTES)
            first = {"if-none-match": "*"}  # another process may be faster
            self._ask("PUT", LINK_KEY_OBJECT, headers=first, body=made, allowed=(200, 409, 412)).close()
            key = self._content(LINK_KEY_OBJECT)
        if key is None or len(key) != LINK_KEY_BYTES:
            raise OSError(f"{self._place.prefix}{LINK_KEY_OBJECT} has not {LINK_KEY_BYTES} bytes: remove it")
        return key

    def sweep(self, now: datetime) -> int:
        gone = 0
        last = int((now - GRACE).timestamp()) // HOUR_S
        for name, (_, kept, _) in list(self._named("")):
            if kept < last:
                self._ask("DELETE", name, allowed=(200, 204, 404)).close()
                gone += 1
        return gone

    def _write(self, file: BinaryIO, chunks: Iterable[bytes], tenant: str) -> StoredData:
        """Write the chunks to a file, sealed where payloads are."""
        writer = SealedWriter(file, self._sealing, tenant) if self._sealing.on else None
        digest, size = hashlib.sha256(), 0
        for chunk in chunks:
            digest.update(chunk)
            size += len(chunk)
            (file if writer is None else writer).write(chunk)
        if writer is not None:
            writer.finish()
        return StoredData(digest.hexdigest(), size)

    def _named(self, beginning: str) -> Iterator[tuple[str, tuple[str, int, str]]]:
        """Names of objects without the prefix, and what they say: digest, hour, key."""
        following = ""
        while True:
            query = {"list-type": "2", "prefix": self._place.prefix + beginning}
            answer = self._ask("GET", None, query={**query, **({"continuation-token": following} if following else {})})
            for key in _KEYS.findall(answer.text):
                name = unescape(key).removeprefix(self._place.prefix)
                found = _NAME.fullmatch(name)
                if found is not None:
                    yield name, (found[1], int(found[2]), found[3])
            more = _NEXT.search(answer.text)
            if more is None:
                return
            following = unescape(more[1])

    def _received(self, name: str) -> BinaryIO | None:
        """An object as a file of this machine; None when there is none."""
        answer = self._ask("GET", name, allowed=(200, 404), stream=True)
        try:
            if answer.status_code == 404:
                return None
            file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - whoever opened it closes it
            for chunk in answer.iter_bytes(CHUNK_BYTES):
                file.write(chunk)
            file.seek(0)
            return cast(BinaryIO, file)
        except httpx2.HTTPError as error:
            raise OSError(f"{name} cannot be read: {error}") from error
        finally:
            answer.close()

    def _content(self, name: str) -> bytes | None:
        file = self._received(name)
        if file is None:
            return None
        with file:
            return file.read()

    def _send(self, name: str, file: BinaryIO) -> None:
        digest, size = hashlib.sha256(), 0
        file.seek(0)
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
        file.seek(0)
        pieces = iter(lambda: file.read(CHUNK_BYTES), b"")
        length = {"content-length": str(size)}
        self._ask("PUT", name, headers=length, body=pieces, payload=digest.hexdigest()).close()

    def _ask(
        self,
        method: str,
        name: str | None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | Iterator[bytes] = b"",
        payload: str | None = None,
        allowed: tuple[int, ...] = (200,),
        stream: bool = False,
    ) -> httpx2.Response:
        """One signed request about an object, or about the bucket; OSError unless its answer is allowed."""
        if payload is None:
            payload = hashlib.sha256(body).hexdigest() if isinstance(body, bytes) else EMPTY_SHA256
        path = f"/{self._place.bucket}" + ("" if name is None else f"/{self._place.prefix}{name}")
        asked = S3Request(method, self._host, path, query or {}, headers or {}, payload)
        now = datetime.fromtimestamp(self._clock(), UTC)
        signed = signed_headers(asked, self._credentials, self._region, now)
        try:
            request = self._client.build_request(method, asked.target, headers=signed, content=body or None)
            answer = self._client.send(request, stream=stream)
            if answer.status_code in allowed:
                return answer
            said = answer.read()[:300].decode("utf-8", "replace")
        except httpx2.HTTPError as error:
            raise OSError(f"{self._host} cannot be asked: {error}") from error
        answer.close()
        raise OSError(f"{self._host} answered {answer.status_code} to {method} of {path}: {said}")
