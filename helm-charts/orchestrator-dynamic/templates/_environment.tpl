{{/* A value as text: whole numbers without exponent, lists and maps as JSON, nothing for null. */}}
{{- define "oraculo.text" -}}
{{- if or (kindIs "slice" .) (kindIs "map" .) -}}{{ toJson . }}
{{- else if kindIs "invalid" . -}}
{{- else if and (kindIs "float64" .) (eq (printf "%.6f" .) (printf "%.6f" (floor .))) -}}{{ printf "%.0f" . }}
{{- else -}}{{ toString . }}
{{- end -}}
{{- end -}}

{{/* The value at a path such as "sla.defaultTimeoutMs": (list map path); as {"value": …} in JSON. */}}
{{- define "oraculo.at" -}}
{{- $found := index . 0 -}}
{{- range splitList "." (index . 1) -}}
{{- if kindIs "map" $found -}}{{- $found = index $found . -}}{{- else -}}{{- $found = "" -}}{{- end -}}
{{- end -}}
{{ toJson (dict "value" $found) }}
{{- end -}}

{{/* The variables of the pods that are no secrets, as a YAML map: the same in the ConfigMap and in jobs. */}}
{{- define "oraculo.environment" -}}
{{- $root := . -}}
{{- $made := dict -}}
{{- range $row := .Files.Get "files/environment.yaml" | fromYamlArray -}}
{{- $wanted := true -}}
{{- with $row.when -}}
{{- $wanted = (include "oraculo.at" (list $root.Values.config .) | fromJson).value -}}
{{- end -}}
{{- $value := (include "oraculo.at" (list $root.Values.config $row.key) | fromJson).value -}}
{{- $text := include "oraculo.text" $value -}}
{{- if and $wanted (ne $text "") -}}
{{- range $index, $name := $row.set -}}
{{- if and $row.divide (gt $index 0) -}}
{{- $_ := set $made $name (include "oraculo.text" (divf (float64 $value) (float64 $row.divide))) -}}
{{- else if and $row.as (gt $index 0) -}}
{{- $_ := set $made $name (printf $row.as $text) -}}
{{- else -}}
{{- $_ := set $made $name $text -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set $made "ORACULO_HOST" .Values.listenAddress -}}
{{- $_ := set $made "ORACULO_PORT" (include "oraculo.httpPort" .) -}}
{{- $_ := set $made "ORACULO_METRICS_PORT" (include "oraculo.metricsPort" .) -}}
{{- $_ := set $made "PROMETHEUS_PORT" (include "oraculo.metricsPort" .) -}}
{{- with .Values.service.ports.grpc -}}
{{- if .enabled -}}{{- $_ := set $made "ORACULO_GRPC_PORT" (int .targetPort | toString) -}}{{- end -}}
{{- end -}}
{{- $_ := set $made "ORACULO_URL" (.Values.publicUrl | default (include "oraculo.url" .)) -}}
{{- if and .Values.tls.existingSecret .Values.tls.caKey -}}
{{- $_ := set $made "ORACULO_URL_CA" (include "oraculo.tlsFile" .Values.tls.caKey) -}}
{{- end -}}
{{- $_ := set $made "ORACULO_RESULT_TOKENS" .Values.resultTokens -}}
{{- range $key, $name := dict "results" "RESULT" "requests" "REQUEST" "orders" "ORDER" -}}
{{- $_ := set $made (printf "ORACULO_%s_SIGNATURES" $name) (index $root.Values.signatures $key) -}}
{{- end -}}
{{- if .Values.oidc.issuer -}}
{{- $names := dict "issuer" "ISSUER" "clientId" "CLIENT_ID" "audience" "AUDIENCE" "roleClaim" "ROLE_CLAIM" "tenantClaim" "TENANT_CLAIM" -}}
{{- range $key, $name := $names -}}
{{- with index $root.Values.oidc $key }}{{- $_ := set $made (printf "ORACULO_OIDC_%s" $name) . -}}{{- end -}}
{{- end -}}
{{- $roles := list -}}
{{- range $value, $role := .Values.oidc.roles }}{{- $roles = append $roles (printf "%s=%s" $value $role) -}}{{- end -}}
{{- with $roles }}{{- $_ := set $made "ORACULO_OIDC_ROLES" (join "," .) -}}{{- end -}}
{{- end -}}
{{- $files := ternary "/data" "" .Values.store.sqlite.enabled -}}
{{- if .Values.sharedVolume.existingClaim }}{{- $files = "/shared" -}}{{- end -}}
{{- $_ := set $made "ORACULO_ORDER_DATA" (ternary (printf "%s/dados_de_ordens" $files) "" (ne $files "")) -}}
{{- range $name := list "ORACULO_ARTEFATOS" "ORACULO_RELATORIOS" -}}
{{- $_ := set $made $name (printf "%s/relatorios" ($files | default "/tmp")) -}}
{{- end -}}
{{- $_ := set $made "ORACULO_LOG_FORMAT" "json" -}}
{{- $_ := set $made "ORACULO_MIGRATE_AT_START" (ternary "true" "false" (eq .Values.migrations.mode "job")) -}}
{{- with .Values.engine }}{{- $_ := set $made "ORACULO_ENGINE" . -}}{{- end -}}
{{- if .Values.store.sqlite.enabled -}}
{{- $_ := set $made "ORACULO_STORE" "sqlite:////data/oraculo.db" -}}
{{- end -}}
{{- with include "oraculo.broker" . }}{{- $_ := set $made "ORACULO_BROKER" . -}}{{- end -}}
{{- if not (kindIs "invalid" .Values.brokers.dwellSeconds) -}}
{{- $_ := set $made "ORACULO_BROKER_DWELL_S" (include "oraculo.text" .Values.brokers.dwellSeconds) -}}
{{- end -}}
{{- $secret := .Files.Get "files/secrets.yaml" | fromYaml | values -}}
{{- range $name, $value := .Values.settings -}}
{{- if has $name $secret -}}
{{- fail (printf "settings.%s is a secret: it belongs into secrets" $name) -}}
{{- end -}}
{{- $_ := set $made $name (include "oraculo.text" $value) -}}
{{- end -}}
{{- toYaml $made -}}
{{- end -}}

{{/* Where a file of the Secret of TLS is, by its key. */}}
{{- define "oraculo.tlsFile" -}}/etc/oraculo/tls/{{ . }}{{- end -}}

{{/* Not empty where workloads are let in by their SPIFFE ID. */}}
{{- define "oraculo.spiffeIdentities" -}}
{{- with .Values.config.spiffe -}}{{- if and .enabled .enableX509 .identities -}}true{{- end -}}{{- end -}}
{{- end -}}

{{/* The variables of TLS: only pods that serve have the key. */}}
{{- define "oraculo.tlsEnvironment" -}}
{{- $tls := .Values.tls -}}
- {name: ORACULO_TLS_CERT, value: {{ include "oraculo.tlsFile" $tls.certKey }}}
- {name: ORACULO_TLS_KEY, value: {{ include "oraculo.tlsFile" $tls.keyKey }}}
{{- if $tls.clientCertificates }}
- {name: ORACULO_TLS_CLIENT_CA, value: {{ include "oraculo.tlsFile" $tls.clientCaKey }}}
- {name: ORACULO_TLS_CLIENT, value: {{ $tls.clientCertificates }}}
{{- end }}
{{- if include "oraculo.spiffeIdentities" . }}
- {name: ORACULO_SPIFFE_IDENTITIES, value: /etc/oraculo/spiffe/identities.toml}
{{- end }}
{{- end -}}

{{/* The address of the Service, for pods of this release. */}}
{{- define "oraculo.url" -}}
http{{ if .Values.tls.existingSecret }}s{{ end }}://{{ include "oraculo.fullname" . }}.{{ .Release.Namespace }}.svc:{{ .Values.service.ports.http.port | int }}
{{- end -}}

{{/* ORACULO_BROKER without a password: brokers.urls, else Kafka; nothing when a Secret or memory has to serve. */}}
{{- define "oraculo.broker" -}}
{{- $kafka := .Values.config.kafka -}}
{{- if .Values.brokers.urls -}}
{{ join "," .Values.brokers.urls }}
{{- else if and $kafka.bootstrapServers (not (hasPrefix "SASL_" $kafka.securityProtocol)) -}}
{{- $servers := splitList "," ($kafka.bootstrapServers | nospace) -}}
{{- $options := list -}}
{{- if gt (len $servers) 1 }}{{- $options = append $options (printf "servers=%s" (join "+" (rest $servers))) -}}{{- end -}}
{{- if eq $kafka.securityProtocol "SSL" -}}
{{- $options = append $options "tls=1" -}}
{{- with $kafka.sslCaLocation }}{{- $options = append $options (printf "tls_ca=%s" .) -}}{{- end -}}
{{- with $kafka.sslCertificateLocation }}{{- $options = append $options (printf "tls_cert=%s" .) -}}{{- end -}}
{{- with $kafka.sslKeyLocation }}{{- $options = append $options (printf "tls_key=%s" .) -}}{{- end -}}
{{- end -}}
kafka://{{ first $servers }}/{{ if $options }}?{{ join "&" $options }}{{ end }}
{{- end -}}
{{- end -}}

{{/* The secrets that values give, as a YAML map of value names: never shown but in the Secret. */}}
{{- define "oraculo.secretValues" -}}
{{- $root := . -}}
{{- $made := dict -}}
{{- range $name := .Files.Get "files/secrets.yaml" | fromYaml | keys | sortAlpha -}}
{{- with index $root.Values.secrets $name }}{{- $_ := set $made $name (toString .) -}}{{- end -}}
{{- end -}}
{{- with .Values.config.kafka.saslUsername }}{{- $_ := set $made "kafkaSaslUsername" ($made.kafkaSaslUsername | default .) -}}{{- end -}}
{{- with .Values.config.kafka.saslPassword }}{{- $_ := set $made "kafkaSaslPassword" ($made.kafkaSaslPassword | default .) -}}{{- end -}}
{{- toYaml $made -}}
{{- end -}}

{{/* The variables that come from the Secret: (list root "name of the Secret" names); without names all of them but the one
that workers sign with. Only the API key has to be there. */}}
{{- define "oraculo.secretEnvironment" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $chosen := index . 2 -}}
{{- $given := include "oraculo.secretValues" $root | fromYaml -}}
{{- $variables := $root.Files.Get "files/secrets.yaml" | fromYaml -}}
{{- range $value := $chosen | default (without (keys $variables) "signingKey") | sortAlpha -}}
{{- if or $root.Values.secrets.existingSecret (eq $value "apiKey") (hasKey $given $value) }}
- name: {{ index $variables $value }}
  valueFrom:
    secretKeyRef:
      name: {{ $name }}
      key: {{ index $root.Values.secrets.keys $value }}
      {{- if ne $value "apiKey" }}
      optional: true
      {{- end }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* The API key: as given, else as it is in the cluster, else a new one. */}}
{{- define "oraculo.apiKey" -}}
{{- if .Values.secrets.apiKey -}}
{{ .Values.secrets.apiKey }}
{{- else -}}
{{- $kept := lookup "v1" "Secret" .Release.Namespace (include "oraculo.secret" .) -}}
{{- $key := .Values.secrets.keys.apiKey -}}
{{- if and $kept $kept.data (hasKey $kept.data $key) -}}
{{ index $kept.data $key | b64dec }}
{{- else -}}
{{ randAlphaNum 43 }}
{{- end -}}
{{- end -}}
{{- end -}}
