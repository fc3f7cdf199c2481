package key

import (
	"encoding/json"
	"math"
	"os"
	"sort"
	"strings"
)

// maxDevices bounds the block devices and the network interfaces that are kept.
const maxDevices = 4096

// sectorBytes is the unit of /proc/diskstats whatever the device's own sectors are.
const sectorBytes = 512

// diskFlow are the counters of one direction.
type diskFlow struct{ operations, sectors, millis uint64 }

// diskTimes are the counters of one device. See Documentation/admin-guide/iostats.rst of the kernel.
type diskTimes struct {
	read, write            diskFlow
	inProgress             uint64
	busyMillis, waitMillis uint64
}

func (d *diskTimes) add(o *diskTimes) {
	d.read.add(o.read)
	d.write.add(o.write)
	d.inProgress += o.inProgress
	d.busyMillis += o.busyMillis
	d.waitMillis += o.waitMillis
}

func (f *diskFlow) add(o diskFlow) {
	f.operations += o.operations
	f.sectors += o.sectors
	f.millis += o.millis
}

// device is what is kept of one block device.
type device struct {
	name           string
	whole          bool // a disk of its own, no partition
	now, last      diskTimes
	tick, lastTick uint64
	window         *window[diskTimes] // only where an average was asked for
}

type diskSource struct {
	source
	devices map[string]*device
	order   []*device // as in the file
	all     device    // the sum of whole, not stacked devices
}

func (s *diskSource) load(m *Machine) error {
	if s.fresh(m) {
		return s.err
	}
	b, err := s.file.read()
	if err == nil {
		s.parse(b, m)
	}
	s.err = err
	return err
}

// sample reads the devices at each tick once some key has asked for one, so that differences are over one tick.
func (s *diskSource) sample(m *Machine) {
	if s.devices == nil || s.load(m) != nil {
		return
	}
	for _, d := range s.order {
		if d.window != nil {
			d.window.put(m.at, d.now)
		}
	}
	if s.all.window != nil {
		s.all.window.put(m.at, s.all.now)
	}
}

func (s *diskSource) parse(b []byte, m *Machine) {
	if s.devices == nil {
		s.devices = map[string]*device{}
	}
	s.order = s.order[:0]
	var sum diskTimes
	for len(b) > 0 && len(s.order) < maxDevices {
		var line []byte
		line, b = cutLine(b)
		name, t, ok := parseDiskLine(line)
		if !ok {
			continue
		}
		d := s.devices[string(name)]
		if d == nil {
			d = &device{name: string(name)}
			d.whole = m.isWholeDisk(d.name)
			s.devices[d.name] = d
		}
		if d.tick == m.tick {
			continue
		}
		d.advance(t, m.tick)
		s.order = append(s.order, d)
		if d.whole && !stacked(d.name) && !virtualDisk(d.name) {
			sum.add(&t)
		}
	}
	s.all.advance(sum, m.tick)
	if len(s.devices) > 2*len(s.order)+16 {
		for name, d := range s.devices { // Devices come and go; those long gone are forgotten.
			if d.tick != m.tick {
				delete(s.devices, name)
			}
		}
	}
}

func (d *device) advance(t diskTimes, tick uint64) {
	d.last, d.lastTick = d.now, d.tick
	d.now, d.tick = t, tick
}

// parseDiskLine reads: major minor name, then at least eleven counters.
func parseDiskLine(line []byte) (name []byte, t diskTimes, ok bool) {
	_, line = cutField(line)
	_, line = cutField(line)
	name, line = cutField(line)
	var merged uint64
	for _, field := range [...]*uint64{
		&t.read.operations, &merged, &t.read.sectors, &t.read.millis,
		&t.write.operations, &merged, &t.write.sectors, &t.write.millis,
		&t.inProgress, &t.busyMillis, &t.waitMillis,
	} {
		if *field, line, ok = cutUint(line); !ok {
			return nil, t, false
		}
	}
	return name, t, len(name) > 0 && len(name) <= 64
}

func (m *Machine) isWholeDisk(name string) bool {
	_, err := os.Stat(m.sys("block/" + strings.ReplaceAll(name, "/", "!")))
	return err == nil
}

// stacked reports whether a device lies on other devices, whose traffic it repeats.
func stacked(name string) bool {
	return strings.HasPrefix(name, "dm-") || strings.HasPrefix(name, "md")
}

// virtualDisk reports whether a device is no disk that people watch.
func virtualDisk(name string) bool {
	for _, prefix := range [...]string{"loop", "ram", "zram", "fd", "sr"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return true
		}
	}
	return false
}

// device returns a device that is there now. Name may begin with /dev/; "all" is the sum.
func (m *Machine) device(name string) (*device, error) {
	if err := m.disk.load(m); err != nil {
		return nil, err
	}
	if name == "all" {
		return &m.disk.all, nil
	}
	d := m.disk.devices[strings.TrimPrefix(name, "/dev/")]
	if d == nil || d.tick != m.tick {
		return nil, errNoDisk
	}
	return d, nil
}

// moved returns a device whose last sample is that of the tick before.
func (m *Machine) moved(name string) (*device, error) {
	d, err := m.device(name)
	if err == nil && (d.lastTick == 0 || d.lastTick != m.tick-1 || m.since <= 0) {
		return nil, ErrNotYet
	}
	return d, err
}

// rise is a counter's increase; a counter that went back began again at zero.
func rise(now, before uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

// compileDiskFlow makes vfs.dev.read and vfs.dev.write. The types bytes, bps and time are ours on Linux.
func compileDiskFlow(pick func(*diskTimes) *diskFlow) compiler {
	return func(m *Machine, k Key, c *Check) error {
		name := k.Param(0, "all")
		counter := func(units string, field func(*diskFlow) uint64) {
			c.counter(units, func() (uint64, error) {
				d, err := m.device(name)
				if err != nil {
					return 0, err
				}
				return field(pick(&d.now)), nil
			})
		}
		switch k.Param(1, "sps") {
		case "operations":
			counter("", func(f *diskFlow) uint64 { return f.operations })
		case "sectors":
			counter("", func(f *diskFlow) uint64 { return f.sectors })
		case "bytes":
			counter("B", func(f *diskFlow) uint64 { return f.sectors * sectorBytes })
		case "time":
			counter("ms", func(f *diskFlow) uint64 { return f.millis })
		case "ops":
			return compileDiskRate(m, k, c, "", func(t *diskTimes) uint64 { return pick(t).operations })
		case "sps":
			return compileDiskRate(m, k, c, "", func(t *diskTimes) uint64 { return pick(t).sectors })
		case "bps":
			return compileDiskRate(m, k, c, "Bps", func(t *diskTimes) uint64 { return pick(t).sectors * sectorBytes })
		default:
			return errSecond
		}
		if k.Param(2, "") != "" {
			return errThird // Averages are of rates only.
		}
		return nil
	}
}

func compileDiskRate(m *Machine, k Key, c *Check, units string, field func(*diskTimes) uint64) error {
	name := k.Param(0, "all")
	span, ok := averageMode(k.Param(2, "avg1"))
	if !ok {
		return errThird
	}
	c.float(units, func() (Value, error) {
		if span == 0 {
			d, err := m.moved(name)
			if err != nil {
				return Value{}, err
			}
			return Float(roundRate(float64(rise(field(&d.now), field(&d.last))) / m.since)), nil
		}
		d, err := m.device(name)
		if err != nil {
			return Value{}, err
		}
		if d.window == nil {
			d.window = &window[diskTimes]{}
			d.window.put(m.at, d.now)
		}
		at, before, _ := d.window.before(m.at, span)
		seconds := m.at.Sub(at).Seconds()
		if seconds < 0.5 {
			return Value{}, ErrNotYet
		}
		return Float(roundRate(float64(rise(field(&d.now), field(&before))) / seconds)), nil
	})
	return nil
}

// roundRate keeps three decimals: more would be noise of the clock.
func roundRate(v float64) float64 { return math.Round(v*1e3) / 1e3 }

// compileDiskAwait makes vfs.dev.read.await and vfs.dev.write.await: seconds per operation since the tick before.
func compileDiskAwait(pick func(*diskTimes) *diskFlow) compiler {
	return func(m *Machine, k Key, c *Check) error {
		name := k.Param(0, "all")
		c.float("s", func() (Value, error) {
			d, err := m.moved(name)
			if err != nil {
				return Value{}, err
			}
			now, last := pick(&d.now), pick(&d.last)
			operations := rise(now.operations, last.operations)
			if operations == 0 {
				return Float(0), nil
			}
			return Float(math.Round(float64(rise(now.millis, last.millis))/float64(operations)*1e3) / 1e6), nil
		})
		return nil
	}
}

// compileDiskUtil makes vfs.dev.util: the share of time since the tick before in which the device had work.
func compileDiskUtil(m *Machine, k Key, c *Check) error {
	name := k.Param(0, "all")
	if name == "all" {
		return errFirst // A sum over devices would say nothing.
	}
	c.float("%", func() (Value, error) {
		d, err := m.moved(name)
		if err != nil {
			return Value{}, err
		}
		busy := float64(rise(d.now.busyMillis, d.last.busyMillis)) / 1e3
		return percent(min(busy, m.since), m.since), nil
	})
	return nil
}

// compileDiskQueue makes vfs.dev.queue: the mean number of requests at the device since the tick before.
func compileDiskQueue(m *Machine, k Key, c *Check) error {
	name := k.Param(0, "all")
	c.float("", func() (Value, error) {
		d, err := m.moved(name)
		if err != nil {
			return Value{}, err
		}
		return Float(roundRate(float64(rise(d.now.waitMillis, d.last.waitMillis)) / 1e3 / m.since)), nil
	})
	return nil
}

// Disks returns the names of the disks to watch: whole devices, no loop, RAM and removable media devices, and none
// that never did anything. Sorted; at most limit.
func (m *Machine) Disks(limit int) ([]string, error) {
	if err := m.disk.load(m); err != nil {
		return nil, err
	}
	var names []string
	for _, d := range m.disk.order {
		if d.whole && !virtualDisk(d.name) && d.now.read.operations+d.now.write.operations > 0 {
			names = append(names, d.name)
		}
	}
	sort.Strings(names)
	return names[:min(len(names), limit)], nil
}

func compileDiskDiscovery(m *Machine, _ Key, c *Check) error {
	c.text(func() (string, error) {
		if err := m.disk.load(m); err != nil {
			return "", err
		}
		rows := make([]map[string]string, 0, len(m.disk.order))
		for _, d := range m.disk.order {
			kind := "partition"
			if d.whole {
				kind = "disk"
			}
			rows = append(rows, map[string]string{"{#DEVNAME}": d.name, "{#DEVTYPE}": kind})
		}
		return marshal(rows)
	})
	return nil
}

func marshal(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}
