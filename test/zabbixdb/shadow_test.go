package zabbixdb

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// shadowReport is what shadow report --json prints.
type shadowReport struct {
	Same     int `json:"same_problems"`
	Problems []struct{ Kind, Host, Trigger, Reason string }
	Same2    int `json:"same_items"`
	Items    []struct {
		Key         string
		Hours       int
		MissingHere int `json:"missing_here"`
		Reason      string
	}
	Days []struct{ Same int }
}

// The same values go to a real server of Zabbix and to this one, but for one item: the report names it and its problem, with the reason. Then the
// cutover switches the action on.
func TestShadow(t *testing.T) {
	t.Parallel()
	bin := launch.Binary(t)
	for kind, begin := range map[string]func(*testing.T) *database{"pgsql": emptyPostgres, "mysql": mariadb} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := begin(t)
			for _, name := range []string{"values", "shadow"} {
				rows, err := os.Open("testdata/" + name + ".sql")
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				d.exec(t, rows)
			}
			zabbix := d.serve(t, kind)
			here := tidemark(t, bin)
			here.run(t, "import", "zabbix", "--dsn", d.dsn)
			if out := here.run(t, "shadow", "status"); !strings.Contains(out, "shadow mode is on since") || !strings.Contains(out, "action Tell the chief") {
				t.Errorf("the status is %s", out)
			}
			here.namesIDs(t, d)
			now := time.Now()
			var both, only []string
			for i := range 20 {
				at := now.Add(time.Duration(i-19) * 15 * time.Minute)
				both = append(both, fmt.Sprintf("values-1 uint %d 0 %d", at.Unix(), i/10*7), fmt.Sprintf("values-1 float %d 0 %d", at.Unix(), i))
				only = append(only, fmt.Sprintf("values-1 own %d 0 %d", at.Unix(), i/10*7))
			}
			zabbix.send(t, append(both, only...))
			here.server.send(t, both)
			d.untilProblems(t, 2)
			here.untilProblems(t, 1)
			var r shadowReport
			if err := json.Unmarshal([]byte(here.run(t, "shadow", "report", "--dsn", d.dsn, "--since", "6h", "--tolerance", "1s", "--json")), &r); err != nil {
				t.Fatal(err)
			}
			if r.Same != 1 || len(r.Problems) != 1 || r.Problems[0].Kind != "only_zabbix" || r.Problems[0].Trigger != "Only Zabbix sees it" || !strings.Contains(r.Problems[0].Reason, "ServerActive") {
				t.Errorf("problems: %d alike, %+v", r.Same, r.Problems)
			}
			if r.Same2 < 2 || len(r.Items) != 1 || r.Items[0].Key != "own" || r.Items[0].MissingHere != r.Items[0].Hours || !strings.Contains(r.Items[0].Reason, "ServerActive") {
				t.Errorf("items: %d alike, %+v", r.Same2, r.Items)
			}
			if out := here.run(t, "shadow", "cutover", "--yes"); !strings.Contains(out, "this server alerts from now on") || !strings.Contains(out, "action Tell the chief") || !strings.Contains(out, "1 problems are open") {
				t.Errorf("the cutover said %s", out)
			}
			if out := here.run(t, "shadow", "status"); !strings.Contains(out, "shadow mode is off") {
				t.Errorf("the status is %s", out)
			}
		})
	}
}

// running is a server of ours.
type running struct {
	bin, http string
	token     string
	server    server
}

func tidemark(t *testing.T, bin string) *running {
	t.Helper()
	dir := t.TempDir()
	r := &running{bin: bin, http: "127.0.0.1:" + strconv.Itoa(freeport.Port(t)), server: server{address: "127.0.0.1", port: strconv.Itoa(freeport.Port(t)), log: filepath.Join(dir, "log")}}
	// The chief of testdata/values.sql becomes administrator, from whom on calls need a token.
	r.offline(t, dir, "user", "add", "first", "--role", "administrator", "--no-password")
	r.token = strings.TrimSpace(lastLine(r.offline(t, dir, "token", "create", "first", "--user", "first", "--role", "administrator")))
	launch.Run(t, r.server.log, bin, "server", "--data", dir, "--http", r.http, "--trapper", "127.0.0.1:"+r.server.port)
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		answer, err := http.Get("http://" + r.http + "/-/ready") //nolint:noctx // a test
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return r
			}
		}
		if time.Now().After(end) {
			t.Fatal("the server does not become ready")
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func (r *running) offline(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command(r.bin, append(args, "--data", dir)...).Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}

// namesIDs compares the table of ids with both sides: Zabbix's are those of its database, and ours give the same names back.
func (r *running) namesIDs(t *testing.T, d *database) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(r.run(t, "import", "zabbix", "ids", "--dsn", d.dsn))).ReadAll()
	if err != nil || len(rows) == 0 || strings.Join(rows[0], ",") != "kind,zabbix_id,id,host,name" {
		t.Fatalf("the table of ids: %v, %v", err, rows)
	}
	found := map[string]int{}
	for _, row := range rows[1:] {
		kind, theirs, ours, host, name := row[0], row[1], row[2], row[3], row[4]
		if ours == "" {
			t.Errorf("%v has no id here", row)
			continue
		}
		found[kind]++
		switch kind {
		case "item":
			if got := d.query(t, "SELECT i.key_ FROM items i JOIN hosts h ON h.hostid = i.hostid WHERE h.host = '"+host+"' AND i.itemid = "+theirs); len(got) != 1 || got[0] != name {
				t.Errorf("%v is %q in Zabbix", row, got)
			}
			var item struct{ Key, Host string }
			if err := json.Unmarshal([]byte(r.get(t, "/api/items/"+ours)), &item); err != nil || item.Key != name {
				t.Errorf("%v is %+v here, %v", row, item, err)
			}
		case "host":
			if got := d.query(t, "SELECT host FROM hosts WHERE hostid = "+theirs); len(got) != 1 || got[0] != name {
				t.Errorf("%v is %q in Zabbix", row, got)
			}
		}
	}
	if found["host"] != 1 || found["item"] < 3 || found["trigger"] != 2 || found["host group"] == 0 {
		t.Errorf("ids are named of %v", found)
	}
}

// get asks the server.
func (r *running) get(t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.http+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s %v", path, answer.Status, text, err)
	}
	return string(text)
}

// run calls the server.
func (r *running) run(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.Command(r.bin, append(args, "--http", r.http)...)
	c.Env = append(os.Environ(), "TIDEMARK_TOKEN="+r.token)
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errs.String())
	}
	return string(out)
}

// untilProblems waits for open problems in Zabbix.
func (d *database) untilProblems(t *testing.T, want int) {
	t.Helper()
	for end := time.Now().Add(patience); d.query(t, "SELECT count(*) FROM problem WHERE source = 0")[0] != strconv.Itoa(want); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("Zabbix has %v problems, expected %d", d.query(t, "SELECT * FROM problem"), want)
		}
	}
}

// untilProblems waits for open problems here.
func (r *running) untilProblems(t *testing.T, want int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		var plan struct {
			Open int `json:"open_problems"`
		}
		out := r.run(t, "shadow", "status", "--json")
		if err := json.Unmarshal([]byte(out), &plan); err != nil {
			t.Fatal(err)
		}
		if plan.Open == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("there are %d problems here, expected %d", plan.Open, want)
		}
	}
}
