package cli

import (
	"strings"
	"testing"

	"tidemark/storage/dbengine"
)

func TestPrintInfo_meanWithoutTheLog(t *testing.T) {
	tests := []struct {
		name string
		info dbengine.Information
		want string // "" is no mean
	}{
		{"young store", dbengine.Information{Summary: dbengine.Summary{Samples: 100, Bytes: 48 << 20}, LogSamples: 100, LogBytes: 48 << 20}, ""},
		{"empty store", dbengine.Information{}, ""},
		{
			"most in the log",
			dbengine.Information{Summary: dbengine.Summary{Samples: 199, Bytes: 48<<20 + 5000}, LogSamples: 100, LogBytes: 48 << 20},
			"; most samples are still only in the log: what one takes cannot be told yet",
		},
		{"old store", dbengine.Information{Summary: dbengine.Summary{Samples: 1100, Bytes: 48<<20 + 500}, LogSamples: 100, LogBytes: 48 << 20}, ", 0.500 bytes a sample without the log"},
	}
	for _, tt := range tests {
		var out strings.Builder
		if err := printInfo(&out, "d", &tt.info); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(out.String(), "\n")
		if tt.want == "" && strings.Contains(first, "bytes a sample") || !strings.HasSuffix(first, tt.want) {
			t.Errorf("%s: %q, want it to end in %q", tt.name, first, tt.want)
		}
	}
}
