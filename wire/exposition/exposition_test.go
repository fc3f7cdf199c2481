package exposition

import (
	"fmt"
	"strings"
	"testing"
)

const exported = `# HELP up Whether \\ it\nis up.
# TYPE up gauge
up 1
# TYPE http_requests_total counter
http_requests_total{method="post",code="200"} 1027 1395066363000
http_requests_total{ method = "get", code="500", } 3
# TYPE latency histogram
latency_bucket{le="0.5"} 10 # {trace="x"} 0.4
latency_bucket{le="+Inf"} +Inf
latency_sum NaN
odd{path="C:\\dir\n\"x\""} -1.5e-3
# EOF
`

func TestParse(t *testing.T) {
	p, err := Parse([]byte(exported))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range p.Samples {
		s := &p.Samples[i]
		help, _ := p.Help(s.Name)
		got = append(got, fmt.Sprintf("%s %q %s %s %q", s.Name, s.Labels, s.Value, p.Type(s.Name), help))
	}
	want := []string{
		`up [] 1 gauge "Whether \\ it\nis up."`,
		`http_requests_total [{"method" "post"} {"code" "200"}] 1027 counter ""`,
		`http_requests_total [{"method" "get"} {"code" "500"}] 3 counter ""`,
		`latency_bucket [{"le" "0.5"}] 10 histogram ""`,
		`latency_bucket [{"le" "+Inf"}] +Inf histogram ""`,
		`latency_sum [] NaN histogram ""`,
		`odd [{"path" "C:\\dir\n\"x\""}] -1.5e-3 untyped ""`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestParseMistakes(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if _, err := Parse([]byte(text)); fmt.Sprint(err) != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	f("up 1\nup{a} 1", "invalid metrics in line 2: expected = behind the label a")
	f("up{a=b} 1", "invalid metrics in line 1: expected the value of the label a in quotes")
	f(`up{a="b`, "invalid metrics in line 1: expected the value of the label a in quotes")
	f(`up{a="b" c="d"} 1`, "invalid metrics in line 1: expected , or } behind the label a")
	f("up", "invalid metrics in line 1: expected { or a space behind the name of the metric")
	f("up x", `invalid metrics in line 1: expected a value, found "x"`)
	f("up 1 x", `invalid metrics in line 1: expected a timestamp, found "x"`)
	f("{} 1", "invalid metrics in line 1: expected the name of a metric")
	f("", "<nil>")
}

func TestSelect(t *testing.T) {
	p, err := Parse([]byte(exported))
	if err != nil {
		t.Fatal(err)
	}
	f := func(pattern, want string) {
		t.Helper()
		got := ""
		c, err := ParsePattern(pattern)
		if err == nil {
			var found []int32
			found, err = p.Select(c)
			got = fmt.Sprint(found)
		}
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
	f(`up`, "[0]")
	f(``, "[0 1 2 3 4 5 6]")
	f(`http_requests_total{code="200"}`, "[1]")
	f(`http_requests_total{code=~"0$",method!="get"}`, "[1]")
	f(`http_requests_total{code!~"^2"} == 3`, "[2]")
	f(`{__name__=~"latency.*"}`, "[3 4 5]")
	f(`{__name__="up"}==1`, "[0]")
	f(`{le="+Inf"} == +Inf`, "[4]")
	f(`{none!="x"} == 1`, "[0]")
	f(`{none=~".*"}`, "[]")
	f(`up{`, `the Prometheus pattern "up{": expected the name of a label or }`)
	f(`up{a}`, `the Prometheus pattern "up{a}": expected one of = != =~ !~ behind the label a`)
	f(`up{a=~"("}`, `the Prometheus pattern "up{a=~\"(\"}": regular expression "(": error parsing regexp: missing closing ) in `+"`(`")
	f(`up > 1`, `the Prometheus pattern "up > 1": expected {, == or the end, found "> 1"`)
	f(`up == x`, `the Prometheus pattern "up == x": expected a number behind ==`)
}

func FuzzParse(f *testing.F) {
	f.Add(exported, `up{a=~"x"} == 1`)
	f.Add("a{b=\"\\", "{")
	f.Fuzz(func(t *testing.T, text, pattern string) {
		page, err := Parse([]byte(text))
		if err != nil {
			return
		}
		for i := range page.Samples {
			s := &page.Samples[i]
			if s.Name == "" || !isValue(s.Value) || !strings.Contains(text, s.Line) {
				t.Fatalf("%q gives the sample %+v", text, s)
			}
		}
		if p, err := ParsePattern(pattern); err == nil {
			_, _ = page.Select(p)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var page strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&page, "node_disk_read_bytes_total{device=\"sd%d\",host=\"db1\"} %d.5\n", i, i*100)
	}
	text := []byte(page.String())
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
