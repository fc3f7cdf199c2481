package key

import (
	"bytes"
	"sort"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxMounts bounds the lines of /proc/self/mountinfo that are kept.
const maxMounts = 4096

// keepAlive is how long a file system on the network may take before its figures count as missing.
const keepAlive = 10 * time.Second

// fsUsage is what statfs(2) says, in bytes and inodes.
type fsUsage struct {
	total, free, available uint64 // available is what an ordinary user may still write
	inodes, inodesFree     uint64
}

// used and the shares are reckoned as df and Zabbix do: of what ordinary users can have.
func (u fsUsage) used() uint64 { return u.total - min(u.total, u.free) }

func statfs(path string) (fsUsage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return fsUsage{}, reasonf("Cannot obtain filesystem information: %w", numbered(err))
	}
	unit := uint64(st.Frsize)
	if unit == 0 {
		unit = uint64(st.Bsize)
	}
	return fsUsage{
		total: st.Blocks * unit, free: st.Bfree * unit, available: st.Bavail * unit,
		inodes: st.Files, inodesFree: st.Ffree,
	}, nil
}

// Mount is one mounted file system.
type Mount struct {
	// Path is where it is mounted, Type its type, Options its mount options.
	Path, Type, Options string
	// Source is the device or the address that it comes from.
	Source string

	root string // the part of the file system that is mounted here
	id   string // major:minor
}

type mountSource struct {
	source
	mounts []Mount
	usage  map[string]*usageSource
}

func (s *mountSource) load(m *Machine) error {
	if s.fresh(m) {
		return s.err
	}
	b, err := s.file.read()
	if err == nil {
		s.mounts = parseMounts(b, s.mounts[:0])
	}
	s.err = err
	return err
}

// parseMounts reads /proc/self/mountinfo, see proc_pid_mountinfo(5). A later mount on the same path hides the earlier.
func parseMounts(b []byte, mounts []Mount) []Mount {
	for len(b) > 0 && len(mounts) < maxMounts {
		var line []byte
		line, b = cutLine(b)
		_, line = cutField(line)
		_, line = cutField(line)
		id, line := cutField(line)
		root, line := cutField(line)
		path, line := cutField(line)
		options, line := cutField(line)
		_, tail, ok := bytes.Cut(line, []byte(" - "))
		if !ok {
			continue
		}
		kind, tail := cutField(tail)
		from, _ := cutField(tail)
		if len(path) == 0 || path[0] != '/' || len(kind) == 0 {
			continue
		}
		mounts = append(mounts, Mount{
			Path: unescapeMount(path), Type: string(kind), Options: string(options), Source: unescapeMount(from),
			root: unescapeMount(root), id: string(id),
		})
	}
	seen := map[string]bool{}
	kept := len(mounts)
	for i := len(mounts) - 1; i >= 0; i-- {
		if seen[mounts[i].Path] {
			continue
		}
		seen[mounts[i].Path] = true
		kept--
		mounts[kept] = mounts[i]
	}
	return append(mounts[:0], mounts[kept:]...)
}

// unescapeMount undoes the kernel's octal escapes of blank, tab, newline and backslash.
func unescapeMount(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+3 < len(b) && isOctal(b[i+1]) && b[i+1] <= '3' && isOctal(b[i+2]) && isOctal(b[i+3]) {
			out = append(out, (b[i+1]-'0')<<6|(b[i+2]-'0')<<3|(b[i+3]-'0'))
			i += 3
			continue
		}
		out = append(out, b[i])
	}
	return string(out)
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

// remoteTypes are file systems that may answer late or never.
var remoteTypes = map[string]bool{
	"nfs": true, "nfs4": true, "cifs": true, "smb3": true, "smbfs": true, "ceph": true, "glusterfs": true, "9p": true,
	"afs": true, "lustre": true, "gfs2": true, "ocfs2": true, "beegfs": true, "virtiofs": true,
}

// localTypes are the file systems that keep bytes on a device of this machine.
var localTypes = map[string]bool{
	"ext2": true, "ext3": true, "ext4": true, "xfs": true, "btrfs": true, "zfs": true, "f2fs": true, "jfs": true,
	"reiserfs": true, "bcachefs": true, "vfat": true, "exfat": true, "ntfs": true, "ntfs3": true, "hfsplus": true,
	"nilfs2": true, "ufs": true, "apfs": true, "fuseblk": true,
}

func isRemote(kind string) bool { return remoteTypes[kind] || strings.HasPrefix(kind, "fuse.") }

// Mounts returns the file systems to watch: those on disks and on the network, each once, no pseudo file systems, none
// that is read-only by nature, and no parts of others that are mounted a second time. Sorted by path; at most limit.
func (m *Machine) Mounts(limit int) ([]Mount, error) {
	if err := m.mounts.load(m); err != nil {
		return nil, err
	}
	var watched []Mount
	seen := map[string]int{}
	for _, mount := range m.mounts.mounts {
		if !localTypes[mount.Type] && !remoteTypes[mount.Type] {
			continue
		}
		id := mount.id + " " + mount.Source
		if i, ok := seen[id]; ok {
			if len(mount.Path) < len(watched[i].Path) && mount.root == "/" || watched[i].root != "/" && mount.root == "/" {
				watched[i] = mount
			}
			continue
		}
		seen[id] = len(watched)
		watched = append(watched, mount)
	}
	sort.Slice(watched, func(i, j int) bool { return watched[i].Path < watched[j].Path })
	return watched[:min(len(watched), limit)], nil
}

// usageSource is the use of one file system, asked for once per tick, and for remote ones without waiting.
type usageSource struct {
	tick  uint64
	usage fsUsage
	err   error

	remote  bool
	mu      sync.Mutex
	asking  bool
	late    fsUsage // the last answer of a remote file system
	lateErr error
	lateAt  time.Time
}

func (m *Machine) usage(path string) (fsUsage, error) {
	if m.mounts.usage == nil {
		m.mounts.usage = map[string]*usageSource{}
	}
	u := m.mounts.usage[path]
	if u == nil {
		if len(m.mounts.usage) >= maxMounts {
			return fsUsage{}, reason("Cannot obtain filesystem information: too many file systems.")
		}
		u = &usageSource{remote: m.isRemotePath(path)}
		m.mounts.usage[path] = u
	}
	if u.tick == m.tick {
		return u.usage, u.err
	}
	u.tick = m.tick
	if u.remote {
		u.usage, u.err = u.ask(path, m.statfs)
	} else {
		u.usage, u.err = m.statfs(path)
	}
	return u.usage, u.err
}

// isRemotePath finds the mount that holds path.
func (m *Machine) isRemotePath(path string) bool {
	if m.mounts.load(m) != nil {
		return false
	}
	best, remote := -1, false
	for _, mount := range m.mounts.mounts {
		if len(mount.Path) > best && (path == mount.Path || mount.Path == "/" || strings.HasPrefix(path, mount.Path+"/")) {
			best, remote = len(mount.Path), isRemote(mount.Type)
		}
	}
	return remote
}

// ask starts a call in the background unless one is under way, and returns the last answer: a server that is away must
// stop neither the tick nor more than one thread.
func (u *usageSource) ask(path string, statfs func(string) (fsUsage, error)) (fsUsage, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.asking {
		u.asking = true
		go func() {
			usage, err := statfs(path)
			u.mu.Lock()
			defer u.mu.Unlock()
			u.asking, u.late, u.lateErr, u.lateAt = false, usage, err, time.Now()
		}()
	}
	switch {
	case u.lateAt.IsZero() && u.tick > 20, !u.lateAt.IsZero() && time.Since(u.lateAt) > keepAlive:
		return fsUsage{}, reason("Timeout while waiting for data.")
	case u.lateAt.IsZero():
		return fsUsage{}, ErrNotYet
	}
	return u.late, u.lateErr
}

func compileFSSize(m *Machine, k Key, c *Check) error {
	path := k.Param(0, "")
	if path == "" {
		return errFilesystemEmpty
	}
	if path[0] != '/' {
		return errFirst
	}
	size := func(pick func(fsUsage) uint64) {
		c.uint("B", func() (uint64, error) { u, err := m.usage(path); return pick(u), err })
	}
	switch mode := k.Param(1, "total"); mode {
	case "total":
		size(func(u fsUsage) uint64 { return u.total })
	case "free":
		size(func(u fsUsage) uint64 { return u.available })
	case "used":
		size(fsUsage.used)
	case "pfree", "pused":
		c.float("%", func() (Value, error) {
			u, err := m.usage(path)
			if err != nil {
				return Value{}, err
			}
			return shareOf(mode == "pfree", u.used(), u.available)
		})
	default:
		return errSecond
	}
	return nil
}

func compileFSInode(m *Machine, k Key, c *Check) error {
	path := k.Param(0, "")
	if path == "" {
		return errFilesystemEmpty
	}
	if path[0] != '/' {
		return errFirst
	}
	count := func(pick func(fsUsage) uint64) {
		c.uint("", func() (uint64, error) { u, err := m.usage(path); return pick(u), err })
	}
	used := func(u fsUsage) uint64 { return u.inodes - min(u.inodes, u.inodesFree) }
	switch mode := k.Param(1, "total"); mode {
	case "total":
		count(func(u fsUsage) uint64 { return u.inodes })
	case "free":
		count(func(u fsUsage) uint64 { return u.inodesFree })
	case "used":
		count(used)
	case "pfree", "pused":
		c.float("%", func() (Value, error) {
			u, err := m.usage(path)
			if err != nil {
				return Value{}, err
			}
			return shareOf(mode == "pfree", used(u), u.inodesFree)
		})
	default:
		return errSecond
	}
	return nil
}

func shareOf(ofFree bool, used, free uint64) (Value, error) {
	if used+free == 0 {
		return Value{}, errNoTotal
	}
	part := used
	if ofFree {
		part = free
	}
	return percent(float64(part), float64(used)+float64(free)), nil
}

func compileFSDiscovery(m *Machine, _ Key, c *Check) error {
	c.text(func() (string, error) {
		if err := m.mounts.load(m); err != nil {
			return "", err
		}
		rows := make([]map[string]string, 0, len(m.mounts.mounts))
		for _, mount := range m.mounts.mounts {
			rows = append(rows, map[string]string{
				"{#FSNAME}": mount.Path, "{#FSTYPE}": mount.Type, "{#FSOPTIONS}": mount.Options,
			})
		}
		return marshal(rows)
	})
	return nil
}
