"""Print the measures of the code for any commits, side by side: `python -m tools.measures d1a3f8c HEAD .`

A dot is the working tree. Everything is read from the syntax tree of `src/oraculo`, so that the figures of an old
commit and of today's tree come from the same script.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "src/oraculo"
MODULE_MAX_LINES = 400
FUNCTION_MAX_LINES = 60
PORT_NAMES = frozenset(
    ("broker", "clock", "engine", "inner", "journal", "member", "notifier", "observer", "performer", "sink", "store")
)
NO_SUBJECT = re.compile(r"\b(nobody|somebody|whoever|anybody)\b", re.IGNORECASE)
GUESSWORK = re.compile(rf"{NO_SUBJECT.pattern}|\b(those that|those of)\b", re.IGNORECASE)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file of the package, parsed."""

    path: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))


# -- reading a commit --------------------------------------------------------------------------------------------------


def files_of(commit: str, root: Path = ROOT) -> dict[str, str]:
    """Return path → text of the package and of pyproject.toml at that commit, or in the working tree for a dot."""
    if commit == ".":
        paths = [root / "pyproject.toml", *sorted((root / PACKAGE).rglob("*.py"))]
        return {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    command = ["git", "-C", str(root), "archive", commit, PACKAGE, "pyproject.toml"]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.name.endswith((".py", ".toml")) else None
            if content is not None:
                found[member.name] = content.read().decode()
    return found


def modules_of(files: Mapping[str, str]) -> list[Module]:
    """Parse every Python file of the package."""
    return [Module(path, text, ast.parse(text)) for path, text in sorted(files.items()) if path.endswith(".py")]


# -- what is counted ---------------------------------------------------------------------------------------------------


def long_modules(modules: Iterable[Module]) -> list[Module]:
    return [module for module in modules if module.lines > MODULE_MAX_LINES]


def length_of(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def long_functions(modules: Iterable[Module]) -> list[str]:
    return [
        f"{module.path}:{one.lineno} {one.name}"
        for module in modules
        for one in module.functions()
        if length_of(one) > FUNCTION_MAX_LINES
    ]


def attribute_probes(modules: Iterable[Module]) -> list[tuple[str, str]]:
    """Return (place, receiver) of every `getattr` and `hasattr` with a name that is written out."""
    return [
        (f"{module.path}:{node.lineno}", ast.unparse(node.args[0]))
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        and len(node.args) > 1
        and isinstance(node.args[1], ast.Constant)
    ]


def port_probes(modules: Iterable[Module]) -> list[tuple[str, str]]:
    """Return the probes whose receiver is named after a port: what it can do is not declared there."""
    return [
        (place, receiver)
        for place, receiver in attribute_probes(modules)
        if receiver.rpartition(".")[2].lstrip("_") in PORT_NAMES
    ]


def constants(modules: Iterable[Module]) -> list[str]:
    """Return the names of all module constants, without private underscores."""
    found = []
    for module in modules:
        for node in module.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [one for target in targets for one in _names(target)]
            found += [name.lstrip("_") for name in names if re.fullmatch(r"_?[A-Z][A-Z0-9_]*", name)]
    return found


def _names(target: ast.expr | None) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    return [name for one in target.elts for name in _names(one)] if isinstance(target, ast.Tuple) else []


def duplicate_classes(modules: Iterable[Module]) -> dict[str, list[str]]:
    """Return name → modules of every public class name that stands in more than one module."""
    places: dict[str, list[str]] = {}
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module.path)
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def ignored_imports(files: Mapping[str, str]) -> list[str]:
    contracts = tomllib.loads(files["pyproject.toml"])["tool"]["importlinter"]["contracts"]
    return [one for contract in contracts for one in contract.get("ignore_imports", ())]


def docstrings(modules: Iterable[Module]) -> list[str]:
    nodes = (node for module in modules for node in (module.tree, *module.classes(), *module.functions()))
    return [text for text in map(ast.get_docstring, nodes) if text]


def _matches(modules: Iterable[Module], pattern: str) -> int:
    return sum(len(re.findall(pattern, module.text)) for module in modules)


def _lazy_imports(modules: Iterable[Module]) -> int:
    return sum(
        isinstance(node, ast.Import | ast.ImportFrom)
        for module in modules
        for function in module.functions()
        for node in ast.walk(function)
    )


# -- the table ---------------------------------------------------------------------------------------------------------


def measures(files: Mapping[str, str]) -> dict[str, str]:
    """Return every measure of one tree, by name, as it is printed."""
    modules = modules_of(files)
    lines = [module.lines for module in modules]
    functions = [length_of(function) for module in modules for function in module.functions()]
    names = constants(modules)
    one_word = sum("_" not in name for name in names)
    texts = docstrings(modules)
    return {
        "lines": f"{sum(lines)}",
        "modules": f"{len(modules)}",
        "module lines, median / longest": f"{statistics.median(lines):.0f} / {max(lines)}",
        f"modules above {MODULE_MAX_LINES} lines": f"{len(long_modules(modules))}",
        "functions": f"{len(functions)}",
        "function lines, median / mean": f"{statistics.median(functions):.0f} / {statistics.mean(functions):.1f}",
        f"functions above {FUNCTION_MAX_LINES} lines": f"{len(long_functions(modules))}",
        "getattr/hasattr with a fixed name": f"{len(attribute_probes(modules))}",
        "… of these on a port": f"{len(port_probes(modules))}",
        "Any": str(_matches(modules, r"\bAny\b")),
        "type: ignore": str(_matches(modules, r"# type: ignore")),
        "noqa": str(_matches(modules, r"# noqa")),
        "ignored imports": f"{len(ignored_imports(files))}",
        "imports inside functions": f"{_lazy_imports(modules)}",
        "module constants": f"{len(names)}",
        "… of one word": f"{one_word} ({100 * one_word / len(names):.0f} %)",
        "… median length": f"{statistics.median(map(len, names)):.0f}",
        "public class names in two modules": f"{len(duplicate_classes(modules))}",
        "docstrings": f"{len(texts)}",
        "… with nobody, somebody, whoever …": f"{sum(bool(GUESSWORK.search(text)) for text in texts)}",
    }


def table(columns: Mapping[str, Mapping[str, str]]) -> str:
    """Draw a Markdown table: one row a measure, one column a commit."""
    first = next(iter(columns.values()))
    head = ["| measure | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    rows = [f"| {name} | " + " | ".join(found[name] for found in columns.values()) + " |" for name in first]
    return "\n".join([*head, *rows]) + "\n"


def main() -> None:
    commits = sys.argv[1:] or ["HEAD", "."]
    sys.stdout.write(table({commit: measures(files_of(commit)) for commit in commits}))


if __name__ == "__main__":
    main()
