package zabbixdb

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
)

// The flags of items, triggers, graphs and hosts.
const (
	flagPlain     = 0
	flagRule      = 1
	flagPrototype = 2
	flagCreated   = 4
)

// itemFields are columns that exports have under a name, with the value that is left out.
var itemFields = []struct {
	column, field, missing string
	names                  map[string]string
}{
	{"snmp_oid", "snmp_oid", "", nil},
	{"trapper_hosts", "allowed_hosts", "", nil},
	{"params", "params", "", nil},
	{"ipmi_sensor", "ipmi_sensor", "", nil},
	{"username", "username", "", nil},
	{"password", "password", "", nil},
	{"publickey", "publickey", "", nil},
	{"privatekey", "privatekey", "", nil},
	{"logtimefmt", "logtimefmt", "", nil},
	{"jmx_endpoint", "jmx_endpoint", "", nil},
	{"url", "url", "", nil},
	{"posts", "posts", "", nil},
	{"status_codes", "status_codes", "200", nil},
	{"follow_redirects", "follow_redirects", "YES", yesNames},
	{"post_type", "post_type", "RAW", postTypes},
	{"http_proxy", "http_proxy", "", nil},
	{"retrieve_mode", "retrieve_mode", "BODY", retrieveModes},
	{"request_method", "request_method", "GET", requestMethods},
	{"output_format", "output_format", "RAW", outputFormats},
	{"allow_traps", "allow_traps", "NO", yesNames},
	{"ssl_cert_file", "ssl_cert_file", "", nil},
	{"ssl_key_file", "ssl_key_file", "", nil},
	{"ssl_key_password", "ssl_key_password", "", nil},
	{"verify_peer", "verify_peer", "NO", yesNames},
	{"verify_host", "verify_host", "NO", yesNames},
	{"discover", "discover", "DISCOVER", discoverNames},
	{"description", "description", "", nil},
	{"units", "units", "", nil},
}

// httpOnly are columns that have a value in every row and mean something for HTTP agents only.
var httpOnly = map[string]bool{
	"status_codes": true, "follow_redirects": true, "post_type": true, "retrieve_mode": true, "request_method": true, "output_format": true,
	"allow_traps": true, "verify_peer": true, "verify_host": true, "url": true, "posts": true,
}

const itemHTTP, itemSSH, itemScript = "19", "13", "21"

// items are the parts of the items of some hosts and templates.
type items struct {
	steps, tags, parameters map[int64][]row
	valueMaps, keys         map[int64]string
}

// within is the condition on items that belong to the owners themselves.
func within(owners []int64) string {
	return "hostid IN " + list(owners) + " AND templateid IS NULL AND flags IN (0,1,2)"
}

func (s *Source) itemParts(ctx context.Context, owners []int64) (*items, error) {
	in := " WHERE itemid IN (SELECT itemid FROM items WHERE " + within(owners) + ")"
	p := &items{valueMaps: make(map[int64]string), keys: make(map[int64]string)}
	var err error
	if p.steps, err = s.grouped(ctx, "itemid", "SELECT * FROM item_preproc"+in+" ORDER BY itemid, step"); err != nil {
		return nil, err
	}
	if p.tags, err = s.grouped(ctx, "itemid", "SELECT * FROM item_tag"+in+" ORDER BY itemtagid"); err != nil {
		return nil, err
	}
	if p.parameters, err = s.grouped(ctx, "itemid", "SELECT * FROM item_parameter"+in+" ORDER BY item_parameterid"); err != nil {
		return nil, err
	}
	err = s.each(ctx, "SELECT valuemapid, name FROM valuemap WHERE hostid IN "+list(owners), func(r row) error {
		p.valueMaps[r.id("valuemapid")] = r["name"]
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The keys of masters, which may be inherited items.
	err = s.each(ctx, "SELECT itemid, key_ FROM items WHERE itemid IN (SELECT master_itemid FROM items WHERE "+within(owners)+" AND master_itemid IS NOT NULL)", func(r row) error {
		p.keys[r.id("itemid")] = r["key_"]
		return nil
	})
	return p, err
}

// item is one item, item prototype or discovery rule.
func (s *Source) item(r row, p *items) object {
	id := r.id("itemid")
	kind := r["type"]
	if kind == "" {
		kind = "0"
	}
	o := object{
		"key": r["key_"], "type": enum(itemTypes, kind), "name": r["name"], "status": enum(enabledNames, r["status"]),
	}
	o.put("uuid", r["uuid"], "")
	if delay := r["delay"]; delay != "" {
		o["delay"] = delay
	}
	for _, f := range itemFields {
		value := r[f.column]
		if httpOnly[f.column] && kind != itemHTTP || value == "" {
			continue
		}
		if f.names != nil {
			value = enum(f.names, value)
		}
		o.put(f.field, value, f.missing)
	}
	switch kind {
	case itemHTTP:
		o.put("authtype", enum(httpAuthTypes, r["authtype"]), "NONE")
		o.putList("query_fields", pairsOf(r["query_fields"]))
		o.putList("headers", headersOf(r["headers"]))
		o.put("timeout", r["timeout"], "3s")
	case itemSSH:
		o.put("authtype", enum(sshAuthTypes, r["authtype"]), "PASSWORD")
	case itemScript:
		o.put("timeout", r["timeout"], "3s")
	}
	if s.mandatory >= 7000000 {
		o.put("timeout", r["timeout"], "")
	}
	if key := p.keys[r.id("master_itemid")]; key != "" {
		o["master_item"] = object{"key": key}
	}
	if i := r.id("interfaceid"); i != 0 {
		o["interface_ref"] = "if" + strconv.FormatInt(i, 10)
	}
	o.putList("preprocessing", steps(p.steps[id]))
	var parameters []object
	for _, q := range p.parameters[id] {
		parameters = append(parameters, object{"name": q["name"], "value": q["value"]})
	}
	o.putList("parameters", parameters)
	return o
}

// measured adds what an item and an item prototype have, and a discovery rule has not.
func measured(o object, r row, p *items) object {
	o["value_type"] = enum(valueTypes, r["value_type"])
	o["history"], o["trends"] = orZero(r["history"]), orZero(r["trends"])
	if name := p.valueMaps[r.id("valuemapid")]; name != "" {
		o["valuemap"] = object{"name": name}
	}
	if n := r.num("inventory_link"); n > 0 && n <= len(inventoryFields) {
		o["inventory_link"] = strings.ToUpper(inventoryFields[n-1])
	}
	o.putList("tags", tags(p.tags[r.id("itemid")]))
	return o
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}

func tags(rows []row) []object {
	var out []object
	for _, r := range rows {
		o := object{"tag": r["tag"]}
		o.put("value", r["value"], "")
		out = append(out, o)
	}
	return out
}

const stepJavaScript = "21"

func steps(rows []row) []object {
	var out []object
	for _, r := range rows {
		o := object{"type": enum(stepTypes, r["type"])}
		if r["type"] == stepJavaScript {
			o["parameters"] = []string{r["params"]}
		} else {
			o["parameters"] = strings.Split(r["params"], "\n")
		}
		if handler := enum(failActions, r["error_handler"]); handler != "ORIGINAL_ERROR" {
			o["error_handler"] = handler
			o.put("error_handler_params", r["error_handler_params"], "")
		}
		out = append(out, o)
	}
	return out
}

// pairsOf reads query fields: a JSON list of objects with one member each, or with name and value.
func pairsOf(text string) []object {
	var fields []map[string]string
	if text == "" || json.Unmarshal([]byte(text), &fields) != nil {
		return nil
	}
	var out []object
	for _, f := range fields {
		if name, ok := f["name"]; ok && len(f) == 2 {
			out = append(out, object{"name": name, "value": f["value"]})
			continue
		}
		for name, value := range f {
			out = append(out, object{"name": name, "value": value})
		}
	}
	return out
}

// headersOf reads headers, one a line.
func headersOf(text string) []object {
	var out []object
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if ok {
			out = append(out, object{"name": strings.TrimSpace(name), "value": strings.TrimSpace(value)})
		}
	}
	return out
}
