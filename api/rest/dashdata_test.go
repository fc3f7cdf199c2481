package rest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tidemark/catalog"
	"tidemark/model"
)

func TestFits(t *testing.T) {
	f := func(pattern, text string, want bool) {
		t.Helper()
		if got := fits(pattern, text); got != want {
			t.Errorf("fits(%q, %q) = %v", pattern, text, got)
		}
	}
	f("a", "a", true)
	f("a", "ab", false)
	f("net.if.in[*]", "net.if.in[eth0]", true)
	f("net.if.in[*]", "net.if.in[", false)
	f("*", "", true)
	f("a*a", "a", false)
	f("a*b*c", "aXbYbZc", true)
	f("a*b*c", "aXc", false)
	f("**", "x", true)
}

// keysOf asks for items and returns their keys.
func keysOf(t *testing.T, f *fakeServer, query string) string {
	t.Helper()
	w := f.do("GET", "/api/items?"+query, "")
	var list ItemList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 {
		t.Fatalf("%s: %d %s", query, w.Code, w.Body)
	}
	var keys []string
	for _, i := range list.Items {
		keys = append(keys, i.Key)
	}
	return strings.Join(keys, " ")
}

func TestItems_byName(t *testing.T) {
	s := newFakeServer(t)
	f := func(query, want string) {
		t.Helper()
		if got := keysOf(t, s, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	f("host_name=db1&key=system.uname", "system.uname")
	f("host_name=db1&key=system.*", "system.cpu.load[all,avg1] system.uname")
	f("group=Web", "requests")
	f("group=Linux&key=*[*]", "system.cpu.load[all,avg1] net.if.in[eth0] log[/var/log/x]")
	f("host_name=none&key=*", "")
	f("group=Web&key=system.uname", "")
	if got := strings.Join(allPages(t, s, "/api/items?group=Linux&limit=2", "items", "id"), " "); got != "10 11 12 13 14" {
		t.Errorf("pages: %s", got)
	}
}

func TestGraphs(t *testing.T) {
	s := newFakeServer(t)
	s.graphs = []model.Graph{
		{Name: "Load", Keys: []string{"system.cpu.load[all,avg1]", "gone"}, Stack: true},
		{Name: "Nothing", Keys: []string{"gone"}},
		{Name: "Traffic of {#IF}", Prototype: true, Keys: []string{"net.if.in[{#IF}]", "net.if.out[{#IF}]"}},
		{Name: "No macro", Prototype: true, Keys: []string{"system.uname"}},
	}
	change := catalog.Change{}
	for n, key := range []string{"net.if.out[eth0]", "net.if.in[eth1]"} {
		change.Upserts = append(change.Upserts, model.Item{ID: model.ItemID(50 + n), HostID: 1, Key: key, ValueType: model.Uint})
	}
	if err := s.catalog.Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	f := func(path, want string) {
		t.Helper()
		w := s.do("GET", path, "")
		var list GraphList
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		got := fmt.Sprintf("%d empty", list.Empty)
		for _, g := range list.Graphs {
			got += fmt.Sprintf("; %s stack=%v", g.Name, g.Stack)
			for _, i := range g.Items {
				got += " " + i.Key
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	f("/api/hosts/1/graphs", "1 empty; Load stack=true system.cpu.load[all,avg1]; Traffic of eth0 stack=false net.if.in[eth0] net.if.out[eth0]; Traffic of eth1 stack=false net.if.in[eth1]")
	f("/api/hosts/1/graphs?name=Traffic+of+eth1", "0 empty; Traffic of eth1 stack=false net.if.in[eth1]")
	if got := failure(t, s.do("GET", "/api/hosts/99/graphs", "")); got != "404 not_found" {
		t.Error(got)
	}
}

func TestStates(t *testing.T) {
	s := newFakeServer(t)
	s.items[11].ValueMap = &model.ValueMap{Mappings: []model.Mapping{{Value: "1", Text: "up"}, {Kind: model.MapDefault, Text: "down"}}}
	b := model.NewBatch()
	at := testNow.UnixNano() - 3600e9
	for n, v := range []uint64{1, 1, 2, 2, 2, 1} {
		b.AppendUint(11, at+int64(n)*1e9, v)
	}
	if _, err := s.engine.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w := s.do("GET", fmt.Sprintf("/api/states?items=11,12,999&from=%d&to=%d", at/1e6, at/1e6+60_000), "")
	var list StateList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	from := at / 1e6
	want := []State{
		{From: from, To: from + 2000, Value: "1", Mapped: "up", Count: 2},
		{From: from + 2000, To: from + 5000, Value: "2", Mapped: "down", Count: 3},
		{From: from + 5000, To: from + 5000, Value: "1", Mapped: "up", Count: 1},
	}
	if len(list.Items) != 2 || !slices.Equal(list.Items[0].States, want) || list.Items[0].Truncated || len(list.Items[1].States) != 0 {
		t.Errorf("%+v, want %+v", list.Items, want)
	}
	for _, bad := range []string{"", "items=x", "items=" + strings.Repeat("1,", 20) + "1"} {
		if got := failure(t, s.do("GET", "/api/states?"+bad, "")); got != "400 bad_request" {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

func TestStates_truncated(t *testing.T) {
	s := newFakeServer(t)
	b := model.NewBatch()
	at := testNow.UnixNano() - 7200e9
	for n := range int64(maxStates + 10) {
		b.AppendFloat(10, at+n*1e9, float64(n))
	}
	if _, err := s.engine.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var list StateList
	if err := json.Unmarshal(s.do("GET", fmt.Sprintf("/api/states?items=10&from=%d&to=%d", at/1e6, at/1e6+maxStates*1000+10_000), "").Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	states := list.Items[0].States
	if !list.Items[0].Truncated || len(states) != maxStates || states[len(states)-1].Value != fmt.Sprint(maxStates+9) {
		t.Errorf("%d states, truncated %v, newest %+v", len(states), list.Items[0].Truncated, states[len(states)-1])
	}
}

func TestValues_filter(t *testing.T) {
	s := newFakeServer(t)
	b := model.NewBatch()
	at := testNow.UnixNano() - 3600e9
	lines := []string{"started", "WARN: disk nearly full", "connection failed", "debug: x", "an error of the Disk"}
	for n, line := range lines {
		b.AppendLog(13, at+int64(n)*1e9, model.Log{Text: line})
	}
	b.AppendLog(13, at+10e9, model.Log{Text: "by its severity", Severity: 4})
	if _, err := s.engine.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	f := func(query, want string) {
		t.Helper()
		var all []string
		cursor := ""
		for range 20 {
			w := s.do("GET", fmt.Sprintf("/api/values?item=13&from=%d&to=%d&%s&cursor=%s", at/1e6, at/1e6+60_000, query, cursor), "")
			var list ValueList
			if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			for _, v := range list.Values {
				all = append(all, v.Value.Level+" "+v.Value.V)
			}
			if cursor = list.Next; cursor == "" {
				break
			}
		}
		if got := strings.Join(all, ", "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	f("level=error", "error connection failed, error an error of the Disk, error by its severity")
	f("level=warning&order=desc&limit=1", "error by its severity, error an error of the Disk, error connection failed, warning WARN: disk nearly full")
	f("search=disk", "warning WARN: disk nearly full, error an error of the Disk")
	f("level=information&search=start", "information started")
	if got := failure(t, s.do("GET", "/api/values?item=13&level=bad", "")); got != "400 bad_request" {
		t.Error(got)
	}
}

// TestValues_filterScansInSteps looks for what stands behind more values than one request looks at.
func TestValues_filterScansInSteps(t *testing.T) {
	s := newFakeServer(t)
	at := testNow.UnixNano() - 300_000e9
	for part := range int64(6) {
		b := model.NewBatch()
		for n := range int64(20_000) {
			v := 0.0
			if part == 5 && n == 19_999 {
				v = math.Pi
			}
			b.AppendFloat(10, at+(part*20_000+n)*1e9, v)
		}
		if _, err := s.engine.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	path := fmt.Sprintf("/api/values?item=10&search=3.14&from=%d&to=%d", at/1e6, at/1e6+120_000_000)
	var list ValueList
	if err := json.Unmarshal(s.do("GET", path, "").Body.Bytes(), &list); err != nil || len(list.Values) != 0 || list.Next == "" {
		t.Fatalf("the first page: %d values, next %q, %v", len(list.Values), list.Next, err)
	}
	path += "&cursor=" + list.Next
	list = ValueList{}
	if err := json.Unmarshal(s.do("GET", path, "").Body.Bytes(), &list); err != nil || len(list.Values) != 1 || list.Next != "" {
		t.Errorf("the second page: %d values, next %q, %v", len(list.Values), list.Next, err)
	}
}
