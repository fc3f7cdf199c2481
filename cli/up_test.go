package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUp_standby refuses settings of a standby before anything is opened: up would run as a second primary.
func TestUp_standby(t *testing.T) {
	refuseUp(t, "standby:\n  of: 127.0.0.1:1\n", "tidemark server --standby-of 127.0.0.1:1")
}

// TestUp_shared refuses to share a database: the agent in the same process would have one server only.
func TestUp_shared(t *testing.T) {
	refuseUp(t, "storage: {engine: postgres, dsn: 'host=127.0.0.1 port=1', shared: true}\nconfiguration: {engine: postgres}\n", "tidemark server with storage.shared")
}

func refuseUp(t *testing.T, config, says string) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "tidemark.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := upCommand()
	c.SetArgs([]string{"--config", file, "--data", data})
	c.SetOut(&bytes.Buffer{})
	c.SetErr(&bytes.Buffer{})
	c.SilenceUsage = true
	err := c.ExecuteContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("up: %v, expected %q", err, says)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the data folder was made: %v", err)
	}
}

// TestShadowPlan_print says that nobody is told only where that is so.
func TestShadowPlan_print(t *testing.T) {
	for _, c := range []struct {
		since int64
		says  bool
	}{{0, false}, {1_700_000_000, true}} {
		var out bytes.Buffer
		p := shadowPlan{Since: c.since, OpenProblems: 8}
		if err := p.print(&out, "would be switched on"); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "nobody is told") != c.says {
			t.Errorf("since %d: %q", c.since, out.String())
		}
	}
}
