// Package catalog knows which items exist: their ids, host, key, value type, labels, and the inverted index that
// PromQL matchers use.
//
// Configured items come from the configuration database with every Apply and live here in memory only. Declared items
// are made on first sight (by the agent, the MongoDB monitor, scrapes, remote writes); the catalog is their only home
// and logs each of them before it is used. Ids of both kinds come from NextItemID or Declare and are never given twice.
// The layout of the log is in FORMAT.md.
package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/internal/vfs"
	"tidemark/model"
)

// Options adjust a catalog.
type Options struct {
	// MaxDeclared bounds the declared items of one host, and once more its series (IsSeries); zero means 20,000. Those of MongoDB's shapes have
	// a bound of their own.
	MaxDeclared int
	// MaxShapeItems bounds the items of MongoDB's shapes (keys mongo.shape[…]) of one host; zero means 60,000: 2,000 shapes that live with ten
	// items each, and those that lived in the last week.
	MaxShapeItems int
	// MinItemID is below every id that is given out: pass one more than the largest id that the configuration or the
	// engine knows, so that a lost log cannot give an id a second time. Zero asks for nothing.
	MinItemID model.ItemID
	// Forget is how long after its last value a declared item is dropped by Expire; zero means 7 days.
	Forget time.Duration
	// Log, if not nil, keeps the records in the place of a file; what the file in dir has is taken over while Log is empty.
	Log Log
	// Logger gets damage and rewrites; nil discards.
	Logger *slog.Logger
	// Metrics gets the catalog's own metrics; nil keeps none.
	Metrics *metrics.Set
}

const (
	defaultMaxDeclared   = 20_000
	defaultMaxShapeItems = 60_000
	defaultForget        = 7 * 24 * time.Hour
	// idBlock is how many ids one log record reserves. A crash loses at most so many, out of 2^64.
	idBlock = 4096
	// idSkip is jumped over when the end of the log is missing, so that ids reserved there are not given again.
	idSkip = 1 << 20
)

// Catalog is safe for use by several goroutines.
//
// Lock order: writer before mu. writer serialises everything that is logged; mu guards the tables.
type Catalog struct {
	options Options
	logger  *slog.Logger

	writer   sync.Mutex
	log      *log
	nextID   model.ItemID
	limitID  model.ItemID // ids below are reserved in the log
	declared int          // live declared items

	mu    sync.RWMutex
	index *index

	counters counters
}

type counters struct {
	created, updated, refused, expired, damaged *metrics.Counter
}

// Open reads the log in dir, which it creates if it must. Damage in it is set aside and reported; only a log written
// by a newer version, or a folder that cannot be used, is an error.
func Open(ctx context.Context, fsys vfs.FS, dir string, options Options) (*Catalog, error) {
	if options.MaxDeclared == 0 {
		options.MaxDeclared = defaultMaxDeclared
	}
	if options.MaxShapeItems == 0 {
		options.MaxShapeItems = defaultMaxShapeItems
	}
	if options.Forget == 0 {
		options.Forget = defaultForget
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Catalog{options: options, logger: options.Logger, index: newIndex(), nextID: 1}
	c.measure(options.Metrics)
	file := func() (*log, logState, error) { return openLog(ctx, fsys, dir, c.logger, c.replay) }
	open := file
	if options.Log != nil {
		open = func() (*log, logState, error) { return openShared(ctx, options.Log, file, c.replay) }
	}
	l, state, err := open()
	if err != nil {
		return nil, fmt.Errorf("open catalog %s: %w", dir, err)
	}
	c.log = l
	if options.Metrics != nil {
		options.Metrics.NewGauge("tidemark_catalog_log_bytes", func() float64 { return float64(l.sizeBytes.Load()) })
	}
	c.nextID = max(c.nextID, c.limitID)
	if state.torn || state.damaged {
		c.nextID += idSkip
	}
	if state.damaged {
		c.counters.damaged.Inc()
	}
	c.nextID = max(c.nextID, options.MinItemID)
	c.limitID = c.nextID
	if state.damaged || state.missing {
		if err := c.rewrite(); err != nil {
			_ = l.close()
			return nil, fmt.Errorf("open catalog %s: %w", dir, err)
		}
		l.setAside()
	}
	return c, nil
}

// measure registers the metrics; without a set they are counted and shown nowhere.
func (c *Catalog) measure(set *metrics.Set) {
	if set == nil {
		set = metrics.NewSet()
	}
	c.counters = counters{
		created: set.NewCounter("tidemark_catalog_declared_items_total"),
		updated: set.NewCounter("tidemark_catalog_updated_items_total"),
		refused: set.NewCounter("tidemark_catalog_refused_items_total"),
		expired: set.NewCounter("tidemark_catalog_expired_items_total"),
		damaged: set.NewCounter("tidemark_catalog_damaged_logs_total"),
	}
	set.NewGauge("tidemark_catalog_items", func() float64 {
		c.mu.RLock()
		defer c.mu.RUnlock()
		return float64(len(c.index.byID))
	})
}

// Close closes the log. Everything that was acknowledged is in it already. A second call does nothing.
func (c *Catalog) Close() error {
	c.writer.Lock()
	defer c.writer.Unlock()
	return c.log.close()
}

// Still calls fn while nothing is written to the catalog's folder, so that fn can copy it.
func (c *Catalog) Still(fn func() error) error {
	c.writer.Lock()
	defer c.writer.Unlock()
	return fn()
}

// NextItemID gives an id that was never given before and never will be again. It touches the disk once in 4,096 calls.
func (c *Catalog) NextItemID() (model.ItemID, error) {
	c.writer.Lock()
	defer c.writer.Unlock()
	if err := c.reserve(1); err != nil {
		return 0, err
	}
	id := c.nextID
	c.nextID++
	return id, nil
}

// PassID makes NextItemID give ids behind id only, as Options.MinItemID does for a catalog that is opened.
func (c *Catalog) PassID(id model.ItemID) {
	c.writer.Lock()
	defer c.writer.Unlock()
	c.nextID = max(c.nextID, id+1)
	c.limitID = max(c.limitID, c.nextID)
}

// reserve makes sure that n ids from nextID on are reserved in the log. The caller holds writer.
func (c *Catalog) reserve(n int) error {
	if c.nextID+model.ItemID(n) <= c.limitID {
		return nil
	}
	limit := c.nextID + model.ItemID(n) + idBlock
	if err := c.append(appendReserve(nil, limit)); err != nil {
		return fmt.Errorf("reserve item ids: %w", err)
	}
	c.limitID = limit
	return nil
}

// append logs payloads (each behind its own frame) durably. After a failure the log is written anew from memory
// before anything else is appended, because what a failed write left on disk is not known. The caller holds writer.
func (c *Catalog) append(payloads ...[]byte) error {
	if c.log.failed {
		if err := c.rewrite(); err != nil {
			return err
		}
	}
	return c.log.append(payloads)
}

// rewrite replaces the log by one that holds only what lives. The caller holds writer.
func (c *Catalog) rewrite() error {
	return c.log.rewrite(func(emit func([]byte) error) error {
		if err := emit(appendReserve(nil, c.limitID)); err != nil {
			return err
		}
		c.mu.RLock()
		defer c.mu.RUnlock()
		for i := range c.index.count {
			e := c.index.at(i)
			if e.dead || e.kind != model.Declared {
				continue
			}
			if err := emit(appendDeclare(nil, c.index.record(e))); err != nil {
				return err
			}
		}
		return nil
	})
}

// compact rewrites the log when most of its records are of no use any more. The caller holds writer.
func (c *Catalog) compact() {
	if c.log.records < 4096 || c.log.records < 2*c.declared {
		return
	}
	if err := c.rewrite(); err != nil {
		c.logger.Error("rewrite the catalog's log", "error", err)
	}
}

// replay applies one record of the log while it is opened.
func (c *Catalog) replay(payload []byte) error {
	r, err := decodeRecord(payload)
	if err != nil {
		return err
	}
	switch r.kind {
	case recordReserve:
		c.limitID = max(c.limitID, r.limit)
	case recordDeclare:
		c.limitID = max(c.limitID, r.item.id+1)
		if i, known := c.index.byID[r.item.id]; known {
			c.index.kill(i)
			c.declared--
		}
		h := c.index.host(r.item.hostID, r.item.host)
		if i, known := h.items[c.index.symbols.find(r.item.key)]; known {
			c.index.kill(i)
			c.declared--
		}
		c.index.add(h, &r.item)
		c.declared++
	case recordForget:
		for _, id := range r.ids {
			if i, known := c.index.byID[id]; known {
				c.index.kill(i)
				c.declared--
			}
		}
	}
	c.index.sweepIfWorth()
	return nil
}
