"""Following an orchestration over connections that break: where to go on, what to pass on, when it is over."""

from __future__ import annotations

from time import monotonic

import orjson

from oraculo.client_calls import API, Call, Object, Pause, Script, backoff, is_there, is_trouble, part
from oraculo.errors import OraculoError

RIDE_OUT = 60.0  # seconds of trouble after which a stream that was running gives up


class EventStream:
    """The part of `stream` that both drivers share. Skips nothing and repeats nothing."""

    def __init__(self, correlation_id: str, after: int) -> None:
        self.correlation_id = correlation_id
        self.last = after
        self.over = False
        self._began = False
        self._tries = 0
        self._trouble_since: float | None = None

    def call(self) -> Call:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(self.last)}
        return Call("GET", f"{API}/orchestrations/{part(self.correlation_id)}/stream", headers=headers)

    def take(self, name: str, data: str) -> Object | None:
        """The event in `data`, unless it was seen before. `fim` says that all is told."""
        self._began, self._tries, self._trouble_since = True, 0, None
        if name == "fim":
            self.over = True
        if not data or name == "fim":
            return None
        event: Object = orjson.loads(data)
        if event["seq"] <= self.last:
            return None
        self.last = event["seq"]
        return event

    def broken(self, error: OraculoError) -> Script[None]:
        """Go on after a pause, or raise when it was never there, will never work, or was away for too long."""
        if self.over:
            return
        now = monotonic()
        if self._trouble_since is None:
            self._trouble_since = now
        self._began = self._began or is_there(error)
        if not self._began or not is_trouble(error) or now - self._trouble_since > RIDE_OUT:
            raise error
        yield Pause(backoff(self._tries))
        self._tries += 1
