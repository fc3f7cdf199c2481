// Package keyring knows which host a peer may speak for: by its pre-shared key, by its certificate, or without either.
//
// It is built from the TLS settings of all hosts whenever they change, and asked by many goroutines.
package keyring

import (
	"bytes"
	"crypto/sha256"
	"sync/atomic"
	"time"

	"tidemark/collect"
	"tidemark/internal/tlspsk"
	"tidemark/model"
)

// Keyring implements tlspsk.Keys and the access rules of collectors. The zero value is not ready; use New.
type Keyring struct {
	now   func() int64
	state atomic.Pointer[state]
}

type state struct {
	hosts map[model.HostID]*access
	// keys are the keys of each identity, with the time until which they are good; zero for always.
	keys map[string][]timedKey
}

type timedKey struct {
	key   []byte
	until int64
}

// access is what one host accepts.
type access struct {
	model.HostTLS
	sum, oldSum [sha256.Size]byte
}

// New returns a keyring without any settings: every host is unencrypted. now is the clock, Unix nanoseconds; nil is the system's.
func New(now func() int64) *Keyring {
	if now == nil {
		now = func() int64 { return time.Now().UnixNano() }
	}
	k := &Keyring{now: now}
	k.Apply(nil)
	return k
}

// Apply replaces the settings. Hosts that are not in list are unencrypted; host 0 stands for agents that register themselves.
func (k *Keyring) Apply(list []model.HostTLS) {
	s := &state{hosts: make(map[model.HostID]*access, len(list)), keys: make(map[string][]timedKey, len(list))}
	for i := range list {
		t := &list[i]
		s.hosts[t.HostID] = &access{HostTLS: *t, sum: sha256.Sum256(t.Key), oldSum: sha256.Sum256(t.OldKey)}
		if t.Accept&model.PSK != 0 {
			s.addKey(t.Identity, timedKey{key: t.Key})
		}
	}
	// Behind the others, because they are the ones to be left out where an identity has too many.
	for i := range list {
		if t := &list[i]; t.Accept&model.PSK != 0 && t.OldUntil != 0 {
			s.addKey(t.OldIdentity, timedKey{t.OldKey, t.OldUntil})
		}
	}
	k.state.Store(s)
}

func (s *state) addKey(identity string, add timedKey) {
	if tlspsk.CheckKey(identity, add.key) != nil {
		return
	}
	list := s.keys[identity]
	for i := range list {
		if bytes.Equal(list[i].key, add.key) {
			if list[i].until != 0 && (add.until == 0 || add.until > list[i].until) {
				list[i].until = add.until
			}
			return
		}
	}
	s.keys[identity] = append(list, add)
}

// Keys implements tlspsk.Keys.
func (k *Keyring) Keys(identity string) [][]byte {
	var keys [][]byte
	now := k.now()
	for _, t := range k.state.Load().keys[identity] {
		if (t.until == 0 || now < t.until) && len(keys) < tlspsk.MaxKeys {
			keys = append(keys, t.key)
		}
	}
	return keys
}

// HostTLS returns the settings of a host, with which its agent is connected to. It is false for one that is unencrypted.
func (k *Keyring) HostTLS(host model.HostID) (model.HostTLS, bool) {
	a := k.state.Load().hosts[host]
	if a == nil {
		return model.HostTLS{}, false
	}
	return a.HostTLS, true
}

// Allows reports whether a peer may send values for a host. A key is good for the hosts that have it with its identity, not
// for any other.
func (k *Keyring) Allows(host model.HostID, p collect.Peer) bool {
	a := k.state.Load().hosts[host]
	if a == nil {
		return p.Kind == model.Unencrypted
	}
	return a.allows(p, k.now())
}

// AllowsNew reports whether a peer may register a host that does not exist yet.
func (k *Keyring) AllowsNew(p collect.Peer) bool { return k.Allows(0, p) }

func (a *access) allows(p collect.Peer, now int64) bool {
	if p.Kind&a.Accept == 0 {
		return false
	}
	switch p.Kind {
	case model.Unencrypted:
		return true
	case model.PSK:
		if p.Identity == a.Identity && p.KeySum == a.sum && len(a.Key) > 0 {
			return true
		}
		return p.Identity == a.OldIdentity && p.KeySum == a.oldSum && len(a.OldKey) > 0 && now < a.OldUntil
	case model.Certificate:
		return (a.Issuer == "" || a.Issuer == p.Issuer) && (a.Subject == "" || a.Subject == p.Subject)
	}
	return false
}
