{{- define "writ.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "writ.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "writ.labels" -}}
{{ include "writ.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "writ.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The pod of one process: root, component, args, and of roles: secrets, keys, resources. */}}
{{- define "writ.pod" -}}
{{- $v := .root.Values -}}
metadata:
  labels:
    {{- include "writ.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  annotations:
    checksum/config: {{ toYaml $v.config | sha256sum }}
spec:
  serviceAccountName: {{ include "writ.name" .root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 60
  {{- with $v.image.pullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: writ
      image: {{ include "writ.image" .root | quote }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      args: {{ toJson .args }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      env:
        - {name: WRIT_ENVIRONMENT, value: {{ $v.environment | quote }}}
        - {name: WRIT_LISTEN, value: "0.0.0.0:8080"}
        {{- if $v.metrics.enabled }}
        - {name: WRIT_METRICS, value: "0.0.0.0:{{ $v.metrics.port }}"}
        {{- end }}
        {{- if .keys }}
        - {name: WRIT_INSTANCE, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: WRIT_KEYS, value: /run/secrets/keys}
        - {name: WRIT_BUS_KEYS, value: /run/secrets/keys}
        {{- end }}
        {{- if and $v.bootstrapKey.secret (eq .component "one") }}
        - {name: API_KEY_SECRET_NAME, value: "file:/run/secrets/writ/api_key"}
        {{- end }}
        {{- range concat $v.secrets (.secrets | default list) }}
        - name: {{ .variable }}
          valueFrom: {secretKeyRef: {name: {{ .secret | quote }}, key: {{ .key | quote }}}}
        {{- end }}
      ports:
        - {name: http, containerPort: 8080}
        {{- if $v.metrics.enabled }}
        - {name: metrics, containerPort: {{ $v.metrics.port }}}
        {{- end }}
      {{- if .http }}
      startupProbe: {httpGet: {path: /livez, port: http}, periodSeconds: 5, failureThreshold: 120}
      livenessProbe: {httpGet: {path: /livez, port: http}, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6}
      readinessProbe: {httpGet: {path: /readyz, port: http}, periodSeconds: 5, timeoutSeconds: 5}
      {{- end }}
      resources: {{- toYaml (.resources | default $v.resources) | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
        - {name: config, mountPath: /etc/writ, readOnly: true}
        {{- if and $v.bootstrapKey.secret (eq .component "one") }}
        - {name: bootstrap, mountPath: /run/secrets/writ, readOnly: true}
        {{- end }}
        {{- if .keys }}
        - {name: keys, mountPath: /run/secrets/keys, readOnly: true}
        {{- end }}
  volumes:
    - {name: tmp, emptyDir: {sizeLimit: 1Gi}}
    - {name: config, configMap: {name: {{ include "writ.name" .root }}}}
    {{- if and $v.bootstrapKey.secret (eq .component "one") }}
    - name: bootstrap
      secret:
        secretName: {{ $v.bootstrapKey.secret | quote }}
        defaultMode: 0440
        items: [{key: {{ $v.bootstrapKey.key | quote }}, path: api_key}]
    {{- end }}
    {{- if .keys }}
    - {name: keys, secret: {secretName: {{ .keys | quote }}, defaultMode: 0440}}
    {{- end }}
    {{- if .volume }}
    - name: data
      {{- toYaml .volume | nindent 6 }}
    {{- end }}
  {{- with $v.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $v.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Arrows that leave a process of some roles, by the lists of networkPolicy, and "http" to processes of the chart. */}}
{{- define "writ.arrows" -}}
{{- $all := list -}}
{{- range . -}}
{{- if ne . "monitor" }}{{ $all = append $all "nats" }}{{ end -}}
{{- if has . (list "manager" "planner" "task" "workflow") }}{{ $all = append $all "models" }}{{ end -}}
{{- if has . (list "router" "recorder" "monitor") }}{{ $all = append $all "documents" }}{{ end -}}
{{- if has . (list "gateway" "router" "recorder") }}{{ $all = append $all "blobs" }}{{ end -}}
{{- if has . (list "gateway" "router" "monitor") }}{{ $all = append $all "http" }}{{ end -}}
{{- if eq . "executor:skills" }}{{ $all = append $all "skills" }}{{ end -}}
{{- if hasPrefix "executor:" . }}{{ $all = concat $all (list "documents" "blobs") }}{{ end -}}
{{- end -}}
{{- join " " (uniq $all) -}}
{{- end }}
