package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"tidemark/access"
	"tidemark/alert"
	"tidemark/api"
	"tidemark/api/zabbix"
	"tidemark/collectors"
	"tidemark/confdb"
	"tidemark/model"
	"tidemark/preproc"
)

// zabbixAPI answers Zabbix's JSON-RPC.
func (s *Server) zabbixAPI(shown problems) *zabbix.API {
	return zabbix.New(zabbix.Options{
		Configuration: func() zabbix.Configuration { return s.cache.Snapshot() },
		Catalog:       s.catalog, Querier: s.querier, Latest: s.latest, Problems: shown, Access: s.access,
		Objects: zabbixObjects{s, s.alerting()},
		Audit: func(ctx context.Context, method, address string, changes *access.Changes) {
			for _, e := range changes.Entries("POST /api_jsonrpc.php "+method, address) {
				s.access.Audit(ctx, access.From(ctx), e)
			}
		},
	})
}

// zabbixObjects implements zabbix.Objects.
type zabbixObjects struct {
	*Server
	alerting alerting
}

// Groups implements zabbix.Objects.
func (o zabbixObjects) Groups(ctx context.Context) ([]zabbix.Group, error) {
	list, err := o.db.HostGroups(ctx)
	groups := make([]zabbix.Group, 0, len(list))
	for _, g := range list {
		groups = append(groups, zabbix.Group(g))
	}
	return groups, err
}

// Templates implements zabbix.Objects.
func (o zabbixObjects) Templates(ctx context.Context) ([]zabbix.Template, error) {
	list, err := o.db.Templates(ctx)
	templates := make([]zabbix.Template, 0, len(list))
	for _, t := range list {
		templates = append(templates, zabbix.Template{ID: t.ID, Template: t.Template, Name: t.Name, Description: t.Description})
	}
	return templates, err
}

// HostNotes implements zabbix.Objects.
func (o zabbixObjects) HostNotes(ctx context.Context) (map[model.HostID]zabbix.HostNotes, error) {
	list, err := o.db.HostNotes(ctx)
	notes := make(map[model.HostID]zabbix.HostNotes, len(list))
	for id, n := range list {
		notes[id] = zabbix.HostNotes(n)
	}
	return notes, err
}

// Encryption implements zabbix.Objects.
func (o zabbixObjects) Encryption(host model.HostID) (connect, accept model.ConnectionKind) {
	if t, ok := o.agents.keys.HostTLS(host); ok {
		return t.Connect, t.Accept
	}
	return model.Unencrypted, model.Unencrypted
}

// GlobalMacros implements zabbix.Objects.
func (o zabbixObjects) GlobalMacros(ctx context.Context) ([]model.Macro, error) {
	return o.db.GlobalMacros(ctx)
}

// SetGlobalMacros implements zabbix.Objects.
func (o zabbixObjects) SetGlobalMacros(ctx context.Context, macros []model.Macro) error {
	return o.changed(ctx, o.db.SetGlobalMacros(ctx, macros))
}

// ProblemUpdates implements zabbix.Objects.
func (o zabbixObjects) ProblemUpdates(ctx context.Context, problem model.EventID) ([]model.ProblemUpdate, error) {
	return o.db.ProblemUpdates(ctx, problem)
}

// UpdateProblems implements zabbix.Objects.
func (o zabbixObjects) UpdateProblems(ctx context.Context, problems []model.EventID, u model.ProblemUpdate) error {
	_, err := o.alerting.UpdateProblems(ctx, problems, u)
	return err
}

// Suppressions implements zabbix.Objects.
func (o zabbixObjects) Suppressions(problems []model.Problem) []alert.Suppression {
	return o.alerting.Suppressions(problems)
}

// Export implements zabbix.Objects.
func (o zabbixObjects) Export(ctx context.Context, templates, hosts []string, json bool) ([]byte, error) {
	text, err := o.db.Export(ctx, confdb.ExportOptions{Version: "7.0", Templates: templates, Hosts: hosts, JSON: json})
	return text, apiError(err)
}

// importOptions are those of an import with its rules.
func (o zabbixObjects) importOptions(deletes zabbix.Deletes) confdb.ImportOptions {
	return confdb.ImportOptions{
		Collected: collectedTypes(), CheckSteps: preproc.CheckSteps, CheckKey: collectors.CheckKey, DeleteMissing: deletes.Contents, DeleteLinks: deletes.Links, DeleteValueMaps: deletes.ValueMaps,
	}
}

// load takes an export over.
func (o zabbixObjects) load(ctx context.Context, name string, content []byte, options confdb.ImportOptions) (*confdb.Report, error) {
	report, err := o.db.Import(ctx, name, content, options)
	if err != nil {
		return nil, importError(ctx, err)
	}
	if report.Changed() && !options.Plan {
		return report, o.refresh(ctx)
	}
	return report, nil
}

// importName is what the report calls a file.
func importName(json bool) string {
	if json {
		return "import.json"
	}
	return "import.yaml"
}

// Import implements zabbix.Objects.
func (o zabbixObjects) Import(ctx context.Context, content []byte, json bool, deletes zabbix.Deletes) error {
	options := o.importOptions(deletes)
	audit := newImportAudit(ctx, o.db, importName(json), content, options)
	report, err := o.load(ctx, importName(json), content, options)
	if err != nil {
		return err
	}
	audit.done(ctx)
	for _, c := range report.Counts {
		if c.Refused > 0 {
			return &api.Error{Status: http.StatusUnprocessableEntity, Code: "import", Message: refusal(report, c)}
		}
	}
	return nil
}

// Compare implements zabbix.Objects.
func (o zabbixObjects) Compare(ctx context.Context, content []byte, json bool, deletes zabbix.Deletes) ([]zabbix.Difference, error) {
	options := o.importOptions(deletes)
	options.Plan = true
	report, err := o.load(ctx, importName(json), content, options)
	if err != nil {
		return nil, err
	}
	var list []zabbix.Difference
	for _, d := range report.Objects {
		list = append(list, zabbix.Difference{What: d.What, Kind: d.Kind, Owner: d.Owner, Name: d.Name})
	}
	return list, nil
}

// Document implements zabbix.Objects.
func (o zabbixObjects) Document(ctx context.Context, kind, name string) ([]byte, error) {
	read := o.db.HostDocument
	if kind == "template" {
		read = o.db.TemplateDocument
	}
	d, err := read(ctx, name)
	return d.JSON, apiError(err)
}

// PutDocuments implements zabbix.Objects.
func (o zabbixObjects) PutDocuments(ctx context.Context, list []zabbix.Document, states []zabbix.HostState) error {
	c := &configurator{server: o.Server}
	files := make([]confdb.File, 0, len(list))
	for _, d := range list {
		text := d.Text
		if d.Kind == "host" {
			var err error
			if text, err = c.limit(ctx, text); err != nil {
				return err
			}
		}
		options := c.options()
		options.Exact, options.Create = true, d.Create
		if options.Only.Kind = d.Kind; !d.Create {
			options.Only.Name = d.Name
		}
		files = append(files, confdb.File{Name: d.Kind + " " + d.Name, Src: text, Options: options})
	}
	hosts := make([]confdb.HostState, 0, len(states))
	for _, s := range states {
		hosts = append(hosts, confdb.HostState(s))
	}
	reports, err := o.db.ImportAll(ctx, files, hosts...)
	if err != nil {
		return importError(ctx, err)
	}
	if len(hosts) > 0 || slices.ContainsFunc(reports, (*confdb.Report).Changed) {
		return o.refresh(ctx)
	}
	return nil
}

// importError is an error of an import for who asked for it.
func importError(ctx context.Context, err error) error {
	if _, unreadable := errors.AsType[*confdb.UnreadableError](err); unreadable || ctx.Err() != nil {
		return err
	}
	if api.AsError(err).Code != "internal" { // the database is away, or its disk is full: the file has no mistake
		return err
	}
	return &api.Error{Status: http.StatusUnprocessableEntity, Code: "import", Message: err.Error()}
}

// DeleteTemplates implements zabbix.Objects.
func (o zabbixObjects) DeleteTemplates(ctx context.Context, names []string) error {
	return o.changed(ctx, o.db.DeleteTemplate(ctx, names...))
}

// refusal names the first thing that an import left out.
func refusal(report *confdb.Report, c confdb.Count) string {
	text := fmt.Sprintf("%d of kind %s were left out, all else was taken", c.Refused, c.Kind)
	if len(report.Remarks) > 0 {
		text += fmt.Sprintf("; %s: %s", report.Remarks[0].Path, report.Remarks[0].Reason)
	}
	return text
}

func (o zabbixObjects) refresh(ctx context.Context) error {
	_, err := o.cache.Refresh(ctx)
	return err
}

// changed brings a change in force.
func (o zabbixObjects) changed(ctx context.Context, err error) error {
	if err != nil {
		return apiError(err)
	}
	return o.refresh(ctx)
}

// DeleteHosts implements zabbix.Objects.
func (o zabbixObjects) DeleteHosts(ctx context.Context, ids []model.HostID) error {
	return o.changed(ctx, o.db.DeleteHost(ctx, ids...))
}

// TemplateGroups implements zabbix.Objects.
func (o zabbixObjects) TemplateGroups(ctx context.Context) ([]zabbix.Group, error) {
	list, err := o.db.TemplateGroups(ctx)
	groups := make([]zabbix.Group, 0, len(list))
	for _, g := range list {
		groups = append(groups, zabbix.Group(g))
	}
	return groups, err
}

// Proxies implements zabbix.Objects.
func (o zabbixObjects) Proxies() []zabbix.Proxy {
	var list []zabbix.Proxy
	for _, p := range o.proxies.list() {
		list = append(list, zabbix.Proxy{
			ID: p.ID, Name: p.Name, Description: p.Description, Version: p.contact.Version, Address: p.contact.Peer, AskAt: p.Proxy.Address, SeenAt: p.seenAt,
		})
	}
	return list
}

// ValueMaps implements zabbix.Objects.
func (o zabbixObjects) ValueMaps(ctx context.Context) ([]zabbix.ValueMap, error) {
	list, err := o.db.ValueMaps(ctx)
	maps := make([]zabbix.ValueMap, 0, len(list))
	for _, m := range list {
		maps = append(maps, zabbix.ValueMap(m))
	}
	return maps, err
}

// Regexps implements zabbix.Objects.
func (o zabbixObjects) Regexps(ctx context.Context) ([]zabbix.Regexp, error) {
	rows, err := o.allRegexps(ctx)
	list := make([]zabbix.Regexp, 0, len(rows))
	for _, r := range rows {
		list = append(list, zabbix.Regexp(r))
	}
	return list, err
}

// PutRegexps implements zabbix.Objects.
func (o zabbixObjects) PutRegexps(ctx context.Context, list []*model.GlobalRegexp) error {
	if err := o.db.PutRegexp(ctx, list...); err != nil {
		return regexpError(err)
	}
	return o.refresh(ctx)
}

// DeleteRegexps implements zabbix.Objects.
func (o zabbixObjects) DeleteRegexps(ctx context.Context, names []string) error {
	if err := o.db.DeleteRegexp(ctx, names...); err != nil {
		return regexpError(err)
	}
	return o.refresh(ctx)
}

// InterfaceStates implements zabbix.Objects.
func (o zabbixObjects) InterfaceStates(h *model.Host) []zabbix.InterfaceState {
	list := make([]zabbix.InterfaceState, 0, len(h.Interfaces))
	for _, s := range o.polling.states(h) {
		list = append(list, zabbix.InterfaceState{Available: s.Available, Error: s.Error})
	}
	return list
}

// RuleErrors implements zabbix.Objects.
func (o zabbixObjects) RuleErrors(ctx context.Context, host model.HostID) (map[model.ItemID]string, error) {
	rules, err := discovered{o.cache, o.db}.Rules(ctx, host)
	if err != nil {
		return nil, err
	}
	met := make(map[model.ItemID]string)
	for _, r := range rules {
		if r.Error != "" {
			met[r.Item.ID] = r.Error
		}
	}
	return met, nil
}

// Graphs implements zabbix.Objects.
func (o zabbixObjects) Graphs(ctx context.Context, host model.HostID) ([]model.Graph, error) {
	return o.db.Graphs(ctx, host)
}

// Alerting implements zabbix.Objects.
func (o zabbixObjects) Alerting() *alert.Config { return o.alerter.Config() }

// ApplyAlerting implements zabbix.Objects.
func (o zabbixObjects) ApplyAlerting(ctx context.Context, c *alert.Config) error {
	return apiError(o.alerter.Apply(ctx, c, false))
}

// DeleteAlerting implements zabbix.Objects.
func (o zabbixObjects) DeleteAlerting(ctx context.Context, kind string, names []string) error {
	return apiError(o.alerter.Delete(ctx, kind, names...))
}

// PutReceivers implements zabbix.Objects.
func (o zabbixObjects) PutReceivers(ctx context.Context, put []alert.Receiver, gone []string, check bool) error {
	return apiError(o.alerter.Receivers(ctx, put, gone, check))
}
