package server

import (
	"fmt"
	"log/slog"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/storage/dbengine"
)

// HeadroomOptions say what the store does when its file system fills up.
type HeadroomOptions struct {
	// HoldAt is the fullness in percent from which on the store stays as large as it is; zero for never.
	HoldAt int
	// Shrink deletes the oldest values until the fullness is below HoldAt.
	Shrink bool
}

const (
	// holdEase is how far below the mark the fullness must be, in percent, before the store may grow again.
	holdEase = 2
	// fruitless deletions, one after the other, end the shrinking.
	fruitless = 2
)

// holdEngine is what of the engine a hold needs.
type holdEngine interface {
	SetCeiling(sizeBytes int64)
	CeilingDeletions() uint64
	FreeOldest(why string) (int64, error)
}

// hold keeps the store at its size while the file system is past a mark. The lock of its headroom guards it.
type hold struct {
	o      HeadroomOptions
	engine holdEngine
	logger *slog.Logger
	begun  *metrics.Counter

	ceiling int64
	// freed is what the last deletion of the shrinking should have freed, when so much was free; inVain counts those that did not.
	freed, freeThen int64
	inVain          int
	// blocked says why the shrinking does not go on; empty when it does.
	blocked string
}

// look follows a measurement of the file system; used is the size of the store.
func (h *hold) look(now Headroom, used int64) {
	if h == nil || h.o.HoldAt == 0 || now.TotalBytes <= 0 {
		return
	}
	switch mark := float64(h.o.HoldAt); {
	case h.ceiling == 0 && now.UsedPercent >= mark:
		// Less than the smallest quota is no size to live at.
		h.ceiling = max(used, dbengine.MinDiskSpaceBytes)
		h.begun.Inc()
		h.logger.Warn("the disk is past the mark: the store stays as large as it is, and its oldest file pair makes room for each new one",
			"used_percent", fmt.Sprintf("%.1f", now.UsedPercent), "mark_percent", h.o.HoldAt, "store_bytes", h.ceiling)
	case h.ceiling > 0 && now.UsedPercent < mark-holdEase:
		h.ceiling, h.freed, h.inVain, h.blocked = 0, 0, 0, ""
		h.logger.Info("the disk has room again: the store may grow up to storage.disk_space", "used_percent", fmt.Sprintf("%.1f", now.UsedPercent))
	}
	if h.ceiling > 0 && h.o.Shrink {
		h.shrink(now, used)
	}
	h.engine.SetCeiling(h.ceiling)
}

// shrink deletes one pair a look, so that the next one sees what that gave.
func (h *hold) shrink(now Headroom, used int64) {
	if h.freed > 0 {
		if h.inVain++; now.FreeBytes >= h.freeThen+h.freed/2 {
			h.inVain = 0
		}
		h.freed = 0
	}
	if now.UsedPercent < float64(h.o.HoldAt) {
		h.blocked = ""
		return
	}
	if h.inVain >= fruitless {
		h.block(fmt.Sprintf("%d deletions freed nothing: something else holds the files or takes the room", fruitless))
		return
	}
	if used <= dbengine.MinDiskSpaceBytes {
		h.block("the store is as small as it may be")
		return
	}
	freed, err := h.engine.FreeOldest("the disk is past the mark")
	if err != nil {
		h.block(err.Error())
		return
	}
	h.freed, h.freeThen, h.blocked = freed, now.FreeBytes, ""
	h.ceiling = max(min(h.ceiling, used-freed), dbengine.MinDiskSpaceBytes)
}

// block notes why nothing more is deleted, and tells it once.
func (h *hold) block(why string) {
	if h.blocked != why {
		h.logger.Warn("the store does not become smaller although the disk is past the mark", "reason", why)
	}
	h.blocked = why
}

// state is what the page shows.
func (h *hold) state() holdState {
	if h == nil {
		return holdState{}
	}
	return holdState{AtPercent: h.o.HoldAt, Held: h.ceiling > 0, CeilingBytes: h.ceiling, DeletedPairs: h.engine.CeilingDeletions(), Shrink: h.o.Shrink, Blocked: h.blocked}
}
