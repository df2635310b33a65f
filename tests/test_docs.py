"""What the documents say exists, and what exists is in the documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from oraculo import errors
from oraculo.adapters.sinks.prometheus import Metrics
from oraculo.adapters.sinks.prometheus.families import described
from oraculo.adapters.sinks.prometheus.worker import WorkerMetrics
from oraculo.api.app import create_app
from oraculo.bootstrap import Oraculo
from oraculo.cli.main import app
from oraculo.runtime.crash import ALL
from oraculo.settings import VARIABLES, load

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def everything() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md")))


@pytest.mark.parametrize("variable", VARIABLES.values(), ids=lambda variable: variable.name)
def test_every_setting_is_documented_with_its_default(variable: object) -> None:
    line = next((line for line in text("settings.md").splitlines() if f"`{variable.name}`" in line), None)  # type: ignore[attr-defined]
    assert line is not None
    if variable.default:  # type: ignore[attr-defined]
        assert f"`{variable.default}`" in line  # type: ignore[attr-defined]


def test_every_setting_that_the_documents_name_exists() -> None:
    known = {variable.name for variable in VARIABLES.values()}
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    for name in set(re.findall(r"`((?:ORACULO|SLA)_[A-Z_]+)`", everything())):
        assert name in known or name in source, f"{name} is documented and nobody reads it"


def test_every_metric_is_documented_with_its_labels_and_every_documented_metric_exists() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (counter|gauge|histogram) \| (.*?) \| (.*) \|$", text("observability.md"), re.M)
    documented = {(name, kind, tuple(re.findall(r"\w+", labels)), meaning) for name, kind, labels, meaning in rows}
    registries = (Metrics().registry, WorkerMetrics(lambda: 0).registry)
    exported = {tuple(one) for registry in registries for one in described(registry)}
    assert documented == exported
    assert set(re.findall(r"`(orchestrat\w+_\w+)`", text("observability.md"))) <= {name for name, _, _, _ in exported}


def test_every_route_is_documented() -> None:
    page = text("api.md")
    routes = {
        (method.upper(), path)
        for path, methods in create_app(Oraculo(load({}, None))).openapi()["paths"].items()
        for method in methods
    }
    assert routes
    missing = [f"{method} {path}" for method, path in sorted(routes) if f"`{method} {path}`" not in page]
    assert missing == []
    for method, path in re.findall(r"`(GET|POST|PUT|DELETE) (/[^`? ]*)`", page):
        assert (method, path) in routes or path in ("/", "/docs", "/openapi.json"), f"{method} {path} does not exist"


def commands(group: object, prefix: str = "oraculo") -> list[str]:
    found = []
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        path = f"{prefix} {name}"
        found += commands(command, path) if hasattr(command, "commands") else [path]
    return found


def test_every_command_is_documented() -> None:
    page = text("cli.md")
    found = commands(typer.main.get_command(app))
    assert "oraculo up" in found
    assert [name for name in found if f"`{name}" not in page] == []


def test_every_error_is_in_the_drawn_tree() -> None:
    drawn = errors.__doc__ or ""
    for name in dir(errors):
        if name.endswith("Error"):
            assert name in drawn


def test_every_crash_point_is_explained() -> None:
    source = (ROOT / "src/oraculo/runtime/crash.py").read_text(encoding="utf-8")
    assert all(f'"{name}",  # ' in source or f'"{name}",' in source for name in ALL)


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")], ids=str
)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in links(page):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_two_readmes_have_the_same_shape() -> None:
    english, portuguese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.pt-BR.md"))
    assert len(re.findall(r"^## ", english, re.M)) == len(re.findall(r"^## ", portuguese, re.M))
    assert set(re.findall(r"\]\((docs/[^)]+)\)", english)) == set(re.findall(r"\]\((docs/[^)]+)\)", portuguese))


def test_every_adr_is_short() -> None:
    for page in (DOCS / "adr").glob("*.md"):
        assert len(page.read_text(encoding="utf-8").splitlines()) <= 40, page.name
