package flood

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

const (
	// slowConnections is how many are opened where the system allows it, half of them to each port.
	slowConnections = 10_000
	// roomBytes is how much more memory the server may have during the flood than before.
	roomBytes = 150 << 20
	// patience is how long the test waits for something that must come, on a busy machine.
	patience = 2 * time.Minute
)

// server is the program under test.
type server struct {
	t             *testing.T
	http, trapper string
	process       int
}

func start(t *testing.T) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{t: t, http: freeport.Address(t), trapper: freeport.Address(t)}
	var log bytes.Buffer
	cmd := exec.Command(launch.Binary(t), "server", "--data", filepath.Join(dir, "data"), "--http", s.http, "--trapper", s.trapper, "--disk-space", "1GiB")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text := log.String()
			t.Logf("the server's log ends with\n%s", text[max(0, len(text)-4000):])
		}
	})
	s.process = cmd.Process.Pid
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		if answer, err := http.Get("http://" + s.http + "/-/ready"); err == nil {
			_ = answer.Body.Close()
			return s
		}
		if time.Now().After(deadline) {
			t.Fatal("the server does not get ready")
		}
	}
}

var residentLine = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// resident is the memory of the server.
func (s *server) resident() int {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process))
	if err != nil {
		s.t.Fatalf("the server is gone: %v", err)
	}
	kb, err := strconv.Atoi(string(residentLine.FindSubmatch(text)[1]))
	if err != nil {
		s.t.Fatal(err)
	}
	return kb << 10
}

// frame is a request of the trapper's protocol with the lengths that it claims.
func frame(flags byte, length, inflated uint32, body []byte) []byte {
	out := append([]byte("ZBXD"), flags)
	out = binary.LittleEndian.AppendUint32(out, length)
	out = binary.LittleEndian.AppendUint32(out, inflated)
	return append(out, body...)
}

// dial connects from another loopback address than honest peers have.
func dial(address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	return d.Dial("tcp", address)
}

// honest sends a value as a sender does, and returns what is wrong with the answer.
func (s *server) honest() error {
	body := []byte(`{"request":"sender data","data":[{"host":"honest","key":"value","value":"1"}]}`)
	c, err := net.DialTimeout("tcp", s.trapper, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(frame(1, uint32(len(body)), 0, body)); err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(c, 64<<10))
	if !bytes.Contains(answer, []byte("processed: 1; failed: 0")) {
		return fmt.Errorf("answered %q, %w", answer, errors.Join(err, errors.New("want the value processed")))
	}
	return nil
}

// connections is how many slow connections this process can have.
func connections(t *testing.T) int {
	t.Helper()
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	l.Cur = l.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	return min(slowConnections, int(min(l.Max, 1<<20))-500)
}

// flood opens slow connections to both ports and keeps them.
func (s *server) flood(count int) (opened *atomic.Int64, stop func()) {
	opened = new(atomic.Int64)
	var mu sync.Mutex
	var conns []net.Conn
	var dialers sync.WaitGroup
	todo := make(chan int)
	for range 64 {
		dialers.Go(func() {
			for n := range todo {
				address, text := s.trapper, "ZBXD"
				if n%2 == 1 {
					address, text = s.http, "POST /api_jsonrpc.php HTTP/1.1\r\nHost: "
				}
				c, err := dial(address)
				if err != nil {
					continue // the server takes no more at this moment
				}
				_, _ = c.Write([]byte(text))
				opened.Add(1)
				mu.Lock()
				conns = append(conns, c)
				mu.Unlock()
			}
		})
	}
	dialers.Go(func() {
		defer close(todo)
		for n := range count {
			todo <- n
		}
	})
	return opened, func() {
		dialers.Wait()
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

// lies are requests whose lengths or compressed texts are not what they say.
func (s *server) lies() {
	var zeros bytes.Buffer
	w := zlib.NewWriter(&zeros)
	for range 256 { // 256 MiB
		_, _ = w.Write(make([]byte, 1<<20))
	}
	_ = w.Close()
	const most = 1<<32 - 1
	texts := [][]byte{
		frame(1, most, 0, []byte("{")),
		frame(3, uint32(zeros.Len()), 100, zeros.Bytes()),
		frame(3, uint32(zeros.Len()), 256<<20, zeros.Bytes()),
		frame(3, most, most, []byte("x\x9c")),
		append(append([]byte("ZBXD\x05"), 0, 0, 0, 0, 0, 1, 0, 0), bytes.Repeat([]byte{0}, 64)...),
	}
	var all sync.WaitGroup
	for n := range 64 {
		all.Go(func() { s.lie(s.trapper, texts[n%len(texts)]) })
	}
	for n := range 32 {
		path := []string{"/api_jsonrpc.php", "/api/import", "/api/v1/write", "/api/login"}[n%4]
		text := "POST " + path + " HTTP/1.1\r\nHost: " + s.http + "\r\nContent-Type: application/json\r\nContent-Length: 4294967295\r\n\r\n{\"a\":"
		if n%8 >= 4 {
			text = strings.Replace(text, "Content-Length: 4294967295", "Transfer-Encoding: chunked", 1) + "ffffffffffff\r\n" + strings.Repeat(" ", 1<<20)
		}
		all.Go(func() { s.lie(s.http, []byte(text)) })
	}
	all.Wait()
}

// lie sends a text and reads what comes.
func (s *server) lie(address string, text []byte) {
	c, err := dial(address)
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = c.Write(text)
	_, _ = io.Copy(io.Discard, io.LimitReader(c, 1<<20))
}

// TestFlood floods both ports while an honest sender goes on, and looks at the server's memory.
func TestFlood(t *testing.T) {
	s := start(t)
	const host = `{"zabbix_export":{"version":"7.0","host_groups":[{"name":"G"}],"hosts":[{"host":"honest","name":"honest","groups":[{"name":"G"}],"items":[{"name":"value","type":"TRAP","key":"value","delay":"0"}]}]}}`
	answer, err := http.Post("http://"+s.http+"/api/import", "application/json", strings.NewReader(host))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if err := s.honest(); answer.StatusCode != http.StatusOK || err != nil {
		t.Fatalf("before the flood: %s, %v", answer.Status, err)
	}
	before, most := s.resident(), 0
	count := connections(t)
	opened, stop := s.flood(count)
	liars := make(chan struct{})
	go func() { defer close(liars); s.lies() }()
	for deadline := time.Now().Add(patience); opened.Load() < int64(count)/2 && time.Now().Before(deadline); {
		<-time.After(10 * time.Millisecond)
	}
	var honest sync.WaitGroup
	for n := range 20 {
		honest.Go(func() {
			if err := s.honest(); err != nil {
				t.Errorf("honest sender %d: %v", n, err)
			}
		})
	}
	answered := make(chan struct{})
	go func() { honest.Wait(); close(answered) }()
	for waiting := true; waiting; {
		select {
		case <-answered:
			waiting = false
		case <-time.After(20 * time.Millisecond):
		}
		most = max(most, s.resident())
	}
	<-liars
	most = max(most, s.resident())
	stop()
	client := http.Client{Timeout: patience}
	if answer, err = client.Get("http://" + s.http + "/-/ready"); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("after the flood: %v", err)
	}
	_ = answer.Body.Close()
	if err := s.honest(); err != nil {
		t.Errorf("honest sender after the flood: %v", err)
	}
	most = max(most, s.resident())
	t.Logf("%d of %d slow connections were open; %d MiB resident before, at most %d MiB during the flood", opened.Load(), count, before>>20, most>>20)
	if most > before+roomBytes {
		t.Errorf("%d MiB are resident, %d before the flood, at most %d more are allowed", most>>20, before>>20, roomBytes>>20)
	}
	if opened.Load() < int64(count)/4 {
		t.Errorf("only %d of %d connections were opened, so the test proves little", opened.Load(), count)
	}
}
