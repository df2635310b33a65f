"""What names of destinations and queues look like, on every broker."""

from __future__ import annotations

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}$"
QUEUE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,199}$"
