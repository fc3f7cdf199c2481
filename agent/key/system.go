package key

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

func compilePing(_ *Machine, _ Key, c *Check) error {
	c.uint("", func() (uint64, error) { return 1, nil })
	return nil
}

func compileVersion(m *Machine, _ Key, c *Check) error {
	c.text(func() (string, error) { return m.options.Version, nil })
	return nil
}

func compileAgentHostname(m *Machine, _ Key, c *Check) error {
	c.text(func() (string, error) { return m.options.Hostname, nil })
	return nil
}

func compileUptime(m *Machine, _ Key, c *Check) error {
	c.uint("uptime", func() (uint64, error) {
		b, err := m.uptime.read()
		if err != nil {
			return 0, err
		}
		field, _ := cutField(b)
		v, ok := parseFixed(field)
		if !ok {
			return 0, reason("Cannot obtain uptime: /proc/uptime is not as expected.")
		}
		return uint64(v), nil
	})
	return nil
}

func compileLocalTime(m *Machine, k Key, c *Check) error {
	switch k.Param(0, "utc") {
	case "utc":
		c.uint("unixtime", func() (uint64, error) { return uint64(m.at.Unix()), nil })
	case "local":
		c.text(func() (string, error) { return m.at.Local().Format("2006-01-02,15:04:05.000,-07:00"), nil })
	default:
		return errFirst
	}
	return nil
}

func compileUname(_ *Machine, _ Key, c *Check) error {
	c.text(func() (string, error) {
		var u unix.Utsname
		if err := unix.Uname(&u); err != nil {
			return "", err
		}
		parts := []string{
			unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Nodename[:]), unix.ByteSliceToString(u.Release[:]),
			unix.ByteSliceToString(u.Version[:]), unix.ByteSliceToString(u.Machine[:]),
		}
		return strings.Join(parts, " "), nil
	})
	return nil
}

func compileArch(_ *Machine, _ Key, c *Check) error {
	c.text(func() (string, error) {
		var u unix.Utsname
		if err := unix.Uname(&u); err != nil {
			return runtime.GOARCH, nil
		}
		return unix.ByteSliceToString(u.Machine[:]), nil
	})
	return nil
}

// compileHostname makes system.hostname[type,transform]. Every type gives the same on Linux except shorthost.
func compileHostname(m *Machine, k Key, c *Check) error {
	kind, transform := k.Param(0, "host"), k.Param(1, "none")
	switch kind {
	case "host", "netbios", "shorthost", "fqdn":
	default:
		return errFirst
	}
	if transform != "none" && transform != "lower" {
		return errSecond
	}
	c.text(func() (string, error) {
		name, err := m.hostname()
		if kind == "shorthost" {
			name, _, _ = strings.Cut(name, ".")
		}
		if transform == "lower" {
			name = strings.ToLower(name)
		}
		return name, err
	})
	return nil
}

// compileOS makes system.sw.os[info]: full is /proc/version, short its release, name that of /etc/os-release.
func compileOS(m *Machine, k Key, c *Check) error {
	kind := k.Param(0, "full")
	path := map[string]string{
		"full": m.proc("version"), "short": m.proc("version_signature"), "name": "/etc/os-release",
	}[kind]
	if path == "" {
		return errFirst
	}
	if kind == "short" {
		if _, err := os.Stat(path); err != nil { // Only Ubuntu has it.
			path = m.proc("sys/kernel/osrelease")
		}
	}
	c.text(func() (string, error) {
		f := procFile{path: path}
		defer f.close()
		b, err := f.read()
		if err != nil || kind != "name" {
			return strings.TrimSpace(string(b)), err
		}
		return prettyName(b), nil
	})
	return nil
}

// prettyName reads PRETTY_NAME of os-release(5).
func prettyName(b []byte) string {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		if value, ok := bytes.CutPrefix(line, []byte("PRETTY_NAME=")); ok {
			return strings.Trim(string(value), `"'`)
		}
	}
	return ""
}

// The layout of a record of utmp(5) on Linux with glibc.
const (
	utmpRecordBytes = 384
	utmpUserProcess = 7
)

func countUsers(b []byte) uint64 {
	var count uint64
	for ; len(b) >= utmpRecordBytes; b = b[utmpRecordBytes:] {
		if binary.NativeEndian.Uint16(b) == utmpUserProcess {
			count++
		}
	}
	return count
}

func compileUsers(_ *Machine, _ Key, c *Check) error {
	c.uint("", func() (uint64, error) {
		f := procFile{path: "/run/utmp"}
		defer f.close()
		b, err := f.read()
		if errors.Is(err, os.ErrNotExist) {
			return countSessions("/run/systemd/sessions") // Systems without utmp have systemd-logind.
		}
		return countUsers(b), err
	})
	return nil
}

func countSessions(dir string) (uint64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	var count uint64
	for _, e := range entries {
		if e.Type().IsRegular() {
			count++
		}
	}
	return count, err
}

// compileMaximum makes the keys that are one number in one file.
func compileMaximum(name string, field int) compiler {
	return func(m *Machine, _ Key, c *Check) error {
		f := m.maxima[name]
		if f == nil {
			f = &procFile{path: m.proc(name)}
			m.maxima[name] = f
		}
		c.uint("", func() (uint64, error) {
			b, err := f.read()
			if err != nil {
				return 0, err
			}
			b, _ = cutLine(b)
			for range field {
				_, b = cutField(b)
			}
			v, _, ok := cutUint(b)
			if !ok {
				return 0, reason("Cannot read " + f.path + ": no number where one was expected.")
			}
			return v, nil
		})
		return nil
	}
}
