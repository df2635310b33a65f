"""Signatures of requests to S3 (AWS Signature Version 4): a canonical form of a request, signed by a key of the day."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class S3Credentials:
    """`session` is the token of credentials that end."""

    access_key: str
    secret_key: str = field(repr=False)
    session: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class S3Request:
    """`path` and `query` as they are, not encoded; `payload` is the SHA-256 of the body in hexadecimal."""

    method: str
    host: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    payload: str = EMPTY_SHA256

    @property
    def target(self) -> str:
        """The path and the query as they are sent."""
        query = _query(self.query)
        return _path(self.path) + (f"?{query}" if query else "")


def signed_headers(asked: S3Request, credentials: S3Credentials, region: str, now: datetime) -> dict[str, str]:
    """The headers of a request with its signature, which is good for some minutes."""
    at = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {name.lower(): value for name, value in asked.headers.items()}
    headers |= {"host": asked.host, "x-amz-date": at, "x-amz-content-sha256": asked.payload}
    if credentials.session:
        headers["x-amz-security-token"] = credentials.session
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in sorted(headers))
    canonical = f"{asked.method}\n{_path(asked.path)}\n{_query(asked.query)}\n{lines}\n{names}\n{asked.payload}"
    scope = f"{at[:8]}/{region}/s3/aws4_request"
    text = f"{ALGORITHM}\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    said = f"Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "authorization": f"{ALGORITHM} {said}"}


def _path(path: str) -> str:
    return quote(path, safe="/-_.~")


def _query(query: Mapping[str, str]) -> str:
    return "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))
