// Package transfer copies what one engine holds into another, through the contract of engines, and compares it.
//
// It goes through time in windows, because engines make room by time. After each window the target is read again and compared with the
// source by count and checksum, and only then the window counts as done. A copy that ended early goes on behind its last whole window; what
// came twice is a duplicate, which engines leave alone.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"tidemark/model"
	"tidemark/storage"
)

// Options of Run. Source, Target and Items are needed.
type Options struct {
	Source, Target storage.Engine
	// Items are all items that the source may have.
	Items []model.ItemID
	// From and To bound the stored times, Unix nanoseconds, half-open.
	From, To int64
	// Window is the time of one step; zero means a day.
	Window time.Duration
	// ValuesPerSecond bounds the speed; zero does not.
	ValuesPerSecond int64
	// State is where an earlier run ended; Save, if not nil, makes the state durable after each window.
	State State
	Save  func(State) error
	// Progress, if not nil, is told after each window.
	Progress func(Progress)
}

// State is how far a copy is.
type State struct {
	// Through is the end of the last whole window, Unix nanoseconds; zero before the first.
	Through int64 `json:"through"`
	// Values were copied and compared, with the sum of their checksums; Expired are past the target's retention and were not.
	Values   uint64 `json:"values"`
	Checksum uint64 `json:"checksum"`
	Expired  uint64 `json:"expired"`
	// Hours of trends were copied and compared; HoursBehind cannot be put into the target because their values are gone.
	Hours       uint64 `json:"hours"`
	HoursBehind uint64 `json:"hours_left_behind"`
	Marks       int    `json:"marks"`
	// Done says that all is there.
	Done bool `json:"done"`
}

// Progress is how far a copy is.
type Progress struct {
	State
	// Share is the part of the time range that is done, 0 to 1; Left an estimate, zero while there is none.
	Share float64
	Left  time.Duration
}

const (
	// itemsAtOnce and batchValues bound what is held in memory.
	itemsAtOnce = 256
	batchValues = 20_000
)

// copier is a running copy.
type copier struct {
	o     Options
	state State
	// batch gathers values; sent are the completions of batches that were appended.
	batch *model.Batch
	sent  []*model.Completion
	// want is the digest of what the target should have of a window; expired counts what it need not.
	want    digest
	expired uint64
}

// Run copies values, trends where the target takes them, and marks.
func Run(ctx context.Context, o Options) (State, error) {
	if o.Window == 0 {
		o.Window = 24 * time.Hour
	}
	if o.Save == nil {
		o.Save = func(State) error { return nil }
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	c := &copier{o: o, state: o.State, batch: &model.Batch{}}
	err := c.run(ctx)
	return c.state, err
}

func (c *copier) run(ctx context.Context) error {
	if err := c.copyMarks(ctx); err != nil {
		return fmt.Errorf("copy marks: %w", err)
	}
	begin, started := max(c.o.From, c.state.Through), time.Now()
	for from := begin; from < c.o.To; {
		to := c.o.To
		if d := int64(c.o.Window); c.o.To-from > d {
			to = min(from-from%d+d, c.o.To)
		}
		start, before := time.Now(), c.state.Values
		if err := c.window(ctx, model.TimeRange{From: from, To: to}); err != nil {
			return fmt.Errorf("copy values from %s to %s: %w", instant(from), instant(to), err)
		}
		if err := c.o.Save(c.state); err != nil {
			return err
		}
		from = to
		p := Progress{State: c.state, Share: float64(from-c.o.From) / float64(c.o.To-c.o.From)}
		p.Left = time.Duration(float64(time.Since(started)) * float64(c.o.To-from) / float64(from-begin))
		c.o.Progress(p)
		if err := c.pace(ctx, int64(c.state.Values-before), start); err != nil {
			return err
		}
	}
	if err := c.copyTrends(ctx); err != nil {
		return fmt.Errorf("copy trends: %w", err)
	}
	c.state.Done = true
	return c.o.Save(c.state)
}

func instant(at int64) string { return time.Unix(0, at).UTC().Format(time.RFC3339) }

func (c *copier) pace(ctx context.Context, n int64, start time.Time) error {
	if c.o.ValuesPerSecond == 0 {
		return ctx.Err()
	}
	wait := time.Duration(float64(n)/float64(c.o.ValuesPerSecond)*float64(time.Second)) - time.Since(start)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(wait, 0)):
		return nil
	}
}

// copyMarks copies marks; those that the target has are replaced.
func (c *copier) copyMarks(ctx context.Context) error {
	m, ok := c.o.Source.(storage.Marker)
	if !ok || c.state.Through != 0 {
		return nil
	}
	m.Marks(func(m model.Mark) { c.batch.Marks = append(c.batch.Marks, m) })
	c.state.Marks = len(c.batch.Marks)
	if c.state.Marks == 0 {
		return nil
	}
	if err := c.send(ctx); err != nil {
		return err
	}
	return c.wait()
}

// window copies and compares one window.
func (c *copier) window(ctx context.Context, r model.TimeRange) error {
	c.want, c.expired = digest{}, 0
	for at := 0; at < len(c.o.Items); at += itemsAtOnce {
		q := storage.Query{Items: c.o.Items[at:min(at+itemsAtOnce, len(c.o.Items))], Range: r}
		if err := c.o.Source.Read(ctx, q, func(cols *model.Columns) error { return c.add(ctx, cols) }); err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
	if err := c.send(ctx); err != nil {
		return err
	}
	if err := c.wait(); err != nil {
		return err
	}
	var got digest
	for at := 0; at < len(c.o.Items); at += itemsAtOnce {
		q := storage.Query{Items: c.o.Items[at:min(at+itemsAtOnce, len(c.o.Items))], Range: r}
		if err := c.o.Target.Read(ctx, q, got.addColumns); err != nil {
			return fmt.Errorf("read again: %w", err)
		}
	}
	if got != c.want {
		return fmt.Errorf("%d values with checksum %016x are there, expected %d with %016x; the target must be empty or hold an unfinished copy, and have room", got.values, got.sum, c.want.values, c.want.sum)
	}
	c.state.Through = r.To
	c.state.Values += got.values
	c.state.Checksum += got.sum
	c.state.Expired += c.expired
	return nil
}

// add takes values of one item over.
func (c *copier) add(ctx context.Context, cols *model.Columns) error {
	for i, at := range cols.At {
		if cols.Type.InArena() {
			c.batch.AppendBytes(cols.Item, at, cols.Type, cols.Bytes(i))
		} else {
			c.batch.Append(cols.Item, at, cols.Type, cols.Bits[i])
		}
		if c.batch.Len() >= batchValues || len(c.batch.Arena) > 8<<20 {
			if err := c.send(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// send appends what was gathered, waiting while the target is full.
func (c *copier) send(ctx context.Context) error {
	b := c.batch
	if b.Len() == 0 && len(b.Marks) == 0 {
		return nil
	}
	done := model.NewCompletion()
	b.Done = append(b.Done, done)
	const tries = 600
	for try := 1; ; try++ {
		_, err := c.o.Target.Append(ctx, b)
		if err == nil {
			break
		}
		if !errors.Is(err, storage.ErrFull) || try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	c.sent = append(c.sent, done)
	for i := range b.Items {
		switch {
		case b.Flags[i]&model.Expired != 0:
			c.expired++
		case b.Flags[i]&model.Moved != 0:
			return fmt.Errorf("item %d at %s: the target has another value there; it must be empty or hold an unfinished copy", b.Items[i], instant(b.At[i]))
		default:
			c.want.addRow(b, i)
		}
	}
	c.batch = &model.Batch{}
	return nil
}

// wait waits until everything that was sent is durable.
func (c *copier) wait() error {
	for _, d := range c.sent {
		<-d.Done()
		if err := d.Err(); err != nil {
			return err
		}
	}
	c.sent = nil
	return nil
}

// copyTrends copies whole hours into an engine that keeps them, or counts those whose values are gone.
func (c *copier) copyTrends(ctx context.Context) error {
	keeper, keeps := c.o.Target.(storage.Trendkeeper)
	c.state.Hours, c.state.HoursBehind = 0, 0
	all := model.TimeRange{From: math.MinInt64, To: storage.HourOf(c.o.To - 1)}
	for _, id := range c.o.Items {
		q := storage.Query{Items: []model.ItemID{id}, Range: all}
		var want, got trendDigest
		err := c.o.Source.Trends(ctx, q, func(t *storage.TrendColumns) error {
			want.add(t)
			if !keeps {
				return nil
			}
			return keeper.AppendTrends(ctx, []storage.TrendColumns{*t})
		})
		if err != nil || want.hours == 0 {
			if err != nil {
				return fmt.Errorf("item %d: %w", id, err)
			}
			continue
		}
		if err := c.o.Target.Trends(ctx, q, func(t *storage.TrendColumns) error { got.add(t); return nil }); err != nil {
			return fmt.Errorf("item %d: %w", id, err)
		}
		if keeps && got != want {
			return fmt.Errorf("item %d: %d hours with checksum %016x are there, expected %d with %016x", id, got.hours, got.sum, want.hours, want.sum)
		}
		c.state.Hours += min(got.hours, want.hours)
		c.state.HoursBehind += want.hours - min(got.hours, want.hours)
	}
	return nil
}
