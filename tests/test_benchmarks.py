"""What `benchmarks/report.py` makes of recorded runs."""

from __future__ import annotations

from typing import Any

from benchmarks import report


def step(subject: str, workload: str, result: dict[str, float] | None, *, repeat: int = 1, order: int = 0) -> Any:
    return {
        "repeat": repeat,
        "subject": subject,
        "ours": subject.startswith("oraculo"),
        "order": order,
        "workload": workload,
        "size": 10,
        "result": result,
        "error": None if result else "it failed",
        "steal_cores": 0.0,
        "other_cores": 0.1,
    }


def record(*steps: Any) -> Any:
    machine = {"processors": 2, "model": "M", "memory_gib": 4, "system": "S", "python": "3"}
    return {"date": "today", "suite": "redis", "machine": machine, "versions": {"redis": "8"}, "steps": list(steps)}


RUN = record(
    step("celery_redis", "W1", {"per_second": 100.0}),
    step("raw_redis", "RAW", {"per_second": 8000.0, "publish_per_second": 1.0, "consume_per_second": 1.0}, order=1),
    step("oraculo_redis", "W1", {"per_second": 500.0, "messages_per_second": 4000.0}, order=2),
    step("celery_redis", "SEQ", {"p50_ms": 20.0, "p99_ms": 30.0}),
    step("oraculo_redis", "SEQ", {"p50_ms": 5.0, "p99_ms": 10.0}, order=2),
    step("celery_redis", "W2", None),
)


def test_ratios_are_above_one_where_oraculo_is_faster() -> None:
    row = next(line for line in report.section([RUN]).splitlines() if "against celery_redis" in line)
    assert [cell.split()[0] for cell in row.split("|")[2:5]] == ["5.00x", "4.00x", "3.00x"]


def test_the_share_of_raw_counts_messages() -> None:
    row = next(line for line in report.section([RUN]).splitlines() if "oraculo_redis, W1" in line)
    assert "0.50 (1 run)" in row


def test_what_failed_is_said() -> None:
    assert "- no figure: celery_redis, W2 10: it failed" in report.section([RUN])


def test_runs_are_paired_within_a_repeat_and_pooled() -> None:
    slow = record(
        step("celery_redis", "W1", {"per_second": 10.0}),
        step("oraculo_redis", "W1", {"per_second": 20.0}, order=2),
    )
    row = next(line for line in report.section([RUN, slow]).splitlines() if "against celery_redis" in line)
    assert "3.50x (2.00–5.00)" in row


def test_figures_are_replaced_where_they_stand_and_else_appended() -> None:
    page = report.put("# Measured\n", "redis", "old")
    page = report.put(page + "\nwhat limits it\n", "redis", "new")
    assert page == (
        "# Measured\n\n## On Redis Streams\n\n<!-- figures: redis -->\nnew\n<!-- end of figures: redis -->\n"
        "\nwhat limits it\n"
    )
