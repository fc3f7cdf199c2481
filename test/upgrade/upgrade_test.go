package upgrade

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// content is what a folder holds: every value of every configured item by host and key, and the problems.
type content struct {
	Values   map[string][]string `json:"values"`
	Problems []string            `json:"problems"`
}

// TestUpgrade opens each data folder in testdata, written by the version in its name, and compares what the server shows with what it
// showed then. To add a version: WRITE=NAME go test ./test/upgrade.
func TestUpgrade(t *testing.T) {
	if name := os.Getenv("WRITE"); name != "" {
		write(t, name)
	}
	folders, err := filepath.Glob("testdata/*.tar.gz")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no folders in testdata: %v", err)
	}
	for _, f := range folders {
		t.Run(filepath.Base(f), func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, f, dir)
			s := start(t, filepath.Join(dir, "data"))
			text, err := os.ReadFile(strings.TrimSuffix(f, ".tar.gz") + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var want content
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			compare(t, s.content(), want)
		})
	}
}

func compare(t *testing.T, got, want content) {
	t.Helper()
	for name, values := range want.Values {
		if strings.Join(got.Values[name], " ") != strings.Join(values, " ") {
			t.Errorf("%s: %d values, want the same %d\n got %.300v\nwant %.300v", name, len(got.Values[name]), len(values), got.Values[name], values)
		}
	}
	if strings.Join(got.Problems, "\n") != strings.Join(want.Problems, "\n") {
		t.Errorf("problems %q, want %q", got.Problems, want.Problems)
	}
	if len(want.Values) == 0 || len(want.Problems) == 0 {
		t.Error("the folder holds nothing; write it again")
	}
}

type server struct {
	t    *testing.T
	http string
	trap string
	cmd  *exec.Cmd
}

func start(t *testing.T, data string) *server {
	t.Helper()
	s := &server{t: t, http: freeport.Address(t), trap: freeport.Address(t)}
	s.cmd = exec.Command(launch.Binary(t), "server", "--data", data, "--http", s.http, "--trapper", s.trap, "--disk-space", "256MiB")
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if answer, err := http.Get("http://" + s.http + "/-/ready"); err == nil {
			_ = answer.Body.Close()
			return s
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatal("the server does not get ready")
	return nil
}

func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGKILL)
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *server) get(path string, into any) {
	s.t.Helper()
	answer, err := http.Get("http://" + s.http + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s %v %.300s", path, answer.Status, err, body)
	}
}

// content reads what the server shows.
func (s *server) content() content {
	s.t.Helper()
	c := content{Values: map[string][]string{}}
	var items struct {
		Items []struct{ ID, Host, Key string }
	}
	s.get("/api/items?limit=10000", &items)
	for _, i := range items.Items {
		var page struct {
			Values []struct {
				AtNS  string `json:"at_ns"`
				Value struct{ T, V string }
			}
		}
		s.get("/api/values?limit=10000&from=0&to=9000000000000&item="+i.ID, &page)
		for _, v := range page.Values {
			c.Values[i.Host+" "+i.Key] = append(c.Values[i.Host+" "+i.Key], v.AtNS+" "+v.Value.T+" "+v.Value.V)
		}
	}
	var problems struct {
		Problems []struct {
			Name string
			At   json.Number
		}
	}
	s.get("/api/problems?open=false", &problems)
	for _, p := range problems.Problems {
		c.Problems = append(c.Problems, p.At.String()+" "+p.Name)
	}
	return c
}

// unpack extracts a folder; names that lead out of it are refused.
func unpack(t *testing.T, name, dir string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatalf("%s: %q %v", name, h.Name, err)
		}
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o750)
		} else {
			err = extract(path, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func extract(path string, r io.Reader) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, r)
	return errors.Join(err, out.Close())
}
