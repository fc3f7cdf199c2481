package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tidemark/client"
	"tidemark/storage/postgres"
)

// TestRefusal keeps the server's reason when a token was sent, and says how to send one when none was.
func TestRefusal(t *testing.T) {
	const revoked = `{"error":{"code":"unauthorized","message":"the token was revoked"}}`
	for _, test := range []struct {
		name   string
		status int
		text   string
		sent   bool
		want   string
	}{
		{"no token", http.StatusUnauthorized, revoked, false, "give it with --token-file FILE, --token or in TIDEMARK_TOKEN"},
		{"a token", http.StatusUnauthorized, revoked, true, "the token was revoked"},
		{"other", http.StatusNotFound, `{"error":{"message":"no such host"}}`, false, "no such host"},
		{"no JSON", http.StatusBadGateway, "<html>", true, "the server answered 502 Bad Gateway"},
	} {
		if err := refusal(client.ReadError(test.status, []byte(test.text), test.sent)); !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %q, expected %q", test.name, err, test.want)
		}
	}
}

// TestServerClient_otherStore asks a server on the embedded engine for what only PostgreSQL has.
func TestServerClient_otherStore(t *testing.T) {
	address, _ := serve(t, t.TempDir())
	c := serverClient{address: address}
	var h postgres.Housekeeping
	err := c.call(context.Background(), http.MethodGet, "/api/storage/housekeeping", nil, &h)
	if err == nil || !strings.Contains(err.Error(), "housekeeping is for PostgreSQL") {
		t.Errorf("housekeeping: %v", err)
	}
	verb := tokenCommand()
	verb.SetArgs([]string{"create", "grafana", "--user", "nobody", "--http", address})
	verb.SetOut(&bytes.Buffer{})
	verb.SetErr(&bytes.Buffer{})
	verb.SilenceUsage = true
	if err := verb.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), `there is no user "nobody"`) {
		t.Errorf("token create: %v", err)
	}
}

// TestInterrupted says stopped only when the command itself was told to stop.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	inner := fmt.Errorf("trial: %w", context.Canceled)
	if err := interrupted(ctx, inner); !errors.Is(err, inner) {
		t.Errorf("not interrupted: %v", err)
	}
	cancel()
	if err := interrupted(ctx, inner); err.Error() != "stopped before the end" {
		t.Errorf("interrupted: %v", err)
	}
	if other := errors.New("disk full"); interrupted(ctx, other) != other {
		t.Error("another error is lost")
	}
}

// TestStorePlan_sums names every part of the disk space.
func TestStorePlan_sums(t *testing.T) {
	c := storeCommand()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetArgs([]string{"plan"})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"values ", "minutes ", "hourly rows ", "log ", "128MiB page cache"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %q in %q", part, out.String())
		}
	}
}
