package database

import (
	"strings"
	"testing"

	"tidemark/model"
)

func TestParse(t *testing.T) {
	f := func(key, want string) {
		t.Helper()
		s, err := parse(&model.Item{Key: key, Params: "SELECT 1", Collect: &model.Collect{}})
		got := ""
		if err == nil {
			got = strings.Join([]string{s.driver, s.host, s.port, s.database, s.user, s.password}, " ")
		}
		if bad, ok := strings.CutPrefix(want, "! "); ok && (err == nil || !strings.Contains(err.Error(), bad)) || !ok && (err != nil || got != want) {
			t.Errorf("%s: %q, %v, want %q", key, got, err, want)
		}
	}
	f("db.odbc.select[a,,postgres://h/d]", "postgres h 5432 d  ")
	f("db.odbc.get[a,,postgresql://u:p@h:1/d?sslmode=require]", "postgres h 1 d u p")
	f("db.odbc.discovery[a,mysql://[::1]:2/d]", "mysql ::1 2 d  ")
	f(`db.odbc.select[a,,"Driver={MySQL ODBC 8.0};Server=h;Port=2;Database=d;UID=u;PWD=p;"]`, "mysql h 2 d u p")
	f(`db.odbc.select[a,,"driver=/usr/lib/psqlodbcw.so; servername=h"]`, "postgres h 5432   ")
	f("db.odbc.select[a,dsn]", "! is the name of an ODBC data source")
	f("db.odbc.select[a,,oracle://h/d]", "! expected postgres or mysql")
	f(`db.odbc.select[a,,"Driver=x;Server=h"]`, "! expected postgres or mysql")
	f(`db.odbc.select[a,,"Driver=MySQL;Port=1"]`, "! has no Server")
	f(`db.odbc.select[a,,"Driver=MySQL;junk"]`, `! has "junk"`)
	f("db.odbc.select[a,,postgres:///d]", "! is no address")
	f("db.odbc.select[]", "! is not known")
	f("other[a,b]", "! is not known")
	if _, err := parse(&model.Item{Key: "db.odbc.select[a,,mysql://h/d]", Params: " "}); err == nil {
		t.Error("an item without a query is taken")
	}
	s, err := parse(&model.Item{Key: "db.odbc.select[a,,mysql://x:y@h/d]", Params: "x", Collect: &model.Collect{Username: "u", Password: "p"}})
	if err != nil || s.user != "u" || s.password != "p" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestRows(t *testing.T) {
	r := &rows{columns: []string{"a", "B c"}}
	for _, row := range [][][]byte{{[]byte("1"), nil}, {[]byte("<\"\\\n"), {}}} {
		if err := r.add(row); err != nil {
			t.Fatal(err)
		}
	}
	f := func(form int, want string) {
		t.Helper()
		if got, err := r.value(form); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	f(selectForm, "1")
	f(getForm, `[{"a":"1","B c":null},{"a":"<\"\\\n","B c":""}]`)
	f(discoveryForm, `[{"{#A}":"1","{#B C}":""},{"{#A}":"<\"\\\n","{#B C}":""}]`)
	if _, err := (&rows{}).value(selectForm); err == nil {
		t.Error("no rows are a value")
	}
	if _, err := (&rows{values: [][]*string{{nil}}}).value(selectForm); err == nil {
		t.Error("NULL is a value")
	}
	if got, _ := (&rows{}).value(getForm); string(got) != "[]" {
		t.Errorf("no rows: %s", got)
	}
	big := &rows{columns: []string{"a"}}
	if err := big.add([][]byte{make([]byte, maxBytes+1)}); err == nil {
		t.Error("a row of more than the limit is taken")
	}
	if err := (&rows{single: true}).add([][]byte{[]byte("1")}); err != errEnough { //nolint:errorlint // it is that
		t.Errorf("the first row of one: %v", err)
	}
}
