"""Follows README from its top to the reader's own result, and says how long that took.

    python -m tools.release.first_result

The clock starts when `pip install` has ended, in a virtual environment with the wheel of this clone, and nothing of it
was ever run. `app.py` is saved and `oraculo dev` is started; `oraculo submit` is typed once the server has said its
address. What the reader takes to read and paste comes on top.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.release import build
from tools.servers.server import free_port

README = build.ROOT / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
EXTRAS = "server,workers"  # what README installs
PROMISED_S = 60.0
ADDRESS_TIMEOUT_S, STOP_TIMEOUT_S = 240.0, 60.0


@dataclass(frozen=True)
class FirstHour:
    """What README has before the first result: the program, the commands after the install, and what is shown."""

    prose: str
    program: str
    commands: tuple[str, ...]
    shown: str


@dataclass(frozen=True)
class Seconds:
    """How long it took until the server had said its address, and until the result was there."""

    address: float
    result: float


def before_the_result(readme: str) -> FirstHour:
    """Read README up to the first thing that it shows; ValueError when it has no program before that."""
    program, commands = "", list[str]()
    for block in BLOCK.finditer(readme):
        language, content = block.groups()
        if language == "python":
            program = content
        if language != "console":
            continue
        lines = content.splitlines()
        commands += [line[2:].partition("#")[0].rstrip() for line in lines if line.startswith("$ ")]
        shown = [line for line in lines if not line.startswith("$ ")]
        if shown and program:
            asked = tuple(one for one in commands if not one.startswith("pip install"))
            return FirstHour(BLOCK.sub("", readme[: block.end()]), program, asked, shown[0])
    raise ValueError("README shows no result of a program")


def follow(hour: FirstHour, bin_folder: Path, folder: Path) -> Seconds:
    """Do in an empty folder what README says, with the commands of an environment that has Oráculo; ValueError: what
    comes out is not what README shows."""
    serve, submit = hour.commands
    port, log = free_port(), folder / "dev.log"
    env = {"PATH": f"{bin_folder}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}
    env |= {"ORACULO_PORT": str(port), "ORACULO_URL": f"http://127.0.0.1:{port}"}  # 8000 may be somebody's
    began = time.monotonic()
    (folder / "app.py").write_text(hour.program, encoding="utf-8")
    with log.open("wb") as output:
        server = subprocess.Popen(["bash", "-c", f"exec {serve}"], cwd=folder, env=env, stdout=output, stderr=output)
    try:
        while f":{port}" not in log.read_text(encoding="utf-8"):
            if server.poll() is not None or time.monotonic() - began > ADDRESS_TIMEOUT_S:
                raise ValueError(f"{serve} said no address: {log.read_text(encoding='utf-8')}")
            time.sleep(0.01)
        address = time.monotonic() - began
        done = subprocess.run(["bash", "-c", submit], cwd=folder, env=env, capture_output=True, text=True, check=False)
        result = time.monotonic() - began
    finally:
        server.terminate()
        server.wait(STOP_TIMEOUT_S)
    if not re.search(".*".join(re.escape(part.strip()) for part in hour.shown.split("…")), done.stdout):
        raise ValueError(f"README shows {hour.shown!r}; {submit} said {done.stdout!r} {done.stderr!r}")
    return Seconds(round(address, 2), round(result, 2))


def main() -> None:
    hour = before_the_result(README.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        wheel = next(path for path in build.packages(folder / "dist") if path.suffix == ".whl")
        python = build.environment(folder / "environment", Path(sys.executable), wheel, EXTRAS)
        (folder / "reader").mkdir()
        seconds = follow(hour, python.parent, folder / "reader")
    sys.stdout.write(json.dumps({**asdict(seconds), "cores": os.cpu_count(), "load": os.getloadavg()[0]}) + "\n")


if __name__ == "__main__":
    main()
