package translog

import "tidemark/model"

// HeldFile is a file of the log and how much of it holds durable records.
type HeldFile struct {
	Name  string
	Bytes int64
}

// Hold says up to where the log is durable and which files hold it. Until release is called none of them is removed or
// used again; bytes behind those that are named may still be written.
func (l *Log) Hold() (durable model.LSN, files []HeldFile, release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replays++
	for _, s := range l.segments {
		if s.first > l.durable {
			break
		}
		files = append(files, HeldFile{Name: s.file, Bytes: headerBytes + int64(min(s.end, l.durable)-s.first)})
	}
	released := false
	return l.durable, files, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !released {
			released = true
			l.replays--
		}
	}
}
