"""The recording that README shows is made of the real dashboard, from the first event of a run to its last."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import ImageChops
from PIL.GifImagePlugin import GifImageFile
from tools.docs import recording

import servers

EVENTS_LEAST = 20


@pytest.mark.xdist_group("chromium")
def test_a_recording_shows_a_run_from_its_first_event_to_its_end(tmp_path: Path) -> None:
    servers.use("chromium")
    target = tmp_path / "run.gif"
    subprocess.run([sys.executable, "-m", "tools.docs.recording", target], cwd=recording.ROOT, check=True)
    with GifImageFile(target) as made, GifImageFile(recording.TARGET) as shown:
        assert made.n_frames >= EVENTS_LEAST and shown.n_frames >= EVENTS_LEAST
        assert made.size == shown.size, "docs/images/run.gif was made with other measures: make recording"
        first = made.convert("RGB")
        made.seek(made.n_frames - 1)
        assert ImageChops.difference(first, made.convert("RGB")).getbbox() is not None
        assert made.info["duration"] == recording.LAST_FRAME_MS
