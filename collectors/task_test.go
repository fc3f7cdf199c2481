package collectors

import (
	"testing"
	"time"

	"tidemark/model"
)

func TestTask(t *testing.T) {
	f := func(item model.Item, address, fault string, list ...model.Interface) {
		t.Helper()
		task, ok := Task(&model.Host{Interfaces: list}, &item)
		if !ok || task.Address != address || task.Fault != fault {
			t.Errorf("%+v: %q, %q, %t, want %q, %q", list, task.Address, task.Fault, ok, address, fault)
		}
	}
	agent := model.Item{Key: "agent.ping"}
	named := model.Item{Key: "agent.ping", Collect: &model.Collect{InterfaceRef: "if2"}}
	list := []model.Interface{
		{Type: model.SNMPInterface, Main: true, Address: "10.0.0.9", Port: "161", Ref: "if3"},
		{Type: model.AgentInterface, Address: "10.0.0.2", Port: "10052", Ref: "if2"},
		{Type: model.AgentInterface, Main: true, Address: "10.0.0.1", Port: "10050", Ref: "if1"},
	}
	f(agent, "", "the host has no interface of type agent; give it one")
	f(agent, "10.0.0.1:10050", "", list...)
	f(named, "10.0.0.2:10052", "", list...)
	f(model.Item{Type: model.SNMPAgent}, "10.0.0.9:161", "", list...)
	f(model.Item{Type: model.SNMPAgent, Collect: named.Collect}, "", "the host has no interface of type SNMP with the name if2", list...)
	f(model.Item{Type: model.HTTPAgent}, "", "", list...)
	f(agent, "[::1]:10051", "", model.Interface{Type: model.AgentInterface, Main: true, Address: "::1", Port: "10051"})
	f(agent, "", `the host's interface of type agent has port "{$PORT}"; expected a number from 1 to 65535`, model.Interface{Type: model.AgentInterface, Main: true, Address: "10.0.0.1", Port: "{$PORT}"})
	f(agent, "", `the host's interface of type agent has port "0"; expected a number from 1 to 65535`, model.Interface{Type: model.AgentInterface, Main: true, Address: "10.0.0.1", Port: "0"})
	f(agent, "", "the host's interface of type agent has no address", model.Interface{Type: model.AgentInterface, Main: true, Port: "10050"})
	if task, _ := Task(&model.Host{}, &model.Item{Collect: &model.Collect{Timeout: 10 * time.Second}}); task.Timeout != 11*time.Second {
		t.Errorf("time limit of an agent's item: %v", task.Timeout)
	}
}
