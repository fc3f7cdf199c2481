package zabbixdb

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/confdb"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/storage"
	"tidemark/storage/dbengine"
	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// query asks the database's client and returns rows, with tabs between columns.
func (d *database) query(t *testing.T, sql string) []string {
	t.Helper()
	var args []string
	if strings.HasSuffix(d.client[0], "psql") {
		args = append([]string{"-A", "-t", "-F", "\t"}, d.client[1:]...)
	} else { // its own options must come first
		args = append([]string{d.client[1]}, append([]string{"-N", "-B", "--raw"}, d.client[2:]...)...)
	}
	c := exec.Command(d.client[0], args...)
	c.Stdin = strings.NewReader(sql + ";")
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// server runs the real server of Zabbix on a database. Stopping it writes its trends.
type server struct {
	address, port, log string
	c                  *exec.Cmd
}

func (d *database) serve(t *testing.T, kind string) *server {
	t.Helper()
	dir := t.TempDir()
	port := strconv.Itoa(freeport.Port(t))
	s := &server{address: "127.0.0.1", port: port, log: filepath.Join(dir, "log")}
	config := "LogFile=" + s.log + "\nPidFile=" + dir + "/pid\nSocketDir=" + dir + "\nListenIP=127.0.0.1\nListenPort=" + port + "\nAllowRoot=1\nStartPollers=1\nStartTrappers=2\n" +
		"StartPollersUnreachable=1\nStartPingers=0\nStartDiscoverers=0\nStartHTTPPollers=0\nStartODBCPollers=0\nStartDBSyncers=1\nStartPreprocessors=1\nStartLLDProcessors=1\n" +
		"StartAlerters=1\nStartEscalators=1\nStartTimers=1\nStartHistoryPollers=0\nCacheSize=16M\nAllowUnsupportedDBVersions=1\n" + d.serverConfig
	file := filepath.Join(dir, "conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.c = exec.Command("/var/cache/tidemark-test/zabbix/usr/sbin/zabbix_server_"+kind, "-f", "-c", file)
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s.c.Stdout, s.c.Stderr = out, out
	if err := s.c.Start(); err != nil {
		t.Fatalf("%v; run test/zabbixdb/install.sh", err)
	}
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *server) stop() {
	if s.c == nil {
		return
	}
	_ = s.c.Process.Signal(os.Interrupt)
	_ = s.c.Wait()
	s.c = nil
}

// send gives values to the server until it takes them.
func (s *server) send(t *testing.T, lines []string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		c := exec.Command("zabbix_sender", "-z", s.address, "-p", s.port, "-T", "-N", "-i", "-")
		c.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
		out, err := c.CombinedOutput()
		if err == nil && strings.Contains(string(out), "sent: "+strconv.Itoa(len(lines))+"; skipped: 0") {
			return
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(s.log)
			said, _ := os.ReadFile(filepath.Join(filepath.Dir(s.log), "out"))
			text = append(text, said...)
			t.Fatalf("zabbix_sender: %v: %s\n%.4000s", err, out, text)
		}
	}
}

// lines are values of three days, up to a time, in order of time.
func lines(until time.Time) []string {
	var out []string
	add := func(key string, at time.Time, ns int, value string) {
		out = append(out, fmt.Sprintf(`values-1 %s %d %d "%s"`, key, at.Unix(), ns, value))
	}
	from := until.Add(-71 * time.Hour)
	for i := range 71 * 6 {
		at := from.Add(time.Duration(i) * 10 * time.Minute)
		add("float", at, i*1000, strconv.FormatFloat(math.Sin(float64(i))*math.Pow(10, float64(i%40-20)), 'g', -1, 64))
		add("uint", at, 999_999_999-i, strconv.FormatUint(math.MaxUint64-uint64(i), 10))
		add("uint", at, 5, strconv.Itoa(i)) // the same second
		add("own", at, 0, strconv.Itoa(i))
		if i%6 == 0 {
			add("char", at, 1, "state größer "+strconv.Itoa(i))
			add("log", at, 2, "line "+strconv.Itoa(i))
			add("text", at, 3, strings.Repeat("text ", i))
		}
	}
	return out
}

// keys are the keys of the items by their ids in Zabbix.
var keys = map[string]string{"9900001": "float", "9900002": "uint", "9900003": "char", "9900004": "log", "9900005": "text", "9900006": "own"}

// zabbixValues are all values in the database, one a line.
func (d *database) zabbixValues(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, table := range []string{"history", "history_uint", "history_str", "history_log", "history_text"} {
		for _, row := range d.query(t, "SELECT itemid, clock, ns, value FROM "+table) {
			f := strings.SplitN(row, "\t", 4)
			if len(f) != 4 {
				t.Fatalf("%s has %q", table, row)
			}
			if table == "history" {
				v, err := strconv.ParseFloat(f[3], 64)
				if err != nil {
					t.Fatal(err)
				}
				f[3] = fmt.Sprintf("%x", math.Float64bits(v))
			}
			ns, _ := strconv.Atoi(f[2])
			all = append(all, fmt.Sprintf("%s %s.%09d %s", keys[f[0]], f[1], ns, f[3]))
		}
	}
	slices.Sort(all)
	return all
}

// itemsOf are the items of values-1 in a data folder, by key.
func itemsOf(t *testing.T, data string) map[string]model.Item {
	t.Helper()
	ctx := context.Background()
	db, err := confdb.Open(ctx, data, confdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	items := make(map[string]model.Item)
	host, err := db.HostNamed(ctx, "values-1")
	if err != nil {
		t.Fatal(err)
	}
	err = db.HostConfigs(ctx, []model.HostID{host}, func(h *model.HostConfig) error {
		for _, i := range h.Items {
			items[i.Key] = i.Item
		}
		return nil
	})
	if err != nil || len(items) != len(keys) {
		t.Fatalf("%d items: %v", len(items), err)
	}
	return items
}

func openEmbedded(t *testing.T, data string) *dbengine.DB {
	t.Helper()
	db, err := dbengine.Open(context.Background(), vfs.OS{}, filepath.Join(data, "engine"), dbengine.Options{DiskSpaceBytes: 2 << 30, PageCacheBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// embeddedValues are all values in a data folder, and its hours: key, time, count, least and greatest.
func embeddedValues(t *testing.T, data string) (values, hours []string) {
	t.Helper()
	items := itemsOf(t, data)
	db := openEmbedded(t, data)
	defer db.Close()
	for key, i := range items {
		q := storage.Query{Items: []model.ItemID{i.ID}, Range: model.TimeRange{From: 0, To: math.MaxInt64}}
		err := db.Read(context.Background(), q, func(c *model.Columns) error {
			for k, at := range c.At {
				value := fmt.Sprintf("%x", c.Bits[k])
				switch c.Type {
				case model.Uint:
					value = strconv.FormatUint(c.Bits[k], 10)
				case model.LogEntry:
					l, err := model.DecodeLog(c.Bytes(k))
					if err != nil {
						return err
					}
					value = l.Text
				case model.Character, model.Text:
					value = string(c.Bytes(k))
				}
				values = append(values, fmt.Sprintf("%s %d.%09d %s", key, at/1e9, at%1e9, value))
			}
			return nil
		})
		if err == nil && i.ValueType.Numeric() {
			err = db.Trends(context.Background(), q, func(c *storage.TrendColumns) error {
				for _, h := range c.Trends {
					hours = append(hours, fmt.Sprintf("%s %d %d %x %x", key, h.At/1e9, h.Count, h.Min, h.Max))
				}
				return nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(values)
	slices.Sort(hours)
	return values, hours
}

// zabbixHours are the trends in the database.
func (d *database) zabbixHours(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, table := range []string{"trends", "trends_uint"} {
		for _, row := range d.query(t, "SELECT itemid, clock, num, value_min, value_max FROM "+table) {
			f := strings.Split(row, "\t")
			for i := 3; i < 5; i++ {
				if table == "trends" {
					v, _ := strconv.ParseFloat(f[i], 64)
					f[i] = fmt.Sprintf("%x", math.Float64bits(v))
				} else {
					v, _ := strconv.ParseUint(f[i], 10, 64)
					f[i] = fmt.Sprintf("%x", v)
				}
			}
			all = append(all, strings.Join(append([]string{keys[f[0]]}, f[1:]...), " "))
		}
	}
	slices.Sort(all)
	return all
}

type historyReport struct {
	Items, Missing          int
	Values, Expired, Hours  uint64
	From, Through, Checksum string
}

func importHistory(t *testing.T, bin string, args ...string) *historyReport {
	t.Helper()
	var errs bytes.Buffer
	c := exec.Command(bin, append([]string{"import", "zabbix", "history", "--json"}, args...)...)
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", c.Args, err, errs.String())
	}
	r := &historyReport{}
	if err := json.Unmarshal(out, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// sameLines compares sorted lists.
func sameLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	shown := 0
	for _, line := range want {
		if _, ok := slices.BinarySearch(got, line); !ok && shown < 5 {
			t.Errorf("%s: %.200q is missing", what, line)
			shown++
		}
	}
	for _, line := range got {
		if _, ok := slices.BinarySearch(want, line); !ok && shown < 10 {
			t.Errorf("%s: %.200q is too much", what, line)
			shown++
		}
	}
	t.Errorf("%s: %d, expected %d", what, len(got), len(want))
}

// Values and trends that the real server wrote come over exactly: killed in the middle, in two parts, up to the first own value of an item, and
// hours whose values are gone.
func TestHistory(t *testing.T) {
	t.Parallel()
	bin := launch.Binary(t)
	for kind, begin := range map[string]func(*testing.T) *database{"pgsql": emptyPostgres, "mysql": mariadb} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := begin(t)
			rows, err := os.Open("testdata/values.sql")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			d.exec(t, rows)
			s := d.serve(t, kind)
			now := time.Now().Truncate(time.Second)
			all := lines(now.Add(-30 * time.Minute))
			s.send(t, all)
			d.untilStored(t, len(all))
			s.stop()
			// Hours of last year, whose values are gone.
			d.exec(t, strings.NewReader(fmt.Sprintf("INSERT INTO trends (itemid, clock, num, value_min, value_avg, value_max) VALUES (9900001, %d, 60, -1.5, 0.25, 3);"+
				"INSERT INTO trends_uint (itemid, clock, num, value_min, value_avg, value_max) VALUES (9900002, %[1]d, 60, 1, 5, 18446744073709551615);", now.Add(-200*24*time.Hour).Truncate(time.Hour).Unix())))
			data := t.TempDir()
			importZabbix(t, bin, d.dsn, data)
			half := now.Add(-20 * time.Hour).UTC().Format(time.RFC3339)
			d.killed(t, bin, data, half)
			first := importHistory(t, bin, "--dsn", d.dsn, "--data", data, "--until", half)
			own := ownValue(t, data, now.Add(-10*time.Hour))
			second := importHistory(t, bin, "--dsn", d.dsn, "--data", data)
			want := slices.DeleteFunc(d.zabbixValues(t), func(line string) bool { return strings.HasPrefix(line, "own ") && line >= own })
			if first.Values == 0 || second.Values <= first.Values || int(second.Values) != len(want) || second.Items != len(keys) || second.Hours < 2 {
				t.Errorf("%+v, then %+v, expected %d values", first, second, len(want))
			}
			want = append(want, own)
			slices.Sort(want)
			values, hours := embeddedValues(t, data)
			sameLines(t, "values", values, want)
			cut := "own " + strconv.FormatInt(now.Add(-10*time.Hour).Truncate(time.Hour).Unix(), 10)
			before := func(line string) bool { return strings.HasPrefix(line, "own ") && line >= cut }
			running := func(line string) bool { // Zabbix writes it later
				return strings.Contains(line, " "+strconv.FormatInt(now.Add(-30*time.Minute).Truncate(time.Hour).Unix(), 10)+" ")
			}
			drop := func(line string) bool { return before(line) || running(line) }
			sameLines(t, "hours", slices.DeleteFunc(hours, drop), slices.DeleteFunc(d.zabbixHours(t), drop))
			if kind == "pgsql" {
				d.intoPostgres(t, bin)
			}
		})
	}
}

// killed begins an import and kills it in the middle, several times.
func (d *database) killed(t *testing.T, bin, data, until string) {
	t.Helper()
	for range 3 {
		c := exec.Command(bin, "import", "zabbix", "history", "--dsn", d.dsn, "--data", data, "--rate", "700", "--until", until)
		out, err := c.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		begun := false
		for text := bufio.NewScanner(out); !begun && text.Scan(); {
			begun = strings.Contains(text.Text(), "values up to")
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		if !begun {
			t.Fatal("the import ended before it said how far it was")
		}
	}
}

// ownValue puts a value of its own into the store for the item own, and returns its line.
func ownValue(t *testing.T, data string, at time.Time) string {
	t.Helper()
	item := itemsOf(t, data)["own"]
	db := openEmbedded(t, data)
	b := model.NewBatch()
	b.AppendUint(item.ID, at.UnixNano()+7, 42)
	done := model.NewCompletion()
	b.Done = append(b.Done, done)
	if _, err := db.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	<-done.Done()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("own %d.%09d 42", at.Unix(), 7)
}

// untilStored waits until the server has written so many values.
func (d *database) untilStored(t *testing.T, want int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		n := d.query(t, "SELECT (SELECT count(*) FROM history) + (SELECT count(*) FROM history_uint) + (SELECT count(*) FROM history_str) + (SELECT count(*) FROM history_log) + (SELECT count(*) FROM history_text)")[0]
		if n == strconv.Itoa(want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the server wrote %s values, expected %d", n, want)
		}
	}
}

// intoPostgres imports into another database of the same cluster, and compares with SQL.
func (d *database) intoPostgres(t *testing.T, bin string) {
	t.Helper()
	d.exec(t, strings.NewReader("CREATE DATABASE tidemark;"))
	to := strings.TrimSuffix(d.dsn, "/postgres") + "/tidemark"
	data := t.TempDir()
	importZabbix(t, bin, d.dsn, data)
	for range 2 {
		r := importHistory(t, bin, "--dsn", d.dsn, "--data", data, "--to", to, "--mode", "plain")
		if int(r.Values) != len(d.zabbixValues(t)) {
			t.Errorf("%+v, expected %d values", r, len(d.zabbixValues(t)))
		}
	}
	ids := make(map[string]string)
	for key, i := range itemsOf(t, data) {
		ids[strconv.FormatUint(uint64(i.ID), 10)] = key
	}
	target := &database{dsn: to, client: append(slices.Clone(d.client[:len(d.client)-1]), "tidemark")}
	for _, query := range []string{
		"SELECT itemid, clock, ns, value FROM history", "SELECT itemid, clock, ns, value FROM history_uint", "SELECT itemid, clock, ns, value FROM history_str",
		"SELECT itemid, clock, ns, value FROM history_log", "SELECT itemid, clock, ns, value FROM history_text",
	} {
		want, got := d.query(t, query), target.query(t, query)
		rename(want, keys)
		rename(got, ids)
		sameLines(t, query, got, want)
	}
	// The running hour is not taken yet; which that is, the test does not ask the clock.
	for _, table := range []string{"trends", "trends_uint"} {
		query := "SELECT itemid, clock, num, value_min, value_max FROM " + table
		want, got := d.query(t, query), target.query(t, query)
		rename(want, keys)
		rename(got, ids)
		missing := 0
		for _, line := range want {
			if _, ok := slices.BinarySearch(got, line); !ok {
				missing++
			}
		}
		if len(got) < 70 || missing > len(want)-len(got) || missing > 4 {
			t.Errorf("%s: %d hours of %d are there, %d are other", table, len(got), len(want), missing)
		}
	}
}

// rename puts keys in the place of ids, and sorts.
func rename(rows []string, names map[string]string) {
	for i, row := range rows {
		id, rest, _ := strings.Cut(row, "\t")
		rows[i] = names[id] + "\t" + rest
	}
	slices.Sort(rows)
}
