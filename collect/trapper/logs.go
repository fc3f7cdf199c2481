package trapper

import (
	"strconv"
	"strings"
	"sync"

	"tidemark/model"
)

const logMark = "log/"

// logPosition is how far an agent has read the log of an item, and that file's time in Unix seconds.
type logPosition struct{ size, mtime uint64 }

// logPositions are the positions of all log items. There is at most one per item of the catalog.
type logPositions struct {
	mu     sync.Mutex
	byItem map[model.ItemID]logPosition
}

func (l *logPositions) seed(m model.Mark) {
	rest, ok := strings.CutPrefix(m.Key, logMark)
	if !ok {
		return
	}
	size, mtime, _ := strings.Cut(m.Value, " ")
	id, err := strconv.ParseUint(rest, 10, 64)
	p := logPosition{}
	var err2, err3 error
	p.size, err2 = strconv.ParseUint(size, 10, 64)
	p.mtime, err3 = strconv.ParseUint(mtime, 10, 64)
	if err == nil && err2 == nil && err3 == nil {
		l.set(model.ItemID(id), p)
	}
}

// SeedLog takes how far somebody else knows the log of an item to be read, unless a position of it is known here.
func (s *Server) SeedLog(item model.ItemID, size, mtime uint64) {
	s.logs.offer(item, logPosition{size, mtime})
}

func (l *logPositions) offer(item model.ItemID, p logPosition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, has := l.byItem[item]; has {
		return
	}
	if l.byItem == nil {
		l.byItem = make(map[model.ItemID]logPosition)
	}
	l.byItem[item] = p
}

func (l *logPositions) get(item model.ItemID) logPosition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byItem[item]
}

func (l *logPositions) set(item model.ItemID, p logPosition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byItem == nil {
		l.byItem = make(map[model.ItemID]logPosition)
	}
	l.byItem[item] = p
}

// mark returns the mark that makes p the item's position.
func (p logPosition) mark(item model.ItemID, now int64) model.Mark {
	return model.Mark{
		Key:   logMark + strconv.FormatUint(uint64(item), 10),
		Value: strconv.FormatUint(p.size, 10) + " " + strconv.FormatUint(p.mtime, 10),
		At:    now,
	}
}
