{{/* A container of Oráculo: (dict root component name image command secret secrets inline probes ports resources env mounts);
`secrets` are the values below `secrets` that it gets, all unless it says. */}}
{{- define "oraculo.container" -}}
{{- $root := .root -}}
name: {{ .name }}
image: {{ .image | default (include "oraculo.image" $root) }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
command: {{ toJson .command }}
env:
  - name: POD_NAMESPACE
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
  {{- if .inline }}
  {{- range $name, $value := include "oraculo.environment" $root | fromYaml }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
  {{- end }}
  {{- include "oraculo.secretEnvironment" (list $root (.secret | default (include "oraculo.secret" $root)) .secrets) | nindent 2 }}
  {{- with $root.Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if and $root.Values.tls.existingSecret (include "oraculo.serves" .component) }}
  {{- include "oraculo.tlsEnvironment" $root | nindent 2 }}
  {{- end }}
  {{- with .env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- if or (not .inline) $root.Values.extraEnvFrom }}
envFrom:
  {{- if not .inline }}
  - configMapRef: {name: {{ include "oraculo.configMap" $root }}}
  {{- end }}
  {{- with $root.Values.extraEnvFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- with .ports }}
ports:
  {{- range $name, $port := . }}
  - {name: {{ $name }}, containerPort: {{ $port }}, protocol: TCP}
  {{- end }}
{{- end }}
{{- range $name, $probe := .probes }}
{{- if $probe }}
{{ $name }}:
  {{- toYaml $probe | nindent 2 }}
{{- end }}
{{- end }}
resources:
  {{- toYaml (.resources | default $root.Values.resources) | nindent 2 }}
securityContext:
  {{- toYaml $root.Values.securityContext | nindent 2 }}
volumeMounts:
  {{- toYaml $root.Values.volumeMounts | nindent 2 }}
  {{- if and $root.Values.store.sqlite.enabled (eq .component "api") }}
  - {name: data, mountPath: /data}
  {{- end }}
  {{- range $folder := include "oraculo.sharedFolders" (list $root .component) | fromJsonArray }}
  - {name: shared, mountPath: /shared/{{ $folder }}, subPath: {{ $folder }}}
  {{- end }}
  {{- if include "oraculo.mountsTls" (list $root .component) }}
  - {name: tls, mountPath: /etc/oraculo/tls, readOnly: true}
  {{- end }}
  {{- if and (include "oraculo.spiffeIdentities" $root) (include "oraculo.serves" .component) }}
  - {name: identities, mountPath: /etc/oraculo/spiffe, readOnly: true}
  {{- end }}
  {{- with $root.Values.certificates.existingSecret }}
  - {name: certificates, mountPath: {{ $root.Values.certificates.mountPath }}, readOnly: true}
  {{- end }}
  {{- if $root.Values.config.spiffe.enabled }}
  - {name: spiffe, mountPath: {{ $root.Values.config.spiffe.socketPath | trimPrefix "unix://" | dir }}, readOnly: true}
  {{- end }}
  {{- with $root.Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with .mounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Not empty for the components that run `oraculo up`. */}}
{{- define "oraculo.serves" -}}{{ if has . (list "api" "engine") }}true{{ end }}{{- end -}}

{{/* Not empty where a component has files of the Secret of TLS, (list root component): the key, or the authority alone. */}}
{{- define "oraculo.mountsTls" -}}
{{- $tls := (index . 0).Values.tls -}}
{{- if and $tls.existingSecret (or $tls.caKey (include "oraculo.serves" (index . 1))) -}}true{{- end -}}
{{- end -}}

{{/* The folders of the shared volume that a component needs, as JSON: (list root component). */}}
{{- define "oraculo.sharedFolders" -}}
{{- $component := index . 1 -}}
{{- $folders := list -}}
{{- if (index . 0).Values.sharedVolume.existingClaim -}}
{{- if or (eq $component "api") (hasPrefix "worker-" $component) }}{{- $folders = append $folders "relatorios" -}}{{- end -}}
{{- if has $component (list "api" "engine" "celery-worker") }}{{- $folders = append $folders "dados_de_ordens" -}}{{- end -}}
{{- end -}}
{{ toJson $folders }}
{{- end -}}

{{/* The probes of `oraculo up` as JSON: over TLS where the server speaks it. */}}
{{- define "oraculo.probes" -}}
{{- $made := dict -}}
{{- range $name := list "startupProbe" "livenessProbe" "readinessProbe" -}}
{{- $probe := deepCopy (index $.Values $name | default dict) -}}
{{- if and $.Values.tls.existingSecret $probe.httpGet (not $probe.httpGet.scheme) -}}
{{- $_ := set $probe.httpGet "scheme" "HTTPS" -}}
{{- end -}}
{{- $_ := set $made $name $probe -}}
{{- end -}}
{{ toJson $made }}
{{- end -}}

{{/* What every pod has besides its containers: (dict root component volumes grace). */}}
{{- define "oraculo.podSpec" -}}
{{- $root := .root -}}
serviceAccountName: {{ .account | default (include "oraculo.serviceAccount" $root) }}
automountServiceAccountToken: {{ $root.Values.serviceAccount.automountToken }}
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .grace | default $root.Values.terminationGracePeriodSeconds }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  {{- toYaml $root.Values.podSecurityContext | nindent 2 }}
{{- with $root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $root.Values.affinity }}
affinity:
  {{- toYaml $root.Values.affinity | nindent 2 }}
{{- else if $root.Values.spread.enabled }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "oraculo.selector" (list $root .component) | nindent 14 }}
{{- end }}
{{- if $root.Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml $root.Values.topologySpreadConstraints | nindent 2 }}
{{- else if $root.Values.spread.enabled }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "oraculo.selector" (list $root .component) | nindent 8 }}
{{- end }}
volumes:
  {{- toYaml $root.Values.volumes | nindent 2 }}
  {{- if and $root.Values.store.sqlite.enabled (eq .component "api") }}
  - name: data
    persistentVolumeClaim:
      claimName: {{ $root.Values.store.sqlite.existingClaim | default (include "oraculo.partname" (list $root "data")) }}
  {{- end }}
  {{- if include "oraculo.sharedFolders" (list $root .component) | fromJsonArray }}
  - {name: shared, persistentVolumeClaim: {claimName: {{ $root.Values.sharedVolume.existingClaim }}}}
  {{- end }}
  {{- if include "oraculo.mountsTls" (list $root .component) }}
  - name: tls
    secret:
      secretName: {{ $root.Values.tls.existingSecret }}
      {{- if not (include "oraculo.serves" .component) }}
      items: [{key: {{ $root.Values.tls.caKey }}, path: {{ $root.Values.tls.caKey }}}]
      {{- end }}
  {{- end }}
  {{- if and (include "oraculo.spiffeIdentities" $root) (include "oraculo.serves" .component) }}
  - {name: identities, configMap: {name: {{ include "oraculo.partname" (list $root "identities") }}}}
  {{- end }}
  {{- with $root.Values.certificates.existingSecret }}
  - {name: certificates, secret: {secretName: {{ . }}}}
  {{- end }}
  {{- if $root.Values.config.spiffe.enabled }}
  - {name: spiffe, csi: {driver: {{ $root.Values.config.spiffe.csiDriver }}, readOnly: true}}
  {{- end }}
  {{- with $root.Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with .volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Labels and annotations of pods: (list root component). Pods are replaced when what they read has changed. */}}
{{- define "oraculo.podMetadata" -}}
{{- $root := index . 0 -}}
metadata:
  labels:
    {{- include "oraculo.labels" . | nindent 4 }}
    {{- with $root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include "oraculo.environment" $root | sha256sum }}
    checksum/secret: {{ printf "%s%s" (include "oraculo.secretValues" $root) (toJson $root.Values.secrets.keys) | sha256sum }}
    {{- if $root.Values.istio.enabled }}
    sidecar.istio.io/inject: "true"
    {{- end }}
    {{- if $root.Values.config.vault.enabled }}
    vault.hashicorp.com/agent-inject: "true"
    vault.hashicorp.com/role: {{ $root.Values.config.vault.kubernetesRole | quote }}
    {{- with $root.Values.config.vault.namespace }}
    vault.hashicorp.com/namespace: {{ . | quote }}
    {{- end }}
    {{- range $name, $path := $root.Values.config.vault.secrets }}
    vault.hashicorp.com/agent-inject-secret-{{ $name }}: {{ $path | quote }}
    {{- end }}
    {{- end }}
    {{- with $root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with $root.Values.commonAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* The init container that brings the database up to date: (list root component). */}}
{{- define "oraculo.migration" -}}
{{- $root := index . 0 -}}
{{- if has $root.Values.migrations.mode (list "hook" "init") }}
- {{- include "oraculo.container" (dict "root" $root "component" (index . 1) "name" "migrate" "command" (list "oraculo" "migrate") "resources" $root.Values.migrations.resources) | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A HorizontalPodAutoscaler: (dict root component target scaling). */}}
{{- define "oraculo.hpa" -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
{{ include "oraculo.metadata" (list .root .component .target (dict)) }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ .target }}}
  minReplicas: {{ .scaling.minReplicas }}
  maxReplicas: {{ .scaling.maxReplicas }}
  metrics:
    {{- with .scaling.targetCPUUtilizationPercentage }}
    - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: {{ . }}}}}
    {{- end }}
    {{- with .scaling.targetMemoryUtilizationPercentage }}
    - {type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: {{ . }}}}}
    {{- end }}
  {{- with .root.Values.autoscaling.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
