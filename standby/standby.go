// Package standby keeps a second server's data equal to the first one's, over HTTP, so that it can take over.
//
//	primary  Source   ◀── POST log {epoch, position} ──── Follower ─▶ engine, catalog      standby
//	                  ◀── GET configuration ─────────────          ─▶ configuration database
//
// Seed makes the standby's folder of a snapshot of the primary's. Node is what a server knows of itself: its cluster, its epoch and whether it may take
// values; the file is replaced and synced before anything is done that it decides. docs/design/0044-standby.md has the reasons.
package standby

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"tidemark/api"
	"tidemark/model"
)

// FileName is the file in the data folder that says what a server is.
const FileName = "replication.json"

// Role is what a server is.
type Role string

// The roles.
const (
	Primary Role = "primary"
	Standby Role = "standby"
	// Fenced is a primary that knows of another one with a higher epoch.
	Fenced Role = "fenced"
)

// State is what the file says.
type State struct {
	// Cluster is the same for all servers that come from one another by seeding.
	Cluster string `json:"cluster"`
	// Node is this server's own id, random; a seed does not replace it.
	Node string `json:"node,omitempty"`
	// Epoch is raised by each promotion. A standby has its primary's.
	Epoch uint64 `json:"epoch"`
	Role  Role   `json:"role"`
	// FencedBy is the epoch that fenced this server.
	FencedBy uint64 `json:"fenced_by,omitempty"`
	// FencedFor is the standby that this server handed over to; empty when it learned of the epoch in another way.
	FencedFor string `json:"fenced_for,omitempty"`
	// FencedAt is the address of the server with the epoch FencedBy; empty while it is not known.
	FencedAt string `json:"fenced_at,omitempty"`
	// Seed is the primary's LSN that a standby's data began with; FollowedEpoch the epoch that this and its marks are of.
	Seed          model.LSN `json:"seed_lsn,omitempty"`
	FollowedEpoch uint64    `json:"followed_epoch,omitempty"`
	// Translate says, after a promotion, that the configuration still has the old primary's evaluated LSN; Evaluated, if not nil, is this server's own
	// that shall be there instead.
	Translate bool       `json:"translate,omitempty"`
	Evaluated *model.LSN `json:"evaluated_lsn,omitempty"`
	// Primary is the address of the server that is, or was, followed; Unfenced that it must still be told of the promotion.
	Primary  string `json:"primary,omitempty"`
	Unfenced bool   `json:"primary_unfenced,omitempty"`
	// Standbys are the addresses of those that followed, the last one first.
	Standbys []string `json:"standbys,omitempty"`
	// Peers are the addresses of the other standbys of the primary that is followed; Untold those that must still be told of the promotion.
	Peers  []string `json:"peers,omitempty"`
	Untold []string `json:"peers_untold,omitempty"`
}

const (
	// maxStateBytes bounds the file.
	maxStateBytes = 64 << 10
	// maxStandbys bounds the addresses that are remembered.
	maxStandbys = 8
)

var (
	// ErrFenced says that another server took over.
	ErrFenced = errors.New("another server was promoted in this one's place: values and changes are refused here; send to the new primary, and start this server with --standby-of its address")
	// ErrStandby says that a server follows another one.
	ErrStandby = errors.New("this server is a standby: send to its primary, or promote it with tidemark store promote")
)

// check reports a state that cannot be.
func (s *State) check() error {
	if len(s.Cluster) != 32 || s.Epoch == 0 || s.Epoch > maxEpoch || !slices.Contains([]Role{Primary, Standby, Fenced}, s.Role) {
		return fmt.Errorf("cluster %.40q, epoch %d, role %.20q; expected 32 digits, an epoch from 1 on, and primary, standby or fenced", s.Cluster, s.Epoch, s.Role)
	}
	return nil
}

// Load reads the file in a data folder; without one found is false.
func Load(data string) (s State, found bool, err error) {
	name := filepath.Join(data, FileName)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxStateBytes+1))
	if err == nil && len(b) > maxStateBytes {
		err = fmt.Errorf("more than %d bytes", maxStateBytes)
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return s, false, fmt.Errorf("%s: %w; without the file the server begins as the primary of a new cluster", name, err)
	}
	return s, true, nil
}

// save replaces the file.
func (s *State) save(data string) error {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(data, FileName), append(b, '\n')); err != nil {
		return fmt.Errorf("write down what this server is: %w", err)
	}
	return nil
}

// replaceFile writes a file under another name, syncs it and gives it its name.
func replaceFile(name string, b []byte) error {
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Node is the state of an open server. Its methods may be called from several goroutines.
type Node struct {
	data string

	mu    sync.Mutex
	state State
}

// Open reads what the server of a data folder is; a new one is the primary of a cluster of its own.
func Open(data string) (*Node, error) {
	s, found, err := Load(data)
	if err != nil {
		return nil, err
	}
	n := &Node{data: data, state: s}
	switch {
	case found && s.Node != "":
		return n, nil
	case found:
		return n, n.change(func(s *State) { s.Node = randomID(8) })
	}
	return n, n.change(func(s *State) { *s = State{Cluster: randomID(16), Node: randomID(8), Epoch: 1, Role: Primary} })
}

// randomID returns random bytes in hexadecimal digits.
func randomID(size int) string {
	id := make([]byte, size)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// State returns what the server is.
func (n *Node) State() State {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state.clone()
}

// clone shares nothing with the state.
func (s *State) clone() State {
	c := *s
	c.Standbys, c.Peers, c.Untold = slices.Clone(s.Standbys), slices.Clone(s.Peers), slices.Clone(s.Untold)
	return c
}

// change changes the state on the disk, then in memory.
func (n *Node) change(f func(*State)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := n.state.clone()
	f(&next)
	if err := next.save(n.data); err != nil {
		return err
	}
	n.state = next
	return nil
}

// Refusal says why the server must not take values and changes; nil when it may.
func (n *Node) Refusal() error {
	switch n.State().Role {
	case Standby:
		return ErrStandby
	case Fenced:
		if at := n.State().FencedAt; at != "" {
			return fmt.Errorf("%w; the new primary is %s", ErrFenced, at)
		}
		return ErrFenced
	}
	return nil
}

// cleanAddress returns an address that people can be shown; one that cannot be is empty.
func cleanAddress(address string) string {
	if len(address) > maxAddressBytes || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return address
}

// maxEpoch bounds epochs, so that the next one is always higher.
const maxEpoch = 1 << 61

// Fence notes that another server has a higher epoch, and its address, which may be empty. It does nothing when that is not so, or known.
func (n *Node) Fence(epoch uint64, at string) error {
	if epoch > maxEpoch {
		return &api.Error{Status: http.StatusBadRequest, Code: "epoch", Message: fmt.Sprintf("the epoch %d cannot be; expected at most %d", epoch, uint64(maxEpoch))}
	}
	at = cleanAddress(at)
	if s := n.State(); epoch <= s.Epoch || epoch < s.FencedBy || epoch == s.FencedBy && (at == "" || at == s.FencedAt) {
		return nil
	}
	return n.change(func(s *State) {
		if s.Role == Primary {
			s.Role = Fenced
		}
		if epoch > s.FencedBy {
			s.FencedBy, s.FencedFor = epoch, ""
		}
		s.FencedAt = at
	})
}

// NextEpoch returns an epoch to promote this server with.
func (n *Node) NextEpoch() uint64 {
	s := n.State()
	return nextEpoch(max(s.Epoch, s.FencedBy))
}

// handOver notes that this server was fenced for a standby, which may ask again with another epoch.
func (n *Node) handOver(epoch uint64, standby, at string) error {
	at = cleanAddress(at)
	return n.change(func(s *State) { s.Role, s.FencedBy, s.FencedFor, s.FencedAt = Fenced, epoch, standby, at })
}

// Superseded says which epoch a standby knows that another one was promoted with, zero for none, and the address of that one if it is known.
func (n *Node) Superseded() (epoch uint64, at string) {
	if s := n.State(); s.Role == Standby && s.FencedBy > s.Epoch {
		return s.FencedBy, s.FencedAt
	}
	return 0, ""
}

// Promote makes a standby, or a fenced server, the primary with an epoch of NextEpoch; zero takes one. unfenced says that the old primary is yet to be told.
// evaluated is this server's own evaluated LSN that shall be in the configuration in place of the old primary's; nil leaves it to be found.
func (n *Node) Promote(unfenced bool, with uint64, evaluated *model.LSN) (epoch uint64, err error) {
	err = n.change(func(s *State) {
		if s.Role == Standby {
			s.FollowedEpoch, s.Translate, s.Evaluated = s.Epoch, evaluated == nil, evaluated
		}
		if with <= s.Epoch || with < s.FencedBy {
			with = nextEpoch(max(s.Epoch, s.FencedBy))
		}
		s.Epoch = with
		s.Role, s.FencedBy, s.FencedFor, s.FencedAt, s.Unfenced, s.Standbys = Primary, 0, "", "", unfenced && s.Primary != "", nil
		s.Untold, s.Peers = s.Peers, nil
		epoch = s.Epoch
	})
	return epoch, err
}

// Told notes that the server at an address knows of the promotion.
func (n *Node) Told(address string) error {
	return n.change(func(s *State) {
		s.Unfenced = s.Unfenced && address != s.Primary
		s.Untold = slices.DeleteFunc(s.Untold, func(a string) bool { return a == address })
	})
}

// SetPeers notes the addresses of the primary's other standbys.
func (n *Node) SetPeers(addresses []string) error {
	addresses = addresses[:min(len(addresses), maxStandbys)]
	if s := n.State(); s.Role != Standby || slices.Equal(s.Peers, addresses) {
		return nil
	}
	return n.change(func(s *State) { s.Peers = slices.Clone(addresses) })
}

// Translated notes this server's own evaluated LSN, and with nil that the configuration has it.
func (n *Node) Translated(lsn *model.LSN) error {
	return n.change(func(s *State) { s.Translate, s.Evaluated = false, lsn })
}

// AddStandby remembers the address of a standby, to be asked at the next start whether it took over.
func (n *Node) AddStandby(address string) error {
	s := n.State()
	if address == "" || len(s.Standbys) > 0 && s.Standbys[0] == address {
		return nil
	}
	return n.change(func(s *State) {
		s.Standbys = slices.DeleteFunc(s.Standbys, func(a string) bool { return a == address })
		s.Standbys = append([]string{address}, s.Standbys...)
		s.Standbys = s.Standbys[:min(len(s.Standbys), maxStandbys)]
	})
}
