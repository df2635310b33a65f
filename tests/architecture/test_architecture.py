"""The architecture page says what the code does."""

from __future__ import annotations

from pathlib import Path

from architecture.ticket_diagram import mermaid

ROOT = Path(__file__).parents[2]


def test_the_ticket_diagram_in_the_docs_is_the_one_that_the_core_draws() -> None:
    assert mermaid() in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_page_names_every_folder_of_the_package() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for folder in ("core", "wire", "ports", "runtime", "adapters", "simulation"):
        assert f"`{folder}/`" in page
