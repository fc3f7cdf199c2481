package server

import (
	"fmt"
	"strings"
	"testing"
)

// TestZabbix_graphPrototypes does what zabbix_graphprototype and scripts do, on a host and on a template.
func TestZabbix_graphPrototypes(t *testing.T) {
	p := newParts(t)
	for _, owner := range []string{p.ids.Replace("HOST"), p.template} {
		rule := p.made("discoveryrule.create", fmt.Sprintf(`{"hostid":%q,"name":"Disks","key_":"disks","type":2}`, owner))
		item := p.made("itemprototype.create", fmt.Sprintf(`{"ruleid":%q,"hostid":%q,"name":"Use","key_":"use[{#DISK}]","type":2,"value_type":0}`, rule, owner))
		plain := p.made("item.create", fmt.Sprintf(`{"hostid":%q,"name":"All","key_":"use.all","type":2,"value_type":0}`, owner))
		create := fmt.Sprintf(`{"name":"Use of {#DISK}","width":800,"graphtype":1,"show_legend":0,"ymin_type":1,"yaxismin":"5","ymax_type":2,"ymax_itemid":%q,"gitems":[{"itemid":%q,"color":"00AA00","drawtype":1,"calc_fnc":4},{"itemid":%q,"color":"3333FF","yaxisside":1}]}`, plain, item, plain)
		p.refused("graphprototype.create", create, p.viewer, "needs the role editor")
		p.refused("graphprototype.create", create, p.limited, noObject)
		p.refused("graphprototype.create", `{"name":"x","gitems":[]}`, p.editor, `Missing items for graph prototype "x".`)
		p.refused("graphprototype.create", fmt.Sprintf(`{"name":"x","gitems":[{"itemid":%q,"color":"00AA00"}]}`, plain), p.editor, "must have at least one item prototype")
		p.refused("graphprototype.create", fmt.Sprintf(`{"name":"x","gitems":[{"itemid":%q,"color":"green"}]}`, item), p.editor, "a hexadecimal color code")
		p.refused("graphprototype.create", fmt.Sprintf(`{"name":"x","width":5,"gitems":[{"itemid":%q,"color":"00AA00"}]}`, item), p.editor, "a number from 20 to 65535")
		p.refused("graphprototype.create", fmt.Sprintf(`{"name":"x","gitems":[{"itemid":%q,"color":"00AA00"},{"itemid":"ITEM","color":"00AA00"},{"itemid":"7","color":"00AA00"}]}`, item), p.editor, noObject)
		id := p.made("graphprototype.create", create)
		p.refused("graphprototype.create", create, p.editor, `Graph prototype with name "Use of {#DISK}" already exists`)
		get := `{"output":["name","width","height","graphtype","show_legend","show_triggers","ymin_type","yaxismin","ymax_itemid","discover"],"graphids":[%q],"selectGraphItems":["itemid","color","drawtype","calc_fnc","yaxisside","sortorder"],"selectItems":["key_"],"selectDiscoveryRule":["key_"]}`
		lines := fmt.Sprintf(`{"calc_fnc":"4","color":"00AA00","drawtype":"1","itemid":%q,"sortorder":"0","yaxisside":"0"},{"calc_fnc":"2","color":"3333FF","drawtype":"0","itemid":%q,"sortorder":"1","yaxisside":"1"}`, item, plain)
		p.shows("graphprototype.get", fmt.Sprintf(get, id), p.viewer, fmt.Sprintf(`[{"discover":"0","discoveryRule":{"itemid":%q,"key_":"disks"},"gitems":[%s],"graphid":%q,"graphtype":"1","height":"200",`+
			`"items":[{"itemid":%q,"key_":"use[{#DISK}]"}],"name":"Use of {#DISK}","show_legend":"0","show_triggers":"1","width":"800","yaxismin":"5","ymax_itemid":%q,"ymin_type":"1"}]`, rule, lines, id, item, plain))
		p.shows("graphprototype.get", fmt.Sprintf(`{"graphids":[%q]}`, id), p.limited, "[]")
		var known []struct{ GItems []struct{ GItemID string } }
		p.make("graphprototype.get", fmt.Sprintf(`{"graphids":[%q],"selectGraphItems":"extend"}`, id), &known)
		p.refused("graphprototype.update", fmt.Sprintf(`{"graphid":%q,"discover":1}`, id), p.limited, noObject)
		p.refused("graphprototype.update", fmt.Sprintf(`[{"graphid":%q,"discover":1},{"graphid":%q,"discover":1}]`, id, id), p.editor, "already exists")
		p.refused("graphprototype.update", fmt.Sprintf(`{"graphid":%q,"gitems":[{"gitemid":"7","color":"FF0000"}]}`, id), p.editor, noObject)
		same := p.made("graphprototype.update", fmt.Sprintf(`{"graphid":%q,"discover":1,"gitems":[{"gitemid":%q,"color":"FF0000"}]}`, id, known[0].GItems[0].GItemID))
		if same != id {
			t.Errorf("a graph prototype that keeps its name has the id %s, was %s", same, id)
		}
		p.shows("graphprototype.get", fmt.Sprintf(`{"output":["discover"],"discoveryids":[%q],"selectGraphItems":["itemid","color","drawtype"]}`, rule), p.editor,
			fmt.Sprintf(`[{"discover":"1","gitems":[{"color":"FF0000","drawtype":"1","itemid":%q}],"graphid":%q}]`, item, id))
		renamed := p.made("graphprototype.update", fmt.Sprintf(`{"graphid":%q,"name":"Space of {#DISK}"}`, id))
		p.shows("discoveryrule.get", fmt.Sprintf(`{"output":["key_"],"itemids":[%q],"selectGraphs":["name"]}`, rule), p.editor,
			fmt.Sprintf(`[{"graphs":[{"graphid":%q,"name":"Space of {#DISK}"}],"itemid":%q,"key_":"disks"}]`, renamed, rule))
		if owner == p.template {
			p.make("host.update", fmt.Sprintf(`{"hostid":"HOST","templates":[{"templateid":%q}]}`, p.template), new(any))
			var inherited []struct{ GraphID, TemplateID string }
			p.make("graphprototype.get", `{"output":["templateid"],"hostids":"HOST"}`, &inherited)
			if len(inherited) != 1 || inherited[0].TemplateID != renamed {
				t.Fatalf("graph prototypes of the linked host: %v, want one of %s", inherited, renamed)
			}
			p.refused("graphprototype.update", fmt.Sprintf(`{"graphid":%q,"discover":0}`, inherited[0].GraphID), p.editor, "change it on its template")
		}
		p.refused("graphprototype.delete", fmt.Sprintf(`[%q,"7"]`, renamed), p.editor, noObject)
		p.made("graphprototype.delete", fmt.Sprintf(`[%q]`, renamed))
		p.shows("graphprototype.get", fmt.Sprintf(`{"discoveryids":[%q]}`, rule), p.editor, "[]")
		p.made("discoveryrule.delete", fmt.Sprintf(`[%q]`, rule))
	}
}

// TestZabbix_hostPrototypes does what scripts with host prototypes do, on a host and on a template.
func TestZabbix_hostPrototypes(t *testing.T) {
	p := newParts(t)
	var groups []struct{ GroupID, Name string }
	p.make("hostgroup.get", `{"output":["name"]}`, &groups)
	group := map[string]string{}
	for _, g := range groups {
		group[g.Name] = g.GroupID
	}
	other := p.made("template.create", fmt.Sprintf(`{"host":"Of machines","groups":[{"groupid":%q}]}`, p.made("templategroup.create", `{"name":"Templates/Machines"}`)))
	for _, owner := range []string{p.ids.Replace("HOST"), p.template} {
		rule := p.made("discoveryrule.create", fmt.Sprintf(`{"hostid":%q,"name":"Machines","key_":"machines","type":2}`, owner))
		create := fmt.Sprintf(`{"ruleid":%q,"host":"{#VM.NAME}","name":"Machine {#VM.NAME}","status":1,"inventory_mode":1,"groupLinks":[{"groupid":%q}],"groupPrototypes":[{"name":"Cluster {#VM.CLUSTER}"}],"templates":[{"templateid":%q}],
			"macros":[{"macro":"{$VM}","value":"{#VM.NAME}"}],"tags":[{"tag":"vm","value":"{#VM.NAME}"}],"custom_interfaces":1,"interfaces":[{"type":1,"main":1,"useip":0,"ip":"","dns":"{#VM.DNS}","port":"10050"}]}`, rule, group["Foreign"], other)
		p.refused("hostprototype.create", create, p.viewer, "needs the role editor")
		p.refused("hostprototype.create", create, p.limited, noObject)
		for change, want := range map[string]string{
			`"host":"{#VM.NAME}"` + "\x00" + `"host":"vm"`:                                     "must contain at least one low-level discovery macro",
			`"groupLinks":[{"groupid":` + "\x00" + `"groupLinks":[{"groupid":"9"},{"groupid":`: noObject,
			`"value":"{#VM.NAME}"}],"tags"` + "\x00" + `"type":1}],"tags"`:                     `the parameter "value" is missing`,
			`"dns":"{#VM.DNS}"` + "\x00" + `"dns":""`:                                          "IP and DNS cannot be empty",
			`"custom_interfaces":1` + "\x00" + `"custom_interfaces":0`:                         "should be empty when custom_interfaces is 0",
			`"status":1` + "\x00" + `"color":1`:                                                `unexpected parameter "color"`,
		} {
			from, to, _ := strings.Cut(change, "\x00")
			p.refused("hostprototype.create", strings.Replace(create, from, to, 1), p.editor, want)
		}
		id := p.made("hostprototype.create", create)
		var parts []struct {
			GroupPrototypes []struct {
				ID string `json:"group_prototypeid"`
			}
			Macros []struct{ HostMacroID string }
		}
		p.make("hostprototype.get", fmt.Sprintf(`{"hostids":[%q],"selectGroupPrototypes":"extend","selectMacros":"extend"}`, id), &parts)
		p.refused("hostprototype.create", create, p.editor, `Host prototype with host name "{#VM.NAME}" already exists`)
		p.shows("hostprototype.get", fmt.Sprintf(`{"output":["host","name","status","inventory_mode","custom_interfaces","discover"],"hostids":[%q],"selectGroupLinks":["groupid"],"selectGroupPrototypes":["name"],"selectTemplates":["host"],`+
			`"selectMacros":["macro","value"],"selectTags":"extend","selectInterfaces":["type","main","useip","ip","dns","port"],"selectParentHost":["hostid"],"selectDiscoveryRule":["key_"]}`, id), p.editor,
			fmt.Sprintf(`[{"custom_interfaces":"1","discover":"0","discoveryRule":{"itemid":%q,"key_":"machines"},"groupLinks":[{"groupid":%q}],"groupPrototypes":[{"group_prototypeid":%q,"name":"Cluster {#VM.CLUSTER}"}],"host":"{#VM.NAME}","hostid":%q,`+
				`"interfaces":[{"dns":"{#VM.DNS}","ip":"","main":"1","port":"10050","type":"1","useip":"0"}],"inventory_mode":"1","macros":[{"hostmacroid":%q,"macro":"{$VM}","value":"{#VM.NAME}"}],"name":"Machine {#VM.NAME}",`+
				`"parentHost":{"hostid":%q},"status":"1","tags":[{"tag":"vm","value":"{#VM.NAME}"}],"templates":[{"host":"Of machines","templateid":%q}]}]`, rule, group["Foreign"], parts[0].GroupPrototypes[0].ID, id, parts[0].Macros[0].HostMacroID, owner, other))
		p.shows("hostprototype.get", fmt.Sprintf(`{"hostids":[%q]}`, id), p.limited, "[]")
		p.refused("hostprototype.update", fmt.Sprintf(`{"hostid":%q,"status":0}`, id), p.limited, noObject)
		p.refused("hostprototype.update", fmt.Sprintf(`{"hostid":%q,"host":"x{#VM.NAME}"}`, id), p.editor, "the technical name stays")
		p.made("hostprototype.update", fmt.Sprintf(`{"hostid":%q,"status":0,"inventory_mode":-1,"custom_interfaces":0,"groupPrototypes":[],"templates":[]}`, id))
		p.shows("hostprototype.get", fmt.Sprintf(`{"output":["status","inventory_mode","custom_interfaces"],"discoveryids":[%q],"selectInterfaces":"count","selectTemplates":"count","selectGroupPrototypes":"count","selectMacros":"count"}`, rule), p.editor,
			fmt.Sprintf(`[{"custom_interfaces":"0","groupPrototypes":"0","hostid":%q,"interfaces":"0","inventory_mode":"-1","macros":"1","status":"0","templates":"0"}]`, id))
		if owner == p.template {
			p.make("host.update", fmt.Sprintf(`{"hostid":"HOST","templates":[{"templateid":%q}]}`, p.template), new(any))
			var inherited []struct{ HostID, TemplateID string }
			p.make("hostprototype.get", `{"output":["templateid"],"inherited":true}`, &inherited)
			if len(inherited) != 1 || inherited[0].TemplateID != id {
				t.Fatalf("host prototypes of the linked host: %v, want one of %s", inherited, id)
			}
			p.refused("hostprototype.delete", fmt.Sprintf(`[%q]`, inherited[0].HostID), p.editor, "change it on its template")
		}
		p.made("hostprototype.delete", fmt.Sprintf(`[%q]`, id))
		p.shows("hostprototype.get", fmt.Sprintf(`{"discoveryids":[%q]}`, rule), p.editor, "[]")
		p.made("discoveryrule.delete", fmt.Sprintf(`[%q]`, rule))
	}
}
