package confdb

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"tidemark/model"
)

// unpackInterfaces reads the interfaces of a host as exports hold them.
func unpackInterfaces(text string) ([]model.Interface, error) {
	if text == "" {
		return nil, nil
	}
	var packed struct {
		Interfaces []struct {
			Type    string `json:"type"`
			Default string `json:"default"`
			UseIP   string `json:"useip"`
			IP      string `json:"ip"`
			DNS     string `json:"dns"`
			Port    string `json:"port"`
			Ref     string `json:"interface_ref"`
			Details struct {
				Version        string `json:"version"`
				Community      string `json:"community"`
				Context        string `json:"contextname"`
				SecurityName   string `json:"securityname"`
				SecurityLevel  string `json:"securitylevel"`
				AuthProtocol   string `json:"authprotocol"`
				AuthPassphrase string `json:"authpassphrase"`
				PrivProtocol   string `json:"privprotocol"`
				PrivPassphrase string `json:"privpassphrase"`
				Bulk           string `json:"bulk"`
				MaxRepetitions string `json:"max_repetitions"`
			} `json:"details"`
		} `json:"interfaces"`
	}
	if err := json.Unmarshal([]byte(text), &packed); err != nil {
		return nil, fmt.Errorf("interfaces: %w", err)
	}
	kinds := map[string]model.InterfaceType{
		"": model.AgentInterface, "ZABBIX": model.AgentInterface, "AGENT": model.AgentInterface, "SNMP": model.SNMPInterface,
		"IPMI": model.IPMIInterface, "JMX": model.JMXInterface,
	}
	ports := map[model.InterfaceType]string{
		model.AgentInterface: "10050", model.SNMPInterface: "161", model.IPMIInterface: "623", model.JMXInterface: "12345",
	}
	var list []model.Interface
	for _, p := range packed.Interfaces {
		kind, ok := kinds[p.Type]
		if !ok {
			continue
		}
		i := model.Interface{Type: kind, Main: p.Default != "NO", Ref: p.Ref, Address: p.IP, Port: p.Port, IP: p.IP, DNS: p.DNS}
		if p.UseIP == "NO" {
			i.Address = p.DNS
		}
		if i.Port == "" {
			i.Port = ports[kind]
		}
		if i.Address == "" {
			if i.Address = "127.0.0.1"; kind != model.AgentInterface {
				continue
			}
		}
		if d := &p.Details; kind == model.SNMPInterface {
			repetitions, _ := strconv.Atoi(d.MaxRepetitions) // what is no number is the default
			i.SNMP = &model.SNMPAccess{
				Version: cmp.Or(d.Version, "SNMPV2"), Community: d.Community, Context: d.Context,
				SecurityName: d.SecurityName, SecurityLevel: cmp.Or(d.SecurityLevel, "NOAUTHNOPRIV"),
				AuthProtocol: cmp.Or(d.AuthProtocol, "MD5"), AuthPassphrase: d.AuthPassphrase,
				PrivProtocol: cmp.Or(d.PrivProtocol, "DES"), PrivPassphrase: d.PrivPassphrase,
				Single: d.Bulk == "NO", MaxRepetitions: repetitions,
			}
		}
		list = append(list, i)
	}
	return list, nil
}
