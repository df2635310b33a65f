from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from oraculo.runtime import crash
from waiting import DEADLINE_S


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    crash.arm(None)


@pytest.mark.parametrize(
    "setting", ["nowhere", "after_commit:x", "after_commit:-1", "before_ack,nowhere:2", "before_ack:1:go"]
)
def test_unknown_points_are_refused_and_the_known_ones_listed(setting: str) -> None:
    with pytest.raises(ValueError, match="before_commit"):
        crash.arm(setting)


def test_without_a_setting_a_point_does_nothing() -> None:
    for setting in (None, ""):
        crash.arm(setting)
        for name in crash.ALL:
            crash.point(name)


def test_it_dies_the_nth_time_as_kill_9_would() -> None:
    program = (
        "from oraculo.runtime import crash; crash.arm('after_commit:3')\n"
        "for n in range(5): print(n, flush=True); crash.point('before_commit'); crash.point('after_commit')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (-signal.SIGKILL, ["0", "1", "2"])


def test_it_stops_once_until_it_is_let_go_on() -> None:
    program = (
        "from oraculo.runtime import crash; crash.arm('after_commit:2:stop')\n"
        "for n in range(4): print(n, flush=True); crash.point('after_commit')"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGSTOP
        process.send_signal(signal.SIGCONT)
        said, _ = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, said.split()) == (0, ["0", "1", "2", "3"])
