"""The documents of policy packages → what they say of a plan or a ticket. A document that is not of the shape of a
policy is an error, never a yes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oraculo import redaction
from oraculo.core.policies import PolicyFinding, PolicyViolation
from oraculo.ports.policies import PolicyDocument

TEXT_MAX_CHARS = 300
VIOLATIONS_MAX = 50  # of one ticket; a policy may say more, and is cut off

_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}


class ShapeError(ValueError):
    """A document is not that of a policy."""


def finding_of(
    ticket: int, packages: Sequence[str], documents: Sequence[PolicyDocument], fails_open: Sequence[bool]
) -> PolicyFinding | None:
    """What all packages together say of one ticket; None: yes, and nothing more. A package that could not be asked
    refuses, unless it fails open."""
    found = PolicyFinding(ticket, True)
    errors: dict[str, list[str]] = {}  # what went wrong → with which packages
    for package, document, fails in zip(packages, documents, fails_open, strict=True):
        error = document.error
        if not error:
            try:
                allowed, violations, warnings = _read(package, document.value)
            except ShapeError as wrong:
                error = str(wrong)
            else:
                found.violations += violations
                found.warnings += warnings
                found.allowed &= allowed
        if error:
            errors.setdefault(error, []).append(package)
            found.allowed &= fails
    if not errors and found.allowed and not found.warnings and not found.violations:
        return None
    found.violations, found.warnings = found.violations[:VIOLATIONS_MAX], found.warnings[:VIOLATIONS_MAX]
    said = [f"{', '.join(names)}: {error}" for error, names in errors.items()]
    found.error = redaction.redact("; ".join(said), 2 * TEXT_MAX_CHARS)
    return found


def _read(package: str, value: Any) -> tuple[bool, list[PolicyViolation], list[PolicyViolation]]:
    if not isinstance(value, dict):
        raise ShapeError(f"the package gave {_kind(value)}, an object with allow is needed")
    allow = value.get("allow")
    if not isinstance(allow, bool):
        raise ShapeError(f"allow is {_kind(allow)}, true or false is needed")
    violations = _listed(package, value, "violations")
    warnings = _listed(package, value, "warnings")
    if not allow and not violations:
        violations = [PolicyViolation(package.rpartition(".")[2], "allow", "", "high")]
    return allow, violations, warnings


def _listed(package: str, value: dict[str, Any], name: str) -> list[PolicyViolation]:
    """A set of Rego arrives as a list. One that arrives as an object was written for Rego v0, and cannot be read."""
    found = value.get(name, [])
    if not isinstance(found, list):
        raise ShapeError(f"{name} is {_kind(found)}, a set is needed (`{name} contains …`)")
    return [_violation(package, name, one) for one in found]


def _violation(package: str, name: str, one: Any) -> PolicyViolation:
    short = package.rpartition(".")[2]
    if isinstance(one, str):
        return PolicyViolation(short, name, _text(one), "" if name == "warnings" else "high")
    if not isinstance(one, dict) or not isinstance(one.get("rule"), str):
        raise ShapeError(f"{name} has {_kind(one)} in it, a text or an object with rule is needed")
    severity = _text(one.get("severity", "" if name == "warnings" else "high"))
    said = one.get("msg", one.get("message", ""))
    fields = (_text(one.get(key, "")) for key in ("field", "expected", "actual"))
    return PolicyViolation(_text(one.get("policy", short)), _text(one["rule"]), _text(said), severity, *fields)


def _text(value: Any) -> str:
    shown = value if isinstance(value, str) else "" if value is None else redaction.clean(value)
    return redaction.redact(shown if isinstance(shown, str) else str(shown), TEXT_MAX_CHARS)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return _KINDS.get(type(value), type(value).__name__)
