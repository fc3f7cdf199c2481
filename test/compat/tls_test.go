package compat

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tidemark/internal/tlspsk"
	"tidemark/test/freeport"
)

// tlsIdentity and tlsKey are the key that the peers of these tests share.
const (
	tlsIdentity = "compat 1"
	tlsKey      = "8f1c2b7a9d3e4f5061728394a5b6c7d88f1c2b7a9d3e4f5061728394a5b6c7d8"
)

// fixedKeys is a fixed set of keys.
type fixedKeys map[string][][]byte

func (k fixedKeys) Keys(identity string) [][]byte { return k[identity] }

func decodeKey(t *testing.T) []byte {
	t.Helper()
	key, err := hex.DecodeString(tlsKey)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// opensslChoices are what both sides must be able to settle on, as arguments of openssl.
var opensslChoices = []struct {
	suite   string
	args    []string
	version uint16
}{
	{"TLS_AES_128_GCM_SHA256", []string{"-tls1_3"}, tlspsk.VersionTLS13},
	{"TLS_CHACHA20_POLY1305_SHA256", []string{"-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"}, tlspsk.VersionTLS13},
	{"ECDHE-PSK-AES128-CBC-SHA256", []string{"-tls1_2", "-cipher", "ECDHE-PSK-AES128-CBC-SHA256"}, tlspsk.VersionTLS12},
	{"PSK-AES128-GCM-SHA256", []string{"-tls1_2", "-cipher", "PSK-AES128-GCM-SHA256"}, tlspsk.VersionTLS12},
	{"PSK-AES128-CBC-SHA256", []string{"-tls1_2", "-cipher", "PSK-AES128-CBC-SHA256"}, tlspsk.VersionTLS12},
	{"PSK-AES128-CBC-SHA", []string{"-tls1_2", "-cipher", "PSK-AES128-CBC-SHA"}, tlspsk.VersionTLS12},
}

// An OpenSSL client talks to our server in every suite.
func TestTLS_opensslClient(t *testing.T) {
	key := decodeKey(t)
	for _, choice := range opensslChoices {
		t.Run(choice.suite, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			states := make(chan tlspsk.State, 1)
			go func() {
				nc, err := ln.Accept()
				if err != nil {
					return
				}
				c := tlspsk.Server(nc, &tlspsk.Config{Keys: fixedKeys{tlsIdentity: {key}}})
				defer c.Close()
				_, _ = io.CopyN(c, c, int64(len(tlsText)))
				states <- c.State()
			}()
			args := append([]string{"s_client", "-connect", ln.Addr().String(), "-quiet", "-psk_identity", tlsIdentity, "-psk", tlsKey}, choice.args...)
			cmd := exec.Command("openssl", args...)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			if _, err := io.WriteString(stdin, tlsText); err != nil {
				t.Fatal(err)
			}
			select {
			case state := <-states:
				if want := (tlspsk.State{Version: choice.version, Suite: choice.suite, Identity: tlsIdentity, KeySum: sha256.Sum256(key)}); state != want {
					t.Errorf("state %+v, want %+v", state, want)
				}
			case <-time.After(patience):
				t.Fatalf("nothing was exchanged: %s", errs.String())
			}
			stdin.Close()
			_ = cmd.Wait()
			if out.String() != tlsText {
				t.Errorf("%d bytes came back, want %d: %s", out.Len(), len(tlsText), errs.String())
			}
		})
	}
}

// tlsText is more than a record holds.
var tlsText = strings.Repeat("one line of text\n", 2000)

// Our client talks to an OpenSSL server in every suite.
func TestTLS_opensslServer(t *testing.T) {
	key := decodeKey(t)
	for _, choice := range opensslChoices {
		t.Run(choice.suite, func(t *testing.T) {
			address := freeport.Address(t)
			log := t.TempDir() + "/openssl.log"
			showLog(t, log)
			args := append([]string{"s_server", "-accept", address, "-nocert", "-quiet", "-rev", "-psk_identity", tlsIdentity, "-psk", tlsKey}, choice.args...)
			run(t, log, "openssl", args...)
			c := tlspsk.Client(dial(t, address), &tlspsk.Config{Identity: tlsIdentity, Key: key})
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, "abc\n"); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 4)
			if _, err := io.ReadFull(c, got); err != nil || string(got) != "cba\n" {
				t.Fatalf("%q came back: %v", got, err)
			}
			if state := c.State(); state.Suite != choice.suite || state.Version != choice.version {
				t.Errorf("state %+v, want %s", state, choice.suite)
			}
		})
	}
}

// dial connects to a peer that has just been started.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
