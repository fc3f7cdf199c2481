package trapper

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tidemark/collect/keyring"
	"tidemark/internal/tlspsk"
	"tidemark/model"
	"tidemark/wire/zbx"
)

var (
	key1 = bytes.Repeat([]byte{1}, 32)
	key2 = bytes.Repeat([]byte{2}, 32)
)

// startSecured runs a server where h1 has key 1, h2 key 2 or none at all, and new agents key 2.
func startSecured(t *testing.T, o Options) *harness {
	t.Helper()
	keys := keyring.New(func() int64 { return arrival })
	keys.Apply([]model.HostTLS{
		{HostID: 0, Accept: model.PSK, Identity: "two", Key: key2},
		{HostID: 1, Accept: model.PSK | model.Certificate, Identity: "one", Key: key1, Subject: "CN=h1"},
		{HostID: 2, Accept: model.PSK | model.Unencrypted, Identity: "two", Key: key2},
	})
	o.Access = keys
	o.TLS = &TLS{Keys: keys, Certificates: &tls.Config{
		Certificates: []tls.Certificate{certificate(t, "server")}, ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
	}}
	return start(t, o)
}

func certificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// askTLS sends a request with a pre-shared key and returns the body of the answer.
func (h *harness) askTLS(identity string, key []byte, request string) (string, error) {
	h.t.Helper()
	nc, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	c := tlspsk.Client(nc, &tlspsk.Config{Identity: identity, Key: key})
	defer c.Close()
	return askOver(c, request)
}

func askOver(c net.Conn, request string) (string, error) {
	if _, err := c.Write(zbx.AppendFrame(nil, []byte(request))); err != nil {
		return "", err
	}
	var fr zbx.FrameReader
	_, body, err := fr.Read(c)
	return string(body), err
}

func TestTLS_hosts(t *testing.T) {
	h := startSecured(t, Options{})
	send := func(host string) string {
		return `{"request":"sender data","data":[{"host":"` + host + `","key":"trap.f","value":"1"}]}`
	}
	f := func(identity string, key []byte, request, want string) {
		t.Helper()
		got, err := h.askTLS(identity, key, request)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s, %.60s: %q, %v, want %q", identity, request, got, err, want)
		}
	}
	f("one", key1, send("h1"), "processed: 1; failed: 0")
	f("two", key2, send("h2"), "processed: 1; failed: 0")
	f("two", key2, send("h1"), "processed: 0; failed: 1")
	f("one", key1, send("h2"), "processed: 0; failed: 1")
	if got := h.ask(send("h1")); !strings.Contains(got, "processed: 0; failed: 1") {
		t.Errorf("unencrypted for h1: %q", got)
	}
	if got := h.ask(send("h2")); !strings.Contains(got, "processed: 1; failed: 0") {
		t.Errorf("unencrypted for h2: %q", got)
	}
	f("two", key2, agentData(token, `{"id":1,"itemid":12,"value":"1"}`), `"failed","info":"connection of type \"psk\" is not allowed for host \"h1\"`)
	f("two", key2, `{"request":"active checks","host":"h1"}`, `connection of type \"psk\" is not allowed`)
	f("one", key1, `{"request":"active checks","host":"h1"}`, `"success"`)
	if got := h.ask(`{"request":"active checks","host":"h1"}`); !strings.Contains(got, `connection of type \"unencrypted\" is not allowed for host \"h1\"`) {
		t.Errorf("active checks unencrypted: %q", got)
	}
	if got := h.refusedValues(notAllowed); got != 3 {
		t.Errorf("%d values refused, want 3", got)
	}
	if got := len(h.sink.taken()); got != 3 {
		t.Errorf("%d values taken, want 3", got)
	}
}

func TestTLS_wrongKey(t *testing.T) {
	h := startSecured(t, Options{})
	for _, who := range []struct {
		identity string
		key      []byte
	}{{"one", key2}, {"nobody", key1}} {
		_, err := h.askTLS(who.identity, who.key, `{"request":"active checks","host":"h1"}`)
		if !errors.Is(err, tlspsk.ErrHandshake) || !strings.Contains(err.Error(), "wrong key or identity") {
			t.Errorf("%s: %v", who.identity, err)
		}
	}
	// The alert comes before the count.
	if err := h.s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := h.refused(handshakeFailed); got != 2 {
		t.Errorf("%d handshakes refused, want 2", got)
	}
}

func TestTLS_certificate(t *testing.T) {
	h := startSecured(t, Options{})
	for name, want := range map[string]string{"h1": "processed: 1; failed: 0", "h2": "processed: 0; failed: 1"} {
		nc, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		c := tls.Client(nc, &tls.Config{Certificates: []tls.Certificate{certificate(t, name)}, InsecureSkipVerify: true})
		got, err := askOver(c, `{"request":"sender data","data":[{"host":"h1","key":"trap.f","value":"1"}]}`)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("certificate of %s: %q, %v, want %s", name, got, err, want)
		}
		c.Close()
	}
}

// New agents must come with the key for registration.
func TestTLS_registration(t *testing.T) {
	var asked []string
	h := startSecured(t, Options{Registrar: registrarFunc(func(hello AgentHello) bool {
		asked = append(asked, hello.Host)
		return false
	})})
	request := `{"request":"active checks","host":"new"}`
	if got := h.ask(request); !strings.Contains(got, "host [new] not found") || len(asked) != 0 {
		t.Errorf("unencrypted: %q, registered %v", got, asked)
	}
	if _, err := h.askTLS("one", key1, request); err != nil || len(asked) != 0 {
		t.Errorf("with another host's key: %v, registered %v", err, asked)
	}
	if _, err := h.askTLS("two", key2, request); err != nil || len(asked) != 1 {
		t.Errorf("with the key: %v, registered %v", err, asked)
	}
}

type registrarFunc func(AgentHello) bool

func (f registrarFunc) Register(_ context.Context, hello AgentHello) (bool, error) {
	return f(hello), nil
}

// A peer that goes silent in the handshake is cut off like any other.
func TestTLS_silent(t *testing.T) {
	h := startSecured(t, Options{HandshakeTimeout: 50 * time.Millisecond})
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte{tlsHandshake, 3, 1, 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Fatal(err)
	}
	if got := h.refused(timedOut); got != 1 {
		t.Errorf("%d time-outs, want 1", got)
	}
}

// A peer that leaves after the handshake, or sends half a word, does no harm.
func TestTLS_leaves(t *testing.T) {
	h := startSecured(t, Options{})
	for _, sent := range []string{"", "Z", "{"} {
		nc, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		c := tlspsk.Client(nc, &tlspsk.Config{Identity: "one", Key: key1})
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Handshake(), c.CloseWrite()); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %q: %v", sent, err)
		}
		c.Close()
	}
	if _, err := h.askTLS("one", key1, `{"request":"active checks","host":"h1"}`); err != nil {
		t.Errorf("the next peer: %v", err)
	}
}

type names map[string][]netip.Addr

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if a, ok := n[host]; ok {
		return a, nil
	}
	return nil, errors.New("no such host")
}

func TestAllowedHosts(t *testing.T) {
	lists := allowedLists{resolver: names{"db1": {netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("::ffff:10.0.0.6")}}}
	f := func(list, address string, want bool) {
		t.Helper()
		if got := lists.holds(context.Background(), list, netip.MustParseAddr(address)); got != want {
			t.Errorf("%q has %s: %t, want %t", list, address, got, want)
		}
	}
	f("127.0.0.1", "127.0.0.1", true)
	f("127.0.0.1", "::ffff:127.0.0.1", true)
	f("::ffff:127.0.0.1", "127.0.0.1", true)
	f("127.0.0.1", "127.0.0.2", false)
	f(" 10.1.0.0/16 , 192.168.0.0/24", "192.168.0.77", true)
	f(" 10.1.0.0/16 , 192.168.0.0/24", "192.168.1.77", false)
	f("::/0", "10.1.2.3", true)
	f("0.0.0.0/0", "::1", false)
	f("::ffff:10.0.0.0/104", "10.9.9.9", true)
	f("fe80::/10", "fe80::1%eth0", true)
	f("db1", "10.0.0.5", true)
	f("db1", "10.0.0.6", true)
	f("db1,db2", "10.0.0.7", false)
	f("10.0.0.0/99", "10.0.0.1", false)
}

func TestAllowedHosts_sender(t *testing.T) {
	items := testItems()
	h := start(t, Options{Items: restricted{items}})
	got := h.counts(`{"request":"sender data","data":[{"host":"h1","key":"trap.f","value":"1"},{"host":"h1","key":"trap.t","value":"1"}]}`)
	if got.Processed != 1 || got.Failed != 1 || h.refusedValues(notAllowed) != 1 {
		t.Errorf("%+v, want the value of trap.f refused", got)
	}
}

// restricted lets trap.f come from another machine only.
type restricted struct{ *fakeItems }

func (r restricted) ItemByKey(host model.HostID, key []byte) (ItemRef, bool) {
	ref, ok := r.fakeItems.ItemByKey(host, key)
	ref.AllowedHosts = "127.0.0.0/8"
	if string(key) == "trap.f" {
		ref.AllowedHosts = "192.0.2.1"
	}
	return ref, ok
}
