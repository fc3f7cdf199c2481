// Package zabbix answers Zabbix's JSON-RPC on /api_jsonrpc.php, so that Grafana's plugin, scripts and playbooks that were written for a
// Zabbix server can read from this one. Methods, parameters and errors are those of Zabbix 7.0
// (https://www.zabbix.com/documentation/7.0/en/manual/api); docs/user/zabbix-api.md lists which there are.
//
// A parameter that is not known is refused and never passed over, because a filter that is not looked at answers too much.
package zabbix

import (
	"context"
	"iter"
	"net/http"
	"sync"
	"time"

	"tidemark/access"
	"tidemark/alert"
	"tidemark/api"
	"tidemark/api/rest"
	"tidemark/discovery/network"
	"tidemark/model"
	"tidemark/query"
)

// Version is the release of Zabbix whose API this is; clients choose by it how they speak.
const Version = "7.0.0"

// Configuration is one unchanging view of what is configured. What it returns is shared and must not be changed.
type Configuration interface {
	HostByID(id model.HostID) (*model.Host, bool)
	Hosts() iter.Seq[*model.Host]
	Item(id model.ItemID) (*model.Item, bool)
	// ItemOf finds an item by its host's technical name and its key, also as it was written, before macros were expanded.
	ItemOf(host, key string) (*model.Item, bool)
	Trigger(id model.TriggerID) (*model.Trigger, bool)
	Triggers() iter.Seq[*model.Trigger]
	TriggersOf(host model.HostID) []model.Trigger
	// Rules returns the discovery rules of a host.
	Rules(host model.HostID) []model.Rule
}

// Catalog knows which items exist, configured and declared.
type Catalog interface {
	query.Catalog
	HostItems(host model.HostID) []model.ItemID
}

// Problems knows what is and was wrong.
type Problems interface {
	// Open returns the problems that are open; shared, must not be changed.
	Open() []model.Problem
	Find(ctx context.Context, f rest.ProblemFilter) ([]model.Problem, int, error)
	State(id model.TriggerID) (model.TriggerState, bool)
	// Items returns the items in a trigger's expression.
	Items(id model.TriggerID) []model.ItemID
	// OpData returns what is shown beside a problem: of an open one as it is now.
	OpData(ctx context.Context, p *model.Problem) string
}

// Group is a host group.
type Group struct {
	ID         uint64
	Name, UUID string
}

// Template is a template as lists show it.
type Template struct {
	ID             model.TemplateID
	Template, Name string
	Description    string
}

// Objects are what the snapshot of the configuration does not hold, and changes. Errors are *api.Error where the caller can do better.
type Objects interface {
	Groups(ctx context.Context) ([]Group, error)
	// Methods that take several objects change all of them or, with an error, none.
	//
	// RenameGroups and DeleteGroups change host groups that nothing else names.
	RenameGroups(ctx context.Context, list []Group) error
	DeleteGroups(ctx context.Context, ids []uint64) error
	Templates(ctx context.Context) ([]Template, error)
	GlobalMacros(ctx context.Context) ([]model.Macro, error)
	// SetGlobalMacros replaces them all.
	SetGlobalMacros(ctx context.Context, macros []model.Macro) error
	// ProblemUpdates lists what was done to a problem, oldest first.
	ProblemUpdates(ctx context.Context, problem model.EventID) ([]model.ProblemUpdate, error)
	UpdateProblems(ctx context.Context, problems []model.EventID, u model.ProblemUpdate) error
	// Suppressions returns for each of some problems whether and until when its messages are held back.
	Suppressions(problems []model.Problem) []alert.Suppression
	// Export writes templates and hosts, by technical name, as YAML or JSON in the form of Zabbix 7.0.
	Export(ctx context.Context, templates, hosts []string, json bool) ([]byte, error)
	// Import takes over an export; what it leaves out is an error too. Compare says what it would change.
	Import(ctx context.Context, content []byte, json bool, deletes Deletes) error
	Compare(ctx context.Context, content []byte, json bool, deletes Deletes) ([]Difference, error)
	// Document returns the export of one host or template as JSON. PutDocuments makes hosts and templates as their documents say, and then gives
	// hosts their states. What is changed is in force when it returns.
	Document(ctx context.Context, kind, name string) ([]byte, error)
	PutDocuments(ctx context.Context, list []Document, states []HostState) error
	DeleteTemplates(ctx context.Context, names []string) error
	DeleteHosts(ctx context.Context, ids []model.HostID) error
	TemplateGroups(ctx context.Context) ([]Group, error)
	RenameTemplateGroups(ctx context.Context, list []Group) error
	DeleteTemplateGroups(ctx context.Context, ids []uint64) error
	Proxies() []Proxy
	// NetRules are the rules of network discovery, secrets hidden; ApplyNetRules puts rules over those of the same name, whose hidden secrets stay.
	NetRules() []network.Rule
	ApplyNetRules(ctx context.Context, c *network.Config) error
	DeleteNetRules(ctx context.Context, names []string) error
	// PutProxies makes proxies known or gives them other descriptions and addresses; the ids are in the order of the list.
	PutProxies(ctx context.Context, list []model.Proxy) ([]model.ProxyID, error)
	DeleteProxies(ctx context.Context, names []string) error
	ValueMaps(ctx context.Context) ([]ValueMap, error)
	// Regexps are the global regular expressions by name, with the defaults that nobody has put another in place of.
	Regexps(ctx context.Context) ([]Regexp, error)
	PutRegexps(ctx context.Context, list []*model.GlobalRegexp) error
	DeleteRegexps(ctx context.Context, names []string) error
	// Alerts lists messages, the newest first.
	Alerts(ctx context.Context, f model.AlertFilter) ([]model.Alert, error)
	// HostNotes returns what hosts have for people alone; those without are not in it.
	HostNotes(ctx context.Context) (map[model.HostID]HostNotes, error)
	// Encryption is how the server connects to a host's agent and the mask of how values for it may come.
	Encryption(host model.HostID) (connect, accept model.ConnectionKind)
	// InterfaceStates says of each interface of a host whether it answers, in their order.
	InterfaceStates(h *model.Host) []InterfaceState
	// RuleErrors returns what the discovery rules of a host met with their last values; rules that met nothing are not in it.
	RuleErrors(ctx context.Context, host model.HostID) (map[model.ItemID]string, error)
	Graphs(ctx context.Context, host model.HostID) ([]model.Graph, error)
	// Alerting is the configuration of alerting without secrets; shared, must not be changed.
	Alerting() *alert.Config
	// ApplyAlerting puts objects over those of the same name, DeleteAlerting removes some of one kind.
	ApplyAlerting(ctx context.Context, c *alert.Config) error
	DeleteAlerting(ctx context.Context, kind string, names []string) error
	// PutReceivers puts receivers over those of the same name and removes others; with check it only says whether that can be done.
	PutReceivers(ctx context.Context, put []alert.Receiver, gone []string, check bool) error
}

// HostNotes is what a host has for people alone.
type HostNotes struct {
	Description string
	// InventoryMode is DISABLED, MANUAL or AUTOMATIC; empty is DISABLED.
	InventoryMode string
	// Macros are the descriptions of its macros by their names.
	Macros map[string]string
}

// HostState is what is to become of a host besides what its document says.
type HostState struct {
	Host model.HostID
	// Enabled and Proxy stay when they are nil; the empty Proxy is the server itself.
	Enabled *bool
	Proxy   *string
	// Unlink and Link are technical names of templates; with those of Unlink goes what the host inherited from them.
	Unlink, Link []string
}

// Document is a host or template as it shall be.
type Document struct {
	// Kind is host or template, Name the technical name.
	Kind, Name string
	// Text is its export as JSON.
	Text []byte
	// Create says that it must not exist yet, else that it must.
	Create bool
}

// InterfaceState says whether an interface of a host answers.
type InterfaceState struct {
	// Available is 0 for not known, 1 for yes, 2 for no.
	Available int
	// Error is why its last check failed; empty for nothing.
	Error string
}

// Proxy is a proxy and how it is doing.
type Proxy struct {
	ID                model.ProxyID
	Name, Description string
	Version, Address  string
	// AskAt is where the server asks a passive one, host:port; empty for one that connects by itself.
	AskAt string
	// SeenAt is when it was heard of last, Unix nanoseconds; zero for never since the start.
	SeenAt int64
}

// Options are everything that the interface shows; all must be set but Now.
type Options struct {
	Configuration func() Configuration
	Catalog       Catalog
	Querier       *query.Querier
	Latest        *query.Latest
	Problems      Problems
	Objects       Objects
	Access        *access.Control
	// Audit is told of every change: its method, with a word after it if only a part was made, and where from. The context carries who it was.
	Audit func(ctx context.Context, method, address string, changes *access.Changes)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// API serves the interface.
type API struct {
	options Options
	slots   chan struct{}
	// changing is held while hosts are made, so that a name is not given twice.
	changing sync.Mutex
}

// concurrent is how many calls are answered at the same time; others wait.
const concurrent = 8

// New returns the interface over its sources.
func New(options Options) *API {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &API{options: options, slots: make(chan struct{}, concurrent)}
}

// timeout bounds one request with all calls of its batch; imports may be large.
const timeout = 5 * time.Minute

// Routes returns the route table. The routes are public because credentials come in the body too and the first calls have none: each
// method says which role it needs, and what it shows is limited to hosts that its caller may see.
func (a *API) Routes() []api.Route {
	var routes []api.Route
	for _, pattern := range []string{"/api_jsonrpc.php", "/zabbix/api_jsonrpc.php"} {
		routes = append(routes, api.Route{
			Method: http.MethodPost, Pattern: pattern, Permission: api.Public, Handler: http.HandlerFunc(a.serve), MaxBodyBytes: maxTrustedBytes, Timeout: timeout,
			Doc: &api.Doc{Summary: "Zabbix's JSON-RPC, as of 7.0; see docs/user/zabbix-api.md.", BodyTypes: []string{"application/json-rpc", "application/json"}, Answer: map[string]any{}},
		})
	}
	return routes
}
