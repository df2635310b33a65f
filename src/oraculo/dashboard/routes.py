"""All routes of the dashboard, for the application to take in."""

from __future__ import annotations

from oraculo.dashboard import (
    actions,
    assets,
    dead_letters,
    new,
    overview,
    preferences,
    reference,
    run,
    runs,
    schedules,
    security,
    waits,
    workers,
)

ROUTERS = [
    overview.router,
    runs.router,
    run.router,
    waits.router,
    dead_letters.router,
    schedules.router,
    workers.router,
    security.router,
    new.router,
    actions.router,
    preferences.router,
    reference.router,
    assets.router,
]
