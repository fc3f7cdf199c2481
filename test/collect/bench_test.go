package collect

import (
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tidemark/collect/httpagent"
	"tidemark/collect/poller"
	"tidemark/collect/snmp"
	"tidemark/collect/zbxagent"
	"tidemark/model"
	"tidemark/test/freeport"
	"tidemark/test/launch"
)

// measure measures the way that checks go, in rounds, and the simple one, by Check.
func measure(b *testing.B, c poller.Caller, tasks []*poller.Task) {
	b.Run("rounds", func(b *testing.B) { measureCalls(b, c, tasks) })
	b.Run("check", func(b *testing.B) { measureChecks(b, c, tasks) })
}

// awake waits for a peer that may still be starting.
func awake(b *testing.B, c poller.Checker, tasks []*poller.Task) {
	b.Helper()
	results := make([]poller.Result, len(tasks))
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		c.Check(b.Context(), tasks, results)
		if results[0].Outcome == poller.Value {
			break
		}
		if time.Now().After(deadline) {
			b.Fatalf("%s", results[0].Text)
		}
	}
}

// underWay is how many calls are made at once, all to one peer, which must hold so many requests; it is the number of a tick in BenchmarkPeers.
const underWay = 64

// measureCalls has underWay calls made of tasks, all of them in each, and another one for each that ends, and reports how many checks a core
// of this process makes in a second. What the peer costs is not in it.
func measureCalls(b *testing.B, c poller.Caller, tasks []*poller.Task) {
	awake(b, c, tasks)
	var mu sync.Mutex
	failed, left, flying := 0, b.N, 0
	over := make(chan struct{})
	var ended func([]*poller.Call)
	// again makes some of the calls that ended once more.
	again := func(calls []*poller.Call, landed int) {
		mu.Lock()
		for _, call := range calls[:landed] {
			failed += failures(call.Results)
		}
		calls = calls[:min(left, len(calls))]
		left, flying = left-len(calls), flying-landed+len(calls)
		last := flying == 0
		mu.Unlock()
		for _, call := range calls {
			clear(call.Results)
			call.Deadline = time.Now().Add(patience)
		}
		switch {
		case last:
			close(over)
		case len(calls) > 0:
			c.Call(b.Context(), calls, ended)
		}
	}
	ended = func(calls []*poller.Call) { again(calls, len(calls)) }
	calls := make([]*poller.Call, underWay)
	for i := range calls {
		calls[i] = &poller.Call{Tasks: tasks, Results: make([]poller.Result, len(tasks))}
	}
	before := cpu(b)
	b.ResetTimer()
	again(calls, 0)
	<-over
	b.StopTimer()
	perCore(b, b.N*len(tasks), failed, cpu(b)-before)
}

func failures(results []poller.Result) int {
	n := 0
	for i := range results {
		if results[i].Outcome != poller.Value {
			n++
		}
	}
	return n
}

func perCore(b *testing.B, checks, failed int, spent time.Duration) {
	b.ReportMetric(float64(checks)/spent.Seconds(), "checks/core-s")
	b.ReportMetric(float64(failed)/float64(checks)*100, "failed-%")
}

// measureChecks is measureCalls for Check, by 32 goroutines.
func measureChecks(b *testing.B, c poller.Checker, tasks []*poller.Task) {
	awake(b, c, tasks)
	var failed atomic.Int64
	before := cpu(b)
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		results := make([]poller.Result, len(tasks))
		for pb.Next() {
			c.Check(b.Context(), tasks, results)
			failed.Add(int64(failures(results)))
		}
	})
	b.StopTimer()
	perCore(b, b.N*len(tasks), int(failed.Load()), cpu(b)-before)
}

// cpu is the time of the processor that this process has used.
func cpu(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// startAgent starts a zabbix_agentd and returns its address.
func startAgent(b *testing.B) string {
	b.Helper()
	dir, address := b.TempDir(), freeport.Address(b)
	ip, port, _ := net.SplitHostPort(address)
	config := fmt.Sprintf("PidFile=%s/pid\nLogType=console\nServer=127.0.0.1\nListenIP=%s\nListenPort=%s\nHostname=bench\nAllowRoot=1\nStartAgents=8\n", dir, ip, port)
	launch.Run(b, filepath.Join(dir, "log"), "/usr/sbin/zabbix_agentd", "-f", "-c", write(b, dir, "conf", config))
	return address
}

// startWeb starts an nginx that answers 1 and returns its address.
func startWeb(b *testing.B) string {
	b.Helper()
	dir, address := b.TempDir(), freeport.Address(b)
	config := fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log stderr;\nevents { worker_connections 512; }\nhttp { access_log off; client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s; keepalive_requests 1000000000;\nserver { listen %[2]s; return 200 1; } }\n", dir, address)
	launch.Run(b, filepath.Join(dir, "log"), "/usr/sbin/nginx", "-c", write(b, dir, "conf", config), "-p", dir)
	return address
}

// BenchmarkCollect asks flat out real peers: an agent, an SNMP device for 100 variables at once, a web server.
func BenchmarkCollect(b *testing.B) {
	b.Run("agent", func(b *testing.B) {
		address := startAgent(b)
		measure(b, zbxagent.New(zbxagent.Options{}), []*poller.Task{{Item: &model.Item{Key: "agent.ping"}, Address: address}})
	})
	b.Run("snmp", func(b *testing.B) {
		access := &model.Interface{Type: model.SNMPInterface, SNMP: &model.SNMPAccess{Version: "SNMPV2", Community: "public"}}
		address := startSNMP(b, b.TempDir())
		tasks := make([]*poller.Task, 100)
		for i := range tasks {
			tasks[i] = &poller.Task{Item: &model.Item{Collect: &model.Collect{SNMPOID: fmt.Sprintf("1.3.6.1.2.1.1.%d.0", 4+i%3)}}, Address: address, Interface: access}
		}
		c := snmp.New(snmp.Options{})
		defer c.Close()
		measure(b, c, tasks)
	})
	b.Run("http", func(b *testing.B) {
		address := startWeb(b)
		c := httpagent.New(httpagent.Options{})
		defer c.Close()
		request := &model.HTTPRequest{URL: "http://" + address, Method: "GET", StatusCodes: "200", Retrieve: "BODY"}
		measure(b, c, []*poller.Task{{Item: &model.Item{Collect: &model.Collect{HTTP: request}}}})
	})
}
