package external

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/collect/poller"
	"tidemark/model"
)

func script(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestChecker(t *testing.T) {
	folder := t.TempDir()
	script(t, folder, "args.sh", `printf '%s|' "$#" "$@"; echo "  "`)
	script(t, folder, "both", "echo out; echo err >&2; exit 3")
	script(t, folder, "env", `echo "$SECRET_OF_SERVER"`)
	script(t, folder, "much", "while :; do echo 0123456789012345678901234567890123456789; done")
	script(t, folder, "sleeps", "sleep 600 & sleep 600")
	if err := os.WriteFile(filepath.Join(folder, "text"), []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/echo", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("args.sh", filepath.Join(folder, "alias")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SECRET_OF_SERVER", "s3cret")
	c := New(folder)
	ask := func(ctx context.Context, key string) (poller.Outcome, string) {
		results := make([]poller.Result, 1)
		c.Check(ctx, []*poller.Task{{Item: &model.Item{Type: model.External, Key: key}}}, results)
		return results[0].Outcome, string(results[0].Text)
	}
	f := func(key string, outcome poller.Outcome, want string) {
		t.Helper()
		got, text := ask(t.Context(), key)
		if got != outcome || outcome == poller.Value && text != want || !strings.Contains(text, want) || strings.Contains(text, folder) {
			t.Errorf("%s: %v %q, want %v %q", key, got, text, outcome, want)
		}
	}
	f("args.sh", poller.Value, "0|")
	f(`args.sh[a,"b c",$(id);x,"{$"]`, poller.Value, "4|a|b c|$(id);x|{$|")
	f("alias[1]", poller.Value, "1|1|")
	f("both", poller.Value, "out\nerr")
	f("env", poller.Value, "")
	f("much", poller.NotSupported, "prints too much")
	f("gone[1]", poller.NotSupported, "no such file")
	f("text", poller.NotSupported, "is no program")
	f("link", poller.NotSupported, "leads out of the folder")
	f("..", poller.NotSupported, "expected the name of a program")
	f("../args.sh", poller.NotSupported, "expected the name of a program")
	f("args.sh["+strings.Repeat("a,", maxArguments+1)+"]", poller.NotSupported, "at most 200")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if outcome, text := ask(ctx, "sleeps"); outcome != poller.NotSupported || !strings.Contains(text, "its time is over") {
		t.Errorf("a program that takes too long: %v %q", outcome, text)
	}
	if _, err := New(filepath.Join(folder, "none")).path("x"); err == nil || !strings.Contains(err.Error(), "collect.external_scripts") {
		t.Errorf("without a folder: %v", err)
	}
}

// A data folder may be named from where the server was started.
func TestChecker_relativeFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("data/scripts", 0o700); err != nil {
		t.Fatal(err)
	}
	script(t, "data/scripts", "here.sh", `echo "$1 $(basename "$PWD")"`)
	results := make([]poller.Result, 1)
	New("data/scripts").Check(t.Context(), []*poller.Task{{Item: &model.Item{Type: model.External, Key: "here.sh[a]"}}}, results)
	if results[0].Outcome != poller.Value || string(results[0].Text) != "a scripts" {
		t.Errorf("%v %q", results[0].Outcome, results[0].Text)
	}
}

func TestProgram_cut(t *testing.T) {
	p := Program{Path: "/bin/sh", Arguments: []string{"-c", "echo 0123456789; exit 2"}, Folder: "/", LimitBytes: 4, Cut: true}
	out, err := p.Run(t.Context())
	var ended *EndedError
	if string(out) != "0123" || !errors.As(err, &ended) {
		t.Errorf("%q, %v", out, err)
	}
}
