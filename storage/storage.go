// Package storage is the contract between the pipeline and the engines that keep its values.
//
// The contract stays small. What only some engines can do is an optional interface, probed once by the server.
package storage

import (
	"context"
	"errors"
	"fmt"

	"tidemark/model"
)

// Engine keeps values. All methods may be called at the same time from several goroutines.
type Engine interface {
	// Append stores the values of b and returns the LSN behind them.
	//
	// When it returns nil the values are visible to Read, and the engine will finish every completion in b.Done as
	// soon as the values and marks are durable (or with an error if they cannot become so); it takes b.Done over and
	// leaves it empty. It keeps no other reference into b. It sets b.Flags (Duplicate, Late, Moved, Expired) and, for
	// moved values, b.At. Values of type Raw and Unsupported are passed over.
	//
	// On an error nothing was stored and b.Done still belongs to the caller. ErrFull means: try again later.
	Append(ctx context.Context, b *model.Batch) (model.LSN, error)
	// Read streams the values that q asks for. fn gets the columns of one item in rising time order, possibly in
	// several calls; items come in q's order. The columns are valid during the call. An error of fn ends the read
	// and is returned.
	Read(ctx context.Context, q Query, fn func(*model.Columns) error) error
	// Trends streams hourly summaries of numeric items in rising time order, as Read does.
	Trends(ctx context.Context, q Query, fn func(*TrendColumns) error) error
	// Prune drops values past their retention and returns the bytes that became free.
	Prune(ctx context.Context, now int64) (freedBytes int64, err error)
	// Close makes everything durable and releases the engine. A second call does nothing.
	Close() error
}

// Query says which values to read.
type Query struct {
	Items []model.ItemID
	// Range is half-open, Unix nanoseconds.
	Range model.TimeRange
	// Newest, if not zero, asks only for the last Newest values of each item in Range (still in rising order).
	Newest int
	// MaxBytes bounds the memory that the read may hold at once; zero is the engine's default.
	MaxBytes int64
}

// TrendColumns are hourly summaries of one item in rising time order; valid during the call that delivers them.
type TrendColumns struct {
	Item   model.ItemID
	Type   model.ValueType
	Trends []model.Trend
}

// ItemDefinition is all that an engine knows of an item besides its values.
type ItemDefinition struct {
	ID   model.ItemID
	Type model.ValueType
	// Group is the collection group: items whose values come together and share their times (host and interval).
	Group uint64
	// Class is the retention class, an index into the engine's configured classes.
	Class uint8
	// Share is an opaque number for fair shares of the disk (the host).
	Share uint64
}

// Definer is an engine that makes use of item definitions. Define is called before an item's first value.
type Definer interface {
	Define(ctx context.Context, defs []ItemDefinition) error
}

// Summarizer is an engine with a tier between values and hours.
type Summarizer interface {
	// Minutes streams summaries of one minute as Trends does those of hours. It reaches back as far as the engine keeps them, which is longer
	// than the values, and up to now. The sum of a minute of floats may differ in its last bits from that of its values added in order of time.
	Minutes(ctx context.Context, q Query, fn func(*TrendColumns) error) error
}

// Folder is an engine that sums up the values of steps of any length where it decodes them, without handing them out.
type Folder interface {
	// Fold streams, for each item, what the values of each step of q's range come to, as Read does values; the first step begins where the range
	// does, and those without values are left out. Items that are not numeric are passed over, Newest is. Where the type of an item changes in
	// a step there is a fold of each. The sum of floats may differ in its last bits from that of the values added in order of time.
	Fold(ctx context.Context, q Query, step int64, fn func(*FoldColumns) error) error
}

// Merger is an engine that keeps what binary values of minutes and hours merge to.
type Merger interface {
	// Merged streams binary values that merge to the same as all those of q's range, in no order: the values themselves, or, at the end of a
	// minute or an hour, what those behind its begin up to and with its end merge to. Instants of one cell may be merged, those of different
	// cells are not, as far as values are kept; cells rise in time, and nil puts all into one. Where the values are gone a minute, or else an
	// hour, counts for the range and the cell that its end is in. Values that do not merge may be left out; Newest is passed over.
	Merged(ctx context.Context, q Query, cell func(at int64) int, fn func(*model.Columns) error) error
}

// FoldColumns are folds of one item in rising time order; valid during the call that delivers them.
type FoldColumns struct {
	Item  model.ItemID
	Type  model.ValueType
	Folds []Fold
}

// Fold is what the values of one step come to.
type Fold struct {
	// At is where the step begins, FirstAt and LastAt are the times of its first and last value, Unix nanoseconds.
	At, FirstAt, LastAt int64
	// Count counts the values that are numbers, NaNs those that are not: these count for nothing else but times.
	Count, NaNs uint64
	// Min, Max, First and Last are payloads in the item's value type (see model.Columns.Bits).
	Min, Max, First, Last uint64
	// Sum is the sum of floats. For integers SumHigh:SumLow is the exact one instead.
	Sum             float64
	SumHigh, SumLow uint64
	// Dense means that two values of the step are less than a millisecond apart.
	Dense bool
}

// Total returns the sum as a float.
func (f *Fold) Total(t model.ValueType) float64 {
	if t == model.Uint {
		return float64(f.SumHigh)*0x1p64 + float64(f.SumLow)
	}
	return f.Sum
}

// Trendkeeper is an engine without tiers: the trends cache gives it finished hours.
type Trendkeeper interface {
	AppendTrends(ctx context.Context, columns []TrendColumns) error
}

// Replayer is an engine with a log that can be read again after a restart.
type Replayer interface {
	// Replay calls fn for every record that was appended after LSN from, oldest first, with the flags it got then.
	// The batch is valid during the call.
	Replay(ctx context.Context, from model.LSN, fn func(model.LSN, *model.Batch) error) error
	// Release says that records up to lsn need not be kept for Replay any more. Until the first call the engine
	// keeps everything its log budget allows.
	Release(lsn model.LSN)
	// LastLSN is the LSN behind the last record.
	LastLSN() model.LSN
}

// Marker is an engine that keeps marks.
type Marker interface {
	// Marks calls fn for every mark that is kept, in no order.
	Marks(fn func(model.Mark))
}

// Stats are what the pages and metrics show of an engine.
type Stats struct {
	// DiskBytes is used of QuotaBytes; QuotaBytes is zero for no limit.
	DiskBytes, QuotaBytes int64
	Values, Items         uint64
	// From and To bound the stored times, Unix nanoseconds; both zero when empty.
	From, To int64
	// Durable is the LSN up to which everything is on disk.
	Durable model.LSN
}

// Statter is an engine that can say how full it is.
type Statter interface {
	Stats() Stats
}

// ErrFull means that there is no room now: what is not yet acknowledged is refused and may be tried again.
var ErrFull = errors.New("storage: no space left; the values were not stored, send them again later")

// ErrClosed means that the engine is closed.
var ErrClosed = errors.New("storage: closed")

// ErrTooMuch means that a query asked for more than its byte budget.
var ErrTooMuch = errors.New("storage: the query needs more memory than allowed; ask for fewer items or a shorter range")

// CorruptionError says that bytes on disk are not what was written.
type CorruptionError struct {
	File string
	// Offset is where in the file, in bytes.
	Offset int64
	// Want says what was expected there and what was found.
	Want string
}

// Error names the file, the place and what was expected.
func (e *CorruptionError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: %s", e.File, e.Offset, e.Want)
}
