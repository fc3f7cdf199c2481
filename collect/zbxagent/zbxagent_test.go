package zbxagent

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/collect/poller"
	"tidemark/internal/tlspsk"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// agent is a small passive agent.
type agent struct {
	address string
	mu      sync.Mutex
	asked   []string
}

// serve runs an agent until the test ends. answer gets the body of the request and returns what is written back; nil closes the connection.
func serve(t *testing.T, secure func(net.Conn) net.Conn, answer func(body string) []byte) *agent {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{address: ln.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				if secure != nil {
					nc = secure(nc)
				}
				defer nc.Close()
				var fr zbx.FrameReader
				_, body, err := fr.Read(bufio.NewReader(nc))
				if err != nil {
					return
				}
				a.mu.Lock()
				a.asked = append(a.asked, string(body))
				a.mu.Unlock()
				_, _ = nc.Write(answer(string(body)))
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		serving.Wait()
	})
	return a
}

func (a *agent) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.asked...)
}

func framed(body string) []byte { return zbx.AppendFrame(nil, []byte(body)) }

// old answers as agents before 7.0 do.
func old(body string) []byte {
	switch body {
	case "agent.ping":
		return framed("1")
	case "zero":
		return framed("ZBX_ERROR")
	case "bare":
		return []byte("12.5\n")
	case "drop":
		return nil
	}
	return framed("ZBX_NOTSUPPORTED\x00Unsupported item key.")
}

func new7(body string) []byte {
	switch {
	case strings.Contains(body, `"agent.ping"`):
		return framed(`{"version":"7.0.3","variant":2,"data":[{"value":"1"}]}`)
	case strings.Contains(body, `"zero"`):
		return framed(`{"version":"7.0.3","variant":2,"data":[{"value":null}]}`)
	case strings.Contains(body, `"refuse"`):
		return framed(`{"version":"7.0.3","variant":2,"error":"Too much."}`)
	case strings.Contains(body, `"broken"`):
		return framed(`{"version":`)
	}
	return framed(`{"version":"7.0.3","variant":2,"data":[{"error":"Unsupported item key."}]}`)
}

func timed(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestGet_old(t *testing.T) {
	a := serve(t, nil, old)
	now := time.Unix(0, 0)
	c := New(Options{Now: func() time.Time { return now }})
	get := func(key string) (Answer, error) { return c.Get(timed(t), Query{Address: a.address, Key: key}) }
	if got, err := get("agent.ping"); err != nil || string(got.Value) != "1" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := get("other"); err != nil || got.NotSupported != "Unsupported item key." {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := get("zero"); err != nil || !got.NoValue {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := get("bare"); err != nil || string(got.Value) != "12.5" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := get("drop"); err == nil || !strings.Contains(err.Error(), "does its Server= list have this server") {
		t.Errorf("a connection that is dropped: %v", err)
	}
	want := []string{`{"request":"passive checks","data":[{"key":"agent.ping","timeout":"3s"}]}`, "agent.ping", "other", "zero", "bare", "drop"}
	if got := a.requests(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("asked %q, want %q", got, want)
	}
	now = now.Add(2 * time.Hour)
	if _, err := get("agent.ping"); err != nil {
		t.Error(err)
	}
	if got := a.requests(); len(got) != len(want)+2 || got[len(want)][0] != '{' {
		t.Errorf("after an hour asked %q, want JSON again", got[len(want):])
	}
}

func TestGet_new(t *testing.T) {
	a := serve(t, nil, new7)
	c := New(Options{})
	get := func(key string) (Answer, error) { return c.Get(timed(t), Query{Address: a.address, Key: key}) }
	if got, err := get("agent.ping"); err != nil || string(got.Value) != "1" || got.Version != "7.0.3" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := get("zero"); err != nil || !got.NoValue {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := get("other"); err != nil || got.NotSupported != "Unsupported item key." {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := get("refuse"); err == nil || !strings.Contains(err.Error(), "Too much.") {
		t.Errorf("a refusal: %v", err)
	}
	if _, err := get("broken"); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("broken JSON: %v", err)
	}
	if got := a.requests(); len(got) != 5 {
		t.Errorf("asked %q", got)
	}
}

func TestGet_limits(t *testing.T) {
	huge := zbx.AppendHeader(nil, zbx.Header{BodyBytes: 4 << 30, Flags: zbx.FlagLarge})
	a := serve(t, nil, func(body string) []byte {
		switch {
		case strings.Contains(body, "huge"):
			return huge
		case strings.Contains(body, "bare"):
			return bytes.Repeat([]byte("x"), 2*maxBareBytes)
		}
		return framed(strings.Repeat("x", 3000))
	})
	c := New(Options{MaxAnswerBytes: 4000})
	for _, key := range []string{"huge", "bare"} {
		if _, err := c.Get(timed(t), Query{Address: a.address, Key: key}); err == nil {
			t.Errorf("%s: no error", key)
		}
	}
	if got, err := c.Get(timed(t), Query{Address: a.address, Key: "k"}); err != nil || len(got.Value) != 3000 {
		t.Errorf("%d bytes, %v", len(got.Value), err)
	}
}

func TestGet_silent(t *testing.T) {
	release := make(chan struct{})
	a := serve(t, nil, func(string) []byte { <-release; return nil })
	defer close(release)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := New(Options{}).Get(ctx, Query{Address: a.address, Key: "k"}); err == nil || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("%v", err)
	}
}

type keys map[string][][]byte

func (k keys) Keys(identity string) [][]byte { return k[identity] }

var key1, key2 = bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)

func TestGet_psk(t *testing.T) {
	a := serve(t, func(nc net.Conn) net.Conn {
		return tlspsk.Server(nc, &tlspsk.Config{Keys: keys{"one": {key1}}})
	}, new7)
	c := New(Options{})
	get := func(tls model.HostTLS) error {
		got, err := c.Get(timed(t), Query{Address: a.address, Key: "agent.ping", TLS: tls})
		if err == nil && string(got.Value) != "1" {
			t.Errorf("%+v", got)
		}
		return err
	}
	good := model.HostTLS{Connect: model.PSK, Identity: "one", Key: key1}
	if err := get(good); err != nil {
		t.Error(err)
	}
	rotating := model.HostTLS{Connect: model.PSK, Identity: "two", Key: key2, OldIdentity: "one", OldKey: key1, OldUntil: time.Now().Add(time.Hour).UnixNano()}
	if err := get(rotating); err != nil {
		t.Errorf("an agent with the old key: %v", err)
	}
	c.mu.Lock()
	if !c.old[a.address] {
		t.Error("the agent's old key is not remembered")
	}
	c.mu.Unlock()
	for range 2 {
		if err := get(rotating); err != nil {
			t.Errorf("an agent with the old key, again: %v", err)
		}
	}
	turned := rotating
	turned.Identity, turned.Key, turned.OldIdentity, turned.OldKey = rotating.OldIdentity, rotating.OldKey, rotating.Identity, rotating.Key
	if err := get(turned); err != nil {
		t.Errorf("an agent that got the new key: %v", err)
	}
	rotating.OldUntil = 1
	if err := get(rotating); err == nil || !strings.Contains(err.Error(), "wrong key or identity") {
		t.Errorf("a wrong key: %v", err)
	}
	if err := get(model.HostTLS{}); err == nil {
		t.Error("an agent with a key answers unencrypted")
	}
}

func TestGet_certificate(t *testing.T) {
	pool := x509.NewCertPool()
	agentCert, ownCert := certificate(t, pool, "agent"), certificate(t, pool, "server")
	a := serve(t, func(nc net.Conn) net.Conn {
		return tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{agentCert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	}, new7)
	f := func(own *tls.Config, t1 model.HostTLS, want string) {
		t.Helper()
		t1.Connect = model.Certificate
		_, err := New(Options{Certificates: own}).Get(timed(t), Query{Address: a.address, Key: "agent.ping", TLS: t1})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", t1, err, want)
		}
	}
	own := &tls.Config{Certificates: []tls.Certificate{ownCert}, RootCAs: pool}
	f(own, model.HostTLS{}, "")
	f(own, model.HostTLS{Subject: "CN=agent", Issuer: "CN=agent"}, "")
	f(own, model.HostTLS{Subject: "CN=other"}, `subject is "CN=agent", expected "CN=other"`)
	f(own, model.HostTLS{Issuer: "CN=other"}, `issuer is "CN=agent", expected "CN=other"`)
	f(&tls.Config{Certificates: []tls.Certificate{ownCert}, RootCAs: x509.NewCertPool()}, model.HostTLS{}, "unknown authority")
	f(nil, model.HostTLS{}, "no certificate authority")
}

// certificate makes one that signs itself and adds it to a pool.
func certificate(t *testing.T, pool *x509.CertPool, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

type access map[model.HostID]model.HostTLS

func (a access) HostTLS(h model.HostID) (model.HostTLS, bool) {
	t, ok := a[h]
	return t, ok
}

func TestCheck(t *testing.T) {
	a := serve(t, nil, old)
	c := New(Options{Access: access{2: {Connect: model.Certificate}}})
	k := c.Kind()
	if k.Name != "agent" || len(k.Types) != 1 || k.Types[0] != model.PassiveAgent {
		t.Errorf("kind %+v", k)
	}
	var tasks []*poller.Task
	for host, key := range map[model.HostID]string{1: "agent.ping", 2: "agent.ping"} {
		tasks = append(tasks, &poller.Task{Item: &model.Item{HostID: host, Key: key}, Address: a.address})
	}
	for _, key := range []string{"zero", "other", "drop"} {
		tasks = append(tasks, &poller.Task{Item: &model.Item{HostID: 1, Key: key}, Address: a.address})
	}
	want := map[string]poller.Outcome{"zero": poller.Nothing, "other": poller.NotSupported, "drop": poller.Unreachable}
	results := make([]poller.Result, len(tasks))
	c.Check(timed(t), tasks, results)
	for i, task := range tasks {
		expected, ok := want[task.Item.Key]
		if !ok {
			expected = map[model.HostID]poller.Outcome{1: poller.Value, 2: poller.Unreachable}[task.Item.HostID]
		}
		if results[i].Outcome != expected {
			t.Errorf("host %d, %s: %d %s, want %d", task.Item.HostID, task.Item.Key, results[i].Outcome, results[i].Text, expected)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
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
				var fr zbx.FrameReader
				if _, _, err := fr.Read(nc); err == nil {
					_, _ = nc.Write(framed(`{"version":"7.0.3","variant":2,"data":[{"value":"1"}]}`))
				}
			}()
		}
	}()
	c := New(Options{})
	b.ReportAllocs()
	b.SetParallelism(50)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
			if _, err := c.Get(ctx, Query{Address: ln.Addr().String(), Key: "agent.ping"}); err != nil {
				b.Error(err)
			}
			cancel()
		}
	})
}
