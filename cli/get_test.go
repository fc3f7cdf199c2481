package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tidemark/api/rest"
	"tidemark/client"
)

// TestShownReading shows a value beside what its value map says of it, as the page does.
func TestShownReading(t *testing.T) {
	f := func(value, mapped, want string) {
		t.Helper()
		r := &client.Reading{}
		r.Value.V, r.Value.Mapped = value, mapped
		if got := shownReading(r); got != want {
			t.Errorf("%q mapped to %q is shown as %q, want %q", value, mapped, got, want)
		}
	}
	f("5", "", "5")
	f("5", "?", "? (5)")
	f("1", "up", "up (1)")
	f("up", "up", "up")
	if got := shownReading(nil); got != "" {
		t.Errorf("no value is shown as %q", got)
	}
}

// TestAuditObject has the command of an entry that is about one.
func TestAuditObject(t *testing.T) {
	f := func(action, after, want string) {
		t.Helper()
		if got := auditObject(&rest.AuditEntry{Action: action, Object: "command for host db1", After: json.RawMessage(after)}); got != want {
			t.Errorf("%s with %s is %q, want %q", action, after, got, want)
		}
	}
	f("POST /api/commands", `{"on":"agent","command":"uptime"}`, "command for host db1: uptime")
	f("POST /api/commands", `null`, "command for host db1")
	f("PUT /api/items", `{"command":"uptime"}`, "command for host db1")
}

// TestMain_version answers --version as the verb does.
func TestMain_version(t *testing.T) {
	var verb, flag, errs bytes.Buffer
	if Main([]string{"version"}, strings.NewReader(""), &verb, &errs) != 0 || Main([]string{"--version"}, strings.NewReader(""), &flag, &errs) != 0 {
		t.Fatal(errs.String())
	}
	if verb.String() != flag.String() || !strings.HasPrefix(flag.String(), "tidemark "+Version) {
		t.Errorf("version says %q, --version %q", verb.String(), flag.String())
	}
}
