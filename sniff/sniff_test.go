package sniff

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidemark/sniff/capture"
)

// truth is what the drivers' own command events say of a capture.
type truth struct {
	Summary map[string]struct {
		N                      uint64 `json:"n"`
		CommandFailed          uint64 `json:"commandFailed"`
		RepliesWithWriteErrors uint64 `json:"repliesWithWriteErrors"`
	} `json:"summary"`
	ServerCounted map[string]uint64 `json:"serverCounted"`
}

// want turns the ground truth into "namespace command": [requests, errors].
func (tr truth) want() map[string][2]uint64 {
	out := map[string][2]uint64{}
	for key, v := range tr.Summary {
		namespace, command, _ := strings.Cut(key, " ")
		out[strings.TrimSuffix(namespace, ".")+" "+command] = [2]uint64{v.N, v.CommandFailed + v.RepliesWithWriteErrors}
	}
	names := map[string]string{"OP_INSERT": "insert", "OP_UPDATE": "update", "OP_DELETE": "delete", "OP_QUERY": "find", "OP_GET_MORE": "getMore", "OP_KILL_CURSORS": "killCursors"}
	for key, n := range tr.ServerCounted {
		f := strings.Fields(key)
		namespace, command := "", names[f[0]]
		if len(f) > 1 {
			namespace = f[1]
		}
		if len(f) > 2 {
			namespace, command = strings.TrimSuffix(namespace, ".$cmd"), f[2]
		}
		switch command {
		case "ismaster":
			continue
		case "count":
			// The fake server did not look into the command; the one count was on items.
			namespace = "old.items"
		}
		errors := uint64(0)
		if namespace == "old.bad" {
			errors = 1
		}
		out[namespace+" "+command] = [2]uint64{n, errors}
	}
	return out
}

func report(t testing.TB, path string, ports ...uint16) Report {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	source, err := capture.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	s, err := New(Options{Ports: ports})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ReadAll(source); err != nil {
		t.Fatal(err)
	}
	return s.Report()
}

// TestGroundTruth compares every capture with what the drivers say they did.
func TestGroundTruth(t *testing.T) {
	captures, err := filepath.Glob("testdata/*.pcap")
	if err != nil || len(captures) < 10 {
		t.Fatalf("captures: %v %v", captures, err)
	}
	for _, path := range captures {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(strings.TrimSuffix(path, ".pcap") + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var tr truth
			if err := json.Unmarshal(text, &tr); err != nil {
				t.Fatal(err)
			}
			r := report(t, path)
			got := map[string][2]uint64{}
			for _, c := range r.Commands {
				got[c.Namespace+" "+c.Command] = [2]uint64{c.Requests, c.Errors}
			}
			want := tr.want()
			for k, w := range want {
				if got[k] != w {
					t.Errorf("%s: requests and errors %v, want %v", k, got[k], w)
				}
			}
			for k, g := range got {
				if _, ok := want[k]; !ok {
					t.Errorf("%s: %v, the driver knows nothing of it", k, g)
				}
			}
			if len(r.Malformed) > 0 {
				t.Errorf("malformed: %v", r.Malformed)
			}
			if again := fmt.Sprint(report(t, path)); again != fmt.Sprint(r) {
				t.Error("a second run gives another report")
			}
		})
	}
}

// TestReport_prints shows what a person gets, so that a change of the normal form is seen in review.
func TestReport_prints(t *testing.T) {
	var out strings.Builder
	for _, name := range []string{"crud_go", "node_mixed", "bulk_go", "cursor_go", "legacy_opcodes_mgo"} {
		fmt.Fprintf(&out, "-- %s\n", name)
		var lines []string
		for _, s := range report(t, "testdata/"+name+".pcap").Shapes {
			lines = append(lines, fmt.Sprintf("%s %d %d %s  %s\n", s.Fingerprint, s.Requests, s.Errors, s.Namespace, s.Shape))
		}
		slices.Sort(lines)
		out.WriteString(strings.Join(lines, ""))
	}
	const golden = "testdata/shapes.txt"
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("shapes differ from %s; look at the change, then REWRITE=1 go test ./sniff\n%s", golden, out.String())
	}
}
