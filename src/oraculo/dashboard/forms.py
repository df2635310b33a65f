"""What a page sends back. Every action goes through `checked`: from this site, with the token of this session."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from oraculo.api import body
from oraculo.api.problems import ProblemError
from oraculo.api.session import CSRF_HEADER, identity_of
from oraculo.dashboard.frame import sessions_of

LOGIN_MAX_BYTES = 8 * 1024  # of the form that strangers may send
MOST_BYTES = 4 * 1024 * 1024  # a message of 1 MiB, percent-encoded
MOST_FIELDS = 20_000


class Fields:
    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def get(self, name: str, default: str = "") -> str:
        return next((value for key, value in self._pairs if key == name), default)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self._pairs if key == name]

    def but(self, *names: str) -> list[tuple[str, str]]:
        return [pair for pair in self._pairs if pair[0] not in names]


def same_site(request: Request) -> None:
    """Browsers say where a request comes from; what says nothing has to know the token anyway."""
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    foreign = origin is not None and origin.partition("://")[2] != host
    if foreign or request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise ProblemError("cross_site", f"Origin {(origin or '')[:100]!r} is not this server")


async def read(request: Request, limit: int = MOST_BYTES) -> Fields:
    raw = await body.read(request, limit)
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise ProblemError("unsupported_media_type", "a form of this site is application/x-www-form-urlencoded")
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=MOST_FIELDS
        )
    except ValueError as error:
        raise ProblemError("invalid_request", f"the form cannot be read: {error}") from None
    return Fields(pairs)


async def checked(request: Request) -> Fields:
    same_site(request)
    fields = await read(request)
    sessions = sessions_of(request)
    identity = identity_of(sessions, request.headers)
    given = request.headers.get(CSRF_HEADER) or fields.get("csrf")
    if identity is None or not sessions.is_token(identity, given):
        raise ProblemError("stale_page", "reload the page and try again; nothing was done")
    return fields


Form = Annotated[Fields, Depends(checked)]
