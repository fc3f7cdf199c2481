package key

import (
	"bytes"
	"context"
	"net"
	"sort"
	"strconv"
	"strings"
)

// interfaceCounters are the sixteen columns of /proc/net/dev: eight received, eight sent.
type interfaceCounters [16]uint64

// The columns of each direction. The fifth to eighth differ.
const (
	netBytes = iota
	netPackets
	netErrors
	netDropped
	netOverruns
	netFrameOrCollisions
	netCompressedOrCarrier
	netMulticastOrCompressed
	netColumns
)

// pick returns the counters whose sum a mode is, or nil for a mode that the direction lacks.
func (c *interfaceCounters) pick(mode string, in, out bool) []*uint64 {
	columns, ok := map[string][2]int{
		"bytes":      {netBytes, netBytes},
		"packets":    {netPackets, netPackets},
		"errors":     {netErrors, netErrors},
		"dropped":    {netDropped, netDropped},
		"overruns":   {netOverruns, netOverruns},
		"frame":      {netFrameOrCollisions, -1},
		"collisions": {-1, netFrameOrCollisions},
		"carrier":    {-1, netCompressedOrCarrier},
		"compressed": {netCompressedOrCarrier, netMulticastOrCompressed},
		"multicast":  {netMulticastOrCompressed, -1},
	}[mode]
	if !ok || in && columns[0] < 0 || out && columns[1] < 0 {
		return nil
	}
	var fields []*uint64
	if in {
		fields = append(fields, &c[columns[0]])
	}
	if out {
		fields = append(fields, &c[netColumns+columns[1]])
	}
	return fields
}

// networkInterface is what is kept of one interface.
type networkInterface struct {
	name     string
	counters interfaceCounters
	tick     uint64
}

type netSource struct {
	source
	interfaces map[string]*networkInterface
	order      []*networkInterface // as in the file
}

func (s *netSource) load(m *Machine) error {
	if s.fresh(m) {
		return s.err
	}
	b, err := s.file.read()
	if err == nil {
		s.parse(b, m.tick)
	}
	s.err = err
	return err
}

func (s *netSource) parse(b []byte, tick uint64) {
	if s.interfaces == nil {
		s.interfaces = map[string]*networkInterface{}
	}
	s.order = s.order[:0]
	for len(b) > 0 && len(s.order) < maxDevices {
		var line []byte
		line, b = cutLine(b)
		colon := bytes.LastIndexByte(line, ':') // Alias names such as eth0:1 hold a colon themselves.
		if colon < 0 {
			continue
		}
		name, blank := cutField(line[:colon])
		var counters interfaceCounters
		if len(name) == 0 || len(name) > 64 || len(bytes.TrimSpace(blank)) > 0 || !counters.parse(line[colon+1:]) {
			continue
		}
		i := s.interfaces[string(name)]
		if i == nil {
			i = &networkInterface{name: string(name)}
			s.interfaces[i.name] = i
		}
		if i.tick == tick {
			continue
		}
		i.counters, i.tick = counters, tick
		s.order = append(s.order, i)
	}
	if len(s.interfaces) > 2*len(s.order)+16 {
		for name, i := range s.interfaces {
			if i.tick != tick {
				delete(s.interfaces, name)
			}
		}
	}
}

func (c *interfaceCounters) parse(b []byte) bool {
	for i := range c {
		v, rest, ok := cutUint(b)
		if !ok {
			return false
		}
		c[i], b = v, rest
	}
	return true
}

func (m *Machine) networkInterface(name string) (*networkInterface, error) {
	if err := m.network.load(m); err != nil {
		return nil, err
	}
	i := m.network.interfaces[name]
	if i == nil || i.tick != m.tick {
		return nil, errNoInterface
	}
	return i, nil
}

// compileNet makes net.if.in, out and total. The fields are looked up once: an interface keeps its place in memory.
func compileNet(pick func(c *interfaceCounters, mode string) []*uint64) compiler {
	return func(m *Machine, k Key, c *Check) error {
		name, mode := k.Param(0, ""), k.Param(1, "bytes")
		if name == "" {
			return errInterfaceEmpty
		}
		if pick(&interfaceCounters{}, mode) == nil {
			return errSecond
		}
		units := ""
		if mode == "bytes" {
			units = "B"
		}
		var seen *networkInterface
		var fields []*uint64
		c.counter(units, func() (uint64, error) {
			i, err := m.networkInterface(name)
			if err != nil {
				return 0, err
			}
			if i != seen {
				seen, fields = i, pick(&i.counters, mode)
			}
			var sum uint64
			for _, f := range fields {
				sum += *f
			}
			return sum, nil
		})
		return nil
	}
}

func compileCollisions(m *Machine, k Key, c *Check) error {
	name := k.Param(0, "")
	if name == "" {
		return errInterfaceEmpty
	}
	c.counter("", func() (uint64, error) {
		i, err := m.networkInterface(name)
		if err != nil {
			return 0, err
		}
		return i.counters[netColumns+netFrameOrCollisions], nil
	})
	return nil
}

// Interfaces returns the names of the network interfaces to watch: all that ever carried a packet but those of single
// containers. Sorted; at most limit.
func (m *Machine) Interfaces(limit int) ([]string, error) {
	if err := m.network.load(m); err != nil {
		return nil, err
	}
	var names []string
	for _, i := range m.network.order {
		if i.counters[netPackets]+i.counters[netColumns+netPackets] == 0 {
			continue
		}
		if !strings.HasPrefix(i.name, "veth") && !strings.HasPrefix(i.name, "cali") && !strings.HasPrefix(i.name, "lxc") {
			names = append(names, i.name)
		}
	}
	sort.Strings(names)
	return names[:min(len(names), limit)], nil
}

func compileNetDiscovery(m *Machine, _ Key, c *Check) error {
	c.text(func() (string, error) {
		if err := m.network.load(m); err != nil {
			return "", err
		}
		rows := make([]map[string]string, 0, len(m.network.order))
		for _, i := range m.network.order {
			rows = append(rows, map[string]string{"{#IFNAME}": i.name})
		}
		return marshal(rows)
	})
	return nil
}

func compileNetList(m *Machine, _ Key, c *Check) error {
	c.text(func() (string, error) {
		if err := m.network.load(m); err != nil {
			return "", err
		}
		names := make([]string, 0, len(m.network.order))
		for _, i := range m.network.order {
			names = append(names, i.name)
		}
		return strings.Join(names, "\n"), nil
	})
	return nil
}

func parsePort(k Key, i int) (uint16, bool) {
	v, err := strconv.ParseUint(k.Param(i, ""), 10, 16)
	return uint16(v), err == nil && v > 0
}

// compileListen makes net.tcp.listen and net.udp.listen from the sockets that the kernel lists in state.
func compileListen(file4, file6 string, state byte) compiler {
	return func(m *Machine, k Key, c *Check) error {
		port, ok := parsePort(k, 0)
		if !ok {
			return errFirst
		}
		paths := [...]string{m.proc(file4), m.proc(file6)}
		c.uint("", func() (uint64, error) {
			for i, path := range paths {
				f := procFile{path: path}
				b, err := f.read()
				f.close()
				if err != nil {
					if i == 0 {
						return 0, err
					}
					continue // A kernel without IPv6.
				}
				if hasSocket(b, port, state) {
					return 1, nil
				}
			}
			return 0, nil
		})
		c.Slow = true
		return nil
	}
}

// hasSocket looks for a local port in a state in /proc/net/tcp and its kin: "0: 0100007F:1F90 00000000:0000 0A …".
func hasSocket(b []byte, port uint16, state byte) bool {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		_, line = cutField(line)
		local, line := cutField(line)
		_, line = cutField(line)
		status, _ := cutField(line)
		colon := bytes.LastIndexByte(local, ':')
		if colon < 0 || len(status) != 2 {
			continue
		}
		p, err := strconv.ParseUint(string(local[colon+1:]), 16, 16)
		s, errState := strconv.ParseUint(string(status), 16, 8)
		if err == nil && errState == nil && uint16(p) == port && byte(s) == state {
			return true
		}
	}
	return false
}

func compilePort(m *Machine, k Key, c *Check) error {
	host := k.Param(0, "127.0.0.1")
	if net.ParseIP(host) == nil && strings.ContainsAny(host, ":/ ") {
		return errFirst
	}
	port, ok := parsePort(k, 1)
	if !ok {
		return errSecond
	}
	address := net.JoinHostPort(host, strconv.Itoa(int(port)))
	timeout := m.options.DialTimeout
	c.uint("", func() (uint64, error) {
		ctx, cancel := context.WithTimeout(m.ctx, timeout)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return 0, nil // Not reachable is the value 0, as in Zabbix.
		}
		return 1, conn.Close()
	})
	c.Slow = true
	return nil
}
