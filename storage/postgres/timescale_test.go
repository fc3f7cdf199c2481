package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tidemark/internal/pgtest"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/storagetest"
)

// timescaleServer is PostgreSQL with TimescaleDB in WebAssembly. It has one session, so its tests come one after the other.
type timescaleServer struct {
	once  sync.Once
	cmd   *exec.Cmd
	stdin io.Closer
	port  int
	err   error
}

var timescale timescaleServer

const timescaleFolder = "testdata/timescale"

func (s *timescaleServer) start() error {
	if _, err := os.Stat(timescaleFolder + "/node_modules/.package-lock.json"); err != nil {
		return fmt.Errorf("%w; run storage/postgres/install-timescale.sh", err)
	}
	s.cmd = exec.Command("node", "server.mjs")
	s.cmd.Dir = timescaleFolder
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.stdin = stdin
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		s.port, err = strconv.Atoi(strings.TrimSpace(line))
	}
	return err
}

func (s *timescaleServer) stop() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.stdin.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// database is an empty schema. Statements without names, because connections share a session.
func (s *timescaleServer) database(t testing.TB) string {
	t.Helper()
	s.once.Do(func() { s.err = s.start() })
	if s.err != nil {
		t.Fatal(s.err)
	}
	dsn := fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=postgres sslmode=disable default_query_exec_mode=exec", s.port)
	if _, err := pgtest.Exec(dsn, "DROP SCHEMA public CASCADE; CREATE SCHEMA public"); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// TestTimescale_suite runs the suite on hypertables of the real extension.
func TestTimescale_suite(t *testing.T) {
	type place struct{ dsn, dir string }
	places := map[storage.Engine]place{}
	openAt := func(t *testing.T, p place) storage.Engine {
		e := settled{open(t, p.dsn, testOptions(t, Timescale, p.dir))}
		places[e] = p
		return e
	}
	storagetest.Run(t, func(t *testing.T) storage.Engine {
		return openAt(t, place{timescale.database(t), t.TempDir()})
	}, func(t *testing.T, e storage.Engine) storage.Engine {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		return openAt(t, places[e])
	})
}

// days is how many the tests fill.
const days = 12

// fill fills an engine with days of two items, a value a minute, and returns how many.
func fill(t *testing.T, db *DB, now *int64) int {
	t.Helper()
	total := 0
	for range days {
		b := &model.Batch{}
		for m := range int64(24 * 60) {
			b.AppendUint(1, *now+m*int64(time.Minute), uint64(total))
			b.AppendFloat(2, *now+m*int64(time.Minute), float64(total)/3)
			total++
		}
		storagetest.Append(t, settled{db}, b)
		*now += day
	}
	return total
}

func chunks(t *testing.T, dsn, where string) int {
	t.Helper()
	text, err := pgtest.Exec(dsn, "SELECT count(*) FROM timescaledb_information.chunks WHERE "+where)
	n, convErr := strconv.Atoi(strings.TrimSpace(text))
	if err = errors.Join(err, convErr); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTimescale_chunks compresses old chunks, takes late values into them, and drops what is past its retention.
func TestTimescale_chunks(t *testing.T) {
	for _, names := range []string{"new", "former", "old", "apache"} {
		t.Run(names, func(t *testing.T) {
			dsn := timescale.database(t)
			now := storagetest.Base
			db := clocked(t, dsn, Auto, &now, func(o *Options) { o.Classes[0].History = 9 * 24 * time.Hour })
			if db.mode != Timescale {
				t.Fatalf("mode %s, expected timescale: the extension is there", db.mode)
			}
			switch names { // as if an older version or a build without the licence were installed
			case "former":
				db.caps.functions = []string{createHypertable, dropChunksName, compressChunk, byRange}
			case "old":
				db.caps.functions = []string{createHypertable, dropChunksName, compressChunk}
			case "apache":
				db.caps.license = "apache"
			}
			start := now
			total := fill(t, db, &now)
			if n := chunks(t, dsn, "hypertable_name = 'history_uint_c0'"); n != days && n != days+1 {
				t.Errorf("%d chunks, expected one a day", n)
			}
			before := db.tablesSize(t)
			for range 6 {
				db.mustKeep(t)
			}
			compressed := chunks(t, dsn, "hypertable_name = 'history_uint_c0' AND is_compressed")
			if names == "apache" || names == "old" {
				if compressed != 0 {
					t.Errorf("%d chunks compressed by a build that may not, or takes no late values for them", compressed)
				}
			} else if after := db.tablesSize(t); compressed < 4 || after >= before {
				t.Errorf("%d chunks compressed, %d bytes, were %d", compressed, after, before)
			}
			// A value comes later than a chunk was compressed, and one that is there already.
			b := &model.Batch{}
			b.AppendUint(1, start+3*day+day/2+30*int64(time.Second), 7)
			b.AppendUint(1, start+3*day+day/2, 3*24*60+12*60)
			storagetest.Append(t, settled{db}, b)
			if b.Flags[0]&model.Late == 0 || b.Flags[1]&model.Duplicate == 0 {
				t.Errorf("flags %v of a late value and of a duplicate", b.Flags)
			}
			if got := storagetest.Collect(t, db, storagetest.All(1)); len(got) != total+1 {
				t.Errorf("%d values, expected %d", len(got), total+1)
			}
			if h, err := db.Housekeeping(context.Background()); err != nil || h.Mode != Timescale || h.SizeBytes == 0 || h.Tables[0].Pieces < days || h.Tables[0].Next == nil {
				t.Errorf("housekeeping says %+v, %v", h, err)
			}
			freed, err := db.Prune(context.Background(), now)
			if err != nil || freed <= 0 {
				t.Errorf("Prune: %d bytes, %v", freed, err)
			}
			if got := storagetest.Collect(t, db, storagetest.All(2)); len(got) >= total || len(got) < total*8/days {
				t.Errorf("%d values are left of %d, expected those of 9 or 10 days", len(got), total)
			}
			db.o.SizeBytes = db.tablesSize(t) * 3 / 4
			if freed, err = db.Prune(context.Background(), now); err != nil || freed <= 0 || db.tablesSize(t) > db.o.SizeBytes {
				t.Errorf("beyond the size: %d bytes freed, %d left of %d, %v", freed, db.tablesSize(t), db.o.SizeBytes, err)
			}
		})
	}
}

// TestTimescale_mergesLate lets values come for compressed chunks: they lie beside what is compressed, and are merged once none came for a while.
func TestTimescale_mergesLate(t *testing.T) {
	for _, names := range []string{"new", "former"} {
		t.Run(names, func(t *testing.T) {
			dsn := timescale.database(t)
			now := storagetest.Base
			db := clocked(t, dsn, Timescale, &now, func(o *Options) { o.Classes[0].History = 0 })
			if names == "former" {
				db.caps.functions = []string{createHypertable, dropChunksName, compressChunk, recompressChunk, byRange}
			}
			start := now
			total := fill(t, db, &now)
			for range 6 {
				db.mustKeep(t)
			}
			beside := func() int {
				t.Helper()
				return chunks(t, dsn, `is_compressed AND hypertable_name = 'history_uint_c0' AND (SELECT c.status FROM _timescaledb_catalog.chunk c WHERE c.table_name = chunk_name) <> 1`)
			}
			if n := beside(); n != 0 {
				t.Fatalf("%d compressed chunks have rows that are not", n)
			}
			packed := db.tablesSize(t)
			db.mergedAt.Store(now) // or it were time for a merge although they come
			b := &model.Batch{}
			for d := range int64(2) {
				b.AppendUint(1, start+(2+d)*day+day/2+30*int64(time.Second), 7)
			}
			storagetest.Append(t, settled{db}, b)
			for range 3 {
				db.mustKeep(t)
			}
			if n := beside(); n != 2 {
				t.Fatalf("%d chunks have values beside, expected 2 that wait until no more come", n)
			}
			now += int64(mergeAfter)
			for range 4 {
				db.mustKeep(t)
			}
			if n := beside(); n != 0 {
				t.Errorf("%d chunks have values that were not merged", n)
			}
			if size := db.tablesSize(t); size > packed+packed/10 {
				t.Errorf("%d bytes, were %d before the late values", size, packed)
			}
			if got := storagetest.Collect(t, db, storagetest.All(1)); len(got) != total+2 {
				t.Errorf("%d values, expected %d", len(got), total+2)
			}
		})
	}
}

// TestCompress_slow compresses a chunk for longer than other statements may take.
func TestCompress_slow(t *testing.T) {
	dsn := shared.database(t)
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const extension = `CREATE SCHEMA timescaledb_information; CREATE TABLE packed (chunk regclass);
		CREATE VIEW timescaledb_information.chunks AS SELECT 'public' AS chunk_schema, 'one' AS chunk_name, 'public' AS hypertable_schema, 'history_uint_c0' AS hypertable_name, false AS is_compressed, 1 AS range_end_integer;
		CREATE TABLE one (); CREATE PROCEDURE convert_to_columnstore(chunk regclass, if_not_columnstore boolean) LANGUAGE sql AS 'SELECT pg_sleep(1); INSERT INTO packed VALUES (chunk)';
		SET statement_timeout = '500ms'`
	if _, err := conn.Exec(context.Background(), extension); err != nil {
		t.Fatal(err)
	}
	db := &DB{caps: capabilities{timescale: "2.23", schema: "public", license: "timescale", functions: []string{toColumnstore}}}
	db.o.Now = func() int64 { return storagetest.Base }
	if err := db.compressChunks(context.Background(), conn, tableKey{valueType: model.Uint}); err != nil {
		t.Fatal(err)
	}
	var packed string
	if err := conn.QueryRow(context.Background(), "SELECT chunk::text FROM packed").Scan(&packed); err != nil || packed != "one" {
		t.Errorf("compressed %q, %v", packed, err)
	}
}

// TestTimescale_lateTrends corrects more hours of a compressed chunk than the extension lets a transaction touch unless it is told to.
func TestTimescale_lateTrends(t *testing.T) {
	dsn := timescale.database(t)
	now := storagetest.Base
	db := clocked(t, dsn, Timescale, &now, func(o *Options) { o.Classes[0] = Class{} })
	const hours = 100
	begin := storage.HourOf(now - 90*day)
	put := func(value uint64) {
		t.Helper()
		c := storage.TrendColumns{Item: 1, Type: model.Uint}
		for h := range int64(hours) {
			c.Trends = append(c.Trends, model.Trend{At: begin + h*storage.Hour, Count: 1, Min: value, Max: value, First: value, Last: value, SumLow: value})
		}
		if err := db.AppendTrends(context.Background(), []storage.TrendColumns{c}); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	for range 6 {
		db.mustKeep(t)
	}
	if n := chunks(t, dsn, "hypertable_name = 'trends_uint_c0' AND is_compressed"); n == 0 {
		t.Fatal("no chunk was compressed")
	}
	if _, err := pgtest.Exec(dsn, "SET "+unpackingLimit+" = 1"); err != nil { // of the one session
		t.Fatal(err)
	}
	defer pgtest.Exec(dsn, "RESET "+unpackingLimit) //nolint:errcheck // the next test would say so
	put(2)
	if text, err := pgtest.Exec(dsn, "SELECT count(*), min(value_min), max(value_max) FROM trends_uint"); err != nil || text != "100|2|2\n" {
		t.Errorf("hours, least and greatest value: %q, %v", text, err)
	}
}

func (db *DB) tablesSize(t *testing.T) int64 {
	t.Helper()
	conn, err := db.pool.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if err := db.measure(context.Background(), conn.Conn()); err != nil {
		t.Fatal(err)
	}
	return db.sizeBytes.Load()
}

// TestTimescale_pruning looks at the plans: a query touches the chunks of its range only.
func TestTimescale_pruning(t *testing.T) {
	dsn := timescale.database(t)
	now := storagetest.Base
	db := clocked(t, dsn, Timescale, &now, func(o *Options) { o.Classes[0].History = 0 })
	fill(t, db, &now)
	from := storagetest.Base / int64(time.Second)
	for _, test := range []struct {
		seconds int64
		most    int
	}{{60, 1}, {86_400, 2}, {10 * 86_400, 11}} {
		sql := fmt.Sprintf("EXPLAIN SELECT clock, ns, value FROM history_uint WHERE itemid = 1 AND clock BETWEEN %d AND %d ORDER BY clock, ns", from, from+test.seconds)
		plan, err := pgtest.Exec(dsn, sql)
		if n := strings.Count(plan, "_chunk on") + strings.Count(plan, "_chunk_pkey on") + strings.Count(plan, "_chunk _hyper"); err != nil || strings.Count(plan, "Scan") > test.most+1 {
			t.Errorf("%d s: %d chunks, expected at most %d: %v\n%s", test.seconds, n, test.most, err, plan)
		}
	}
}

// TestProbe looks at databases that say they have this or that extension.
func TestProbe(t *testing.T) {
	pretend := func(version, license string, functions ...string) string {
		dsn := shared.database(t)
		sql := fmt.Sprintf(`SET allow_system_table_mods = on; CREATE SCHEMA "The Extension";
			INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
			SELECT 424242, 'timescaledb', 10, oid, false, '%s' FROM pg_namespace WHERE nspname = 'The Extension';
			DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET timescaledb.license = %%L', current_database(), '%s'); END $$;`, version, license)
		for _, f := range functions {
			sql += fmt.Sprintf(`CREATE FUNCTION "The Extension".%s() RETURNS integer LANGUAGE sql AS 'SELECT 1';`, f)
		}
		if _, err := pgtest.Exec(dsn, sql); err != nil {
			t.Fatal(err)
		}
		return dsn
	}
	all := []string{createHypertable, dropChunksName, byRange, toColumnstore}
	for _, test := range []struct {
		name, dsn   string
		mode        Mode // that is chosen where nobody said
		compression bool
		refused     string // by mode timescale
	}{
		{"missing", shared.database(t), Partitions, false, "the extension timescaledb is not created in this database"},
		{"too new", pretend("99.1.0", "timescale", all...), Timescale, true, ""},
		{"former", pretend("2.13.0", "timescale", createHypertable, dropChunksName, byRange, compressChunk), Timescale, true, ""},
		{"takes no late values", pretend("2.10.0", "timescale", createHypertable, dropChunksName, compressChunk), Timescale, false, ""},
		{"no TSL features", pretend("2.23.0", "apache", append(all, compressChunk)...), Timescale, false, ""},
		{"no compression any more", pretend("99.1.0", "timescale", createHypertable, dropChunksName), Timescale, false, ""},
		{"renamed", pretend("99.1.0", "timescale", "make_hypertable"), Partitions, false, "the extension timescaledb 99.1.0 has no function create_hypertable; choose mode partitions"},
	} {
		conn, err := pgx.Connect(context.Background(), test.dsn)
		if err != nil {
			t.Fatal(err)
		}
		db := &DB{}
		if db.caps, err = probe(context.Background(), conn); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close(context.Background())
		if err := db.chooseMode(); err != nil || db.mode != test.mode || db.caps.compression() != test.compression {
			t.Errorf("%s: mode %s, compression %v, %v; expected %s, %v", test.name, db.mode, db.caps.compression(), err, test.mode, test.compression)
		}
		db.o.Mode = Timescale
		if err := db.chooseMode(); (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s: mode timescale: %v, expected %q", test.name, err, test.refused)
		}
	}
}
