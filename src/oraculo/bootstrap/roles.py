"""What a process does of the whole."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """The part of the work that a process takes on. Processes with different parts need a store that they can share."""

    ALL = "all"
    API = "api"  # takes requests; messages, deadlines and dead processes are looked after by others
    ENGINE = "engine"  # takes messages and looks after deadlines; answers probes and scrapers only
    TASKS = "tasks"  # a process of a Celery worker: does what tasks ask for

    @property
    def consumes(self) -> bool:
        """True when the process takes messages from queues, and looks after what others left."""
        return self in (Role.ALL, Role.ENGINE)
