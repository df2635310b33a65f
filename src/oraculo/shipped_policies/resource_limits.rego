# What a plan or a ticket may ask for: time, attempts, capabilities, tickets. Limits by risk band; a plan without one has
# the widest. data.oraculo.limits takes the place of the numbers below, key by key.
package neuralhive.orchestrator.resource_limits

import rego.v1

default_limits := {
	"timeout_ms": {"critical": 7200000, "high": 3600000, "medium": 1800000, "low": 900000},
	"max_retries": {"critical": 5, "high": 3, "medium": 2, "low": 1},
	"min_duration_ms": 1000,
}

limits := object.union(default_limits, data.oraculo.limits) if {
	data.oraculo.limits
} else := default_limits

band := input.resource.risk_band if {
	input.resource.risk_band
} else := "critical"

default allow := false

allow if count(violations) == 0

violations contains violation if {
	input.context.point != "plano" # the time of a plan is for sla_enforcement
	input.resource.sla.timeout_ms > limits.timeout_ms[band]
	violation := {
		"policy": "resource_limits", "rule": "timeout_exceeds_maximum", "severity": "high", "field": "sla.timeout_ms",
		"msg": sprintf("an attempt may take %d ms, %d at most in the band %s", [input.resource.sla.timeout_ms, limits.timeout_ms[band], band]),
		"expected": limits.timeout_ms[band], "actual": input.resource.sla.timeout_ms,
	}
}

violations contains violation if {
	input.resource.sla.max_retries > limits.max_retries[band]
	violation := {
		"policy": "resource_limits", "rule": "retries_exceed_maximum", "severity": "medium", "field": "sla.max_retries",
		"msg": sprintf("%d retries, %d at most in the band %s", [input.resource.sla.max_retries, limits.max_retries[band], band]),
		"expected": limits.max_retries[band], "actual": input.resource.sla.max_retries,
	}
}

violations contains violation if {
	input.resource.estimated_duration_ms < limits.min_duration_ms
	violation := {
		"policy": "resource_limits", "rule": "estimated_duration_unrealistic", "severity": "low", "field": "estimated_duration_ms",
		"msg": sprintf("estimated at %d ms, %d at least is realistic", [input.resource.estimated_duration_ms, limits.min_duration_ms]),
		"expected": limits.min_duration_ms, "actual": input.resource.estimated_duration_ms,
	}
}

violations contains violation if {
	input.resource.estimated_duration_ms >= input.resource.sla.timeout_ms
	violation := {
		"policy": "resource_limits", "rule": "estimated_duration_unrealistic", "severity": "medium", "field": "estimated_duration_ms",
		"msg": sprintf("estimated at %d ms, and an attempt may take %d", [input.resource.estimated_duration_ms, input.resource.sla.timeout_ms]),
		"expected": input.resource.sla.timeout_ms, "actual": input.resource.estimated_duration_ms,
	}
}

violations contains violation if {
	count(input.parameters.allowed_capabilities) > 0
	some capability in input.resource.required_capabilities
	not capability in input.parameters.allowed_capabilities
	violation := {
		"policy": "resource_limits", "rule": "capabilities_not_allowed", "severity": "high", "field": "required_capabilities",
		"msg": sprintf("the capability %s is not allowed", [capability]),
		"expected": input.parameters.allowed_capabilities, "actual": capability,
	}
}

violations contains violation if {
	input.context.total_tickets > input.parameters.max_concurrent_tickets
	violation := {
		"policy": "resource_limits", "rule": "concurrent_tickets_limit", "severity": "high", "field": "total_tickets",
		"msg": sprintf("%d tickets, %d at most", [input.context.total_tickets, input.parameters.max_concurrent_tickets]),
		"expected": input.parameters.max_concurrent_tickets, "actual": input.context.total_tickets,
	}
}
