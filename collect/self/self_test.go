package self

import (
	"context"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect/poller"
	"tidemark/model"
)

type fakeServer struct{}

func (fakeServer) Counts() Counts {
	return Counts{Hosts: 3, Items: 40, Triggers: 5, Unsupported: 2, Performance: 1.25}
}

func (fakeServer) Host(id model.HostID) (Host, bool) {
	return Host{Items: 7, Unsupported: 1, Maintenance: 2}, id == 1
}

func (fakeServer) Available(_ model.HostID, kind string) int { return len(kind) % 3 }

func (fakeServer) Queue(from, to time.Duration) int { return int(from/time.Second) + int(to/time.Hour) }

func TestValue(t *testing.T) {
	set := metrics.NewSet()
	set.NewCounter("tidemark_histsync_values_total").Set(100)
	set.NewCounter(`tidemark_histsync_typed_values_total{type="char"}`).Set(30)
	set.NewGauge("tidemark_histcache_used_bytes", func() float64 { return 25 })
	set.NewGauge("tidemark_histcache_limit_bytes", func() float64 { return 100 })
	set.NewCounter("tidemark_valuecache_hits_total").Set(9)
	set.NewCounter("tidemark_valuecache_history_reads_total").Set(1)
	set.NewCounter(`tidemark_poller_checks_total{kind="agent"}`).Set(4)
	set.NewCounter(`tidemark_poller_checks_total{kind="snmp"}`).Set(6)
	set.NewCounter("tidemark_trendfunctions_hits_total").Set(30)
	set.NewCounter("tidemark_trendfunctions_misses_total").Set(10)
	set.NewGauge("tidemark_trendfunctions_answers", func() float64 { return 5 })
	set.NewGauge("tidemark_trendfunctions_answers_limit", func() float64 { return 50 })
	set.NewGauge("tidemark_discovery_waiting_values", func() float64 { return 3 })
	start := time.Unix(1_000_000, 0)
	c := New(Options{
		Metrics: set, Server: fakeServer{}, Version: "1.2.3", Started: start,
		Processes: []Process{{Name: "poller", Count: 2, Percent: func() float64 { return 12.5 }}},
	})
	f := func(key, want string) {
		t.Helper()
		got, err := c.Value(1, key, start.Add(90*time.Second))
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	f("zabbix[boottime]", "1000000")
	f("zabbix[uptime]", "90")
	f("zabbix[version]", "1.2.3")
	f("zabbix[hosts]", "3")
	f("zabbix[items]", "40")
	f("zabbix[items_unsupported]", "2")
	f("zabbix[triggers]", "5")
	f("zabbix[requiredperformance]", "1.25")
	f("zabbix[queue]", "0")
	f("zabbix[queue,10m]", "600")
	f("zabbix[queue,5,2h]", "7")
	f("zabbix[queue,5,5]", "error: zabbix[queue,5,5]: expected a second time above 5s")
	f("zabbix[queue,x]", `error: zabbix[queue,x]: "x" is no time; expected a number such as 10m`)
	f("zabbix[preprocessing_queue]", "0")
	f("zabbix[wcache,values]", "100")
	f("zabbix[wcache,values,str]", "30")
	f("zabbix[wcache,values,x]", `error: zabbix[wcache,values,x]: "x" is no kind of values; expected all, float, uint, str, log, text, bin or not supported`)
	f("zabbix[wcache,history,pused]", "25")
	f("zabbix[wcache,history]", "75")
	f("zabbix[wcache,history,free]", "75")
	f("zabbix[rcache,buffer,pused]", "0")
	f("zabbix[vcache,cache,hits]", "9")
	f("zabbix[vcache,cache,requests]", "10")
	f("zabbix[vcache,cache,mode]", "0")
	f("zabbix[tcache,cache,pmisses]", "25")
	f("zabbix[tcache,cache,phits]", "75")
	f("zabbix[tcache,cache,pitems]", "10")
	f("zabbix[tcache,cache,items]", "5")
	f("zabbix[tcache,cache]", "40")
	f("zabbix[tcache,cache,x]", `error: zabbix[tcache,cache,x]: "x" is not known; expected requests, hits, phits, misses, pmisses, items or pitems`)
	f("zabbix[tcache,buffer]", "error: zabbix[tcache,buffer]: not an internal item that this server knows")
	f("zabbix[lld_queue]", "3")
	f("zabbix[process,poller,avg,busy]", "12.5")
	f("zabbix[process,poller,max,idle]", "87.5")
	f("zabbix[process,poller,count]", "2")
	f("zabbix[process,ipmi poller,avg,busy]", `error: zabbix[process,ipmi poller,avg,busy]: no "ipmi poller" processes are started`)
	f("zabbix[host,,items]", "7")
	f("zabbix[host,,maintenance]", "2")
	f("zabbix[host,agent,available]", "2")
	f("zabbix[host,discovery,interfaces]", "[]")
	f("zabbix[host,x,available]", "error: zabbix[host,x,available]: not an internal item that this server knows")
	f("zabbix[nonsense]", "error: zabbix[nonsense]: not an internal item that this server knows")
	f("zabbix", "error: zabbix: expected a name in brackets")
	f("agent[x]", "error: agent[x]: not an internal item that this server knows")
	f("tidemark[histcache_used_bytes]", "25")
	f(`tidemark["tidemark_poller_checks_total{kind=\"snmp\"}"]`, "6")
	f("tidemark[poller_checks_total,sum]", "10")
	f("tidemark[poller_checks_total]", "error: tidemark[poller_checks_total]: 2 metrics match; expected one, or sum, min, max, avg or count as second parameter")
	f("tidemark[poller_checks_total,median]", `error: tidemark[poller_checks_total,median]: "median" is no function; expected sum, min, max, avg or count`)
}

func TestBusy(t *testing.T) {
	set := metrics.NewSet()
	busy := set.NewFloatCounter("tidemark_x_busy_seconds_total")
	start := time.Unix(1_000_000, 0)
	c := New(Options{
		Metrics: set, Server: fakeServer{}, Started: start,
		Processes: []Process{{Name: "history syncer", Count: 2, BusySeconds: []string{"tidemark_x_busy_seconds_total"}}},
	})
	f := func(after time.Duration, want string) {
		t.Helper()
		got, err := c.Value(1, "zabbix[process,history syncer,avg,busy]", start.Add(after))
		if err != nil || got != want {
			t.Errorf("after %s: %s, %v; want %s", after, got, err, want)
		}
	}
	busy.Set(5)
	f(10*time.Second, "25") // since the start
	busy.Set(25)
	f(20*time.Second, "100") // since the look before
	f(30*time.Second, "50")
	f(70*time.Second, "16.666666666666668") // the first look is a minute ago
	f(600*time.Second, "0")
}

func TestCheck(t *testing.T) {
	c := New(Options{Metrics: metrics.NewSet(), Server: fakeServer{}, Started: time.Now()})
	tasks := []*poller.Task{{Item: &model.Item{HostID: 1, Key: "zabbix[hosts]"}}, {Item: &model.Item{HostID: 9, Key: "zabbix[host,,items]"}}}
	results := make([]poller.Result, 2)
	c.Check(context.Background(), tasks, results)
	if results[0].Outcome != poller.Value || string(results[0].Text) != "3" {
		t.Errorf("%d %s", results[0].Outcome, results[0].Text)
	}
	if results[1].Outcome != poller.NotSupported || string(results[1].Text) != "zabbix[host,,items]: the host is not known" {
		t.Errorf("%d %s", results[1].Outcome, results[1].Text)
	}
}
