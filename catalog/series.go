package catalog

import (
	"strings"

	"tidemark/model"
)

// IsSeries reports whether a key is the text of a series that came from Prometheus or OpenTelemetry, such as up{job="node"}. Zabbix's keys
// never have a brace in front of their parameters, so the two cannot meet. PromQL sees such an item with the labels that it came with and no
// others: with host and key added, no two metrics could be divided by each other.
func IsSeries(key string) bool {
	i := strings.IndexAny(key, "[{")
	return i >= 0 && key[i] == '{' && strings.HasSuffix(key, "}")
}

// wholeLabels returns the labels of a series as they are; nil if they are not sorted, each once, with a value.
func wholeLabels(labels model.Labels) model.Labels {
	out := make(model.Labels, len(labels))
	for i, l := range labels {
		if l.Name == "" || l.Value == "" || l.Name == metricNameLabel || i > 0 && labels[i-1].Name >= l.Name {
			return nil
		}
		out[i] = l
	}
	return out
}
