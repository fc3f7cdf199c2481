package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"tidemark/sniff"
	"tidemark/sniff/capture"
)

const mongoCaptures = "../sniff/testdata/"

func runMain(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestMongoReport(t *testing.T) {
	code, out, errs := runMain(t, "mongo", "report", "--json", "--pcap", mongoCaptures+"crud_go.pcap")
	var r sniff.Report
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil || len(r.Commands) < 10 || errs != "" {
		t.Errorf("code %d, %v, %d commands, %s", code, err, len(r.Commands), errs)
	}
	code, out, _ = runMain(t, "mongo", "report", "--pcap", mongoCaptures+"crud_go.pcap", "--port", "27117")
	if code != 0 || !strings.Contains(out, "find {$or: [{age: ?}, {name: ?}]}") {
		t.Errorf("code %d:\n%s", code, out)
	}
	if !strings.Contains(out, "1  9 FailedToParse: shop.users  distinct age {}") {
		t.Errorf("the errors by code are missing:\n%s", out)
	}
	// A capture that was ended by force.
	text, err := os.ReadFile(mongoCaptures + "crud_go.pcap")
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.pcap")
	if err := os.WriteFile(cut, text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = runMain(t, "mongo", "report", "--pcap", cut)
	if code != 0 || !strings.Contains(out, "shop.users") || !strings.Contains(errs, "what came before") {
		t.Errorf("cut file: code %d, %s\n%s", code, errs, out)
	}
}

func TestMongoTop_once(t *testing.T) {
	code, out, errs := runMain(t, "mongo", "top", "--once", "--pcap", mongoCaptures+"dup_lo_go.pcap")
	if code != 0 || errs != "" || !strings.Contains(out, "find {g: ?, i: ?} limit ?") || strings.Contains(out, "\x1b") {
		t.Errorf("code %d, %s\n%s", code, errs, out)
	}
	code, out, _ = runMain(t, "mongo", "top", "--json", "--pcap", mongoCaptures+"dup_lo_go.pcap")
	var v struct {
		Shapes []sniff.Row  `json:"shapes"`
		Lost   sniff.Losses `json:"lost"`
	}
	if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil || len(v.Shapes) < 5 || v.Lost.Duplicates != 336 {
		t.Errorf("code %d, %v, %+v", code, err, v)
	}
	for _, wrong := range [][]string{{"mongo", "top"}, {"mongo", "top", "-i", "lo", "--pcap", "x"}, {"mongo", "top", "--pcap", "x", "--port", "70000"}, {"mongo", "export"}} {
		if code, _, errs := runMain(t, wrong...); code != 2 || errs == "" {
			t.Errorf("%v: code %d, %s", wrong, code, errs)
		}
	}
}

// screenOf is the live table of a capture.
func screenOf(t *testing.T, name string) *topScreen {
	t.Helper()
	file, err := os.Open(mongoCaptures + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	source, err := capture.NewFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sniff.New(sniff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	live := sniff.NewLive()
	if err := s.Run(t.Context(), source, sniff.RunOptions{Tick: func(from, to int64) { live.Take(s, from, to) }}); err != nil {
		t.Fatal(err)
	}
	screen := newTopScreen(name, live)
	screen.Update(topTick{})
	return screen
}

func press(s *topScreen, keys ...string) {
	for _, k := range keys {
		switch k {
		case "enter":
			s.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
		case "esc":
			s.Update(tea.KeyPressMsg{Code: tea.KeyEscape})
		case "down":
			s.Update(tea.KeyPressMsg{Code: tea.KeyDown})
		case " ":
			s.Update(tea.KeyPressMsg{Code: tea.KeySpace, Text: " "})
		default:
			s.Update(tea.KeyPressMsg{Code: rune(k[0]), Text: k})
		}
	}
}

// In every size and state, the screen is as high as the terminal and no line is wider.
func TestTopScreen_fits(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 10}, {200, 50}, {132, 30}} {
		s := screenOf(t, "dup_lo_go.pcap")
		s.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for _, state := range [][]string{{}, {"down", "down"}, {"enter"}, {"enter", "/", "x", "q", "enter"}, {"esc", " ", "r"}} {
			press(s, state...)
			text := s.View().Content
			lines := strings.Split(text, "\n")
			if len(lines) != size[1] {
				t.Errorf("%v after %v: %d lines", size, state, len(lines))
			}
			for _, l := range lines {
				if w := ansi.StringWidth(l); w > size[0] {
					t.Errorf("%v after %v: a line is %d wide: %s", size, state, w, l)
				}
			}
		}
	}
}

func TestTopScreen_keys(t *testing.T) {
	s := screenOf(t, "dup_lo_go.pcap")
	if first := s.view.Rows[0].Shape; !strings.HasPrefix(first, "update") {
		t.Errorf("first by load: %s", first)
	}
	press(s, "p")
	if first := s.view.Rows[0]; first.P95Millis < s.view.Rows[1].P95Millis {
		t.Errorf("first by p95: %+v", first)
	}
	press(s, "/", "o", "r", "d", "e", "r", "s", "enter")
	if len(s.view.Rows) != 1 || s.view.Rows[0].Namespace != "shop.orders" || s.typing {
		t.Errorf("filtered: %+v", s.view.Rows)
	}
	press(s, "enter")
	if text := ansi.Strip(s.View().Content); !strings.Contains(text, "fingerprint") || !strings.Contains(text, "LATENCY") || !strings.Contains(text, "▇") {
		t.Errorf("details:\n%s", text)
	}
	press(s, "esc", "esc", " ")
	s.live = sniff.NewLive()
	s.Update(topTick{})
	if len(s.view.Rows) == 0 || !strings.Contains(s.View().Content, "frozen") {
		t.Error("the frozen table moved")
	}
	if s.key("q") == nil {
		t.Error("q does not quit")
	}
}

func TestTopScreen_empty(t *testing.T) {
	s := newTopScreen("lo port 27017", sniff.NewLive())
	if text := s.View().Content; !strings.Contains(text, "waiting for the first second") {
		t.Errorf("first frame:\n%s", text)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 12: "12", 999: "999", 1500: "1.5k", 123456: "123k", 1.5e6: "1.5M", 2e9: "2.0G"} {
		if got := amount(v); got != want {
			t.Errorf("amount(%v) is %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.05: "50µs", 0.25: "0.25ms", 3.14: "3.1ms", 250: "250ms", 2500: "2.5s"} {
		if got := millis(v); got != want {
			t.Errorf("millis(%v) is %s, want %s", v, got, want)
		}
	}
	if got := sparkline([]float64{0, 1, 2, 4}, 4); got != " ▃▅█" {
		t.Errorf("sparkline %q", got)
	}
}

// mainArgs is the variable that makes the test binary run the command line instead of the tests.
const mainArgs = "TIDEMARK_TEST_MAIN"

func TestMain(m *testing.M) {
	if args := os.Getenv(mainArgs); args != "" {
		os.Exit(Main(strings.Split(args, " "), os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestMongoExport runs the command in a process of its own, because it gives up its privileges, and reads what it serves.
func TestMongoExport(t *testing.T) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), mainArgs+"=mongo export -i lo --port 1 --listen 127.0.0.1:0 --ring 1")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Signal(os.Interrupt)
		if err := c.Wait(); err != nil {
			t.Errorf("at its end: %v", err)
		}
	}()
	line := make([]byte, 200)
	n, err := out.Read(line)
	_, address, found := strings.Cut(strings.TrimSpace(string(line[:n])), "metrics are at ")
	if err != nil || !found {
		t.Fatalf("%q %v", line[:n], err)
	}
	client := http.Client{Timeout: 10 * time.Second}
	r, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || !strings.Contains(string(text), "\ntidemark_sniff_kernel_dropped_total 0\n") {
		t.Errorf("%v\n%s", err, text)
	}
	checkPrivileges(t, c.Process.Pid)
}

// checkPrivileges looks at what a process may still do.
func checkPrivileges(t *testing.T, pid int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	const none = "0000000000000000"
	kept := strings.Contains(string(status), "NoNewPrivs:\t0")
	for line := range strings.Lines(string(status)) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t"); name == "CapEff" || name == "CapPrm" {
			if (value == none) == kept {
				t.Errorf("%s is %s, no new privileges: %v", name, value, !kept)
			}
		}
	}
}
