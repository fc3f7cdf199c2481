package backup

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// gateway is the S3 server that install.sh builds.
const gateway = "../../.tools/versitygw-v1.8.0"

// serveBucket starts the S3 server with an empty bucket and returns its URL.
func serveBucket(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(gateway); err != nil {
		t.Fatalf("the S3 server is not built: run test/backup/install.sh (%v)", err)
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "bucket"), 0o750); err != nil {
		t.Fatal(err)
	}
	address := freeport.Address(t)
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, gateway, "--access", "tester", "--secret", "tester-secret", "--port", address, "posix", "--sidecar", t.TempDir(), root)
	var said strings.Builder
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = server.Wait() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if answer, err := http.Get("http://" + address); err == nil {
			_ = answer.Body.Close()
			return "http://" + address
		}
		if time.Now().After(deadline) {
			t.Fatalf("the S3 server does not answer: %s", said.String())
		}
	}
}

// TestBackup_bucket backs a store up to a bucket twice, encrypted, keeps one, and restores it.
func TestBackup_bucket(t *testing.T) {
	url := serveBucket(t)
	binary := launch.Binary(t)
	dir := t.TempDir()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "identity")
	if err := os.WriteFile(key, []byte(identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(fails bool, args ...string) string {
		t.Helper()
		c := exec.Command(binary, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=tester", "AWS_SECRET_ACCESS_KEY=tester-secret")
		var out, faults bytes.Buffer // progress comes among the faults, on a slow machine
		c.Stdout, c.Stderr = &out, &faults
		if err := c.Run(); (err != nil) != fails {
			t.Fatalf("%q: %v\n%s%s", args, err, &out, &faults)
		}
		return out.String() + faults.String()
	}
	bucket := []string{"--s3-endpoint", url, "--s3-region", "us-east-1"}
	with := func(args ...string) []string { return append(args, bucket...) }
	command(false, "store", "bench", "--seconds", "0.3", "--metrics", "64", "--readers", "0", "--dir", "data/engine", "--keep")
	before := command(false, "store", "info", "data", "--json")

	first := command(false, with("store", "backup", "data", "s3://bucket/node1", "--name", "one", "--encrypt-to", identity.Recipient().String())...)
	if !strings.HasPrefix(first, "one: ") || strings.Contains(first, "of which 0 ") {
		t.Errorf("the first backup says %s", first)
	}
	second := command(false, with("store", "backup", "data", "s3://bucket/node1", "--name", "two", "--keep", "1", "--encrypt-to", identity.Recipient().String())...)
	if !strings.Contains(second, "1 old backups removed") {
		t.Errorf("the second backup says %s", second)
	}
	if list := command(false, with("store", "backups", "s3://bucket/node1")...); !strings.Contains(list, "two") || strings.Contains(list, "one") {
		t.Errorf("the backups are %s", list)
	}
	if out := command(true, with("store", "restore", "s3://bucket/node1", "no")...); !strings.Contains(out, "give the key with --identity") {
		t.Errorf("restored without the key: %s", out)
	}
	command(false, with("store", "verify", "s3://bucket/node1#two", "--identity", key)...)
	command(false, with("store", "restore", "s3://bucket/node1", "back", "--identity", key)...)
	command(false, "store", "check", "back")
	samples := func(text string) string {
		_, rest, _ := strings.Cut(text, `"samples":`)
		n, _, _ := strings.Cut(rest, ",")
		return n
	}
	if after := command(false, "store", "info", "back", "--json"); samples(after) != samples(before) || samples(after) == "" {
		t.Errorf("restored %s, backed up %s", after, before)
	}
	if out := command(true, with("store", "backup", "data", "s3://nosuch/x")...); !strings.Contains(out, "s3://nosuch/x") {
		t.Errorf("a bucket that is not there: %s", out)
	}
}
