package vfs

import (
	"maps"
	"math/rand/v2"
)

// CrashClone returns a copy of the file system as a power cut at this moment could leave it: every sector written
// since its file's last sync is there or not, in units of 512 or 4096 bytes; lengths that were not synced are the old
// or the new one, with zeros where bytes are missing; changes of names that were not synced are there or not, but a change is
// missing if an earlier one of the same name is. Locks are free. The random source decides everything.
func (m *Mem) CrashClone(r *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem()
	c.buffered = m.buffered
	maps.Copy(c.folders, m.folders)
	names := maps.Clone(m.durable)
	lost := map[string]bool{}
	for _, op := range m.pending {
		if lost[op.from] || lost[op.to] || r.IntN(2) == 0 {
			lost[op.from], lost[op.to] = true, true
			delete(lost, "")
			continue
		}
		op.apply(names)
	}
	copies := map[*inode]*inode{}
	for name, n := range names {
		if copies[n] == nil {
			copies[n] = n.crash(r)
		}
		c.entries[name] = copies[n]
		c.durable[name] = copies[n]
	}
	return c
}

// Clone returns an exact copy with everything synced, as a killed process leaves it.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem()
	c.buffered = m.buffered
	maps.Copy(c.folders, m.folders)
	copies := map[*inode]*inode{}
	for name, n := range m.entries {
		if copies[n] == nil {
			data := append([]byte(nil), n.data...)
			copies[n] = &inode{data: data, old: map[int64][sectorBytes]byte{}, synced: int64(len(data))}
		}
		c.entries[name] = copies[n]
		c.durable[name] = copies[n]
	}
	return c
}

// crash returns the file as a power cut could leave it.
func (n *inode) crash(r *rand.Rand) *inode {
	size := int64(len(n.data))
	if size != n.synced && r.IntN(2) == 0 {
		size = n.synced
	}
	data := make([]byte, size)
	copy(data, n.data)
	unit := int64(1)
	if r.IntN(2) == 0 {
		unit = 4096 / sectorBytes
	}
	fate := map[int64]bool{}
	for s := int64(0); s*sectorBytes < max(size, int64(len(n.data))); s++ {
		old, written := n.old[s]
		if !written {
			continue
		}
		kept, known := fate[s/unit]
		if !known {
			kept = r.IntN(2) == 0
			fate[s/unit] = kept
		}
		if at := s * sectorBytes; !kept && at < size {
			copy(data[at:], old[:])
		}
	}
	return &inode{data: data, old: map[int64][sectorBytes]byte{}, synced: size}
}
