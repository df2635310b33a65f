"""Profiles that a run has written, as text."""

from __future__ import annotations

import pstats
from pathlib import Path
from typing import TextIO

FUNCTIONS_SHOWN = 40


def show(folder: Path, to: TextIO) -> None:
    """The functions that took the most time themselves, of each process that was profiled."""
    for path in sorted(folder.glob("*.prof")):
        to.write(f"\n== {path.stem}: own time, the first {FUNCTIONS_SHOWN} ({path})\n")
        pstats.Stats(str(path), stream=to).sort_stats("tottime").print_stats(FUNCTIONS_SHOWN)
