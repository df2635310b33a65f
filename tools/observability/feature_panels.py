"""The dashboard's rows of features that are switched on by a setting: choice of workers, policies, service levels,
predicted durations. Where a feature is off its panels are empty."""

from __future__ import annotations

from tools.observability.panels import Panel, Query, Row, one, percentiles, quantile, rate, read, total

_P = "orchestration_"
_PAIR = "{{tenant}} {{slo}}"

FEATURE_ROWS = (
    Row(
        "Choice of workers",
        (
            one("Given by choice", rate(f"{_P}resource_allocations_total", by="status"), "{{status}}", "ops"),
            one("How they were chosen", total(f"{_P}scheduler_allocations_total", by="method"), "{{method}}"),
            one("Why others were not", total(f"{_P}scheduler_rejections_total", by="reason"), "{{reason}}"),
            percentiles("Until a worker got it", f"{_P}scheduler_allocation_duration_seconds"),
            one("Waiting for a worker", total(f"{_P}scheduler_offers")),
            Panel(
                "Given to a worker that had others of the same, and that had none",
                (
                    Query(
                        total("neural_hive_orchestrator_affinity_hits_total", by="affinity_type"), "{{affinity_type}}"
                    ),
                    Query(
                        total("neural_hive_orchestrator_affinity_misses_total", by="affinity_type"),
                        "no other of its {{affinity_type}}",
                    ),
                ),
            ),
            one(
                "Workers looked at for a ticket",
                f"{rate(f'{_P}scheduler_workers_discovered_sum')} / {rate(f'{_P}scheduler_workers_discovered_count')}",
                "mean",
            ),
            one("Registry could not be read", total(f"{_P}scheduler_discovery_failures_total", by="error_type")),
            Panel(
                "Registered workers since the start",
                (
                    Query(total(f"{_P}workers_registered_total"), "registered"),
                    Query(total(f"{_P}workers_deregistered_total"), "said goodbye"),
                    Query(total(f"{_P}workers_lost_total"), "lost"),
                    Query(total(f"{_P}tickets_withdrawn_total"), "tickets withdrawn"),
                ),
            ),
            one(
                "Trails",
                f"max by (domain, pheromone_type) ({read('neural_hive_pheromone_strength')})",
                "{{domain}} {{pheromone_type}}",
            ),
            one(
                "Tickets that made room",
                total(f"{_P}tasks_preempted_total", by="preempted_priority, preemptor_priority"),
                "{{preempted_priority}} for {{preemptor_priority}}",
            ),
            Panel(
                "Making room",
                (
                    Query(total(f"{_P}active_preemptions"), "told to stop"),
                    Query(total(f"{_P}preemption_failures_total", by="reason"), "{{reason}}"),
                ),
            ),
            one("Requests merged", total(f"{_P}requests_merged_total")),
        ),
    ),
    Row(
        "Policies",
        (
            one(
                "Verdicts", rate("opa_validations_total", by="policy_name, result"), "{{policy_name}} {{result}}", "ops"
            ),
            one(
                "Rules that refused",
                total("opa_policy_rejections_total", by="policy_name, rule"),
                "{{policy_name}} {{rule}}",
            ),
            one("Warnings", total("opa_policy_warnings_total", by="policy_name, rule"), "{{policy_name}} {{rule}}"),
            one("Not evaluated", total("opa_evaluation_errors_total", by="error_type"), "{{error_type}}"),
            Panel(
                "Time of one question",
                tuple(
                    Query(quantile(share, "opa_policy_decision_duration_seconds"), f"P{share * 100:.0f}")
                    for share in (0.5, 0.95)
                ),
                "s",
            ),
            one("Found in memory", total("opa_cache_hits_total")),
            one("Circuit", f"max by (circuit_name) ({read('opa_circuit_breaker_state')})", "{{circuit_name}}"),
        ),
    ),
    Row(
        "Service levels",
        (
            one("Alerts told", total(f"{_P}sla_alerts_published_total", by="alert_type"), "{{alert_type}}"),
            one(
                "Error budget left",
                f"min by (tenant, slo) ({read(f'{_P}sla_budget_remaining_percent')})",
                _PAIR,
                "percentunit",
            ),
            one(
                "Burn rates",
                f"max by (tenant, slo, window_hours) ({read(f'{_P}sla_burn_rate')})",
                f"{_PAIR} {{{{window_hours}}}} h",
            ),
            one("Freezes", f"max by (tenant, slo) ({read(f'{_P}sla_freezes_active')})", _PAIR),
        ),
    ),
    Row(
        "Predicted durations",
        (
            one("Within the predicted P90", total(f"{_P}ml_predictions_total", by="result"), "{{result}}"),
            Panel(
                "How far the median was off",
                (Query(quantile(0.5, f"{_P}ml_prediction_error"), "P50"),),
                "percentunit",
            ),
            one(
                "Coverage of the P90",
                f"min by (tenant, destino) ({read(f'{_P}ml_prediction_coverage')})",
                "{{tenant}} {{destino}}",
                "percentunit",
            ),
            one("Drift", f"max by (tenant, destino) ({read(f'{_P}ml_drift')})", "{{tenant}} {{destino}}"),
        ),
    ),
)
