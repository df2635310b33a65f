{{/* Values that contradict each other, or what the cluster lacks: one line each, and nothing is installed. */}}
{{- define "oraculo.checks" -}}
{{- $c := .Values.components -}}
{{- if and .Values.autoscaling.enabled .Values.keda.enabled -}}
{{- fail "autoscaling.enabled and keda.enabled scale the same pods: switch one off" -}}
{{- end -}}
{{- if and .Values.keda.enabled (not .Values.keda.triggers) -}}
{{- fail "keda.enabled needs keda.triggers" -}}
{{- end -}}
{{- if and $c.worker.autoscaling.enabled $c.worker.keda.enabled -}}
{{- fail "components.worker.autoscaling.enabled and components.worker.keda.enabled scale the same pods: switch one off" -}}
{{- end -}}
{{- range $name, $class := $c.worker.classes -}}
{{- if and $c.worker.enabled $c.worker.keda.enabled (not $c.worker.keda.triggers) (not $class.queues) -}}
{{- fail (printf "components.worker.classes.%s.queues is empty: KEDA would not know what to count" $name) -}}
{{- end -}}
{{- end -}}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) -}}
{{- fail "autoscaling.minReplicas is more than autoscaling.maxReplicas" -}}
{{- end -}}
{{- $scaled := or .Values.autoscaling.enabled .Values.keda.enabled -}}
{{- $several := or $scaled (gt (int .Values.replicaCount) 1) $c.engine.enabled -}}
{{- if and .Values.store.sqlite.enabled (or $several $c.celeryWorker.enabled $c.celeryBeat.enabled) -}}
{{- fail "store.sqlite.enabled is for one pod: set replicaCount=1, autoscaling.enabled=false, keda.enabled=false, and leave components.engine and Celery off" -}}
{{- end -}}
{{- if and (not .Values.secrets.existingSecret) (not .Values.secrets.storeUrl) (not .Values.store.sqlite.enabled) (not .Values.config.postgres.host) -}}
{{- fail "there is no store: set config.postgres.host, secrets.storeUrl or store.sqlite.enabled" -}}
{{- end -}}
{{- range $index, $url := .Values.brokers.urls -}}
{{- if regexMatch "^[a-z+]+://[^/@]*:[^/@]+@" $url -}}
{{- fail (printf "brokers.urls[%d] has a password: give it as secrets.brokerUrl, or in secrets.existingSecret" $index) -}}
{{- end -}}
{{- end -}}
{{- if and $several (not .Values.secrets.existingSecret) (not .Values.secrets.brokerUrl) (not (include "oraculo.broker" .)) -}}
{{- if .Values.config.kafka.bootstrapServers -}}
{{- fail (printf "config.kafka.securityProtocol is %s: give the broker with its password as secrets.brokerUrl, or another in brokers.urls" .Values.config.kafka.securityProtocol) -}}
{{- else -}}
{{- fail "there is no broker that several pods can share: set brokers.urls, secrets.brokerUrl or config.kafka.bootstrapServers" -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.engine "celery") .Values.store.sqlite.enabled -}}
{{- fail "engine celery needs PostgreSQL: store.sqlite.enabled is true" -}}
{{- end -}}
{{- if and (or $c.celeryWorker.enabled $c.celeryBeat.enabled) (ne .Values.engine "celery") -}}
{{- fail "components.celeryWorker and components.celeryBeat are for engine=celery" -}}
{{- end -}}
{{- if and (eq .Values.engine "temporal") (not .Values.config.temporal.enabled) -}}
{{- fail "engine is temporal and config.temporal.enabled is false" -}}
{{- end -}}
{{- if and .Values.config.kafka.saslUsername (not (hasPrefix "SASL_" .Values.config.kafka.securityProtocol)) -}}
{{- fail (printf "config.kafka.saslUsername needs config.kafka.securityProtocol SASL_PLAINTEXT or SASL_SSL, not %s" .Values.config.kafka.securityProtocol) -}}
{{- end -}}
{{- if and .Values.config.slaManagement.enabled (not .Values.config.sla.proactiveMonitoringEnabled) -}}
{{- fail "config.slaManagement.enabled needs config.sla.proactiveMonitoringEnabled, which tells of its budgets" -}}
{{- end -}}
{{- if and .Values.oidc.issuer (not (and .Values.oidc.clientId .Values.publicUrl)) -}}
{{- fail "oidc.issuer needs oidc.clientId, and publicUrl, to which browsers come back" -}}
{{- end -}}
{{- if and .Values.tls.clientCertificates (not .Values.tls.existingSecret) -}}
{{- fail "tls.clientCertificates needs tls.existingSecret" -}}
{{- end -}}
{{- range $name := list "startupProbe" "livenessProbe" "readinessProbe" -}}
{{- if and (eq $.Values.tls.clientCertificates "required") (index $.Values $name).httpGet -}}
{{- fail (printf "tls.clientCertificates is required, and %s is httpGet: the kubelet shows no certificate. Use optional, or another kind of probe" $name) -}}
{{- end -}}
{{- end -}}
{{- if include "oraculo.spiffeIdentities" . -}}
{{- if not .Values.tls.clientCertificates -}}
{{- fail "config.spiffe.identities needs tls.clientCertificates: they are shown in certificates" -}}
{{- end -}}
{{- range $index, $identity := .Values.config.spiffe.identities -}}
{{- with $.Values.config.spiffe.trustDomain -}}
{{- if not (hasPrefix (printf "spiffe://%s/" .) $identity.id) -}}
{{- fail (printf "config.spiffe.identities[%d] is not of config.spiffe.trustDomain %s: %s" $index . $identity.id) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := include "oraculo.environment" . | fromYaml -}}
{{- if regexMatch "^[a-z+]+://[^/@]*:[^/@]+@" $value -}}
{{- fail (printf "%s has a password, and would be in the ConfigMap: put it into a Secret, which extraEnv names" $name) -}}
{{- end -}}
{{- end -}}
{{- include "oraculo.checkSecret" . -}}
{{- end -}}

{{/* Only where there is a cluster to ask: the service account `default` is in every namespace. */}}
{{- define "oraculo.checkSecret" -}}
{{- $tls := .Values.tls.existingSecret -}}
{{- if and $tls .Values.secrets.check (lookup "v1" "ServiceAccount" .Release.Namespace "default") -}}
{{- $found := lookup "v1" "Secret" .Release.Namespace $tls -}}
{{- if not $found -}}
{{- fail (printf "tls.existingSecret: there is no Secret %s in the namespace %s" $tls .Release.Namespace) -}}
{{- end -}}
{{- $keys := dict "certKey" .Values.tls.certKey "keyKey" .Values.tls.keyKey "caKey" .Values.tls.caKey -}}
{{- if .Values.tls.clientCertificates }}{{- $_ := set $keys "clientCaKey" .Values.tls.clientCaKey -}}{{- end -}}
{{- range $name, $key := $keys -}}
{{- if and $key (not (hasKey ($found.data | default dict) $key)) -}}
{{- fail (printf "tls.existingSecret: the Secret %s has no key %s (tls.%s)" $tls $key $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $name := .Values.secrets.existingSecret -}}
{{- if and $name .Values.secrets.check (lookup "v1" "ServiceAccount" .Release.Namespace "default") -}}
{{- $found := lookup "v1" "Secret" .Release.Namespace $name -}}
{{- if not $found -}}
{{- fail (printf "secrets.existingSecret: there is no Secret %s in the namespace %s" $name .Release.Namespace) -}}
{{- end -}}
{{- if not (hasKey ($found.data | default dict) .Values.secrets.keys.apiKey) -}}
{{- fail (printf "secrets.existingSecret: the Secret %s has no key %s (secrets.keys.apiKey)" $name .Values.secrets.keys.apiKey) -}}
{{- end -}}
{{- end -}}
{{- end -}}
