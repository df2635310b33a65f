# Who may have what done: tenants, roles, personal data, requests a minute. A rule whose setting is empty asks nothing.
# Who a user is was verified before: input.context.user_id is empty for a request that nobody is known to have made.
package neuralhive.orchestrator.security_constraints

import rego.v1

default_roles := {"admin": ["*"], "developer": ["code_generation", "testing"]}

roles := object.union(default_roles, data.oraculo.roles) if {
	data.oraculo.roles
} else := default_roles

default allow := false

allow if count(serious) == 0

serious contains violation if {
	some violation in violations
	violation.severity in {"critical", "high"}
}

violations contains violation if {
	count(input.security.allowed_tenants) > 0
	not input.context.tenant_id in input.security.allowed_tenants
	violation := {
		"policy": "security_constraints", "rule": "cross_tenant_access", "severity": "critical", "field": "tenant_id",
		"msg": sprintf("the tenant %s is not allowed", [input.context.tenant_id]),
		"expected": input.security.allowed_tenants, "actual": input.context.tenant_id,
	}
}

violations contains violation if {
	count(input.security.rbac_roles) > 0
	not input.context.user_id
	violation := {
		"policy": "security_constraints", "rule": "missing_authentication", "severity": "critical", "field": "user_id",
		"msg": "who asked is not known", "expected": "a user", "actual": "",
	}
}

granted contains capability if {
	some role in input.security.rbac_roles[input.context.user_id]
	some capability in roles[role]
}

violations contains violation if {
	count(input.security.rbac_roles) > 0
	input.context.user_id
	some capability in input.resource.required_capabilities
	not "*" in granted
	not capability in granted
	violation := {
		"policy": "security_constraints", "rule": "insufficient_permissions", "severity": "high", "field": "required_capabilities",
		"msg": sprintf("%s may not have %s done", [input.context.user_id, capability]),
		"expected": "a role with it", "actual": capability,
	}
}

violations contains violation if {
	input.resource.contains_pii
	classification != "confidential"
	violation := {
		"policy": "security_constraints", "rule": "pii_handling_violation", "severity": "high", "field": "data_classification",
		"msg": "personal data has to be classified as confidential",
		"expected": "confidential", "actual": classification,
	}
}

classification := lower(input.resource.data_classification) if {
	input.resource.data_classification
} else := "none"

rate_limit := input.security.tenant_rate_limits[input.context.tenant_id] if {
	input.security.tenant_rate_limits[input.context.tenant_id]
} else := input.security.default_tenant_rate_limit

violations contains violation if {
	input.context.request_count_last_minute > rate_limit
	violation := {
		"policy": "security_constraints", "rule": "tenant_rate_limit_exceeded", "severity": "medium", "field": "request_count_last_minute",
		"msg": sprintf("%d requests in a minute, %d at most", [input.context.request_count_last_minute, rate_limit]),
		"expected": rate_limit, "actual": input.context.request_count_last_minute,
	}
}
