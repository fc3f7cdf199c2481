package ssh

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/crypto/ssh"

	"tidemark/collect/poller"
	"tidemark/model"
)

// startServer is an SSH server that answers every command with its text, for a password or a key.
func startServer(t *testing.T, key ssh.PublicKey) (address string, hostKey ssh.PublicKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{
		PasswordCallback: func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			if string(password) != "right" {
				return nil, io.EOF
			}
			return nil, nil
		},
		PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			if string(k.Marshal()) != string(key.Marshal()) {
				return nil, io.EOF
			}
			return nil, nil
		},
	}
	config.AddHostKey(signer)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go serve(nc, config)
		}
	}()
	return ln.Addr().String(), signer.PublicKey()
}

func serve(nc net.Conn, config *ssh.ServerConfig) {
	defer nc.Close()
	_, channels, requests, err := ssh.NewServerConn(nc, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for open := range channels {
		channel, requests, err := open.Accept()
		if err != nil {
			return
		}
		for r := range requests {
			var command struct{ Text string }
			if r.Type != "exec" || ssh.Unmarshal(r.Payload, &command) != nil {
				continue
			}
			_ = r.Reply(true, nil)
			switch command.Text {
			case "hang":
				continue
			case "flood":
				_, _ = channel.Write(make([]byte, 64<<10+1))
			}
			_, _ = io.WriteString(channel, command.Text+"\r\n\n")
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{3}))
			channel.Close()
		}
	}
}

func TestChecker(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sshKey, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("open"))
	if err != nil {
		t.Fatal(err)
	}
	address, hostKey := startServer(t, sshKey)
	_, port, _ := net.SplitHostPort(address)
	files := fstest.MapFS{"key": {Data: pem.EncodeToMemory(block)}, "locked": {Data: pem.EncodeToMemory(locked)}, "broken": {Data: []byte("x")}}
	check := func(known, key, command string, timeout time.Duration, access *model.Collect) (poller.Outcome, string) {
		c := New(Options{Files: files, KnownHosts: known, MaxOutputBytes: 64 << 10})
		ctx, cancel := contextWith(t, timeout)
		defer cancel()
		results := make([]poller.Result, 1)
		item := &model.Item{Key: strings.ReplaceAll(key, "@", port), Params: command, Collect: access}
		c.Check(ctx, []*poller.Task{{Item: item, Interface: &model.Interface{Address: "127.0.0.1"}}}, results)
		return results[0].Outcome, string(results[0].Text)
	}
	f := func(key, command string, access *model.Collect, want string) {
		t.Helper()
		outcome, got := check("", key, command, time.Minute, access)
		if bad, ok := strings.CutPrefix(want, "! "); ok && (outcome != poller.NotSupported || !strings.Contains(got, bad)) || !ok && (outcome != poller.Value || got != want) {
			t.Errorf("%s %q: %d %.200q, want %q", key, command, outcome, got, want)
		}
	}
	password := &model.Collect{Username: "u", Password: "right"}
	f("ssh.run[a,,@]", "one\r\ntwo", password, "one\ntwo")
	f("ssh.run[a,127.0.0.1,@]", "x", &model.Collect{Username: "u", AuthType: "PUBLIC_KEY", PrivateKey: "key"}, "x")
	f("ssh.run[a,,@]", "x", &model.Collect{Username: "u", AuthType: "PUBLIC_KEY", PrivateKey: "locked", Password: "open"}, "x")
	f("ssh.run[a,,@,iso-8859-1]", "a\xe4", password, "aä")
	f("ssh.run[a,,@,no-such]", "a", password, `! encoding "no-such"`)
	f("ssh.run[a,,@]", "x", &model.Collect{Username: "u", Password: "wrong"}, "! cannot log in: the host refuses")
	f("ssh.run[a,,@]", "x", &model.Collect{Username: "u", AuthType: "PUBLIC_KEY", PrivateKey: "none"}, `! key "none" is not in`)
	f("ssh.run[a,,@]", "x", &model.Collect{Username: "u", AuthType: "PUBLIC_KEY", PrivateKey: "../key"}, "! is not in")
	f("ssh.run[a,,@]", "x", &model.Collect{Username: "u", AuthType: "PUBLIC_KEY", PrivateKey: "broken"}, `! key "broken": `)
	f("ssh.run[a,,@]", "x", &model.Collect{Username: "u", AuthType: "X"}, "! expected PASSWORD or PUBLIC_KEY")
	f("ssh.run[a,,@]", "x", nil, "! no user name")
	f("ssh.run[a,,@]", "flood", password, "! prints more than")
	f("ssh.run", "x", password, "! expected ssh.run")
	f("ssh.run[a,,0]", "x", password, `! port "0"`)
	f("ssh.run[a,,@,,Ciphers=x]", "x", password, "! options for algorithms")
	if _, got := check("", "ssh.run[a,,@]", "hang", 300*time.Millisecond, password); !strings.HasPrefix(got, "the host did not answer in time") {
		t.Errorf("a command that hangs: %s", got)
	}
	known := filepath.Join(t.TempDir(), "known_hosts")
	line := "[127.0.0.1]:" + port + " " + string(ssh.MarshalAuthorizedKey(hostKey))
	if err := os.WriteFile(known, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	if outcome, got := check(known, "ssh.run[a,,@]", "x", time.Minute, password); outcome != poller.Value {
		t.Errorf("a host that is known: %s", got)
	}
	if err := os.WriteFile(known, []byte("[127.0.0.1]:"+port+" "+string(ssh.MarshalAuthorizedKey(sshKey))), 0o600); err != nil {
		t.Fatal(err)
	}
	if outcome, got := check(known, "ssh.run[a,,@]", "x", time.Minute, password); outcome != poller.NotSupported || !strings.Contains(got, "knownhosts") {
		t.Errorf("a host with another key: %d %s", outcome, got)
	}
}

func contextWith(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
