"""What `benchmarks/report.py` makes of recorded runs."""

from __future__ import annotations

from typing import Any
from xml.dom import minidom

from benchmarks import performance, plots, report, scaling_model, table


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


def test_the_suite_of_fibonacci_numbers_has_its_own_columns() -> None:
    figures = {"light_40_s": 1.0, "long_10_s": 20.0, "light_wide_s": 4.0}
    ran = record(step("celery_fibo", "FIBO", figures), step("oraculo", "FIBO", {**figures, "light_40_s": 0.1}, order=1))
    row = next(line for line in report.section([ran]).splitlines() if "against celery_fibo" in line)
    assert [cell.split()[0] for cell in row.split("|")[2:5]] == ["10.0x", "1.00x", "1.00x"]


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


PARTS = {
    "orchestrator_cpu_ms_each": 0.5,
    "worker_cpu_ms_each": 0.2,
    "database_cpu_ms_each": 0.3,
    "broker_cpu_ms_each": 0.1,
    "steps_each": 5.0,
    "tail_hold_ms": 1.0,
    "tail_hold_ms_each_step": 0.01,
}


def test_the_page_of_performance_is_what_the_records_make_of_it() -> None:
    for path, text in performance.written().items():
        assert path.read_text() == text, f"{path.name}: run python -m benchmarks.performance"


def test_pictures_are_xml_with_a_bar_or_a_point_for_each_value() -> None:
    bars = minidom.parseString(plots.bars("<a> & b", {"celery": 10.0, "oraculo": 1000.0}, "/s"))
    assert [bar.getAttribute("fill") for bar in bars.getElementsByTagName("rect")] == [plots.OTHERS, plots.OURS]
    drawn = minidom.parseString(plots.lines("t", {"one": [(10, 1.0), (100, 20.0)]}, "x", "y"))
    assert len(drawn.getElementsByTagName("circle")) == 2


def test_the_lowest_limit_of_many_replicas_is_not_the_replicas() -> None:
    few, many = scaling_model.limits(PARTS, 2), scaling_model.limits(PARTS, 1000)
    assert (few[0].part, few[0].per_second) == ("replicas", 4000)
    assert many[0].part == "one Redis" and few[-1].per_second < many[-1].per_second


def test_a_step_waits_for_the_turns_of_the_other_replicas() -> None:
    def played(replicas: int) -> scaling_model.Played:
        return scaling_model.Simulation(PARTS, replicas, 1000.0).run(seconds=1.5, warm_up=0.5)

    few, many = played(5), played(50)
    assert few == played(5)  # the seed decides
    assert many.wait_p50_s > 4 * few.wait_p50_s
    assert few.done > 900 and few.tail_busy > 0.5
    assert few.wait_p99_s >= few.wait_p50_s > 0.001


def promised(title: str, *steps: Any) -> list[str]:
    return next(row for row in table.lines({"steps": list(steps)}) if row[0] == title)


def test_a_promise_is_judged_by_ratios_of_the_same_repeat() -> None:
    steps = [
        step("celery_redis", "W1", {"per_second": 10.0}),
        step("oraculo", "W1", {"per_second": 300.0}),
        step("celery_redis", "W1", {"per_second": 100.0}, repeat=2),
        step("oraculo", "W1", {"per_second": 2000.0}, repeat=2),
    ]
    title = "embedded W1 : Celery + Redis"
    assert promised(title, *steps) == [title, "≥ 18", "≥ 25", "25.0 (20.0–30.0)", "goal"]
    assert promised(title, *steps[2:])[3:] == ["20.0", "holds"]
    assert promised(title, *steps[:1], step("oraculo", "W1", {"per_second": 100.0}))[3:] == ["10.0", "**no**"]
    assert promised(title, steps[0], steps[3])[3:] == ["–", "not measured"]


def test_a_promise_of_at_most_holds_below_its_limit() -> None:
    title = "10,000 in flight, resident"
    for mib, verdict in ((89.0, "goal"), (130.0, "holds"), (139.0, "**no**")):
        seen = promised(title, step("oraculo (open)", "INFLIGHT", {"rss_mib": mib}))
        assert seen[1:] == ["≤ 138 MiB", "≤ 90 MiB", f"{report.number(mib)} MiB", verdict]


def test_every_promise_is_measured_in_a_repeat() -> None:
    asked: set[tuple[str, str]] = set()

    def found(row: str, workload: str, _field: str) -> float:
        asked.add((row, workload))
        return 1.0

    for promise in table.PROMISES:
        promise.value(found)
    measured = {(row, workload) for workload, row in (*table.EACH_REPEAT, *table.ONCE)}
    assert asked == measured | {table.OBSERVED}
    assert all(workload in table.ROWS[row].workloads for row, workload in measured)
