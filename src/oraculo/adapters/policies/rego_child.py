"""The process that evaluates Rego with regopy; started by `embedded.py` with an empty environment, and killed by it.

It stands alone: nothing of Oráculo is imported, so that it starts quickly and a policy finds nothing of ours in it.
What it is told and what it says are JSON, each behind four bytes with its length. regopy writes errors of policies to
the standard output, which therefore leads elsewhere here.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from typing import IO, Any

from regopy import Interpreter
from regopy.rego_shared import RegoError

LENGTH = struct.Struct(">I")


def _read(inside: IO[bytes]) -> Any:
    head = inside.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    return json.loads(inside.read(LENGTH.unpack(head)[0]))


def _write(outside: IO[bytes], value: Any) -> None:
    body = json.dumps(value).encode()
    outside.write(LENGTH.pack(len(body)) + body)
    outside.flush()


def _load(modules: dict[str, str], data: list[Any], packages: list[str]) -> tuple[Interpreter, dict[str, Any]]:
    """An interpreter with all modules, and a compiled query for each package."""
    rego = Interpreter()
    for name, source in modules.items():
        rego.add_module(name, source)
    for one in data:
        rego.add_data(one)
    built = {}
    for package in packages:
        built[package] = rego.build(f"found = data.{package}")
        if not built[package].ok():
            raise ValueError(f"package {package} does not compile")
    return rego, built


def _said(rego: Interpreter, bundle: Any) -> dict[str, Any]:
    """The document of a package, or why there is none. An error of Rego is an output that prints `<error>`."""
    try:
        output = rego.query_bundle(bundle)
    except json.JSONDecodeError:
        return {"error": "the policy cannot be evaluated (a function that does not exist?)", "kind": "evaluation"}
    except RegoError as error:
        return {"error": str(error)[:300], "kind": "evaluation"}
    if not output.ok():
        return {"error": "the policy cannot be evaluated (a rule with two values?)", "kind": "evaluation"}
    found = output.results[0].bindings if output.results else {}
    if "found" not in found:
        return {"error": "there is no such package", "kind": "missing"}
    return {"value": found["found"]}


def main() -> None:
    inside = os.fdopen(os.dup(0), "rb")
    outside = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    asked = _read(inside)
    try:
        rego, built = _load(asked["modules"], asked["data"], asked["packages"])
    except Exception as error:
        sys.stdout.flush()
        _write(outside, {"error": f"{type(error).__name__}: {error}"[:2000]})
        return
    _write(outside, {"ok": True})
    while (asked := _read(inside)) is not None:
        for text in asked["inputs"]:
            rego.set_input_term(text)
            _write(outside, [_said(rego, built[package]) for package in asked["packages"]])


if __name__ == "__main__":
    main()
