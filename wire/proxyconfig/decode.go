package proxyconfig

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tidemark/model"
)

// Received is a configuration as a proxy gets it. Macros are not expanded yet: Zabbix sends them beside what uses them.
type Received struct {
	// Hosts are those that the proxy asks, in order of id. The item of a discovery rule is one of type Binary, so that its value is never
	// cut; Rules has its id.
	Hosts  []model.HostConfig
	Global []model.Macro
	// Regexps are the global regular expressions.
	Regexps []model.GlobalRegexp
	// TLS are the settings of hosts that are not just unencrypted; host 0 stands for agents that register themselves.
	TLS   []model.HostTLS
	Rules map[model.ItemID]bool
	// Interfaces are the ids of each host's interfaces, in their order.
	Interfaces map[model.HostID][]uint64
	// Logs say how far the logs of items were read.
	Logs map[model.ItemID]LogPosition
	// Discovery are the rules of network discovery, macros unexpanded.
	Discovery []Rule
}

// LogPosition is how far a log was read, and the file's time in Unix seconds.
type LogPosition struct{ Size, MTime uint64 }

// RefusedError is what a server said instead of giving a configuration.
type RefusedError struct{ Info string }

// Error gives the server's reason.
func (e *RefusedError) Error() string {
	return "the server gives no configuration: " + e.Info
}

// decoder gathers the tables.
type decoder struct {
	out   Received
	hosts map[uint64]*host
	// byInterface are the hosts of interfaces.
	byInterface map[uint64]*host
	items       map[uint64]*item
	order       []uint64
	// macros are those of hosts and templates by their id, templates the templates of hosts and templates.
	macros    map[uint64][]model.Macro
	templates map[uint64][]uint64
	// regexps are the places of global regular expressions by their id.
	regexps map[uint64]int
	// rules are the places of rules of network discovery.
	rules map[uint64]int
	web   webDecoder
}

type host struct {
	model.HostConfig
	interfaces map[uint64]int
	ids        []uint64
	items      []*item
}

type item struct {
	model.ItemConfig
	host   *host
	master uint64
	// places are the numbers of the steps.
	places []int
}

// Decode reads a configuration. The error is *RefusedError when the server gave none.
func Decode(body []byte) (*Received, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if raw["hosts"] == nil {
		var answer struct{ Info string }
		if err := json.Unmarshal(body, &answer); err != nil || answer.Info == "" {
			answer.Info = "there is no table of hosts in its answer"
		}
		return nil, &RefusedError{answer.Info}
	}
	d := &decoder{
		hosts: map[uint64]*host{}, byInterface: map[uint64]*host{}, items: map[uint64]*item{}, macros: map[uint64][]model.Macro{}, templates: map[uint64][]uint64{}, regexps: map[uint64]int{}, rules: map[uint64]int{},
		out: Received{Rules: map[model.ItemID]bool{}, Interfaces: map[model.HostID][]uint64{}, Logs: map[model.ItemID]LogPosition{}},
	}
	steps := []tableReader{
		{"globalmacro", d.globalMacro},
		{"regexps", d.regexp},
		{"expressions", d.expression},
		{"hosts", d.host},
		{"hosts_templates", func(r *reader) { id := r.id("hostid"); d.templates[id] = append(d.templates[id], r.id("templateid")) }},
		{"hostmacro", d.hostMacro},
		{"interface", d.iface},
		{"interface_snmp", d.snmp},
		{"items", d.item},
		{"item_rtdata", d.position},
		{"item_preproc", d.step},
		{"item_parameter", d.parameter},
		{"config", d.newcomers},
		{"config_autoreg_tls", d.newcomerKey},
		{"drules", d.rule},
		{"dchecks", d.check},
	}
	for _, s := range append(steps, d.webTables()...) {
		text, ok := raw[s.table]
		if !ok {
			continue
		}
		t := &received{}
		if err := json.Unmarshal(text, t); err != nil {
			return nil, fmt.Errorf("read the configuration: table %s: %w", s.table, err)
		}
		if err := t.each(s.table, s.row); err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
	}
	return d.finish(), nil
}

// finish puts items into their hosts and finds what refers to each other.
func (d *decoder) finish() *Received {
	slices.Sort(d.order)
	d.web.finish()
	for _, id := range d.order {
		h := d.hosts[id]
		h.Host.Macros = d.macros[id]
		h.TemplateMacros = d.templateMacros(id)
		for _, i := range h.items {
			if master := d.items[i.master]; master != nil && master.host == h {
				i.MasterKey = master.Key
			}
			h.Items = append(h.Items, i.ItemConfig)
		}
		d.out.Hosts = append(d.out.Hosts, h.HostConfig)
		d.out.Interfaces[h.Host.ID] = h.ids
	}
	return &d.out
}

// templateMacros are the macros of a host's templates, nearest first.
func (d *decoder) templateMacros(id uint64) []model.Macro {
	var list []model.Macro
	seen := map[uint64]bool{id: true}
	for level := []uint64{id}; len(level) > 0; {
		var next []uint64
		for _, from := range level {
			for _, t := range d.templates[from] {
				if !seen[t] {
					seen[t] = true
					next = append(next, t)
				}
			}
		}
		slices.Sort(next) // among templates of one level that with the lowest id wins
		for _, t := range next {
			list = append(list, d.macros[t]...)
		}
		level = next
	}
	return list
}

func (d *decoder) globalMacro(r *reader) {
	d.out.Global = append(d.out.Global, model.Macro{Name: r.text("macro"), Value: r.text("value"), Secret: r.number("type") == secretMacro})
}

func (d *decoder) regexp(r *reader) {
	d.regexps[r.id("regexpid")] = len(d.out.Regexps)
	d.out.Regexps = append(d.out.Regexps, model.GlobalRegexp{Name: r.text("name")})
}

// expression adds an expression to its global regular expression; one of an unknown type is passed over.
func (d *decoder) expression(r *reader) {
	n, known := d.regexps[r.id("regexpid")]
	kind := r.number("expression_type")
	if !known || kind < 0 || int(kind) >= len(model.ExpressionTypes) {
		return
	}
	g := &d.out.Regexps[n]
	g.Expressions = append(g.Expressions, model.GlobalExpression{
		Expression: r.text("expression"), Type: model.ExpressionTypes[kind], Delimiter: r.text("exp_delimiter"), CaseSensitive: r.number("case_sensitive") == 1,
	})
}

func (d *decoder) hostMacro(r *reader) {
	id := r.id("hostid")
	d.macros[id] = append(d.macros[id], model.Macro{Name: r.text("macro"), Value: r.text("value"), Secret: r.number("type") == secretMacro})
}

// host takes a monitored host; templates stand in the same table with another status.
func (d *decoder) host(r *reader) {
	id, name := r.id("hostid"), r.text("host")
	if r.err != nil || r.number("status") != 0 {
		return
	}
	if d.hosts[id] != nil || name == "" {
		r.err = fmt.Errorf("host %d is there twice or has no name", id)
		return
	}
	h := &host{interfaces: map[uint64]int{}}
	h.Host = model.Host{ID: model.HostID(id), Host: name, Name: r.text("name"), Enabled: true}
	if h.Host.Name == "" {
		h.Host.Name = name
	}
	auth, privilege := r.number("ipmi_authtype"), r.number("ipmi_privilege")
	if user := r.text("ipmi_username"); auth != -1 && auth != 0 || privilege != 2 && privilege != 0 || user != "" {
		h.Host.IPMI = &model.IPMIAccess{AuthType: nameOf(ipmiAuth, auth), Privilege: nameOf(ipmiPrivilege, privilege), Username: user, Password: r.text("ipmi_password")}
	}
	d.hosts[id] = h
	d.order = append(d.order, id)
	t := model.HostTLS{
		HostID: h.Host.ID, Connect: r.kinds("tls_connect"), Accept: r.kinds("tls_accept"), Issuer: r.text("tls_issuer"), Subject: r.text("tls_subject"),
		Identity: r.text("tls_psk_identity"),
	}
	// A key that cannot be read accepts nothing.
	t.Key, _ = hex.DecodeString(r.text("tls_psk"))
	_, has := r.columns["tls_accept"]
	if has && (t.Connect != model.Unencrypted || t.Accept != model.Unencrypted) {
		d.out.TLS = append(d.out.TLS, t)
	}
}

func (d *decoder) iface(r *reader) {
	h, id := d.hosts[r.id("hostid")], r.id("interfaceid")
	if h == nil || r.err != nil {
		return
	}
	kind := r.number("type")
	at := model.Interface{
		Type: model.InterfaceType(kind & 0xff), Main: r.yes("main"), Ref: strconv.FormatUint(id, 10), IP: r.text("ip"), DNS: r.text("dns"), Port: r.text("port"),
	}
	at.Address = at.DNS
	if r.yes("useip") {
		at.Address = at.IP
	}
	d.byInterface[id] = h
	h.interfaces[id] = len(h.Host.Interfaces)
	h.Host.Interfaces = append(h.Host.Interfaces, at)
	h.ids = append(h.ids, id)
}

func (d *decoder) snmp(r *reader) {
	id := r.id("interfaceid")
	access := &model.SNMPAccess{
		Version: nameOf(snmpVersions, r.number("version")), Community: r.text("community"), Context: r.text("contextname"), Single: !r.yes("bulk"),
		SecurityName: r.text("securityname"), SecurityLevel: nameOf(snmpLevels, r.number("securitylevel")),
		AuthProtocol: nameOf(snmpAuth, r.number("authprotocol")), AuthPassphrase: r.text("authpassphrase"),
		PrivProtocol: nameOf(snmpPriv, r.number("privprotocol")), PrivPassphrase: r.text("privpassphrase"),
	}
	if h := d.byInterface[id]; h != nil {
		h.Host.Interfaces[h.interfaces[id]].SNMP = access
	}
}

// flagRule and flagPrototype are those of items.
const (
	flagRule      = 1
	flagPrototype = 2
	// defaultTimeout is what an item has in Zabbix 6.0 whose type knows no time limit of its own.
	defaultTimeout = "3s"
)

func (d *decoder) item(r *reader) {
	h, id := d.hosts[r.id("hostid")], r.id("itemid")
	flags := r.number("flags")
	if h == nil || r.err != nil || flags&flagPrototype != 0 {
		return
	}
	valueType, kind := r.number("value_type"), r.number("type")
	if d.items[id] != nil || IsOwn(model.ItemID(id)) || valueType < 0 || valueType > int(model.Binary) || kind < 0 || kind > 255 {
		r.err = fmt.Errorf("item %d is there twice, has too large an id, or is of type %d with values of type %d", id, kind, valueType)
		return
	}
	i := &item{host: h, master: r.large("master_itemid")}
	i.Item = model.Item{
		ID: model.ItemID(id), HostID: h.Host.ID, Type: model.ItemType(kind), Key: r.text("key_"), ValueType: model.ValueType(valueType), Delay: r.text("delay"),
		Enabled: r.number("status") == 0, AllowedHosts: r.text("trapper_hosts"), Trapping: r.yes("allow_traps"), Params: r.text("params"),
	}
	if flags&flagRule != 0 {
		i.ValueType = model.Binary
		d.out.Rules[i.ID] = true
	}
	i.Collect = collect(r, i.Type)
	if timeout := r.text("timeout"); timeout != defaultTimeout || i.Type == model.HTTPAgent || i.Type == model.Script {
		i.TimeoutText = timeout
	}
	d.items[id] = i
	h.items = append(h.items, i)
}

// collect reads what collectors need besides the key.
func collect(r *reader, kind model.ItemType) *model.Collect {
	c := &model.Collect{
		SNMPOID: r.text("snmp_oid"), IPMISensor: r.text("ipmi_sensor"), AuthType: nameOf(authNames(kind), r.number("authtype")), Username: r.text("username"),
		Password: r.text("password"), PublicKey: r.text("publickey"), PrivateKey: r.text("privatekey"), JMXEndpoint: r.text("jmx_endpoint"),
		InterfaceRef: r.text("interfaceid"),
	}
	if c.InterfaceRef == "0" {
		c.InterfaceRef = ""
	}
	if kind != model.HTTPAgent {
		return c
	}
	c.HTTP = &model.HTTPRequest{
		URL: r.text("url"), Query: decodeQuery(r.text("query_fields")), Headers: decodeHeaders(r.text("headers")), Posts: r.text("posts"), StatusCodes: r.text("status_codes"),
		FollowRedirects: r.yes("follow_redirects"), PostType: nameOf(postTypes, r.number("post_type")), Proxy: r.text("http_proxy"),
		Retrieve: nameOf(retrieves, r.number("retrieve_mode")), Method: nameOf(methods, r.number("request_method")), OutputJSON: r.yes("output_format"),
		CertFile: r.text("ssl_cert_file"), KeyFile: r.text("ssl_key_file"), KeyPassword: r.text("ssl_key_password"),
		VerifyPeer: r.yes("verify_peer"), VerifyHost: r.yes("verify_host"),
	}
	return c
}

// decodeQuery reads a list of objects with one member each.
func decodeQuery(text string) []model.Pair {
	var list []map[string]string
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	var pairs []model.Pair
	for _, one := range list {
		for name, value := range one {
			pairs = append(pairs, model.Pair{Name: name, Value: value})
		}
	}
	return pairs
}

// decodeHeaders reads lines of names and values.
func decodeHeaders(text string) []model.Pair {
	var pairs []model.Pair
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			pairs = append(pairs, model.Pair{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
		}
	}
	return pairs
}

func (d *decoder) position(r *reader) {
	if p := (LogPosition{r.large("lastlogsize"), r.large("mtime")}); p != (LogPosition{}) {
		d.out.Logs[model.ItemID(r.id("itemid"))] = p
	}
}

// step takes a preprocessing step.
func (d *decoder) step(r *reader) {
	i := d.items[r.id("itemid")]
	if i == nil || r.err != nil {
		return
	}
	kind, onFail := r.number("type"), r.number("error_handler")
	if kind < 0 || kind > 255 || onFail < 0 || onFail > int(model.FailSetError) {
		r.err = fmt.Errorf("a step of type %d with error_handler %d", kind, onFail)
		return
	}
	s := model.Step{Type: model.StepType(kind), OnFail: model.OnFail(onFail), FailValue: r.text("error_handler_params")}
	if params := r.text("params"); s.Type == model.StepJavaScript {
		s.Params = []string{params}
	} else if params != "" {
		s.Params = strings.Split(params, "\n")
	}
	place := r.number("step")
	at := len(i.places)
	for at > 0 && i.places[at-1] > place {
		at--
	}
	i.places, i.Steps = slices.Insert(i.places, at, place), slices.Insert(i.Steps, at, s)
}

func (d *decoder) parameter(r *reader) {
	if i := d.items[r.id("itemid")]; i != nil {
		i.Collect.Parameters = append(i.Collect.Parameters, model.Pair{Name: r.text("name"), Value: r.text("value")})
	}
}

// newcomers takes how agents that register themselves may speak.
func (d *decoder) newcomers(r *reader) {
	if accept := r.kinds("autoreg_tls_accept"); accept != 0 && accept != model.Unencrypted {
		d.out.TLS = append(d.out.TLS, model.HostTLS{Connect: model.Unencrypted, Accept: accept})
	}
}

func (d *decoder) newcomerKey(r *reader) {
	for i := range d.out.TLS {
		if t := &d.out.TLS[i]; t.HostID == 0 {
			t.Identity = r.text("tls_psk_identity")
			t.Key, _ = hex.DecodeString(r.text("tls_psk"))
		}
	}
}
