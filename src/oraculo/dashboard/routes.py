"""All routes of the dashboard, for the application to take in."""

from __future__ import annotations

from oraculo.dashboard import (
    actions,
    assets,
    dead_letters,
    new,
    overview,
    preferences,
    queues,
    reference,
    run,
    runs,
    schedules,
    security,
    sla,
    waits,
    why,
    workers,
)

ROUTERS = [
    overview.router,
    runs.router,
    run.router,
    waits.router,
    why.router,
    dead_letters.router,
    schedules.router,
    sla.router,
    workers.router,
    queues.router,
    security.router,
    new.router,
    actions.router,
    preferences.router,
    reference.router,
    assets.router,
]
