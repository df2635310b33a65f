"""The order of the documentation: its chapters and pages, for the site and for `llms.txt`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

CHAPTERS: dict[str, list[str]] = {
    "Start": ["tutorial.md", "concepts.md", "comparison.md", "limits.md", "install.md"],
    "How to": [
        "recipes.md",
        "testing.md",
        "workers.md",
        "schedules.md",
        "sla.md",
        "predictions.md",
        "scheduler.md",
        "operating.md",
        "from-celery.md",
        "dashboard.md",
    ],
    "Plans": ["plans.md", "plans-running.md", "expressions.md"],
    "Brokers": [f"brokers/{name}.md" for name in ("rabbitmq", "redis", "nats", "kafka", "failover", "writing-one")],
    "Operate": [
        *(f"deploy/{name}.md" for name in ("image", "compose", "kubernetes", "systemd", "proxy")),
        *(
            "scaling.md",
            "performance.md",
            "postgres.md",
            "security.md",
            "audit.md",
            "policies.md",
            "upgrading.md",
            "releasing.md",
        ),
    ],
    "Reference": [
        "settings.md",
        "api.md",
        "cli.md",
        "python.md",
        "observability.md",
        "errors.md",
        "schemas.md",
        "glossario.md",
    ],
    "Guarantees": ["reliability.md", "proof.md"],
    "Integrations": ["celery.md", "temporal.md", "mcp.md", "fluxo-c.md"],
    "Design": ["architecture.md", "seeds.md", "requirements.md", "REFERENCIA_ORQUESTRADOR.md"],
    "Português": ["pt/tutorial.md", "pt/conceitos.md"],
}
LISTED_FOLDERS = {"Runbooks": "runbooks", "Decisions": "adr"}  # chapters that are all of a folder, by name


def chapters() -> dict[str, list[str]]:
    """Every chapter with its pages, below `docs`."""
    listed = {
        title: [f"{folder}/{page.name}" for page in sorted((DOCS / folder).glob("*.md"))]
        for title, folder in LISTED_FOLDERS.items()
    }
    return {**CHAPTERS, **listed}


def title_of(page: Path) -> str:
    """The first heading of a page."""
    return next(line[2:] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# "))
