"""The alerts of features that are switched on by a setting; silent where they are off. Bounds are those of Fluxo C."""

from __future__ import annotations

from tools.observability.alerts import Alert

_P = "orchestration_"
_GIVEN = f'{_P}resource_allocations_total{{status="success"}}'
_LATE = f'{_P}resource_allocations_total{{status="failed"}}'
_ALLOWED = 'opa_validations_total{policy_name="p",result="allow"}'
_REFUSED = 'opa_validations_total{policy_name="p",result="deny"}'
_ERROR = 'opa_validations_total{policy_name="p",result="error"}'
_BUDGET = f'{_P}sla_budget_remaining_percent{{tenant="",slo="s"}}'
_TASK = '{tenant="",destino="coleta um"}'

FEATURE_ALERTS = (
    Alert(
        "OraculoAllocationsFail",
        f'sum(rate({_P}resource_allocations_total{{status="failed"}}[5m]))'
        f" / sum(rate({_P}resource_allocations_total[5m]))",
        "> 0.05", "5m", "critical", "More than one choice of a worker in twenty came too late for its ticket",
        {_GIVEN: "0+90x20", _LATE: "0+10x20"}, "15m", {_GIVEN: "0+99x20", _LATE: "0+1x20"},
    ),
    Alert(
        "OraculoAllocationsSlow",
        f"histogram_quantile(0.95, sum by (le) (rate({_P}scheduler_allocation_duration_seconds_bucket[5m])))", "> 5",
        "10m", "warning", "Tickets wait here for more than five seconds until a worker gets them",
        {
            f'{_P}scheduler_allocation_duration_seconds_bucket{{le="5"}}': "0x30",
            f'{_P}scheduler_allocation_duration_seconds_bucket{{le="10"}}': "0+10x30",
            f'{_P}scheduler_allocation_duration_seconds_bucket{{le="+Inf"}}': "0+10x30",
        },
        "25m",
        {
            f'{_P}scheduler_allocation_duration_seconds_bucket{{le="5"}}': "0+10x30",
            f'{_P}scheduler_allocation_duration_seconds_bucket{{le="10"}}': "0+10x30",
            f'{_P}scheduler_allocation_duration_seconds_bucket{{le="+Inf"}}': "0+10x30",
        },
    ),
    Alert(
        "OraculoWorkersNotRead", f"sum(increase({_P}scheduler_discovery_failures_total[10m]))", "> 0", "0m", "warning",
        "The registry of workers could not be read: choices rest on what was known before",
        {f'{_P}scheduler_discovery_failures_total{{error_type="StoreUnavailableError"}}': "0 0 1x10"}, "6m",
        {f'{_P}scheduler_discovery_failures_total{{error_type="StoreUnavailableError"}}': "0x10"},
    ),
    Alert(
        "OraculoWorkersLost", f"sum(increase({_P}workers_lost_total[15m]))", "> 0", "0m", "warning",
        "A registered worker was heard of no more: its tickets went elsewhere",
        {f"{_P}workers_lost_total": "0 0 1x10"}, "6m", {f"{_P}workers_lost_total": "0x10"},
    ),
    Alert(
        "OraculoPreemptionsFail",
        f"sum(increase({_P}preemption_failures_total[15m]))"
        f" / (sum(increase({_P}preemption_failures_total[15m])) + sum(increase({_P}tasks_preempted_total[15m])))",
        "> 0.3", "5m", "warning", "Workers do not stop what they are told to stop for a more urgent ticket",
        {
            f'{_P}preemption_failures_total{{reason="nao_parou"}}': "0+5x30",
            f'{_P}tasks_preempted_total{{preempted_priority="LOW",preemptor_priority="HIGH"}}': "0+5x30",
        },
        "25m",
        {
            f'{_P}preemption_failures_total{{reason="nao_parou"}}': "0+1x30",
            f'{_P}tasks_preempted_total{{preempted_priority="LOW",preemptor_priority="HIGH"}}': "0+9x30",
        },
    ),
    Alert(
        "OraculoTrailFailing",
        'max by (domain) (neural_hive_pheromone_strength{pheromone_type="FAILURE"})'
        ' / (max by (domain) (neural_hive_pheromone_strength{pheromone_type="SUCCESS"})'
        ' + max by (domain) (neural_hive_pheromone_strength{pheromone_type="FAILURE"}))',
        "> 0.5", "15m", "warning", "A queue has left more marks of failure than of success lately",
        {
            'neural_hive_pheromone_strength{layer="execution",domain="q",pheromone_type="SUCCESS"}': "4x30",
            'neural_hive_pheromone_strength{layer="execution",domain="q",pheromone_type="FAILURE"}': "6x30",
        },
        "20m",
        {
            'neural_hive_pheromone_strength{layer="execution",domain="q",pheromone_type="SUCCESS"}': "6x30",
            'neural_hive_pheromone_strength{layer="execution",domain="q",pheromone_type="FAILURE"}': "4x30",
        },
        {"domain": "q"},
    ),
    Alert(
        "OraculoPoliciesRefuse",
        'sum(rate(opa_validations_total{result="deny"}[5m])) / sum(rate(opa_validations_total[5m]))', "> 0.1",
        "5m", "warning", "Policies refuse more than one question in ten",
        {_ALLOWED: "0+80x20", _REFUSED: "0+20x20"}, "15m", {_ALLOWED: "0+95x20", _REFUSED: "0+5x20"},
    ),
    Alert(
        "OraculoPoliciesFail",
        'sum(rate(opa_validations_total{result="error"}[5m])) / sum(rate(opa_validations_total[5m]))',
        "> 0.05", "5m", "critical", "Policies cannot be evaluated: what is closed refuses, what is open lets through",
        {_ALLOWED: "0+80x20", _ERROR: "0+20x20"}, "15m", {_ALLOWED: "0+99x20", _ERROR: "0+1x20"},
    ),
    Alert(
        "OraculoPoliciesSlow",
        "histogram_quantile(0.95, sum by (le) (rate(opa_policy_decision_duration_seconds_bucket[5m])))", "> 0.1", "5m",
        "warning", "P95 of a question to policies is above a tenth of a second",
        {
            'opa_policy_decision_duration_seconds_bucket{le="0.1"}': "0x20",
            'opa_policy_decision_duration_seconds_bucket{le="0.5"}': "0+10x20",
            'opa_policy_decision_duration_seconds_bucket{le="+Inf"}': "0+10x20",
        },
        "15m",
        {
            'opa_policy_decision_duration_seconds_bucket{le="0.1"}': "0+10x20",
            'opa_policy_decision_duration_seconds_bucket{le="0.5"}': "0+10x20",
            'opa_policy_decision_duration_seconds_bucket{le="+Inf"}': "0+10x20",
        },
    ),
    Alert(
        "OraculoPoliciesLeftAlone", "max by (circuit_name) (opa_circuit_breaker_state)", "== 2", "2m", "critical",
        "Policies failed so often in a row that they are not asked for a while",
        {'opa_circuit_breaker_state{circuit_name="opa"}': "0 2x10"}, "5m",
        {'opa_circuit_breaker_state{circuit_name="opa"}': "0 2 1 0x10"}, {"circuit_name": "opa"},
    ),
    Alert(
        "OraculoDeadlineMissed",
        f'sum(increase({_P}sla_alerts_published_total{{alert_type="DEADLINE_EXCEEDED"}}[10m]))', "> 0", "0m",
        "critical", "A run or a ticket missed its deadline",
        {f'{_P}sla_alerts_published_total{{alert_type="DEADLINE_EXCEEDED"}}': "0 0 1x10"}, "6m",
        {f'{_P}sla_alerts_published_total{{alert_type="DEADLINE_EXCEEDED"}}': "0x10"},
    ),
    Alert(
        "OraculoObjectiveBurns",
        f'sum(increase({_P}sla_alerts_published_total{{alert_type="BURN_RATE_HIGH"}}[15m]))', "> 0", "0m", "critical",
        "An objective burns its error budget too fast, in a long window and in a short one",
        {f'{_P}sla_alerts_published_total{{alert_type="BURN_RATE_HIGH"}}': "0 0 1x10"}, "6m",
        {f'{_P}sla_alerts_published_total{{alert_type="BURN_RATE_HIGH"}}': "0x10"},
    ),
    Alert(
        "OraculoBudgetLow", f"min by (tenant, slo) ({_P}sla_budget_remaining_percent)", "< 0.2", "5m", "warning",
        "Less than a fifth of an error budget is left",
        {_BUDGET: "1 0.15x20"}, "10m", {_BUDGET: "0.25x20"}, {"slo": "s"},
    ),
    Alert(
        "OraculoBudgetExhausted", f"min by (tenant, slo) ({_P}sla_budget_remaining_percent)", "<= 0", "1m", "critical",
        "An error budget is used up",
        {_BUDGET: "1 0x20"}, "5m", {_BUDGET: "0.05x20"}, {"slo": "s"},
    ),
    Alert(
        "OraculoFreezeLong", f"max by (tenant, slo) ({_P}sla_freezes_active)", "> 0", "2h", "warning",
        "Releases have been frozen for two hours",
        {f'{_P}sla_freezes_active{{tenant="",slo="s"}}': "1x150"}, "130m",
        {f'{_P}sla_freezes_active{{tenant="",slo="s"}}': "1x60 0x90"}, {"slo": "s"},
    ),
    Alert(
        "OraculoDurationsDrift", f"max by (tenant, destino) ({_P}ml_drift)", "> 0", "15m", "warning",
        "Tasks of a destination take longer or shorter than they did: predictions are being learnt anew",
        {f"{_P}ml_drift{_TASK}": "1x30"}, "20m", {f"{_P}ml_drift{_TASK}": "1x5 0x25"}, {"destino": "coleta um"},
    ),
)  # fmt: skip
