# What a service level promises: a deadline that lies ahead and not too far, a quality of service and a priority that fit
# the risk band, and time for what is estimated.
package neuralhive.orchestrator.sla_enforcement

import rego.v1

default_limits := {"max_deadline_ms": 604800000, "timeout_factor": 1.5, "warn_share": 0.2}

limits := object.union(default_limits, data.oraculo.sla) if {
	data.oraculo.sla
} else := default_limits

strict_bands := {"critical", "high"}

least_priority := {"critical": 4, "high": 3, "medium": 2, "low": 1}

priorities := {"LOW": 1, "NORMAL": 2, "HIGH": 3, "CRITICAL": 4}

default allow := false

allow if count(violations) == 0

left := input.resource.sla.deadline - input.context.current_time

violations contains violation if {
	left < 0
	violation := {
		"policy": "sla_enforcement", "rule": "deadline_in_past", "severity": "critical", "field": "sla.deadline",
		"msg": "the deadline has passed", "expected": "a later one", "actual": sprintf("%d ms ago", [0 - left]),
	}
}

violations contains violation if {
	left > limits.max_deadline_ms
	violation := {
		"policy": "sla_enforcement", "rule": "deadline_too_far", "severity": "medium", "field": "sla.deadline",
		"msg": "the deadline is too far away", "expected": limits.max_deadline_ms, "actual": left,
	}
}

violations contains violation if {
	input.resource.risk_band in strict_bands
	input.resource.qos.delivery_mode != "EXACTLY_ONCE"
	violation := {
		"policy": "sla_enforcement", "rule": "qos_mismatch_risk_band", "severity": qos_severity, "field": "qos.delivery_mode",
		"msg": sprintf("the band %s needs EXACTLY_ONCE", [input.resource.risk_band]),
		"expected": "EXACTLY_ONCE", "actual": input.resource.qos.delivery_mode,
	}
}

violations contains violation if {
	input.resource.risk_band in strict_bands
	input.resource.qos.consistency != "STRONG"
	violation := {
		"policy": "sla_enforcement", "rule": "qos_mismatch_risk_band", "severity": qos_severity, "field": "qos.consistency",
		"msg": sprintf("the band %s needs STRONG", [input.resource.risk_band]),
		"expected": "STRONG", "actual": input.resource.qos.consistency,
	}
}

qos_severity := "critical" if {
	input.resource.risk_band == "critical"
} else := "high"

violations contains violation if {
	priorities[input.resource.priority] < least_priority[input.resource.risk_band]
	violation := {
		"policy": "sla_enforcement", "rule": "priority_mismatch_risk_band", "severity": "medium", "field": "priority",
		"msg": sprintf("%s is too low for the band %s", [input.resource.priority, input.resource.risk_band]),
		"expected": input.resource.risk_band, "actual": input.resource.priority,
	}
}

violations contains violation if {
	input.resource.sla.timeout_ms < input.resource.estimated_duration_ms * limits.timeout_factor
	violation := {
		"policy": "sla_enforcement", "rule": "timeout_insufficient", "severity": "high", "field": "sla.timeout_ms",
		"msg": sprintf("%d ms for what is estimated at %d", [input.resource.sla.timeout_ms, input.resource.estimated_duration_ms]),
		"expected": input.resource.estimated_duration_ms * limits.timeout_factor, "actual": input.resource.sla.timeout_ms,
	}
}

warnings contains warning if {
	left >= 0
	left < input.resource.sla.timeout_ms * limits.warn_share
	warning := {
		"policy": "sla_enforcement", "rule": "deadline_approaching_threshold",
		"msg": sprintf("%d ms are left", [left]),
	}
}
