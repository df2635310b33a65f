"""The architecture page says what the code does."""

from __future__ import annotations

from pathlib import Path

from architecture.ticket_diagram import mermaid

ROOT = Path(__file__).parents[2]


def test_the_ticket_diagram_in_the_docs_is_the_one_that_the_core_draws() -> None:
    assert mermaid() in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_page_names_every_folder_and_module_of_the_package() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "oraculo"
    folders = [f"`{one.name}/`" for one in package.iterdir() if (one / "__init__.py").exists()]
    modules = [f"`{one.name}`" for one in package.glob("[a-z]*.py")]
    assert folders and modules
    assert [name for name in sorted(folders + modules) if name not in page] == []
