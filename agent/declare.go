package agent

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"tidemark/agent/key"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// The bounds of what is declared by itself.
const (
	maxDisks      = 64
	maxInterfaces = 64
	maxMounts     = 64
	// maxCores is up to how many processors each has all its modes; beyond, each has its use only.
	maxCores    = 64
	maxDeclared = 10_000
)

// The intervals of what changes seldom.
const (
	everyMinute = time.Minute
	everyHour   = time.Hour
)

// CounterLabel and CounterValue mark items whose value only rises, so that charts show their rate.
const (
	CounterLabel = "type"
	CounterValue = "counter"
)

// declarer makes the list of items to declare.
type declarer struct {
	collector *collector
	before    map[string]*planned
	asked     map[string]bool
	plans     []*planned
	section   string
}

// discover makes the list of declared items afresh. Items that were there before keep their plan; those of devices that
// went are not measured any more. Keys that the server asks for are left out.
func (c *collector) discover(now time.Time) {
	c.discovered = now
	d := declarer{collector: c, before: map[string]*planned{}, asked: map[string]bool{}}
	for _, p := range c.declared {
		d.before[p.item.key] = p
	}
	for _, p := range c.asked {
		d.asked[p.item.key] = true
	}
	d.system()
	d.processors()
	d.memory()
	d.pressure()
	err := cmp.Or(d.disks(), d.interfaces(), d.mounts())
	c.declared = d.plans
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if reason != "" && reason != c.reported {
		c.agent.log.Warn("not all devices of this machine can be found", "error", err)
	}
	c.reported = reason
}

// add declares one key. Labels are pairs of name and value. A key that this kernel cannot serve is left out.
func (d *declarer) add(text, name string, every time.Duration, labels ...string) {
	if d.asked[text] || len(d.plans) >= maxDeclared {
		return
	}
	if p := d.before[text]; p != nil {
		d.plans = append(d.plans, p)
		return
	}
	check, err := d.collector.agent.machine.Compile(text)
	if err != nil {
		return
	}
	if !check.Slow { // A kernel without the file would give nothing but failures.
		if _, err := check.Measure(); err != nil && err != key.ErrNotYet { //nolint:errorlint // It is never wrapped.
			return
		}
	}
	p := &planned{check: check, every: max(every, d.collector.agent.options.Interval)}
	p.item = d.item(text, name, p.every, check.Type, check.Units, check.Counter, labels)
	d.plans = append(d.plans, p)
}

func (d *declarer) item(text, name string, every time.Duration, t model.ValueType, units string, counter bool, labels []string) *item {
	declaration := &zbx.Declaration{Key: text, Name: name, Units: units, Type: t, Interval: every}
	for i := 0; i+1 < len(labels); i += 2 {
		declaration.Labels = append(declaration.Labels, model.Label{Name: labels[i], Value: labels[i+1]})
	}
	declaration.Labels = append(declaration.Labels, model.Label{Name: "section", Value: d.section})
	if counter {
		declaration.Labels = append(declaration.Labels, model.Label{Name: CounterLabel, Value: CounterValue})
	}
	slices.SortFunc(declaration.Labels, func(a, b model.Label) int { return cmp.Compare(a.Name, b.Name) })
	return &item{key: text, declaration: declaration}
}

func (d *declarer) system() {
	d.section = "system"
	d.add("agent.ping", "Agent answers", 0)
	d.add("system.uptime", "Uptime", 0)
	d.add("system.localtime", "Clock", 0)
	d.add("system.users.num", "Users logged in", everyMinute)
	d.add("kernel.openfiles", "Open files", 0)
	d.add("kernel.maxfiles", "Open files, limit", everyMinute)
	d.add("system.boottime", "Started at", everyMinute)
	d.add("system.uname", "Kernel and machine", everyHour)
	d.add("system.hostname", "Host name", everyHour)
	d.add("system.sw.os[name]", "Operating system", everyHour)
	d.add("system.sw.arch", "Architecture", everyHour)
	d.section = "agent"
	d.add("agent.version", "Agent: version", everyHour)
	d.add("agent.hostname", "Agent: host name", everyHour)
	for _, i := range selfItems {
		d.addSelf(i)
	}
	d.section = "process"
	d.add("proc.num[]", "Processes", 0)
	for _, kind := range [...][2]string{{"running", "Processes running"}, {"blocked", "Processes waiting for I/O"}, {"forks", "Processes started"}} {
		d.add("system.procs["+kind[0]+"]", kind[1], 0, "mode", kind[0])
	}
	d.add("proc.num[,,zomb]", "Processes that nobody has waited for", everyMinute, "mode", "zomb")
	d.add("kernel.maxproc", "Processes, limit", everyMinute)
}

func (d *declarer) addSelf(i selfItem) {
	if d.asked[i.key] {
		return
	}
	if p := d.before[i.key]; p != nil {
		d.plans = append(d.plans, p)
		return
	}
	p := &planned{self: d.collector.self.measure(i.key), every: d.collector.agent.options.Interval}
	t := model.Uint
	if i.units == "%" || i.units == "s" {
		t = model.Float
	}
	var labels []string
	if k, err := key.Parse(i.key); err == nil && len(k.Params) > 0 {
		labels = []string{"mode", k.Params[0].Text}
	}
	p.item = d.item(i.key, i.name, p.every, t, i.units, i.counter, labels)
	d.plans = append(d.plans, p)
}

// cpuModeNames are the modes of processors that are declared, with their names.
var cpuModeNames = [...][2]string{
	{"used", "used"},
	{"user", "user"},
	{"nice", "nice"},
	{"system", "system"},
	{"iowait", "waiting for I/O"},
	{"irq", "interrupts"},
	{"softirq", "soft interrupts"},
	{"steal", "stolen by the hypervisor"},
	{"guest", "guests"},
	{"idle", "idle"},
}

func (d *declarer) processors() {
	d.section = "cpu"
	for _, mode := range cpuModeNames {
		d.add("system.cpu.util[all,"+mode[0]+",last]", "CPU: "+mode[1], 0, "mode", mode[0])
	}
	for _, span := range [...][2]string{{"avg1", "1 min"}, {"avg5", "5 min"}, {"avg15", "15 min"}} {
		d.add("system.cpu.load[all,"+span[0]+"]", "Load average, "+span[1], 0, "mode", span[0])
	}
	d.add("system.cpu.num", "Processors online", everyMinute)
	d.add("system.cpu.switches", "Context switches", 0)
	d.add("system.cpu.intr", "Interrupts", 0)
	numbers := d.collector.agent.machine.CPUs()
	for _, number := range numbers {
		modes := cpuModeNames[:]
		if len(numbers) > maxCores {
			modes = modes[:1]
		}
		cpu := strconv.Itoa(number)
		for _, mode := range modes {
			d.add("system.cpu.util["+cpu+","+mode[0]+",last]", "CPU "+cpu+": "+mode[1], 0, "cpu", cpu, "mode", mode[0])
		}
	}
}

func (d *declarer) memory() {
	d.section = "memory"
	d.add("vm.memory.size[total]", "Memory: total", everyMinute, "mode", "total")
	for _, mode := range [...][2]string{
		{"available", "available"},
		{"free", "free"},
		{"buffers", "buffers"},
		{"cached", "page cache"},
		{"slab", "kernel objects"},
		{"anon", "of programs"},
		{"shared", "shared"},
		{"dirty", "to be written"},
		{"writeback", "being written"},
		{"committed", "promised"},
		{"pavailable", "available, share"},
	} {
		d.add("vm.memory.size["+mode[0]+"]", "Memory: "+mode[1], 0, "mode", mode[0])
	}
	d.add("vm.faults[major]", "Page faults that read from disk", 0, "mode", "major")
	d.add("vm.oom", "Processes killed for want of memory", 0)
	d.section = "swap"
	if v, err := d.collector.agent.measureNow("system.swap.size[,total]"); err != nil || v.Bits == 0 {
		return
	}
	d.add("system.swap.size[,total]", "Swap: total", everyMinute, "mode", "total")
	for _, mode := range [...][2]string{{"free", "free"}, {"used", "used"}, {"pfree", "free, share"}} {
		d.add("system.swap.size[,"+mode[0]+"]", "Swap: "+mode[1], 0, "mode", mode[0])
	}
	d.add("system.swap.in", "Pages read from swap", 0)
	d.add("system.swap.out", "Pages written to swap", 0)
}

// measureNow measures a key that is not slow. It belongs to the collector's goroutine.
func (a *Agent) measureNow(text string) (key.Value, error) {
	check, err := a.machine.Compile(text)
	if err != nil {
		return key.Value{}, err
	}
	return check.Measure()
}

func (d *declarer) pressure() {
	d.section = "pressure"
	for _, resource := range [...][2]string{{"cpu", "the processor"}, {"memory", "memory"}, {"io", "I/O"}} {
		for _, kind := range [...][2]string{{"some", "Some"}, {"full", "All"}} {
			if resource[0] == "cpu" && kind[0] == "full" {
				continue // The kernel gives zero for the whole machine.
			}
			name := kind[1] + " work waits for " + resource[1]
			for _, mode := range [...][2]string{{"avg10", ", 10 s mean"}, {"total", ", total time"}} {
				d.add("system.pressure["+resource[0]+","+kind[0]+","+mode[0]+"]", name+mode[1], 0,
					"resource", resource[0], "kind", kind[0], "mode", mode[0])
			}
		}
	}
}

func (d *declarer) disks() error {
	d.section = "disk"
	names, err := d.collector.agent.machine.Disks(maxDisks)
	for _, name := range names {
		q := key.Quote(name)
		for _, flow := range [...][2]string{{"read", "read"}, {"write", "written"}} {
			d.add("vfs.dev."+flow[0]+"["+q+",bytes]", name+": bytes "+flow[1], 0, "devname", name, "mode", "bytes")
			d.add("vfs.dev."+flow[0]+"["+q+",operations]", name+": operations, "+flow[0], 0, "devname", name, "mode", "operations")
			d.add("vfs.dev."+flow[0]+".await["+q+"]", name+": time per "+flow[0], 0, "devname", name)
		}
		d.add("vfs.dev.util["+q+"]", name+": busy", 0, "devname", name)
		d.add("vfs.dev.queue["+q+"]", name+": requests under way", 0, "devname", name)
	}
	return err
}

func (d *declarer) interfaces() error {
	d.section = "network"
	names, err := d.collector.agent.machine.Interfaces(maxInterfaces)
	for _, name := range names {
		q := key.Quote(name)
		for _, flow := range [...][2]string{{"in", "received"}, {"out", "sent"}} {
			d.add("net.if."+flow[0]+"["+q+"]", name+": bytes "+flow[1], 0, "ifname", name, "mode", "bytes")
			for _, mode := range [...]string{"packets", "errors", "dropped"} {
				d.add("net.if."+flow[0]+"["+q+","+mode+"]", name+": "+mode+", "+flow[1], 0, "ifname", name, "mode", mode)
			}
		}
	}
	return err
}

func (d *declarer) mounts() error {
	d.section = "filesystem"
	mounts, err := d.collector.agent.machine.Mounts(maxMounts)
	for _, m := range mounts {
		q := key.Quote(m.Path)
		for _, mode := range [...][2]string{{"total", "size"}, {"free", "free"}, {"used", "used"}, {"pused", "used, share"}} {
			d.add("vfs.fs.size["+q+","+mode[0]+"]", m.Path+": "+mode[1], 0, "fsname", m.Path, "fstype", m.Type, "mode", mode[0])
		}
		d.add("vfs.fs.inode["+q+",pfree]", m.Path+": free inodes, share", 0, "fsname", m.Path, "fstype", m.Type, "mode", "pfree")
	}
	return err
}
