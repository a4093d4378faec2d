{{- define "fenwick.name" -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "fenwick.select" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "fenwick.labels" -}}
{{ include "fenwick.select" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "fenwick.image" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- define "fenwick.replicas" -}}
{{ if eq .Values.mode "sentinel" }}{{ .Values.replicas -}}
{{ else if eq .Values.mode "cluster" }}{{ mul .Values.cluster.shards (add1 .Values.cluster.replicasPerShard) -}}
{{ else }}1{{ end }}
{{- end }}

{{/* The names of all pods, as they are in DNS. */}}
{{- define "fenwick.hosts" -}}
{{- $name := include "fenwick.name" . -}}
{{- $namespace := .Release.Namespace -}}
{{- range $i := until (int (include "fenwick.replicas" .)) -}}
{{ if $i }} {{ end }}{{ printf "%s-%d.%s-pods.%s.svc" $name $i $name $namespace }}
{{- end -}}
{{- end }}

{{- define "fenwick.environment" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: MY_HOST
  value: {{ printf "$(POD_NAME).%s-pods.%s.svc" (include "fenwick.name" .) .Release.Namespace | quote }}
- name: MODE
  value: {{ .Values.mode }}
{{- if eq .Values.mode "cluster" }}
{{- /* Nothing that depends on the number of pods: they would all restart when it changes. */}}
- name: MY_ADDRESS
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{- if .Values.auth.busKey }}
- name: BUS_SECRET
  valueFrom: {secretKeyRef: {name: {{ .Values.auth.existingSecret | quote }}, key: {{ .Values.auth.busKey | quote }}}}
{{- end }}
{{- else }}
- name: HOSTS
  value: {{ include "fenwick.hosts" . | quote }}
- name: QUORUM
  value: {{ add1 (div (int (include "fenwick.replicas" .)) 2) | quote }}
{{- end }}
{{ include "fenwick.secrets" . }}
{{- end }}

{{/* What a program needs to connect to the servers. */}}
{{- define "fenwick.secrets" -}}
- name: TLS
  value: {{ ternary "yes" "" .Values.tls.enabled | quote }}
{{- if .Values.auth.existingSecret }}
- name: PASSWORD
  valueFrom: {secretKeyRef: {name: {{ .Values.auth.existingSecret | quote }}, key: {{ .Values.auth.key | quote }}}}
{{- end }}
{{- end }}

{{- define "fenwick.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "fenwick.user" -}}
runAsNonRoot: true
runAsUser: 999
runAsGroup: 999
fsGroup: 999
seccompProfile: {type: RuntimeDefault}
{{- end }}
