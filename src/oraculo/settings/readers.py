"""Readers of settings: each turns the text of a variable into a value, or refuses it and says what is allowed.

A reader is called with the name and the text of a variable. It raises SettingsError with passwords hidden.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from oraculo import redaction
from oraculo.adapters.brokers.registry import schemes
from oraculo.adapters.sealing.aes_gcm import read_key
from oraculo.core.access import USER_ROLES
from oraculo.core.tenants import TENANT_PATTERN, is_tenant
from oraculo.errors import SettingsError
from oraculo.wire import names
from oraculo.wire.signatures import read_signing_key

T = TypeVar("T")

STORES = ("sqlite", "postgresql", "postgres")


@dataclass(frozen=True, slots=True)
class Reader(Generic[T]):
    """The way from a text to a value. `parse` raises ValueError for what is refused; its message replaces `allowed`.
    A `secret` value is never shown; one that is an `address` may have a password in it; of a `list` each part, between
    commas, is a value."""

    parse: Callable[[str], T]
    allowed: str = ""
    secret: bool = False
    address: bool = False
    list: bool = False

    def __call__(self, name: str, value: str) -> T:
        try:
            return self.parse(value)
        except ValueError as refusal:
            shown = redaction.HIDDEN if self.secret else redaction.urls(value)
            raise SettingsError(name, shown, str(refusal) or self.allowed) from None


def optional(reader: Reader[str]) -> Reader[str]:
    """The same, and an empty text."""
    return replace(reader, parse=lambda value: reader.parse(value) if value else value)


def one_of(*allowed: str) -> Reader[str]:
    return Reader(lambda value: _ensure(value, value in allowed), f"one of {', '.join(allowed)}")


def one_of_any_case(*allowed: str) -> Reader[str]:
    """One of these words in capitals, however it is written."""
    return Reader(lambda value: one_of(*allowed).parse(value.upper()), one_of(*allowed).allowed)


def number(low: float, high: float) -> Reader[float]:
    allowed = f"a number from {low:.10g} to {high:.10g}"

    def parse(value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            raise ValueError(allowed) from None
        return _ensure(number, low <= number <= high)

    return Reader(parse, allowed)


def whole(low: int, high: int) -> Reader[int]:
    def parse(value: str) -> int:
        _ensure(value, value.isascii() and value.removeprefix("-").isdigit())
        return _ensure(int(value), low <= int(value) <= high)

    return Reader(parse, f"a whole number from {low} to {high}")


def optional_whole(low: int, high: int) -> Reader[int | None]:
    some = whole(low, high)
    return Reader(lambda value: some.parse(value) if value else None, some.allowed)


def url(*schemes: str, several: bool = True) -> Reader[str]:
    """A URL of one of these schemes; `several` lets commas separate more of them."""

    def parse(value: str) -> str:
        if "," in value and not several:
            raise ValueError("one URL")
        return _ensure(value, all(_is_url(part, schemes) for part in value.split(",")))

    allowed = f"a URL that begins with one of {', '.join(f'{scheme}://' for scheme in schemes)}"
    return Reader(parse, allowed, address=True)


def _is_url(text: str, schemes: tuple[str, ...]) -> bool:
    try:
        _ = urlsplit(text.strip()).port
    except ValueError:
        return False
    scheme, found, _rest = text.strip().partition("://")
    return bool(found) and scheme.lower() in schemes


def _ensure(value: T, allowed: bool) -> T:
    if not allowed:
        raise ValueError
    return value


def _store_url(value: str) -> str:
    """libpq lets one URL name several hosts with commas between."""
    scheme, found, _ = value.partition("://")
    return _ensure(value, bool(found) and scheme.lower() in STORES)


def _brokers(value: str) -> str:
    """Of the brokers that are installed. The in-process broker cannot stand in for a server. `pyamqp` is what Celery
    calls `amqp`."""
    value = re.sub(r"(^|,)\s*pyamqp://", r"\1amqp://", value)
    urls = url(*schemes())
    try:
        parts = [part.strip() for part in urls.parse(value).split(",")]
    except ValueError:
        raise ValueError(urls.allowed) from None
    if len(parts) > 1 and any(part.lower().startswith("memory:") for part in parts):
        raise ValueError("memory:// alone, or a list of servers")
    if len(set(parts)) != len(parts):
        raise ValueError("each broker once")
    return value


def _nodes(value: str) -> str:
    nodes = value.split(",") if value else []
    return _ensure(value, all(re.fullmatch(r"[^\s:/@,]+:\d{1,5}", node.strip()) for node in nodes))


def _database_host(value: str) -> str:
    return value if not value or value.startswith("/") else host.parse(value)


def _mongodb(value: str) -> str:
    return _ensure(value, not value or value.lower().startswith(("mongodb://", "mongodb+srv://")))


_YES, _NO = ("true", "on", "yes", "1"), ("false", "off", "no", "0")


def _flag(value: str) -> bool:
    """Read a switch by any of the usual words, so that no setting has a spelling of its own."""
    _ensure(value, value.lower() in (*_YES, *_NO))
    return value.lower() in _YES


def _several(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _pairs(value: str) -> tuple[str, ...]:
    pairs = _several(value)
    return _ensure(pairs, all(name.strip() and text for name, _, text in (pair.partition("=") for pair in pairs)))


def _offers(value: str) -> tuple[str, ...]:
    classes = _several(value)
    pairs = [(name.strip(), capabilities) for name, _, capabilities in (one.partition("=") for one in classes)]
    _ensure(value, all(names.is_queue_name(name) and all(map(str.strip, can.split("+"))) for name, can in pairs))
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("each class once")
    return classes


def _role_names(value: str) -> tuple[str, ...]:
    pairs = _several(value)
    split = [(name.strip(), role.strip()) for name, _, role in (pair.rpartition("=") for pair in pairs)]
    return _ensure(pairs, all(name and role in USER_ROLES for name, role in split))


def _queues(value: str) -> tuple[str, ...]:
    pairs = [tuple(map(str.strip, one.partition("=")[::2])) for one in _several(value)]
    usual, others = [one for one, _ in pairs], [other for _, other in pairs]
    for one, other in pairs:
        _ensure(value, one.startswith(("escavador_", "executador_")) and names.is_queue_name(one))
        _ensure(value, names.is_queue_name(other))
        if names.is_own(other):
            raise ValueError(f"{other} belongs to the orchestrator")
    if len(set(usual)) != len(usual) or len(set(others)) != len(others):
        raise ValueError("each destination and each queue once")
    return _several(value)


_port = whole(0, 65535)
text: Reader[str] = Reader(lambda value: value)
several = Reader(_several)
secrets = Reader(_several, secret=True, list=True)
store_url = Reader(_store_url, "a URL that begins with sqlite:// or postgresql://", address=True)
brokers = Reader(
    _brokers,
    "a URL, or several with commas between: memory://, amqp[s]://, redis[s]://, nats://, kafka:// or the scheme of "
    "another broker that is installed",
    address=True,
    list=True,
)
nodes = Reader(_nodes, "host:port, several separated by commas")
topic = Reader(lambda value: _ensure(value, names.is_queue_name(value)), "a name of letters, digits, '.', '_' and '-'")
host = Reader(
    lambda value: _ensure(value, bool(re.fullmatch(r"[\w.-]+|\[?[\da-fA-F:.]+(%\w+)?\]?", value, re.ASCII))),
    "the name or the address of a host, without a port",
)
database_host = Reader(_database_host, "the name or the address of a host without a port, or the folder of a socket")
required = Reader(lambda value: _ensure(value, bool(value.strip())), "anything but nothing")
word = Reader(lambda value: _ensure(value, bool(re.fullmatch(r"[^\s\x00-\x1f]+", value))), "a name without spaces")
tenant = Reader(lambda value: _ensure(value, is_tenant(value)), f"a name that matches {TENANT_PATTERN}")
mongodb_database = Reader(
    lambda value: _ensure(value, bool(re.fullmatch(r"[^\s\x00/\\.\"$*<>:|?]{1,63}", value))),
    '1 to 63 characters without spaces and none of / \\ . " $ * < > : | ?',
)
mongodb = Reader(_mongodb, "a URL that begins with mongodb:// or mongodb+srv://", address=True)
flag = Reader(_flag, "true or false (also on, off, yes, no, 1, 0)")
file = Reader(lambda value: _ensure(value, not value or Path(value).is_file()), "the path of a file that exists")
optional_port: Reader[int | None] = Reader(lambda value: _port.parse(value) if value else None, _port.allowed)
_MASTER_KEY = "32 random bytes in hexadecimal or base64, as `openssl rand -hex 32` makes them"
master_key = Reader(lambda value: read_key(value).hex() if value else "", _MASTER_KEY, secret=True)
master_keys = Reader(
    lambda value: tuple(read_key(one).hex() for one in _several(value)),
    f"{_MASTER_KEY}; several with commas between",
    secret=True,
    list=True,
)
pairs = Reader(_pairs, "name=value, several with commas between", secret=True, list=True)
role_names = Reader(_role_names, f"value=role with a role of {', '.join(USER_ROLES)}, several with commas between")
queues = Reader(_queues, "escavador_<fonte>=queue or executador_<nome>=queue, several with commas between", list=True)
offers = Reader(_offers, "class=capability+capability, several with commas between")
signing_key = Reader(
    lambda value: _ensure(value, not value or read_signing_key(value) is not None),
    "orcw_…, as `oraculo keys create --sign` shows it",
)
