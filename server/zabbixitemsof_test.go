package server

import (
	"fmt"
	"strings"
	"testing"
)

// TestZabbix_triggerItems refuses triggers of items that there are not, as Zabbix does, and takes those of disabled hosts, and of the items of linked
// templates.
func TestZabbix_triggerItems(t *testing.T) {
	p := newParts(t)
	trigger := `{"description":"x","expression":"last(/%s/%s)>1"}`
	p.refused("trigger.create", fmt.Sprintf(trigger, foreign, "none"), p.editor, `-32602 Invalid params. Incorrect item key "none" provided for trigger expression on "`+foreign+`".`)
	p.refused("trigger.create", fmt.Sprintf(trigger, "nowhere", "none"), p.editor, `Incorrect trigger expression. Host "nowhere" does not exist or you have no access to this host.`)
	p.refused("trigger.create", fmt.Sprintf(`{"description":"x","expression":"last(/%s/temperature)>last(/nowhere/none)"}`, foreign), p.editor, `Host "nowhere" does not exist`)
	p.refused("trigger.create", fmt.Sprintf(`{"description":"x","expression":"last(/%s/temperature)>1","recovery_mode":1,"recovery_expression":"last(/%[1]s/none)<1"}`, foreign), p.editor, `Incorrect item key "none"`)
	p.refused("trigger.create", fmt.Sprintf(trigger, "Parts", "part"), p.editor, `Incorrect item key "part" provided for trigger expression on "Parts".`)
	p.made("item.create", fmt.Sprintf(`{"hostid":%q,"name":"Part","key_":"part","type":2,"value_type":0}`, p.template))
	p.made("trigger.create", fmt.Sprintf(trigger, "Parts", "part"))
	folder := p.made("templategroup.create", `{"name":"Templates/Linked"}`)
	p.made("template.create", fmt.Sprintf(`{"host":"Linked","groups":[{"groupid":%q}],"templates":[{"templateid":%q}]}`, folder, p.template))
	p.made("trigger.create", fmt.Sprintf(trigger, "Linked", "part"))
	p.refused("trigger.create", fmt.Sprintf(trigger, "Linked", "none"), p.editor, `Incorrect item key "none"`)
	off := p.made("host.create", `{"host":"off","status":1,"groups":[{"groupid":"GROUP"}]}`)
	p.made("item.create", fmt.Sprintf(`{"hostid":%q,"name":"A","key_":"a","type":2,"value_type":0,"status":1}`, off))
	id := p.made("trigger.create", fmt.Sprintf(trigger, "off", "a"))
	p.refused("trigger.update", fmt.Sprintf(`{"triggerid":%q,"expression":"last(/off/b)>1"}`, id), p.editor, `Incorrect item key "b"`)
	p.made("trigger.update", fmt.Sprintf(`{"triggerid":%q,"expression":"last(/off/a)>2"}`, id))
}

// TestZabbix_prototypeSecrets gives host prototypes secret macros, which are written and never read.
func TestZabbix_prototypeSecrets(t *testing.T) {
	p := newParts(t)
	host := p.ids.Replace("HOST")
	rule := p.made("discoveryrule.create", fmt.Sprintf(`{"hostid":%q,"name":"Doors","key_":"doors","type":2}`, host))
	create := `{"ruleid":%q,"host":"door {#DOOR}","groupLinks":[{"groupid":"GROUP"}],"macros":[{"macro":"{$KEY}","type":1%s},{"macro":"{$PLAIN}","value":"seen"}]}`
	p.refused("hostprototype.create", fmt.Sprintf(create, rule, ""), p.editor, `Invalid parameter "/1/macros/1": the parameter "value" is missing.`)
	id := p.made("hostprototype.create", fmt.Sprintf(create, rule, `,"value":"canary-91"`))
	get := fmt.Sprintf(`{"hostids":[%q],"output":["host"],"selectMacros":["macro","value","type"]}`, id)
	want := func() {
		t.Helper()
		var got []struct {
			Macros []struct{ Macro, Value, Type string }
		}
		p.make("hostprototype.get", get, &got)
		if len(got) != 1 || fmt.Sprint(got[0].Macros) != "[{{$KEY}  1} {{$PLAIN} seen 0}]" {
			t.Errorf("the macros: %v", got)
		}
	}
	want()
	p.made("hostprototype.update", fmt.Sprintf(`{"hostid":%q,"macros":[{"macro":"{$KEY}"},{"macro":"{$PLAIN}","value":"seen"}]}`, id))
	want()
	p.refused("hostprototype.update", fmt.Sprintf(`{"hostid":%q,"macros":[{"macro":"{$KEY}","type":0}]}`, id), p.editor, `the parameter "value" is missing`)
	admin := p.login("administrator")
	for _, path := range []string{"/api/audit?limit=1000", "/api/configuration/hosts/" + foreign} {
		if text := p.must("GET", path, "", admin); strings.Contains(text, "canary-91") {
			t.Errorf("%s shows the secret", path)
		}
	}
}

// TestZabbix_unknownOutput refuses members of output that some kinds do not have, and passes them over for the others, as Zabbix does.
func TestZabbix_unknownOutput(t *testing.T) {
	p := newParts(t)
	p.refused("hostgroup.get", `{"output":["groupid","colour"]}`, p.viewer, `-32602 Invalid params. Invalid parameter "/output/2": value must be one of "groupid", "name", "flags", "uuid".`)
	for _, method := range []string{"templategroup", "valuemap", "role", "regexp", "token"} {
		p.refused(method+".get", `{"output":["colour"]}`, p.viewer, `Invalid parameter "/output/1": value must be one of `)
		p.mustRPC(method+".get", `{"output":["name"],"limit":1}`, p.viewer, new(any))
		p.mustRPC(method+".get", `{"output":"extend","limit":1}`, p.viewer, new(any))
	}
	p.shows("host.get", fmt.Sprintf(`{"output":["colour","host"],"hostids":%q}`, p.ids.Replace("HOST")), p.viewer, fmt.Sprintf(`[{"host":%q,"hostid":%q}]`, foreign, p.ids.Replace("HOST")))
}
