package key

import (
	"bytes"
	"strings"
)

// meminfo are the lines of /proc/meminfo that keys use, in bytes.
type meminfo struct {
	total, free, available, buffers, cached, shared     uint64
	active, inactive, slab, anon, dirty, writeback      uint64
	mapped, committed, commitLimit, swapTotal, swapFree uint64
	hasAvailable                                        bool
}

type memorySource struct {
	source
	info meminfo
}

func (s *memorySource) load(m *Machine) error {
	if s.fresh(m) {
		return s.err
	}
	b, err := s.file.read()
	if err == nil {
		s.info = parseMeminfo(b)
		if s.info.total == 0 {
			err = reason("Cannot obtain memory information: no MemTotal in /proc/meminfo.")
		}
	}
	s.err = err
	return err
}

func parseMeminfo(b []byte) (info meminfo) {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		name, rest := cutField(line)
		v, _, ok := cutUint(rest)
		if field := info.field(name); ok && field != nil && v < 1<<54 {
			*field = v << 10 // "kB" there is 1024 bytes.
		}
	}
	if !info.hasAvailable { // Kernels before 3.14.
		info.available = info.free + info.buffers + info.cached
	}
	return info
}

func (i *meminfo) field(name []byte) *uint64 {
	switch string(name) {
	case "MemTotal:":
		return &i.total
	case "MemFree:":
		return &i.free
	case "MemAvailable:":
		i.hasAvailable = true
		return &i.available
	case "Buffers:":
		return &i.buffers
	case "Cached:":
		return &i.cached
	case "Shmem:":
		return &i.shared
	case "Active:":
		return &i.active
	case "Inactive:":
		return &i.inactive
	case "Slab:":
		return &i.slab
	case "AnonPages:":
		return &i.anon
	case "Dirty:":
		return &i.dirty
	case "Writeback:":
		return &i.writeback
	case "Mapped:":
		return &i.mapped
	case "Committed_AS:":
		return &i.committed
	case "CommitLimit:":
		return &i.commitLimit
	case "SwapTotal:":
		return &i.swapTotal
	case "SwapFree:":
		return &i.swapFree
	}
	return nil
}

// memoryModes are the modes of vm.memory.size that give bytes. From dirty on they are ours.
var memoryModes = map[string]func(*meminfo) uint64{
	"total":        func(i *meminfo) uint64 { return i.total },
	"free":         func(i *meminfo) uint64 { return i.free },
	"used":         func(i *meminfo) uint64 { return i.total - min(i.total, i.free) },
	"available":    func(i *meminfo) uint64 { return i.available },
	"buffers":      func(i *meminfo) uint64 { return i.buffers },
	"cached":       func(i *meminfo) uint64 { return i.cached },
	"shared":       func(i *meminfo) uint64 { return i.shared },
	"active":       func(i *meminfo) uint64 { return i.active },
	"inactive":     func(i *meminfo) uint64 { return i.inactive },
	"slab":         func(i *meminfo) uint64 { return i.slab },
	"anon":         func(i *meminfo) uint64 { return i.anon },
	"dirty":        func(i *meminfo) uint64 { return i.dirty },
	"writeback":    func(i *meminfo) uint64 { return i.writeback },
	"mapped":       func(i *meminfo) uint64 { return i.mapped },
	"committed":    func(i *meminfo) uint64 { return i.committed },
	"commit_limit": func(i *meminfo) uint64 { return i.commitLimit },
}

func compileMemory(m *Machine, k Key, c *Check) error {
	mode := k.Param(0, "total")
	if pick, ok := memoryModes[mode]; ok {
		c.uint("B", func() (uint64, error) { err := m.memory.load(m); return pick(&m.memory.info), err })
		return nil
	}
	if mode != "pused" && mode != "pavailable" {
		return errFirst
	}
	pick := memoryModes[mode[1:]]
	c.float("%", func() (Value, error) {
		if err := m.memory.load(m); err != nil {
			return Value{}, err
		}
		return percent(float64(pick(&m.memory.info)), float64(m.memory.info.total)), nil
	})
	return nil
}

// swapArea is one line of /proc/swaps, in bytes.
type swapArea struct {
	name        string
	total, used uint64
}

type swapSource struct {
	source
	areas []swapArea
}

func (s *swapSource) load(m *Machine) error {
	if s.fresh(m) {
		return s.err
	}
	b, err := s.file.read()
	if err == nil {
		s.areas = parseSwaps(b, s.areas[:0])
	}
	s.err = err
	return err
}

func parseSwaps(b []byte, areas []swapArea) []swapArea {
	_, b = cutLine(b) // The heading.
	for len(b) > 0 && len(areas) < 1024 {
		var line []byte
		line, b = cutLine(b)
		name, rest := cutField(line)
		_, rest = cutField(rest)
		total, rest, ok := cutUint(rest)
		used, _, usedOK := cutUint(rest)
		if ok && usedOK && total < 1<<54 && used <= total {
			areas = append(areas, swapArea{unescapeMount(name), total << 10, used << 10})
		}
	}
	return areas
}

// swap returns the size and use of one area, or of all when device is empty.
func (m *Machine) swap(device string) (total, free uint64, err error) {
	if device == "" {
		if err := m.memory.load(m); err != nil {
			return 0, 0, err
		}
		return m.memory.info.swapTotal, min(m.memory.info.swapFree, m.memory.info.swapTotal), nil
	}
	if err := m.swaps.load(m); err != nil {
		return 0, 0, err
	}
	for _, a := range m.swaps.areas {
		if a.name == device || strings.TrimPrefix(a.name, "/dev/") == device {
			return a.total, a.total - a.used, nil
		}
	}
	return 0, 0, errNoDevice
}

func compileSwapSize(m *Machine, k Key, c *Check) error {
	device := k.Param(0, "all")
	if device == "all" {
		device = ""
	}
	switch mode := k.Param(1, "free"); mode {
	case "free":
		c.uint("B", func() (uint64, error) { _, free, err := m.swap(device); return free, err })
	case "total":
		c.uint("B", func() (uint64, error) { total, _, err := m.swap(device); return total, err })
	case "used":
		c.uint("B", func() (uint64, error) { total, free, err := m.swap(device); return total - free, err })
	case "pfree", "pused":
		c.float("%", func() (Value, error) {
			total, free, err := m.swap(device)
			if err != nil {
				return Value{}, err
			}
			if total == 0 { // Without swap none is used.
				total, free = 1, 1
			}
			if mode == "pfree" {
				return percent(float64(free), float64(total)), nil
			}
			return percent(float64(total-free), float64(total)), nil
		})
	default:
		return errSecond
	}
	return nil
}

type vmstatSource struct {
	source
	swapIn, swapOut         uint64 // pages
	pageFaults, majorFaults uint64
	oomKills                uint64
}

func (s *vmstatSource) load(m *Machine) error {
	if s.fresh(m) {
		return s.err
	}
	b, err := s.file.read()
	if err == nil {
		s.parse(b)
	}
	s.err = err
	return err
}

func (s *vmstatSource) parse(b []byte) {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		if !bytes.HasPrefix(line, []byte("p")) && !bytes.HasPrefix(line, []byte("oom")) {
			continue
		}
		name, rest := cutField(line)
		v, _, ok := cutUint(rest)
		if !ok {
			continue
		}
		switch string(name) {
		case "pswpin":
			s.swapIn = v
		case "pswpout":
			s.swapOut = v
		case "pgfault":
			s.pageFaults = v
		case "pgmajfault":
			s.majorFaults = v
		case "oom_kill":
			s.oomKills = v
		}
	}
}

// compileSwapFlow makes system.swap.in and system.swap.out. Only the pages of all areas together are known to Linux.
func compileSwapFlow(pick func(*vmstatSource) uint64) compiler {
	return func(m *Machine, k Key, c *Check) error {
		if k.Param(0, "all") != "all" {
			return errFirst
		}
		if k.Param(1, "pages") != "pages" {
			return errSecond
		}
		c.counter("pages", func() (uint64, error) { err := m.vmstat.load(m); return pick(&m.vmstat), err })
		return nil
	}
}

// compileFaults makes vm.faults[all|major] and vm.oom, our own.
func compileFaults(m *Machine, k Key, c *Check) error {
	switch k.Param(0, "all") {
	case "all":
		c.counter("", func() (uint64, error) { err := m.vmstat.load(m); return m.vmstat.pageFaults, err })
	case "major":
		c.counter("", func() (uint64, error) { err := m.vmstat.load(m); return m.vmstat.majorFaults, err })
	default:
		return errFirst
	}
	return nil
}

func compileOOM(m *Machine, _ Key, c *Check) error {
	c.counter("", func() (uint64, error) { err := m.vmstat.load(m); return m.vmstat.oomKills, err })
	return nil
}
