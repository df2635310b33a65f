"""What the machine was doing while a step ran: time stolen by the hypervisor, and load that was not ours.

Reads /proc/stat, so on systems other than Linux the figures are None. "Others" is the busy time of all processors minus
the processor time of this process and of every descendant that was waited for; a process that outlives its parent
would count as foreign, so every server here is stopped by whoever started it.
"""

from __future__ import annotations

import os
import platform
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STAT = Path("/proc/stat")


@dataclass(frozen=True)
class Reading:
    """Seconds since boot, summed over all processors, and our own processor time at the same instant."""

    at: float
    busy: float
    steal: float
    own: float


@dataclass(frozen=True)
class Load:
    """Average over a span, in cores."""

    seconds: float
    steal: float | None
    others: float | None


def read() -> Reading | None:
    """One reading, or None where /proc/stat does not exist."""
    if not STAT.exists():
        return None
    ticks = [int(field) for field in STAT.read_text().splitlines()[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks[:8]
    tick = os.sysconf("SC_CLK_TCK")
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return Reading(time.monotonic(), (user + nice + system + irq + softirq) / tick, steal / tick, own)


class Watch:
    """Started on creation; `stop` says what happened since."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.before = read()

    def stop(self) -> Load:
        after = read()
        seconds = max(time.monotonic() - self.started, 1e-9)
        if self.before is None or after is None:
            return Load(seconds, None, None)
        others = (after.busy - self.before.busy) - (after.own - self.before.own)
        return Load(seconds, (after.steal - self.before.steal) / seconds, max(0.0, others / seconds))


def wait_for_quiet(limit: float, patience: float) -> None:
    """Return once others use less than `limit` cores over a second, or after `patience` seconds."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        watch = Watch()
        time.sleep(1)
        others = watch.stop().others
        if others is None or others < limit:
            return


def describe() -> dict[str, Any]:
    """The machine in a few words. No host name, no path."""
    kernel = ".".join(platform.release().split(".")[:2])
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processors": os.cpu_count(),
        "model": processor(),
        "memory_gib": round(memory, 1),
        "system": f"{distribution()}, {platform.system()} {kernel}",
        "python": platform.python_version(),
        "load_at_start": [round(value, 2) for value in os.getloadavg()],
    }


def processor() -> str:
    """The processor's model name and clock, as the kernel tells it."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    fields = dict(line.split(":", 1) for line in info.read_text().splitlines() if ":" in line)
    named = {key.strip(): value.strip() for key, value in fields.items()}
    return f"{named.get('model name', platform.machine())}, {float(named.get('cpu MHz', 0)):.0f} MHz"


def distribution() -> str:
    """The Linux distribution, or the system's name elsewhere."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()
