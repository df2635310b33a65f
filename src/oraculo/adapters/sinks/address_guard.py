"""Where a webhook may go: URL rules and our own table of addresses (the SSRF guard).

Three questions, asked in this order and answered without a network:

    check_url(url, allow)    at the API edge: why this URL is not acceptable, or None; never asks the DNS
    examine(url, allow)      at delivery: the parts of an acceptable URL, or why it is refused
    admit(target, answers)   after the one DNS query: the addresses to connect to, or why they are refused

The grammar is narrower than any URL standard, on purpose: two parsers that read the same text differently are
how guards get bypassed, so whatever is not plainly spelled is refused, and the parts read here are the parts
used to connect. The table is ours because `ipaddress.is_global` of Python 3.11 lets NAT64, 6to4, multicast,
site-local and newer reserved ranges through. An exact `host:port` on the operator's allow-list is
exempt from the rules on scheme, port, name and address, never from the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

IPAddress = IPv4Address | IPv6Address

URL_MAX_CHARS = 2_048
PUBLIC_PORTS = (443, 8443)
ALLOWED_TEXT = "allowed: https to a public host on port 443 or 8443, or a host:port on the operator's allow-list"
_DEFAULT_PORT = {"https": 443, "http": 80}

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^#]*)(#.*)?")
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::([1-9][0-9]{0,4}))?")
_PATH = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?\[\]-]|%[0-9A-Fa-f]{2})*")
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*")
_PUBLIC_NAME = re.compile(r"\.[a-z][^.]*\Z")  # at least two labels; a top-level domain starts with a letter
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_OTHER_DOTS = re.compile("[\u3002\uff0e\uff61]")  # IDNA takes these for dots; they are not typed by accident

# Suffixes that never belong to a public host (RFC 6761 and 8375, ICANN's reservations, common habits).
_LOCAL_SUFFIXES = (
    *(".localhost", ".localdomain", ".local", ".internal", ".intranet", ".private", ".lan", ".home", ".corp"),
    *(".home.arpa", ".onion", ".invalid", ".alt"),
)

_REFUSED_V4 = {
    ip_network(block): kind
    for block, kind in {
        "0.0.0.0/8": "this network",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "carrier-grade NAT",
        "127.0.0.0/8": "loopback",
        "168.63.129.16/32": "cloud metadata",  # Azure's, on an address that looks public
        "169.254.0.0/16": "link-local",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "protocol assignments",
        "192.0.2.0/24": "documentation",
        "192.31.196.0/24": "AS112",
        "192.52.193.0/24": "AMT",
        "192.88.99.0/24": "6to4 relay",
        "192.168.0.0/16": "private",
        "192.175.48.0/24": "AS112",
        "198.18.0.0/15": "benchmarking",
        "198.51.100.0/24": "documentation",
        "203.0.113.0/24": "documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
    }.items()
}

_GLOBAL_V6 = ip_network("2000::/3")
# Both lists are read in order. Outside 2000::/3 everything is refused; these only name the common ones. 6to4 and
# Teredo are refused whatever they embed: no webhook is served there, and the embedded address decides the route.
_REFUSED_V6 = {
    ip_network(block): kind
    for block, kind in {
        "::/128": "unspecified",
        "::1/128": "loopback",
        "::/96": "IPv4-compatible",
        "64:ff9b:1::/48": "local NAT64",
        "100::/64": "discard-only",
        "2001::/32": "Teredo",
        "2001::/23": "protocol assignments",
        "2001:db8::/32": "documentation",
        "2002::/16": "6to4",
        "2620:4f:8000::/48": "AS112",
        "3ffe::/16": "6bone",
        "3fff::/20": "documentation",
        "5f00::/16": "segment routing",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "fec0::/10": "site-local",
        "ff00::/8": "multicast",
    }.items()
}
_NAT64 = ip_network("64:ff9b::/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)  # the upper half of an interface id that ends in an IPv4 address


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, in words that may be shown to the sender of the URL. Never an address that a name resolved to."""

    reason: str


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of an acceptable URL. `host` is lower-case ASCII (or a canonical address, without brackets)."""

    scheme: str
    host: str
    port: int
    path: str  # with the query
    address: IPAddress | None  # when the host is an address: nothing to resolve
    trusted: bool  # on the operator's allow-list

    @property
    def host_header(self) -> str:
        name = _bracketed(self.host)
        return name if self.port == _DEFAULT_PORT[self.scheme] else f"{name}:{self.port}"


def address_refusal(address: IPAddress) -> str | None:
    """The kind of a non-public address ("loopback", "private"...), or None for global unicast."""
    if isinstance(address, IPv4Address):
        return next((kind for block, kind in _REFUSED_V4.items() if address in block), None)
    if address.scope_id is not None:
        return "bound to a zone"
    embedded = address.ipv4_mapped
    if embedded is None and address in _NAT64:
        embedded = IPv4Address(int(address) & 0xFFFF_FFFF)
    if embedded is not None:
        return address_refusal(embedded)
    for block, kind in _REFUSED_V6.items():
        if address in block:
            return kind
    if address not in _GLOBAL_V6:
        return "not global unicast"
    if (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        return address_refusal(IPv4Address(int(address) & 0xFFFF_FFFF))
    return None


def parse_allow(entries: Collection[str]) -> frozenset[str]:
    """The allow-list in normal form. Raises ValueError on an entry that is not exactly `host:port`."""
    return frozenset(_allow_entry(entry) for entry in entries)


def check_url(url: str, allow: Collection[str] = ()) -> str | None:
    """Why `url` may not be a webhook, with what would be allowed; None if it may. For use when a request arrives."""
    found = examine(url, parse_allow(allow))
    return found.reason if isinstance(found, Refusal) else None


def examine(url: str, allow: frozenset[str]) -> Target | Refusal:
    """Read and judge `url` without the DNS. `allow` comes from `parse_allow`."""
    if len(url) > URL_MAX_CHARS:
        return Refusal(f"the URL is longer than {URL_MAX_CHARS} characters")
    parts = _URL.fullmatch(url)
    if parts is None:
        return _refused("not an absolute URL")
    scheme, authority, path, fragment = parts[1].lower(), parts[2], parts[3], parts[4]
    if scheme not in _DEFAULT_PORT:
        return _refused(f"scheme {scheme[:20]!r}")
    if "@" in authority:
        return _refused("a user name or password in the URL")
    if fragment is not None:
        return _refused("a fragment (#) in the URL")
    if not _PATH.fullmatch(path):
        return _refused("a character in the path or query that must be percent-encoded")
    place = _place(authority)
    if isinstance(place, Refusal):
        return place
    host, address, given_port = place
    port = given_port or _DEFAULT_PORT[scheme]
    trusted = f"{_bracketed(host)}:{port}" in allow
    target = Target(scheme, host, port, path if path.startswith("/") else f"/{path}", address, trusted)
    return target if trusted else _judge(target)


def admit(target: Target, answers: Sequence[str]) -> tuple[str, ...] | Refusal:
    """The addresses to connect to, in the order given; one that is not public refuses them all.

    The reason names the kind of address only: what an internal name resolves to is not for the outside.
    """
    addresses: list[str] = []
    for answer in answers:
        try:
            address = ip_address(answer)
        except ValueError:
            return _refused(f"{target.host} does not resolve to an internet address")
        if not target.trusted and (kind := address_refusal(address)):
            return _refused(f"{target.host} resolves to an address that is not public ({kind})")
        if str(address) not in addresses:
            addresses.append(str(address))
    return tuple(addresses)


def _judge(target: Target) -> Target | Refusal:
    """The rules for places that are not on the allow-list."""
    if target.scheme != "https":
        return _refused(f"scheme {target.scheme!r}")
    if target.port not in PUBLIC_PORTS:
        return _refused(f"port {target.port}")
    if target.address is not None:
        kind = address_refusal(target.address)
        return target if kind is None else _refused(f"{target.host} is not a public address ({kind})")
    if not _PUBLIC_NAME.search(target.host) or f".{target.host}".endswith(_LOCAL_SUFFIXES):
        return _refused(f"{target.host} is not a public name")
    return target


def _place(authority: str) -> tuple[str, IPAddress | None, int | None] | Refusal:
    """`host[:port]` → normal host, its address if it is one, and the port if given."""
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        return _refused("the host or port cannot be read")
    port = int(parts[2]) if parts[2] else None
    if port is not None and port > 65_535:
        return _refused(f"port {port}")
    text = parts[1]
    if text.startswith("["):
        return _refused("a zone in the address") if "%" in text else _address(text[1:-1], IPv6Address, port)
    host = _ascii_name(text)
    if host is None:
        return _refused("the host is not a valid name")
    # What ends in a number is an IPv4 address to getaddrinfo, in forms (octal, hex, short) we do not want to know.
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        return _address(host, IPv4Address, port)
    return host, None, port


def _address(
    text: str, kind: type[IPv4Address] | type[IPv6Address], port: int | None
) -> tuple[str, IPAddress, int | None] | Refusal:
    try:
        address = kind(text)
    except ValueError:
        return _refused("the host is not an address in its usual form")
    return str(address), address, port


def _ascii_name(text: str) -> str | None:
    host = text.lower()
    if len(host) > 253 or _OTHER_DOTS.search(host):
        return None
    if not host.isascii():
        import idna  # its tables are large, and such hosts are seldom

        try:
            host = idna.encode(host).decode("ascii")
        except UnicodeError:
            return None
    return host if len(host) <= 253 and _NAME.fullmatch(host) else None


def _allow_entry(entry: str) -> str:
    place = _place(entry)
    if isinstance(place, Refusal) or place[2] is None:
        raise ValueError(f"{entry!r} is not an exact host:port")
    return f"{_bracketed(place[0])}:{place[2]}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _refused(what: str) -> Refusal:
    return Refusal(f"not allowed: {what}; {ALLOWED_TEXT}")
