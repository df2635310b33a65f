"""Plans in Python files: the file is run, as `oraculo worker` runs the module of a worker, and its Plan is taken."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from oraculo.cli.exits import CommandError, Exit
from oraculo.plans.faults import Fault
from oraculo.plans.python.builder import PlanBuilder
from oraculo.plans.reader import read
from oraculo.plans.source.events import PlacedFault
from oraculo.plans.source.source_reader import SourceReading

USUAL_NAME = "plan"
SUFFIX = ".py"


def python_target(file: str) -> tuple[str, str] | None:
    """`plan.py` or `plan.py:name` as file and name; None when it is no Python file."""
    path, _, name = file.partition(f"{SUFFIX}:")
    if name.isidentifier():
        return path + SUFFIX, name
    return (file, "") if Path(file).suffix == SUFFIX else None


def read_python(path: str, name: str) -> SourceReading:
    """Run the file and read its plan; faults stand at the line that added their task."""
    plan = _plan_in(path, name)
    try:
        data = plan.data()
    except TypeError as error:
        raise CommandError(f"{path}: {error}", Exit.USAGE) from None
    reading = read(data)
    faults = tuple(sorted((_placed(fault, plan) for fault in reading.faults), key=lambda one: one.line))
    warnings = tuple(_placed(fault, plan) for fault in reading.warnings)
    return SourceReading(reading.request, data, faults, warnings, reading.fault_count)


def _plan_in(path: str, name: str) -> PlanBuilder:
    if not Path(path).is_file():
        raise CommandError(f"{path}: No such file", Exit.USAGE)
    folder = str(Path(path).resolve().parent)
    sys.path.insert(0, folder)
    try:
        names = runpy.run_path(path)
    except (Exception, SystemExit) as error:
        raise CommandError(f"{path}: {type(error).__name__}: {error}", Exit.USAGE) from None
    finally:
        sys.path.remove(folder)
    plans = {key: value for key, value in names.items() if isinstance(value, PlanBuilder)}
    chosen = plans.get(name or USUAL_NAME) or (next(iter(plans.values())) if len(plans) == 1 and not name else None)
    if chosen is None:
        known = f"; there are {', '.join(plans)}: say {path}:name" if plans else ""
        raise CommandError(f"{path}: there is no Plan {name or USUAL_NAME!r}{known}", Exit.USAGE)
    return chosen


def _placed(fault: Fault, plan: PlanBuilder) -> PlacedFault:
    task = str(fault.path[1]) if len(fault.path) > 1 and fault.path[0] in ("tasks", "tarefas") else ""
    return PlacedFault(fault, plan.line_of(task) or 1, 1)
