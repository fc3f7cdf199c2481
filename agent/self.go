package agent

import (
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tidemark/agent/key"
)

// self measures the agent itself. It belongs to the collector's goroutine.
type self struct {
	agent *Agent

	cpuAt   time.Time
	cpuUsed time.Duration
	cpu     float64
}

// selfItem is a key of the agent itself.
type selfItem struct {
	key, name, units string
	counter          bool
	measure          func(*self) (key.Value, error)
}

// selfItems are the keys of the agent itself.
var selfItems = []selfItem{
	{"agent.cpu.util", "Agent: CPU use of its process, of one core", "%", false, (*self).cpuUtil},
	{"agent.memory", "Agent: memory of its process", "B", false, (*self).memory},
	{"agent.items", "Agent: items", "", false, func(s *self) (key.Value, error) {
		return key.Uint(uint64(s.agent.stats.items.Load())), nil
	}},
	{"agent.collect.time", "Agent: time that the tick before took", "s", false, func(s *self) (key.Value, error) {
		return key.Float(math.Round(float64(s.agent.stats.collectNanos.Load())/1e3) / 1e6), nil
	}},
	{"agent.buffer[rows]", "Agent: values that wait for the server", "", false, func(s *self) (key.Value, error) {
		return key.Uint(s.agent.buffer.stats().rows), nil
	}},
	{"agent.buffer[bytes]", "Agent: disk that waiting values take", "B", false, func(s *self) (key.Value, error) {
		return key.Uint(uint64(s.agent.buffer.stats().diskBytes)), nil
	}},
	{"agent.buffer[dropped]", "Agent: values dropped because the buffer was full", "", true, func(s *self) (key.Value, error) {
		return key.Uint(s.agent.stats.dropped.Load()), nil
	}},
	{"agent.ticks[missed]", "Agent: ticks missed", "", true, func(s *self) (key.Value, error) {
		return key.Uint(s.agent.stats.missed.Load()), nil
	}},
}

// measure returns the function of a key of the agent itself, or nil.
func (s *self) measure(text string) func() (key.Value, error) {
	for _, i := range selfItems {
		if i.key == text {
			return func() (key.Value, error) { return i.measure(s) }
		}
	}
	return nil
}

// cpuUtil is the CPU time of this process since the last call, in per cent of one core.
func (s *self) cpuUtil() (key.Value, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return key.Value{}, err
	}
	used := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	now := time.Now()
	since, before := now.Sub(s.cpuAt), s.cpuUsed
	first := s.cpuAt.IsZero()
	if !first && since < 100*time.Millisecond {
		return key.Float(s.cpu), nil // Asked for twice in one tick.
	}
	s.cpuAt, s.cpuUsed = now, used
	if first {
		return key.Value{}, key.ErrNotYet
	}
	s.cpu = math.Round(float64(used-before)/float64(since)*1e6) / 1e4
	return key.Float(s.cpu), nil
}

// memory is the resident memory of this process.
func (s *self) memory() (key.Value, error) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return key.Value{}, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return key.Value{}, key.ErrNotYet
	}
	pages, err := strconv.ParseUint(fields[1], 10, 40)
	return key.Uint(pages * uint64(os.Getpagesize())), err
}
