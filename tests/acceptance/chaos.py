"""How hard the tests here hurt: in `make test` enough for a fault to show, in `make chaos` (ORACULO_CHAOS_KILLS) as
often and as long as docs/reliability.md says."""

from __future__ import annotations

import os

KILLS = int(os.environ.get("ORACULO_CHAOS_KILLS", "0"))
LONG = KILLS > 0


def times(few: int) -> int:
    """How often: `few` in `make test`."""
    return max(few, KILLS)
