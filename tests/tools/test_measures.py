"""The script that measures the code, on a tree that is small enough to count by hand."""

from tools.measures import constants, duplicate_classes, files_of, measures, modules_of, port_probes, table

SOURCE = '''"""A module."""
from typing import Any

AT_ONCE, FAR = 1, 2
LIMIT: int = 3


class Link:
    def of(self, broker: Any) -> Any:
        """Whoever it is."""
        import os
        return getattr(broker, "members", None) or getattr(os, "name")  # type: ignore[x]
'''
FILES = {
    "src/oraculo/a.py": SOURCE,
    "src/oraculo/b.py": '"""Another."""\nclass Link: ...\nclass _Link: ...\n',
    "pyproject.toml": '[[tool.importlinter.contracts]]\nignore_imports = ["a -> b"]\n',
}


def test_measures_of_a_small_tree() -> None:
    found = measures(FILES)
    wanted = {
        "lines": "15", "modules": "2", "functions": "1", "getattr/hasattr with a fixed name": "2",
        "… of these on a port": "1", "Any": "3", "type: ignore": "1", "ignored imports": "1",
        "imports inside functions": "1", "module constants": "3", "… of one word": "2 (67 %)",
        "public class names in two modules": "1", "docstrings": "3", "… with nobody, somebody, whoever …": "1",
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted


def test_places_are_named() -> None:
    modules = modules_of(FILES)
    assert port_probes(modules) == [("src/oraculo/a.py:12", "broker")]
    assert duplicate_classes(modules) == {"Link": ["src/oraculo/a.py", "src/oraculo/b.py"]}
    assert constants(modules) == ["AT_ONCE", "FAR", "LIMIT"]


def test_the_working_tree_can_be_measured() -> None:
    files = files_of(".")
    assert files["pyproject.toml"] and "src/oraculo/errors.py" in files
    assert table({"a": measures(FILES), "b": measures(FILES)}).splitlines()[2] == "| lines | 15 | 15 |"
