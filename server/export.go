package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"tidemark/api"
	"tidemark/confdb"
	"tidemark/internal/vfs"
	"tidemark/model"
)

// ExportOffline exports from the data folder of a server that does not run; a folder in use is ErrInUse.
func ExportOffline(ctx context.Context, data string, o confdb.ExportOptions, logger *slog.Logger) (text []byte, err error) {
	fsys := vfs.OS{}
	if _, err := fsys.Stat(data); err != nil {
		return nil, fmt.Errorf("the data folder %s: %w; check the name", data, err)
	}
	lock, err := lockFolder(fsys, data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	db, err := confdb.Open(ctx, data, confdb.Options{Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("open the configuration: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Export(ctx, o)
}

// exportTime bounds one export; there may be thousands of templates.
const exportTime = 10 * time.Minute

// maxExportNames bounds the templates and hosts of one request.
const maxExportNames = 10_000

// exportRoute serves templates and hosts in Zabbix's export format.
func (s *Server) exportRoute() api.Route {
	return api.Route{
		Method: http.MethodGet, Pattern: "/api/export", Permission: api.Edit, PerHost: true, Handler: http.HandlerFunc(s.serveExport), Timeout: exportTime,
		Doc: &api.Doc{
			Summary: "Templates and hosts in Zabbix's export format, YAML; values of secret macros are left out.", AnswerType: "application/yaml",
			Params: []api.Param{
				{Name: "template", Type: "string", About: "Technical name of a template; may be repeated."},
				{Name: "host", Type: "string", About: "Technical name of a host; may be repeated."},
				{Name: "all", Type: "boolean", About: "true for all templates and hosts."},
				{Name: "version", Type: "string", About: "6.0 or 7.0 (if not given)."},
			},
		},
	}
}

func (s *Server) serveExport(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	o := confdb.ExportOptions{Version: q.Get("version"), Templates: q["template"], Hosts: q["host"], All: slices.Contains([]string{"1", "true"}, q.Get("all"))}
	if o.Version == "" {
		o.Version = "7.0"
	}
	switch {
	case len(o.Templates)+len(o.Hosts) == 0 && !o.All:
		api.WriteError(w, api.BadRequest("nothing to export; expected template=NAME, host=NAME or all=true"))
		return
	case len(o.Templates)+len(o.Hosts) > maxExportNames:
		api.WriteError(w, api.BadRequest(fmt.Sprintf("more than %d names; export everything with all=true", maxExportNames)))
		return
	}
	err := s.mayExport(r, o)
	var text []byte
	if err == nil {
		text, err = s.db.Export(r.Context(), o)
	}
	switch {
	case errors.Is(err, confdb.ErrNotFound):
		err = api.NotFound(err.Error())
	case errors.Is(err, confdb.ErrInvalid):
		err = api.BadRequest(err.Error())
	}
	if err != nil {
		api.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Content-Disposition", `attachment; filename="tidemark-export.yaml"`)
	_, _ = w.Write(text)
}

// mayExport refuses what the caller does not see: who sees only some hosts exports those that they may edit, and templates of these.
func (s *Server) mayExport(r *http.Request, o confdb.ExportOptions) error {
	snapshot := s.cache.Snapshot()
	seen := visibleHosts(r, snapshot)
	if seen == nil {
		return nil
	}
	if o.All {
		return &api.Error{Status: http.StatusForbidden, Code: "denied", Message: "all=true exports all hosts, and you may see only some; name them with host=NAME"}
	}
	templates := make(map[string]bool)
	list, err := s.db.Templates(r.Context())
	if err != nil {
		return err
	}
	for h := range snapshot.Hosts() {
		for _, t := range list {
			if seen[h.ID] >= model.Editor && slices.Contains(h.Templates, t.ID) {
				templates[t.Template] = true
			}
		}
	}
	for i, name := range o.Hosts {
		if h, ok := snapshot.Host(name); !ok || seen[h.ID] < model.Editor {
			return api.NotFound(fmt.Sprintf("host %d of the request does not exist, or you may not edit it", i+1))
		}
	}
	for i, name := range o.Templates {
		if !templates[name] {
			return api.NotFound(fmt.Sprintf("template %d of the request does not exist, or is of no host that you may edit", i+1))
		}
	}
	return nil
}
