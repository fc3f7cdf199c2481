package access

import (
	"context"
	"slices"
	"strings"

	"tidemark/model"
)

// Identity is who sent a request and what they may do. It does not change: what changes a user makes new ones. Methods of a nil Identity
// answer for nobody.
type Identity struct {
	// User is zero for those who are no user: loopback before the first administrator, the token of the token file, the command line.
	User model.UserID
	Name string
	// Via says how they came in.
	Via Via
	// TokenName is the token's, for ViaToken.
	TokenName string
	// Role is what may be done at most; on all hosts with AllHosts, else as Grants say.
	Role     model.Role
	AllHosts bool
	Grants   []model.Grant
	// Groups are the names of the user's groups.
	Groups []string

	hash [32]byte // of the session or token
}

// Via is how somebody came in.
type Via string

// The ways.
const (
	ViaSession     Via = "session"
	ViaToken       Via = "token"
	ViaLoopback    Via = "loopback"
	ViaTokenFile   Via = "token file"
	ViaCommandLine Via = "command line"
)

// Everything is the identity of those who need no user.
func Everything(via Via) *Identity {
	return &Identity{Name: string(via), Via: via, Role: model.Administrator, AllHosts: true}
}

// everything is the identity of those who need no user here.
func (c *Control) everything(via Via) *Identity {
	i := Everything(via)
	if c.o.ReadOnly {
		i.Role = model.Viewer
	}
	return i
}

// ReadOnly reports whether nobody is administrator without being a user.
func (c *Control) ReadOnly() bool { return c.o.ReadOnly }

// SeesAllHosts reports whether no host is hidden.
func (i *Identity) SeesAllHosts() bool {
	return i != nil && i.Role >= model.Viewer && (i.AllHosts || i.Role == model.Administrator)
}

// MostRole returns what may be done at most, on whatever host.
func (i *Identity) MostRole() model.Role {
	if i == nil {
		return model.NoRole
	}
	return i.Role
}

// OnHost returns what may be done with a host in these host groups.
func (i *Identity) OnHost(hostGroups []string) model.Role {
	if i == nil {
		return model.NoRole
	}
	if i.SeesAllHosts() {
		return i.Role
	}
	best := model.NoRole
	for _, g := range i.Grants {
		if g.Role > best && slices.ContainsFunc(hostGroups, func(name string) bool { return covers(g.HostGroup, name) }) {
			best = g.Role
		}
	}
	return min(best, i.Role)
}

// covers reports whether a grant on one host group is for another: the same, or one below it.
func covers(granted, name string) bool {
	below, ok := strings.CutPrefix(name, granted)
	return ok && (below == "" || below[0] == '/')
}

// equal reports whether two identities may do the same as the same.
func (i *Identity) equal(other *Identity) bool {
	return i.User == other.User && i.Name == other.Name && i.Role == other.Role && i.AllHosts == other.AllHosts && slices.Equal(i.Grants, other.Grants) && slices.Equal(i.Groups, other.Groups)
}

// identity makes that of a user; role bounds what a token may do. c.mu is held.
func (c *Control) identity(u *model.User, via Via, role model.Role) *Identity {
	i := &Identity{User: u.ID, Name: u.Name, Via: via, Role: min(u.Role, role), AllHosts: u.AllHosts, Groups: u.Groups}
	if !i.SeesAllHosts() {
		for _, name := range u.Groups {
			if g := c.groups[strings.ToLower(name)]; g != nil {
				i.Grants = append(i.Grants, g.Grants...)
			}
		}
	}
	return i
}

type identityKey struct{}

// With returns a context that carries who sent the request.
func With(ctx context.Context, i *Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, i)
}

// From returns who sent the request; nil for nobody.
func From(ctx context.Context) *Identity {
	i, _ := ctx.Value(identityKey{}).(*Identity)
	return i
}

// Credentials are what a request was sent with.
type Credentials struct {
	// Session is the text of a cookie, Token that of a token.
	Session, Token string
	// Loopback says that the request came from this machine itself and through no proxy.
	Loopback bool
}

// Identify returns who sends these credentials; what lets nobody in is ErrUnknown.
func (c *Control) Identify(sent Credentials) (*Identity, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case sent.Token != "":
		return c.byToken(sent.Token)
	case sent.Session != "":
		i, err := c.bySession(sent.Session)
		if err == nil || !c.open() || !sent.Loopback {
			return i, err
		}
	}
	if sent.Loopback && c.open() {
		return c.everything(ViaLoopback), nil
	}
	return nil, ErrUnknown
}

func (c *Control) open() bool { return c.o.Token == "" && c.administrators(0) == 0 }

// bySession finds a session and notes its use. c.mu is held.
func (c *Control) bySession(text string) (*Identity, error) {
	hash := hashOf(text)
	s, now := c.sessions[hash], c.o.Now()
	if s == nil || !sessionLives(s, now) {
		return nil, ErrUnknown
	}
	u := c.users[s.User]
	if u == nil || u.Disabled {
		return nil, ErrUnknown
	}
	s.UsedAt = now.UnixNano()
	c.touched[hash] = true
	i := c.identity(u, ViaSession, u.Role)
	i.hash = hash
	return i, nil
}

// byToken finds a token and notes its use. c.mu is held.
func (c *Control) byToken(text string) (*Identity, error) {
	hash := hashOf(text)
	// Looking for a hash gives nothing away by its time: who cannot invert it cannot come nearer to one.
	if c.o.Token != "" && hash == c.token {
		return c.everything(ViaTokenFile), nil
	}
	t, now := c.tokens[hash], c.o.Now()
	if t == nil || t.ExpiresAt != 0 && now.UnixNano() >= t.ExpiresAt {
		return nil, ErrUnknown
	}
	u := c.users[t.User]
	if u == nil || u.Disabled {
		return nil, ErrUnknown
	}
	t.UsedAt = now.UnixNano()
	c.touched[hash] = true
	i := c.identity(u, ViaToken, t.Role)
	i.TokenName, i.hash = t.Name, hash
	return i, nil
}

// stream is an answer that goes on for as long as its caller listens.
type stream struct {
	identity *Identity
	end      context.CancelFunc
}

// Watch returns a context that ends as soon as somebody is signed out, or may do other things than they could. A stream that is one too
// many ends at once.
func (c *Control) Watch(ctx context.Context, i *Identity) context.Context {
	watched, end := context.WithCancel(ctx)
	s := &stream{identity: i, end: end}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams) >= maxStreams {
		end()
		return watched
	}
	c.streams[s] = struct{}{}
	// The request's context ends with the request, so nothing stays behind.
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.streams, s)
		end()
	})
	return watched
}

// endStreams ends those whose identity is another now. c.mu is held.
func (c *Control) endStreams() {
	for s := range c.streams {
		if now := c.again(s.identity); now == nil || !now.equal(s.identity) {
			s.end()
			delete(c.streams, s)
		}
	}
}

// again looks for an identity as it is now; nil when it is gone. A stream that is listened to keeps its session alive.
func (c *Control) again(i *Identity) *Identity {
	now := c.o.Now()
	switch i.Via {
	case ViaLoopback:
		if !c.open() {
			return nil
		}
	case ViaSession:
		s := c.sessions[i.hash]
		if s == nil || !sessionLives(s, now) || c.users[s.User] == nil || c.users[s.User].Disabled {
			return nil
		}
		return c.identity(c.users[s.User], ViaSession, c.users[s.User].Role)
	case ViaToken:
		t := c.tokens[i.hash]
		if t == nil || t.ExpiresAt != 0 && now.UnixNano() >= t.ExpiresAt || c.users[t.User] == nil || c.users[t.User].Disabled {
			return nil
		}
		return c.identity(c.users[t.User], ViaToken, t.Role)
	}
	return i
}

// StreamCount returns how many streams are watched.
func (c *Control) StreamCount() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.streams)
}
