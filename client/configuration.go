package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// The calls below need the role editor; those for templates and for all hosts an editor of all hosts.

// Configuration returns the templates, host groups, proxies and global macros by name.
func (c *Client) Configuration(ctx context.Context) (ConfigurationList, error) {
	return get[ConfigurationList](ctx, c, "/api/configuration", nil)
}

// HostDocument returns the document of a host by its technical name: its export in JSON.
func (c *Client) HostDocument(ctx context.Context, name string) (Document, error) {
	return get[Document](ctx, c, "/api/configuration/hosts/"+url.PathEscape(name), nil)
}

// MakeHost makes a host from its document, in JSON or YAML.
func (c *Client) MakeHost(ctx context.Context, document []byte) (made Applied, err error) {
	err = c.sendFile(ctx, http.MethodPost, "/api/configuration/hosts", nil, document, &made)
	return made, err
}

// SaveHost makes a host as its document says; what the document does not name is deleted. An Error with the status 409 says that the stored document
// is not that of revision any more; an empty revision overwrites it.
func (c *Client) SaveHost(ctx context.Context, name string, document []byte, revision string) (saved Applied, err error) {
	query := url.Values{}
	setText(query, "revision", revision)
	err = c.sendFile(ctx, http.MethodPut, "/api/configuration/hosts/"+url.PathEscape(name), query, document, &saved)
	return saved, err
}

// DeleteHost removes a host with its items and problems.
func (c *Client) DeleteHost(ctx context.Context, name string) error {
	return c.remove(ctx, "/api/configuration/hosts/"+url.PathEscape(name))
}

// TemplateDocument returns the document of a template by its technical name: its export in JSON.
func (c *Client) TemplateDocument(ctx context.Context, name string) (Document, error) {
	return get[Document](ctx, c, "/api/configuration/templates/"+url.PathEscape(name), nil)
}

// MakeTemplate makes a template from its document, in JSON or YAML.
func (c *Client) MakeTemplate(ctx context.Context, document []byte) (made Applied, err error) {
	err = c.sendFile(ctx, http.MethodPost, "/api/configuration/templates", nil, document, &made)
	return made, err
}

// SaveTemplate is SaveHost for a template.
func (c *Client) SaveTemplate(ctx context.Context, name string, document []byte, revision string) (saved Applied, err error) {
	query := url.Values{}
	setText(query, "revision", revision)
	err = c.sendFile(ctx, http.MethodPut, "/api/configuration/templates/"+url.PathEscape(name), query, document, &saved)
	return saved, err
}

// DeleteTemplate removes a template.
func (c *Client) DeleteTemplate(ctx context.Context, name string) error {
	return c.remove(ctx, "/api/configuration/templates/"+url.PathEscape(name))
}

// PlanOptions say what a plan is for. The zero value plans an import.
type PlanOptions struct {
	// Exact plans as for a document of one host or template: what it does not name would be deleted.
	Exact bool
	// Kind is host or template when the document shall be of one, and Name the technical name that it shall have.
	Kind, Name string
	// Create remarks that the host or template exists.
	Create bool
}

// Plan says what Import, or with options a change of a document, would do, and the mistakes by field; nothing is changed.
func (c *Client) Plan(ctx context.Context, file []byte, o PlanOptions) (plan Applied, err error) {
	query := url.Values{}
	setFlag(query, "exact", o.Exact)
	setText(query, "kind", o.Kind)
	setText(query, "name", o.Name)
	setFlag(query, "create", o.Create)
	err = c.sendFile(ctx, http.MethodPost, "/api/configuration/plan", query, file, &plan)
	return plan, err
}

// Import takes over an export in YAML or JSON. Large ones take longer than DefaultTimeout: give Options.HTTP then.
func (c *Client) Import(ctx context.Context, file []byte) (report ImportReport, err error) {
	err = c.sendFile(ctx, http.MethodPost, "/api/import", nil, file, &report)
	return report, err
}

// ExportOptions say what is exported.
type ExportOptions struct {
	// Templates and Hosts are technical names; All exports everything.
	Templates, Hosts []string
	All              bool
	// Version is that of the format: 6.0, 6.4 or 7.0; empty for the newest.
	Version string
}

// Export returns templates and hosts in Zabbix's export format, YAML, of at most MaxAnswerBytes; values of secret macros are left out.
func (c *Client) Export(ctx context.Context, o ExportOptions) ([]byte, error) {
	query := url.Values{"template": o.Templates, "host": o.Hosts}
	setFlag(query, "all", o.All)
	setText(query, "version", o.Version)
	return c.Send(ctx, Request{Path: "/api/export", Query: query})
}

// TestItem asks for an item's value now, or takes one, and returns what each preprocessing step makes of it; nothing is stored.
func (c *Client) TestItem(ctx context.Context, t ItemTest) (ItemTested, error) {
	return change[ItemTested](ctx, c, http.MethodPost, "/api/configuration/test-item", t)
}

// PreviewTrigger returns when a trigger would have fired over a range of stored values; nothing is recorded.
func (c *Client) PreviewTrigger(ctx context.Context, r PreviewRequest) (TriggerPreview, error) {
	return change[TriggerPreview](ctx, c, http.MethodPost, "/api/configuration/preview-trigger", r)
}

// SetGlobalMacro makes a macro that holds for all hosts, {$NAME}, or gives it another value; the answer has no secret value.
func (c *Client) SetGlobalMacro(ctx context.Context, macro string, m GlobalMacroBody) (GlobalMacro, error) {
	return change[GlobalMacro](ctx, c, http.MethodPut, "/api/global-macros/"+url.PathEscape(macro), m)
}

// DeleteGlobalMacro removes a macro that holds for all hosts.
func (c *Client) DeleteGlobalMacro(ctx context.Context, macro string) error {
	return c.remove(ctx, "/api/global-macros/"+url.PathEscape(macro))
}

// Regexps returns the global regular expressions, one's own and those that come with the program.
func (c *Client) Regexps(ctx context.Context) (RegexpList, error) {
	return get[RegexpList](ctx, c, "/api/regexps", nil)
}

// SaveRegexp puts a global regular expression over the one with the name; it may give it another.
func (c *Client) SaveRegexp(ctx context.Context, name string, g GlobalRegexp) (RegexpRow, error) {
	return change[RegexpRow](ctx, c, http.MethodPut, "/api/regexps/"+url.PathEscape(name), g)
}

// DeleteRegexp removes a global regular expression; a default of that name is in force again.
func (c *Client) DeleteRegexp(ctx context.Context, name string) error {
	return c.remove(ctx, "/api/regexps/"+url.PathEscape(name))
}

// TestRegexp says whether a text fits a global regular expression, which need not be stored.
func (c *Client) TestRegexp(ctx context.Context, t RegexpTest) (RegexpTested, error) {
	return change[RegexpTested](ctx, c, http.MethodPost, "/api/regexp-test", t)
}

// Purge deletes the history of an item or of all items of a host, for administrators. It is asked for twice: the first answer has a token and the text
// to confirm with, and the second request sends both.
func (c *Client) Purge(ctx context.Context, r PurgeRequest) (PurgeAnswer, error) {
	return change[PurgeAnswer](ctx, c, http.MethodPost, "/api/purge", r)
}

// DiscoveryFilter says which low-level discovery rules are listed. Zero fields do not filter.
type DiscoveryFilter struct {
	// HostID is the id of the only host; Search must be in the name or the key, in any case of letters.
	HostID, Search string
	// Failing leaves out rules without an error.
	Failing bool
}

// Query is the filter as the route /api/discovery takes it.
func (f DiscoveryFilter) Query() url.Values {
	query := url.Values{}
	setText(query, "host", f.HostID)
	setText(query, "search", f.Search)
	setFlag(query, "failing", f.Failing)
	return query
}

// DiscoveryRules returns a page of low-level discovery rules with their last error and what they made, by id.
func (c *Client) DiscoveryRules(ctx context.Context, f DiscoveryFilter, p Page) (DiscoveryRuleList, error) {
	return page[DiscoveryRuleList](ctx, c, "/api/discovery", f.Query(), p)
}

// DiscoveryRule returns one discovery rule with the items, triggers and hosts that it made.
func (c *Client) DiscoveryRule(ctx context.Context, id string) (DiscoveryRule, error) {
	return get[DiscoveryRule](ctx, c, "/api/discovery/"+url.PathEscape(id), nil)
}

// NetworkDiscovery returns the rules of network discovery and the actions on what they find as one document, which SetNetworkDiscovery takes; secrets
// are hidden. Its form is in docs/user/network-discovery.md.
func (c *Client) NetworkDiscovery(ctx context.Context) (json.RawMessage, error) {
	return get[json.RawMessage](ctx, c, "/api/network-discovery", nil)
}

// SetNetworkDiscovery puts the rules and actions of a file in YAML or JSON over those of the same name and returns all; with replace what is not in it
// is deleted. The caller must be an administrator.
func (c *Client) SetNetworkDiscovery(ctx context.Context, file []byte, replace bool) (whole json.RawMessage, err error) {
	query := url.Values{}
	setFlag(query, "replace", replace)
	err = c.sendFile(ctx, http.MethodPut, "/api/network-discovery", query, file, &whole)
	return whole, err
}

// DeleteNetworkDiscovery removes one object; kind is rule or action. The caller must be an administrator.
func (c *Client) DeleteNetworkDiscovery(ctx context.Context, kind, name string) error {
	return c.remove(ctx, "/api/network-discovery/"+url.PathEscape(kind)+"/"+url.PathEscape(name))
}

// DiscoveryStatus returns how the work on each rule of network discovery goes.
func (c *Client) DiscoveryStatus(ctx context.Context) (DiscoveryStatusList, error) {
	return get[DiscoveryStatusList](ctx, c, "/api/network-discovery/status", nil)
}

// FoundHosts returns what a rule of network discovery found, up or down.
func (c *Client) FoundHosts(ctx context.Context, rule string) (FoundHostList, error) {
	return get[FoundHostList](ctx, c, "/api/network-discovery/hosts", url.Values{"rule": {rule}})
}

// Scan has a rule of network discovery look at once.
func (c *Client) Scan(ctx context.Context, rule string) error {
	return c.Call(ctx, http.MethodPost, "/api/network-discovery/scan", map[string]string{"rule": rule}, nil)
}
