"""Asking: what is found in memory, open and closed, what is owed over a restart, and what the log may show."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from api.conftest import settings_for
from core.given import RUN, T0, Story, coleta, plan
from oraculo.core.policies import PolicyFinding, PolicyPoint
from oraculo.core.policing import owed
from oraculo.core.sentences import say_optional
from oraculo.core.vocabulary import Status
from oraculo.ports.policies import PolicyDocument, PolicyEngineStatus
from oraculo.runtime.policies.asking import Policies, PolicyOptions
from oraculo.runtime.policies.fields import paths_in, reads
from oraculo.runtime.policies.seen import masked
from oraculo.service import Oraculo
from oraculo.wire import requests, strict_json
from waiting import until

PACKAGE = "neuralhive.orchestrator.resource_limits"
TICKET = {PolicyPoint.TICKET: (PACKAGE,)}
YES: dict[str, Any] = {"allow": True, "violations": [], "warnings": []}


class Scripted:
    """An engine whose answer the test says; it keeps what it was asked."""

    name = "scripted"

    def __init__(self, answer: Any = YES, error: str = "", source: str = "input.resource.name") -> None:
        self.answer, self.error = answer, error
        self.version = "v1"
        self.sources: Mapping[str, str] = {"p.rego": source}
        self.asked: list[list[bytes]] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def status(self) -> PolicyEngineStatus:
        return PolicyEngineStatus()

    async def evaluate(self, packages: Sequence[str], inputs: Sequence[bytes]) -> list[list[PolicyDocument]]:
        self.asked.append(list(inputs))
        return [[PolicyDocument(self.answer, self.error)] * len(packages) for _ in inputs]


def policies(engine: Scripted, **options: Any) -> Policies:
    return Policies(engine, PolicyOptions(TICKET, **options), lambda: T0)


def governed(asked: Policies, names: Sequence[str] = ("a",), run: int = RUN) -> Story:
    return Story(asked.govern(plan([coleta(name) for name in names])), run=run)


async def judged(asked: Policies, story: Story) -> list[PolicyFinding]:
    findings = []
    for batch in asked.snapshot(story.state):
        command = await asked.judge(story.run, batch)
        findings += command.findings
        story.do(command)
    return findings


async def test_tickets_that_policies_cannot_tell_apart_are_asked_about_once() -> None:
    engine = Scripted()
    asked = policies(engine)
    story = governed(asked, ["a", "b", "a"])
    assert await judged(asked, story) == []
    assert [len(some) for some in engine.asked] == [2]
    assert not owed(story.state)


async def test_what_was_allowed_is_not_asked_again_until_the_policies_or_the_time_change() -> None:
    engine = Scripted()
    asked = policies(engine)
    now = 0.0
    asked._elapsed = lambda: now
    await judged(asked, governed(asked))
    for step, known in (("same", True), ("later", False), ("again", True), ("version", False)):
        story = governed(asked, run=RUN + 1)
        if step == "later":
            now = 31.0
        if step == "version":
            engine.version = "v2"
        found = asked.known(story.state)
        assert bool(found) is known, step
        if not known:
            await judged(asked, story)
    assert asked.statistics.cache_hits == 2


class Slow(Scripted):
    """An engine that answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def evaluate(self, packages: Sequence[str], inputs: Sequence[bytes]) -> list[list[PolicyDocument]]:
        found = await super().evaluate(packages, inputs)
        await self.go.wait()
        return found


async def test_what_several_runs_ask_at_the_same_moment_is_asked_once() -> None:
    engine = Slow()
    asked = policies(engine)
    stories = [governed(asked, run=RUN + number) for number in range(5)]
    asking = [asyncio.create_task(judged(asked, story)) for story in stories]
    await until(lambda: bool(engine.asked))
    engine.go.set()
    assert await asyncio.gather(*asking) == [[]] * 5
    assert [len(some) for some in engine.asked] == [1]
    assert not any(owed(story.state) for story in stories)


async def test_a_run_whose_answer_another_one_gave_up_asks_itself() -> None:
    engine = Slow()
    asked = policies(engine)
    stories = [governed(asked, run=RUN + number) for number in range(2)]
    first, second = [asyncio.create_task(judged(asked, story)) for story in stories]
    await until(lambda: bool(engine.asked))
    await asyncio.sleep(0)
    first.cancel()
    await until(lambda: len(engine.asked) == 2)
    engine.go.set()
    assert await second == []
    assert not owed(stories[1].state)


async def test_a_refusal_is_asked_again_every_time() -> None:
    engine = Scripted({"allow": False, "violations": [{"rule": "r"}]})
    asked = policies(engine)
    for number in range(2):
        story = governed(asked, run=RUN + number)
        (finding,) = await judged(asked, story)
        assert not finding.allowed and story.ticket(0).status is Status.ERRO
    assert len(engine.asked) == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "the package gave nothing"),
        ([], "the package gave a list"),
        ({}, "allow is nothing"),
        ({"allow": "yes"}, "allow is a text"),
        ({"allow": True, "violations": {"x": True}}, "violations is an object, a set is needed"),
        ({"allow": True, "violations": [7]}, "violations has a number in it"),
    ],
)
async def test_a_policy_that_returns_something_else_is_an_error_and_refuses(answer: Any, said: str) -> None:
    asked = policies(Scripted(answer))
    story = governed(asked)
    (finding,) = await judged(asked, story)
    assert not finding.allowed and said in finding.error
    assert story.ticket(0).status is Status.ERRO


@pytest.mark.parametrize(
    ("options", "package", "allowed"),
    [
        ({}, "resource_limits", False),
        ({"fail_open": True}, "resource_limits", True),
        ({"fail_open": True}, "security_constraints", False),  # never, by the setting for all
        ({"open_packages": frozenset(("resource_limits",))}, "resource_limits", True),
        ({"open_packages": frozenset(("another",))}, "resource_limits", False),
    ],
)
async def test_an_error_refuses_unless_its_package_fails_open(
    options: dict[str, Any], package: str, allowed: bool
) -> None:
    made = PolicyOptions({PolicyPoint.TICKET: (f"neuralhive.orchestrator.{package}",)}, **options)
    asked = Policies(Scripted(error="OPA is away"), made, lambda: T0)
    story = governed(asked)
    (finding,) = await judged(asked, story)
    assert (finding.allowed, "OPA is away" in finding.error) == (allowed, True)
    assert (story.ticket(0).status is Status.PENDENTE) is allowed
    assert asked.statistics.errors["evaluation"] == 1


async def test_an_engine_that_raises_is_an_error_like_any_other() -> None:
    class Broken(Scripted):
        async def evaluate(self, packages: Sequence[str], inputs: Sequence[bytes]) -> list[list[PolicyDocument]]:
            raise RuntimeError("not foreseen")

    asked = policies(Broken())
    (finding,) = await judged(asked, governed(asked))
    assert not finding.allowed and "not foreseen" in finding.error


async def test_time_is_not_part_of_what_tells_questions_apart_but_what_is_left_of_a_deadline_is() -> None:
    engine = Scripted(source="input.resource.sla.deadline input.context.current_time")
    asked = policies(engine)
    story = governed(asked)
    ((first,),) = [batch.questions for batch in asked.snapshot(story.state)]
    asked._now = lambda: T0 + timedelta(hours=1)
    later = governed(asked)
    later.state.deadline = later.state.deadline + timedelta(hours=1)
    ((second,),) = [batch.questions for batch in asked.snapshot(later.state)]
    assert first.key == second.key and first.body != second.body
    later.state.deadline += timedelta(seconds=1)
    ((third,),) = [batch.questions for batch in asked.snapshot(later.state)]
    assert third.key != first.key


def test_the_parts_that_are_read_are_found_in_the_text() -> None:
    text = """
    a if input.resource.sla.timeout_ms > 1 # input.context.secret
    b if object.get(input.context, "user_id", "") == "x"
    c if input["flags"]["on"]
    d if some_input.other
    """
    paths = paths_in([text])
    assert paths == {("resource", "sla", "timeout_ms"), ("context", "user_id"), ("flags", "on")}
    assert reads(paths, ("resource", "sla")) and not reads(paths, ("resource", "name"))
    assert reads(paths_in(["walk(input)"]), ("anything",))
    assert paths_in(["x := input.resource[name]"]) == {("resource",)}


def test_the_log_shows_no_secret() -> None:
    shown = masked(
        strict_json.dumps(
            {
                "resource": {"parameters": {"senha": "xyz"}, "result": {"x": 1}, "name": "a"},
                "context": {"jwt_token": "eyJhbGciOi", "user_id": "ana"},
            }
        )
    )
    assert "xyz" not in str(shown) and "eyJ" not in str(shown)
    assert shown["resource"]["name"] == "a" and shown["context"]["user_id"] == "ana"


# -- a whole server --------------------------------------------------------------------------------------------------


def request_of(name: str) -> Any:
    return requests.parse({"correlation_id": name, "coletas": [{"fonte": "nada"}]})


async def wait_verdict(oraculo: Oraculo, name: str) -> Any:
    async def decided() -> Any:
        state = await oraculo.state(name)
        return state if state is not None and not owed(state) else None

    return await until(decided, "a verdict")


@pytest.mark.parametrize("then", ["embedded", "off"])
async def test_a_verdict_that_is_owed_over_a_restart_is_asked_for_then(tmp_path: Path, then: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"opa:http://127.0.0.1:{silent.getsockname()[1]}"
        settings = settings_for(tmp_path, ORACULO_POLICIES=where, OPA_TIMEOUT_SECONDS="60", OPA_RETRY_ATTEMPTS="1")
        silent.settimeout(30)
        reading = asyncio.create_task(asyncio.to_thread(lambda: silent.accept()[0].close()))  # which policies there are
        async with Oraculo(settings) as oraculo:
            await reading
            await oraculo.submit(request_of("devido"))
            state = await oraculo.state("devido")
            assert owed(state) == {-1: 0} and state.status is Status.PENDENTE
    settings = settings_for(tmp_path, ORACULO_POLICIES="embedded" if then == "embedded" else "")
    async with Oraculo(settings) as oraculo:
        state = await wait_verdict(oraculo, "devido")
        assert state.tickets[0].attempt == 1
        assert (state.policy is not None) and not state.policy.findings


async def test_closed_means_closed_while_opa_is_away_and_open_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nowhere = f"opa:http://127.0.0.1:{taken.getsockname()[1]}"
    for name, fail_open in (("fechado", "false"), ("aberto", "true")):
        settings = settings_for(
            tmp_path,
            ORACULO_POLICIES=nowhere,
            OPA_RETRY_ATTEMPTS="1",
            OPA_FAIL_OPEN=fail_open,
            ORACULO_POLICIES_TICKET="resource_limits",
        )
        async with Oraculo(settings) as oraculo:
            await oraculo.submit(request_of(name))
            if fail_open == "false":
                state = await until(partial(ended, oraculo, name))
                assert state.status is Status.ERRO and state.tickets[0].attempt == 0
                assert "cannot be reached" in state.policy.findings[0].findings[0].error
            else:
                state = await until(partial(sent, oraculo, name))
                assert [one.findings[0].allowed for one in state.policy.findings] == [True, True]
                assert all("cannot be reached" in one.findings[0].error for one in state.policy.findings)


async def test_a_refusal_for_want_of_an_answer_says_so_once_and_names_the_setting(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    pairs = "some i in numbers.range(1, 4000); some j in numbers.range(1, 4000); i * j > 0"
    for name in ("p", "q"):
        text = f"package casa.{name}\nimport rego.v1\nallow if count([1 | {pairs}]) > 0\n"
        (rules / f"{name}.rego").write_text(text)
    settings = settings_for(
        tmp_path,
        ORACULO_POLICIES=f"embedded:{rules}",
        ORACULO_POLICIES_TIMEOUT_S="0.1",
        ORACULO_POLICIES_PLAN="casa.p,casa.q",
        **{f"ORACULO_POLICIES_{point}": "" for point in ("TICKET", "ALLOCATION", "RESULT")},
    )
    async with Oraculo(settings) as oraculo:
        await oraculo.submit(request_of("tarde"))
        state = await until(partial(ended, oraculo, "tarde"))
    error = "casa.p, casa.q: no answer in 0.1 s (ORACULO_POLICIES_TIMEOUT_S)"
    assert state.status is Status.ERRO
    assert say_optional(state.tickets[0].reason, "en") == f"the policies could not be asked: {error}"
    assert state.policy.findings[0].findings[0].error == error


async def ended(oraculo: Oraculo, name: str) -> Any:
    state = await oraculo.state(name)
    return state if state.status.final else None


async def sent(oraculo: Oraculo, name: str) -> Any:
    state = await oraculo.state(name)
    return state if state.tickets[0].attempt else None


def test_a_plan_says_when_it_is_asked_about_and_a_plan_without_policies_nothing() -> None:
    made = plan(1)
    assert Policies().govern(made) is made
    asked = policies(Scripted())
    assert asked.govern(made).policies == (PolicyPoint.TICKET,)
    assert Policies().govern(replace(made, policies=(PolicyPoint.PLAN,))).policies == ()
