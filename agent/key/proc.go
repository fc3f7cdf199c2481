package key

import (
	"bytes"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"strings"
)

// maxProcesses bounds one look at all processes.
const maxProcesses = 1 << 20

// process is what /proc/PID/status says of one process.
type process struct {
	name    string
	state   byte
	uid     uint64
	hasUID  bool
	memory  map[string]uint64 // the Vm… and Rss… lines, bytes, by name in lower case without "vm"
	threads uint64
}

// processFilter is the part that proc.num and proc.mem share: name, user and command line.
type processFilter struct {
	name    string
	uid     uint64
	hasUID  bool
	command *regexp.Regexp
}

func compileProcessFilter(k Key, commandParam int, commandErr error) (f processFilter, err error) {
	f.name = k.Param(0, "")
	if name := k.Param(1, ""); name != "" {
		f.hasUID, f.uid = true, noUser
		if u, err := user.Lookup(name); err == nil {
			if f.uid, err = strconv.ParseUint(u.Uid, 10, 32); err != nil {
				return f, errSecond
			}
		}
	}
	if text := k.Param(commandParam, ""); text != "" {
		if f.command, err = regexp.Compile(text); err != nil {
			return f, commandErr
		}
	}
	return f, nil
}

// noUser is the id of a user that is not known here: no process has it.
const noUser = 1<<64 - 1

// everything reports whether the filter takes all processes.
func (f *processFilter) everything() bool { return f.name == "" && !f.hasUID && f.command == nil }

// matches looks at a process; dir is its folder in /proc. The name is compared with that of the status file, which the
// kernel cuts at 15 bytes, and with the name of the program in the command line.
func (f *processFilter) matches(p *process, dir string) bool {
	if f.hasUID && (!p.hasUID || p.uid != f.uid) {
		return false
	}
	if f.command == nil && (f.name == "" || f.name == p.name) {
		return true
	}
	line, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return false
	}
	if f.name != "" && f.name != p.name {
		program, _, _ := strings.Cut(string(line), "\x00")
		if program[strings.LastIndexByte(program, '/')+1:] != f.name {
			return false
		}
	}
	return f.command == nil || f.command.Match(bytes.TrimRight(bytes.ReplaceAll(line, []byte{0}, []byte{' '}), " "))
}

// processIDs returns the folders of /proc that are processes.
func processIDs(proc string) ([]string, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, readError(proc, err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxProcesses)
	if err != nil && len(names) == 0 {
		return nil, readError(proc, err)
	}
	ids := names[:0]
	for _, name := range names {
		if name[0] >= '1' && name[0] <= '9' {
			ids = append(ids, name)
		}
	}
	return ids, nil
}

// each calls fn for every process that the filter takes. Processes that end meanwhile are passed over.
func (f *processFilter) each(proc string, fn func(*process)) error {
	ids, err := processIDs(proc)
	if err != nil {
		return err
	}
	for _, id := range ids {
		dir := proc + "/" + id
		b, err := os.ReadFile(dir + "/status")
		if err != nil {
			continue
		}
		p := parseProcess(b)
		if f.matches(&p, dir) {
			fn(&p)
		}
	}
	return nil
}

// parseProcess reads /proc/PID/status, see proc_pid_status(5).
func parseProcess(b []byte) (p process) {
	p.memory = make(map[string]uint64, 16)
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		name, rest, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		switch string(name) {
		case "Name":
			p.name = string(bytes.TrimLeft(rest, "\t "))
		case "State":
			if field, _ := cutField(rest); len(field) > 0 {
				p.state = field[0]
			}
		case "Uid":
			p.uid, _, p.hasUID = cutUint(rest)
		case "Threads":
			p.threads, _, _ = cutUint(rest)
		default:
			if bytes.HasPrefix(name, []byte("Vm")) {
				if v, _, ok := cutUint(rest); ok && v < 1<<54 && len(p.memory) < 32 {
					p.memory[strings.ToLower(string(name[2:]))] = v << 10
				}
			}
		}
	}
	return p
}

// processStates are the states of proc.num and the letters of /proc/PID/status that they stand for.
var processStates = map[string]string{
	"all": "", "disk": "D", "run": "R", "sleep": "S", "trace": "Tt", "zomb": "Z",
}

func compileProcNum(m *Machine, k Key, c *Check) error {
	f, err := compileProcessFilter(k, 3, errFourth)
	if err != nil {
		return err
	}
	letters, ok := processStates[k.Param(2, "all")]
	if !ok {
		return errThird
	}
	if zone := k.Param(4, "current"); zone != "current" && zone != "all" {
		return errFifth
	}
	proc := m.options.Proc
	if f.everything() && letters == "" {
		c.uint("", func() (uint64, error) { ids, err := processIDs(proc); return uint64(len(ids)), err })
		return nil
	}
	c.Slow = true
	c.uint("", func() (uint64, error) {
		var count uint64
		err := f.each(proc, func(p *process) {
			if letters == "" || strings.IndexByte(letters, p.state) >= 0 {
				count++
			}
		})
		return count, err
	})
	return nil
}

// processMemory are the kinds of memory of proc.mem and the lines of the status file, without Vm, whose sum they are.
var processMemory = map[string][]string{
	"vsize": {"size"}, "size": {"exe", "data", "stk"}, "rss": {"rss"}, "peak": {"peak"}, "hwm": {"hwm"}, "data": {"data"},
	"exe": {"exe"}, "stk": {"stk"}, "lib": {"lib"}, "swap": {"swap"}, "pte": {"pte"}, "lck": {"lck"}, "pin": {"pin"},
}

func compileProcMem(m *Machine, k Key, c *Check) error {
	f, err := compileProcessFilter(k, 3, errFourth)
	if err != nil {
		return err
	}
	mode := k.Param(2, "sum")
	fields, ok := processMemory[k.Param(4, "vsize")]
	if !ok {
		return errFifth
	}
	switch mode {
	case "sum", "max", "min", "avg":
	default:
		return errThird
	}
	proc := m.options.Proc
	measure := func() (sum, least, most, count uint64, err error) {
		err = f.each(proc, func(p *process) {
			if len(p.memory) == 0 {
				return // Kernel threads have no memory of their own.
			}
			v := uint64(0)
			for _, field := range fields {
				v += p.memory[field]
			}
			if count == 0 || v < least {
				least = v
			}
			sum, most, count = sum+v, max(most, v), count+1
		})
		return sum, least, most, count, err
	}
	c.uint("B", func() (uint64, error) {
		sum, least, most, _, err := measure()
		return map[string]uint64{"sum": sum, "max": most, "min": least}[mode], err
	})
	if mode == "avg" {
		c.float("B", func() (Value, error) {
			sum, _, _, count, err := measure()
			return Float(float64(sum) / float64(max(count, 1))), err
		})
	}
	c.Slow = true
	return nil
}
