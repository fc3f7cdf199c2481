package script

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tidemark/test/launch"
)

// TestScripts runs the stories in testdata over the real binary, which TIDEMARK_BIN names or the test builds.
func TestScripts(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "tidemark")
	program, err := filepath.Abs(launch.Binary(t))
	if err == nil {
		err = os.Symlink(program, binary)
	}
	if err != nil {
		t.Fatal(err)
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
