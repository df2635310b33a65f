"""What the URL of a Redis broker says.

redis://[user:password@]host[:port][/db]?confirm_timeout=3&group=oraculo&lease=10&wait_replicas=0
rediss://…&ca=/path/to/authority.pem
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from oraculo.errors import SettingsError

FORM = "redis://[user:password@]host[:port][/db] or rediss://…"
KNOWN = ("ca", "confirm_timeout", "group", "lease", "wait_replicas")
_GROUP = re.compile(r"[A-Za-z0-9_.:\-]{1,100}")


@dataclass(frozen=True, slots=True)
class Options:
    host: str
    port: int
    db: int
    user: str
    password: str = field(repr=False)
    tls: bool
    ca: str = ""  # file with the authorities to trust; empty: those of the system
    group: str = "oraculo"
    confirm_timeout: float = 3.0
    lease: float = 10.0  # seconds after which what a silent process holds is given to others
    wait_replicas: int = 0

    @property
    def where(self) -> str:
        """For logs and errors: never the password."""
        return f"{self.host}:{self.port}/{self.db}"


def parse(url: str) -> Options:
    parts = urlsplit(url)
    if parts.scheme not in ("redis", "rediss"):
        raise _wrong(parts, FORM)
    try:
        host, port = parts.hostname or "localhost", parts.port or 6379
        db = int(parts.path.strip("/") or 0)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise _wrong(parts, FORM) from None
    if db < 0 or parts.fragment:
        raise _wrong(parts, FORM)
    given = dict(pairs)
    for name, _ in pairs:
        if name not in KNOWN:
            raise _wrong(parts, f"the option {name!r} is not known; known are {', '.join(KNOWN)}")
    if len(given) != len(pairs):
        raise _wrong(parts, "an option is given twice")
    if "ca" in given and (parts.scheme != "rediss" or not given["ca"]):
        raise _wrong(parts, "the option 'ca' is a file name, and only for rediss://")
    group = given.get("group", "oraculo")
    if not _GROUP.fullmatch(group):
        raise _wrong(parts, "the option 'group' is 1 to 100 letters, digits and _ . : -")
    return Options(
        host=host,
        port=port,
        db=db,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        tls=parts.scheme == "rediss",
        ca=given.get("ca", ""),
        group=group,
        confirm_timeout=_seconds(parts, given, "confirm_timeout", 3.0, 0.05, 60),
        lease=_seconds(parts, given, "lease", 10.0, 1, 3600),
        wait_replicas=_count(parts, given, "wait_replicas", 16),
    )


def _seconds(parts: SplitResult, given: dict[str, str], name: str, default: float, least: float, most: float) -> float:
    try:
        value = float(given.get(name, default))
    except ValueError:
        value = -1.0
    if not least <= value <= most:
        raise _wrong(parts, f"the option {name!r} is a number of seconds from {least:g} to {most:g}")
    return value


def _count(parts: SplitResult, given: dict[str, str], name: str, most: int) -> int:
    text = given.get(name, "0")
    if not (text.isascii() and text.isdigit() and int(text) <= most):
        raise _wrong(parts, f"the option {name!r} is a whole number from 0 to {most}")
    return int(text)


def _wrong(parts: SplitResult, allowed: str) -> SettingsError:
    """The URL is shown without its password and without its options, which may hold one by mistake."""
    return SettingsError("ORACULO_BROKER", f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}", allowed)
