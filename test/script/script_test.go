package script

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the stories in testdata over the real binary, which TIDEMARK_BIN names or the test builds.
func TestScripts(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "tidemark")
	if path := os.Getenv("TIDEMARK_BIN"); path != "" {
		if err := os.Symlink(path, binary); err != nil {
			t.Fatal(err)
		}
	} else {
		build := exec.Command("go", "build", "-o", binary, "tidemark/cmd/tidemark")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the binary: %v\n%s", err, out)
		}
	}
	captures, err := filepath.Abs("../../sniff/testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", dir+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("CAPTURES", captures)
			return nil
		},
	})
}
