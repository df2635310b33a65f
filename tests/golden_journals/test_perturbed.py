"""A journal stands alone: with every constant and sentence of the core changed, it folds and replays as before."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from enum import Enum
from types import ModuleType
from typing import Any

import pytest

import oraculo.core
from golden_journals.journals import all_of_them, described, plain
from oraculo.core import sentences
from oraculo.core.reasons import ReasonCode, because
from oraculo.core.replay import rebuild, replay_step
from oraculo.wire import records

GOLDENS = all_of_them()
BEFORE = {golden.name: plain(described(rebuild(golden.recorded()))) for golden in GOLDENS}
MODULES = [
    importlib.import_module(found.name)
    for found in pkgutil.walk_packages(oraculo.core.__path__, "oraculo.core.")
    if not found.ispkg
]


def changed(value: Any) -> Any:
    """The same kind of thing, and another one; the value itself when it is no constant but a part of the language."""
    match value:
        case bool() | Enum() | type():
            return value
        case int() | float():
            return value * 3 + 7
        case str():
            return f"~{value}"
        case timedelta():
            return value * 3 + timedelta(seconds=7)
        case tuple() | list() | frozenset():
            return type(value)(changed(one) for one in value)
        case dict():
            return {key: changed(one) for key, one in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            named = {field.name: changed(getattr(value, field.name)) for field in fields(value)}
            return replace(value, **named)
        case _ if getattr(value, "__module__", "") == sentences.__name__:
            return lambda *_: "~"
    return value


def constants(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if name.strip("_").isupper() and changed(value) != value:
            yield name, value


@contextmanager
def perturbed(*modules: ModuleType) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            for name, value in constants(module):
                patch.setattr(module, name, changed(value))
        yield


def check() -> None:
    for golden in GOLDENS:
        recorded, state = golden.recorded(), None
        for one in recorded:
            done = replay_step(state, one)
            assert done.events == one.events, golden.name
            state = done.state
        assert state == rebuild(golden.recorded()), golden.name


def test_there_is_something_to_change() -> None:
    found = {f"{module.__name__}.{name}" for module in MODULES for name, _ in constants(module)}
    assert len(found) > 40
    assert {"oraculo.core.plan.NOTICE_WAITS", "oraculo.core.sentences._PT"} <= found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.removeprefix("oraculo.core."))
def test_with_the_constants_of_a_module_changed(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with perturbed(module):
        check()


def test_with_all_of_them_changed_the_states_are_those_of_before() -> None:
    others = [module for module in MODULES if module is not sentences]  # which say what is in a state
    with perturbed(*others):
        check()
        for golden in GOLDENS:
            assert plain(described(rebuild(golden.recorded()))) == BEFORE[golden.name], golden.name


def test_a_constant_that_is_read_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above can fail: a rule that is changed is not a constant, and makes another journal."""
    from oraculo.core import results

    usual: Callable[..., timedelta] = results.jittered
    monkeypatch.setattr(results, "jittered", lambda *given: usual(*given) * 2)
    with pytest.raises(AssertionError):
        check()


def test_sentences_are_really_changed() -> None:
    reason = because(ReasonCode.DEADLINE_PASSED)
    before = sentences.say(reason)
    with perturbed(sentences):
        assert sentences.say(reason) != before


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)
def test_written_again_in_the_format_of_today_it_is_the_same(golden: Any) -> None:
    for one in golden.recorded():
        assert records.decode(records.encode(one.events)) == one.events
