"""Following an orchestration over connections that break: where to go on, what to pass on, when it is over."""

from __future__ import annotations

from time import monotonic

import orjson

from oraculo.client.calls import API, CallPlan, HttpCall, Pause, is_temporary, path_segment, retry_pause_s, was_reached
from oraculo.client.results import RunEvent
from oraculo.errors import OraculoError

RECONNECT_TIMEOUT_S = 60.0  # trouble after which a stream that was running gives up


class ResumableStream:
    """The part of `stream` that both clients share: skips no event and repeats none."""

    def __init__(self, correlation_id: str, after: int) -> None:
        self.correlation_id = correlation_id
        self.last = after
        self.over = False
        self._began = False
        self._tries = 0
        self._trouble_since: float | None = None

    def call(self) -> HttpCall:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(self.last)}
        return HttpCall("GET", f"{API}/orchestrations/{path_segment(self.correlation_id)}/stream", headers=headers)

    def take(self, name: str, data: str) -> RunEvent | None:
        """Return the event in `data`, or None when it was seen before. The name `fim` ends the stream."""
        self._began, self._tries, self._trouble_since = True, 0, None
        if name == "fim":
            self.over = True
        if not data or name == "fim":
            return None
        event: RunEvent = orjson.loads(data)
        if event["seq"] <= self.last:
            return None
        self.last = event["seq"]
        return event

    def broken(self, error: OraculoError) -> CallPlan[None]:
        """Go on after a pause; raise when the server was never reached, refuses for good, or was away for too long."""
        if self.over:
            return
        now = monotonic()
        if self._trouble_since is None:
            self._trouble_since = now
        self._began = self._began or was_reached(error)
        if not self._began or not is_temporary(error) or now - self._trouble_since > RECONNECT_TIMEOUT_S:
            raise error
        yield Pause(retry_pause_s(self._tries))
        self._tries += 1
