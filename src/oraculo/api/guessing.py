"""Limits on guessing: an address that gave many wrong credentials has to wait."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from oraculo.api.problems import ProblemError

FAILURES_MAX = 20  # in WINDOW_S
WINDOW_S = 60.0
ADDRESSES_MAX = 10_000


class GuessLimiter:
    """Failures of each address in its current window. An IPv6 network of 64 bits counts as one address, since one
    customer has all of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()  # address → count, end of the window

    def failed(self, address: str) -> None:
        """Count one wrong credential. The last one that is allowed begins a window in which none is."""
        name, now = _network(address), self._clock()
        count, until = self._failures.pop(name, (0, 0.0))
        if now >= until:
            count, until = 0, now + WINDOW_S
        if count < FAILURES_MAX:
            count += 1
            if count == FAILURES_MAX:
                until = now + WINDOW_S
        self._failures[name] = (count, until)
        if len(self._failures) > ADDRESSES_MAX:
            self._failures.popitem(last=False)

    def wait_s(self, address: str) -> int:
        """Seconds until the address may try again; 0 when it may now."""
        count, until = self._failures.get(_network(address), (0, 0.0))
        left = until - self._clock()
        return max(1, round(left)) if count >= FAILURES_MAX and left > 0 else 0

    def refusal(self, address: str) -> ProblemError | None:
        """The problem for an address that has to wait; None when it may try."""
        wait_s = self.wait_s(address)
        if not wait_s:
            return None
        detail = f"{FAILURES_MAX} wrong credentials came from {address}; try again in {wait_s} s"
        return ProblemError("too_many_failures", detail, headers={"Retry-After": str(wait_s)})


def _network(address: str) -> str:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{int(found) >> 64:x}/64"
