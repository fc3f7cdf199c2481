package key

import (

	//nolint:gosec // The key asks for MD5; it protects nothing.

	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tidemark/model"
)

// maxReadBytes bounds a file that is read for its contents or searched; it is what one text value may hold.
const maxReadBytes = model.MaxTextBytes

// maxSumBytes bounds a file whose checksum is asked for, so that one check cannot keep a worker for minutes.
const maxSumBytes = 1 << 30

const errFile = "Cannot obtain file information: "

func statFile(path string, follow bool) (os.FileInfo, error) {
	stat := os.Lstat
	if follow {
		stat = os.Stat
	}
	info, err := stat(path)
	if err == nil {
		return info, nil
	}
	return nil, reasonf("%s%w", errFile, numbered(err))
}

// filePath returns the first parameter of a file key.
func filePath(k Key) (string, error) {
	path := k.Param(0, "")
	if path == "" || strings.IndexByte(path, 0) >= 0 {
		return "", errFirst
	}
	return path, nil
}

// fileTypes are the types of vfs.file.exists.
var fileTypes = map[string]func(os.FileMode) bool{
	"file": os.FileMode.IsRegular,
	"dir":  os.FileMode.IsDir,
	"sym":  func(m os.FileMode) bool { return m&os.ModeSymlink != 0 },
	"sock": func(m os.FileMode) bool { return m&os.ModeSocket != 0 },
	"bdev": func(m os.FileMode) bool { return m&os.ModeDevice != 0 && m&os.ModeCharDevice == 0 },
	"cdev": func(m os.FileMode) bool { return m&os.ModeCharDevice != 0 },
	"fifo": func(m os.FileMode) bool { return m&os.ModeNamedPipe != 0 },
	"dev":  func(m os.FileMode) bool { return m&os.ModeDevice != 0 },
	"any":  func(os.FileMode) bool { return true },
}

func compileFileExists(_ *Machine, k Key, c *Check) error {
	path, err := filePath(k)
	if err != nil {
		return err
	}
	include := k.Param(1, "")
	exclude := k.Param(2, "")
	if include == "" {
		include = "any"
		if exclude == "" {
			include = "file"
		}
	}
	takes, err := typeSet(include, errSecond)
	if err != nil {
		return err
	}
	refuses, err := typeSet(exclude, errThird)
	if err != nil {
		return err
	}
	_, symbolic := takes["sym"]
	_, notSymbolic := refuses["sym"]
	c.Slow = true
	c.uint("", func() (uint64, error) {
		info, err := statFile(path, !symbolic && !notSymbolic)
		if errors.Is(err, os.ErrNotExist) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		for _, is := range refuses {
			if is(info.Mode()) {
				return 0, nil
			}
		}
		for _, is := range takes {
			if is(info.Mode()) {
				return 1, nil
			}
		}
		return 0, nil
	})
	return nil
}

func typeSet(text string, problem error) (map[string]func(os.FileMode) bool, error) {
	set := map[string]func(os.FileMode) bool{}
	if text == "" {
		return set, nil
	}
	for _, name := range strings.Split(text, ",") {
		is, ok := fileTypes[name]
		if !ok {
			return nil, problem
		}
		set[name] = is
	}
	return set, nil
}

func compileFileSize(m *Machine, k Key, c *Check) error {
	path, err := filePath(k)
	if err != nil {
		return err
	}
	c.Slow = true
	switch k.Param(1, "bytes") {
	case "bytes":
		c.uint("B", func() (uint64, error) {
			info, err := statFile(path, true)
			if err != nil {
				return 0, err
			}
			return uint64(info.Size()), nil
		})
	case "lines":
		c.uint("", func() (uint64, error) {
			lines := &lineCounter{}
			err := m.sumFile(path, lines)
			return lines.count, err
		})
	default:
		return errSecond
	}
	return nil
}

// lineCounter counts line ends.
type lineCounter struct{ count uint64 }

// Write counts the line ends of p; it never fails.
func (l *lineCounter) Write(p []byte) (int, error) {
	for _, b := range p {
		if b == '\n' {
			l.count++
		}
	}
	return len(p), nil
}

func compileFileTime(_ *Machine, k Key, c *Check) error {
	path, err := filePath(k)
	if err != nil {
		return err
	}
	mode := k.Param(1, "modify")
	if mode != "modify" && mode != "access" && mode != "change" {
		return errSecond
	}
	c.Slow = true
	c.uint("unixtime", func() (uint64, error) {
		info, err := statFile(path, true)
		if err != nil {
			return 0, err
		}
		at := info.ModTime()
		if st, ok := info.Sys().(*syscall.Stat_t); ok && mode == "access" {
			at = time.Unix(st.Atim.Unix())
		} else if ok && mode == "change" {
			at = time.Unix(st.Ctim.Unix())
		}
		return uint64(at.Unix()), nil
	})
	return nil
}

// readFile opens a regular file, or one of /proc and /sys, and reads it within the bound. Pipes and devices are
// refused, because reading them may wait for ever.
func readFile(path string) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxReadBytes+1))
	if err != nil {
		return nil, readError(path, err)
	}
	if len(b) > maxReadBytes {
		return nil, reasonf("File is too large for this check: more than %d bytes.", maxReadBytes)
	}
	return b, nil
}

func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, reasonf("Cannot open file: %w", numbered(err))
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, reasonf("Cannot open file: %w", numbered(err))
	}
	return f, nil
}

// fileEncoding refuses encodings that are not read: only UTF-8 and ASCII are.
func fileEncoding(k Key, i int, problem error) error {
	switch strings.ToUpper(k.Param(i, "UTF-8")) {
	case "UTF-8", "UTF8", "ASCII", "US-ASCII":
		return nil
	}
	return problem
}

func compileFileContents(_ *Machine, k Key, c *Check) error {
	path, err := filePath(k)
	if err == nil {
		err = fileEncoding(k, 1, errSecond)
	}
	if err != nil {
		return err
	}
	c.Slow = true
	c.text(func() (string, error) {
		b, err := readFile(path)
		return strings.TrimRight(strings.ToValidUTF8(string(b), "\uFFFD"), "\r\n"), err
	})
	return nil
}

// compileFileMatch makes vfs.file.regmatch[file,regexp,encoding,start line,end line].
func compileFileMatch(_ *Machine, k Key, c *Check) error {
	path, err := filePath(k)
	if err != nil {
		return err
	}
	pattern, err := regexp.Compile(k.Param(1, ""))
	if err != nil || k.Param(1, "") == "" {
		return errSecond
	}
	if err := fileEncoding(k, 2, errThird); err != nil {
		return err
	}
	first, err := strconv.ParseUint(k.Param(3, "1"), 10, 32)
	if err != nil {
		return errFourth
	}
	last, err := strconv.ParseUint(k.Param(4, "4294967295"), 10, 32)
	if err != nil || last < first {
		return errFifth
	}
	c.Slow = true
	c.uint("", func() (uint64, error) {
		b, err := readFile(path)
		if err != nil {
			return 0, err
		}
		for number := uint64(1); len(b) > 0 && number <= last; number++ {
			var line []byte
			line, b = cutLine(b)
			if number >= first && pattern.Match(line) {
				return 1, nil
			}
		}
		return 0, nil
	})
	return nil
}
