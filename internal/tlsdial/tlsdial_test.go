package tlsdial

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/internal/tlspsk"
)

type oneKey struct {
	identity string
	key      []byte
}

func (k oneKey) Keys(identity string) [][]byte {
	if identity != k.identity {
		return nil
	}
	return [][]byte{k.key}
}

func TestSettings_Dialer(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := write("key", strings.Repeat("ab", 32)+"\n")
	wrong := func(s Settings, want string) {
		t.Helper()
		if _, err := s.Dialer("agent.tls"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
	wrong(Settings{Connect: "tls"}, "expected unencrypted, psk or cert")
	wrong(Settings{Connect: "psk"}, "expected agent.tls.psk_identity")
	wrong(Settings{Connect: "psk", PSKIdentity: "a", PSKFile: dir + "/none"}, "no such file")
	wrong(Settings{Connect: "psk", PSKIdentity: "a", PSKFile: write("bad", "xyz")}, "expected one line of hexadecimal digits")
	wrong(Settings{Connect: "psk", PSKIdentity: "a", PSKFile: write("short", "abcd")}, "4 hexadecimal digits")
	wrong(Settings{Connect: "psk", PSKIdentity: "a", PSKFile: write("long", strings.Repeat("ab", 4000))}, "at most 4096")
	wrong(Settings{Connect: "cert"}, "expected agent.tls.ca_file")
	wrong(Settings{Connect: "cert", CAFile: key, CertificateFile: key, KeyFile: key}, "agent.tls: ")

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				_ = nc.SetDeadline(time.Now().Add(time.Minute))
				c := tlspsk.Server(nc, &tlspsk.Config{Keys: oneKey{"a", []byte(strings.Repeat("\xab", 32))}})
				_, _ = c.Write([]byte("x"))
			}()
		}
	}()
	try := func(identity string) error {
		dial, err := (&Settings{Connect: "psk", PSKIdentity: identity, PSKFile: key}).Dialer("agent.tls")
		if err != nil {
			return err
		}
		c, err := dial(t.Context(), ln.Addr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
		return err
	}
	if err := try("a"); err != nil {
		t.Error(err)
	}
	if err := try("b"); err == nil || !strings.Contains(err.Error(), "do the settings of agent.tls fit") {
		t.Errorf("a key that the server does not have: %v", err)
	}
}
