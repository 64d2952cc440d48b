{{- define "vitrina.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels of every object. Called with (dict "root" $ "part" "api"). */}}
{{- define "vitrina.labels" -}}
{{ include "vitrina.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "vitrina.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "vitrina.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* The name of a Secret: the given one, or the chart's own. Called with (dict "root" $ "secret" "roles"). */}}
{{- define "vitrina.secretName" -}}
{{- $secret := index .root.Values.secrets .secret -}}
{{- $secret.existingSecret | default (printf "%s-%s" (include "vitrina.name" .root) .secret) -}}
{{- end -}}

{{/* What every pod has in common. Called with (dict "root" $ "part" "api"). */}}
{{- define "vitrina.podSpec" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: { sizeLimit: 256Mi }
{{- end -}}

{{- define "vitrina.container" -}}
image: {{ include "vitrina.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: tmp, mountPath: /tmp }
{{- end -}}

{{/* Changes when settings change, so that the pods are replaced. */}}
{{- define "vitrina.checksum" -}}
{{ printf "%s%s" (toJson .Values.config) (toJson .Values.secrets) | sha256sum }}
{{- end -}}

{{/* The API answers only to these names, so the probes must use one of them. */}}
{{- define "vitrina.probe" -}}
httpGet:
  path: {{ .path }}
  port: http
  {{- with .root.Values.config.API_ALLOWED_HOSTS }}
  httpHeaders:
    - { name: Host, value: {{ splitList "," . | first | trim | quote }} }
  {{- end }}
{{- end -}}
