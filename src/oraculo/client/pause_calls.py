"""The call plans of pausing and resuming; see calls.py."""

from __future__ import annotations

from oraculo.client.calls import API, CallPlan, HttpAnswer, HttpCall, path_segment
from oraculo.client.pause_results import (
    BreakerDetails,
    DestinationPauseAnswer,
    DestinationPauseDetails,
    PauseAnswer,
    PriorityAnswer,
    ProbeAnswer,
)


def pause(correlation_id: str, reason: str = "") -> CallPlan[PauseAnswer]:
    """Pause one orchestration."""
    return _run(correlation_id, "pause", reason)


def resume(correlation_id: str, reason: str = "") -> CallPlan[PauseAnswer]:
    """Let one orchestration go on."""
    return _run(correlation_id, "resume", reason)


def prioritise(correlation_id: str, priority: int, reason: str = "") -> CallPlan[PriorityAnswer]:
    """Change how urgent one orchestration is."""
    path = f"{API}/orchestrations/{path_segment(correlation_id)}"
    got: HttpAnswer = yield HttpCall("PATCH", path, body={"prioridade": priority, "motivo": reason})
    answer: PriorityAnswer = got.body
    return answer


def pause_queue(queue: str | None, reason: str = "") -> CallPlan[DestinationPauseAnswer]:
    """Pause a destination; None: all of them."""
    return _destination(queue, "pause", reason)


def resume_queue(queue: str | None, reason: str = "") -> CallPlan[DestinationPauseAnswer]:
    """Let orders go to a destination again; None: end the pause of all."""
    return _destination(queue, "resume", reason)


def pauses() -> CallPlan[list[DestinationPauseDetails]]:
    """List the destinations that are paused."""
    got: HttpAnswer = yield HttpCall("GET", f"{API}/pauses")
    found: list[DestinationPauseDetails] = got.body["pausas"]
    return found


def breakers() -> CallPlan[list[BreakerDetails]]:
    """List the breakers that are open."""
    got: HttpAnswer = yield HttpCall("GET", f"{API}/breakers")
    found: list[BreakerDetails] = got.body["disjuntores"]
    return found


def probe_queue(queue: str) -> CallPlan[ProbeAnswer]:
    """Let the next probe of a destination go now."""
    got: HttpAnswer = yield HttpCall("POST", f"{API}/queues/{path_segment(queue)}/probe")
    answer: ProbeAnswer = got.body
    return answer


def _destination(queue: str | None, what: str, reason: str) -> CallPlan[DestinationPauseAnswer]:
    path = f"{API}/{what}" if queue is None else f"{API}/queues/{path_segment(queue)}/{what}"
    got: HttpAnswer = yield HttpCall("POST", path, body={"motivo": reason})
    answer: DestinationPauseAnswer = got.body
    return answer


def _run(correlation_id: str, what: str, reason: str) -> CallPlan[PauseAnswer]:
    path = f"{API}/orchestrations/{path_segment(correlation_id)}/{what}"
    got: HttpAnswer = yield HttpCall("POST", path, body={"motivo": reason})
    answer: PauseAnswer = got.body
    return answer
