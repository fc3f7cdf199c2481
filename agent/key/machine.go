package key

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// Options say where a Machine looks. The zero value is this machine.
type Options struct {
	// Proc and Sys are the mount points of procfs and sysfs; empty means /proc and /sys.
	Proc, Sys string
	// Hostname is what agent.hostname gives: the name that the agent has at its server.
	Hostname string
	// Version is what agent.version gives.
	Version string
	// DialTimeout bounds net.tcp.port; zero means 3 s.
	DialTimeout time.Duration
}

// Machine reads the kernel's figures, each file at most once per tick. Tick and the checks that are not slow belong to
// one goroutine.
type Machine struct {
	options  Options
	statfs   func(path string) (fsUsage, error)
	ctx      context.Context //nolint:containedctx // It ends slow checks when the machine stops; checks have no caller that waits.
	cancel   context.CancelFunc
	hostname func() (string, error)

	tick  uint64
	at    time.Time // when the tick began, with a monotonic clock
	since float64   // seconds from the tick before; zero at the first

	cpu      cpuSource
	disk     diskSource
	network  netSource
	memory   memorySource
	swaps    swapSource
	vmstat   vmstatSource
	load     loadSource
	pressure [3]pressureSource
	mounts   mountSource
	uptime   procFile
	maxima   map[string]*procFile
}

// NewMachine returns a machine that has read nothing yet.
func NewMachine(o Options) *Machine {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	if o.Sys == "" {
		o.Sys = "/sys"
	}
	if o.DialTimeout == 0 {
		o.DialTimeout = 3 * time.Second
	}
	m := &Machine{options: o, statfs: statfs, hostname: os.Hostname, maxima: map[string]*procFile{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.cpu.file.path = m.proc("stat")
	m.disk.file.path = m.proc("diskstats")
	m.network.file.path = m.proc("net/dev")
	m.memory.file.path = m.proc("meminfo")
	m.swaps.file.path = m.proc("swaps")
	m.vmstat.file.path = m.proc("vmstat")
	m.load.file.path = m.proc("loadavg")
	for i, name := range pressureNames {
		m.pressure[i].file.path = m.proc("pressure/" + name)
	}
	m.mounts.file.path = m.proc("self/mountinfo")
	m.uptime.path = m.proc("uptime")
	return m
}

func (m *Machine) proc(name string) string { return filepath.Join(m.options.Proc, name) }
func (m *Machine) sys(name string) string  { return filepath.Join(m.options.Sys, name) }

// Tick begins a new moment: what checks read from now on is read afresh. Averages such as those of system.cpu.util are
// made from ticks, so Tick should come once a second.
func (m *Machine) Tick(now time.Time) {
	if m.tick > 0 {
		m.since = now.Sub(m.at).Seconds()
	}
	m.tick++
	m.at = now
	m.cpu.sample(m)
	m.disk.sample(m)
}

// Stop ends slow checks that are under way; they fail. It may be called from any goroutine.
func (m *Machine) Stop() { m.cancel() }

// Close closes the files. No check may be under way but slow ones, which it ends.
func (m *Machine) Close() error {
	m.cancel()
	m.cpu.file.close()
	m.disk.file.close()
	m.network.file.close()
	m.memory.file.close()
	m.swaps.file.close()
	m.vmstat.file.close()
	m.load.file.close()
	for i := range m.pressure {
		m.pressure[i].file.close()
	}
	m.mounts.file.close()
	m.uptime.close()
	for _, f := range m.maxima {
		f.close()
	}
	return nil
}

// source is what all kernel files that are parsed once per tick share.
type source struct {
	file procFile
	tick uint64
	err  error
}

// fresh reports whether the source was read in this tick; if not, the caller must read it now.
func (s *source) fresh(m *Machine) bool {
	if s.tick == m.tick {
		return true
	}
	s.tick = m.tick
	return false
}
