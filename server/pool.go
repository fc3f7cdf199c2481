package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// poolTimeout bounds the waiting for zpool, which hangs while a pool is suspended.
	poolTimeout = 5 * time.Second
	// maxMounts bounds what is read of the list of mounts.
	maxMounts = 4 << 20
	// btrfsSpare is the unallocated room below which full metadata cannot grow: a chunk of it is 1 GiB at most.
	btrfsSpare = 1 << 30
	sectorSize = 512
)

// pools finds the pool of a folder.
type pools struct {
	// mounts is /proc/self/mountinfo, btrfs /sys/fs/btrfs, zpool the program.
	mounts, btrfs, zpool string
}

func systemPools() pools {
	p := pools{mounts: "/proc/self/mountinfo", btrfs: "/sys/fs/btrfs"}
	for _, name := range []string{"zpool", "/usr/sbin/zpool", "/sbin/zpool"} {
		if path, err := exec.LookPath(name); err == nil {
			p.zpool = path
			break
		}
	}
	return p
}

// of returns the pool under a folder of a kind of file system, nil where there is none or the tool for it is missing.
func (p pools) of(dir, kind string) (*Pool, error) {
	if kind != "btrfs" && (kind != "zfs" || p.zpool == "") {
		return nil, nil
	}
	source, err := p.source(dir)
	if err != nil {
		return nil, fmt.Errorf("the mount of %s: %w", dir, err)
	}
	if kind == "btrfs" {
		return p.btrfsPool(source)
	}
	name, _, _ := strings.Cut(source, "/")
	return p.zfsPool(name)
}

// source returns what is mounted where a folder is: a device, or the name of a ZFS data set.
func (p pools) source(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	f, err := os.Open(p.mounts)
	if err != nil {
		return "", err
	}
	defer f.Close()
	best, found := "", ""
	lines := bufio.NewScanner(io.LimitReader(f, maxMounts))
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		// proc(5): id parent major:minor root mountpoint options [optional …] - type source options
		left, right, ok := strings.Cut(lines.Text(), " - ")
		head, tail := strings.Fields(left), strings.Fields(right)
		if !ok || len(head) < 5 || len(tail) < 2 {
			continue
		}
		at := unescapeMount(head[4])
		if mountHas(at, dir) && len(at) >= len(best) { // of two at one place the later one is seen
			best, found = at, unescapeMount(tail[1])
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	if best == "" {
		return "", errors.New("it is not in the list of mounts")
	}
	return found, nil
}

func mountHas(at, dir string) bool {
	return at == "/" || dir == at || strings.HasPrefix(dir, at+"/")
}

var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func unescapeMount(text string) string { return mountEscapes.Replace(text) }

// zfsPool asks zpool(8).
func (p pools) zfsPool(name string) (*Pool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), poolTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, p.zpool, "list", "-H", "-p", "-o", "name,size,allocated", "--", name)
	c.WaitDelay = time.Second
	var said, complaint bytes.Buffer
	c.Stdout, c.Stderr = &said, &complaint
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("zpool list %s: %w: %.200s", name, err, strings.TrimSpace(complaint.String()))
	}
	fields := strings.Fields(said.String())
	if len(fields) != 3 || fields[0] != name {
		return nil, fmt.Errorf("zpool list %s: found %.80q, expected name, size and allocated", name, said.String())
	}
	total, err := strconv.ParseInt(fields[1], 10, 64)
	used, usedErr := strconv.ParseInt(fields[2], 10, 64)
	if err := errors.Join(err, usedErr); err != nil || total <= 0 || used < 0 {
		return nil, fmt.Errorf("zpool list %s: found %.80q, expected two sizes in bytes", name, said.String())
	}
	return &Pool{Name: name, TotalBytes: total, UsedBytes: used, UsedPercent: percentOf(used, total)}, nil
}

// btrfsPool reads /sys/fs/btrfs/UUID of the file system that has a device.
func (p pools) btrfsPool(device string) (*Pool, error) {
	if real, err := filepath.EvalSymlinks(device); err == nil {
		device = real
	}
	found, err := filepath.Glob(filepath.Join(p.btrfs, "*", "devices", filepath.Base(device)))
	if err != nil || len(found) == 0 {
		return nil, nil // an old kernel, or a container without /sys
	}
	dir := filepath.Dir(filepath.Dir(found[0]))
	pool := &Pool{Name: filepath.Base(dir)}
	devices, err := filepath.Glob(filepath.Join(dir, "devices", "*", "size"))
	if err != nil {
		return nil, err
	}
	for _, name := range devices {
		sectors, err := readNumber(name)
		if err != nil {
			return nil, err
		}
		pool.TotalBytes += sectors * sectorSize
	}
	allocated, metadata := int64(0), 0.0
	for _, kind := range []string{"data", "metadata", "system"} {
		var n [4]int64
		for i, name := range []string{"disk_used", "disk_total", "bytes_used", "total_bytes"} {
			if n[i], err = readNumber(filepath.Join(dir, "allocation", kind, name)); err != nil {
				return nil, err
			}
		}
		pool.UsedBytes += n[0]
		allocated += n[1]
		if kind == "metadata" {
			metadata = percentOf(n[2], n[3])
		}
	}
	if pool.TotalBytes <= 0 {
		return nil, fmt.Errorf("%s: its devices have no size", dir)
	}
	pool.UsedPercent = percentOf(pool.UsedBytes, pool.TotalBytes)
	if pool.TotalBytes-allocated < btrfsSpare { // metadata has only what it has, and without it nothing can be written
		pool.UsedPercent = max(pool.UsedPercent, metadata)
	}
	return pool, nil
}

func percentOf(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// readNumber reads a number from a file of sysfs.
func readNumber(name string) (int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/sectorSize {
		return 0, fmt.Errorf("%s: found %.40q, expected a size", name, b)
	}
	return n, nil
}
