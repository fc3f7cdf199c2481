package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"tidemark/confdb"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/transfer"
	"tidemark/zabbixdb"
)

// HistoryOptions say which values come out of a Zabbix database into the store of a data folder whose server is stopped.
type HistoryOptions struct {
	// Zabbix is the address of its database.
	Zabbix string
	// Data is the data folder; DSN, if not empty, the PostgreSQL database that keeps its values; Mode and DiskSpaceBytes as in Options.
	Data, DSN, Mode string
	DiskSpaceBytes  int64
	// Since and Until bound the times; zero Until is five minutes ago, because Zabbix writes what its proxies bring later.
	Since, Until    time.Time
	SkipTables      []string
	ValuesPerSecond int64
	Progress        func(HistoryProgress)
	Logger          *slog.Logger
}

// HistoryProgress is how far it is.
type HistoryProgress struct {
	// Phase is values or trends.
	Phase string
	// Share is the done part, 0 to 1, of this pass, Left an estimate of the rest.
	Share  float64
	Left   time.Duration
	Values uint64
	Hours  uint64
	// Through is up to when all values are there.
	Through time.Time
}

// HistoryReport is what came over, in this run and before.
type HistoryReport struct {
	// Items are those that are here too; Missing are not here, Other have another type of value here.
	Items   int `json:"items"`
	Missing int `json:"missing_items"`
	Other   int `json:"items_of_other_type"`
	// Values are there and compared; Expired are past their item's retention here; Repeated came twice.
	Values   uint64 `json:"values"`
	Checksum string `json:"checksum"`
	Expired  uint64 `json:"expired"`
	Repeated uint64 `json:"repeated"`
	// Hours of trends were added and compared.
	Hours uint64 `json:"hours"`
	// From and Through bound the values, in RFC 3339.
	From    string `json:"from,omitempty"`
	Through string `json:"through,omitempty"`
	// Examples are items that are missing here.
	Examples []string        `json:"examples,omitempty"`
	Left     []zabbixdb.Left `json:"left"`
}

const (
	// lateWriting is how long Zabbix may take to write a value.
	lateWriting = 5 * time.Minute
	// maxMissingExamples bounds the examples of a report.
	maxMissingExamples = 20
)

// ImportHistory copies values and trends of all items that are here by host and key, and compares them. It goes on where an earlier run
// ended. An item's own values here, which came since its agents send to both servers, stay: Zabbix's are taken up to the first of them.
func ImportHistory(ctx context.Context, o HistoryOptions) (report *HistoryReport, err error) {
	if !confdb.Exists(o.Data) {
		return nil, fmt.Errorf("%s is no data folder of a server: %w; import the configuration first", o.Data, fs.ErrNotExist)
	}
	lock, err := lockFolder(vfs.OS{}, o.Data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	side := transferSide(TransferOptions{Data: o.Data, Mode: o.Mode, DiskSpaceBytes: o.DiskSpaceBytes, Logger: o.Logger}, o.DSN)
	if o.DSN == "" && o.DiskSpaceBytes == 0 {
		// Nothing that is here must be dropped for what comes.
		used, err := folderBytes(filepath.Join(o.Data, "engine"))
		if err != nil {
			return nil, err
		}
		space, err := diskSpace(vfs.OS{}, o.Data, 0)
		if err != nil {
			return nil, err
		}
		side.o.DiskSpaceBytes = max(space, 2*used+1<<30)
	}
	defer func() { err = errors.Join(err, side.Close()) }()
	if err := side.openStores(ctx, vfs.OS{}); err != nil {
		return nil, err
	}
	defs, err := side.definitionsOfAll(ctx)
	if err != nil {
		return nil, err
	}
	if err := side.engine.Define(ctx, defs); err != nil {
		return nil, err
	}
	i := &historyImport{o: o, side: side, report: &HistoryReport{Left: []zabbixdb.Left{}}}
	if err := i.match(ctx); err != nil {
		return nil, err
	}
	if err := i.run(ctx); err != nil {
		return nil, err
	}
	// What was copied is not evaluated: triggers go on with what comes next.
	return i.report, side.db.ResetEvaluated(ctx, side.engine.LastLSN())
}

// historyImport is a running import.
type historyImport struct {
	o      HistoryOptions
	side   *Server
	report *HistoryReport
	items  []zabbixdb.HistoryItem
	source *zabbixdb.History
	state  historyState
}

// match finds the items here that have the host and key of one in Zabbix.
func (i *historyImport) match(ctx context.Context) (err error) {
	source, err := zabbixdb.Open(ctx, i.o.Zabbix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	snapshot := i.side.cache.Snapshot()
	err = source.Items(ctx, func(z zabbixdb.Item) error {
		here, ok := snapshot.ItemOf(z.Host, z.Key)
		switch {
		case !ok:
			if i.report.Missing++; len(i.report.Examples) < maxMissingExamples {
				i.report.Examples = append(i.report.Examples, z.Host+": "+z.Key)
			}
		case here.ValueType != z.Type:
			i.report.Other++
		default:
			i.items = append(i.items, zabbixdb.HistoryItem{ID: here.ID, Zabbix: z.Zabbix, Type: z.Type})
		}
		return nil
	})
	i.report.Items = len(i.items)
	i.report.Left = append(i.report.Left, source.Left()...)
	return err
}

func (i *historyImport) run(ctx context.Context) (err error) {
	if i.source, err = zabbixdb.OpenHistory(ctx, i.o.Zabbix, i.items, i.o.SkipTables); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.source.Close()) }()
	if err := i.load(); err != nil {
		return err
	}
	for k := range i.state.Groups {
		g := &i.state.Groups[k]
		if g.unfinished() { // with the bounds that it had, or an earlier one that is asked for now
			if !i.o.Until.IsZero() {
				g.To = min(g.To, max(i.o.Until.UnixNano(), g.State.Through))
			}
			if err := i.pass(ctx, g); err != nil {
				return err
			}
		}
		if err := i.begin(ctx, g); err != nil {
			return err
		}
		if err := i.pass(ctx, g); err != nil {
			return err
		}
		i.report.Values += g.State.Values
		i.report.Expired += g.State.Expired
		i.report.Hours += g.Hours
	}
	i.summarize()
	return nil
}

func (i *historyImport) summarize() {
	var sum uint64
	first, through := int64(0), int64(0)
	for _, g := range i.state.Groups {
		sum += g.State.Checksum
		if g.From != 0 && (first == 0 || g.From < first) {
			first = g.From
		}
		through = max(through, g.State.Through)
	}
	i.report.Checksum, i.report.Repeated = fmt.Sprintf("%016x", sum), i.source.Repeated()
	if first != 0 {
		i.report.From = time.Unix(0, first).UTC().Format(time.RFC3339)
		i.report.Through = time.Unix(0, through).UTC().Format(time.RFC3339)
	}
}

// pass copies the values of a group up to its bound, then its trends.
func (i *historyImport) pass(ctx context.Context, g *historyGroup) error {
	cuts := g.cuts()
	if g.From != 0 && g.To > max(g.From, g.State.Through) {
		g.State.Done = false
		state, err := transfer.Run(ctx, transfer.Options{
			Source: cutEngine{Engine: i.source, cuts: cuts}, Target: cutEngine{Engine: i.side.engine, cuts: cuts}, Items: g.Items, From: g.From, To: g.To,
			ValuesPerSecond: i.o.ValuesPerSecond, State: g.State,
			Save: func(s transfer.State) error {
				s.Done = false // the trends are missing
				g.State = s
				return i.save()
			},
			Progress: func(p transfer.Progress) {
				i.say(HistoryProgress{Phase: "values", Share: p.Share, Left: p.Left, Values: p.Values, Through: time.Unix(0, p.Through)})
			},
		})
		if err != nil {
			return err
		}
		g.State = state
	}
	if err := i.trends(ctx, g, cuts); err != nil {
		return fmt.Errorf("copy trends: %w", err)
	}
	g.State.Done = true
	return i.save()
}

func (i *historyImport) say(p HistoryProgress) {
	if i.o.Progress != nil {
		i.o.Progress(p)
	}
}

// cutEngine shows of each item only what is before its cut. Trends are copied apart.
type cutEngine struct {
	storage.Engine
	cuts map[model.ItemID]int64
}

// Read implements storage.Engine.
func (e cutEngine) Read(ctx context.Context, q storage.Query, fn func(*model.Columns) error) error {
	return e.Engine.Read(ctx, q, func(c *model.Columns) error {
		cut, ok := e.cuts[c.Item]
		if !ok || len(c.At) == 0 || c.At[len(c.At)-1] < cut {
			return fn(c)
		}
		n := 0
		for n < len(c.At) && c.At[n] < cut {
			n++
		}
		if n == 0 {
			return nil
		}
		part := *c
		part.At, part.Bits = c.At[:n], c.Bits[:n]
		return fn(&part)
	})
}

// Trends has none.
func (e cutEngine) Trends(context.Context, storage.Query, func(*storage.TrendColumns) error) error {
	return nil
}
