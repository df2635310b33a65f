"""`docs/llms.txt`: what there is to read, for programs that read documentation (llmstxt.org); without the runbooks and
decisions, which are many."""

from __future__ import annotations

from tools.docs.nav import CHAPTERS, DOCS, title_of

HEAD = """# Oráculo

> Durable orchestration for the workers and the broker you already run: plans are data (JSON, YAML, Python), workers
> need no SDK (JSON over RabbitMQ, Redis Streams, NATS, Kafka or HTTP), nothing accepted is lost, results count once.

Words on the wire are Portuguese; requests may use the English ones (glossario.md).
`pip install '.[server]'` in a clone (the name on PyPI is another project's), then `oraculo dev app.py`.
"""


def text() -> str:
    """The file as it should be."""
    parts = [HEAD]
    for chapter, pages in CHAPTERS.items():
        parts.append(f"## {chapter}\n")
        parts.append("\n".join(f"- [{title_of(DOCS / page)}]({page})" for page in pages) + "\n")
    return "\n".join(parts)
