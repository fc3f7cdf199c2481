package key

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	f := func(text, name string, params ...string) {
		t.Helper()
		k, err := Parse(text)
		if name == "" {
			if err == nil {
				t.Errorf("Parse takes %q as %q", text, k)
			}
			return
		}
		var got []string
		for _, p := range k.Params {
			if p.IsArray {
				got = append(got, fmt.Sprintf("array%q", p.List))
			} else {
				got = append(got, p.Text)
			}
		}
		if err != nil || k.Name != name || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", params) {
			t.Errorf("Parse of %q gives %q %q, %v; expected %q %q", text, k.Name, got, err, name, params)
		}
		again, err := Parse(k.String())
		if err != nil || again.String() != k.String() {
			t.Errorf("%q is printed as %q, which reads back as %q, %v", text, k, again, err)
		}
	}
	f("agent.ping", "agent.ping")
	f("a-b_C.9", "a-b_C.9")
	f("k[]", "k", "")
	f("k[,]", "k", "", "")
	f("k[a,b]", "k", "a", "b")
	f("k[ a , b ]", "k", "a ", "b ")
	f(`k["a,b"]`, "k", "a,b")
	f(`k["a" , "b]" ]`, "k", "a", "b]")
	f(`k["say \"hi\""]`, "k", `say "hi"`)
	f(`k["back\slash"]`, "k", `back\slash`)
	f(`k[a"b"]`, "k", `a"b"`)
	f(`k[""]`, "k", "")
	f(`k[[a,b],c]`, "k", `array["a" "b"]`, "c")
	f(`k[ ["a]",b] ,]`, "k", `array["a]" "b"]`, "")
	f("k[[]]", "k", `array[""]`)
	f("k[/var/lib (old)]", "k", "/var/lib (old)")
	f("k[ä,日本]", "k", "ä", "日本")

	for _, bad := range []string{
		"", "[a]", "k[", "k[a", "k[a]b", "k[a]]", `k["a]`, `k["a"b]`, "k[[a]", "k[[[a]]]", "k[[a]b]", "k a", "kä", "k(a)", `k["a\"]`,
		"k[" + strings.Repeat(",", maxParams) + "]", "k[[" + strings.Repeat(",", maxParams) + "]]", strings.Repeat("k", MaxKeyBytes+1),
	} {
		f(bad, "")
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"eth0": "eth0", "": "", "a b": "a b", " a": `" a"`, "a,b": `"a,b"`, `a"]`: `"a\"]"`, "[x": `"[x"`, `"x`: `"\"x"`,
	} {
		got := Quote(text)
		k, err := Parse("k[" + got + "]")
		if got != want || err != nil || k.Param(0, "") != text {
			t.Errorf("Quote(%q) = %q, read back as %q, %v; expected %q", text, got, k.Param(0, ""), err, want)
		}
	}
}

func TestMeasureOnce(t *testing.T) {
	c, v, err := MeasureOnce(Options{}, "system.cpu.util[,idle,last]")
	if err != nil || c.Units != "%" || v.String() == "" {
		t.Errorf("system.cpu.util: %v %v %v", c, v, err)
	}
	if _, _, err := MeasureOnce(Options{}, "no.such.key"); err != ErrUnsupportedKey { //nolint:errorlint // It is never wrapped.
		t.Errorf("no.such.key: %v", err)
	}
}

func TestStop_endsSlowChecks(t *testing.T) {
	m := NewMachine(Options{})
	defer m.Close()
	m.Tick(time.Now())
	c, err := m.Compile("vfs.file.md5sum[/proc/self/exe]")
	if err != nil {
		t.Fatal(err)
	}
	m.Stop()
	if _, err := c.Measure(); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("a check of a stopped machine: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a", "a[]", `a["x\"",[b,"c"],d]`, "a[ [ ", `k["\\"]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := Parse(text)
		if err != nil {
			return
		}
		printed := k.String()
		if len(printed) > MaxKeyBytes {
			return
		}
		again, err := Parse(printed)
		if err != nil || again.String() != printed {
			t.Fatalf("%q is printed as %q, which reads back as %q, %v", text, printed, again, err)
		}
		fakeMachine("testdata/proc").Compile(text) //nolint:errcheck // It may fail, but must not panic.
	})
}

// FuzzProc feeds every parser of kernel files.
func FuzzProc(f *testing.F) {
	for _, seed := range []string{
		"cpu 1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4\nctxt 5\n", "MemTotal: 5 kB\n", "Filename\n/dev/sda2 partition 30 10 -2\n",
		"8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n", "eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",
		"some avg10=1.50 avg60=2.25 avg300=3.00 total=123456\n", "24 22 8:2 / /a\\040b rw - xfs /dev/sda2 rw\n",
		"0: 0100007F:1F90 00000000:0000 0A\n", "Name:\tinit\nState:\tS\nUid:\t0\nVmRSS:\t 1 kB\n", "PRETTY_NAME=\"x\"\n", "0.1 0.2 0.3 1/2 3\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := fakeMachine("testdata/none")
		m.Tick(time.Unix(1, 0))
		m.cpu.parse(b, m.tick+1, m.at) //nolint:errcheck // It may fail, but must not panic.
		m.disk.parse(b, m)
		m.network.parse(b, m.tick)
		m.vmstat.parse(b)
		m.load.parse(b)
		parsePressure(b)
		parseSwaps(b, nil)
		hasSocket(b, 80, 0x0A)
		prettyName(b)
		countUsers(b)
		parseProcess(b)
		if info := parseMeminfo(b); info.total > 1<<63 && info.total&1023 != 0 {
			t.Fatalf("total %d", info.total)
		}
		for _, mount := range parseMounts(b, nil) {
			if mount.Path == "" || mount.Path[0] != '/' {
				t.Fatalf("mount %+v", mount)
			}
		}
	})
}

// BenchmarkTick is one second's work for a machine's usual items.
func BenchmarkTick(b *testing.B) {
	m := NewMachine(Options{})
	defer m.Close()
	m.Tick(time.Now())
	keys := []string{"proc.num[]", "system.uptime", "system.procs[running]", "system.cpu.switches", "system.cpu.intr", "kernel.openfiles"}
	for mode := range cpuModes {
		keys = append(keys, "system.cpu.util[all,"+mode+",last]")
		for _, n := range m.CPUs() {
			for range 8 / len(m.CPUs()) { // As many items as eight processors have.
				keys = append(keys, fmt.Sprintf("system.cpu.util[%d,%s,last]", n, mode))
			}
		}
	}
	for mode := range memoryModes {
		keys = append(keys, "vm.memory.size["+mode+"]")
	}
	for range 8 {
		for _, mode := range []string{"bytes", "packets", "errors", "dropped"} {
			keys = append(keys, "net.if.in[lo,"+mode+"]", "net.if.out[lo,"+mode+"]")
		}
		keys = append(keys, "vfs.fs.size[/,used]", "vfs.fs.size[/,free]", "vfs.fs.inode[/,pfree]")
		disks, _ := m.Disks(1)
		for _, disk := range disks {
			keys = append(keys, "vfs.dev.read["+disk+",bytes]", "vfs.dev.write["+disk+",bytes]", "vfs.dev.util["+disk+"]")
		}
	}
	for _, resource := range pressureNames {
		keys = append(keys, "system.pressure["+resource+",some,avg10]", "system.pressure["+resource+",some,total]")
	}
	var checks []*Check
	for _, text := range keys {
		c, err := m.Compile(text)
		if err != nil {
			b.Fatal(err)
		}
		checks = append(checks, c)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Tick(time.Now())
		for _, c := range checks {
			c.Measure() //nolint:errcheck // Some have no value in so short a time.
		}
	}
	b.ReportMetric(float64(len(checks)), "items")
}
