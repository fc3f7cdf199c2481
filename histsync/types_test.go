package histsync

import (
	"bytes"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/model"
)

func TestCountTypes(t *testing.T) {
	set := metrics.NewSet()
	s := New(Options{Metrics: set})
	b := model.NewBatch()
	b.AppendFloat(1, 1, 1)
	b.AppendFloat(1, 2, 1)
	b.AppendString(2, 1, model.Unsupported, "gone")
	s.countTypes(b)
	var text bytes.Buffer
	set.WritePrometheus(&text)
	for _, want := range []string{`typed_values_total{type="float"} 2`, `typed_values_total{type="unsupported"} 1`, `typed_values_total{type="text"} 0`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
}
