# Which features are on. A flag that is off means "without that feature" and refuses nothing: allow is always true.
package neuralhive.orchestrator.feature_flags

import rego.v1

allow := true

default enable_intelligent_scheduler := false

enable_intelligent_scheduler if {
	input.flags.intelligent_scheduler_enabled
	in_scheduler_namespace
	rolled_out
}

# Without a list of namespaces the scheduler is on in all of them.
in_scheduler_namespace if count(input.flags.scheduler_namespaces) == 0

in_scheduler_namespace if input.context.namespace in input.flags.scheduler_namespaces

rolled_out if input.resource.risk_band in {"critical", "high"}

rolled_out if not input.flags.gradual_rollout

default enable_burst_capacity := false

enable_burst_capacity if {
	input.flags.burst_capacity_enabled
	input.context.current_load < input.flags.burst_threshold
	deserves_burst
}

deserves_burst if input.context.tenant_id in input.flags.premium_tenants

deserves_burst if input.resource.risk_band == "critical"

default enable_predictive_allocation := false

enable_predictive_allocation if {
	input.flags.predictive_allocation_enabled
	input.context.model_accuracy > 0.85
	input.context.namespace in {"staging", "beta"}
}

default enable_auto_scaling := false

enable_auto_scaling if {
	input.flags.auto_scaling_enabled
	input.context.queue_depth > input.flags.scaling_threshold
}

default enable_experimental_features := false

enable_experimental_features if input.context.namespace in {"development", "dev", "staging"}
