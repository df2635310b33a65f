"""Rego inside: a process of our own that evaluates, bounded in time. One that does not answer in time, or dies, is
killed and begun anew; what it was asked is asked again one by one, so that a policy which loops harms its own ticket
and no other."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from oraculo.errors import MissingExtraError, PolicyError
from oraculo.ports.policies import PolicyDocument, PolicyEngineStatus

LENGTH = struct.Struct(">I")
CHILD = Path(__file__).with_name("rego_child.py")
START_TIMEOUT_S = 20.0
ERRORS_MAX_BYTES = 4096
FAILURES_MAX = 3  # of one question for many inputs, before the rest are not tried
MODULES_MAX = 1000
MODULE_MAX_BYTES = 1024 * 1024
FORBIDDEN = ("opa.runtime", "http.send")  # a policy sees its input and its data, and nothing of the machine
VERSION_CHARS = 16

_V1 = re.compile(r"^\s*import\s+(?:rego\.v1|future\.keywords)\b", re.M)
_PACKAGE = re.compile(r"^\s*package\s+([\w.]+)", re.M)
_CODE = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|#[^\n]*')
_PLACE = re.compile(r"^-- (.+:\d+:\d+)$", re.M)


@dataclass(frozen=True, slots=True)
class PolicyFolder:
    """The modules and data of a folder. `tests` are modules whose names end in `_test.rego`; they are not evaluated."""

    modules: Mapping[str, str]
    data: Sequence[Any] = ()
    tests: Mapping[str, str] = field(default_factory=dict)

    @property
    def packages(self) -> tuple[str, ...]:
        found = (_PACKAGE.search(_without_texts(source)) for source in self.modules.values())
        return tuple(dict.fromkeys(match[1] for match in found if match is not None))

    @property
    def version(self) -> str:
        parts = [f"{name}\0{source}" for name, source in sorted(self.modules.items())]
        data = [orjson.dumps(one, option=orjson.OPT_SORT_KEYS).decode() for one in self.data]
        return hashlib.sha256("\0".join([*parts, *data]).encode()).hexdigest()[:VERSION_CHARS]


def read_folder(path: Path) -> PolicyFolder:
    """The policies below a folder, checked as far as their texts go. PolicyError names the file and what is wrong."""
    if not path.is_dir():
        raise PolicyError(f"{path}: there is no such folder of policies")
    files = sorted(path.rglob("*.rego"))
    if not files:
        raise PolicyError(f"{path}: there is no .rego file in this folder")
    if len(files) > MODULES_MAX:
        raise PolicyError(f"{path}: {len(files)} modules; at most {MODULES_MAX} are allowed")
    modules, tests = dict[str, str](), dict[str, str]()
    for file in files:
        name = str(file.relative_to(path))
        kept = tests if name.endswith("_test.rego") else modules
        kept[name] = _text(file)
        if kept is modules:
            check_text(name, kept[name])
    data = [_data(file) for file in sorted(path.rglob("*.json"))]
    return PolicyFolder(modules, data, tests)


def _text(file: Path) -> str:
    if file.stat().st_size > MODULE_MAX_BYTES:
        raise PolicyError(f"{file}: larger than {MODULE_MAX_BYTES} bytes")
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError:
        raise PolicyError(f"{file}: not UTF-8") from None


def _data(file: Path) -> Any:
    try:
        found = orjson.loads(file.read_bytes())
    except orjson.JSONDecodeError as error:
        raise PolicyError(f"{file}: no JSON: {error}") from None
    if not isinstance(found, dict):
        raise PolicyError(f"{file}: data has to be a JSON object")
    return found


def check_text(name: str, source: str) -> None:
    """Refuse what would be accepted without a word and mean something else, and what leads out of a policy."""
    code = _without_texts(source)
    if _PACKAGE.search(code) is None:
        raise PolicyError(f"{name}: the module has no package")
    if _V1.search(code) is None:
        raise PolicyError(f"{name}: `import rego.v1` is missing; Rego v0 is understood by OPA only (--v0-compatible)")
    for word in FORBIDDEN:
        if word in code:
            raise PolicyError(f"{name}: {word} is not allowed in embedded policies")


def _without_texts(source: str) -> str:
    return _CODE.sub(lambda match: "" if match[0].startswith("#") else '""', source)


class EmbeddedPolicies:
    """Evaluates the policies of `folder` for `packages`. `timeout_s` bounds one input, and so all of them."""

    name = "embedded"

    def __init__(self, folder: PolicyFolder, packages: Sequence[str], timeout_s: float = 1.0) -> None:
        self._folder = folder
        self._version = folder.version
        self._packages = tuple(dict.fromkeys(packages))
        self._timeout_s = timeout_s
        self._process: asyncio.subprocess.Process | None = None
        self._errors: asyncio.Task[bytes] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._restarts = 0
        self._error = ""

    @property
    def version(self) -> str:
        return self._version

    @property
    def sources(self) -> Mapping[str, str]:
        return self._folder.modules

    def status(self) -> PolicyEngineStatus:
        return PolicyEngineStatus(error=self._error, restarts=self._restarts)

    async def open(self) -> None:
        missing = [package for package in self._packages if package not in self._folder.packages]
        if missing:
            there = ", ".join(self._folder.packages)
            raise PolicyError(f"there is no package {', '.join(missing)}; the folder has {there}")
        await self._started()

    async def close(self) -> None:
        await self._end()

    async def evaluate(self, packages: Sequence[str], inputs: Sequence[bytes]) -> list[list[PolicyDocument]]:
        """Each input has its own time. One that is out of time, or ends the process, is an error, and those behind it
        go to a new process; after a few of them in a row the rest are errors too."""
        found: list[list[PolicyDocument]] = []
        failures = 0
        async with self._one_at_a_time:
            while len(found) < len(inputs):
                before = len(found)
                error = await self._asked(packages, inputs[before:], found)
                if error is None:
                    break
                failures += 1
                left = len(inputs) - len(found)
                found += [[error] * len(packages)] * (left if failures >= FAILURES_MAX else min(left, 1))
        return found

    async def _asked(
        self, packages: Sequence[str], inputs: Sequence[bytes], found: list[list[PolicyDocument]]
    ) -> PolicyDocument | None:
        """Add the answers to `found` as they come; the error that stands for the first that is missing."""
        try:
            process = self._process or await self._started()
            await _tell(process, {"packages": list(packages), "inputs": [one.decode() for one in inputs]})
            for _ in inputs:
                async with asyncio.timeout(self._timeout_s):
                    documents = await _hear(process)
                found.append([PolicyDocument(**one) for one in documents])
        except TimeoutError:
            await self._end()
            self._restarts += 1
            self._error = f"no answer in {self._timeout_s:g} s (ORACULO_POLICIES_TIMEOUT_S)"
            return PolicyDocument(error=self._error, kind="timeout")
        except (OSError, asyncio.IncompleteReadError):
            said = await self._end()
            self._restarts += 1
            self._error = f"the evaluation ended its process{f': {said}' if said else ''}"
            return PolicyDocument(error=self._error, kind="evaluation")
        except PolicyError as error:
            self._error = str(error)
            return PolicyDocument(error=self._error, kind="unavailable")
        except BaseException:  # cancelled: what it would say now would be taken for the next answer
            await self._end()
            raise
        return None

    async def _started(self) -> asyncio.subprocess.Process:
        """A process with the policies compiled in it. PolicyError: they do not compile."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", str(CHILD), stdin=pipe, stdout=pipe, stderr=pipe, env={"PATH": ""}
        )
        self._process = process
        assert process.stderr is not None
        self._errors = asyncio.create_task(_last(process.stderr))
        modules, data = dict(self._folder.modules), list(self._folder.data)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await _tell(process, {"modules": modules, "data": data, "packages": self._packages})
                said = await _hear(process)
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            text = await self._end()
            if "No module named 'regopy'" in text:
                raise MissingExtraError("ORACULO_POLICIES=embedded:…", "policies") from None
            kind = "took too long" if isinstance(error, TimeoutError) else "ended its process"
            raise PolicyError(f"compiling the policies {kind}{f': {text}' if text else ''}") from None
        if "error" in said:
            text = await self._end()
            raise PolicyError(f"the policies do not compile: {explained(text) or said['error']}")
        return process

    async def _end(self) -> str:
        """Kill the process; what it said last on its standard error."""
        process, self._process = self._process, None
        errors, self._errors = self._errors, None
        if process is None:
            return ""
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        said = b"" if errors is None else await errors
        process._transport.close()  # type: ignore[attr-defined]
        return said.decode(errors="replace").strip()


def explained(text: str) -> str:
    """The first fault that regopy names: what is wrong, and where."""
    lines = [line.strip() for line in text.splitlines()]
    place = _PLACE.search(text)
    if place is None:
        return ""
    number = lines.index(f"-- {place[1]}")
    return f"{place[1]}: {lines[number - 1]}" if number else place[1]


async def _tell(process: asyncio.subprocess.Process, asked: Any) -> None:
    assert process.stdin is not None
    body = orjson.dumps(asked)
    process.stdin.write(LENGTH.pack(len(body)) + body)
    await process.stdin.drain()


async def _hear(process: asyncio.subprocess.Process) -> Any:
    assert process.stdout is not None
    length = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))[0]
    return orjson.loads(await process.stdout.readexactly(length))


async def _last(errors: asyncio.StreamReader) -> bytes:
    """The last of what was written there, read to its end."""
    kept = b""
    while some := await errors.read(ERRORS_MAX_BYTES):
        kept = (kept + some)[-ERRORS_MAX_BYTES:]
    return kept
