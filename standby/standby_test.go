package standby

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"tidemark/api"
	"tidemark/catalog"
	"tidemark/confdb"
	"tidemark/model"
	"tidemark/snapshot"
)

// TestNode goes through the life of two servers: each step is there after a restart.
func TestNode(t *testing.T) {
	dir := t.TempDir()
	n, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	step := func(what string, err error, role Role, epoch uint64, refusal error) {
		t.Helper()
		again, openErr := Open(dir)
		if openErr != nil || err != nil {
			t.Fatalf("%s: %v, %v", what, err, openErr)
		}
		if s := again.State(); s.Role != role || generation(s.Epoch) != epoch || s.Node == "" || !errors.Is(again.Refusal(), refusal) || !reflect.DeepEqual(s, n.State()) {
			t.Errorf("%s: %+v, refusal %v; expected %s with epoch %d, refusal %v", what, s, again.Refusal(), role, epoch, refusal)
		}
	}
	step("new", nil, Primary, 1, nil)
	step("a lower epoch", n.Fence(1, "https://a:1"), Primary, 1, nil)
	step("standbys", errors.Join(n.AddStandby("a"), n.AddStandby("b"), n.AddStandby("a"), n.AddStandby("")), Primary, 1, nil)
	if got := n.State().Standbys; !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("the standbys are %q", got)
	}
	step("fenced", n.Fence(5, ""), Fenced, 1, ErrFenced)
	step("an address that is none", n.Fence(5, "https://a\nb"), Fenced, 1, ErrFenced)
	if err := n.Refusal(); err.Error() != ErrFenced.Error() {
		t.Error(err)
	}
	step("fenced by one at an address", n.Fence(5, "https://a:1"), Fenced, 1, ErrFenced)
	step("no address is no news", n.Fence(5, ""), Fenced, 1, ErrFenced)
	if err := n.Refusal(); !strings.HasSuffix(err.Error(), "; the new primary is https://a:1") {
		t.Error(err)
	}
	_, err = n.Promote(false, 0, nil)
	step("promoted by hand", err, Primary, 6, nil)
	if s := n.State(); s.Translate || s.Unfenced {
		t.Errorf("%+v", s)
	}
	step("followed", n.change(func(s *State) { s.Role, s.Primary, s.Seed, s.FollowedEpoch = Standby, "a", 77, s.Epoch }), Standby, 6, ErrStandby)
	epoch, err := n.Promote(true, 0, nil)
	step("promoted", err, Primary, 7, nil)
	if s := n.State(); generation(epoch) != 7 || !s.Translate || !s.Unfenced || generation(s.FollowedEpoch) != 6 {
		t.Errorf("epoch %d, %+v", epoch, s)
	}
	step("told", n.Told("a"), Primary, 7, nil)
	own := model.LSN(41)
	step("followed again", n.change(func(s *State) { s.Role = Standby }), Standby, 7, ErrStandby)
	_, err = n.Promote(false, 0, &own)
	step("promoted where it was evaluated", err, Primary, 8, nil)
	if s := n.State(); s.Translate || s.Evaluated == nil || *s.Evaluated != own {
		t.Errorf("%+v", s)
	}
}

func TestLoad_refuses(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "{", "no cluster": `{"epoch":1,"role":"primary"}`, "no epoch": `{"cluster":"0123456789abcdef0123456789abcdef","role":"primary"}`,
		"another role": `{"cluster":"0123456789abcdef0123456789abcdef","epoch":1,"role":"boss"}`, "too long": strings.Repeat(" ", maxStateBytes+1),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, found, err := Load(dir); err == nil || found || !strings.Contains(err.Error(), FileName) {
			t.Errorf("%s: found %v, %v", name, found, err)
		}
	}
}

// TestFinishSeed interrupts the exchange of old data for new at each of its steps.
func TestFinishSeed(t *testing.T) {
	files := []string{"engine/new", "catalog/new", confdb.FileName, confdb.SecretFileName}
	for done := range len(seeded) + 1 {
		dir := t.TempDir()
		put := func(name, text string) {
			t.Helper()
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"engine/old", "catalog/old", confdb.FileName, confdb.FileName + "-wal", confdb.SecretFileName, "snapshots/one/file", "spool/kept"} {
			put(name, "old")
		}
		for _, name := range files {
			put("seed/"+name, "new")
		}
		state, _ := json.Marshal(State{Cluster: "0123456789abcdef0123456789abcdef", Epoch: 3, Role: Standby, Seed: 9})
		put("seed/"+readyName, string(state))
		for _, name := range seeded[:done] { // what an interrupted one did
			if err := errors.Join(os.RemoveAll(filepath.Join(dir, name)), os.Rename(filepath.Join(dir, "seed", name), filepath.Join(dir, name))); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := FinishSeed(dir); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range files {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != "new" {
				t.Errorf("after %d steps %s is %q, %v", done, name, text, err)
			}
		}
		for _, name := range []string{"engine/old", "catalog/old", "seed", "snapshots"} {
			if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after %d steps there is %s: %v", done, name, err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "spool/kept")); err != nil {
			t.Error(err)
		}
		if s, found, err := Load(dir); err != nil || !found || s.Role != Standby || s.Seed != 9 {
			t.Errorf("%+v %v %v", s, found, err)
		}
	}
}

// TestFinishSeed_damaged leaves the old data alone when the seed does not say what it is.
func TestFinishSeed_damaged(t *testing.T) {
	for _, text := range []string{"", "{", `{"role":"standby"}`, "null"} {
		dir := t.TempDir()
		for name, text := range map[string]string{"engine/old": "old", "seed/engine/new": "new", "seed/" + readyName: text} {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if err := FinishSeed(dir); err == nil || !strings.Contains(err.Error(), readyName) {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "engine/old")); err != nil {
			t.Errorf("%q: the old data are gone: %v", text, err)
		}
	}
}

func TestParsePosition(t *testing.T) {
	f := func(text string, want bool) {
		t.Helper()
		if _, _, ok := parsePosition(text); ok != want {
			t.Errorf("%q is taken: %v", text, ok)
		}
	}
	f(positionMark(7, 1<<60, 0).Value, true)
	if epoch, lsn, _ := parsePosition("7 99"); epoch != 7 || lsn != 99 {
		t.Errorf("%d %d", epoch, lsn)
	}
	for _, text := range []string{"", "7", "7 ", " 7", "7 x", "7 8 9", "-1 2"} {
		f(text, false)
	}
}

// FuzzAnswer reads answers that no primary sent, and gives back those that one did.
func FuzzAnswer(f *testing.F) {
	var b bytes.Buffer
	a := &LogAnswer{LogHeader: LogHeader{Cluster: "c", Epoch: 2, From: 3, Catalog: catalog.Position{Number: 1, Offset: 32}}, Log: []byte("log"), CatalogRecords: []byte("records")}
	if err := a.write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()-1])
	f.Add([]byte{255, 255, 255, 255})
	f.Add([]byte("\x10\x00\x00\x00{\"log_bytes\":-1}"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		got, err := readLogAnswer(bytes.NewReader(sent))
		if err != nil {
			if !errors.Is(err, ErrAnswer) {
				t.Errorf("%v", err)
			}
			return
		}
		var again bytes.Buffer
		if err := got.write(&again); err != nil {
			t.Fatal(err)
		}
		back, err := readLogAnswer(&again)
		if err != nil || !reflect.DeepEqual(back, got) {
			t.Errorf("%+v became %+v, %v", got, back, err)
		}
	})
}

// TestSource_HandOver hands over to one standby only, which may ask again; after a restart too.
func TestSource_HandOver(t *testing.T) {
	dir := t.TempDir()
	ask := func(epoch uint64, standby, code string) {
		t.Helper()
		n, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := &Source{o: SourceOptions{Node: n, Fenced: func() {}, Logger: slog.New(slog.DiscardHandler)}}
		err = s.HandOver(EpochRequest{Epoch: epoch, Standby: standby})
		refused, _ := errors.AsType[*api.Error](err)
		if (code == "") != (err == nil) || err != nil && (refused == nil || refused.Code != code) {
			t.Errorf("epoch %d for %q: %v, expected %q", epoch, standby, err, code)
		}
	}
	second := nextEpoch(1)
	ask(nextEpoch(second), "a", "epoch")
	ask(1, "a", "epoch")
	ask(second, "a", "")
	ask(second, "a", "")
	ask(second+1, "b", "fenced")
	ask(second, "", "fenced")
	ask(second-1, "a", "") // it begins its promotion anew
	if n, err := Open(dir); err != nil || n.State().FencedBy != second-1 || n.State().Role != Fenced {
		t.Errorf("%+v, %v", n.State(), err)
	}
}

// TestNode_epochs refuses an epoch that has no next one.
func TestNode_epochs(t *testing.T) {
	n, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Fence(math.MaxUint64, ""); err == nil || n.State().FencedBy != 0 {
		t.Errorf("%v, %+v", err, n.State())
	}
}

// TestSeeding_file refuses a file that is longer than the primary said, without writing it to its end, which may never come.
func TestSeeding_file(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for part := make([]byte, 64<<10); ; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	client := &Client{Address: server.URL, HTTP: server.Client()}
	s := seeding{o: SeedOptions{Data: t.TempDir(), Client: client}, remote: &remoteSnapshot{client: client, name: "s"}}
	name := filepath.Join(t.TempDir(), "config.db")
	err := s.file(t.Context(), &snapshot.File{Path: "config.db", Bytes: 10}, name)
	if info, statErr := os.Stat(name); err == nil || statErr != nil || info.Size() != 11 {
		t.Errorf("%v, %v, %v", err, statErr, info)
	}
}

// TestNode_twoPromoted: two standbys of one primary are promoted while neither knows of the other. Whoever meets whom, the same one is fenced.
func TestNode_twoPromoted(t *testing.T) {
	nodes := [2]*Node{}
	for i := range nodes {
		n, err := Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		address := string(rune('a' + i))
		err = n.change(func(s *State) { s.Cluster, s.Role, s.Primary, s.Epoch = strings.Repeat("0", 32), Standby, "p", 1 })
		if err := errors.Join(err, n.SetPeers([]string{"other than " + address})); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Promote(true, 0, nil); err != nil {
			t.Fatal(err)
		}
		if s := n.State(); generation(s.Epoch) != 2 || len(s.Untold) != 1 || !s.Unfenced || len(s.Peers) != 0 {
			t.Errorf("%+v", s)
		}
		nodes[i] = n
	}
	one, two := nodes[0].State().Epoch, nodes[1].State().Epoch
	if one == two || nodes[0].State().Node == nodes[1].State().Node {
		t.Fatalf("both have epoch %s, ids %s and %s", EpochText(one), nodes[0].State().Node, nodes[1].State().Node)
	}
	if err := errors.Join(nodes[0].Fence(two, ""), nodes[1].Fence(one, "")); err != nil {
		t.Fatal(err)
	}
	for i, own := range []uint64{one, two} {
		if fenced := nodes[i].State().Role == Fenced; fenced != (own == min(one, two)) {
			t.Errorf("epochs %s and %s: %d is fenced: %v", EpochText(one), EpochText(two), i, fenced)
		}
	}
}

// TestEpoch: each next epoch is higher, of old numbers too, and people see which promotion it is.
func TestEpoch(t *testing.T) {
	for _, first := range []uint64{1, 2, 77, 1 << 20} {
		epoch := first
		for i := range uint64(50) {
			next := nextEpoch(epoch)
			if next <= epoch || generation(next) != first+i+1 || !strings.HasPrefix(EpochText(next), strconv.FormatUint(first+i+1, 10)+"-") {
				t.Fatalf("behind %d comes %d, generation %d, %s", epoch, next, generation(next), EpochText(next))
			}
			epoch = next
		}
	}
	if EpochText(7) != "7" {
		t.Error(EpochText(7))
	}
}

// TestSeeding_compares refuses a file that came otherwise than the manifest says, by its sum or by its end.
func TestSeeding_compares(t *testing.T) {
	const content = "what the primary sends"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(content)) }))
	defer server.Close()
	client := &Client{Address: server.URL, HTTP: server.Client()}
	sum := sha256.Sum256([]byte(content))
	whole := filepath.Join(t.TempDir(), "whole")
	if err := os.WriteFile(whole, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	tail, err := snapshot.TailOfFile(whole, int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file    snapshot.File
		refused bool
	}{
		"the sum": {snapshot.File{SHA256: hex.EncodeToString(sum[:])}, false}, "another sum": {snapshot.File{SHA256: strings.Repeat("0", 64)}, true},
		"the end": {snapshot.File{Tail: tail}, false}, "another end": {snapshot.File{Tail: "0" + tail[1:] + "x"}, true},
	} {
		c.file.Path, c.file.Bytes = "config.db", int64(len(content))
		s := seeding{o: SeedOptions{Data: t.TempDir(), Client: client}, remote: &remoteSnapshot{client: client, name: "s"}}
		if err := s.file(t.Context(), &c.file, filepath.Join(t.TempDir(), "config.db")); errors.Is(err, snapshot.ErrDamaged) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
