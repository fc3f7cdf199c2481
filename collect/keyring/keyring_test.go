package keyring

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"tidemark/collect"
	"tidemark/model"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func psk(identity string, key []byte) collect.Peer {
	return collect.Peer{Kind: model.PSK, Identity: identity, KeySum: sha256.Sum256(key)}
}

func TestKeyring(t *testing.T) {
	now := int64(1000)
	k := New(func() int64 { return now })
	plain := collect.Peer{Kind: model.Unencrypted}
	if !k.Allows(1, plain) || k.Allows(1, psk("a", key(1))) || !k.AllowsNew(plain) || k.Keys("a") != nil {
		t.Error("an empty keyring is not unencrypted")
	}
	k.Apply([]model.HostTLS{
		{HostID: 0, Accept: model.PSK, Identity: "new", Key: key(9)},
		{HostID: 1, Accept: model.PSK, Identity: "a", Key: key(1), OldIdentity: "a", OldKey: key(2), OldUntil: 2000},
		{HostID: 2, Accept: model.PSK | model.Unencrypted, Identity: "b", Key: key(3)},
		{HostID: 3, Accept: model.Certificate, Subject: "CN=three", Issuer: "CN=ca"},
		{HostID: 4, Accept: model.PSK, Identity: "b", Key: key(3), OldIdentity: "a", OldKey: key(4), OldUntil: 3000},
		{HostID: 5, Accept: model.Unencrypted, Identity: "unused", Key: key(5)},
		{HostID: 6, Accept: model.PSK},
	})
	cert := collect.Peer{Kind: model.Certificate, Issuer: "CN=ca", Subject: "CN=three"}
	f := func(host model.HostID, p collect.Peer, want bool) {
		t.Helper()
		if got := k.Allows(host, p); got != want {
			t.Errorf("at %d, host %d, %+v: %t, want %t", now, host, p, got, want)
		}
	}
	f(1, psk("a", key(1)), true)
	f(1, psk("a", key(2)), true)
	f(1, psk("a", key(4)), false) // the same identity with a key that another host had
	f(1, psk("b", key(3)), false)
	f(1, plain, false)
	f(2, plain, true)
	f(2, psk("b", key(3)), true)
	f(2, psk("a", key(1)), false)
	f(3, cert, true)
	f(3, collect.Peer{Kind: model.Certificate, Issuer: "CN=ca", Subject: "CN=four"}, false)
	f(3, collect.Peer{Kind: model.Certificate, Issuer: "CN=other", Subject: "CN=three"}, false)
	f(3, plain, false)
	f(4, psk("b", key(3)), true)
	f(4, psk("a", key(4)), true)
	f(5, psk("unused", key(5)), false)
	f(6, psk("", nil), false)
	f(7, plain, true)
	f(7, psk("a", key(1)), false)
	if k.AllowsNew(plain) || !k.AllowsNew(psk("new", key(9))) || k.AllowsNew(psk("a", key(1))) {
		t.Error("registration is not by its own key")
	}
	keys := func(identity string, want ...[]byte) {
		t.Helper()
		got := k.Keys(identity)
		if len(got) != len(want) {
			t.Errorf("at %d, %d keys of %s, want %d", now, len(got), identity, len(want))
			return
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("at %d, key %d of %s is another", now, i, identity)
			}
		}
	}
	keys("a", key(1), key(2)) // and not the third
	keys("b", key(3))
	keys("unused")
	keys("nobody")
	now = 2000
	f(1, psk("a", key(2)), false)
	f(1, psk("a", key(1)), true)
	keys("a", key(1), key(4))
	now = 3000
	keys("a", key(1))
	if got, ok := k.HostTLS(2); !ok || got.Identity != "b" {
		t.Errorf("settings of host 2: %+v", got)
	}
}
