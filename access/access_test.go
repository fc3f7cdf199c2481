package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"tidemark/model"
)

// fakeStore keeps everything in memory.
type fakeStore struct {
	mu     sync.Mutex
	loaded model.AccessLoaded
	nextID uint64
	audit  []model.AuditEntry
	gone   int
	used   int
}

func (f *fakeStore) LoadAccess(context.Context) (model.AccessLoaded, error) { return f.loaded, nil }

func (f *fakeStore) PutUser(_ context.Context, list ...*model.User) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range list {
		if u.ID == 0 {
			f.nextID++
			u.ID = model.UserID(f.nextID)
		}
	}
	return nil
}
func (f *fakeStore) DeleteUser(context.Context, ...model.UserID) error      { return nil }
func (f *fakeStore) PutUserGroup(context.Context, ...model.UserGroup) error { return nil }
func (f *fakeStore) DeleteUserGroup(context.Context, ...string) error       { return nil }
func (f *fakeStore) PutSession(context.Context, model.Session) error        { return nil }

func (f *fakeStore) DeleteSessions(_ context.Context, hashes [][32]byte) error {
	f.gone += len(hashes)
	return nil
}

func (f *fakeStore) PutToken(_ context.Context, list ...*model.Token) error {
	for _, t := range list {
		f.nextID++
		t.ID = f.nextID
	}
	return nil
}
func (f *fakeStore) DeleteToken(context.Context, ...uint64) error { return nil }

func (f *fakeStore) TouchAccess(_ context.Context, sessions []model.Session, tokens []model.Token) error {
	f.used += len(sessions) + len(tokens)
	return nil
}

func (f *fakeStore) RecordAudit(_ context.Context, e model.AuditEntry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.audit = append(f.audit, e)
	return nil
}

func (f *fakeStore) Audit(context.Context, model.AuditFilter) ([]model.AuditEntry, error) {
	return f.audit, nil
}

const password = "correct horse battery"

// clock is a clock that stands still.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func open(t *testing.T) (*Control, *fakeStore, *clock) {
	t.Helper()
	store, now := &fakeStore{}, &clock{now: time.Unix(1_800_000_000, 0)}
	c, err := Open(t.Context(), Options{Store: store, Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	return c, store, now
}

func (c *Control) addUser(t *testing.T, u model.User) model.User {
	t.Helper()
	p := password
	if err := c.PutUser(t.Context(), &u, &p); err != nil {
		t.Fatal(err)
	}
	return u
}

var from = Client{Address: "192.0.2.1:4711", Agent: "test"}

func TestFirst(t *testing.T) {
	c, store, _ := open(t)
	f := func(key, name, password string, want error) {
		t.Helper()
		if _, err := c.First(t.Context(), key, name, password, from); !errors.Is(err, want) {
			t.Errorf("first administrator %s: %v, want %v", name, err, want)
		}
	}
	if i, err := c.Identify(Credentials{Loopback: true}); err != nil || !i.SeesAllHosts() || i.Role != model.Administrator {
		t.Errorf("loopback before the first administrator: %+v %v", i, err)
	}
	if _, err := c.Identify(Credentials{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("elsewhere before the first administrator: %v", err)
	}
	old := c.FirstKey()
	key := c.FirstKey()
	f(old, "ada", password, ErrRefused)
	f("", "ada", password, ErrRefused)
	f(key, "ada", "short", ErrInvalid)
	f(key, "ada", password, nil)
	f(key, "eve", password, ErrRefused)
	if c.FirstKey() != "" {
		t.Error("a key though there is an administrator")
	}
	if _, err := c.Identify(Credentials{Loopback: true}); !errors.Is(err, ErrUnknown) {
		t.Errorf("loopback after the first administrator: %v", err)
	}
	if len(store.audit) != 1 || store.audit[0].Object != "user ada" {
		t.Errorf("audit: %+v", store.audit)
	}
	c, _, now := open(t)
	key = c.FirstKey()
	now.pass(firstKeyTime)
	f(key, "ada", password, ErrRefused)
}

func TestSessions(t *testing.T) {
	c, store, now := open(t)
	u := c.addUser(t, model.User{Name: "Ada", Role: model.Administrator, AllHosts: true})
	login := func() string {
		t.Helper()
		s, err := c.Login(t.Context(), "ada", password, from)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	f := func(when, session string, want error) {
		t.Helper()
		if _, err := c.Identify(Credentials{Session: session}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", when, err, want)
		}
	}
	s := login()
	f("signed in", s, nil)
	f("another text", s+"x", ErrUnknown)
	now.pass(sessionIdle - time.Second)
	f("shortly before it is idle", s, nil)
	now.pass(sessionIdle)
	f("idle", s, ErrUnknown)
	c.flush(t.Context())
	if store.gone != 1 || c.SessionCount(u.ID) != 0 {
		t.Errorf("an idle session is kept: %d, %d", store.gone, c.SessionCount(u.ID))
	}

	s = login()
	for range 2 * int(sessionAbsolute/sessionIdle) {
		now.pass(sessionIdle / 2)
		_, _ = c.Identify(Credentials{Session: s})
	}
	f("in use for 30 days", s, ErrUnknown)

	s = login()
	other := login()
	who, err := c.Identify(Credentials{Session: s})
	if err != nil {
		t.Fatal(err)
	}
	stream, ended := c.Watch(t.Context(), who), c.Watch(t.Context(), must(c.Identify(Credentials{Session: other})))
	if err := c.ChangePassword(t.Context(), who, "wrong password", "another password", from.Address); !errors.Is(err, ErrRefused) {
		t.Errorf("change with a wrong password: %v", err)
	}
	if err := c.ChangePassword(t.Context(), who, password, "another password", from.Address); err != nil {
		t.Fatal(err)
	}
	f("that changed the password", s, nil)
	f("another after the change of the password", other, ErrUnknown)
	if stream.Err() != nil || ended.Err() == nil {
		t.Errorf("streams after the change: %v, %v", stream.Err(), ended.Err())
	}
	if err := c.Logout(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	f("signed out", s, ErrUnknown)
	if stream.Err() == nil {
		t.Error("the stream of a session that was signed out goes on")
	}
}

func must(i *Identity, err error) *Identity {
	if err != nil {
		panic(err)
	}
	return i
}

func TestLogin_limit(t *testing.T) {
	c, store, now := open(t)
	c.addUser(t, model.User{Name: "ada", Role: model.Viewer, AllHosts: true})
	var limited *LimitedError
	for i := range freeByUser {
		if _, err := c.Login(t.Context(), "ada", "wrong password", from); !errors.Is(err, ErrRefused) {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	if _, err := c.Login(t.Context(), "ADA", password, from); !errors.As(err, &limited) || limited.After != firstWait {
		t.Errorf("after %d attempts: %v", freeByUser, err)
	}
	if _, err := c.Login(t.Context(), "ada", password, Client{Address: "198.51.100.7:1"}); err != nil {
		t.Errorf("from another address: %v", err)
	}
	now.pass(firstWait)
	if _, err := c.Login(t.Context(), "ada", "wrong password", from); !errors.Is(err, ErrRefused) {
		t.Errorf("after the wait: %v", err)
	}
	if _, err := c.Login(t.Context(), "ada", password, from); !errors.As(err, &limited) || limited.After != 2*firstWait {
		t.Errorf("the second wait: %v", err)
	}
	now.pass(2 * firstWait)
	if _, err := c.Login(t.Context(), "ada", password, from); err != nil {
		t.Errorf("the right password after the wait: %v", err)
	}
	for _, e := range store.audit {
		if strings.Contains(fmt.Sprint(e), "wrong password") || strings.Contains(fmt.Sprint(e), password) {
			t.Errorf("a password is in the audit log: %+v", e)
		}
	}
}

func TestLogin_limitIsBounded(t *testing.T) {
	l := newLimiter(func() time.Time { return time.Unix(1, 0) })
	for i := range 2 * maxKept {
		_ = l.begin(fmt.Sprint("name ", i), fmt.Sprintf("192.0.%d.%d:1", i/256%256, i%256))
	}
	if len(l.kept) > maxKept {
		t.Errorf("%d are remembered, at most %d", len(l.kept), maxKept)
	}
	if a, b := network("[2001:db8::1]:1"), network("[2001:db8::ffff:2]:9"); a != b || a != "2001:db8::/64" {
		t.Errorf("two addresses of one customer: %s, %s", a, b)
	}
}

// TestLogin_bcrypt lets somebody in whose password another program hashed, and hashes it anew.
func TestLogin_bcrypt(t *testing.T) {
	c, _, _ := open(t)
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	u := model.User{Name: "zoe", Role: model.Viewer, AllHosts: true}
	if err := c.PutHashedUser(t.Context(), &u, strings.Replace(string(hash), "$2a$", "$2y$", 1)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Login(t.Context(), "zoe", password, from); err != nil {
			t.Fatal(err)
		}
	}
	if h := c.users[u.ID].Password; !strings.HasPrefix(h, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("the hash after the sign-in is %.20q", h)
	}
	if _, err := c.Login(t.Context(), "zoe", password+"x", from); !errors.Is(err, ErrRefused) {
		t.Errorf("a wrong password: %v", err)
	}
	for _, bad := range []string{"", "x", "$2y$31$abc", "$argon2id$v=19$m=99999999,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA", "$argon2i$v=19$m=19456,t=2,p=1$AAAA$AAAA"} {
		if err := CheckHash(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("hash %q: %v", bad, err)
		}
	}
}

// TestHasher_bound lets no more hash at a time than there are places, and turns away those for whom there is no room to wait.
func TestHasher_bound(t *testing.T) {
	h := newHasher()
	for range maxHashing {
		if err := h.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, maxWaiting)
	for range maxWaiting {
		go func() { waiting <- h.enter(ctx) }()
	}
	for h.waiting.Load() < maxWaiting {
		time.Sleep(time.Millisecond)
	}
	var limited *LimitedError
	if _, err := h.hash(t.Context(), password); !errors.As(err, &limited) {
		t.Errorf("one too many: %v", err)
	}
	cancel()
	for range maxWaiting {
		if err := <-waiting; !errors.Is(err, context.Canceled) {
			t.Errorf("one who went away: %v", err)
		}
	}
}

func TestIdentity_onHost(t *testing.T) {
	c, _, _ := open(t)
	if err := c.PutGroup(t.Context(), model.UserGroup{Name: "Web", Grants: []model.Grant{{HostGroup: "Linux", Role: model.Editor}, {HostGroup: "Other", Role: model.Viewer}}}); err != nil {
		t.Fatal(err)
	}
	f := func(u model.User, groups string, want model.Role) {
		t.Helper()
		var list []string
		if groups != "" {
			list = strings.Split(groups, ",")
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if got := c.identity(&u, ViaSession, u.Role).OnHost(list); got != want {
			t.Errorf("%v on a host of %q: %v, want %v", u, groups, got, want)
		}
	}
	limited := model.User{Role: model.Editor, Groups: []string{"Web"}}
	f(limited, "Linux", model.Editor)
	f(limited, "Linux/Web/Old", model.Editor)
	f(limited, "Linux servers", model.NoRole)
	f(limited, "Other,Linux", model.Editor)
	f(limited, "Other", model.Viewer)
	f(limited, "", model.NoRole)
	f(model.User{Role: model.Operator, Groups: []string{"Web"}}, "Linux", model.Operator)
	f(model.User{Role: model.Viewer}, "Linux", model.NoRole)
	f(model.User{Role: model.Viewer, AllHosts: true}, "", model.Viewer)
	f(model.User{Role: model.Administrator}, "", model.Administrator)
	var nobody *Identity
	if nobody.SeesAllHosts() || nobody.OnHost([]string{"Linux"}) != model.NoRole || nobody.MostRole() != model.NoRole {
		t.Error("nobody may do something")
	}
}

func TestTokens(t *testing.T) {
	c, store, now := open(t)
	u := c.addUser(t, model.User{Name: "ada", Role: model.Operator, AllHosts: true})
	token := model.Token{Name: "script", User: u.ID, Role: model.Administrator, ExpiresAt: now.Now().Add(time.Hour).UnixNano()}
	text, err := c.NewToken(t.Context(), &token)
	if err != nil || !Whole(text) || Whole(text[:len(text)-1]) || !Whole("something else") {
		t.Fatal(text, err)
	}
	f := func(when string, want model.Role) {
		t.Helper()
		i, err := c.Identify(Credentials{Token: text})
		if i.MostRole() != want || (err == nil) != (want != model.NoRole) {
			t.Errorf("%s: %v %v, want %v", when, i.MostRole(), err, want)
		}
	}
	f("a token never does more than its user", model.Operator)
	if i := must(c.Identify(Credentials{Token: text})); c.ChangePassword(t.Context(), i, password, "another password", "") == nil {
		t.Error("a token changed its user's password")
	}
	c.flush(t.Context())
	if store.used != 1 || c.Tokens(u.ID)[0].UsedAt == 0 {
		t.Errorf("the last use is not stored: %d", store.used)
	}
	stream := c.Watch(t.Context(), must(c.Identify(Credentials{Token: text})))
	u.Role = model.Viewer
	if err := c.PutUser(t.Context(), &u, nil); err != nil {
		t.Fatal(err)
	}
	f("after its user's role was taken", model.Viewer)
	if stream.Err() == nil {
		t.Error("the stream goes on with the old role")
	}
	u.Disabled = true
	if err := c.PutUser(t.Context(), &u, nil); err != nil {
		t.Fatal(err)
	}
	f("of a disabled user", model.NoRole)
	u.Disabled = false
	if err := c.PutUser(t.Context(), &u, nil); err != nil {
		t.Fatal(err)
	}
	stream = c.Watch(t.Context(), must(c.Identify(Credentials{Token: text})))
	now.pass(time.Hour)
	f("after its time", model.NoRole)
	c.sweep()
	if stream.Err() == nil {
		t.Error("the stream of a token whose time is over goes on")
	}
	now.pass(-time.Hour)
	f("back in time", model.Viewer)
	if _, err := c.DeleteToken(t.Context(), token.ID, u.ID+1); !errors.Is(err, ErrNotFound) {
		t.Errorf("somebody else's token: %v", err)
	}
	if _, err := c.DeleteToken(t.Context(), token.ID, u.ID); err != nil {
		t.Fatal(err)
	}
	f("revoked", model.NoRole)
}

// TestLastAdministrator keeps one, because without one loopback would be administrator again.
func TestLastAdministrator(t *testing.T) {
	c, _, _ := open(t)
	u := c.addUser(t, model.User{Name: "ada", Role: model.Administrator})
	demoted, disabled := u, u
	demoted.Role, disabled.Disabled = model.Editor, true
	for _, err := range []error{c.PutUser(t.Context(), &demoted, nil), c.PutUser(t.Context(), &disabled, nil), c.DeleteUser(t.Context(), u.ID)} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("the last administrator went: %v", err)
		}
	}
	c.addUser(t, model.User{Name: "bob", Role: model.Administrator})
	if err := c.DeleteUser(t.Context(), u.ID); err != nil || !c.HasAdministrator() {
		t.Error(err)
	}
}

func TestDifference(t *testing.T) {
	type object map[string]any
	f := func(before, after any, was, is string) {
		t.Helper()
		if gotWas, gotIs := Difference(before, after); gotWas != was || gotIs != is {
			t.Errorf("%v → %v: %s, %s; want %s, %s", before, after, gotWas, gotIs, was, is)
		}
	}
	f(nil, object{"a": 1}, "", `{"a":1}`)
	f(object{"a": 1, "b": "x"}, object{"a": 1, "b": "y", "c": true}, `{"b":"x"}`, `{"b":"y","c":true}`)
	f(object{"in": object{"a": 1, "b": 2}}, object{"in": object{"a": 1, "b": 3}}, `{"in":{"b":2}}`, `{"in":{"b":3}}`)
	f(object{"password": "x", "n": 1}, object{"password": "y", "n": 2}, `{"n":1}`, `{"n":2}`)
	f(nil, object{"secrets": object{"TOKEN": "x"}, "psk": "00", "psk_identity": "me", "list": []any{object{"api_token": "x"}}}, "",
		`{"list":[{"api_token":"********"}],"psk":"********","psk_identity":"me","secrets":{"TOKEN":"********"}}`)
	f(nil, object{"headers": []any{object{"name": "Authorization", "value": "Bearer x"}, object{"name": "Accept", "value": "y"}}, "variables": []any{object{"name": "{api_token}", "value": "x"}}}, "",
		`{"headers":[{"name":"Authorization","value":"********"},{"name":"Accept","value":"y"}],"variables":[{"name":"{api_token}","value":"********"}]}`)
	f(object{"a": strings.Repeat("x", maxAuditJSON), "b": 1}, nil, `{"b":1,"left_out":["a"],"shortened":true}`, "")
	f([]any{strings.Repeat("x", maxAuditJSON)}, nil, `{"shortened":true}`, "")
	// One item of many: the others are not in the log.
	item := func(key string, delay int) object { return object{"key": key, "delay": delay, "name": "of " + key} }
	f(object{"items": []any{item("a", 1), item("b", 1), item("c", 1)}}, object{"items": []any{item("c", 1), item("a", 1), item("b", 2), item("d", 1)}},
		`{"items":[{"delay":1,"key":"b"}]}`, `{"items":[{"delay":2,"key":"b"},{"delay":1,"key":"d","name":"of d"}]}`)
	f(object{"items": []any{item("a", 1), item("a", 2)}}, object{"items": []any{item("a", 3)}},
		`{"items":[{"delay":1,"key":"a","name":"of a"},{"delay":2,"key":"a","name":"of a"}]}`, `{"items":[{"delay":3,"key":"a","name":"of a"}]}`)
	f(object{"steps": []any{object{"type": 1}, object{"type": 2}}}, object{"steps": []any{object{"type": 2}, object{"type": 1}}},
		`{"steps":[{"type":1},{"type":2}]}`, `{"steps":[{"type":2},{"type":1}]}`)
	f(object{"groups": []any{"a", "b"}}, object{"groups": []any{"a"}}, `{"groups":["a","b"]}`, `{"groups":["a"]}`)
	f(object{"macros": []any{object{"macro": "{$A}", "value": "1"}}}, object{"macros": []any{}}, `{"macros":[{"macro":"{$A}","value":"1"}]}`, `{"macros":[]}`)
}

func FuzzParseArgon(f *testing.F) {
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, hash string) {
		a, err := parseArgon(hash)
		if err == nil && (a.memory > maxArgonMemoryKiB || a.passes > maxArgonPasses || a.passes < 1 || a.lanes < 1 || len(a.key) < 16) {
			t.Errorf("hash %q costs %+v", hash, a)
		}
	})
}

func TestControl_readOnly(t *testing.T) {
	c, err := Open(t.Context(), Options{Store: &fakeStore{}, Token: "0123456789abcdef", ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if i, err := c.Identify(Credentials{Token: "0123456789abcdef"}); err != nil || i.MostRole() != model.Viewer || !i.SeesAllHosts() || !c.ReadOnly() {
		t.Errorf("the token of the file is %+v, %v", i, err)
	}
}

// TestChanges_several keeps all objects that a request changed, each with what it was and is, and of one that is named again what it was at first and is at last.
func TestChanges_several(t *testing.T) {
	ctx, changes := WithChanges(t.Context())
	Changed(ctx, "host a", map[string]int{"n": 1, "same": 5}, map[string]int{"n": 2, "same": 5})
	if e := changes.Entry("POST /x", "127.0.0.1"); e.Object != "host a" || e.Before != `{"n":1}` || e.After != `{"n":2}` {
		t.Errorf("one object: %+v", e)
	}
	Changed(ctx, "host b", nil, map[string]string{"password": "hunter2"})
	Changed(ctx, "host a", nil, map[string]int{"n": 3})
	if e := changes.Entry("POST /x", "127.0.0.1"); e.Object != "host a, host b" || e.Before != `{"host a":{"n":1}}` || e.After != `{"host a":{"n":3},"host b":{"password":"********"}}` {
		t.Errorf("two objects: %+v", e)
	}
	for name, x := range map[string]struct {
		steps         []any // before and after of each change
		before, after string
	}{
		"other members":  {[]any{map[string]any{"tags": 1}, map[string]any{"tags": 2}, map[string]any{"on": true}, map[string]any{"on": false}}, `{"on":true,"tags":1}`, `{"on":false,"tags":2}`},
		"made, changed":  {[]any{nil, map[string]any{"n": 1}, map[string]any{"n": 1}, map[string]any{"n": 2}}, "", `{"n":2}`},
		"changed, gone":  {[]any{map[string]any{"n": 1}, map[string]any{"n": 2}, map[string]any{"n": 2}, nil}, `{"n":1}`, ""},
		"a member comes": {[]any{map[string]any{"n": 1}, map[string]any{"n": 1, "m": 1}, map[string]any{"n": 1, "m": 1}, map[string]any{"n": 1, "m": 2}}, `{}`, `{"m":2}`},
		"a member goes":  {[]any{map[string]any{"n": 1, "m": 1}, map[string]any{"n": 2, "m": 1}, map[string]any{"n": 2, "m": 1}, map[string]any{"n": 3}}, `{"m":1,"n":1}`, `{"n":3}`},
		"lists":          {[]any{[]int{1}, []int{2}, []int{2}, []int{3}}, `[1]`, `[3]`},
	} {
		ctx, again := WithChanges(t.Context())
		Changed(ctx, "host", x.steps[0], x.steps[1])
		Changed(ctx, "host", x.steps[2], x.steps[3])
		if e := again.Entry("POST /x", ""); e.Object != "host" || e.Before != x.before || e.After != x.after {
			t.Errorf("%s: %+v", name, e)
		}
	}
	_, nothing := WithChanges(t.Context())
	if e := nothing.Entry("POST /x", ""); e.Object != "" || e.Before != "" || e.After != "" {
		t.Errorf("nothing: %+v", e)
	}
}
