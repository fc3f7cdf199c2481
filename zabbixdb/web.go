package zabbixdb

import "context"

// The types of fields of web scenarios and their steps.
const (
	webHeader   = "0"
	webVariable = "1"
	webPost     = "2"
	webQuery    = "3"
)

// webParts are the web scenarios of some hosts and templates.
type webParts struct {
	// By host; by scenario; by step.
	scenarios, steps, fields, tags map[int64][]row
	stepFields                     map[int64][]row
}

func (s *Source) webParts(ctx context.Context, owners []int64) (*webParts, error) {
	p := &webParts{}
	tests := " WHERE httptestid IN (SELECT httptestid FROM httptest WHERE hostid IN " + list(owners) + " AND templateid IS NULL)"
	for _, read := range []struct {
		into      *map[int64][]row
		by, query string
	}{
		{&p.scenarios, "hostid", "SELECT * FROM httptest WHERE hostid IN " + list(owners) + " AND templateid IS NULL ORDER BY httptestid"},
		{&p.steps, "httptestid", "SELECT * FROM httpstep" + tests + " ORDER BY httptestid, no"},
		{&p.fields, "httptestid", "SELECT * FROM httptest_field" + tests + " ORDER BY httptest_fieldid"},
		{&p.tags, "httptestid", "SELECT * FROM httptest_tag" + tests + " ORDER BY httptesttagid"},
		{&p.stepFields, "httpstepid", "SELECT * FROM httpstep_field WHERE httpstepid IN (SELECT httpstepid FROM httpstep" + tests + ") ORDER BY httpstep_fieldid"},
	} {
		var err error
		if *read.into, err = s.grouped(ctx, read.by, read.query); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// of are the web scenarios of a host or template.
func (p *webParts) of(owner int64) []object {
	var out []object
	for _, r := range p.scenarios[owner] {
		id := r.id("httptestid")
		o := object{"name": r["name"]}
		o.put("uuid", r["uuid"], "")
		o.put("delay", r["delay"], "1m")
		o.put("attempts", r["retries"], "1")
		o.put("agent", r["agent"], "Zabbix")
		o.put("http_proxy", r["http_proxy"], "")
		o.put("authentication", enum(httpAuthTypes, r["authentication"]), "NONE")
		for _, name := range []string{"http_user", "http_password", "ssl_cert_file", "ssl_key_file", "ssl_key_password"} {
			o.put(name, r[name], "")
		}
		o.put("verify_peer", enum(yesNames, r["verify_peer"]), "NO")
		o.put("verify_host", enum(yesNames, r["verify_host"]), "NO")
		o.put("status", enum(enabledNames, r["status"]), "ENABLED")
		o.putList("variables", webFields(p.fields[id], webVariable))
		o.putList("headers", webFields(p.fields[id], webHeader))
		o.putList("tags", tags(p.tags[id]))
		var steps []object
		for _, step := range p.steps[id] {
			steps = append(steps, webStep(step, p.stepFields[step.id("httpstepid")]))
		}
		o.putList("steps", steps)
		out = append(out, o)
	}
	return out
}

// formPosts is the post_type of steps whose body is a form.
const formPosts = "1"

func webStep(r row, fields []row) object {
	o := object{"name": r["name"], "url": r["url"]}
	o.put("timeout", r["timeout"], "15s")
	o.put("required", r["required"], "")
	o.put("status_codes", r["status_codes"], "")
	o.put("follow_redirects", enum(yesNames, r["follow_redirects"]), "YES")
	o.put("retrieve_mode", enum(retrieveModes, r["retrieve_mode"]), "BODY")
	o.putList("variables", webFields(fields, webVariable))
	o.putList("headers", webFields(fields, webHeader))
	o.putList("query_fields", webFields(fields, webQuery))
	if r["post_type"] == formPosts {
		o.putList("posts", webFields(fields, webPost))
	} else {
		o.put("posts", r["posts"], "")
	}
	return o
}

func webFields(rows []row, kind string) []object {
	var out []object
	for _, r := range rows {
		if orZero(r["type"]) == kind {
			out = append(out, object{"name": r["name"], "value": r["value"]})
		}
	}
	return out
}

// proxyNames says which proxy has a host, by host, and counts the hosts of proxy groups, which this server has not.
func (s *Source) proxyNames(ctx context.Context) (map[int64]string, error) {
	names, byHost := make(map[int64]string), make(map[int64]string)
	if s.mandatory < 7000000 {
		return byHost, s.each(ctx, "SELECT h.hostid, p.host AS name FROM hosts h JOIN hosts p ON p.hostid = h.proxy_hostid WHERE p.status IN (5,6)", func(r row) error {
			byHost[r.id("hostid")] = r["name"]
			return nil
		})
	}
	if err := s.each(ctx, "SELECT proxyid, name FROM proxy", func(r row) error { names[r.id("proxyid")] = r["name"]; return nil }); err != nil {
		return nil, err
	}
	assigned, err := s.grouped(ctx, "hostid", "SELECT * FROM host_proxy WHERE hostid IS NOT NULL")
	if err != nil {
		return nil, err
	}
	byGroup, err := s.grouped(ctx, "proxy_groupid", "SELECT * FROM proxy WHERE proxy_groupid IS NOT NULL ORDER BY proxyid")
	if err != nil {
		return nil, err
	}
	return byHost, s.each(ctx, "SELECT hostid, proxyid, proxy_groupid, monitored_by FROM hosts WHERE status IN (0,1) AND flags = 0", func(r row) error {
		id := r.id("hostid")
		switch r["monitored_by"] {
		case monitoredByProxy:
			byHost[id] = names[r.id("proxyid")]
		case monitoredByGroup:
			for _, a := range assigned[id] {
				byHost[id] = names[a.id("proxyid")]
			}
			if members := byGroup[r.id("proxy_groupid")]; byHost[id] == "" && len(members) > 0 {
				byHost[id] = members[int(id%int64(len(members)))]["name"]
			}
			s.leave("proxy groups of hosts", 1, "proxies here are no groups: the host stays with the proxy that has it now, and does not move when that fails")
		}
		return nil
	})
}

// What monitors a host, since 7.0.
const (
	monitoredByProxy = "1"
	monitoredByGroup = "2"
)
