"""Open Policy Agent over HTTP: one query for many inputs, retries, and a circuit that opens while OPA is away.

OPA answers 200 with an empty result when a package is not there: that is an error here, and never a yes.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson
import structlog

from oraculo import redaction
from oraculo.ports.policies import PolicyDocument, PolicyEngineStatus

log = structlog.get_logger("oraculo.policy")

RETRY_FIRST_S, RETRY_MAX_S = 0.5, 4.0
ANSWER_MAX_BYTES = 16 * 1024 * 1024
VERSION_CHARS = 16
SOURCES_REFRESH_S = 10.0
ERROR_MAX_CHARS = 300


@dataclass(frozen=True, slots=True)
class OpaOptions:
    """`attempts` for one question; `failures` in a row open the circuit for `reset_s`, 0: there is none."""

    timeout_s: float = 2.0
    attempts: int = 3
    failures: int = 5
    reset_s: float = 60.0


class OpaFailedError(Exception):
    """One try failed. `kind` is as in PolicyDocument; `again`: another try may help."""

    def __init__(self, error: str, kind: str, *, again: bool) -> None:
        super().__init__(error)
        self.kind = kind
        self.again = again


class Circuit:
    """Counts failures in a row. Told the time; one try is let through when it has been open for long enough."""

    def __init__(self, failures: int, reset_s: float) -> None:
        self._most = failures
        self._reset_s = reset_s
        self._failures = 0
        self._since: float | None = None
        self.transitions = 0

    def state(self, now: float) -> str:
        if self._since is None:
            return "closed"
        return "half_open" if now - self._since >= self._reset_s else "open"

    def failed(self, now: float) -> None:
        self._failures += 1
        if self._most and (self._failures >= self._most or self._since is not None):
            self.transitions += self._since is None
            self._since = now

    def worked(self) -> None:
        self.transitions += self._since is not None
        self._failures, self._since = 0, None


class OpaPolicies:
    """`url` is where OPA listens. Its policies are told from others by a digest of their texts, as far as OPA shows
    them."""

    name = "opa"

    def __init__(
        self, url: str, options: OpaOptions = OpaOptions(), elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url.rstrip("/")
        self._where = redaction.urls(url)
        self._options = options
        self._elapsed = elapsed
        self._circuit = Circuit(options.failures, options.reset_s)
        self._http = httpx2.AsyncClient(timeout=options.timeout_s, trust_env=False)
        self._sources: dict[str, str] = {}
        self._version = ""
        self._read_at: float | None = None
        self._error = ""

    @property
    def version(self) -> str:
        return self._version

    @property
    def sources(self) -> Mapping[str, str]:
        return self._sources

    def status(self) -> PolicyEngineStatus:
        return PolicyEngineStatus(self._circuit.state(self._elapsed()), self._error)

    async def open(self) -> None:
        """Look which policies there are; OPA may come later."""
        await self._look()

    async def close(self) -> None:
        await self._http.aclose()

    async def evaluate(self, packages: Sequence[str], inputs: Sequence[bytes]) -> list[list[PolicyDocument]]:
        if self._circuit.state(self._elapsed()) == "open":
            error = f"{self._where} is left alone for a while after it failed: {self._error}"
            return [[PolicyDocument(error=error, kind="circuit_open")] * len(packages) for _ in inputs]
        if self._read_at is None or self._elapsed() - self._read_at >= SOURCES_REFRESH_S:
            await self._look()
        try:
            return await self._tried(packages, inputs)
        except OpaFailedError as failed:
            if failed.kind == "evaluation" and len(inputs) > 1:  # of one of them; the others are asked without it
                return [(await self.evaluate(packages, [one]))[0] for one in inputs]
            return [[PolicyDocument(error=str(failed), kind=failed.kind)] * len(packages) for _ in inputs]

    async def _tried(self, packages: Sequence[str], inputs: Sequence[bytes]) -> list[list[PolicyDocument]]:
        pause = RETRY_FIRST_S
        for left in reversed(range(self._options.attempts)):
            try:
                found = await self._query(packages, inputs)
            except OpaFailedError as failed:
                self._error = str(failed)
                if failed.kind in ("unavailable", "timeout"):
                    self._circuit.failed(self._elapsed())
                else:
                    self._circuit.worked()
                if not left or not failed.again or self._circuit.state(self._elapsed()) == "open":
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, RETRY_MAX_S)
            else:
                self._circuit.worked()
                self._error = ""
                return found
        raise AssertionError("there is at least one attempt")

    async def _query(self, packages: Sequence[str], inputs: Sequence[bytes]) -> list[list[PolicyDocument]]:
        """Each package for each input, in one query: a list of documents for each package, in the order of inputs. A
        document that is missing makes its list shorter, and none of the list can be told from another then."""
        parts = [
            f"x{number} = [found | some one in input.questions; found := data.{package} with input as one]"
            for number, package in enumerate(packages)
        ]
        body = b'{"query":%s,"input":{"questions":[%s]}}' % (orjson.dumps("; ".join(parts)), b",".join(inputs))
        answer = await self._post("/v1/query", body)
        result = answer.get("result")
        if not isinstance(result, list) or not result or not isinstance(result[0], dict):
            raise OpaFailedError(f"{self._where} gave no result", "missing", again=False)
        found = [result[0].get(f"x{number}") for number in range(len(packages))]
        columns = [self._column(package, values, len(inputs)) for package, values in zip(packages, found, strict=True)]
        return [[column[number] for column in columns] for number in range(len(inputs))]

    def _column(self, package: str, values: Any, count: int) -> list[PolicyDocument]:
        if isinstance(values, list) and len(values) == count:
            return [PolicyDocument(value) for value in values]
        error = f"{self._where} has no package {package}"
        return [PolicyDocument(error=error, kind="missing")] * count

    async def _post(self, path: str, body: bytes) -> dict[str, Any]:
        try:
            answer = await self._http.post(self._url + path, content=body, headers={"content-type": "application/json"})
        except httpx2.TimeoutException:
            error = f"{self._where} did not answer in {self._options.timeout_s:g} s"
            raise OpaFailedError(error, "timeout", again=True) from None
        except httpx2.HTTPError as wrong:
            error = redaction.redact(f"{self._where} cannot be reached: {wrong}", ERROR_MAX_CHARS)
            raise OpaFailedError(error, "unavailable", again=True) from None
        return self._read(answer)

    def _read(self, answer: httpx2.Response) -> dict[str, Any]:
        if len(answer.content) > ANSWER_MAX_BYTES:
            raise OpaFailedError(f"{self._where} gave more than {ANSWER_MAX_BYTES} bytes", "evaluation", again=False)
        try:
            value = orjson.loads(answer.content)
        except orjson.JSONDecodeError:
            value = None
        if answer.status_code != 200:
            said = value.get("message", "") if isinstance(value, dict) else ""
            error = redaction.redact(f"{self._where} answered {answer.status_code}: {said}", ERROR_MAX_CHARS)
            evaluation = answer.status_code == 500 and isinstance(value, dict) and _is_evaluation(value)
            if evaluation or answer.status_code == 400:
                raise OpaFailedError(error, "evaluation", again=False)
            again = answer.status_code >= 500 or answer.status_code == 429
            raise OpaFailedError(error, "unavailable", again=again)
        if not isinstance(value, dict):
            raise OpaFailedError(f"{self._where} gave no JSON object", "unavailable", again=False)
        return value

    async def _look(self) -> None:
        """Read the texts of the policies; without them every part of an input counts, and the version is not known."""
        self._read_at = self._elapsed()
        try:
            answer = await self._http.get(f"{self._url}/v1/policies")
            found = self._read(answer).get("result")
        except (httpx2.HTTPError, OpaFailedError) as error:
            log.warning("policies of OPA cannot be read", where=self._where, error=str(error))
            return
        if isinstance(found, list):
            sources = {str(one.get("id")): str(one.get("raw", "")) for one in found if isinstance(one, dict)}
            parts = "\0".join(sorted(sources.values()))  # names are paths on its machine
            self._sources = {name: text for name, text in sources.items() if not name.endswith("_test.rego")}
            self._version = hashlib.sha256(parts.encode()).hexdigest()[:VERSION_CHARS]


def _is_evaluation(value: dict[str, Any]) -> bool:
    """True of an error in a policy, which another try does not mend."""
    errors = value.get("errors")
    codes = [str(one.get("code", "")) for one in errors if isinstance(one, dict)] if isinstance(errors, list) else []
    return any(code.startswith("eval_") for code in codes)
