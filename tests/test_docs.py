"""What the documents say exists, and what exists is in the documents."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from tools.docs import llms
from tools.docs.generate import PAGES
from tools.docs.generate import page as generated
from tools.docs.nav import chapters
from typer.core import TyperGroup

from cli.processes import Server
from oraculo import errors
from oraculo.adapters.sinks.prometheus import Metrics
from oraculo.adapters.sinks.prometheus.families import described
from oraculo.adapters.sinks.prometheus.worker import WorkerMetrics
from oraculo.api.app import create_app
from oraculo.cli.main import app
from oraculo.runtime.crash import ALL
from oraculo.service import Oraculo
from oraculo.settings.settings import VARIABLES, load

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def everything() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md")))


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_what_make_docs_writes(name: str) -> None:
    assert text(name) == generated(name), f"docs/{name} is not what the code says: run make docs"


def test_llms_txt_is_what_make_docs_writes() -> None:
    assert text("llms.txt") == llms.text(), "run make docs"


def test_every_page_has_its_place_in_the_site() -> None:
    placed = [name for names in chapters().values() for name in names]
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert len(placed) == len(set(placed)) and set(placed) == pages


def test_every_setting_is_documented_with_its_default() -> None:
    rows = text("settings.md").splitlines()
    for variable in VARIABLES:
        [row] = [row for row in rows if row.startswith(f"| `{variable.name}` |")]
        assert f"| `{variable.default}` |" in row or not variable.default
        assert row.endswith(f"{variable.help} |")


def test_every_setting_that_the_documents_name_exists() -> None:
    known = {variable.name for variable in VARIABLES}
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


def commands(group: TyperGroup, prefix: str = "oraculo") -> list[str]:
    found = []
    context = typer.Context(group)
    for name in group.list_commands(context):
        command, path = group.get_command(context, name), f"{prefix} {name}"
        found += commands(command, path) if isinstance(command, TyperGroup) else [path]
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


def test_no_page_installs_the_project_of_others_that_has_our_name_on_pypi() -> None:
    """A clone or a file is installed; the decisions and the log of changes may tell how it was."""
    pages = [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *DOCS.glob("*.txt"),
        *(ROOT / "examples").rglob("*.*"),
        *(ROOT / "scripts").rglob("*.sh"),
    ]
    read = [page for page in pages if page.parent.name != "adr" and page.name != "CHANGELOG.md"]
    bare = re.compile(r"pip install (?:-\S+ )*['\"]?oraculo(?![-\w.])")
    assert bare.search("$ pip install --upgrade 'oraculo[server]'")
    assert [
        page for page in read if page.is_file() and bare.search(page.read_text(encoding="utf-8", errors="ignore"))
    ] == []


def test_the_two_readmes_have_the_same_shape() -> None:
    english, portuguese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.pt-BR.md"))
    assert len(re.findall(r"^## ", english, re.M)) == len(re.findall(r"^## ", portuguese, re.M))
    assert set(re.findall(r"\]\((docs/[^)]+)\)", english)) == set(re.findall(r"\]\((docs/[^)]+)\)", portuguese))


def test_every_adr_has_a_status_and_a_date() -> None:
    for page in (DOCS / "adr").glob("*.md"):
        title, _, status, _ = page.read_text().split("\n")[:4]
        assert title.startswith(f"# {int(page.name[:4])}. "), page.name
        found = re.fullmatch(
            r"Status: (?:accepted|proposed|superseded by \[ADR \d+\]\(\S+\)), \d{4}-\d\d-\d\d"
            r"(?:; amended \d{4}-\d\d-\d\d[^;]*)*\.",
            status,
        )
        assert found, f"{page.name}: {status}"


def test_every_adr_is_short() -> None:
    for page in (DOCS / "adr").glob("*.md"):
        text = page.read_text(encoding="utf-8").splitlines()[4:]  # without title and status
        assert len(text) <= 38, page.name


def examples() -> list[tuple[str, str | None]]:
    """The Python examples of docs/python.md, each with the output that follows it."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text("python.md"), re.M | re.S)
    following = [*blocks[1:], ("", "")]
    return [
        (code, output if kind == "text" else None)
        for (language, code), (kind, output) in zip(blocks, following, strict=True)
        if language == "python"
    ]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path)
    one.start()
    yield one
    one.kill()


def test_the_python_examples_run_and_print_what_the_page_says(server: Server, tmp_path: Path) -> None:
    environment = {**os.environ, "ORACULO_URL": server.url, "ORACULO_STORE": "sqlite:///own.db"}

    def run(code: str) -> tuple[str, str]:
        command = [sys.executable, "-c", code]
        shown = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        return shown.stdout, shown.stderr

    [worker] = [code for code, output in examples() if output is None]
    working = subprocess.Popen([sys.executable, "-c", worker], cwd=tmp_path, env=environment)
    try:
        printing = [(code, output) for code, output in examples() if output is not None]
        assert [run(code) for code, _ in printing] == [(output, "") for _, output in printing]
        assert len(printing) == 6
    finally:
        working.terminate()
        working.wait(30)
