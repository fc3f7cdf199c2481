package server

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"tidemark/storage"
)

func TestHeadroom(t *testing.T) {
	var said strings.Builder
	free := int64(500)
	store := storage.Stats{}
	h := &headroom{logger: slog.New(slog.NewTextHandler(&said, nil)), stats: func() storage.Stats { return store }, measure: func() (Headroom, error) {
		room := Headroom{TotalBytes: 1000, FreeBytes: free}
		room.grade()
		return room, nil
	}}
	at := time.Unix(1_700_000_000, 0)
	look := func(after time.Duration, bytes int64) (Headroom, *float64) {
		at, free = at.Add(after), bytes
		h.look(at)
		return h.get()
	}
	if now, days := look(0, 500); now.Level != HeadroomOK || days != nil || said.Len() > 0 {
		t.Errorf("at first %+v, %v, said %s", now, days, said.String())
	}
	if now, days := look(time.Minute, 250); now.Level != HeadroomWarning || days != nil || strings.Count(said.String(), "level=warning") != 1 {
		t.Errorf("at 75 %% %+v, %v, said %s", now, days, said.String())
	}
	now, days := look(12*time.Hour-time.Minute, 200)
	if now.Level != HeadroomProblem || days == nil || *days < 0.33 || *days > 0.34 {
		t.Errorf("at 80 %% %+v, %v, want a third of a day", now, days)
	}
	look(time.Minute, 190)
	if n := strings.Count(said.String(), "level=problem"); n != 1 {
		t.Errorf("the problem was told %d times", n)
	}
	if now, days = look(time.Minute, 900); now.Level != HeadroomOK || days != nil {
		t.Errorf("after something was removed %+v, %v", now, days)
	}
	store = storage.Stats{DiskBytes: 30, QuotaBytes: 120, From: at.Add(-time.Hour).UnixNano()}
	look(0, 900)
	if used, age := h.store(); used != 25 || age != 3600 {
		t.Errorf("the store takes %g %%, and its oldest values are %g s old", used, age)
	}
	h.measure = func() (Headroom, error) { return Headroom{}, errors.New("no answer") }
	if now, _ = look(time.Minute, 0); now.FreeBytes != 900 {
		t.Errorf("without an answer %+v, want what was known", now)
	}
}

func TestAdviceFor(t *testing.T) {
	has := func(list []string, text string) bool { return strings.Contains(strings.Join(list, "\n"), text) }
	room := func(kind string, free int64) Headroom {
		h := Headroom{FileSystem: kind, TotalBytes: 1000, FreeBytes: free}
		h.grade()
		return h
	}
	if got := AdviceFor(room("zfs", 900), 0); !has(got, "recordsize=1M") || has(got, "full") {
		t.Errorf("zfs: %q", got)
	}
	if got := AdviceFor(room("ext4", 100), 0); !has(got, "slow down past 80 %: free some room") {
		t.Errorf("a full disk: %q", got)
	}
	if got := AdviceFor(room("xfs", 900), 800); !has(got, "has taken all of storage.disk_space, the file system is 90 % full") {
		t.Errorf("a quota that is too large: %q", got)
	}
	if got := AdviceFor(room("0x1", 900), 100); len(got) != 0 {
		t.Errorf("nothing to say, and it says %q", got)
	}
}

func TestMeasureHeadroom(t *testing.T) {
	h, err := MeasureHeadroom(t.TempDir())
	if err != nil || h.TotalBytes <= 0 || h.FreeBytes < 0 || h.FreeBytes > h.TotalBytes || h.FileSystem == "" {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := MeasureHeadroom("/no/such/folder"); err == nil {
		t.Error("a folder that is not there has room")
	}
}
