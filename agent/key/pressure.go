package key

// pressureNames are the files of /proc/pressure. See Documentation/accounting/psi.rst of the kernel.
var pressureNames = [3]string{"cpu", "memory", "io"}

// pressureLine is one line: three averages in per cent and the stalled time in microseconds.
type pressureLine struct {
	average [3]float64
	total   uint64
	found   bool
}

type pressureSource struct {
	source
	some, full pressureLine
}

func (s *pressureSource) load(m *Machine) error {
	if s.fresh(m) {
		return s.err
	}
	b, err := s.file.read()
	if err == nil {
		s.some, s.full = parsePressure(b)
		if !s.some.found {
			err = reason("Cannot obtain pressure: no line \"some\" in " + s.file.path + ".")
		}
	}
	s.err = err
	return err
}

func parsePressure(b []byte) (some, full pressureLine) {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		name, rest := cutField(line)
		switch string(name) {
		case "some":
			some = parsePressureLine(rest)
		case "full":
			full = parsePressureLine(rest)
		}
	}
	return some, full
}

func parsePressureLine(b []byte) (l pressureLine) {
	for i, name := range [...]string{"avg10=", "avg60=", "avg300=", "total="} {
		field, rest := cutField(b)
		if len(field) <= len(name) || string(field[:len(name)]) != name {
			return pressureLine{}
		}
		var ok bool
		if i < 3 {
			l.average[i], ok = parseFixed(field[len(name):])
		} else {
			l.total, ok = parseUint(field[len(name):])
		}
		if !ok {
			return pressureLine{}
		}
		b = rest
	}
	l.found = true
	return l
}

// compilePressure makes system.pressure[cpu|memory|io,some|full,avg10|avg60|avg300|total], our own: the share of time
// in which some or all work waited for the resource, or the total of that time in microseconds.
func compilePressure(m *Machine, k Key, c *Check) error {
	resource := -1
	for i, name := range pressureNames {
		if k.Param(0, "cpu") == name {
			resource = i
		}
	}
	if resource < 0 {
		return errFirst
	}
	s := &m.pressure[resource]
	line := &s.some
	switch k.Param(1, "some") {
	case "some":
	case "full":
		line = &s.full
	default:
		return errSecond
	}
	load := func() error {
		if err := s.load(m); err != nil {
			return err
		}
		if !line.found {
			return reason("Cannot obtain pressure: this kernel does not tell it.")
		}
		return nil
	}
	switch mode := k.Param(2, "avg10"); mode {
	case "avg10", "avg60", "avg300":
		i := map[string]int{"avg10": 0, "avg60": 1, "avg300": 2}[mode]
		c.float("%", func() (Value, error) { err := load(); return Float(line.average[i]), err })
	case "total":
		c.counter("us", func() (uint64, error) { err := load(); return line.total, err })
	default:
		return errThird
	}
	return nil
}
