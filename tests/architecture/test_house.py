"""Rules of the house that no linter knows. `python -m tools.measures` prints the figures behind them."""

from __future__ import annotations

import pytest
from tools.measures import (
    NO_SUBJECT,
    Module,
    docstrings,
    duplicate_classes,
    files_of,
    ignored_imports,
    long_modules,
    modules_of,
    port_probes,
)

# Modules above 400 lines: one idea each, told at length.
LONG_MODULES = {
    "src/oraculo/core/events.py",  # every event, once
    "src/oraculo/adapters/sinks/prometheus/__init__.py",
    "src/oraculo/adapters/stores/postgres/store.py",
    "src/oraculo/client/client.py",  # every verb, and the same for asyncio
    "src/oraculo/client/async_client.py",
    "src/oraculo/client/results.py",  # every document
    "src/oraculo/service.py",  # every verb
    "src/oraculo/simulation/invariants.py",
    "src/oraculo/simulation/core_world.py",
    "src/oraculo/dashboard/texts/en.py",  # a table of texts
    "src/oraculo/dashboard/texts/pt.py",
}

# Public classes whose name stands in more than one module. The list only gets shorter.
DUPLICATE_CLASSES = {
    "Answer", "ApiError", "Batch", "Client", "CognitivePlan", "Connection", "DeadLetter", "Document", "EventsQuery",
    "Health", "Index", "Kind", "ListQuery", "Member", "Options", "Orchestration", "Outcome", "Pool", "Problem",
    "Publisher", "Refusal", "Submitted", "Summary", "Task", "Ticket", "Verdict", "Writer",
}  # fmt: skip


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    return modules_of(files_of("."))


def test_what_a_port_can_do_is_declared_and_not_probed(modules: list[Module]) -> None:
    assert port_probes(modules) == []


def test_no_module_is_longer_than_400_lines_unless_it_is_named_here(modules: list[Module]) -> None:
    assert {module.path for module in long_modules(modules)} <= LONG_MODULES


def test_no_public_class_name_stands_in_two_modules_unless_it_is_named_here(modules: list[Module]) -> None:
    found = duplicate_classes(modules)
    assert {name: places for name, places in found.items() if name not in DUPLICATE_CLASSES} == {}


def test_no_contract_between_layers_has_an_exception() -> None:
    assert ignored_imports(files_of(".")) == []


def test_docstrings_name_their_subject(modules: list[Module]) -> None:
    assert [text for text in docstrings(modules) if NO_SUBJECT.search(text)] == []
