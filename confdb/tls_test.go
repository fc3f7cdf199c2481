package confdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"tidemark/model"
)

func TestSetHostTLS(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	d := open(t, dir)
	now := time.Unix(1_800_000_000, 0)
	d.now = func() time.Time { return now }
	id, _, err := d.RegisterHost(ctx, "h1", "")
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := d.RegisterHost(ctx, "h2", "")
	if err != nil {
		t.Fatal(err)
	}
	first, second := bytes.Repeat([]byte("first key"), 4), bytes.Repeat([]byte("second"), 4)
	set := func(host model.HostID, identity string, key []byte, keep time.Duration) error {
		return d.SetHostTLS(ctx, model.HostTLS{HostID: host, Connect: model.PSK, Accept: model.PSK, Identity: identity, Key: key}, keep)
	}
	for _, err := range []error{set(id, "one", first, 0), set(0, "new agents", second, 0), set(id, "one", second, time.Hour), set(id, "one", second, 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	list, err := d.HostTLS(ctx)
	if err != nil || len(list) != 2 || list[0].HostID != 0 || list[0].Identity != "new agents" {
		t.Fatalf("HostTLS: %v, %v", list, err)
	}
	got := list[1]
	if got.HostID != id || !bytes.Equal(got.Key, second) || !bytes.Equal(got.OldKey, first) || got.OldIdentity != "one" ||
		got.OldUntil != now.Add(time.Hour).UnixNano() || got.Connect != model.PSK || got.Accept != model.PSK {
		t.Errorf("after a rotation: %+v", got)
	}
	if err := set(other, "one", first, 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("an identity with two keys: %v", err)
	}
	if err := set(99, "x", first, 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("a host that is not there: %v", err)
	}
	now = now.Add(2 * time.Hour)
	if list, err = d.HostTLS(ctx); err != nil || list[1].OldKey != nil {
		t.Errorf("after the time of the old key: %v, %v", list, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	checkSealed(t, dir, first, second)
	if list, err = open(t, dir).HostTLS(ctx); err != nil || !bytes.Equal(list[1].Key, second) {
		t.Errorf("after a restart: %v, %v", list, err)
	}
}

// checkSealed looks for keys in the files of a closed database.
func checkSealed(t *testing.T, dir string, keys ...[]byte) {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, SecretFileName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info, err)
	}
	files, err := filepath.Glob(dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if bytes.Contains(b, key) || bytes.Contains(b, fmt.Appendf(nil, "%x", key)) {
				t.Errorf("%s holds a key", name)
			}
		}
	}
}

func TestHostTLS_secretFile(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	d := open(t, dir)
	id, _, err := d.RegisterHost(ctx, "h1", "")
	if err != nil {
		t.Fatal(err)
	}
	key := bytes.Repeat([]byte{1}, 16)
	if err := d.SetHostTLS(ctx, model.HostTLS{HostID: id, Connect: 1, Accept: model.PSK, Identity: "i", Key: key}, 0); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, SecretFileName)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := d.HostTLS(ctx); !errors.Is(err, ErrInvalid) {
		t.Errorf("a key file that all can read: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	var unreadable *UnreadableError
	list, err := d.HostTLS(ctx)
	if !errors.As(err, &unreadable) || len(list) != 1 || list[0].Accept != model.PSK || list[0].Key != nil {
		t.Errorf("without the key file: %v, %v, want the settings without keys", list, err)
	}
	if err := d.SetHostTLS(ctx, model.HostTLS{HostID: id, Connect: 1, Accept: model.PSK, Identity: "i", Key: key}, time.Hour); err != nil {
		t.Errorf("setting the key again: %v", err)
	}
	if list, err := d.HostTLS(ctx); err != nil || !bytes.Equal(list[0].Key, key) || list[0].OldKey != nil {
		t.Errorf("after setting the key again: %v, %v", list, err)
	}
}

func TestCheckTLS(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 16)
	f := func(tls model.HostTLS, ok bool) {
		t.Helper()
		if err := checkTLS(&tls); (err == nil) != ok {
			t.Errorf("%+v: %v, want ok %t", tls, err, ok)
		}
	}
	f(model.HostTLS{Connect: 1, Accept: 1}, true)
	f(model.HostTLS{Connect: 4, Accept: 5}, true)
	f(model.HostTLS{Connect: 3, Accept: 1}, false)
	f(model.HostTLS{Connect: 1, Accept: 0}, false)
	f(model.HostTLS{Connect: 1, Accept: 8}, false)
	f(model.HostTLS{Connect: 2, Accept: 1}, false)
	f(model.HostTLS{Connect: 1, Accept: 3, Identity: "i", Key: key}, true)
	f(model.HostTLS{Connect: 1, Accept: 3, Identity: "i", Key: key[:15]}, false)
	f(model.HostTLS{Connect: 1, Accept: 3, Key: key}, false)
	f(model.HostTLS{Connect: 1, Accept: 1, Identity: "i\xff", Key: key}, false)
}

func TestUnpackInterfaces(t *testing.T) {
	got, err := unpackInterfaces(`{"interfaces":[{"ip":"10.0.0.1","interface_ref":"if1"},
		{"type":"SNMP","useip":"NO","dns":"{$NAME}","port":"{$PORT}","default":"NO","interface_ref":"if2"},{"type":"ODD"}]}`)
	want := []model.Interface{
		{Type: model.AgentInterface, Main: true, Ref: "if1", Address: "10.0.0.1", IP: "10.0.0.1", Port: "10050"},
		{Type: model.SNMPInterface, Ref: "if2", Address: "{$NAME}", DNS: "{$NAME}", Port: "{$PORT}", SNMP: &model.SNMPAccess{
			Version: "SNMPV2", SecurityLevel: "NOAUTHNOPRIV", AuthProtocol: "MD5", PrivProtocol: "DES",
		}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got, err := unpackInterfaces(packInterfaces([]Interface{{IP: "10.1.2.3"}})); err != nil || len(got) != 1 || got[0].Address != "10.1.2.3" {
		t.Errorf("of a registered agent: %+v, %v", got, err)
	}
}
