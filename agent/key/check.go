package key

import (
	"time"

	"tidemark/model"
)

// Check is a compiled key.
type Check struct {
	Key  string
	Type model.ValueType
	// Units are as in Zabbix: "B", "%", "s", "unixtime", "uptime", or "".
	Units string
	// Counter says that the value only rises until the machine starts again; its rate is what people want to see.
	Counter bool
	// Slow checks may take up to seconds and may be measured from any goroutine, but not twice at a time. All others
	// take microseconds and belong to the machine's goroutine.
	Slow bool

	measure func() (Value, error)
}

// Measure takes the value of the machine's present tick. The error's text is the reason that an item's state shows.
func (c *Check) Measure() (Value, error) { return c.measure() }

func (c *Check) float(units string, f func() (Value, error)) {
	c.Type, c.Units, c.measure = model.Float, units, f
}

func (c *Check) uint(units string, f func() (uint64, error)) {
	c.Type, c.Units = model.Uint, units
	c.measure = func() (Value, error) {
		v, err := f()
		return Uint(v), err
	}
}

func (c *Check) counter(units string, f func() (uint64, error)) {
	c.uint(units, f)
	c.Counter = true
}

func (c *Check) text(f func() (string, error)) {
	c.Type = model.Text
	c.measure = func() (Value, error) {
		s, err := f()
		return Text(s), err
	}
}

// compiler fills in a check for a key whose name and number of parameters are right.
type compiler func(m *Machine, k Key, c *Check) error

// definition is one key name.
type definition struct {
	maxParams int
	compile   compiler
}

// definitions are all keys that can be measured. docs/user/agent.md lists them for people.
var definitions = map[string]definition{
	"agent.ping":     {0, compilePing},
	"agent.version":  {0, compileVersion},
	"agent.hostname": {0, compileAgentHostname},

	"system.cpu.util":     {4, compileCPUUtil},
	"system.cpu.num":      {1, compileCPUNum},
	"system.cpu.load":     {2, compileLoad},
	"system.cpu.switches": {0, compileCPUCounter(func(s *cpuSource) uint64 { return s.ctxt })},
	"system.cpu.intr":     {0, compileCPUCounter(func(s *cpuSource) uint64 { return s.intr })},
	"system.procs":        {1, compileProcs},
	"system.boottime":     {0, compileBootTime},
	"system.uptime":       {0, compileUptime},
	"system.localtime":    {1, compileLocalTime},
	"system.uname":        {0, compileUname},
	"system.hostname":     {2, compileHostname},
	"system.sw.arch":      {0, compileArch},
	"system.sw.os":        {1, compileOS},
	"system.users.num":    {0, compileUsers},
	"system.pressure":     {3, compilePressure},
	"kernel.maxproc":      {0, compileMaximum("sys/kernel/pid_max", 0)},
	"kernel.maxfiles":     {0, compileMaximum("sys/fs/file-max", 0)},
	"kernel.openfiles":    {0, compileMaximum("sys/fs/file-nr", 0)},

	"vm.memory.size":   {1, compileMemory},
	"vm.faults":        {1, compileFaults},
	"vm.oom":           {0, compileOOM},
	"system.swap.size": {2, compileSwapSize},
	"system.swap.in":   {2, compileSwapFlow(func(s *vmstatSource) uint64 { return s.swapIn })},
	"system.swap.out":  {2, compileSwapFlow(func(s *vmstatSource) uint64 { return s.swapOut })},

	"vfs.fs.size":         {2, compileFSSize},
	"vfs.fs.inode":        {2, compileFSInode},
	"vfs.fs.discovery":    {0, compileFSDiscovery},
	"vfs.dev.discovery":   {0, compileDiskDiscovery},
	"vfs.dev.read":        {3, compileDiskFlow(func(d *diskTimes) *diskFlow { return &d.read })},
	"vfs.dev.write":       {3, compileDiskFlow(func(d *diskTimes) *diskFlow { return &d.write })},
	"vfs.dev.read.await":  {1, compileDiskAwait(func(d *diskTimes) *diskFlow { return &d.read })},
	"vfs.dev.write.await": {1, compileDiskAwait(func(d *diskTimes) *diskFlow { return &d.write })},
	"vfs.dev.util":        {1, compileDiskUtil},
	"vfs.dev.queue":       {1, compileDiskQueue},

	"net.if.in":         {2, compileNet(func(d *interfaceCounters, mode string) []*uint64 { return d.pick(mode, true, false) })},
	"net.if.out":        {2, compileNet(func(d *interfaceCounters, mode string) []*uint64 { return d.pick(mode, false, true) })},
	"net.if.total":      {2, compileNet(func(d *interfaceCounters, mode string) []*uint64 { return d.pick(mode, true, true) })},
	"net.if.collisions": {1, compileCollisions},
	"net.if.discovery":  {0, compileNetDiscovery},
	"net.if.list":       {0, compileNetList},
	"net.tcp.listen":    {1, compileListen("net/tcp", "net/tcp6", 0x0A)},
	"net.udp.listen":    {1, compileListen("net/udp", "net/udp6", 0x07)},
	"net.tcp.port":      {2, compilePort},

	"proc.num": {5, compileProcNum},
	"proc.mem": {5, compileProcMem},

	"vfs.file.exists":   {3, compileFileExists},
	"vfs.file.size":     {2, compileFileSize},
	"vfs.file.time":     {2, compileFileTime},
	"vfs.file.contents": {2, compileFileContents},
	"vfs.file.regmatch": {5, compileFileMatch},
	"vfs.file.cksum":    {2, compileFileChecksum},
	"vfs.file.md5sum":   {1, compileFileMD5},
}

// Compile makes a check of a key. The errors are those of the key itself; a device that is not there shows when it is
// measured. The check stays valid until the machine is closed.
func (m *Machine) Compile(text string) (*Check, error) {
	k, err := Parse(text)
	if err != nil {
		return nil, err
	}
	d, ok := definitions[k.Name]
	if !ok {
		return nil, ErrUnsupportedKey
	}
	if len(k.Params) > d.maxParams && !(d.maxParams == 0 && len(k.Params) == 1 && k.Params[0].Text == "") {
		if d.maxParams == 0 {
			return nil, errNoParams
		}
		return nil, ErrTooManyParams
	}
	for i, p := range k.Params {
		if p.IsArray {
			return nil, [...]error{errFirst, errSecond, errThird, errFourth, errFifth}[min(i, 4)]
		}
	}
	c := &Check{Key: text}
	if err := d.compile(m, k, c); err != nil {
		return nil, err
	}
	return c, nil
}

// Names returns the names of all keys, in no order.
func Names() []string {
	names := make([]string, 0, len(definitions))
	for name := range definitions {
		names = append(names, name)
	}
	return names
}

// MeasureOnce compiles and measures a key by itself, as agents do for a test. A key that compares two moments takes
// about a second.
func MeasureOnce(o Options, text string) (*Check, Value, error) {
	m := NewMachine(o)
	defer m.Close()
	m.Tick(time.Now())
	c, err := m.Compile(text)
	if err != nil {
		return nil, Value{}, err
	}
	v, err := c.Measure()
	if err == ErrNotYet { //nolint:errorlint // It is never wrapped.
		time.Sleep(time.Second)
		m.Tick(time.Now())
		v, err = c.Measure()
	}
	return c, v, err
}
