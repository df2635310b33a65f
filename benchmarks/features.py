"""What features cost that are off unless asked for: W1 in processor time, with everything off beside an older commit,
and with each of them on beside everything off.

    python benchmarks/features.py --before d1a3f8c --repeats 9 -n 1500 --json out.json
    python benchmarks/features.py --variants leases,leases+chosen
    python benchmarks/features.py --instructions --repeats 1 -n 300      on a busy machine, by callgrind

Every measurement is a process of its own. They take turns, in reverse order in every second repeat, so that whatever
else the machine does weighs on all alike; a ratio is of two measurements of the same repeat, and the median of those
is what counts. Processor time is that of the process, which has workers and broker inside, and of the processes that it
starts, until everything that reads the journal has read all of it. The older commit is measured with its own sources
and this virtual environment. With `leases`, two workers a queue lease without HTTP between: the dearest case of all.

With `--instructions` they are counted by callgrind, of the process itself alone: that hardly depends on what else the
machine does, but a process that is fifty times slower gathers more work into one commit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).parents[1]
STEP_TIMEOUT_S = 1800
WARM_UP_N = 50
COUNTED = "BENCH_COUNTED"  # in the environment of what runs under callgrind
PROJECTIONS = ("previsoes", "sla", "trilhas")
CHOSEN = {"ENABLE_INTELLIGENT_SCHEDULER": "true", "ORACULO_PREDICTIONS": "true"}
VARIANTS: dict[str, dict[str, str]] = {
    "before": {},
    "off": {},
    "chosen": CHOSEN,
    "policies": {"ORACULO_POLICIES": "embedded", "ORACULO_POLICIES_TIMEOUT_S": "60"},
    "sla": {"ORACULO_SLA": "true"},
    "leases": {},
    "leases+chosen": CHOSEN,
    "leases+affinity": {**CHOSEN, "SCHEDULER_ENABLE_AFFINITY": "true"},
}
BESIDE = {"off": "before", "chosen": "off", "policies": "off", "sla": "off", "leases+chosen": "leases",
          "leases+affinity": "leases"}  # fmt: skip
BUDGETS = {"off": 1.0, "chosen": 10.0, "policies": 15.0}  # per cent
USUAL = "before,off,chosen,policies"


# -- one measurement ---------------------------------------------------------------------------------------------------


async def measure(variant: str, n: int) -> dict[str, float]:
    from oraculo import logs
    from oraculo.bench.place import Place, opened

    logs.configure("ERROR", "text")

    class Featured(Place):
        def environment(self, folder: str) -> dict[str, str]:
            return {**Place.environment(self, folder), **VARIANTS[variant]}

    leases = variant.startswith("leases")
    async with opened(Featured(), workers=not leases) as stage, leasing(stage.oraculo, leases):
        oraculo = stage.oraculo
        await asyncio.gather(*(one(oraculo) for _ in range(WARM_UP_N)))
        await all_read(oraculo)
        counting("--instr=on")
        before, started = processor_s(), time.perf_counter()
        await asyncio.gather(*(one(oraculo) for _ in range(n)))
        seconds = time.perf_counter() - started
        await all_read(oraculo)
        used = processor_s() - before
        counting("--dump")
        return {"cpu_ms_each": used / n * 1000, "per_second": n / seconds}


def counting(how: str) -> None:
    """Have callgrind count instructions, or write how many there were, where this runs under it."""
    if COUNTED in os.environ:
        subprocess.run(["callgrind_control", how, str(os.getpid())], check=True, capture_output=True)


async def one(oraculo: Any) -> None:
    """One orchestration, to its result."""
    from oraculo.bench.work import REQUEST

    accepted = await oraculo.submit(REQUEST)
    ended = getattr(oraculo, "result_json", None)
    body = await (oraculo.ended(accepted.run) if ended is None else ended(accepted.run, wait=None))
    assert orjson.loads(body)["status"] == "concluida", body


async def all_read(oraculo: Any) -> None:
    store = oraculo.store
    while True:
        found = await store.cursors()
        lags = [await store.lag(position) for name, position in found.items() if name in PROJECTIONS]
        if all(one.steps == 0 for one in lags):
            return
        await asyncio.sleep(0.2)


def processor_s() -> float:
    """Seconds of processor time of this process and of those that it has started and that live."""
    children = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    ticks = 0
    for pid in children:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def leasing(oraculo: Any, wanted: bool) -> AsyncIterator[None]:
    """Two workers for each queue that lease, while this lasts."""
    if not wanted:
        yield
        return
    from oraculo.bench.work import worker

    tasks = [asyncio.create_task(lease(oraculo, queue, f"w{n}")) for queue in worker.queues for n in (1, 2)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def lease(oraculo: Any, queue: str, name: str) -> None:
    from oraculo.core.commands import RecordResult
    from oraculo.runtime.answers import AnswerReader
    from oraculo.wire import names

    read = AnswerReader(None)
    while True:
        works = []
        for found in await oraculo.leases.lease(queue, 32, 5.0, name, timedelta(minutes=5)):
            works.append(read(orjson.dumps(answer(orjson.loads(found.delivery.body))), names.RESULTS))
        if works:
            await oraculo.engine.submit(works)
        for work in works:
            assert isinstance(work.command, RecordResult)
            await oraculo.leases.answered(work.command.ticket, work.command.attempt, work.command)


def answer(order: dict[str, Any]) -> dict[str, Any]:
    collects = order["tipo_evento"] == "iniciar_coleta"
    named = {"fonte": order["payload"]["fonte"]} if collects else {"executador": order["payload"]["executador"]}
    said = {**named, "status": "ok", "dados": {"n": 1}, "resultado": {"n": 1}, "erros": []}
    return {
        **{key: order[key] for key in ("correlation_id", "ticket_id", "tentativa") if key in order},
        "tipo_evento": "resultado_coleta" if collects else "resultado_execucao",
        "payload": said,
        "timestamp": "2026-11-19T12:00:00Z",
    }


# -- all of them -------------------------------------------------------------------------------------------------------


def step(variant: str, n: int, before: Path, counted: bool) -> dict[str, Any]:
    """One measurement in a process of its own."""
    tree = before if variant == "before" else ROOT
    command = [sys.executable, __file__, "--measure", variant, "-n", str(n)]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    with tempfile.TemporaryDirectory(prefix="bench-counted-") as folder:
        out = Path(folder) / "callgrind.out"
        if counted:
            tool = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
            command, environment[COUNTED] = [*tool, *command], "1"
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=STEP_TIMEOUT_S, check=False, env=environment
        )
        if done.returncode != 0:
            raise SystemExit(f"{variant}: {done.stderr[-2000:]}")
        found = {"variant": variant, **json.loads(done.stdout.strip().rpartition("\n")[2])}
        if counted:
            found["instructions_each"] = instructions(out.with_name(out.name + ".1")) / n
        return found


def instructions(out: Path) -> int:
    lines = out.read_text(encoding="utf-8", errors="replace").splitlines()
    return int(next(line for line in lines if line.startswith(("totals:", "summary:"))).split()[1])


def summary(steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each variant with what it costs beside another one: the median over repeats, and their range."""
    field = "instructions_each" if all("instructions_each" in one for one in steps) else "cpu_ms_each"
    found: dict[tuple[int, str], float] = {(one["repeat"], one["variant"]): one[field] for one in steps}
    rows = []
    for variant in dict.fromkeys(one["variant"] for one in steps):
        mine = {repeat: value for (repeat, name), value in found.items() if name == variant}
        row: dict[str, Any] = {"variant": variant, field: round(statistics.median(mine.values()), 4)}
        other = BESIDE.get(variant)
        more = [(mine[n] / found[n, other] - 1) * 100 for n in mine if other and (n, other) in found]
        if more:
            row |= {"beside": other, "percent": round(statistics.median(more), 1), "lowest": round(min(more), 1),
                    "highest": round(max(more), 1), "budget_percent": BUDGETS.get(variant)}  # fmt: skip
        rows.append(row)
    return rows


def show(rows: Sequence[dict[str, Any]]) -> None:
    for row in rows:
        line = f"{row['variant']:16} "
        counted = row.get("instructions_each")
        line += (
            f"{row['cpu_ms_each']:.3f} ms of processor each" if counted is None else f"{counted:,.0f} instructions each"
        )
        if "percent" in row:
            line += f"  {row['percent']:+.1f} % beside {row['beside']} ({row['lowest']:+.1f} to {row['highest']:+.1f})"
        if row.get("budget_percent"):
            line += f", at most {row['budget_percent']:g} %"
        print(line, flush=True)


def compared(options: argparse.Namespace, before: Path) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    variants = options.variants.split(",")
    for repeat in range(options.repeats):
        for variant in variants if repeat % 2 == 0 else reversed(variants):
            steps.append({"repeat": repeat, **step(variant, options.n, before, options.instructions)})
            counted = steps[-1].get("instructions_each")
            seen = f"{steps[-1]['cpu_ms_each']:.3f} ms" if counted is None else f"{counted:,.0f} instructions"
            print(f"{repeat} {variant}: {seen}", flush=True)
            if options.json:
                record = {"n": options.n, "steps": steps, "summary": summary(steps)}
                options.json.write_text(json.dumps(record, indent=1) + "\n")
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", default="d1a3f8c", help="the older commit, or a folder with its tree")
    parser.add_argument("--variants", default=USUAL, help="of " + ", ".join(VARIANTS))
    parser.add_argument("-n", type=int, default=1500, help="orchestrations of one measurement")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path, help="write everything that was measured")
    parser.add_argument("--instructions", action="store_true", help="count instructions with callgrind")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        try:
            import uvloop

            run: Any = uvloop.run
        except ImportError:
            run = asyncio.run
        print(json.dumps(run(measure(options.measure, options.n))))
        return
    with tempfile.TemporaryDirectory(prefix="bench-features-") as folder:
        given = Path(options.before)
        tree = given.resolve() if given.is_dir() else Path(folder) / "before"
        if not given.is_dir():
            add = ["git", "-C", str(ROOT), "worktree", "add", "--detach", str(tree), options.before]
            subprocess.run(add, check=True, capture_output=True)
        try:
            show(summary(compared(options, tree)))
        finally:
            if not given.is_dir():
                subprocess.run(["git", "-C", str(ROOT), "worktree", "remove", "--force", str(tree)], check=False)


if __name__ == "__main__":
    main()
