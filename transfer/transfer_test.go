package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine"
	"tidemark/storage/storagetest"
)

const items = 40

// fill puts three days of values of all types into an engine.
func fill(t *testing.T, e storage.Engine) (total int) {
	t.Helper()
	for hour := range int64(72) {
		b := &model.Batch{}
		for id := model.ItemID(1); id <= items; id++ {
			for m := range int64(6) {
				at := storagetest.Now() - 72*int64(time.Hour) + hour*int64(time.Hour) + m*int64(10*time.Minute) + int64(id)
				switch id % 4 {
				case 0:
					b.AppendFloat(id, at, float64(hour)/float64(id))
				case 1:
					b.AppendUint(id, at, uint64(hour*m)*uint64(id))
				case 2:
					b.AppendString(id, at, model.Text, fmt.Sprint("line ", hour, m))
				default:
					b.AppendLog(id, at, model.Log{At: hour, Text: "entry", Severity: 3})
				}
				total++
			}
		}
		b.Marks = []model.Mark{{Key: "session/1/a", Value: fmt.Sprint(hour), At: hour}}
		storagetest.Append(t, e, b)
	}
	return total
}

func options(source, target storage.Engine) Options {
	o := Options{Source: source, Target: target, From: storagetest.Now() - 80*int64(time.Hour), To: storagetest.Now() + 1}
	for id := model.ItemID(1); id <= items+3; id++ {
		o.Items = append(o.Items, id)
	}
	return o
}

func openEmbedded(t *testing.T) storage.Engine {
	db, err := dbengine.Open(context.Background(), vfs.OS{}, t.TempDir(), dbengine.Options{DiskSpaceBytes: 512 << 20, PageCacheBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestRun copies between engines and compares every value by other means.
func TestRun(t *testing.T) {
	source, target := openEmbedded(t), openEmbedded(t)
	total := fill(t, source)
	state, err := Run(context.Background(), options(source, target))
	if err != nil {
		t.Fatal(err)
	}
	if state.Values != uint64(total) || !state.Done || state.Marks != 1 || state.Hours == 0 || state.Expired != 0 {
		t.Errorf("%+v, expected %d values", state, total)
	}
	for id := model.ItemID(1); id <= items; id++ {
		want, got := storagetest.Collect(t, source, storagetest.All(id)), storagetest.Collect(t, target, storagetest.All(id))
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Errorf("item %d: %d values %v\nexpected %d", id, len(got), got, len(want))
		}
	}
}

// breaking fails its appends after a number of them.
type breaking struct {
	storage.Engine
	left int
}

var errBroken = errors.New("broken")

func (b *breaking) Append(ctx context.Context, batch *model.Batch) (model.LSN, error) {
	if b.left--; b.left < 0 {
		return 0, errBroken
	}
	return b.Engine.Append(ctx, batch)
}

// TestRun_resumed breaks off at every place and goes on with the state that was saved.
func TestRun_resumed(t *testing.T) {
	source, target := openEmbedded(t), openEmbedded(t)
	total := fill(t, source)
	var saved State
	broken := 0
	for left := 0; ; left++ {
		o := options(source, &breaking{target, left % 3})
		o.Window = 5 * time.Hour
		o.State = saved
		o.Save = func(s State) error { saved = s; return nil }
		_, err := Run(context.Background(), o)
		if err == nil {
			break
		}
		if !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
		broken++
	}
	if broken < 5 || saved.Values != uint64(total) || !saved.Done {
		t.Errorf("broken off %d times, %+v, expected %d values", broken, saved, total)
	}
}

// TestRun_differing refuses a target that holds something else.
func TestRun_differing(t *testing.T) {
	source, target := openEmbedded(t), openEmbedded(t)
	fill(t, source)
	b := &model.Batch{}
	b.AppendUint(1, storagetest.Now()-int64(time.Hour)-7, 7)
	storagetest.Append(t, target, b)
	if _, err := Run(context.Background(), options(source, target)); err == nil || !strings.Contains(err.Error(), "the target must be empty") {
		t.Errorf("%v, expected the other value to be found", err)
	}
}
