package server

import (
	"sync"
	"time"

	"tidemark/storage"
)

// forecast works out how many days of values fit into the quota at the rate at which the store has grown.
type forecast struct {
	mu sync.Mutex
	// at and bytes are the first point of the present measurement, last the newest.
	at, bytes int64
}

// forecastLeast is how long growth must have been watched for an answer, forecastMost when the measurement starts anew.
const (
	forecastLeast = int64(10 * time.Minute)
	forecastMost  = int64(24 * time.Hour)
)

// days returns the days that fit, or nil while that cannot be told: without a quota, too early, or when nothing grows. Once the store is
// full the answer is what it holds.
func (f *forecast) days(s storage.Stats, now int64) *float64 {
	if s.QuotaBytes == 0 || s.To == 0 {
		return nil
	}
	full := float64(s.DiskBytes) >= 0.9*float64(s.QuotaBytes)
	held := float64(s.To-s.From) / float64(24*time.Hour)
	if full {
		return &held
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == 0 || s.DiskBytes < f.bytes || now-f.at > forecastMost {
		f.at, f.bytes = now, s.DiskBytes
	}
	grown, took := s.DiskBytes-f.bytes, now-f.at
	if took < forecastLeast || grown <= 0 {
		return nil
	}
	days := float64(s.QuotaBytes) / float64(grown) * float64(took) / float64(24*time.Hour)
	return &days
}
