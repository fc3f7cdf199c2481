package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"tidemark/access"
	"tidemark/api"
	"tidemark/collect/poller"
	"tidemark/collectors"
	"tidemark/confdb"
	"tidemark/model"
	"tidemark/preproc"
)

// configurator lets hosts and templates be read and changed one by one. A document is what an export holds of one of them, and a change is an
// import of it, so that page, interface and file are the same (docs/design/0046-configuration-page.md).
type configurator struct {
	server *Server
	// changing is held from the look at what there is until it is changed.
	changing sync.Mutex
	// trials bounds the checks and previews under way.
	trials chan struct{}
	purges purges
}

const (
	// maxDocumentBytes bounds a document; the largest templates of the world have about 1 MiB.
	maxDocumentBytes = 16 << 20
	// maxTrials is how many tests and previews run at once; others are refused.
	maxTrials = 4
	// configureTime bounds a change: a template may be linked to thousands of hosts.
	configureTime = 5 * time.Minute
)

// applied is the answer to a change.
type applied struct {
	Report *confdb.Report `json:"report"`
	// Revision is that of the new document; empty for a plan.
	Revision string `json:"revision,omitempty"`
	// ID is the host's id; empty for templates and plans.
	ID string `json:"id,omitempty"`
}

func (s *Server) newConfigurator() *configurator {
	return &configurator{server: s, trials: make(chan struct{}, maxTrials), purges: newPurges()}
}

// kinds are the two sorts of documents and their names in paths.
var documentKinds = map[string]string{"hosts": "host", "templates": "template"}

func (c *configurator) routes() []api.Route {
	name := api.Param{Name: "name", Type: "string", About: "Technical name.", Required: true}
	revision := api.Param{Name: "revision", Type: "string", About: "Refuse with 409 when the document is not this one any more; empty to overwrite."}
	types := []string{"application/json", "application/yaml"}
	list := []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/configuration", Permission: api.Edit, PerHost: true, Handler: api.JSON(c.list),
			Doc: &api.Doc{Summary: "Templates, host groups and global macros by name.", Answer: templateRows{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/configuration/plan", Permission: api.Edit, PerHost: true, Handler: c.answer(c.plan), Unaudited: true, MaxBodyBytes: maxImportBody, Timeout: configureTime,
			Doc: &api.Doc{
				Summary: "What an import or a change of a document would do, and its mistakes by field; changes nothing.", BodyTypes: types, Answer: applied{},
				Params: []api.Param{
					{Name: "exact", Type: "boolean", About: "true as for a document of one host or template: what it does not name would be deleted."},
					{Name: "kind", Type: "string", About: "host or template, when the document shall be of one."},
					{Name: "name", Type: "string", About: "The technical name that it shall have."},
					{Name: "create", Type: "boolean", About: "true to remark that the host or template exists."},
				},
			},
		},
		{
			Method: http.MethodPost, Pattern: "/api/configuration/test-item", Permission: api.Edit, PerHost: true, Handler: api.JSON(c.testItem), MaxBodyBytes: maxDocumentBytes,
			Doc: &api.Doc{Summary: "Asks for an item's value now, or takes one, and shows what each preprocessing step makes of it; nothing is stored.", Body: itemTest{}, Answer: itemTested{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/configuration/preview-trigger", Permission: api.Edit, PerHost: true, Handler: api.JSON(c.previewTrigger), Unaudited: true, MaxBodyBytes: maxDocumentBytes,
			Doc: &api.Doc{Summary: "When a trigger would have fired over a range of stored values; nothing is recorded.", Body: previewRequest{}, Answer: preview{}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/purge", Permission: api.Administer, Handler: api.JSON(c.purge),
			Doc: &api.Doc{
				Summary: "Deletes the history of an item or of all items of a host. Asked for twice: the first answer has a token, the second request sends it with the name.",
				Body:    purgeRequest{}, Answer: purgeAnswer{},
			},
		},
	}
	for _, kind := range []string{"hosts", "templates"} {
		of := documentKinds[kind]
		path := "/api/configuration/" + kind
		hosts := kind == "hosts" // templates go into hosts of everybody
		list = append(list,
			api.Route{
				Method: http.MethodPost, Pattern: path, Permission: api.Edit, PerHost: hosts, Handler: c.answer(c.create(of)), MaxBodyBytes: maxDocumentBytes, Timeout: configureTime,
				Doc: &api.Doc{Summary: "Makes a " + of + " from its document.", BodyTypes: types, Answer: applied{}},
			},
			api.Route{
				Method: http.MethodGet, Pattern: path + "/{name}", Permission: api.Edit, PerHost: hosts, Handler: api.JSON(c.show(of)),
				Doc: &api.Doc{Summary: "The document of a " + of + ": its export in JSON; the same as YAML is in /api/export.", Answer: document{}, Params: []api.Param{name}},
			},
			api.Route{
				Method: http.MethodPut, Pattern: path + "/{name}", Permission: api.Edit, PerHost: hosts, Handler: c.answer(c.change(of)), MaxBodyBytes: maxDocumentBytes, Timeout: configureTime,
				Doc: &api.Doc{Summary: "Makes a " + of + " as its document says; what the document does not name is deleted.", BodyTypes: types, Answer: applied{}, Params: []api.Param{name, revision}},
			},
			api.Route{
				Method: http.MethodDelete, Pattern: path + "/{name}", Permission: api.Edit, PerHost: hosts, Handler: api.JSON(c.delete(of)), Timeout: configureTime,
				Doc: &api.Doc{Summary: "Deletes a " + of + ".", Answer: struct{}{}, Params: []api.Param{name}},
			})
	}
	return list
}

// maxImportBody is the size of an import that can be planned.
const maxImportBody = 64 << 20

// answer makes a handler that answers a refused file with its report.
func (c *configurator) answer(fn func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value, err := fn(r)
		if refused, ok := errors.AsType[*confdb.RefusedError](err); ok {
			var body struct {
				api.ErrorAnswer
				Report *confdb.Report `json:"report"`
			}
			body.Error.Code, body.Error.Message, body.Report = "refused", "nothing was changed: "+refused.Error(), refused.Report
			api.WriteJSON(w, http.StatusUnprocessableEntity, body)
			return
		}
		if err != nil {
			api.WriteError(w, configurationError(err))
			return
		}
		api.WriteJSON(w, http.StatusOK, value)
	})
}

func configurationError(err error) error {
	switch {
	case errors.Is(err, confdb.ErrNotFound):
		return api.NotFound(err.Error())
	case errors.Is(err, confdb.ErrPlanning):
		return &api.Error{Status: http.StatusServiceUnavailable, Code: "busy", Message: err.Error()}
	case errors.Is(err, confdb.ErrInvalid), errors.Is(err, confdb.ErrFile):
		return api.BadRequest(err.Error())
	}
	return err
}

func (c *configurator) list(r *http.Request) (any, error) {
	ctx := r.Context()
	templates, err := c.server.db.Templates(ctx)
	if err != nil {
		return nil, err
	}
	groups, err := c.server.db.HostGroups(ctx)
	if err != nil {
		return nil, err
	}
	macros, err := c.server.db.GlobalMacros(ctx)
	if err != nil {
		return nil, err
	}
	out := templateRows{Templates: []templateRow{}, Groups: []string{}, Proxies: []string{}, GlobalMacros: []globalMacro{}}
	who, seen := access.From(ctx), visibleHosts(r, c.server.cache.Snapshot())
	for _, t := range templates {
		row := templateRow{ID: fmt.Sprint(uint64(t.ID)), Template: t.Template, Name: t.Name, Items: t.Items, Triggers: t.Triggers, Hosts: t.Hosts}
		if seen != nil {
			row.Hosts = c.linked(t.ID, seen)
		}
		if seen == nil || row.Hosts > 0 {
			out.Templates = append(out.Templates, row)
		}
	}
	for _, g := range groups {
		if who.OnHost([]string{g.Name}) >= model.Editor {
			out.Groups = append(out.Groups, g.Name)
		}
	}
	if seen != nil {
		return out, nil // global macros hold for hosts of others
	}
	for _, p := range c.server.proxies.list() {
		out.Proxies = append(out.Proxies, p.Name)
	}
	for i := range macros {
		out.GlobalMacros = append(out.GlobalMacros, shownMacro(&macros[i]))
	}
	return out, nil
}

// linked is how many visible hosts have a template.
func (c *configurator) linked(template model.TemplateID, seen api.Visible) int {
	n := 0
	for h := range c.server.cache.Snapshot().Hosts() {
		if seen.Has(h.ID) && slices.Contains(h.Templates, template) {
			n++
		}
	}
	return n
}

// read returns the document of a host or template.
func (c *configurator) read(ctx context.Context, kind, name string) (document, error) {
	read := c.server.db.HostDocument
	if kind == "template" {
		read = c.server.db.TemplateDocument
	}
	d, err := read(ctx, name)
	if err != nil {
		return document{}, configurationError(err)
	}
	sum := sha256.Sum256(d.YAML)
	out := document{Document: d.JSON, Revision: hex.EncodeToString(sum[:8])}
	if h, ok := c.server.cache.Snapshot().Host(name); ok && kind == "host" {
		out.ID = fmt.Sprint(uint64(h.ID))
	}
	return out, nil
}

func (c *configurator) show(kind string) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		if err := c.editable(r.Context(), r.PathValue("name")); kind == "host" && err != nil {
			return nil, err
		}
		return c.read(r.Context(), kind, r.PathValue("name"))
	}
}

// body reads a document. JSON gets a line for each value, so that a mistake is found at its field.
func (c *configurator) body(r *http.Request) ([]byte, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && media != "application/yaml" && media != "application/x-yaml" && media != "text/yaml" {
		return nil, &api.Error{
			Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type",
			Message: fmt.Sprintf("Content-Type is %.80q, expected application/json or application/yaml", r.Header.Get("Content-Type")),
		}
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, api.BodyError(err)
	}
	return spread(text, media == "application/json"), nil
}

// spread gives each value of a JSON text a line of its own; a text that is none stays, and its reader says what is wrong.
func spread(text []byte, isJSON bool) []byte {
	var b bytes.Buffer
	if !isJSON || json.Indent(&b, text, "", " ") != nil {
		return text
	}
	return b.Bytes()
}

// options are those of every change over this interface.
func (c *configurator) options() confdb.ImportOptions {
	return confdb.ImportOptions{
		Collected: c.collected(), CheckSteps: preproc.CheckSteps, CheckKey: collectors.CheckKey,
		Known: func(host, key string) bool { _, _, ok := c.server.names.ItemByKey(host, key); return ok },
	}
}

func (c *configurator) collected() []model.ItemType { return collectedTypes() }

func (c *configurator) plan(r *http.Request) (any, error) {
	text, err := c.body(r)
	if err != nil {
		return nil, err
	}
	o := c.options()
	q := r.URL.Query()
	o.Plan, o.Exact, o.Create = true, q.Get("exact") == "true", q.Get("create") == "true"
	if o.Only = (confdb.OwnerName{Kind: q.Get("kind"), Name: q.Get("name")}); o.Only.Kind != "" && o.Only.Kind != "host" && o.Only.Kind != "template" {
		return nil, api.BadRequest(fmt.Sprintf("kind is %.40q, expected host or template", o.Only.Kind))
	}
	if !access.From(r.Context()).SeesAllHosts() {
		if o.Only.Kind != "host" {
			return nil, api.BadRequest("kind is missing, expected host for people who may change only some hosts")
		}
		if o.Only.Name != "" && !o.Create {
			if err := c.editable(r.Context(), o.Only.Name); err != nil {
				return nil, err
			}
		}
		if text, err = c.limit(r.Context(), text); err != nil {
			return nil, err
		}
	}
	report, err := c.server.db.Import(r.Context(), "plan", text, o)
	if err != nil {
		return nil, err
	}
	return applied{Report: report}, nil
}

func (c *configurator) create(kind string) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		text, err := c.body(r)
		if err != nil {
			return nil, err
		}
		if text, err = c.limit(r.Context(), text); err != nil {
			return nil, err
		}
		o := c.options()
		o.Create, o.Only = true, confdb.OwnerName{Kind: kind}
		return c.apply(r, kind, "", text, o, document{})
	}
}

func (c *configurator) change(kind string) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		text, err := c.body(r)
		if err != nil {
			return nil, err
		}
		c.changing.Lock()
		defer c.changing.Unlock()
		name := r.PathValue("name")
		if err := c.editable(r.Context(), name); kind == "host" && err != nil {
			return nil, err
		}
		if text, err = c.limit(r.Context(), text); err != nil {
			return nil, err
		}
		before, err := c.read(r.Context(), kind, name)
		if err != nil {
			return nil, err
		}
		if want := r.URL.Query().Get("revision"); want != "" && want != before.Revision {
			return nil, &api.Error{
				Status: http.StatusConflict, Code: "changed",
				Message: fmt.Sprintf("the %s %s was changed by somebody else meanwhile; load it again", kind, name),
			}
		}
		o := c.options()
		o.Only = confdb.OwnerName{Kind: kind, Name: name}
		return c.apply(r, kind, name, text, o, before)
	}
}

// apply takes a document over, brings it into force and tells the audit log.
func (c *configurator) apply(r *http.Request, kind, name string, text []byte, o confdb.ImportOptions, before document) (any, error) {
	o.Exact, o.Strict = true, true
	report, err := c.server.db.Import(r.Context(), strings.TrimSpace(kind+" "+name), text, o)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = report.Owner
	}
	if report.Changed() {
		if _, err := c.server.cache.Refresh(r.Context()); err != nil {
			return nil, err
		}
	}
	after, err := c.read(r.Context(), kind, name)
	if err != nil {
		return nil, err
	}
	access.Changed(r.Context(), kind+" "+name, inside(before.Document, kind), inside(after.Document, kind))
	return applied{Report: report, Revision: after.Revision, ID: after.ID}, nil
}

// inside returns the one host or template of a document, for the audit log; nil for none.
func inside(text json.RawMessage, kind string) any {
	var d struct {
		Export map[string]json.RawMessage `json:"zabbix_export"`
	}
	var list []map[string]any
	if json.Unmarshal(text, &d) != nil || json.Unmarshal(d.Export[kind+"s"], &list) != nil || len(list) == 0 {
		return nil
	}
	return list[0]
}

func (c *configurator) delete(kind string) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		ctx, name := r.Context(), r.PathValue("name")
		c.changing.Lock()
		defer c.changing.Unlock()
		if err := c.editable(ctx, name); kind == "host" && err != nil {
			return nil, err
		}
		before, err := c.read(ctx, kind, name)
		if err != nil {
			return nil, err
		}
		if kind == "template" {
			err = c.server.db.DeleteTemplate(ctx, name)
		} else if h, ok := c.server.cache.Snapshot().Host(name); ok {
			err = c.server.db.DeleteHost(ctx, h.ID)
		} else {
			err = fmt.Errorf("host %s: %w", name, confdb.ErrNotFound)
		}
		if err != nil {
			return nil, configurationError(err)
		}
		if _, err := c.server.cache.Refresh(ctx); err != nil {
			return nil, err
		}
		access.Changed(ctx, kind+" "+name, inside(before.Document, kind), nil)
		return struct{}{}, nil
	}
}

// enter takes a place among the tests that run at once.
func (c *configurator) enter() (leave func(), err error) {
	select {
	case c.trials <- struct{}{}:
		return func() { <-c.trials }, nil
	default:
		return nil, &api.Error{Status: http.StatusServiceUnavailable, Code: "busy", Message: fmt.Sprintf("%d tests run at this moment, which is the limit; try again", maxTrials)}
	}
}

// checker returns the collector of an item type.
func (p *polling) checker(t model.ItemType) (poller.Kind, bool) {
	for _, k := range p.o.kinds {
		for _, of := range k.Types {
			if of == t {
				return k, true
			}
		}
	}
	return poller.Kind{}, false
}
