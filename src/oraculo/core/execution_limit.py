"""How long a worker may go on with one attempt."""

from __future__ import annotations

from datetime import timedelta


def execution_timeout(timeout: timedelta) -> timedelta:
    """One and a half times the timeout of the attempt: the orchestrator has given it up before."""
    return timeout * 1.5
