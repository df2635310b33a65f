"""The servers of a run: begun with it, ended with it, and counted at its end. And tests of a group in one worker."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest
from tools.servers.report import look

import servers

# Tests start hundreds of processes: what was compiled once is kept, also where the environment says otherwise.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        servers.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _is_worker(config):
        servers.leave()
    else:
        servers.end()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """pytest-xdist 3.8 hides the mark `xdist_group` in the ids of tests, where pytest 9.2 does not let it. So a worker
    tells in a file which tests have which group; all workers say the same."""
    if _is_worker(session.config):
        marks = {item.nodeid: item.get_closest_marker("xdist_group") for item in session.items}
        groups = {test: mark.args[0] for test, mark in marks.items() if mark is not None}
        part = servers.run_folder() / f"groups-{os.getpid()}"
        part.write_text(json.dumps(groups))
        part.rename(servers.run_folder() / "groups")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadGroupScheduling

    class Groups(LoadGroupScheduling):
        known: dict[str, str] | None = None

        def _split_scope(self, nodeid: str) -> str:
            if self.known is None:
                self.known = json.loads((servers.run_folder() / "groups").read_text())
            return self.known.get(nodeid) or super()._split_scope(nodeid)

    return Groups(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    uses = servers.uses()
    if not uses:
        return
    terminalreporter.section("servers exercised")
    line = "{:<10} {:<12} {:>7} {:>5} {:>7}".format
    terminalreporter.write_line(line("", "version", "shared", "own", "tests"))
    for name in sorted(uses):
        use = uses[name]
        if use.missing:
            terminalreporter.write_line(
                f"{name:<10} not installed: {use.missing} ({len(use.tests)} tests need it)", yellow=True
            )
        else:
            terminalreporter.write_line(line(name, look(name).version, use.shared, use.own, len(use.tests)))
    for name in sorted(uses):
        for remark in uses[name].remarks:
            terminalreporter.write_line(f"{name:<10} {remark}")
