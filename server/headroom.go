package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/sys/unix"

	"tidemark/api"
	"tidemark/storage"
)

// The shares of the file system, in percent, from which on its fullness is told, and counts as a problem: most slow down behind them.
const (
	headroomWarn    = 75
	headroomProblem = 80
	headroomEvery   = 30 * time.Second
	// headroomLeast is how long the disk must have been watched for a forecast, headroomMost when watching begins anew.
	headroomLeast, headroomMost = 10 * time.Minute, 24 * time.Hour
	// unknownDays is the forecast of the metric when there is none, and the longest.
	unknownDays = 3650
)

// HeadroomLevel says how full the file system is.
type HeadroomLevel string

// The levels.
const (
	HeadroomOK      HeadroomLevel = "ok"
	HeadroomWarning HeadroomLevel = "warning"
	HeadroomProblem HeadroomLevel = "problem"
)

// Headroom is the room on the file system of a folder.
type Headroom struct {
	// FileSystem is its kind: ext4, xfs, btrfs, zfs, tmpfs, overlay, nfs, or its number.
	FileSystem string `json:"file_system"`
	// TotalBytes is what is used and what the server may still write.
	TotalBytes int64 `json:"total_bytes"`
	// FreeBytes is what the server may still write.
	FreeBytes int64 `json:"free_bytes"`
	// UsedPercent is of the file system, or of its pool if that is fuller.
	UsedPercent float64       `json:"used_percent"`
	Level       HeadroomLevel `json:"level"`
	// Pool is what lies under ZFS and btrfs, absent where that cannot be told; PoolProblem says why.
	Pool        *Pool  `json:"pool,omitempty"`
	PoolProblem string `json:"pool_problem,omitempty"`
}

// fileSystems are the numbers that statfs(2) gives.
var fileSystems = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", 0x2fc12fc1: "zfs",
	unix.TMPFS_MAGIC: "tmpfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.NFS_SUPER_MAGIC: "nfs",
}

// MeasureHeadroom asks the file system of a folder.
func MeasureHeadroom(dir string) (Headroom, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return Headroom{}, fmt.Errorf("statfs %s: %w", dir, err)
	}
	// As df counts: what root keeps for itself, and what a quota of the file system holds back, is neither used nor there to be used.
	h := Headroom{TotalBytes: int64(s.Blocks-s.Bfree+s.Bavail) * s.Bsize, FreeBytes: int64(s.Bavail) * s.Bsize, Level: HeadroomOK}
	if h.FileSystem = fileSystems[s.Type]; h.FileSystem == "" {
		h.FileSystem = fmt.Sprintf("%#x", s.Type)
	}
	pool, err := systemPools().of(dir, h.FileSystem)
	if h.Pool = pool; err != nil {
		h.PoolProblem = api.Shown(err)
	}
	h.grade()
	return h, nil
}

// grade works out how full it is.
func (h *Headroom) grade() {
	if h.TotalBytes <= 0 {
		return
	}
	h.UsedPercent = 100 * (1 - float64(h.FreeBytes)/float64(h.TotalBytes))
	if h.Pool != nil {
		h.UsedPercent = max(h.UsedPercent, h.Pool.UsedPercent)
	}
	h.Level = HeadroomOK
	if h.UsedPercent >= headroomProblem {
		h.Level = HeadroomProblem
	} else if h.UsedPercent >= headroomWarn {
		h.Level = HeadroomWarning
	}
}

// headroom watches the file system of the data folder.
type headroom struct {
	measure func() (Headroom, error)
	stats   func() storage.Stats
	logger  *slog.Logger

	mu   sync.Mutex
	now  Headroom
	hold *hold
	// quotaUsed is in percent, oldestAge in seconds; both zero when not known.
	quotaUsed, oldestAge float64
	// first is the free room when watching began, at firstAt.
	first           int64
	firstAt, lastAt time.Time
}

func newHeadroom(dir string, stats func() storage.Stats, hold *hold, set *metrics.Set, logger *slog.Logger) *headroom {
	h := &headroom{measure: func() (Headroom, error) { return MeasureHeadroom(dir) }, stats: stats, logger: logger, hold: hold}
	hold.begun = set.NewCounter("tidemark_headroom_holds_total")
	h.look(time.Now())
	set.NewGauge("tidemark_disk_free_bytes", func() float64 { now, _ := h.get(); return float64(now.FreeBytes) })
	set.NewGauge("tidemark_disk_total_bytes", func() float64 { now, _ := h.get(); return float64(now.TotalBytes) })
	set.NewGauge("tidemark_disk_used_percent", func() float64 { now, _ := h.get(); return now.UsedPercent })
	set.NewGauge("tidemark_disk_full_days", func() float64 {
		if _, days := h.get(); days != nil {
			return min(*days, unknownDays)
		}
		return unknownDays
	})
	set.NewGauge("tidemark_headroom_held", func() float64 {
		if h.holding().Held {
			return 1
		}
		return 0
	})
	set.NewGauge("tidemark_headroom_blocked", func() float64 {
		if h.holding().Blocked != "" {
			return 1
		}
		return 0
	})
	set.NewGauge("tidemark_storage_quota_used_percent", func() float64 { used, _ := h.store(); return used })
	set.NewGauge("tidemark_storage_oldest_age_seconds", func() float64 { _, age := h.store(); return age })
	return h
}

func (h *headroom) run(ctx context.Context) error {
	ticker := time.NewTicker(headroomEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case at := <-ticker.C:
			h.look(at)
		}
	}
}

// look measures, and tells when the level changed.
func (h *headroom) look(at time.Time) {
	now, err := h.measure()
	stats := h.stats()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(stats, at)
	if err != nil {
		h.logger.Warn("the room on the disk cannot be told", "error", err)
		return
	}
	if now.Level != h.now.Level && (h.now.Level != "" || now.Level != HeadroomOK) {
		level := slog.LevelWarn
		if now.Level == HeadroomOK {
			level = slog.LevelInfo
		}
		h.logger.Log(context.Background(), level, "the fullness of the disk has changed; past 80 % most file systems slow down",
			"level", string(now.Level), "used_percent", fmt.Sprintf("%.1f", now.UsedPercent), "free_bytes", now.FreeBytes)
	}
	if now.PoolProblem != "" && now.PoolProblem != h.now.PoolProblem {
		h.logger.Warn("how full the pool under the file system is cannot be told", "error", now.PoolProblem)
	}
	h.hold.look(now, stats.DiskBytes)
	if h.firstAt.IsZero() || at.Sub(h.firstAt) > headroomMost || now.FreeBytes > h.first {
		h.first, h.firstAt = now.FreeBytes, at
	}
	h.now, h.lastAt = now, at
}

// note takes over how full the store is.
func (h *headroom) note(s storage.Stats, at time.Time) {
	h.quotaUsed, h.oldestAge = 0, 0
	if s.QuotaBytes > 0 {
		h.quotaUsed = 100 * float64(s.DiskBytes) / float64(s.QuotaBytes)
	}
	if s.From != 0 {
		h.oldestAge = max(float64(at.UnixNano()-s.From)/1e9, 0)
	}
}

// store returns how much of the quota is taken, in percent, and the age of the oldest values, in seconds.
func (h *headroom) store() (usedPercent, oldestAge float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.quotaUsed, h.oldestAge
}

// holding says whether the store may grow.
func (h *headroom) holding() holdState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hold.state()
}

// get returns the last measurement, and in how many days the disk is full at the rate since watching began; nil when that cannot be told.
func (h *headroom) get() (Headroom, *float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	watched, gone := h.lastAt.Sub(h.firstAt), h.first-h.now.FreeBytes
	if watched < headroomLeast || gone <= 0 {
		return h.now, nil
	}
	days := float64(h.now.FreeBytes) / float64(gone) * watched.Hours() / 24
	return h.now, &days
}

// storageAnswer is the answer to GET /api/storage.
type storageAnswer struct {
	Disk Headroom `json:"disk"`
	// DiskFullDays is in how many days the disk is full at the present rate; null when that cannot be told.
	DiskFullDays *float64 `json:"disk_full_days"`
	// Hold says whether the store may grow while the disk is nearly full.
	Hold holdState `json:"hold"`
	// UsedBytes of QuotaBytes, zero for no limit, are taken by the store; HeldBytes of them by snapshots alone.
	UsedBytes  int64 `json:"used_bytes"`
	QuotaBytes int64 `json:"quota_bytes"`
	HeldBytes  int64 `json:"held_bytes"`
	// From and To bound what is stored, Unix milliseconds; RetentionDays is how far back a full store will reach, null when not known.
	From          int64    `json:"from"`
	To            int64    `json:"to"`
	RetentionDays *float64 `json:"retention_days"`
	Snapshots     int      `json:"snapshots"`
	// Recompress is the re-compression that is under way, or the last one.
	Recompress recompressState `json:"recompress"`
	Advice     []string        `json:"advice"`

	storageContent
}

func (s *Server) storageRoute() api.Route {
	return api.Route{
		Method: http.MethodGet, Pattern: "/api/storage", Permission: api.View, PerHost: true, Handler: api.JSON(s.showStorage),
		Doc: &api.Doc{Summary: "The room that the store has: disk, quota, snapshots, re-compression, forecasts and advice.", Answer: storageAnswer{}},
	}
}

// showStorage says nothing of single hosts, so that everybody may see it.
func (s *Server) showStorage(*http.Request) (any, error) {
	stats := s.engine.Stats()
	a := storageAnswer{
		UsedBytes: stats.DiskBytes, QuotaBytes: stats.QuotaBytes, From: millis(stats.From), To: millis(stats.To),
		RetentionDays: s.retention.days(stats, time.Now().UnixNano()), Advice: []string{}, storageContent: s.content(stats),
	}
	if s.snapshots == nil { // the values are in PostgreSQL, which may be elsewhere
		return a, nil
	}
	a.HeldBytes, a.Snapshots, a.Recompress = s.snapshots.engine.PinnedBytes(), len(s.snapshots.shelf.List()), s.recompressor.get()
	a.Disk, a.DiskFullDays = s.headroom.get()
	a.Hold = s.headroom.holding()
	a.Advice = AdviceFor(a.Disk, remaining(stats))
	return a, nil
}

func millis(at int64) int64 { return at / int64(time.Millisecond) }

// remaining is how much more the quota lets the store take.
func remaining(s storage.Stats) int64 { return max(s.QuotaBytes-s.DiskBytes, 0) }

// AdviceFor says what to do about a file system; growBytes is how much more the store may take, zero if that is not known.
func AdviceFor(h Headroom, growBytes int64) []string {
	advice := []string{}
	if h.Level != HeadroomOK {
		advice = append(advice, fmt.Sprintf("Most file systems slow down past %d %%: free some room on this one, or give storage.disk_space a smaller value.", headroomProblem))
	}
	if total := float64(h.TotalBytes); growBytes > 0 && total > 0 {
		if then := 100 * (1 - float64(h.FreeBytes-growBytes)/total); then >= headroomProblem {
			advice = append(advice, fmt.Sprintf("When the store has taken all of storage.disk_space, the file system is %.0f %% full; keep it below %d %%.", then, headroomProblem))
		}
	}
	if h.PoolProblem != "" {
		advice = append(advice, "How full the pool under the file system is cannot be told: "+h.PoolProblem)
	}
	switch h.FileSystem {
	case "zfs":
		advice = append(advice, "ZFS: recordsize=1M, compression=off or lz4 (the data is dense already), atime=off. Snapshots of the file system keep the bytes of deleted file pairs; keep 10 % of the pool free.")
	case "btrfs":
		advice = append(advice, "btrfs: mount without compress=, since the data is dense already. Snapshots of the file system keep the bytes of deleted file pairs.")
	case "ext4", "xfs":
		advice = append(advice, h.FileSystem+": nothing to set; noatime saves a few writes.")
	case "tmpfs", "overlay":
		advice = append(advice, h.FileSystem+": what is stored here is gone with the machine or container. Put the data folder on a disk or volume.")
	case "nfs":
		advice = append(advice, "NFS: a server that loses power may lose what it said was synced, and locks are not to be relied on. Put the data folder on a local disk.")
	}
	return advice
}
