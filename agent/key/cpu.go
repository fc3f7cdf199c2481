package key

import (
	"bytes"
	"runtime"
	"strconv"
	"time"
)

// maxCPUs bounds the processor numbers that are believed.
const maxCPUs = 4096

// The CPU times of /proc/stat, in its order. See proc_stat(5).
const (
	cpuUser = iota
	cpuNice
	cpuSystem
	cpuIdle
	cpuIOWait
	cpuIRQ
	cpuSoftIRQ
	cpuSteal
	cpuGuest
	cpuGuestNice
	cpuTimes
)

// cpuModes are the names of the times in keys. "used" is ours: everything but idle and iowait.
var cpuModes = map[string]int{
	"user": cpuUser, "nice": cpuNice, "system": cpuSystem, "idle": cpuIdle, "iowait": cpuIOWait,
	"interrupt": cpuIRQ, "irq": cpuIRQ, "softirq": cpuSoftIRQ, "steal": cpuSteal,
	"guest": cpuGuest, "guest_nice": cpuGuestNice, "used": cpuTimes,
}

// times are the jiffies of one processor, or of all.
type times [cpuTimes]uint64

// core is what is kept of one processor. The first of cpuSource.cores stands for all of them.
type core struct {
	now, last      times
	tick, lastTick uint64
	at, lastAt     time.Time
	window         window[times]
}

type cpuSource struct {
	source
	cores                    []*core // index is number+1
	intr, ctxt, btime, forks uint64
	running, blocked         uint64
	online                   int
}

func (s *cpuSource) load(m *Machine) error {
	if s.fresh(m) {
		return s.err
	}
	b, err := s.file.read()
	if err == nil {
		err = s.parse(b, m.tick, m.at)
	}
	s.err = err
	return err
}

// sample keeps the tick's times for the averages.
func (s *cpuSource) sample(m *Machine) {
	if s.load(m) != nil {
		return
	}
	for _, c := range s.cores {
		if c != nil && c.tick == m.tick {
			c.window.put(c.at, c.now)
		}
	}
}

func (s *cpuSource) parse(b []byte, tick uint64, at time.Time) error {
	s.online = 0
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		name, rest := cutField(line)
		if number, ok := cpuNumber(name); ok {
			s.parseCPU(number, rest, tick, at)
			continue
		}
		v, _, ok := cutUint(rest)
		if !ok {
			continue
		}
		switch string(name) {
		case "intr":
			s.intr = v
		case "ctxt":
			s.ctxt = v
		case "btime":
			s.btime = v
		case "processes":
			s.forks = v
		case "procs_running":
			s.running = v
		case "procs_blocked":
			s.blocked = v
		}
	}
	if len(s.cores) == 0 || s.cores[0] == nil || s.cores[0].tick != tick {
		return reason("Cannot obtain CPU information: no line for all processors.")
	}
	return nil
}

// cpuNumber reads "cpu" as -1 and "cpu12" as 12.
func cpuNumber(name []byte) (int, bool) {
	digits, ok := bytes.CutPrefix(name, []byte("cpu"))
	if !ok {
		return 0, false
	}
	if len(digits) == 0 {
		return -1, true
	}
	v, ok := parseUint(digits)
	return int(v), ok && v < maxCPUs
}

func (s *cpuSource) parseCPU(number int, rest []byte, tick uint64, at time.Time) {
	var t times
	for i := range t {
		v, next, ok := cutUint(rest)
		if !ok {
			if i < cpuIOWait { // The first four have been there since the first kernels.
				return
			}
			break
		}
		t[i], rest = v, next
	}
	// The kernel counts guest time in user time as well.
	t[cpuUser] -= min(t[cpuUser], t[cpuGuest])
	t[cpuNice] -= min(t[cpuNice], t[cpuGuestNice])
	for len(s.cores) < number+2 {
		s.cores = append(s.cores, nil)
	}
	c := s.cores[number+1]
	if c == nil {
		c = &core{}
		s.cores[number+1] = c
	}
	if c.tick == tick {
		return // A second line of the same name.
	}
	c.last, c.lastTick, c.lastAt = c.now, c.tick, c.at
	c.now, c.tick, c.at = t, tick, at
	if number >= 0 {
		s.online++
	}
}

// CPUs returns the numbers of the processors that are online, rising.
func (m *Machine) CPUs() []int {
	if m.cpu.load(m) != nil {
		return nil
	}
	var numbers []int
	for i, c := range m.cpu.cores {
		if i > 0 && c != nil && c.tick == m.tick {
			numbers = append(numbers, i-1)
		}
	}
	return numbers
}

// util returns the share of a mode over span, or since the tick before when span is zero.
func (m *Machine) util(number, mode int, span time.Duration) (Value, error) {
	if err := m.cpu.load(m); err != nil {
		return Value{}, err
	}
	if number+1 >= len(m.cpu.cores) || m.cpu.cores[number+1] == nil || m.cpu.cores[number+1].tick != m.tick {
		return Value{}, errNoCPU
	}
	c := m.cpu.cores[number+1]
	before := c.last
	if span > 0 {
		at, sample, ok := c.window.before(c.at, span)
		if !ok || at.Equal(c.at) {
			return Value{}, ErrNotYet
		}
		before = sample
	} else if c.lastTick != m.tick-1 || c.lastTick == 0 {
		return Value{}, ErrNotYet
	}
	var total, part uint64
	for i := range c.now {
		// iowait may go back, see proc_stat(5); so may all of them after a processor was off.
		d := c.now[i] - min(c.now[i], before[i])
		total += d
		if i == mode || mode == cpuTimes && i != cpuIdle && i != cpuIOWait {
			part += d
		}
	}
	if total == 0 {
		return Value{}, ErrNotYet
	}
	return percent(float64(part), float64(total)), nil
}

func compileCPUUtil(m *Machine, k Key, c *Check) error {
	number := -1
	if text := k.Param(0, "all"); text != "all" {
		v, err := strconv.ParseUint(text, 10, 16)
		if err != nil || v >= maxCPUs {
			return errFirst
		}
		number = int(v)
	}
	mode, ok := cpuModes[k.Param(1, "user")]
	if !ok {
		return errSecond
	}
	span, ok := averageMode(k.Param(2, "avg1"))
	if !ok {
		return errThird
	}
	if k.Param(3, "logical") != "logical" {
		return errFourth
	}
	c.float("%", func() (Value, error) { return m.util(number, mode, span) })
	return nil
}

func compileCPUNum(m *Machine, k Key, c *Check) error {
	switch k.Param(0, "online") {
	case "online":
		c.uint("", func() (uint64, error) { return uint64(m.cpu.online), m.cpu.load(m) })
	case "max":
		c.uint("", func() (uint64, error) { return uint64(max(len(m.cpu.cores)-1, runtime.NumCPU())), m.cpu.load(m) })
	default:
		return errFirst
	}
	return nil
}

// compileCPUCounter makes the keys that are one counter of /proc/stat.
func compileCPUCounter(pick func(*cpuSource) uint64) compiler {
	return func(m *Machine, _ Key, c *Check) error {
		c.counter("", func() (uint64, error) {
			err := m.cpu.load(m)
			return pick(&m.cpu), err
		})
		return nil
	}
}

// compileProcs makes system.procs[running|blocked|forks], our own: what /proc/stat says without a look at every process.
func compileProcs(m *Machine, k Key, c *Check) error {
	switch k.Param(0, "running") {
	case "running":
		c.uint("", func() (uint64, error) { err := m.cpu.load(m); return m.cpu.running, err })
	case "blocked":
		c.uint("", func() (uint64, error) { err := m.cpu.load(m); return m.cpu.blocked, err })
	case "forks":
		c.counter("", func() (uint64, error) { err := m.cpu.load(m); return m.cpu.forks, err })
	default:
		return errFirst
	}
	return nil
}

func compileBootTime(m *Machine, _ Key, c *Check) error {
	c.uint("unixtime", func() (uint64, error) { err := m.cpu.load(m); return m.cpu.btime, err })
	return nil
}

type loadSource struct {
	source
	average [3]float64
}

func (s *loadSource) load(m *Machine) error {
	if s.fresh(m) {
		return s.err
	}
	b, err := s.file.read()
	if err == nil && !s.parse(b) {
		err = reason("Cannot obtain load averages: /proc/loadavg is not as expected.")
	}
	s.err = err
	return err
}

func (s *loadSource) parse(b []byte) bool {
	b, _ = cutLine(b)
	for i := range s.average {
		field, rest := cutField(b)
		v, ok := parseFixed(field)
		if !ok {
			return false
		}
		s.average[i], b = v, rest
	}
	return true
}

func compileLoad(m *Machine, k Key, c *Check) error {
	perCPU := k.Param(0, "all") == "percpu"
	if !perCPU && k.Param(0, "all") != "all" {
		return errFirst
	}
	span, ok := averageMode(k.Param(1, "avg1"))
	if !ok || span == 0 {
		return errSecond
	}
	i := map[time.Duration]int{time.Minute: 0, 5 * time.Minute: 1, 15 * time.Minute: 2}[span]
	c.float("", func() (Value, error) {
		if err := m.load.load(m); err != nil {
			return Value{}, err
		}
		if !perCPU {
			return Float(m.load.average[i]), nil
		}
		if err := m.cpu.load(m); err != nil {
			return Value{}, err
		}
		return Float(m.load.average[i] / float64(max(m.cpu.online, 1))), nil
	})
	return nil
}
