{{/* A Job of `oraculo …`: (dict root component command hooks backoff deadline resources). As a hook it runs before
ConfigMap, Secret and ServiceAccount of this release are there, or while those of the last one are: so its variables are
written out, its secrets are in a hook of their own, and its account is the namespace's. */}}
{{- define "oraculo.job" -}}
{{- $root := .root -}}
{{- $hook := and $root.Values.useHelmHooks .hooks -}}
{{- $name := include "oraculo.partname" (list $root .component) -}}
{{- if not $hook -}}{{- $name = include "oraculo.partname" (list $root (printf "%s-%s" .component (include "oraculo.jobSuffix" $root))) -}}{{- end -}}
{{- $annotations := dict -}}
{{- if $hook -}}
{{- $annotations = dict "helm.sh/hook" .hooks "helm.sh/hook-weight" "-5" "helm.sh/hook-delete-policy" "before-hook-creation" -}}
{{- end -}}
{{- $secret := include "oraculo.secret" $root -}}
{{- if and $hook (not $root.Values.secrets.existingSecret) -}}
{{- $secret = include "oraculo.partname" (list $root "hooks") -}}
{{- end -}}
apiVersion: batch/v1
kind: Job
{{ include "oraculo.metadata" (list $root .component $name $annotations) }}
spec:
  backoffLimit: {{ .backoff }}
  activeDeadlineSeconds: {{ .deadline }}
  {{- if not $hook }}
  ttlSecondsAfterFinished: 86400
  {{- end }}
  template:
    metadata:
      labels:
        {{- include "oraculo.labels" (list $root .component) | nindent 8 }}
      annotations:
        sidecar.istio.io/inject: "false"
    spec:
      {{- include "oraculo.podSpec" (dict "root" $root "component" .component "account" (ternary "default" "" (not (not $hook)))) | nindent 6 }}
      restartPolicy: Never
      containers:
        - {{- include "oraculo.container" (dict "root" $root "component" .component "name" "oraculo" "command" .command "inline" true "secret" $secret "resources" .resources) | nindent 10 }}
{{- end -}}
