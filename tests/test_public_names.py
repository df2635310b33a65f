"""The names that `from oraculo import …` promises, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import oraculo

PUBLIC = {
    "ApiError", "AsyncClient", "BatchRefusedError", "Client", "ConflictError", "NotFoundError", "Oraculo",
    "OraculoError", "Page", "Plan", "RunDetails", "RunEvent", "RunResult", "RunSummary", "ServerUnreachableError",
    "SettingsError", "Submitted", "UnavailableError", "WorkError", "Worker", "__version__",
}  # fmt: skip


def test_the_exported_names_are_these() -> None:
    assert set(oraculo.__all__) == PUBLIC
    assert all(getattr(oraculo, name) is not None for name in PUBLIC)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = oraculo.Nothing


@pytest.mark.parametrize(
    ("module", "least"),
    [
        ("oraculo", set()),
        ("oraculo.client", {"httpx2", "orjson"}),
        ("oraculo.worker", {"jiter", "orjson", "structlog"}),
        ("oraculo.plans.python.builder", set()),
        ("oraculo.worker.http", {"httpx2", "jiter", "orjson", "structlog"}),
    ],
)
def test_client_and_worker_import_no_module_of_the_server(module: str, least: set[str]) -> None:
    """Modules of third parties are those of the bare install, and of our own only what a client or worker needs."""
    code = f"import {module}, sys; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(shown.stdout.split())
    server = {"apsw", "fastapi", "jinja2", "prometheus_client", "pydantic", "starlette", "typer", "uvicorn"}
    assert not server & loaded
    assert least <= loaded
    rooms = {name.split(".")[1] for name in loaded if name.startswith("oraculo.")}
    assert not rooms & {"adapters", "api", "bench", "bootstrap", "cli", "dashboard", "engines", "runtime", "simulation"}
