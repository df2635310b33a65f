"""Policies as the engines use them: what a state waits for → questions → verdicts, as a command for the core.

What was allowed a moment ago is answered from memory, between the step and its commit. Everything else is asked after
the commit, many questions in one, while other work goes on; the verdict comes back as work of its own. An error is
never a yes: it refuses, unless its package is set to fail open.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from typing import Any

import structlog

from oraculo.core.commands import Judge
from oraculo.core.plan import Plan
from oraculo.core.policies import THE_PLAN, PolicyFinding, PolicyPoint, PolicySource
from oraculo.core.policing import owed
from oraculo.core.state import Orchestration
from oraculo.ports.policies import PolicyDocument, PolicyEngine, PolicyEngineStatus
from oraculo.runtime.policies.answers import finding_of
from oraculo.runtime.policies.fields import paths_in
from oraculo.runtime.policies.inputs import ALL_PATHS, InputWriter, PolicyFacts, Question, Subject
from oraculo.runtime.policies.seen import PolicyDecision, PolicySeen, PolicyStatistics

QUESTIONS_MAX = 256  # asked at once
TICKETS_MAX = 1000  # whose questions are written in one go, so that the event loop is not held
CACHE_MAX_VERDICTS = 10_000
log = structlog.get_logger("oraculo.policy")

NEVER_OPEN = "security_constraints"  # fails closed whatever the setting for all says
OFF = PolicySource("off")


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """`packages` are those asked at each point; a point without any is not asked. `open_packages` fail open; with
    `fail_open` all do but NEVER_OPEN."""

    packages: Mapping[PolicyPoint, tuple[str, ...]] = field(default_factory=dict)
    fail_open: bool = False
    open_packages: frozenset[str] = frozenset()
    cache_s: float = 30.0
    facts: PolicyFacts = field(default_factory=PolicyFacts)

    def fails_open(self, package: str) -> bool:
        short = package.rpartition(".")[2]
        named = package in self.open_packages or short in self.open_packages
        return named or (self.fail_open and short != NEVER_OPEN)


@dataclass(frozen=True, slots=True)
class PolicyBatch:
    """Questions about tickets of one run at one point."""

    point: PolicyPoint
    tickets: list[tuple[int, int]]
    questions: list[Question]
    correlation_id: str = ""


class Policies:
    """Without an engine no plan is asked about, and what an earlier process left to be asked is allowed, and says so.
    `seen` are told of every decision that was made here."""

    def __init__(
        self,
        engine: PolicyEngine | None = None,
        options: PolicyOptions = PolicyOptions(),
        now: Callable[[], datetime] | None = None,
        seen: Sequence[PolicySeen] = (),
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        assert engine is None or now is not None, "questions name an instant"
        self.engine = engine
        self.options = options
        self.statistics = PolicyStatistics()
        self._now = now
        self._seen = (self.statistics, *seen)
        self._elapsed = elapsed
        self._allowed: OrderedDict[tuple[PolicyPoint, bytes], float] = OrderedDict()  # until when
        self._asking: dict[tuple[PolicyPoint, bytes], asyncio.Future[list[PolicyDocument]]] = {}
        self._writer = InputWriter(options.facts)
        self._version: str | None = None

    @property
    def points(self) -> tuple[PolicyPoint, ...]:
        """When policies are asked."""
        return () if self.engine is None else tuple(point for point, asked in self.options.packages.items() if asked)

    def govern(self, plan: Plan) -> Plan:
        """The plan as it starts here: it says when policies are asked about it."""
        points = self.points
        if plan.policies == points:
            return plan
        return replace(plan, policies=points)

    def status(self) -> PolicyEngineStatus:
        return PolicyEngineStatus() if self.engine is None else self.engine.status()

    @property
    def version(self) -> str:
        return "" if self.engine is None else self.engine.version

    # -- what is known -----------------------------------------------------------------------------------------------

    def known(self, state: Orchestration) -> list[Judge]:
        """The verdicts that can be given at once: what was allowed a moment ago, or all when policies are off."""
        waits = owed(state)
        if not waits:
            return []
        if self.engine is None:
            return [Judge(one.point, one.tickets, [], OFF) for one in self._grouped(waits)]
        self._follow()
        assert self._now is not None
        found: list[Judge] = []
        now, key_of = self._now(), self._writer.key
        for one in self._grouped(waits):
            keyed = [(ticket, key_of(Subject(state, ticket[0], one.point, now))) for ticket in one.tickets]
            hits = [(ticket, key) for ticket, key in keyed if self._is_allowed(one.point, key)]
            if hits:
                self.statistics.cached(len(hits))
                tickets, keys = [ticket for ticket, _ in hits], [key for _, key in hits]
                found.append(Judge(one.point, tickets, [], self._source(keys)))
        return found

    def snapshot(self, state: Orchestration) -> list[PolicyBatch]:
        """What a state waits for, apart from it: to be asked beside other work."""
        waits = owed(state)
        return self._batches(state, waits) if waits and self.engine is not None else []

    @staticmethod
    def _grouped(waits: Mapping[int, int]) -> list[PolicyBatch]:
        by_point: dict[PolicyPoint, list[tuple[int, int]]] = {}
        for position, attempt in islice(waits.items(), TICKETS_MAX):
            point = PolicyPoint.RESULT if attempt else PolicyPoint.PLAN if position == THE_PLAN else PolicyPoint.TICKET
            by_point.setdefault(point, []).append((position, attempt))
        return [PolicyBatch(point, tickets, []) for point, tickets in by_point.items()]

    def _batches(self, state: Orchestration, waits: Mapping[int, int]) -> list[PolicyBatch]:
        self._follow()
        assert self._now is not None
        now, write = self._now(), self._writer.write
        return [
            PolicyBatch(
                one.point,
                one.tickets,
                [write(Subject(state, position, one.point, now)) for position, _ in one.tickets],
                state.correlation_id,
            )
            for one in self._grouped(waits)
        ]

    def _follow(self) -> None:
        """Other policies read other parts of an input, and what earlier ones allowed counts no more."""
        assert self.engine is not None
        version = self.engine.version
        if version != self._version:
            self._version = version
            self._allowed.clear()
            sources = self.engine.sources
            self._writer = InputWriter(self.options.facts, paths_in(sources.values()) if sources else ALL_PATHS)

    def _is_allowed(self, point: PolicyPoint, key: bytes) -> bool:
        until = self._allowed.get((point, key))
        return until is not None and until > self._elapsed()

    def _allow(self, point: PolicyPoint, key: bytes) -> None:
        if self.options.cache_s <= 0:
            return
        self._allowed[point, key] = self._elapsed() + self.options.cache_s
        self._allowed.move_to_end((point, key))
        while len(self._allowed) > CACHE_MAX_VERDICTS:
            self._allowed.popitem(last=False)

    def _source(self, keys: Iterable[bytes]) -> PolicySource:
        assert self.engine is not None
        digest = blake2b(b"".join(keys), digest_size=8).hexdigest()
        return PolicySource(self.engine.name, self.engine.version, secrets.token_hex(8), digest)

    # -- what is asked -----------------------------------------------------------------------------------------------

    async def judge(self, run: int, batch: PolicyBatch) -> Judge:
        """Ask the engine about all of a batch; what is asked several times in it is asked once."""
        packages = self.options.packages.get(batch.point, ())
        findings: list[PolicyFinding] = []
        found = await self._ask(packages, batch)
        fails_open = [self.options.fails_open(package) for package in packages]
        said: list[tuple[int, Sequence[PolicyDocument], PolicyFinding | None]] = []
        bodies: list[bytes] = []
        for (position, _), question in zip(batch.tickets, batch.questions, strict=True):
            documents = found.get(question.key)
            if documents is None:  # allowed meanwhile
                continue
            finding = finding_of(position, packages, documents, fails_open)
            if finding is None:
                self._allow(batch.point, question.key)
            else:
                findings.append(finding)
            said.append((position, documents, finding))
            bodies.append(question.body)
        source = self._source(one.key for one in batch.questions)
        made = PolicyDecision(run, batch.correlation_id, batch.point, packages, source, said, bodies)
        for one in self._seen:
            one.judged(made)
        return Judge(batch.point, batch.tickets, findings, source)

    async def _ask(self, packages: Sequence[str], batch: PolicyBatch) -> dict[bytes, list[PolicyDocument]]:
        """The documents of each question; none of those that were allowed since they were written. What another run
        asks at this moment is not asked again: its answer is waited for."""
        bodies = {question.key: question.body for question in batch.questions}
        found: dict[bytes, list[PolicyDocument]] = {}
        left = [key for key in bodies if not self._is_allowed(batch.point, key)]
        self.statistics.cached(len(bodies) - len(left))
        shared = {key: self._asking[batch.point, key] for key in left if (batch.point, key) in self._asking}
        own = [key for key in left if key not in shared]
        for first in range(0, len(own), QUESTIONS_MAX):
            some = own[first : first + QUESTIONS_MAX]
            waited: list[asyncio.Future[list[PolicyDocument]]] = [asyncio.Future() for _ in some]
            self._asking.update(zip(((batch.point, key) for key in some), waited, strict=True))
            try:
                answers = await self._evaluated(packages, [bodies[key] for key in some])
                for key, future, documents in zip(some, waited, answers, strict=True):
                    found[key] = documents
                    future.set_result(documents)
            finally:
                for key, future in zip(some, waited, strict=True):
                    del self._asking[batch.point, key]
                    future.cancel()
        for key, future in shared.items():
            await asyncio.wait([future])
            gone = future.cancelled()  # who asked has stopped before there was an answer
            found[key] = (await self._evaluated(packages, [bodies[key]]))[0] if gone else future.result()
        return found

    async def _evaluated(self, packages: Sequence[str], bodies: Sequence[bytes]) -> list[list[PolicyDocument]]:
        assert self.engine is not None
        began = self._elapsed()
        try:
            answers = await self.engine.evaluate(packages, bodies)
        except Exception as error:  # what an adapter did not foresee is an error like any other
            log.exception("policy engine failed", engine=self.engine.name)
            wrong = PolicyDocument(error=f"{type(error).__name__}: {error}", kind="unavailable")
            answers = [[wrong] * len(packages) for _ in bodies]
        self.statistics.asked(packages, len(bodies), self._elapsed() - began)
        return answers

    async def rehearse(self, state: Orchestration) -> list[tuple[PolicyPoint, int, PolicyFinding | None]]:
        """What the policies say of a plan and of every ticket that it begins with; nothing is decided by it."""
        if self.engine is None:
            return []
        self._follow()
        assert self._now is not None
        asked: dict[PolicyPoint, list[int]] = {
            PolicyPoint.PLAN: [THE_PLAN],
            PolicyPoint.TICKET: list(range(len(state.tickets))),
        }
        found: list[tuple[PolicyPoint, int, PolicyFinding | None]] = []
        for point in (point for point in asked if point in self.points):
            subjects = [Subject(state, position, point, self._now()) for position in asked[point]]
            pairs = [(position, 0) for position in asked[point]]
            batch = PolicyBatch(
                point, pairs, [self._writer.write(subject) for subject in subjects], state.correlation_id
            )
            said = {one.ticket: one for one in (await self.judge(state.run, batch)).findings}
            found += [(point, position, said.get(position)) for position in asked[point]]
        return found

    async def allocation(
        self, state: Orchestration, position: int, candidates: Sequence[Mapping[str, Any]]
    ) -> tuple[list[PolicyFinding | None], PolicySource]:
        """What the policies say of giving a ticket to each of these workers: None is yes. The place where a scheduler
        asks; it records what was said with `Judge(PolicyPoint.ALLOCATION, …)`."""
        packages = self.options.packages.get(PolicyPoint.ALLOCATION, ())
        if self.engine is None or not packages:
            return [None] * len(candidates), OFF
        self._follow()
        assert self._now is not None
        now = self._now()
        subjects = [Subject(state, position, PolicyPoint.ALLOCATION, now, one) for one in candidates]
        questions = [self._writer.write(subject) for subject in subjects]
        batch = PolicyBatch(PolicyPoint.ALLOCATION, [(position, 0)] * len(questions), questions)
        found = await self._ask(packages, batch)
        fails_open = [self.options.fails_open(package) for package in packages]
        said = [
            finding_of(position, packages, found[question.key], fails_open) if question.key in found else None
            for question in questions
        ]
        return said, self._source(one.key for one in questions)
