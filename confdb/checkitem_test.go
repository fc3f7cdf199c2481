package confdb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tidemark/model"
)

// said lists what a report remarks, "!" before what is not taken.
func said(r *Report) string {
	var list []string
	for _, m := range r.Remarks {
		mark := ""
		if m.Refused {
			mark = "!"
		}
		list = append(list, fmt.Sprintf("%s%s %s", mark, m.At, m.Reason))
	}
	return strings.Join(list, "\n")
}

func TestCheckItem_cannotWork(t *testing.T) {
	d := open(t, t.TempDir())
	const faces = `"interfaces":[{"type":"SNMP","ip":"127.0.0.1"}],`
	for _, c := range []struct{ name, faces, item, want string }{
		{"http", "", `"type":"HTTP_AGENT","key":"a"`, "! url: missing in an item of type HTTP_AGENT; expected an address"},
		{"http, empty", "", `"type":"HTTP_AGENT","key":"a","url":" "`, "!.url url: missing"},
		{"http, whole", "", `"type":"HTTP_AGENT","key":"a","url":"http://x/"`, ""},
		{"oid", faces, `"type":"SNMP_AGENT","key":"a"`, "! snmp_oid: missing"},
		{"snmp without interface", "", `"type":"SNMP_AGENT","key":"a","snmp_oid":"get[1.3]"`, " type: the host has no interface of type SNMP; give it one; kept, but not collected until then"},
		{"snmp", faces, `"type":"SNMP_AGENT","key":"a","snmp_oid":"get[1.3]"`, ""},
		{"agent without interface", faces, `"type":"ZABBIX_PASSIVE","key":"agent.ping"`, " type: the host has no interface of type agent"},
		{"agent", `"interfaces":[{"ip":"127.0.0.1"}],`, `"type":"ZABBIX_PASSIVE","key":"agent.ping"`, ""},
		{"active", "", `"type":"ZABBIX_ACTIVE","key":"agent.ping"`, ""},
		{"jmx", "", `"type":"JMX","key":"jmx[\"a\",\"b\"]"`, "no interface of type JMX"},
		{"ipmi", "", `"type":"IPMI","key":"fan"`, "no interface of type IPMI"},
		{"no master", "", `"type":"DEPENDENT","key":"a"`, "! master_item: missing"},
		{"unknown master", "", `"type":"DEPENDENT","key":"a","master_item":{"key":"gone"}`, " master_item: there is no item gone on h; kept, but without values until it is there"},
		{"master", "", `"type":"DEPENDENT","key":"a","master_item":{"key":"other"}`, ""},
		{"no formula", "", `"type":"CALCULATED","key":"a"`, "! params: missing"},
		{"formula", "", `"type":"CALCULATED","key":"a","params":"last(//other"`, ".params params: formula: "},
		{"formula of a missing item", "", `"type":"CALCULATED","key":"a","params":"last(//gone)+last(//other)"`, " params: there is no item gone on h; kept, but not supported until it is there"},
		{"formula of many", "", `"type":"CALCULATED","key":"a","params":"sum(last_foreach(/*/gone))"`, ""},
		{"formula with macros", "", `"type":"CALCULATED","key":"a","params":"last(//{$KEY})"`, ""},
		{"brackets", "", `"type":"TRAP","key":"a[b"`, "! invalid item key"},
		{"key", "", `"type":"INTERNAL","key":"zabbix[nope]"`, ".key key: no such thing; kept, but the item will be not supported"},
		{"key with macros", "", `"type":"INTERNAL","key":"zabbix[{$NOPE}]"`, ""},
	} {
		file := `{"zabbix_export":{"version":"7.0","host_groups":[{"name":"g"}],"hosts":[{"host":"h","groups":[{"name":"g"}],` + c.faces +
			`"items":[{"name":"Other","key":"other","type":"TRAP"},{"name":"A",` + c.item + `}]}]}}`
		kinds := []model.ItemType{
			model.HTTPAgent, model.SNMPAgent, model.PassiveAgent, model.ActiveAgent, model.JMX, model.IPMI, model.Dependent, model.Calculated, model.Trapper, model.Internal,
		}
		options := ImportOptions{
			Plan: true, Collected: kinds, Known: func(string, string) bool { return false },
			CheckKey: func(_ model.ItemType, key string) error {
				if key == "zabbix[nope]" {
					return errors.New("no such thing")
				}
				return nil
			},
		}
		// Each value on a line of its own, as the page sends it, so that the remarks have places.
		var lines bytes.Buffer
		if err := json.Indent(&lines, []byte(file), "", " "); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		report, err := d.Import(t.Context(), "f", lines.Bytes(), options)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := strings.ReplaceAll(said(report), "hosts[0].items[1]", "")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
