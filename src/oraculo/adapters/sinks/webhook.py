"""Delivers notices as webhooks: one POST per attempt, signed, to an address that was checked.

Each attempt resolves the name once, checks every answer (`address_guard`), and connects to a checked address
while TLS and the Host header keep the original name. So a name cannot change its mind between check and use.
Each attempt has a connection of its own: a pool would key it by address, and hand one host's verified connection to
another host on the same address. There is no HTTP client, hence no redirects, cookies or proxies from the environment.

The status line decides the outcome. What the receiver does after it (a body without end, a reset) is cut off
and costs nothing; before it, any trouble means RETRY.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Self

from oraculo import __version__
from oraculo.adapters.sinks.address_guard import Refusal, Target, admit, examine, parse_allow
from oraculo.adapters.sinks.webhook_answer import EXCERPT_MAX_CHARS, Answer
from oraculo.adapters.sinks.webhook_signing import key_of, signed_headers
from oraculo.ports.notifier import Notice, Outcome, Receipt

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

MAX_RETRY_AFTER = timedelta(hours=24)
MAX_ADDRESSES = 4  # tried per attempt; all are checked
_THROTTLING_STATUSES = frozenset({429, 502, 503, 504})


async def resolve(host: str, port: int) -> Sequence[str]:
    """Ask the system's resolver, in the order it prefers."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(entry[4][0]) for entry in found]


class WebhookNotifier:
    """Notifier over HTTP. An async context manager; `notify` may run concurrently.

    `secrets` are `whsec_…`; each adds a signature. `allow` is the operator's list of exact `host:port` that may be
    private or plain http. Both raise ValueError at once when malformed. `timeout` bounds a whole attempt, in seconds.
    """

    def __init__(
        self,
        secrets: Sequence[str] = (),
        allow: Collection[str] = (),
        timeout: float = 15.0,
        *,
        clock: Callable[[], datetime],
        resolver: Resolver = resolve,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._keys = [key_of(secret) for secret in secrets]
        self._allow = parse_allow(allow)
        self._timeout = timeout
        self._clock = clock
        self._resolver = resolver
        self._ssl = ssl_context
        self._entered = False

    async def __aenter__(self) -> Self:
        self._entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing stays open between attempts."""

    async def notify(self, notice: Notice) -> Receipt:
        if not self._entered:
            raise RuntimeError("enter the WebhookNotifier before use")
        target = examine(notice.url, self._allow)
        if isinstance(target, Refusal):
            return Receipt(Outcome.REFUSED, target.reason)
        tls = await self._tls()
        answer = Answer()
        trouble = ""
        try:
            async with asyncio.timeout(self._timeout):
                addresses = await self._addresses(target)
                if isinstance(addresses, Refusal):
                    return Receipt(Outcome.REFUSED, addresses.reason)
                await self._post(target, addresses, notice, answer, tls)
        except TimeoutError:
            trouble = f"no complete answer in {self._timeout:g} s"
        except Exception as error:  # a hostile receiver must not find an exception that is not handled
            trouble = f"{type(error).__name__}: {error}".rstrip(": ")
        return self._receipt(answer, trouble)

    async def _tls(self) -> ssl.SSLContext:
        """The system's certificates, read when the first notice is sent: most processes never send one."""
        if self._ssl is None:
            self._ssl = await asyncio.to_thread(_tls_context)
        return self._ssl

    async def _addresses(self, target: Target) -> tuple[str, ...] | Refusal:
        if target.address is not None:
            return (str(target.address),)
        addresses = admit(target, await self._resolver(target.host, target.port))
        if not addresses:
            raise OSError(f"{target.host} has no address")
        return addresses

    async def _post(
        self, target: Target, addresses: Sequence[str], notice: Notice, answer: Answer, tls: ssl.SSLContext
    ) -> None:
        from oraculo.adapters.sinks.webhook_http import post

        headers = {
            **notice.headers,
            "host": target.host_header,
            "user-agent": f"oraculo/{__version__}",
            "content-type": "application/json",
            "accept-encoding": "identity",
            "connection": "close",
            **({} if notice.traceparent is None else {"traceparent": notice.traceparent}),
            **signed_headers(self._keys, notice.webhook_id, self._clock(), notice.body),
        }
        await post(target, addresses[:MAX_ADDRESSES], headers, notice.body, answer, tls, self._timeout)

    def _receipt(self, answer: Answer, trouble: str) -> Receipt:
        if answer.status is None:
            return Receipt(Outcome.RETRY, _shown(trouble or "no answer"))
        detail, outcome, wait = f"HTTP {answer.status}", Outcome.RETRY, None
        if 200 <= answer.status < 300:
            outcome = Outcome.DELIVERED
        elif answer.status == 410:
            outcome = Outcome.REFUSED
        elif answer.status in _THROTTLING_STATUSES:
            wait = parse_retry_after(answer.retry_after, self._clock())
        elif 300 <= answer.status < 400:
            detail += " (redirects are not followed)"
        if excerpt := _shown(answer.excerpt.decode("utf-8", "replace")):
            detail += f": {excerpt}"
        return Receipt(outcome, detail, answer.status, wait)


def _tls_context() -> ssl.SSLContext:
    from oraculo.adapters.sinks.webhook_http import tls_context  # its HTTP library, too, is for those who send

    return tls_context()


def parse_retry_after(value: str, now: datetime) -> timedelta | None:
    """Retry-After in seconds or as an HTTP date, never negative, at most a day; None when it says neither."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        seconds = int(value) if len(value) <= 6 else MAX_RETRY_AFTER.total_seconds()
        return min(timedelta(seconds=seconds), MAX_RETRY_AFTER)
    if not 10 <= len(value) <= 64:
        return None
    try:
        at = parsedate_to_datetime(value)
        wait = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    return max(timedelta(0), min(wait, MAX_RETRY_AFTER))


def _shown(text: str) -> str:
    """The first characters, with whatever could act on a terminal or reorder a line spelled out."""
    text = text[:EXCERPT_MAX_CHARS].strip()
    shown = "".join(
        ch if ch.isprintable() and ch != "\\" else ch.encode("unicode_escape").decode("ascii") for ch in text
    )
    return shown[:EXCERPT_MAX_CHARS]
