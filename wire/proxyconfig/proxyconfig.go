// Package proxyconfig holds the codec of the configuration that a proxy is given: what it is to ask of which hosts.
//
// The form is that of Zabbix 6.0, where the configuration is a part of the database of the server: an object with one member per table,
// each with the names of the columns and the rows,
//
//	{"hosts":{"fields":["hostid","host",…],"data":[[10084,"db1",…],…]},"interface":{…},"items":{…},…}
//
// in an order in which rows refer to earlier ones only. Macros are expanded, so that the proxy needs no templates and of
// macros only the secret ones in keys of items, which it shows to nobody.
package proxyconfig

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tidemark/model"
)

// Version is the line of proxies that understand the form.
const Version = "6.0"

// Host is one host of a configuration.
type Host struct {
	*model.Host
	// TLS is how its agent is spoken to.
	TLS model.HostTLS
	// Items are the enabled items that the proxy asks for.
	Items []*model.Item
}

// Configuration is what a proxy is given.
type Configuration struct {
	Hosts []Host
	// Newcomers is how agents that register themselves may speak.
	Newcomers model.HostTLS
	// Regexps are the global regular expressions.
	Regexps []model.GlobalRegexp
	// Discovery are the rules of network discovery by which the proxy looks for hosts.
	Discovery []Rule
}

// table is a table as it travels.
type table struct {
	Fields []string `json:"fields"`
	Data   [][]any  `json:"data"`
}

func newTable(fields string) *table { return &table{Fields: strings.Fields(fields), Data: [][]any{}} }

func (t *table) add(values ...any) { t.Data = append(t.Data, values) }

// named are tables in the order of an encoding.
type named struct {
	name string
	*table
}

const (
	hostFields = "hostid host status ipmi_authtype ipmi_privilege ipmi_username ipmi_password name " +
		"tls_connect tls_accept tls_issuer tls_subject tls_psk_identity tls_psk"
	interfaceFields = "interfaceid hostid main type useip ip dns port"
	snmpFields      = "interfaceid version bulk community securityname securitylevel authpassphrase privpassphrase authprotocol privprotocol contextname"
	itemFields      = "itemid type snmp_oid hostid key_ delay status value_type trapper_hosts params ipmi_sensor authtype username password " +
		"publickey privatekey flags interfaceid jmx_endpoint master_itemid timeout url query_fields posts status_codes follow_redirects post_type " +
		"http_proxy headers retrieve_mode request_method output_format ssl_cert_file ssl_key_file ssl_key_password verify_peer verify_host allow_traps"
	stepFields  = "item_preprocid itemid step type params error_handler error_handler_params"
	paramFields = "item_parameterid itemid name value"
	// fanOut is how many interfaces, steps and parameters one host or item can have; it makes their ids.
	fanOut = 1000
)

// encoder fills the tables.
type encoder struct {
	hosts, interfaces, snmp, macros, items, rtdata, steps, params *table
	web                                                           *webEncoder
	positions                                                     func(model.ItemID) (size, mtime uint64)
	// told are the macros of the present host that the table of macros has.
	told []string
}

// Encode appends the configuration. positions says how far the log of an item was read.
func Encode(dst []byte, c *Configuration, positions func(model.ItemID) (size, mtime uint64)) ([]byte, error) {
	e := &encoder{
		hosts: newTable(hostFields), interfaces: newTable(interfaceFields), snmp: newTable(snmpFields), macros: newTable("hostmacroid hostid macro value type"), items: newTable(itemFields),
		rtdata: newTable("itemid lastlogsize mtime"), steps: newTable(stepFields), params: newTable(paramFields), web: newWebEncoder(), positions: positions,
	}
	for i := range c.Hosts {
		if err := e.host(&c.Hosts[i]); err != nil {
			return dst, err
		}
	}
	group := newTable("groupid")
	group.add(1)
	accept := cmp.Or(c.Newcomers.Accept, model.Unencrypted) & (model.Unencrypted | model.PSK)
	config := newTable("configid discovery_groupid snmptrap_logging autoreg_tls_accept")
	config.add(1, 1, 1, int(cmp.Or(accept, model.Unencrypted)))
	newcomers := newTable("autoreg_tlsid tls_psk_identity tls_psk")
	newcomers.add(1, c.Newcomers.Identity, hex.EncodeToString(c.Newcomers.Key))
	regexps, expressions := newTable("regexpid name"), newTable("expressionid regexpid expression expression_type exp_delimiter case_sensitive")
	for i := range c.Regexps {
		g := &c.Regexps[i]
		regexps.add(i+1, g.Name)
		for n := range g.Expressions {
			e := &g.Expressions[n]
			sensitive := 0
			if e.CaseSensitive {
				sensitive = 1
			}
			expressions.add(i*model.MaxExpressions+n+1, i+1, e.Expression, e.Number(), cmp.Or(e.Delimiter, ","), sensitive)
		}
	}
	discovery := discoveryTables(c.Discovery)
	tables := []named{
		{"globalmacro", newTable("globalmacroid macro value")},
		{"hosts", e.hosts},
		{"interface", e.interfaces},
		{"interface_snmp", e.snmp},
		{"hosts_templates", newTable("hosttemplateid hostid templateid")},
		{"hostmacro", e.macros},
		{"items", e.items},
		{"item_rtdata", e.rtdata},
		{"item_preproc", e.steps},
		{"item_parameter", e.params},
		discovery[0], discovery[1],
		{"regexps", regexps},
		{"expressions", expressions},
		{"hstgrp", group},
		{"config", config},
	}
	tables = append(append(tables, e.web.tables()...), named{"config_autoreg_tls", newcomers})
	dst = append(dst, '{')
	for i, t := range tables {
		text, err := json.Marshal(t.table)
		if err != nil {
			return dst, fmt.Errorf("encode table %s: %w", t.name, err)
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(strconv.AppendQuote(dst, t.name), ':')
		dst = append(dst, text...)
	}
	return append(dst, '}'), nil
}

func (e *encoder) host(h *Host) error {
	ipmi := model.IPMIAccess{}
	if h.IPMI != nil {
		ipmi = *h.IPMI
	}
	tls := h.TLS
	e.hosts.add(h.ID, h.Host.Host, 0, index(ipmiAuth, ipmi.AuthType, -1), index(ipmiPrivilege, ipmi.Privilege, 2), ipmi.Username, ipmi.Password, h.Name,
		int(cmp.Or(tls.Connect, model.Unencrypted)), int(cmp.Or(tls.Accept, model.Unencrypted)), tls.Issuer, tls.Subject, tls.Identity, hex.EncodeToString(tls.Key))
	if len(h.Interfaces) >= fanOut {
		return fmt.Errorf("host %s has %d interfaces; expected fewer than %d", h.Host.Host, len(h.Interfaces), fanOut)
	}
	for i := range h.Interfaces {
		e.face(h, i)
	}
	e.told = e.told[:0]
	for _, item := range inOrder(h.Items) {
		as, err := e.web.item(item)
		if err == nil && as != nil {
			err = e.item(h, as)
		}
		if err != nil {
			return fmt.Errorf("host %s: %w", h.Host.Host, err)
		}
	}
	return nil
}

// InterfaceID is the id of the interface of a host with this index.
func InterfaceID(host model.HostID, index int) uint64 { return uint64(host)*fanOut + uint64(index) + 1 }

// OfInterfaceID returns the host and the index of an interface.
func OfInterfaceID(id uint64) (host model.HostID, index int) {
	if id == 0 {
		return 0, 0
	}
	return model.HostID((id - 1) / fanOut), int((id - 1) % fanOut)
}

func (e *encoder) face(h *Host, n int) {
	at, id := &h.Interfaces[n], InterfaceID(h.ID, n)
	useIP := at.IP != "" && at.Address == at.IP
	e.interfaces.add(id, h.ID, number(at.Main), int(at.Type), number(useIP), at.IP, at.DNS, at.Port)
	if s := at.SNMP; s != nil {
		e.snmp.add(id, index(snmpVersions, s.Version, 2), number(!s.Single), s.Community, s.SecurityName, index(snmpLevels, s.SecurityLevel, 0),
			s.AuthPassphrase, s.PrivPassphrase, index(snmpAuth, s.AuthProtocol, 0), index(snmpPriv, s.PrivProtocol, 0), s.Context)
	}
}

// inOrder returns the items with masters before what depends on them.
func inOrder(items []*model.Item) []*model.Item {
	byID := make(map[model.ItemID]*model.Item, len(items))
	for _, i := range items {
		byID[i.ID] = i
	}
	depth := func(i *model.Item) int {
		n := 0
		for i != nil && i.MasterID != 0 && n < len(items) {
			i = byID[i.MasterID]
			n++
		}
		return n
	}
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b *model.Item) int { return cmp.Compare(depth(a), depth(b)) })
	return sorted
}

func (e *encoder) item(h *Host, i *model.Item) error {
	c := model.Collect{}
	if i.Collect != nil {
		c = *i.Collect
	}
	r := model.HTTPRequest{FollowRedirects: true, StatusCodes: "200"}
	if c.HTTP != nil {
		r = *c.HTTP
	}
	query, err := queryFields(r.Query)
	if err != nil {
		return fmt.Errorf("item %s of %s: %w", i.Key, h.Host.Host, err)
	}
	headers := make([]string, len(r.Headers))
	for n, p := range r.Headers {
		headers[n] = p.Name + ": " + p.Value
	}
	flags := 0
	if i.RuleID != 0 {
		flags = 1
	}
	var at, master any
	if n := slices.IndexFunc(h.Interfaces, func(f model.Interface) bool { return sameInterface(h.InterfaceFor(i), &f) }); n >= 0 {
		at = InterfaceID(h.ID, n)
	}
	if i.MasterID != 0 {
		master = i.MasterID
	}
	timeout := ""
	if c.Timeout > 0 {
		timeout = strconv.FormatInt(int64(c.Timeout.Seconds()), 10) + "s"
	}
	e.items.add(i.ID, int(i.Type), c.SNMPOID, h.ID, e.key(h, i), cmp.Or(i.Delay, "0"), 0, int(i.ValueType), i.AllowedHosts, i.Params,
		c.IPMISensor, authType(i.Type, c.AuthType), c.Username, c.Password, c.PublicKey, c.PrivateKey, flags, at, c.JMXEndpoint, master,
		cmp.Or(timeout, "3s"), r.URL, query, r.Posts, r.StatusCodes, number(r.FollowRedirects), index(postTypes, r.PostType, 0), r.Proxy,
		strings.Join(headers, "\r\n"), index(retrieves, r.Retrieve, 0), index(methods, r.Method, 0), number(r.OutputJSON), r.CertFile, r.KeyFile,
		r.KeyPassword, number(r.VerifyPeer), number(r.VerifyHost), number(i.Trapping))
	var size, mtime uint64
	if e.positions != nil {
		size, mtime = e.positions(i.ID)
	}
	e.rtdata.add(i.ID, size, mtime)
	if len(i.Steps) >= fanOut || len(c.Parameters) >= fanOut {
		return fmt.Errorf("item %s of %s has %d steps and %d parameters; expected fewer than %d", i.Key, h.Host.Host, len(i.Steps), len(c.Parameters), fanOut)
	}
	for n := range i.Steps {
		s := &i.Steps[n]
		e.steps.add(uint64(i.ID)*fanOut+uint64(n)+1, i.ID, n+1, int(s.Type), strings.Join(s.Params, "\n"), int(s.OnFail), s.FailValue)
	}
	for n, p := range c.Parameters {
		e.params.add(uint64(i.ID)*fanOut+uint64(n)+1, i.ID, p.Name, p.Value)
	}
	return nil
}

// secretMacro is the type of macros whose value people do not see.
const secretMacro = 1

// key returns the key of an item for a proxy. One with secret macros goes as it was written, and the macros beside it, so that who looks at the proxy
// does not see their values.
func (e *encoder) key(h *Host, i *model.Item) string {
	if i.Collect == nil || len(i.Collect.KeySecrets) == 0 || len(i.Collect.KeySecrets) >= fanOut {
		return i.CheckKey()
	}
	for n, m := range i.Collect.KeySecrets {
		if !slices.Contains(e.told, m.Name) {
			e.told = append(e.told, m.Name)
			e.macros.add(uint64(i.ID)*fanOut+uint64(n)+1, h.ID, m.Name, m.Value, secretMacro)
		}
	}
	return i.Key
}

func sameInterface(a, b *model.Interface) bool {
	return a != nil && a.Type == b.Type && a.Ref == b.Ref && a.Address == b.Address && a.Port == b.Port && a.Main == b.Main
}

// queryFields writes the fields of a query as Zabbix does: a list of objects with one member each.
func queryFields(list []model.Pair) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	out := make([]map[string]string, len(list))
	for i, p := range list {
		out[i] = map[string]string{p.Name: p.Value}
	}
	text, err := json.Marshal(out)
	return string(text), err
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
