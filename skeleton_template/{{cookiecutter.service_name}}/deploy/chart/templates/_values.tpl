{{- /* The lanes of this deployment as a JSON list; "0,3,8-15" means what it means to LUCIUS_LANES. */ -}}
{{- define "lanes" -}}
{{- $lanes := list -}}
{{- range $part := splitList "," (toString .Values.lanes) -}}
  {{- $ends := splitList "-" (trim $part) -}}
  {{- $first := int (first $ends) -}}
  {{- $last := int (last $ends) -}}
  {{- if gt $first $last -}}
    {{- fail (printf "lanes: %s goes backwards" $part) -}}
  {{- end -}}
  {{- range $lane := untilStep $first (int (add1 $last)) 1 -}}
    {{- $lanes = append $lanes $lane -}}
  {{- end -}}
{{- end -}}
{{- $lanes | uniq | toJson -}}
{{- end -}}

{{- /* The key of a secret that has the connection string, as JSON. */ -}}
{{- define "connection" -}}
{{- required "bus needs a namespace or a connectionSecret" .Values.bus.connectionSecret | toJson -}}
{{- end -}}
