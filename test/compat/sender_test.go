package compat

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sent is what one line of the sender's file says.
type sent struct {
	key string
	value
}

// tenThousand returns values of every type with times of their own, in the order of a file.
func tenThousand(start time.Time) []sent {
	all := make([]sent, 0, 10_000)
	for i := range 10_000 {
		at := start.UnixNano() + int64(i)*1_234_567 + int64(i*i%1000)
		var s sent
		switch i % 4 {
		case 0:
			s = sent{"compat.float", value{at, strconv.FormatFloat(float64(i)/7-300, 'g', -1, 64)}}
		case 1:
			s = sent{"compat.uint", value{at, strconv.FormatUint(1<<64-1-uint64(i)*977, 10)}}
		case 2:
			s = sent{"compat.text", value{at, fmt.Sprintf("line %d \"quoted\" \\ back\nsecond line é😀", i)}}
		case 3:
			s = sent{"compat.char", value{at, fmt.Sprintf("short %d", i)}}
		}
		all = append(all, s)
	}
	return all
}

// writeFile writes values as zabbix_sender reads them.
func writeFile(t *testing.T, path string, values []sent, withNS bool) {
	t.Helper()
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "sender-host %s %d ", v.key, v.at/1e9)
		if withNS {
			fmt.Fprintf(&b, "%d ", v.at%1e9)
		}
		fmt.Fprintf(&b, "\"%s\"\n", escape.Replace(v.text))
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sendFile runs zabbix_sender and returns its sums.
func sendFile(t *testing.T, s *server, path string, options ...string) (processed, failed, total int) {
	t.Helper()
	args := append([]string{"-z", "127.0.0.1", "-p", strconv.Itoa(s.trapperPort), "-T", "-i", path, "-vv"}, options...)
	out, err := exec.Command("zabbix_sender", args...).CombinedOutput()
	if err != nil {
		t.Errorf("zabbix_sender: %v\n%.2000s", err, out)
	}
	info := regexp.MustCompile(`Response from "[^"]*": "processed: (\d+); failed: (\d+); total: (\d+); seconds spent`)
	for _, m := range info.FindAllStringSubmatch(string(out), -1) {
		p, _ := strconv.Atoi(m[1])
		f, _ := strconv.Atoi(m[2])
		n, _ := strconv.Atoi(m[3])
		processed, failed, total = processed+p, failed+f, total+n
	}
	return processed, failed, total
}

func TestSender_tenThousandValuesSurviveAKill(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.importHost("sender-host", item("TRAP", "compat.float", "FLOAT", "0"), item("TRAP", "compat.uint", "UNSIGNED", "0"),
		item("TRAP", "compat.text", "TEXT", "0"), item("TRAP", "compat.char", "CHAR", "0"))
	all := tenThousand(time.Now().Add(-time.Hour).Truncate(time.Second))
	file := filepath.Join(t.TempDir(), "values")
	writeFile(t, file, all, true)
	compare := func(when string) {
		t.Helper()
		for _, key := range []string{"compat.float", "compat.uint", "compat.text", "compat.char"} {
			var want []value
			for _, v := range all {
				if v.key == key {
					want = append(want, v.value)
				}
			}
			compareValues(t, when+", "+key, s.values("sender-host", key), want)
		}
	}
	for _, when := range []string{"after sending", "after sending again behind a kill"} {
		if p, f, n := sendFile(t, s, file, "-N"); p != 10_000 || f != 0 || n != 10_000 {
			t.Errorf("%s: processed %d, failed %d, total %d, expected 10000, 0, 10000", when, p, f, n)
		}
		compare(when)
		s.restart()
		compare(when + " and a kill")
	}
}

func TestSender_secondsOnly(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.importHost("sender-host", item("TRAP", "compat.uint", "UNSIGNED", "0"))
	start := time.Now().Add(-time.Hour).Unix()
	var all []sent
	for i := range 600 {
		all = append(all, sent{"compat.uint", value{(start + int64(i/3)) * 1e9, strconv.Itoa(i)}})
	}
	file := filepath.Join(t.TempDir(), "values")
	writeFile(t, file, all, false)
	for range 2 {
		if p, f, _ := sendFile(t, s, file); p != 600 || f != 0 {
			t.Errorf("processed %d, failed %d, expected 600 and 0", p, f)
		}
		s.restart()
		got := s.values("sender-host", "compat.uint")
		if len(got) != len(all) {
			t.Fatalf("%d values, expected %d", len(got), len(all))
		}
		seen := make(map[string]int64)
		for _, v := range got {
			seen[v.text] = v.at / 1e9
		}
		for _, v := range all {
			if seen[v.text] != v.at/1e9 {
				t.Fatalf("value %s is at second %d, expected %d", v.text, seen[v.text], v.at/1e9)
			}
		}
	}
	unknown := []sent{{"no.such.key", value{start * 1e9, "1"}}, {"compat.uint", value{(start + 1000) * 1e9, "7"}}}
	writeFile(t, file, unknown, false)
	out, err := exec.Command("zabbix_sender", "-z", "127.0.0.1", "-p", strconv.Itoa(s.trapperPort), "-T", "-i", file, "-vv").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "processed: 1; failed: 1; total: 2") {
		t.Errorf("an unknown item: %v\n%s", err, out)
	}
}

func compareValues(t *testing.T, what string, got, want []value) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, expected %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: value %d is %v, expected %v", what, i, got[i], want[i])
			return
		}
	}
}
