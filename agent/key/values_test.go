package key

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeMachine is the machine of testdata.
func fakeMachine(proc string) *Machine {
	m := NewMachine(Options{Proc: proc, Sys: "testdata/sys", Hostname: "agent-name", Version: "1.2.3", DialTimeout: time.Second})
	m.hostname = func() (string, error) { return "Web1.Example", nil }
	m.statfs = func(path string) (fsUsage, error) {
		switch path {
		case "/":
			return fsUsage{total: 1000 << 20, free: 300 << 20, available: 250 << 20, inodes: 1000, inodesFree: 400}, nil
		case "/btrfs":
			return fsUsage{total: 100, free: 50, available: 50}, nil
		}
		return fsUsage{}, reason("Cannot obtain filesystem information: no such file or directory.")
	}
	return m
}

// tickAt is the moment of the nth tick of a test.
func tickAt(n int) time.Time {
	return time.Unix(1_700_000_000, 0).UTC().Add(time.Duration(n) * time.Second)
}

// TestValues compares every line of testdata/values.txt: key, then " = ", type, units in brackets, "counter" if it is
// one, and the value; or " ! " and the error.
func TestValues(t *testing.T) {
	f, err := os.Open("testdata/values.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := fakeMachine("testdata/proc")
	defer m.Close()
	m.Tick(tickAt(1))
	tested := map[string]bool{}
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		at := max(strings.LastIndex(line, " = "), strings.LastIndex(line, " ! "))
		if at < 0 {
			t.Fatalf("line %d has neither = nor !", number)
		}
		text, want := line[:at], line[at+1:]
		if got := describe(m, text); got != want {
			t.Errorf("line %d: %s\n got %s\nwant %s", number, text, got, want)
		}
		if k, err := Parse(text); err == nil {
			tested[k.Name] = true
		}
	}
	for _, name := range Names() {
		if !tested[name] && !slices.Contains(ofThisMachine, name) {
			t.Errorf("no line of values.txt tests %s", name)
		}
	}
}

// ofThisMachine are keys that ask the running kernel, whatever Proc says.
var ofThisMachine = []string{"system.uname", "system.sw.arch", "system.users.num"}

func TestValues_ofThisMachine(t *testing.T) {
	m := NewMachine(Options{})
	defer m.Close()
	m.Tick(tickAt(1))
	if got := describe(m, "system.uname"); !strings.HasPrefix(got, "= text [] Linux ") {
		t.Errorf("system.uname gives %s", got)
	}
	if got := describe(m, "system.sw.arch"); !strings.HasPrefix(got, "= text [] ") {
		t.Errorf("system.sw.arch gives %s", got)
	}
	if got := describe(m, "system.users.num"); !strings.HasPrefix(got, "= unsigned [] ") {
		t.Errorf("system.users.num gives %s", got)
	}
	record := make([]byte, 3*utmpRecordBytes+5)
	record[0], record[utmpRecordBytes] = utmpUserProcess, 8
	if got := countUsers(record); got != 1 {
		t.Errorf("%d users; expected 1", got)
	}
}

func describe(m *Machine, text string) string {
	c, err := m.Compile(text)
	if err != nil {
		return "! " + err.Error()
	}
	v, err := c.Measure()
	if err != nil {
		return "! " + err.Error()
	}
	if v.Type != c.Type {
		return fmt.Sprintf("! the check says %s, its value is %s", c.Type, v.Type)
	}
	counter := ""
	if c.Counter {
		counter = " counter"
	}
	return fmt.Sprintf("= %s [%s]%s %s", v.Type, c.Units, counter, strings.ReplaceAll(v.String(), "\n", "␤"))
}

// changing is a /proc that a test rewrites between ticks.
type changing struct {
	*Machine
	t   *testing.T
	dir string
	n   int
}

func newChanging(t *testing.T) *changing {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/proc")); err != nil {
		t.Fatal(err)
	}
	c := &changing{fakeMachine(dir), t, dir, 0}
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *changing) tick() {
	c.n++
	c.Tick(tickAt(c.n))
}

func (c *changing) write(name, content string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *changing) want(text, want string) {
	c.t.Helper()
	if got := describe(c.Machine, text); got != want {
		c.t.Errorf("tick %d: %s gives %s; expected %s", c.n, text, got, want)
	}
}

func TestCPUUtil(t *testing.T) {
	c := newChanging(t)
	c.write("stat", "cpu 1000 0 1000 8000 0 0 0 0 0 0\ncpu0 1000 0 1000 8000 0 0 0 0 0 0\n")
	c.tick()
	c.want("system.cpu.util[all,user,last]", "! "+ErrNotYet.Error())
	c.want("system.cpu.util", "! "+ErrNotYet.Error())
	// 100 more: 20 user of which 5 for guests, 10 system, 50 idle, 20 iowait.
	c.write("stat", "cpu 1020 0 1010 8050 20 0 0 0 5 0\ncpu0 1020 0 1010 8050 20 0 0 0 5 0\n")
	c.tick()
	for mode, want := range map[string]string{
		"user": "15", "guest": "5", "system": "10", "idle": "50", "iowait": "20", "used": "30", "steal": "0",
	} {
		c.want("system.cpu.util[all,"+mode+",last]", "= float [%] "+want)
		c.want("system.cpu.util[0,"+mode+",last]", "= float [%] "+want)
		c.want("system.cpu.util[,"+mode+"]", "= float [%] "+want)
	}
	// The processor goes and comes back with smaller times: no value, then no nonsense.
	c.write("stat", "cpu 1040 0 1010 8130 20 0 0 0 5 0\n")
	c.tick()
	c.want("system.cpu.util[0,user,last]", "! "+errNoCPU.Error())
	c.want("system.cpu.num", "= unsigned [] 0")
	c.want("system.cpu.util[all,user,last]", "= float [%] 20")
	c.write("stat", "cpu 1060 0 1010 8210 10 0 0 0 5 0\ncpu0 5 0 5 5 0 0 0 0 0 0\n")
	c.tick()
	c.want("system.cpu.util[0,user,last]", "! "+ErrNotYet.Error())
	c.want("system.cpu.util[all,iowait,last]", "= float [%] 0")
	c.want("system.cpu.util[all,user,last]", "= float [%] 20")
}

func TestCPUUtil_averages(t *testing.T) {
	c := newChanging(t)
	// For 1000 s nothing, then 120 s at 50 % user.
	user, idle := 0, 0
	for n := range 1120 {
		if n >= 1000 {
			user, idle = user+50, idle+50
		} else {
			idle += 100
		}
		c.write("stat", fmt.Sprintf("cpu %d 0 0 %d 0 0 0 0 0 0\n", user, idle))
		c.tick()
	}
	c.want("system.cpu.util[,user,avg1]", "= float [%] 50")
	c.want("system.cpu.util[,user,avg5]", "= float [%] 19.4175") // Over 309 s: the samples lie 15 s apart.
	c.want("system.cpu.util[,user,avg15]", "= float [%] 6.6007")
}

func TestDiskRates(t *testing.T) {
	c := newChanging(t)
	line := func(reads, sectors, readMillis, busy, waiting int) string {
		return fmt.Sprintf("8 0 sda %d 0 %d %d 0 0 0 0 0 %d %d\n", reads, sectors, readMillis, busy, waiting)
	}
	c.write("diskstats", line(100, 1000, 50, 10, 60))
	c.tick()
	c.want("vfs.dev.util[sda]", "! "+ErrNotYet.Error())
	c.want("vfs.dev.read[sda,ops]", "! "+ErrNotYet.Error())
	c.write("diskstats", line(110, 1200, 75, 260, 1060))
	c.tick()
	c.want("vfs.dev.util[sda]", "= float [%] 25")
	c.want("vfs.dev.queue[/dev/sda]", "= float [] 1")
	c.want("vfs.dev.read.await[sda]", "= float [s] 0.0025")
	c.want("vfs.dev.write.await[sda]", "= float [s] 0")
	c.want("vfs.dev.read[sda,ops,last]", "= float [] 10")
	c.want("vfs.dev.read[sda,bps,last]", "= float [Bps] 102400")
	c.want("vfs.dev.write[,sps]", "! "+ErrNotYet.Error()) // Nobody asked for an average of all before.
	c.want("vfs.dev.read[sda,ops]", "= float [] 10")
	c.want("vfs.dev.read[,bps,last]", "= float [Bps] 102400")
	c.write("diskstats", line(10, 40, 5, 9_999, 6)) // The device began again; busy longer than possible.
	c.tick()
	c.want("vfs.dev.read[sda,ops,last]", "= float [] 10")
	c.want("vfs.dev.util[sda]", "= float [%] 100")
	c.write("diskstats", "")
	c.tick()
	c.want("vfs.dev.util[sda]", "! "+errNoDisk.Error())
	c.want("vfs.dev.read[sda,bytes]", "! "+errNoDisk.Error())
}

func TestSwap_none(t *testing.T) {
	c := newChanging(t)
	c.write("meminfo", "MemTotal: 100 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n")
	c.tick()
	c.want("system.swap.size[,total]", "= unsigned [B] 0")
	c.want("system.swap.size[,pfree]", "= float [%] 100")
	c.want("system.swap.size[,pused]", "= float [%] 0")
}

func TestDevicesComeAndGo(t *testing.T) {
	c := newChanging(t)
	for n := range 200 {
		c.write("diskstats", fmt.Sprintf("8 0 sd%d 1 0 1 1 0 0 0 0 0 1 1\n", n))
		c.write("net/dev", fmt.Sprintf("if%d: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n", n))
		c.tick()
		c.want(fmt.Sprintf("vfs.dev.read[sd%d,operations]", n), "= unsigned [] counter 1")
		c.want(fmt.Sprintf("net.if.in[if%d]", n), "= unsigned [B] counter 1")
	}
	if len(c.disk.devices) > 32 || len(c.network.interfaces) > 32 {
		t.Errorf("%d devices and %d interfaces are kept of one", len(c.disk.devices), len(c.network.interfaces))
	}
	if names, err := c.Interfaces(10); err != nil || !slices.Equal(names, []string{"if199"}) {
		t.Errorf("interfaces %v, %v", names, err)
	}
}

// TestHostileFiles feeds every file with what no kernel writes: nothing may panic, and no value may come of it.
func TestHostileFiles(t *testing.T) {
	long := strings.Repeat("9", 5000)
	contents := []string{
		"", "\n", "\x00\x00\xff\xfe", long, strings.Repeat("cpu ", 5000), strings.Repeat("\n", 100_000),
		"cpu\ncpu-1 1 1 1 1\ncpu4097 1 1 1 1\ncpu " + long + " 1 1 1\n",
		"MemTotal: kB\nMemTotal: -5 kB\nMemTotal: 99999999999999999999 kB\nMemFree: 18446744073709551615 kB\n",
		"8 0 " + long + " 1 1 1 1 1 1 1 1 1 1 1\n", ":::: : : 1 1 1\n", "some avg10= avg60= avg300= total=\nfull\n",
		"1 2 3:4 / relative rw - ext4 x rw\n1 2 3:4 / /\\04 rw -  x\n - - - - \n1 2 3 4 5 6 -", "0.0.0 1e9 -1\n", "nan inf 0x10\n",
	}
	files := []string{
		"stat", "meminfo", "swaps", "vmstat", "loadavg", "uptime", "diskstats", "net/dev", "net/tcp", "net/tcp6", "pressure/cpu",
		"self/mountinfo", "sys/fs/file-max", "1/status", "1/cmdline",
	}
	keys := []string{
		"system.cpu.util[,,last]", "system.cpu.num", "system.cpu.load", "system.cpu.load[percpu]", "vm.memory.size",
		"system.swap.size", "system.swap.size[/dev/sda2]", "vm.faults", "system.uptime", "vfs.dev.util[sda]", "vfs.dev.discovery",
		"net.if.in[eth0]", "net.if.discovery", "net.tcp.listen[80]", "system.pressure", "vfs.fs.discovery", "kernel.maxfiles",
		"proc.num[init]", "proc.mem[,,avg]",
	}
	c := newChanging(t)
	for _, content := range contents {
		for _, file := range files {
			c.write(file, content)
		}
		c.tick()
		for _, text := range keys {
			if got := describe(c.Machine, text); strings.Contains(got, long) {
				t.Errorf("%s gives a name of %d bytes", text, len(long))
			}
		}
		for _, text := range []string{"system.cpu.util", "vm.memory.size", "system.cpu.load", "system.pressure"} {
			if got := describe(c.Machine, text); got[0] != '!' {
				t.Errorf("%s gives %s of %.40q", text, got, content)
			}
		}
	}
}

func TestMissingFiles(t *testing.T) {
	m := NewMachine(Options{Proc: filepath.Join(t.TempDir(), "none")})
	defer m.Close()
	m.Tick(tickAt(1))
	for _, text := range []string{
		"system.cpu.util", "system.cpu.load", "vm.memory.size", "vfs.dev.read[sda,bytes]", "net.if.in[lo]", "system.uptime",
		"system.pressure", "kernel.maxproc", "proc.num[]", "proc.mem[x]", "vfs.fs.discovery", "net.tcp.listen[1]",
	} {
		if got := describe(m, text); !strings.HasPrefix(got, "! Cannot read ") {
			t.Errorf("%s gives %s", text, got)
		}
	}
}

func TestMounts(t *testing.T) {
	m := fakeMachine("testdata/proc")
	defer m.Close()
	m.Tick(tickAt(1))
	mounts, err := m.Mounts(10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, mount := range mounts {
		got = append(got, mount.Path+" "+mount.Type+" "+mount.Source)
	}
	want := []string{"/ ext4 /dev/sda1", "/mnt/nfs nfs4 server:/export", "/old ext4 /dev/sda4", "/var/lib data xfs /dev/sda2"}
	if !slices.Equal(got, want) {
		t.Errorf("mounts\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if names, err := m.Disks(10); err != nil || !slices.Equal(names, []string{"dm-0", "nvme0n1", "sda"}) {
		t.Errorf("disks %v, %v", names, err)
	}
	if names, err := m.Interfaces(2); err != nil || !slices.Equal(names, []string{"eth0", "eth0:1"}) {
		t.Errorf("interfaces %v, %v", names, err)
	}
}

// TestRemoteFilesystem: a server that does not answer stops neither the tick nor more than one thread.
func TestRemoteFilesystem(t *testing.T) {
	m := fakeMachine("testdata/proc")
	defer m.Close()
	calls, answer := make(chan struct{}, 100), make(chan fsUsage)
	m.statfs = func(string) (fsUsage, error) {
		calls <- struct{}{}
		return <-answer, nil
	}
	for n := range 5 {
		m.Tick(tickAt(n + 1))
		if got := describe(m, "vfs.fs.size[/mnt/nfs/deep]"); got != "! "+ErrNotYet.Error() {
			t.Errorf("tick %d: %s", n, got)
		}
	}
	answer <- fsUsage{total: 77}
	<-calls
	if len(calls) != 0 {
		t.Errorf("%d more calls were made while one was under way", len(calls))
	}
	close(answer)
	for n := 5; ; n++ {
		m.Tick(tickAt(n + 1))
		got := describe(m, "vfs.fs.size[/mnt/nfs/deep]")
		if strings.HasPrefix(got, "= unsigned [B] ") {
			break
		}
		if n > 1000 {
			t.Fatalf("no value came: %s", got)
		}
		<-time.After(5 * time.Millisecond)
	}
	for m.mounts.usage["/mnt/nfs/deep"].isAsking() {
		<-time.After(5 * time.Millisecond)
	}
}

func (u *usageSource) isAsking() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.asking
}
