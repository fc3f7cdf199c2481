package conformance

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// itemIDs returns our ids by key.
func (s *server) itemIDs() map[string]string {
	s.t.Helper()
	var list struct {
		Items []struct{ ID, Host, Key string }
	}
	s.get("/api/items", url.Values{"limit": {"1000"}}, &list)
	ids := make(map[string]string)
	for _, i := range list.Items {
		if i.Host == "conf" {
			ids[i.Key] = i.ID
		}
	}
	return ids
}

// compareTables compares the rows that both servers wrote into PostgreSQL: every value, and every trend of the hours before the
// running one, which ours makes from the values after a restart.
func compareTables(t *testing.T, db *database, ids map[string]string, running time.Time) {
	t.Helper()
	values, hours := 0, 0
	for n, i := range items() {
		theirs, ours := strconv.Itoa(firstItem+n), ids[i.key]
		table := map[int]string{float: "history", character: "history_str", unsigned: "history_uint", text: "history_text"}[i.valueType]
		values += compareRows(t, db, i.key, "select clock, ns, value from "+table+" where itemid=ITEM order by clock, ns", ours, theirs)
		if i.valueType == character || i.valueType == text {
			continue
		}
		table = map[int]string{float: "trends", unsigned: "trends_uint"}[i.valueType]
		hours += compareRows(t, db, i.key, "select clock, num, value_min, value_avg, value_max from "+table+" where itemid=ITEM and clock<"+strconv.FormatInt(running.Unix(), 10)+" order by clock", ours, theirs)
	}
	t.Logf("postgres: %d values and %d hours of trends compared", values, hours)
	if values < 1000 || hours < 20 {
		t.Errorf("only %d values and %d hours were compared", values, hours)
	}
}

// compareRows compares what a query gives in both databases, and returns the number of rows.
func compareRows(t *testing.T, db *database, key, query, ours, theirs string) int {
	t.Helper()
	got := db.rows("ours", strings.ReplaceAll(query, "ITEM", ours))
	want := db.rows("zabbix", strings.ReplaceAll(query, "ITEM", theirs))
	if len(got) != len(want) {
		t.Errorf("item %s: %d rows, Zabbix has %d: %s", key, len(got), len(want), query)
	}
	wrong := 0
	for i := range min(len(got), len(want)) {
		for c := range want[i] {
			if !sameCell(got[i][c], want[i][c]) && !roundedLate(key, query, c, got[i][c], want[i][c]) {
				if wrong++; wrong <= 3 {
					t.Errorf("item %s, row %d: ours %v, Zabbix's %v", key, i, got[i], want[i])
				}
				break
			}
		}
	}
	return len(want)
}

// roundedLate reports whether a cell is the average of an item of late unsigned values, which Zabbix cuts at every merge.
func roundedLate(key, query string, column int, got, want string) bool {
	g, err := strconv.ParseFloat(got, 64)
	w, err2 := strconv.ParseFloat(want, 64)
	return key == "lateuint" && strings.Contains(query, "trends_uint") && column == 3 && err == nil && err2 == nil && g >= w && g < w+maxLateRounding
}

// sameCell compares texts, and floats but for rounding.
func sameCell(got, want string) bool {
	if got == want {
		return true
	}
	g, err := strconv.ParseFloat(got, 64)
	w, err2 := strconv.ParseFloat(want, 64)
	return err == nil && err2 == nil && strings.ContainsAny(got+want, ".e") && near(g, w)
}
