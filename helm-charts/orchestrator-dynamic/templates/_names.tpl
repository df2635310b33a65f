{{/* Names and labels. The full name is the release's when that contains the chart's. */}}
{{- define "oraculo.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "oraculo.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "oraculo.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "oraculo.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of a part: (list root "engine"). */}}
{{- define "oraculo.partname" -}}
{{- $root := index . 0 -}}
{{- printf "%s-%s" (include "oraculo.fullname" $root | trunc 44 | trimSuffix "-") (index . 1) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* What selects the pods of a component: (list root "api"). */}}
{{- define "oraculo.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "oraculo.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "oraculo.labels" -}}
{{- $root := index . 0 -}}
{{ include "oraculo.selector" . }}
app.kubernetes.io/version: {{ $root.Values.image.tag | default $root.Chart.AppVersion | toString | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/part-of: neural-hive-mind
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
neural-hive.io/component: {{ $root.Values.component | quote }}
neural-hive.io/layer: {{ $root.Values.layer | quote }}
neural-hive.io/domain: {{ $root.Values.domain | quote }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* metadata of an object: (list root "component" "name" annotations). */}}
{{- define "oraculo.metadata" -}}
{{- $root := index . 0 -}}
{{- $annotations := merge (dict) (index . 3) $root.Values.commonAnnotations -}}
metadata:
  name: {{ index . 2 }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "oraculo.labels" (list $root (index . 1)) | nindent 4 }}
  {{- with $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "oraculo.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "oraculo.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "oraculo.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{- define "oraculo.configMap" -}}{{ include "oraculo.partname" (list . "config") }}{{- end -}}

{{- define "oraculo.secret" -}}
{{ .Values.secrets.existingSecret | default (include "oraculo.partname" (list . "secrets")) }}
{{- end -}}

{{- define "oraculo.httpPort" -}}{{ .Values.service.ports.http.targetPort | int }}{{- end -}}
{{- define "oraculo.metricsPort" -}}
{{ .Values.config.observability.prometheusPort | default .Values.service.ports.metrics.targetPort | int }}
{{- end -}}

{{/* Whether the cluster knows an API, or its use is forced: (list root "monitoring.coreos.com/v1" force). */}}
{{- define "oraculo.knows" -}}
{{- if or (index . 2) ((index . 0).Capabilities.APIVersions.Has (index . 1)) -}}true{{- end -}}
{{- end -}}

{{/* A suffix that changes with what a Job would do: Jobs cannot be changed. */}}
{{- define "oraculo.jobSuffix" -}}
{{ .Release.Revision }}-{{ printf "%s%s%s" (include "oraculo.image" .) (include "oraculo.environment" .) (toJson .Values.topics) | sha256sum | trunc 6 }}
{{- end -}}
