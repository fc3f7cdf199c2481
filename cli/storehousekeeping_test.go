package cli

import (
	"strings"
	"testing"

	"tidemark/storage/postgres"
)

func TestPrintHousekeeping_sizes(t *testing.T) {
	var out strings.Builder
	if err := printHousekeeping(&out, &postgres.Housekeeping{SizeBytes: 1_234_567_891, LimitBytes: 20 << 30}); err != nil {
		t.Fatal(err)
	}
	if want := "1.1 GiB in tables, 20.0 GiB; "; !strings.HasPrefix(out.String(), want) {
		t.Errorf("found %q, want it to begin with %q", out.String(), want)
	}
}
