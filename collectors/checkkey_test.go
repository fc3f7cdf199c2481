package collectors

import (
	"testing"

	"tidemark/collect/self"
	"tidemark/model"
)

func TestCheckKey(t *testing.T) {
	for _, key := range self.Keys() {
		if err := CheckKey(model.Internal, key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, c := range []struct {
		kind model.ItemType
		key  string
		ok   bool
	}{
		{model.Internal, "zabbix[host,agent,available]", true},
		{model.Internal, "zabbix[host,discovery,interfaces]", true},
		{model.Internal, "zabbix[tcache,cache,pmisses]", true},
		{model.Internal, "zabbix[rcache,buffer,pused]", true},
		{model.Internal, "zabbix[cluster,discovery,nodes]", true},
		{model.Internal, "zabbix[java,,ping]", false},
		{model.Internal, "zabbix[rcache,cache,hits]", false},
		{model.Internal, "zabbix[process]", false},
		{model.Internal, "zabbix", false},
		{model.Internal, "system.cpu.load", false},
		{model.SimpleCheck, "icmpping[,5]", true},
		{model.SimpleCheck, "net.tcp.service[https]", true},
		{model.SimpleCheck, "vmware.eventlog[x]", false},
		{model.SNMPTrap, "snmptrap.fallback", true},
		{model.SNMPTrap, `snmptrap["link down"]`, true},
		{model.SNMPTrap, "trap", false},
		{model.SSH, "ssh.run[a]", true},
		{model.SSH, "ssh[a]", false},
		{model.Database, "db.odbc.get[a,,x]", true},
		{model.Database, "select", false},
		{model.JMX, `jmx["a:type=B","c"]`, true},
		{model.JMX, "heap", false},
		{model.PassiveAgent, "of.our.own[x]", true},
		{model.Trapper, "anything", true},
	} {
		if err := CheckKey(c.kind, c.key); (err == nil) != c.ok {
			t.Errorf("%v %s: %v", c.kind, c.key, err)
		}
	}
}
