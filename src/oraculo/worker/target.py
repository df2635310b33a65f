"""From `module:name` to a Worker, as commands name it."""

from __future__ import annotations

import importlib
import os
import sys

from oraculo.errors import OraculoError, WorkerTargetError
from oraculo.worker.worker import Worker

MOVED_MODULES = {"oraculo.workers.all": "oraculo.collectors.all"}  # names that commands of 0.1 used


def worker_of(target: str) -> Worker:
    """Import the module and return its Worker; modules of the current folder are found too. Raises WorkerTargetError
    when there is none."""
    name, _, attribute = target.partition(":")
    name = MOVED_MODULES.get(name, name)
    if name.endswith(".py"):
        meant = name.removesuffix(".py").removeprefix("./").replace("/", ".")
        raise WorkerTargetError(
            f"{target}: a module is named without .py; did you mean {meant}:{attribute or 'worker'}?"
        )
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(name)
    except OraculoError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise WorkerTargetError(f"{target}: {error}") from error
        raise WorkerTargetError(f"{target}: there is no module {error.name!r}") from None
    except (Exception, SystemExit) as error:
        raise WorkerTargetError(f"{target}: importing it failed: {type(error).__name__}: {error}") from error
    found = getattr(module, attribute or "worker", None)
    if not isinstance(found, Worker):
        have = [key for key, value in vars(module).items() if isinstance(value, Worker)]
        hint = f"; it has {', '.join(have)}" if have else ""
        raise WorkerTargetError(f"{target}: {attribute or 'worker'!r} is not a Worker of {name}{hint}")
    if not found.queues:
        raise WorkerTargetError(f"{target}: no function is registered with it")
    return found
