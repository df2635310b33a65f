"""Cursors: opaque, checked, and tied to the list that gave them."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response

from oraculo.api.problems import invalid
from oraculo.api.words import ASKED, PARAMETER
from oraculo.wire import strict_json

_INT64_MAX = 2**63 - 1


def encode(kind: str, number: int) -> str:
    raw = f"{kind}{number}".encode()
    return base64.urlsafe_b64encode(raw + zlib.crc32(raw).to_bytes(4)).rstrip(b"=").decode()


def decode(kind: str, cursor: str | None) -> int | None:
    """The number in a cursor of that kind of list; a problem for anything else."""
    if cursor is None:
        return None
    try:
        whole = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        whole = b""
    raw, check = whole[:-4], whole[-4:]
    number = raw[1:]
    if zlib.crc32(raw).to_bytes(4) == check and raw[:1] == kind.encode() and number.isdigit() and len(number) < 20:
        value = int(number)
        if value <= _INT64_MAX:
            return value
    raise invalid("query.cursor", "it is not a cursor that this list gave", "invalid_cursor")


def page(request: Request, document: dict[str, Any], following: str | None) -> Response:
    """A page of a list, with the address of the next one in `Link` too."""
    headers = {}
    if following is not None:
        query = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
        if ASKED in request.scope:
            query.append((PARAMETER, request.scope[ASKED]))
        link = f"{request.scope['path']}?{urlencode([*query, ('cursor', following)])}"
        headers["Link"] = f'<{link}>; rel="next"'
    return Response(strict_json.dumps({**document, "next": following}), 200, headers, "application/json")
