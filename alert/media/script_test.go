package media

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func scriptFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("show", "#!/bin/sh\nprintf '[%s]' \"$@\"\n", 0o700)
	write("fail", "#!/bin/sh\necho broken; exit 3\n", 0o700)
	write("hang", "#!/bin/sh\nsleep 60 & wait\n", 0o700)
	write("loud", "#!/bin/sh\nwhile :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done | head -c 3000000\n", 0o700)
	write("env", "#!/bin/sh\nenv\n", 0o700)
	write("data", "no program", 0o600)
	if err := os.Symlink("/bin/sh", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestScript(t *testing.T) {
	dir := scriptFolder(t)
	t.Setenv("TIDEMARK_TEST_SECRET", "hush")
	f := func(s Script, m Message, want, wantError string) {
		t.Helper()
		s.Folder = dir
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		answer, err := s.Send(ctx, m)
		if wantError == "" && (err != nil || answer != want) {
			t.Errorf("%s: %q, %v, want %q", s.Name, answer, err, want)
		}
		if wantError != "" && (err == nil || !strings.Contains(err.Error(), wantError)) {
			t.Errorf("%s: %v, want %q", s.Name, err, wantError)
		}
		if err != nil && strings.Contains(err.Error(), dir) {
			t.Errorf("%s: the error names the folder: %v", s.Name, err)
		}
	}
	m := Message{To: "$(id)", Subject: "; rm -rf / `id`", Body: "a\x00b 'c' \"d\"", Expand: func(s string) string { return strings.ReplaceAll(s, "{ALERT.SENDTO}", "$(id)") }}
	f(Script{Name: "show"}, m, "[$(id)][; rm -rf / `id`][ab 'c' \"d\"]", "")
	f(Script{Name: "show", Arguments: []string{"--to", "{ALERT.SENDTO}"}}, m, "[--to][$(id)]", "")
	f(Script{Name: "fail"}, m, "", "exit status 3: broken")
	f(Script{Name: "missing"}, m, "", "no such file")
	f(Script{Name: "data"}, m, "", "is no program")
	f(Script{Name: "out"}, m, "", "leads out of the folder")
	for _, name := range []string{"", ".", "..", "../show", "/bin/sh", "a/b"} {
		f(Script{Name: name}, m, "", "expected the name of a file")
	}
	long := Message{Body: strings.Repeat("é", 200<<10)}
	if answer, err := (&Script{Folder: dir, Name: "show"}).Send(t.Context(), long); err != nil || len(answer) > maxToldBytes {
		t.Errorf("long argument: %d bytes, %v", len(answer), err)
	}
	if answer, err := (&Script{Folder: dir, Name: "loud"}).Send(t.Context(), m); err != nil || len(answer) != maxToldBytes {
		t.Errorf("loud: %d bytes, %v", len(answer), err)
	}
	if answer, err := (&Script{Folder: dir, Name: "env"}).Send(t.Context(), m); err != nil || strings.Contains(answer, "hush") {
		t.Errorf("env: %q, %v, want no variables of the server", answer, err)
	}
	if _, err := (&Script{Name: "show"}).Send(t.Context(), m); !Permanent(err) {
		t.Errorf("without a folder: %v, want ErrSettings", err)
	}
}

func TestScript_isKilledWithItsChildren(t *testing.T) {
	dir := scriptFolder(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := (&Script{Folder: dir, Name: "hang"}).Send(ctx, Message{}); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%v, want it killed", err)
	}
}
