package postgres

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/storagetest"
)

const day = int64(24 * time.Hour)

// clocked is an engine whose clock the test moves.
func clocked(t *testing.T, dsn string, mode Mode, now *int64, change func(*Options)) *DB {
	o := testOptions(t, mode, t.TempDir())
	o.Now = func() int64 { return *now }
	o.Classes = []Class{{History: 3 * 24 * time.Hour, Trends: 90 * 24 * time.Hour}, {}}
	if change != nil {
		change(&o)
	}
	return open(t, dsn, o)
}

func (db *DB) mustKeep(t *testing.T) {
	t.Helper()
	if err := db.keep(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (db *DB) parts(t *testing.T, k tableKey) []partition {
	t.Helper()
	conn, err := db.pool.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	parts, err := listPartitions(context.Background(), conn.Conn(), k)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// number appends one value and waits until it is in the database.
func number(t *testing.T, db *DB, item model.ItemID, at int64, v uint64) {
	t.Helper()
	b := &model.Batch{}
	b.AppendUint(item, at, v)
	storagetest.Append(t, settled{db}, b)
}

func TestDB_partitions(t *testing.T) { partitionsOn(t, shared) }

// partitionsOn follows a table through its days.
func partitionsOn(t *testing.T, c *cluster) {
	now := storagetest.Base
	dsn := c.database(t)
	db := clocked(t, dsn, Partitions, &now, nil)
	k := tableKey{valueType: model.Uint}
	number(t, db, 1, now, 1)
	parts := db.parts(t, k)
	for i, p := range parts {
		if p.to-p.from != maxStep || (i > 0 && parts[i-1].to != p.from) {
			t.Errorf("partition %d is %+v", i, p)
		}
	}
	if n := len(parts); n < 4 || int64(parts[0].from) > now/int64(time.Second)-behind || int64(parts[n-1].to) < now/int64(time.Second)+ahead {
		t.Errorf("partitions %+v, expected from two days before to two days ahead", parts)
	}
	// Ten days without maintenance: values have no partition and are stored all the same.
	now += 10 * day
	number(t, db, 1, now, 2)
	number(t, db, 1, now-day, 3)
	text, err := pgtest.Exec(dsn, "SELECT count(*) FROM history_uint_c0_default")
	if err != nil || text != "2\n" {
		t.Errorf("values in the default partition: %q, %v", text, err)
	}
	db.mustKeep(t)
	if text, err = pgtest.Exec(dsn, "SELECT count(*) FROM history_uint_c0_default"); err != nil || text != "0\n" {
		t.Errorf("values in the default partition after the keeper: %q, %v", text, err)
	}
	if got := storagetest.Collect(t, db, storagetest.All(1)); len(got) != 3 {
		t.Errorf("%v, expected three values", got)
	}
	before := len(db.parts(t, k))
	h, err := db.Housekeeping(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(h.Tables, func(t HousekeptTable) bool { return t.Name == k.String() })
	if i < 0 || h.Mode != Partitions || h.Tables[i].Next == nil || h.Tables[i].Next.DueAt != h.Tables[i].Next.To+3*86_400 || h.Tables[i].Bytes == 0 || h.Tables[i].Pieces != before {
		t.Errorf("housekeeping says %+v", h)
	}
	freed, err := db.Prune(context.Background(), now)
	if err != nil || freed <= 0 {
		t.Errorf("Prune: %d bytes, %v", freed, err)
	}
	after, err := db.Housekeeping(context.Background())
	if err != nil || len(after.Dropped) == 0 || after.Dropped[0].Name != h.Tables[i].Next.Name || after.Dropped[0].Reason != "retention" || after.Dropped[0].Bytes == 0 {
		t.Errorf("housekeeping says %+v, %v, expected that %s went first", after.Dropped, err, h.Tables[i].Next.Name)
	}
	if got := storagetest.Collect(t, db, storagetest.All(1)); len(got) != 2 {
		t.Errorf("%v, expected the first to be dropped", got)
	}
	for _, p := range db.parts(t, k) {
		if int64(p.to)*int64(time.Second) <= now-3*day {
			t.Errorf("%+v is past its retention", p)
		}
	}
	if left := len(db.parts(t, k)); left >= before {
		t.Errorf("%d partitions, were %d", left, before)
	}
}

// TestDB_gaps makes partitions between others, and beside others of another length.
func TestDB_gaps(t *testing.T) {
	now := storagetest.Base
	db := clocked(t, shared.database(t), Partitions, &now, func(o *Options) { o.partitionStep = minStep })
	b := &model.Batch{}
	for i := range int64(200) {
		b.AppendUint(1, now-i*int64(47*time.Minute), uint64(i))
	}
	db.o.Classes[0].History = 0
	storagetest.Append(t, settled{db}, b)
	db.mustKeep(t)
	db.mustKeep(t)
	db.mustKeep(t)
	parts := db.parts(t, tableKey{valueType: model.Uint})
	for i := 1; i < len(parts); i++ {
		if parts[i].from < parts[i-1].to {
			t.Errorf("%+v and %+v overlap", parts[i-1], parts[i])
		}
	}
	if got := storagetest.Collect(t, db, storagetest.All(1)); len(got) != 200 {
		t.Errorf("%d values, expected 200", len(got))
	}
	if p := gapAt([]partition{{from: 0, to: 50}, {from: 90, to: 100}}, 60, 86_400); p.from != 50 || p.to != 90 {
		t.Errorf("gap %+v, expected 50 to 90", p)
	}
}

// TestDB_sizes fits the length of partitions to their bytes, and drops the oldest beyond a bound.
func TestDB_sizes(t *testing.T) {
	now := storagetest.Base
	dsn := shared.database(t)
	db := clocked(t, dsn, Partitions, &now, func(o *Options) { o.PartitionBytes = 64 << 10 })
	db.o.Classes[0].History = 0
	for d := range int64(3) {
		b := &model.Batch{}
		for i := range int64(2000) {
			b.AppendUint(1, now+i*int64(time.Second), uint64(d))
		}
		storagetest.Append(t, settled{db}, b)
		now += day
		db.mustKeep(t)
	}
	if step := db.tables[tableKey{valueType: model.Uint}].step; step >= maxStep {
		t.Errorf("partitions of %d s, expected shorter ones", step)
	}
	db.o.SizeBytes = db.sizeBytes.Load() / 2
	freed, err := db.Prune(context.Background(), now)
	if err != nil || freed == 0 {
		t.Errorf("Prune: %d bytes, %v", freed, err)
	}
	if got := len(storagetest.Collect(t, db, storagetest.All(1))); got == 6000 || got == 0 {
		t.Errorf("%d values, expected that some are gone", got)
	}
}

// TestDB_plainRetention deletes rows of plain tables.
func TestDB_plainRetention(t *testing.T) {
	now := storagetest.Base
	db := clocked(t, shared.database(t), Plain, &now, nil)
	for i := range int64(500) {
		b := &model.Batch{}
		b.AppendUint(model.ItemID(i+1), now, 1)
		b.AppendUint(model.ItemID(i+1), now+2*day, 2)
		storagetest.Append(t, db, b)
	}
	if err := db.flushed(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Prune(context.Background(), now+4*day); err != nil {
		t.Fatal(err)
	}
	for _, id := range []model.ItemID{1, 250, 500} {
		if got := storagetest.Collect(t, db, storagetest.All(id)); len(got) != 1 || got[0].Bits != 2 {
			t.Errorf("item %d has %v, expected the second value", id, got)
		}
	}
}

// TestDB_pruning looks at PostgreSQL's plans: a query touches the partitions of its range only.
func TestDB_pruning(t *testing.T) {
	now := storagetest.Base
	dsn := shared.database(t)
	db := clocked(t, dsn, Partitions, &now, nil)
	number(t, db, 1, now, 1)
	k := tableKey{valueType: model.Uint}
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	touched := regexp.MustCompile(`history_uint_c0_(p\d+_\d+|default)`)
	const read, newest, fold = "read", "newest", "fold"
	explain := func(way string, r model.TimeRange) map[string]bool {
		from, to := clampRange(r)
		c1, n1 := split(from)
		c2, n2 := split(to)
		sql, args := k.selectSQL(k.String(), way == newest), []any{int64(1), c1, n1, c2, n2}
		switch way {
		case newest:
			args = append(args, int64(5))
		case fold:
			sql, args = k.foldSQL(k.String()), append(args, int64(time.Minute), int64(0))
		}
		rows, err := conn.Query(context.Background(), "EXPLAIN "+sql, append([]any{pgx.QueryExecModeExec}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, m := range touched.FindAllString(strings.Join(plan, "\n"), -1) {
			names[m] = true
		}
		return names
	}
	for _, way := range []string{read, newest, fold} {
		if got := explain(way, model.TimeRange{From: now, To: now + int64(time.Minute)}); len(got) != 1 {
			t.Errorf("%s: a minute touches %v, expected one partition", way, got)
		}
		if got := explain(way, model.TimeRange{From: now, To: now + day}); len(got) != 2 {
			t.Errorf("%s: a day from within touches %v, expected two partitions", way, got)
		}
		if got := explain(way, model.TimeRange{From: math.MinInt64, To: math.MaxInt64}); len(got) < 5 {
			t.Errorf("%s: everything touches %v, expected all partitions", way, got)
		}
	}
	// The same of a view with Zabbix's name, as people's dashboards ask it.
	rows, err := conn.Query(context.Background(), fmt.Sprintf("EXPLAIN SELECT clock, value FROM history_uint WHERE itemid = 1 AND clock BETWEEN %d AND %d",
		now/int64(time.Second), now/int64(time.Second)+60))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if names := touched.FindAllString(strings.Join(plan, "\n"), -1); err != nil || len(names) == 0 || strings.Contains(strings.Join(names, " "), "default") {
		t.Errorf("the view's plan is %q, %v", plan, err)
	}
}

// TestDB_lateWhileAway stores what could not be compared while the database was away by the same rules.
func TestDB_lateWhileAway(t *testing.T) {
	now := storagetest.Base
	dsn := shared.database(t)
	db := clocked(t, dsn, Partitions, &now, nil)
	number(t, db, 1, now-10, 1)
	number(t, db, 1, now, 2)
	away := fmt.Errorf("away")
	db.away.Store(&away)
	b := &model.Batch{}
	b.AppendUint(1, now-10, 1) // a duplicate
	b.AppendUint(1, now-10, 7) // another value at a taken instant
	b.AppendUint(1, now-5, 8)  // late
	b.AppendString(1, now, model.Text, "of another type")
	// Its instant and the next are taken by the two above, of which the first turns out to be stored already.
	b.AppendString(1, now-10, model.Text, "bad \x00 text \xff")
	storagetest.Append(t, db, b)
	db.away.Store(nil)
	if err := db.flushed(context.Background()); err != nil {
		t.Fatal(err)
	}
	text, err := pgtest.Exec(dsn, "SELECT ns, value FROM history_uint ORDER BY clock, ns")
	if want := "999999990|1\n999999991|7\n999999995|8\n0|2\n"; err != nil || text != want {
		t.Errorf("rows %q, %v, expected %q", text, err, want)
	}
	text, err = pgtest.Exec(dsn, "SELECT clock, value, ns FROM history_text ORDER BY clock, ns")
	if want := fmt.Sprintf("%d|bad \uFFFD text \uFFFD|999999992\n%[2]d|of another type|0\n", now/int64(time.Second)-1, now/int64(time.Second)); err != nil || text != want {
		t.Errorf("rows %q, %v, expected %q", text, err, want)
	}
}

// TestDB_views reads trends and values through Zabbix's names.
func TestDB_views(t *testing.T) {
	now := storagetest.Base
	dsn := shared.database(t)
	db := clocked(t, dsn, Partitions, &now, nil)
	for _, view := range allViews() { // all are there before there is a value
		if text, err := pgtest.Exec(dsn, "SELECT "+view.public()+" FROM "+view.view()); err != nil || text != "" {
			t.Errorf("%s: %q, %v", view.view(), text, err)
		}
	}
	if err := db.Define(context.Background(), []storage.ItemDefinition{{ID: 2, Class: 1}}); err != nil {
		t.Fatal(err)
	}
	b := &model.Batch{}
	b.AppendUint(1, now, math.MaxUint64)
	b.AppendUint(2, now, 5)
	b.AppendLog(3, now, model.Log{At: 7, Severity: 4, EventID: math.MaxUint32, Source: "src", Text: "line"})
	storagetest.Append(t, settled{db}, b)
	text, err := pgtest.Exec(dsn, "SELECT itemid, value FROM history_uint ORDER BY itemid; SELECT timestamp, source, severity, value, logeventid FROM history_log")
	if want := "1|18446744073709551615\n2|5\n7|src|4|line|2147483647\n"; err != nil || text != want {
		t.Errorf("%q, %v, expected %q", text, err, want)
	}
	trend := model.Trend{At: storage.HourOf(now), Count: 3, Min: 1, Max: math.MaxUint64, First: 2, Last: 3, SumHigh: 1, SumLow: 7, Increase: 1e19 + 0.5}
	float := model.Trend{At: storage.HourOf(now), Count: 2, Min: math.Float64bits(-0.1), Max: math.Float64bits(math.Inf(1)), First: 1, Last: 2, Sum: 0.30000000000000004}
	columns := []storage.TrendColumns{{Item: 1, Type: model.Uint, Trends: []model.Trend{trend}}, {Item: 2, Type: model.Float, Trends: []model.Trend{float}}}
	for range 2 { // the second time they are replaced
		if err := db.AppendTrends(context.Background(), columns); err != nil {
			t.Fatal(err)
		}
	}
	err = db.Trends(context.Background(), storage.Query{Items: []model.ItemID{1, 2}, Range: model.TimeRange{From: now - day, To: now + 1}}, func(c *storage.TrendColumns) error {
		if want := map[model.ItemID]model.Trend{1: trend, 2: float}[c.Item]; c.Trends[0] != want && c.Item == 1 || c.Type == model.Float && c.Trends[0] != want {
			t.Errorf("item %d: %+v, expected %+v", c.Item, c.Trends[0], want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	text, err = pgtest.Exec(dsn, "SELECT itemid, clock % 3600, num, value_min, value_avg, value_max FROM trends_uint")
	if want := "1|0|3|1|6148914691236517207|18446744073709551615\n"; err != nil || text != want {
		t.Errorf("%q, %v, expected %q", text, err, want)
	}
}
