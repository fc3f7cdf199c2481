package preproc

import (
	"strings"
	"testing"

	"tidemark/model"
)

// An output that names a long group many times would take the memory of the machine.
func TestRegex_longResult(t *testing.T) {
	run, err := compileRegexStep(model.Step{Type: model.StepRegex, Params: []string{"(?s)(.*)", strings.Repeat(`\1`, 1000)}})
	if err != nil {
		t.Fatal(err)
	}
	// Unbounded, this would be 4 GB.
	out, err := run(&memory{}, textValue([]byte(strings.Repeat("a", 4<<20))), 0)
	if err != nil || len(out.bytes()) != maxStepBytes {
		t.Errorf("%d bytes, %v; want %d", len(out.bytes()), err, maxStepBytes)
	}
}
