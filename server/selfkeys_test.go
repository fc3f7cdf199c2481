package server

import (
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect/poller"
	"tidemark/collect/self"
)

// healthKeys are the keys of Zabbix 6.0's template "Zabbix server health" that every installation answers.
const healthKeys = `zabbix[lld_queue] zabbix[preprocessing_queue] zabbix[requiredperformance] zabbix[uptime] zabbix[version] zabbix[queue] zabbix[queue,10m]
zabbix[rcache,buffer,pused] zabbix[vcache,buffer,pused] zabbix[vcache,cache,hits] zabbix[vcache,cache,misses] zabbix[vcache,cache,mode]
zabbix[wcache,history,pused] zabbix[wcache,index,pused] zabbix[wcache,trend,pused] zabbix[wcache,values] zabbix[wcache,values,float] zabbix[wcache,values,log]
zabbix[wcache,values,not_supported] zabbix[wcache,values,str] zabbix[wcache,values,text] zabbix[wcache,values,uint] zabbix[tcache,cache,pitems]
zabbix[tcache,cache,pmisses] zabbix[cluster,discovery,nodes]`

// healthProcesses are the processes of that template.
var healthProcesses = []string{
	"alert manager", "alert syncer", "alerter", "configuration syncer", "escalator", "history poller", "history syncer", "housekeeper", "http poller",
	"icmp pinger", "java poller", "ipmi poller", "lld manager", "lld worker", "odbc poller", "poller", "preprocessing manager", "preprocessing worker", "self-monitoring",
	"timer", "trapper", "trigger housekeeper", "unreachable poller",
}

// absentProcesses are those that there is nothing like here, or that are not started; Zabbix too answers then that none is started.
var absentProcesses = []string{
	"availability manager", "data sender", "discoverer", "heartbeat sender", "ipmi manager", "proxy poller", "report manager", "report writer",
	"service manager", "snmp trapper", "task manager", "vmware collector",
}

func TestInternalItems_healthTemplate(t *testing.T) {
	p := &polling{o: pollingOptions{kinds: []poller.Kind{{Name: "agent"}, {Name: "snmp"}, {Name: "http agent"}, {Name: "simple check"}, {Name: "database"}, {Name: "jmx"}, {Name: "ipmi"}}}}
	p.poller = poller.New(poller.Options{Kinds: append(ownKinds(nil, nil), p.o.kinds...)})
	seen := make(map[string]bool)
	for _, process := range p.processes() {
		if seen[process.Name] {
			t.Errorf("process %s is there twice", process.Name)
		}
		seen[process.Name] = true
	}
	c := self.New(self.Options{Metrics: metrics.NewSet(), Server: noFacts{}, Processes: p.processes(), Version: "1", Started: time.Unix(1, 0)})
	keys := strings.Fields(healthKeys)
	for _, name := range healthProcesses {
		keys = append(keys, "zabbix[process,"+name+",avg,busy]")
	}
	for _, key := range keys {
		key = strings.ReplaceAll(key, "not_supported", "not supported")
		if text, err := c.Value(1, key, time.Unix(100, 0)); err != nil || text == "" {
			t.Errorf("%s gives %q, %v", key, text, err)
		}
	}
	for _, name := range absentProcesses {
		if _, err := c.Value(1, "zabbix[process,"+name+",avg,busy]", time.Unix(100, 0)); err == nil || !strings.Contains(err.Error(), "processes are started") {
			t.Errorf("process %s: %v", name, err)
		}
	}
}

// noFacts is a server without anything.
type noFacts struct{ self.Server }

func (noFacts) Counts() self.Counts          { return self.Counts{} }
func (noFacts) Queue(_, _ time.Duration) int { return 0 }
