package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// whole is a kind of objects that calls change several of together. The members of params are written with %[1]s for a name.
type whole struct {
	kind, id string
	// create are the parameters of an object, bad those of one that is refused late: by the server and not by the reading of the call.
	create, bad, refusal string
	// update is what may be changed, worse what is refused.
	update, worse string
	// entries is how many the audit log gets for one that is made; 0 is 1.
	entries int
	// keeps is an object that cannot be deleted, why says why.
	keeps func(p *parts, admin string) string
	why   string
}

// TestZabbix_wholeCalls makes, changes and deletes two objects of each kind in one call whose second object is refused: nothing of the first must
// stay, and the audit log must have nothing. The same call without the mistake does both, with an entry of the audit log for each.
func TestZabbix_wholeCalls(t *testing.T) {
	p := newParts(t)
	admin, session := p.signIn("administrator"), p.login("administrator")
	id := func(method, params string) string {
		t.Helper()
		var answer map[string][]string
		p.mustRPC(method, params, admin, &answer)
		for _, list := range answer {
			return list[0]
		}
		return ""
	}
	mail := id("mediatype.create", `{"name":"Mail","type":0,"smtp_server":"127.0.0.1","smtp_email":"z@example.com"}`)
	told := id("user.create", fmt.Sprintf(`{"username":"told","passwd":%q,"roleid":"1","usrgrps":[],"medias":[{"mediatypeid":%q,"sendto":"told@example.com"}]}`, testPassword, mail))
	operations := fmt.Sprintf(`"operations":[{"operationtype":0,"opmessage_usr":[{"userid":%q}],"opmessage":{"default_msg":"1"}}]`, told)
	id("action.create", `{"name":"Uses Mail","eventsource":0,`+operations+`}`)
	own := func(kind, name string) func(*parts, string) string {
		return func(p *parts, admin string) string {
			var rows []map[string]string
			p.mustRPC(kind+".get", fmt.Sprintf(`{"output":["name"],"filter":{"name":%q}}`, name), admin, &rows)
			for member, value := range rows[0] {
				if member != "name" {
					return value
				}
			}
			return ""
		}
	}
	for _, w := range []whole{
		{kind: "regexp", id: "regexpid", create: `"name":%[1]q,"expressions":[{"expression":"a","expression_type":3}]`, bad: `"name":"","expressions":[{"expression":"a","expression_type":3}]`, refusal: "name", update: `"test_string":"x"`, worse: `"expressions":[{"expression":"(","expression_type":3}]`, keeps: own("regexp", "File systems for discovery"), why: "comes with the program"},
		{kind: "maintenance", id: "maintenanceid", create: `"name":%[1]q,"active_since":1700000000,"active_till":1800000000,"timeperiods":[{"timeperiod_type":0,"period":3600}],"groups":[{"groupid":"GROUP"}]`, bad: `"name":"no end","active_since":1800000000,"active_till":1700000000,"timeperiods":[{"timeperiod_type":0,"period":3600}],"groups":[{"groupid":"GROUP"}]`, refusal: "active_till", update: `"description":"d"`, worse: `"active_since":1900000000`},
		{kind: "usergroup", id: "usrgrpid", create: `"name":%[1]q`, bad: `"name":" spaced "`, refusal: "invalid", update: `"hostgroup_rights":[{"id":"GROUP","permission":2}]`, worse: `"hostgroup_rights":[{"id":"999999","permission":2}]`, keeps: func(*parts, string) string {
			group := id("usergroup.create", `{"name":"Has a member"}`)
			id("user.create", fmt.Sprintf(`{"username":"member","passwd":%q,"roleid":"1","usrgrps":[{"usrgrpid":%q}]}`, testPassword, group))
			return group
		}, why: "is in it"},
		{kind: "user", id: "userid", create: fmt.Sprintf(`"username":%%[1]q,"passwd":%q,"roleid":"1","medias":[{"mediatypeid":%q,"sendto":"x@example.com"}]`, testPassword, mail), bad: `"username":"weak","passwd":"123","roleid":"1"`, refusal: "password", entries: 2, update: `"roleid":"2"`, worse: `"passwd":"123"`, keeps: func(p *parts, admin string) string {
			var users []struct{ UserID string }
			p.mustRPC("user.get", `{"output":["userid"],"filter":{"username":"administrator"}}`, admin, &users)
			return users[0].UserID
		}, why: "last administrator"},
		{kind: "token", id: "tokenid", create: fmt.Sprintf(`"name":%%[1]q,"userid":%q`, told), bad: fmt.Sprintf(`"name":"over","userid":%q,"expires_at":1000`, told), refusal: "over already", update: `"expires_at":2000000000`, worse: `"name":" spaced "`},
		{kind: "mediatype", id: "mediatypeid", create: `"name":%[1]q,"type":0,"smtp_server":"127.0.0.1","smtp_email":"z@example.com"`, bad: `"name":"lame","type":0,"smtp_server":"127.0.0.1","smtp_email":"z@example.com","maxattempts":"5000"`, refusal: "maxattempts", update: `"status":1`, worse: `"maxattempts":"5000"`, keeps: own("mediatype", "Mail"), why: "Mail"},
		{kind: "action", id: "actionid", create: `"name":%[1]q,"eventsource":0,` + operations, bad: `"name":"bad","eventsource":0,"esc_period":"1s",` + operations, refusal: "bad", update: `"status":1`, worse: `"esc_period":"1s"`},
		{kind: "proxy", id: "proxyid", create: `"name":%[1]q,"operating_mode":0`, bad: `"name":"a/b","operating_mode":0`, refusal: "proxy name", update: `"description":"d"`, worse: `"operating_mode":1,"address":"","port":"1"`, keeps: func(p *parts, admin string) string {
			proxy := id("proxy.create", `{"name":"busy","operating_mode":0}`)
			id("drule.create", fmt.Sprintf(`{"name":"By a proxy","iprange":"127.0.0.1","status":1,"proxyid":%q,"dchecks":[{"type":12}]}`, proxy))
			return proxy
		}, why: "By a proxy"},
		{kind: "drule", id: "druleid", create: `"name":%[1]q,"iprange":"127.0.0.1","status":1,"dchecks":[{"type":12}]`, bad: `"name":"far","iprange":"everywhere","status":1,"dchecks":[{"type":12}]`, refusal: "everywhere", update: `"delay":"2h"`, worse: `"iprange":"everywhere"`},
		{kind: "hostgroup", id: "groupid", create: `"name":%[1]q`, bad: `"name":"a//b"`, refusal: "invalid host group name", update: `"name":"renamed"`, worse: `"name":"Foreign"`, keeps: own("hostgroup", "Foreign"), why: "no host group"},
		{kind: "templategroup", id: "groupid", create: `"name":%[1]q`, bad: `"name":"a//b"`, refusal: "invalid template group name", update: `"name":"renamed"`, worse: `"name":"Templates/Parts"`, keeps: own("templategroup", "Templates/Parts"), why: "no template group"},
	} {
		t.Run(w.kind, func(t *testing.T) { w.check(t, p, admin, session) })
	}
}

// check ends calls of two objects by a mistake in the second, and then does both.
func (w *whole) check(t *testing.T, p *parts, admin, session string) {
	audits := func() int {
		t.Helper()
		return strings.Count(p.must("GET", "/api/audit?limit=1000&search="+w.kind+".", "", session), `"action"`)
	}
	keeps := ""
	if w.keeps != nil {
		keeps = w.keeps(p, admin)
	}
	state := func() string {
		t.Helper()
		params, all := map[string]string{"user": `{"output":["username","roleid"],"selectMedias":"extend"}`, "usergroup": `{"output":"extend","selectHostGroupRights":"extend"}`}[w.kind], json.RawMessage{}
		if params == "" {
			params = `{"output":"extend"}`
		}
		p.mustRPC(w.kind+".get", params, admin, &all)
		return string(all)
	}
	before, entries := state(), audits()
	unchanged := func(what string) {
		t.Helper()
		if now := state(); now != before {
			t.Errorf("%s:\n  was %s\nis now %s", what, before, now)
		}
		if n := audits(); n != entries {
			t.Errorf("%s: the audit log has %d entries more", what, n-entries)
		}
	}
	one, two := fmt.Sprintf("{"+w.create+"}", w.kind+" one"), fmt.Sprintf("{"+w.create+"}", w.kind+" two")
	if w.bad != "" {
		p.refused(w.kind+".create", "["+one+",{"+w.bad+"}]", admin, w.refusal)
	}
	p.refused(w.kind+".create", "["+one+","+one+"]", admin, "") // twice the same
	p.refused(w.kind+".create", "["+one+`,{"colour":1}]`, admin, "")
	if _, failure := p.rpc(w.kind+".create", "["+one+","+one+"]", admin); failure == "" {
		t.Errorf("two of one name are made")
	}
	unchanged("refused create")
	var made map[string][]string
	p.mustRPC(w.kind+".create", "["+one+","+two+"]", admin, &made)
	var ids []string
	for _, list := range made {
		ids = list
	}
	if n := audits(); len(ids) != 2 || n != entries+2*max(1, w.entries) {
		t.Fatalf("two are made: ids %v, %d entries of the audit log", ids, n-entries)
	}
	before, entries = state(), audits()
	change := func(id, members string) string { return fmt.Sprintf("{%q:%q,%s}", w.id, id, members) }
	for _, second := range []string{change(ids[1], w.worse), change("999999", w.update), change(ids[0], w.update), change(ids[1], `"colour":1`)} {
		if _, failure := p.rpc(w.kind+".update", "["+change(ids[0], w.update)+","+second+"]", admin); failure == "" {
			t.Errorf("not refused: update of %s", second)
		}
	}
	unchanged("refused update")
	gone := []string{"999999"}
	if keeps != "" {
		gone = append(gone, keeps)
		p.refused(w.kind+".delete", fmt.Sprintf("[%q,%q]", ids[0], keeps), admin, w.why)
	}
	for _, other := range gone {
		if _, failure := p.rpc(w.kind+".delete", fmt.Sprintf("[%q,%q]", ids[0], other), admin); failure == "" {
			t.Errorf("not refused: delete with %s", other)
		}
	}
	unchanged("refused delete")
	p.mustRPC(w.kind+".delete", fmt.Sprintf("[%q,%q]", ids[0], ids[1]), admin, new(any))
	if n := audits(); n != entries+2 {
		t.Errorf("two are deleted: %d entries of the audit log", n-entries)
	}
}

// TestZabbix_wholeHosts changes two hosts of which the second is refused by what is in no document: links, proxy and state of the first stay.
func TestZabbix_wholeHosts(t *testing.T) {
	p := newParts(t)
	admin := p.signIn("administrator")
	host := p.ids.Replace("HOST")
	second := p.made("host.create", `{"host":"second","groups":[{"groupid":"GROUP"}]}`)
	state := func() string {
		t.Helper()
		var all json.RawMessage
		p.mustRPC("host.get", `{"output":["host","status","proxyid","description"],"selectParentTemplates":["host"],"selectHostGroups":["name"]}`, admin, &all)
		return string(all)
	}
	before := state()
	first := fmt.Sprintf(`{"hostid":%q,"status":1,"description":"x","templates":[{"templateid":%q}]}`, host, p.template)
	for _, bad := range []string{`"proxyid":"999999","monitored_by":1`, `"templates":[{"templateid":"999999"}]`, `"status":7`, `"groups":[]`} {
		if _, failure := p.rpc("host.update", "["+first+fmt.Sprintf(`,{"hostid":%q,%s}]`, second, bad), admin); failure == "" {
			t.Errorf("not refused: %s", bad)
		}
	}
	p.refused("host.massadd", fmt.Sprintf(`{"hosts":[{"hostid":%q},{"hostid":"999999"}],"templates":[{"templateid":%q}]}`, host, p.template), admin, noObject)
	p.refused("host.delete", fmt.Sprintf(`[%q,"999999"]`, host), admin, noObject)
	p.refused("template.delete", fmt.Sprintf(`[%q,"999999"]`, p.template), admin, noObject)
	if now := state(); now != before {
		t.Errorf("refused calls changed hosts:\n  was %s\nis now %s", before, now)
	}
	p.mustRPC("host.update", "["+first+fmt.Sprintf(`,{"hostid":%q,"status":1}]`, second), admin, new(any))
	if now := state(); strings.Count(now, `"status":"1"`) != 2 || !strings.Contains(now, `"host":"Parts"`) {
		t.Errorf("both are changed: %s", now)
	}
	p.mustRPC("host.delete", fmt.Sprintf(`[%q,%q]`, host, second), admin, new(any))
}
