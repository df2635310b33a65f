"""How the value of a variable is read: each gives what the text means, or a SettingsError that says what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from oraculo import redaction
from oraculo.errors import SettingsError
from oraculo.wire import names

STORES = ("sqlite", "postgresql", "postgres")
BROKERS = ("memory", "amqp", "amqps", "redis", "rediss", "nats", "kafka")


def text(_name: str, value: str) -> str:
    return value


def one_of(*allowed: str) -> Callable[[str, str], str]:
    def read(name: str, value: str) -> str:
        if value not in allowed:
            raise SettingsError(name, value, f"one of {', '.join(allowed)}")
        return value

    return read


def number(low: float, high: float) -> Callable[[str, str], float]:
    def read(name: str, value: str) -> float:
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not low <= number <= high:
            raise SettingsError(name, value, f"a number from {low:g} to {high:g}")
        return number

    return read


def whole(low: int, high: int) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        if not value.isascii() or not value.removeprefix("-").isdigit() or not low <= int(value) <= high:
            raise SettingsError(name, value, f"a whole number from {low} to {high}")
        return int(value)

    return read


def url(*schemes: str) -> Callable[[str, str], str]:
    allowed = ", ".join(f"{scheme}://" for scheme in schemes)

    def read(name: str, value: str) -> str:
        for part in value.split(","):
            if part.strip().partition("://")[0].lower() not in schemes or "://" not in part or not _is_url(part):
                raise SettingsError(name, redaction.urls(value), f"a URL that begins with one of {allowed}")
        return value

    return read


def store_url(name: str, value: str) -> str:
    """One database. libpq lets a URL name several hosts, with commas between."""
    scheme, found, _ = value.partition("://")
    if not found or scheme.lower() not in STORES:
        raise SettingsError(name, redaction.urls(value), "a URL that begins with sqlite:// or postgresql://")
    return value


def brokers(name: str, value: str) -> str:
    """One URL, or several in order of preference. What lives in this process cannot stand in for a server."""
    url(*BROKERS)(name, value)
    parts = [part.strip() for part in value.split(",")]
    if len(parts) > 1 and any(part.lower().startswith("memory:") for part in parts):
        raise SettingsError(name, redaction.urls(value), "memory:// alone, or a list of servers")
    if len(set(parts)) != len(parts):
        raise SettingsError(name, redaction.urls(value), "each broker once")
    return value


def nodes(name: str, value: str) -> str:
    if value and not all(re.fullmatch(r"[^\s:/@,]+:\d{1,5}", node.strip()) for node in value.split(",")):
        raise SettingsError(name, value, "host:port, several separated by commas")
    return value


def topic(name: str, value: str) -> str:
    if not names.is_queue_name(value):
        raise SettingsError(name, value, "a name of letters, digits, '.', '_' and '-'")
    return value


def optional_url(*schemes: str) -> Callable[[str, str], str]:
    """One URL, or nothing."""
    read = url(*schemes)

    def optional(name: str, value: str) -> str:
        if "," in value:
            raise SettingsError(name, redaction.urls(value), "one URL")
        return read(name, value) if value else ""

    return optional


def mongodb(name: str, value: str) -> str:
    """A URL of MongoDB may name several hosts, with commas between."""
    if value and not value.lower().startswith(("mongodb://", "mongodb+srv://")):
        raise SettingsError(name, redaction.urls(value), "a URL that begins with mongodb:// or mongodb+srv://")
    return value


def flag(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false", "1", "0"):
        raise SettingsError(name, value, "true or false")
    return value.lower() in ("true", "1")


def file(name: str, value: str) -> str:
    if value and not Path(value).is_file():
        raise SettingsError(name, value, "the path of a file that exists")
    return value


def optional(read: Callable[[str, str], str]) -> Callable[[str, str], str]:
    return lambda name, value: read(name, value) if value else value


def pairs(name: str, value: str) -> tuple[str, ...]:
    pairs = several(name, value)
    if not all(pair.partition("=")[0].strip() and pair.partition("=")[2] for pair in pairs):
        raise SettingsError(name, redaction.HIDDEN, "name=value, several with commas between")
    return pairs


def several(_name: str, value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def offers(name: str, value: str) -> tuple[str, ...]:
    """`class=capability+capability`, several with commas between."""
    classes = several(name, value)
    for one in classes:
        who, equals, can = one.partition("=")
        if not equals or not names.is_queue_name(who.strip()) or not all(part.strip() for part in can.split("+")):
            raise SettingsError(name, value, "class=capability+capability, several with commas between")
    if len({one.partition("=")[0].strip() for one in classes}) != len(classes):
        raise SettingsError(name, value, "each class once")
    return classes


def _is_url(text: str) -> bool:
    try:
        _ = urlsplit(text.strip()).port
    except ValueError:
        return False
    return True
