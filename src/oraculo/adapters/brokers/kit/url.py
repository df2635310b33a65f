"""The URL of a broker: `scheme://[user:password@]host[:port][/path][?option=value&…]`.

An adapter declares a `UrlGrammar`; every URL then has the same options where they mean the same (`confirm_timeout`,
`tls`, `tls_ca`, `tls_cert`, `tls_key`), is refused in the same words, and never shows a password. A fault in a URL is a
SettingsError before anything connects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import structlog

from oraculo.adapters.brokers.kit.tls import TlsOptions
from oraculo.errors import SettingsError

log = structlog.get_logger("oraculo.broker")

VARIABLE = "ORACULO_BROKER"
CONFIRM_TIMEOUT_S = 3.0
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+)(?::(\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class Option:
    """One part of a URL: `read` turns its text into a value, or raises ValueError; `allowed` says what it takes."""

    read: Callable[[str], Any]
    allowed: str


def seconds(low: float, high: float) -> Option:
    return Option(lambda text: _within(float(text), low, high), f"{low:g} to {high:g} seconds")


def whole(low: int, high: int) -> Option:
    return Option(lambda text: _within(int(text), low, high), f"{low} to {high}")


def one_of(*values: str) -> Option:
    return Option(lambda text: values[values.index(text)], " or ".join(values))


def flag() -> Option:
    words = {"0": False, "false": False, "1": True, "true": True}
    return Option(lambda text: words[text.lower()], "0 or 1")


def matching(pattern: str, allowed: str) -> Option:
    return Option(lambda text: _matched(re.fullmatch(pattern, text, re.ASCII))[0], allowed)


def file() -> Option:
    return matching(r".+", "the name of a file")


def addresses(port: int) -> Option:
    """Several `host[:port]` with + between; a + in a query is read as a space."""
    return Option(lambda text: tuple(_address(part, port) for part in re.split(r"[ +,]", text)), "host:port+host:port")


NO_PATH = Option(lambda text: one_of("").read(text), "none")
COMMON: Mapping[str, Option] = {
    "confirm_timeout": seconds(0.05, 3600),
    "tls": flag(),
    "tls_ca": file(),
    "tls_cert": file(),
    "tls_key": file(),
}


@dataclass(frozen=True, slots=True)
class BrokerUrl:
    """A URL that keeps to its grammar. `servers` are `host:port`, the first one from before the options; `options` are
    those that were given, by their names, without those that have a field here."""

    host: str
    port: int
    path: Any
    user: str | None
    password: str | None = field(repr=False)
    confirm_timeout: float
    tls: TlsOptions | None
    servers: tuple[str, ...]
    options: dict[str, Any]

    @property
    def where(self) -> str:
        """The servers, for logs and errors: never credentials."""
        return ",".join(self.servers)


@dataclass(frozen=True, slots=True)
class UrlGrammar:
    """The URLs of one adapter.

    `form`: how it looks, for messages. `ports`: scheme → default port. `secure`: the schemes that mean TLS. `host`: the
    one to take when the URL names none; empty: it must name one. `path`: what follows the host, without its slash.
    `options`: those beyond COMMON; one that is called `servers` names further servers. `renamed`: old spelling → name.
    """

    form: str
    ports: Mapping[str, int]
    secure: frozenset[str] = frozenset()
    host: str = ""
    path: Option = NO_PATH
    options: Mapping[str, Option] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)

    def parse(self, url: str) -> BrokerUrl:
        """SettingsError, with neither credentials nor options shown, if anything in the URL is not allowed."""
        try:
            return self._parse(urlsplit(url))
        except ValueError as error:
            raise SettingsError(VARIABLE, without_credentials(url), f"{self._allowed()} ({error})") from None

    def _parse(self, parts: SplitResult) -> BrokerUrl:
        if parts.scheme not in self.ports or parts.fragment:
            raise ValueError(f"the scheme is {' or '.join(self.ports)}, and nothing follows the options")
        port = parts.port or self.ports[parts.scheme]
        host = parts.hostname or self.host
        if not host:
            raise ValueError("it names no host")
        servers = (_address(f"[{host}]" if ":" in host else host, port),)
        given = self._given(parts.query)
        return BrokerUrl(
            host=host,
            port=port,
            path=_read("path", self.path, parts.path.removeprefix("/")),
            user=None if parts.username is None else unquote(parts.username),
            password=None if parts.password is None else unquote(parts.password),
            confirm_timeout=given.pop("confirm_timeout", CONFIRM_TIMEOUT_S),
            tls=_tls(given, parts.scheme in self.secure),
            servers=servers + given.pop("servers", ()),
            options=given,
        )

    def _given(self, query: str) -> dict[str, Any]:
        known = {**COMMON, **self.options}
        given: dict[str, Any] = {}
        for spelled, text in parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)):
            name = self.renamed.get(spelled, spelled)
            if name != spelled:
                log.warning("broker option renamed", option=spelled, use=name)
            if name not in known:
                raise ValueError(f"the option {spelled!r} is not known")
            if name in given:
                raise ValueError(f"{name} is given twice")
            given[name] = _read(name, known[name], text)
        return given

    def _allowed(self) -> str:
        options = {**self.options, **COMMON}
        return f"{self.form} with the options {', '.join(f'{name} ({one.allowed})' for name, one in options.items())}"


def without_credentials(url: str) -> str:
    """The URL as errors may show it: neither user and password nor options, which may hold one by mistake."""
    scheme, separator, rest = url.partition("://")
    shown = rest.partition("?")[0].rpartition("@")[2]
    return f"{scheme}://{shown}" if separator else scheme.rpartition("@")[2]


def _tls(given: dict[str, Any], secure: bool) -> TlsOptions | None:
    """Takes the options of TLS out of `given`."""
    wanted = given.pop("tls", secure) or secure
    files = {name: given.pop(f"tls_{name}", None) for name in ("ca", "cert", "key")}
    named = [f"tls_{name}" for name, value in files.items() if value is not None]
    if named and not wanted:
        raise ValueError(f"{named[0]} needs TLS")
    if files["key"] is not None and files["cert"] is None:
        raise ValueError("tls_key needs tls_cert")
    return TlsOptions(**files) if wanted else None


def _read(name: str, option: Option, text: str) -> Any:
    try:
        return option.read(text)
    except (ValueError, KeyError):
        raise ValueError(f"{name} must be {option.allowed}") from None


def _within(value: Any, low: float, high: float) -> Any:
    if not low <= value <= high:
        raise ValueError(value)
    return value


def _matched(found: re.Match[str] | None) -> re.Match[str]:
    if found is None:
        raise ValueError
    return found


def _address(text: str, port: int) -> str:
    found = _matched(_ADDRESS.fullmatch(text))
    if not 0 < int(found[2] or port) < 65536:
        raise ValueError(text)
    return f"{found[1]}:{found[2] or port}"
