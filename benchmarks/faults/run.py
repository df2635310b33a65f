"""The same faults for everybody: kill the worker, the broker, the orchestrator in the middle of the work, and count.

    benchmarks/setup.sh                                            # once: benchmarks/.venv and the servers
    python benchmarks/faults/run.py --json faults.json             # all rows, about half an hour
    python benchmarks/faults/run.py --rows oraculo_redis --faults worker
    python benchmarks/faults/run.py --report faults.json           # the table of a recorded run
    python benchmarks/faults/run.py --into benchmarks/RESULTS.md faults.json

Every trial starts fresh servers in a folder of its own (`trial.py`). Needs Python 3.11 and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

import machine  # noqa: E402

PYTHON = HERE.parent / ".venv" / "bin" / "python"
TRIAL_TIMEOUT_S = 420
ROWS = (
    ("celery_redis", "default"),
    ("celery_redis", "durable"),
    ("celery_rabbitmq", "default"),
    ("celery_rabbitmq", "durable"),
    ("dramatiq_redis", "default"),
    ("dramatiq_redis", "tuned"),
    ("dramatiq_rabbitmq", "default"),
    ("dramatiq_rabbitmq", "tuned"),
    ("dbos_postgres", "default"),
    ("temporal", "default"),
    ("oraculo_redis", "default"),
    ("oraculo_rabbitmq", "default"),
)
FAULTS = ("worker", "broker", "orchestrator")
KILLED = {
    "celery_redis": {"worker": "worker", "broker": "Redis"},
    "celery_rabbitmq": {"worker": "worker", "broker": "RabbitMQ", "orchestrator": "Redis (results, counters)"},
    "dramatiq_redis": {"worker": "worker", "broker": "Redis"},
    "dramatiq_rabbitmq": {"worker": "worker", "broker": "RabbitMQ", "orchestrator": "Redis (results, counters)"},
    "dbos_postgres": {"broker": "PostgreSQL", "orchestrator": "the process"},
    "temporal": {"worker": "worker", "orchestrator": "Temporal's server"},
    "oraculo_redis": {"worker": "worker", "broker": "Redis", "orchestrator": "`oraculo up`"},
    "oraculo_rabbitmq": {"worker": "worker", "broker": "RabbitMQ", "orchestrator": "`oraculo up`"},
}
"""What is killed. A part that is two things (Redis as broker and for results) is killed once."""
COUNTS = {
    "accepted": "accepted",
    "refused": "refused",
    "right": "finished right",
    "wrong": "wrong or failed",
    "stuck": "stuck",
    "executes_doubled": "execute performed twice",
    "collects_doubled": "collects performed twice",
}


def tried(peer: str, variant: str, fault: str, offered: int) -> dict[str, Any]:
    command = [str(PYTHON), "trial.py", "--peer", peer, "--variant", variant, "--fault", fault, "-n", str(offered)]
    with subprocess.Popen(
        command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        try:
            said, why = child.communicate(timeout=TRIAL_TIMEOUT_S)
        except BaseException:
            os.killpg(child.pid, signal.SIGTERM)
            raise
    try:
        found: dict[str, Any] = json.loads(said.strip().rpartition("\n")[2])
    except ValueError:
        return {"peer": peer, "variant": variant, "fault": fault, "error": why.strip()[-300:] or f"{child.returncode}"}
    return found


def recorded(rows: list[tuple[str, str]], faults: list[str], repeats: int, offered: int, file: Path | None) -> Any:
    record: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S +0000", time.gmtime()),
        "commit": _commit(),
        "machine": machine.describe(),
        "offered": offered,
        "trials": [],
    }
    for repeat in range(1, repeats + 1):
        for peer, variant in rows:
            for fault in (fault for fault in faults if fault in KILLED[peer]):
                trial = tried(peer, variant, fault, offered) | {"repeat": repeat, "load": os.getloadavg()[0]}
                record["trials"].append(trial)
                counts = " ".join(f"{name} {trial[name]}" for name in COUNTS if name in trial)
                print(f"{peer} {variant}, {fault}: {counts or trial['error']}", flush=True)
                if file is not None:
                    file.write_text(json.dumps(record, indent=1) + "\n")
    return record


def _commit() -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    said = subprocess.run(asked, cwd=HERE, capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown"


def table(record: dict[str, Any]) -> str:
    trials = record["trials"]
    repeats = max(trial["repeat"] for trial in trials)
    described = record["machine"]
    loads = [trial["load"] for trial in trials]
    lines = [
        f"- {record['date']}, commit {record['commit']}, {repeats} trial{'s' * (repeats > 1)} each, "
        f"load average {min(loads):.1f} to {max(loads):.1f}",
        f"- {described['processors']} processors ({described['model']}), {described['memory_gib']} GiB, "
        f"{described['system']}, Python {described['python']}",
        f"- {_versions(trials)}",
        "",
        f"| | killed | {' | '.join(COUNTS.values())} |",
        "| --- " * (2 + len(COUNTS)) + "|",
    ]
    for peer, variant in ROWS:
        for fault in KILLED[peer]:
            mine = [t for t in trials if (t["peer"], t["variant"], t["fault"]) == (peer, variant, fault)]
            if not mine:
                continue
            name = peer if variant == "default" else f"{peer}, {variant}"
            cells = [" · ".join(str(t[count]) if count in t else "–" for t in mine) for count in COUNTS]
            lines.append(f"| {name} | {KILLED[peer][fault]} | {' | '.join(cells)} |")
    failed = [f"- no figure: {t['peer']} {t['variant']}, {t['fault']}: {t['error']}" for t in trials if "error" in t]
    return "\n".join([*lines, *([""] if failed else []), *failed])


def _versions(trials: list[dict[str, Any]]) -> str:
    found = {name: version for trial in trials for name, version in trial.get("versions", {}).items()}
    return ", ".join(f"{name} {version}" for name, version in sorted(found.items()))


def put_into(page: Path, text: str) -> None:
    """Between the two marks of the page."""
    begin, end = "<!-- figures: faults -->", "<!-- end of figures: faults -->"
    whole = page.read_text()
    if begin not in whole or end not in whole:
        raise SystemExit(f"{page} has no {begin} … {end}")
    page.write_text(re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", whole, flags=re.DOTALL))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", help="names of rows, with commas; all by default")
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("-n", type=int, default=120, help="orchestrations of a trial")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--report", type=Path, help="only print the table of this record")
    parser.add_argument("--into", nargs=2, type=Path, metavar=("PAGE", "RECORD"), help="put its table into a page")
    wanted = parser.parse_args()
    if wanted.report or wanted.into:
        text = table(json.loads((wanted.report or wanted.into[1]).read_text()))
        put_into(wanted.into[0], text) if wanted.into else print(text)
        return
    rows = [row for row in ROWS if wanted.rows is None or row[0] in wanted.rows.split(",")]
    print(table(recorded(rows, wanted.faults.split(","), wanted.repeats, wanted.n, wanted.json)))


if __name__ == "__main__":
    main()
