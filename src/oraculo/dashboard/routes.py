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
    workers,
)

ROUTERS = [
    overview.router,
    runs.router,
    run.router,
    dead_letters.router,
    workers.router,
    new.router,
    actions.router,
    preferences.router,
    reference.router,
    assets.router,
]
