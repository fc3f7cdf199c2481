package postgres

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/storagetest"
)

const (
	// migrateDSN tells a child of the migration test where to work, migrateTo what to make.
	migrateDSN = "TIDEMARK_MIGRATE_DSN"
	migrateTo  = "TIDEMARK_MIGRATE_TO"
)

// migrateStep is how many rows move in one transaction; more where there are many, as the command does it.
func migrateStep(rows int) int { return min(max(4000, rows/400), 50_000) }

// migrateRows is how many rows TestMigrate_killed moves when nobody says.
const migrateRows = 200_000

// bulkItems is how many items share the rows that are there before a migration.
const bulkItems = 50

// fillPlain puts rows into the plain tables of an engine as the writer would over days, without the time that it takes, and returns how many
// each item has.
func fillPlain(t *testing.T, db *DB, dsn string, rows int) int {
	t.Helper()
	now := storagetest.Now() / int64(time.Second)
	each := rows / 2 / bulkItems
	b := &model.Batch{}
	for id := model.ItemID(1); id <= bulkItems; id++ { // so that the engine knows them
		b.AppendFloat(id, now*int64(time.Second), 0.5)
		b.AppendUint(id+bulkItems, now*int64(time.Second), 5)
	}
	b.AppendString(2*bulkItems+1, now*int64(time.Second), model.Text, "first")
	storagetest.Append(t, settled{db}, b)
	trend := model.Trend{At: storage.HourOf(now*int64(time.Second)) - 10*storage.Hour, Count: 1, Min: 1, Max: 1, First: 1, Last: 1, SumLow: 1}
	if err := db.AppendTrends(context.Background(), []storage.TrendColumns{{Item: bulkItems + 1, Type: model.Uint, Trends: []model.Trend{trend}}}); err != nil {
		t.Fatal(err)
	}
	const span = 20 * 86_400
	sql := fmt.Sprintf(`
		INSERT INTO history_c0 SELECT i, %[1]d - %[4]d + n * (%[4]d / %[3]d), (n * 7919 + i) %% 1000000000, sqrt(n * i) FROM generate_series(0, %[3]d - 2) n, generate_series(1, %[2]d) i;
		INSERT INTO history_uint_c0 SELECT i + %[2]d, %[1]d - %[4]d + n * (%[4]d / %[3]d), n %% 1000000000, 18446744073709551615 - n FROM generate_series(0, %[3]d - 2) n, generate_series(1, %[2]d) i;
		INSERT INTO history_text_c0 SELECT 2 * %[2]d + 1, %[1]d - 86400 + n, 0, 'line ' || n, NULL FROM generate_series(1, 1000) n`, now, bulkItems, each, span)
	if _, err := pgtest.Exec(dsn, sql); err != nil {
		t.Fatal(err)
	}
	return each
}

// digests are counts and checksums of what people see through Zabbix's names, up to the time of the fill.
func digests(t *testing.T, dsn string) string {
	t.Helper()
	sql := ""
	for _, k := range allViews() {
		sql += fmt.Sprintf("SELECT '%s', count(*), sum(hashtextextended(v::text, 0)) FROM %[1]s v WHERE clock <= %d AND itemid <> 9999;", k.view(), storagetest.Now()/int64(time.Second))
	}
	text, err := pgtest.Exec(dsn, sql)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// migrateAsChild is what TestMigrate_killed starts again and again and kills.
func migrateAsChild(t *testing.T, dsn string) {
	_, err := Migrate(context.Background(), dsn, MigrateOptions{From: Plain, To: Mode(os.Getenv(migrateTo)), StepRows: int64(migrateStep(count(t, "TIDEMARK_MIGRATE_ROWS", migrateRows))), Progress: func(p MigrateProgress) {
		if p.Doing == "moving" {
			fmt.Println("step", p.DoneRows, p.TotalRows)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("finished")
}

// TestMigrate_killed moves plain tables into partitions under load, is killed again and again, and loses, doubles, hides no row.
// TIDEMARK_MIGRATE_ROWS sets how many.
func TestMigrate_killed(t *testing.T) {
	if dsn := os.Getenv(migrateDSN); dsn != "" {
		migrateAsChild(t, dsn)
		return
	}
	rows := count(t, "TIDEMARK_MIGRATE_ROWS", migrateRows)
	const kills = 10
	enough := max(2, rows/migrateStep(rows)/(kills+1)) // kills are spread over the whole way
	dsn := shared.database(t)
	o := testOptions(t, Auto, t.TempDir())
	o.Classes = nil
	o.Mode = Plain
	db := open(t, dsn, o)
	db.o.Mode = Auto // as if the configuration did not say
	each := fillPlain(t, db, dsn, rows)
	want := digests(t, dsn)
	stop := make(chan struct{})
	load := make(chan error, 1)
	appended := 0
	go func() { load <- loadMigration(db, each, stop, &appended) }()
	for killed := 0; killed <= kills; {
		child := exec.Command(os.Args[0], "-test.run=^TestMigrate_killed$", "-test.v")
		child.Env = append(os.Environ(), killDSN+"=x", migrateDSN+"="+dsn, migrateTo+"="+string(Partitions))
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		finished, steps := false, 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "step ") {
				steps++
			}
			finished = finished || lines.Text() == "finished"
			if steps == enough && killed < kills {
				_ = child.Process.Kill()
				break
			}
		}
		err = child.Wait()
		if killed == kills {
			if err != nil || !finished {
				t.Fatalf("the last run: finished %v, %v", finished, err)
			}
			break
		}
		if steps < 2 {
			t.Fatalf("run %d ended by itself after %d steps, finished %v: %v", killed, steps, finished, err)
		}
		if finished {
			t.Fatalf("finished after %d kills, expected more steps", killed)
		}
		killed++
		if got := digests(t, dsn); got != want {
			t.Fatalf("after kill %d:\n%s\nexpected\n%s", killed, got, want)
		}
	}
	close(stop)
	if err := <-load; err != nil {
		t.Error(err)
	}
	checkMigrated(t, db, dsn, want, appended)
}

// loadMigration appends new and late values and reads old ones, which must all be there at any time.
func loadMigration(db *DB, each int, stop chan struct{}, appended *int) error {
	all := storagetest.All(1)
	all.Range = model.TimeRange{From: 0, To: storagetest.Now() + 1}
	for n := 0; ; n++ {
		select {
		case <-stop:
			return db.flushed(context.Background())
		default:
		}
		b := &model.Batch{}
		b.AppendUint(9999, storagetest.Now()+int64(n)*int64(time.Millisecond), uint64(n))
		b.AppendUint(9999, storagetest.Now()-int64(n+1)*int64(time.Hour)/8, uint64(n)) // late, into what moves
		if _, err := db.Append(context.Background(), b); err != nil {
			return err
		}
		*appended += 2
		all.Items = []model.ItemID{model.ItemID(n%bulkItems + 1), model.ItemID(n%bulkItems + 1 + bulkItems)}
		seen := 0
		if err := db.Read(context.Background(), all, func(c *model.Columns) error { seen += len(c.At); return nil }); err != nil {
			return err
		}
		if seen != 2*each {
			return fmt.Errorf("items %v have %d values in the middle of a migration, expected %d", all.Items, seen, 2*each)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// checkMigrated compares everything, drops the old tables and compares again.
func checkMigrated(t *testing.T, db *DB, dsn, want string, appended int) {
	t.Helper()
	for range 2 {
		if got := digests(t, dsn); got != want {
			t.Errorf("afterwards\n%s\nexpected\n%s", got, want)
		}
		text, err := pgtest.Exec(dsn, "SELECT count(*) FROM history_uint WHERE itemid = 9999")
		if err != nil || text != fmt.Sprintf("%d\n", appended) {
			t.Errorf("%q values of the load, %v, expected %d", text, err, appended)
		}
		report, err := Migrate(context.Background(), dsn, MigrateOptions{From: Plain, To: Partitions, DropOld: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range report {
			if r.State != "dropped" || r.Behind != 0 {
				t.Errorf("%+v, expected it to be dropped", r)
			}
		}
	}
	text, err := pgtest.Exec(dsn, "SELECT count(*) FROM pg_class WHERE relname LIKE '%_plain' AND relkind = 'r'; SELECT count(*) FROM tidemark_tables WHERE mode <> 'partitions'; SELECT count(*) FROM history_c0_default")
	if err != nil || text != "0\n0\n0\n" {
		t.Errorf("left over: %q, %v", text, err)
	}
	b := &model.Batch{}
	b.AppendUint(9999, storagetest.Now()+int64(time.Hour), 1)
	storagetest.Append(t, settled{db}, b)
	if k := (tableKey{valueType: model.Uint}); len(db.parts(t, k)) < 20 || db.tables[k].mode != Partitions || db.modeNow() != Partitions {
		t.Errorf("%d partitions, mode %s and %s, expected one a day", len(db.parts(t, k)), db.tables[k].mode, db.modeNow())
	}
}

// TestMigrate_bounds leaves text and old rows behind.
func TestMigrate_bounds(t *testing.T) {
	dsn := shared.database(t)
	o := testOptions(t, Plain, t.TempDir())
	o.Classes = []Class{{History: 60 * 24 * time.Hour}}
	db := open(t, dsn, o)
	db.o.Mode = Auto
	fillPlain(t, db, dsn, 10_000)
	want := digests(t, dsn)
	migrate := MigrateOptions{From: Plain, To: Partitions, Skip: []string{"history_text"}, Since: time.Unix(0, storagetest.Now()-10*day), Until: time.Unix(0, storagetest.Now()-2*day), RowsPerSecond: 1 << 40}
	report, err := Migrate(context.Background(), dsn, migrate)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]MigratedTable{}
	for _, r := range report {
		states[r.Name] = r
	}
	if r := states["history_text_c0"]; r.State != "switched" || r.Behind != 1001 || r.Rows != 0 {
		t.Errorf("%+v, expected the text to stay", r)
	}
	if r := states["history_c0"]; r.State != "checked" || r.Rows < 1900 || r.Rows > 2100 || r.Rows+r.Behind != 5000 {
		t.Errorf("%+v, expected 8 of 20 days to move", r)
	}
	if got := digests(t, dsn); got != want {
		t.Errorf("afterwards\n%s\nexpected\n%s", got, want)
	}
	if got := len(storagetest.Collect(t, db, storagetest.All(2*bulkItems+1))); got != 1001 {
		t.Errorf("%d texts, expected 1001", got)
	}
	// The text ages out as a whole; what was left of numbers goes with the old tables.
	if freed, err := db.Prune(context.Background(), storagetest.Now()+70*day); err != nil || freed == 0 {
		t.Errorf("Prune: %d, %v", freed, err)
	}
	if got := len(storagetest.Collect(t, db, storagetest.All(2*bulkItems+1))); got != 0 {
		t.Errorf("%d texts after their retention", got)
	}
}

// TestMigrate_errors says what is wrong.
func TestMigrate_errors(t *testing.T) {
	dsn := shared.database(t)
	now := time.Now()
	for _, test := range []struct {
		o    MigrateOptions
		want string
	}{
		{MigrateOptions{From: Partitions, To: Partitions}, `from "partitions", expected plain`},
		{MigrateOptions{From: Plain, To: Plain}, `to "plain", expected partitions or timescale`},
		{MigrateOptions{From: Plain, To: Partitions, Skip: []string{"histroy"}}, `no table "histroy" to skip`},
		{MigrateOptions{From: Plain, To: Partitions, Since: now, Until: now}, "is not before until"},
		{MigrateOptions{From: Plain, To: Partitions, RowsPerSecond: -1}, "expected none below zero"},
		{MigrateOptions{From: Plain, To: Timescale}, "the extension timescaledb is not created"},
	} {
		if _, err := Migrate(context.Background(), dsn, test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, expected %q", test.o, err, test.want)
		}
	}
}

// TestMigrate_damage refuses to go on when rows do not arrive as they were.
func TestMigrate_damage(t *testing.T) {
	dsn := shared.database(t)
	db := open(t, dsn, func() Options { o := testOptions(t, Plain, t.TempDir()); o.Classes = nil; return o }())
	fillPlain(t, db, dsn, 2000)
	o := MigrateOptions{From: Plain, To: Partitions}
	o.Progress = func(p MigrateProgress) {
		if p.Doing == "comparing" && p.Table == "history_c0" { // as if a step had missed a row
			if _, err := pgtest.Exec(dsn, "UPDATE history_c0_plain SET value = 17 WHERE itemid = 3 AND clock = (SELECT max(clock) FROM history_c0_plain WHERE itemid = 3)"); err != nil {
				t.Error(err)
			}
		}
	}
	o.DropOld = true
	if _, err := Migrate(context.Background(), dsn, o); err == nil || !strings.Contains(err.Error(), "nothing is dropped") {
		t.Errorf("%v, expected the difference to be found", err)
	}
	if text, err := pgtest.Exec(dsn, "SELECT count(*) FROM history_c0_plain"); err != nil || text != "1000\n" {
		t.Errorf("the old table has %q rows, %v", text, err)
	}
}

// TestTimescale_migrate moves plain tables into hypertables.
func TestTimescale_migrate(t *testing.T) {
	dsn := timescale.database(t)
	o := testOptions(t, Plain, t.TempDir())
	o.Classes = nil
	db := open(t, dsn, o)
	db.o.Mode = Auto
	each := fillPlain(t, db, dsn, 10_000)
	want := digests(t, dsn)
	report, err := Migrate(context.Background(), dsn, MigrateOptions{From: Plain, To: Timescale, StepRows: 1000, DropOld: true})
	if err != nil || len(report) == 0 {
		t.Fatal(report, err)
	}
	if got := digests(t, dsn); got != want {
		t.Errorf("afterwards\n%s\nexpected\n%s", got, want)
	}
	if got := len(storagetest.Collect(t, db, storagetest.All(1))); got != each {
		t.Errorf("%d values, expected %d", got, each)
	}
	if n := chunks(t, dsn, "hypertable_name = 'history_uint_c0'"); n < 20 {
		t.Errorf("%d chunks, expected one a day", n)
	}
}
