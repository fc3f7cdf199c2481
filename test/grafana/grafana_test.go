package grafana

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/model"
	"tidemark/sniff"
	"tidemark/sniff/capture"
	"tidemark/test/freeport"
	"tidemark/test/launch"
)

const (
	// patience is how long a test waits for something that must come.
	patience   = 120 * time.Second
	dashboards = "../../deploy/grafana/dashboards"
	// host is the machine that the agent measures, capturing the one whose MongoDB is watched.
	host, capturing = "box", "db-1"
)

// dashboard is what the test reads of one.
type dashboard struct {
	UID        string
	Title      string
	Templating struct {
		List []struct{ Name, Query string }
	}
	Panels []struct {
		Title      string
		Datasource struct{ UID string }
		Targets    []struct{ Expr string }
	}
}

func readDashboards(t *testing.T) []dashboard {
	t.Helper()
	files, err := filepath.Glob(dashboards + "/*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("%d dashboards in %s, want 3: %v", len(files), dashboards, err)
	}
	var list []dashboard
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d.UID+".json" != filepath.Base(name) || len(d.Panels) == 0 {
			t.Errorf("%s has the uid %q and %d panels", name, d.UID, len(d.Panels))
		}
		list = append(list, d)
	}
	return list
}

// program is a server with an agent.
type program struct {
	t             *testing.T
	http, trapper string
}

func start(t *testing.T) *program {
	t.Helper()
	dir := t.TempDir()
	p := &program{t: t, http: freeport.Address(t), trapper: freeport.Address(t)}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(launch.Binary(t), "up", "--data", filepath.Join(dir, "data"), "--http", p.http, "--trapper", p.trapper, "--host", host, "--disk-space", "1GiB")
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the program:\n%s", text[max(0, len(text)-4000):])
		}
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		answer, err := http.Get("http://" + p.http + "/-/ready")
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return p
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server is not ready: %v", err)
		}
	}
}

// send delivers one frame of Zabbix's protocol and returns the answer.
func (p *program) send(body []byte) string {
	p.t.Helper()
	conn, err := net.DialTimeout("tcp", p.trapper, patience)
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	frame := binary.LittleEndian.AppendUint32([]byte("ZBXD\x01"), uint32(len(body)))
	if _, err := conn.Write(append(append(frame, 0, 0, 0, 0), body...)); err != nil {
		p.t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(answer)
}

// watchMongo sends a capture the way an agent does that watches MongoDB, as of the last minute.
func (p *program) watchMongo() {
	p.t.Helper()
	p.send([]byte(fmt.Sprintf(`{"request":"active checks","host":%q,"host_metadata":"tidemark","tidemark":1}`, capturing)))
	var declare, data []map[string]any
	declared := make(map[string]bool)
	now := time.Now().Truncate(time.Second).UnixNano()
	for n := range int64(6) {
		s := p.readCapture()
		at := now - (5-n)*int64(10*time.Second)
		sniff.NewItems(10*time.Second).Take(s, at, func(v sniff.ItemValue) {
			if v.Item.Type == model.Binary {
				return
			}
			kind, text := "unsigned", strconv.FormatUint(v.Bits, 10)
			if v.Item.Type == model.Float {
				kind, text = "float", strconv.FormatFloat(math.Float64frombits(v.Bits), 'g', -1, 64)
			}
			if !declared[v.Item.Key] {
				declared[v.Item.Key] = true
				labels := make(map[string]string)
				for _, l := range v.Item.Labels {
					labels[l.Name] = l.Value
				}
				declare = append(declare, map[string]any{"key": v.Item.Key, "name": v.Item.Name, "units": v.Item.Units, "type": kind, "interval_ms": v.Item.Interval.Milliseconds(), "labels": labels})
			}
			data = append(data, map[string]any{"host": capturing, "key": v.Item.Key, "value": text, "id": len(data) + 1, "clock": at / 1e9, "ns": at % 1e9})
		})
	}
	body, err := json.Marshal(map[string]any{"request": "agent data", "tidemark": 1, "host": capturing, "session": strings.Repeat("ab", 16), "declare": declare, "data": data})
	if err != nil {
		p.t.Fatal(err)
	}
	if answer := p.send(body); !strings.Contains(answer, fmt.Sprintf("processed: %d; failed: 0", len(data))) {
		p.t.Fatalf("the agent is answered %.300q", answer)
	}
}

func (p *program) readCapture() *sniff.Sniffer {
	p.t.Helper()
	content, err := os.Open("../../sniff/testdata/errors_go.pcap")
	if err != nil {
		p.t.Fatal(err)
	}
	source, err := capture.NewFile(content)
	if err != nil {
		p.t.Fatal(err)
	}
	defer source.Close()
	s, err := sniff.New(sniff.Options{Ports: []uint16{27117}})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := s.ReadAll(source); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// importHealth takes over the host whose items tell of the server.
func (p *program) importHealth() {
	p.t.Helper()
	file, err := os.Open("../../deploy/grafana/server-health.yaml")
	if err != nil {
		p.t.Fatal(err)
	}
	defer file.Close()
	answer, err := http.Post("http://"+p.http+"/api/import", "application/yaml", file)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK || !strings.Contains(string(text), `"remarks":[]`) {
		p.t.Fatalf("the import is answered %d %s", answer.StatusCode, text)
	}
}

// ask sends a call of Prometheus' API and decodes what it answers.
func (p *program) ask(path string, params url.Values, into any) error {
	answer, err := http.PostForm("http://"+p.http+path, params)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s", answer.Status, text)
	}
	return json.Unmarshal(text, into)
}

// series asks a query for the last five minutes, as Grafana does, and returns how many series it finds.
func (p *program) series(expr string) (int, error) {
	now := time.Now().Unix()
	var answer struct {
		Data struct{ Result []json.RawMessage }
	}
	err := p.ask("/api/v1/query_range", url.Values{"query": {expr}, "start": {fmt.Sprint(now - 300)}, "end": {fmt.Sprint(now)}, "step": {"5"}}, &answer)
	return len(answer.Data.Result), err
}

// values returns the values of a variable of a dashboard: label_values(METRIC, LABEL).
func (p *program) values(query string) ([]string, error) {
	inner, _ := strings.CutSuffix(strings.TrimPrefix(query, "label_values("), ")")
	metric, label, ok := strings.Cut(inner, ", ")
	if !ok {
		return nil, fmt.Errorf("the variable asks %q, expected label_values(METRIC, LABEL)", query)
	}
	var answer struct{ Data []map[string]string }
	if err := p.ask("/api/v1/series", url.Values{"match[]": {metric}}, &answer); err != nil {
		return nil, err
	}
	var found []string
	for _, s := range answer.Data {
		if v := s[label]; !slices.Contains(found, v) {
			found = append(found, v)
		}
	}
	slices.Sort(found)
	return found, nil
}

// machine are metrics that not every machine has: a container may have no disk of its own and no pressure counters.
var machine = []string{"vfs_dev_", "system_pressure", "vfs_fs_size", "net_if_"}

// TestDashboards asks every query of every dashboard and expects series.
func TestDashboards(t *testing.T) {
	list := readDashboards(t)
	p := start(t)
	p.importHealth()
	p.watchMongo()
	asked := 0
	for _, d := range list {
		variables := []string{"$__rate_interval", "1m", "$__range", "5m"}
		for _, v := range d.Templating.List {
			variables = append(variables, "$"+v.Name, p.variable(d.Title, v.Query))
		}
		replace := strings.NewReplacer(variables...)
		for _, panel := range d.Panels {
			if panel.Datasource.UID != "tidemark" || len(panel.Targets) == 0 {
				t.Errorf("%s, %s: data source %q, %d queries", d.Title, panel.Title, panel.Datasource.UID, len(panel.Targets))
			}
			for _, target := range panel.Targets {
				p.expect(d.Title+", "+panel.Title, replace.Replace(target.Expr))
				asked++
			}
		}
	}
	t.Logf("%d queries of %d dashboards", asked, len(list))
}

// variable waits for a variable's first value.
func (p *program) variable(title, query string) string {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		found, err := p.values(query)
		if err != nil {
			p.t.Fatalf("%s: %s: %v", title, query, err)
		}
		if i := slices.Index(found, host); i >= 0 {
			return host
		}
		if len(found) > 0 && !strings.Contains(query, "system_uptime") {
			return found[0]
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: %s finds nothing", title, query)
		}
	}
}

// expect waits until a query finds series.
func (p *program) expect(where, expr string) {
	p.t.Helper()
	if strings.Contains(expr, "$") {
		p.t.Errorf("%s: a variable is left in %s", where, expr)
		return
	}
	optional := slices.ContainsFunc(machine, func(name string) bool { return strings.Contains(expr, name) })
	for deadline := time.Now().Add(patience); ; time.Sleep(500 * time.Millisecond) {
		n, err := p.series(expr)
		if err != nil {
			p.t.Errorf("%s: %s: %v", where, expr, err)
			return
		}
		if n > 0 || optional {
			return
		}
		if time.Now().After(deadline) {
			p.t.Errorf("%s: %s finds no series", where, expr)
			return
		}
	}
}
