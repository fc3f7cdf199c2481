package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"tidemark/access"
	"tidemark/api"
	"tidemark/api/rest"
	"tidemark/confdb"
	"tidemark/internal/vfs"
)

// People are the users of a server that does not run: its routes of users, tokens and the audit log, and its host groups, for the command line.
type People struct {
	// Handler serves the routes; whoever calls it is administrator.
	Handler http.Handler

	closers []interface{ Close() error }
}

// OpenPeople opens the users in the data folder of a server that does not run; a folder in use is ErrInUse.
func OpenPeople(ctx context.Context, data string) (people *People, err error) {
	fsys := vfs.OS{}
	if _, err := fsys.Stat(data); err != nil {
		return nil, fmt.Errorf("the data folder %s: %w; check the name, or make the folder first if it is to be a new one", data, err)
	}
	lock, err := lockFolder(fsys, data)
	if err != nil {
		return nil, err
	}
	p := &People{closers: []interface{ Close() error }{lock}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	db, err := confdb.Open(ctx, data, confdb.Options{})
	if err != nil {
		return nil, fmt.Errorf("open the configuration: %w", err)
	}
	p.closers = append(p.closers, db)
	control, err := access.Open(ctx, access.Options{Store: db})
	if err != nil {
		return nil, err
	}
	who := access.Everything(access.ViaCommandLine)
	p.Handler = api.NewHandler(append(rest.New(rest.Options{Access: control}).PeopleRoutes(), hostGroupsRoute(db)), nil, api.Options{
		Authorize: func(r *http.Request, _ api.Route) (context.Context, error) { return access.With(r.Context(), who), nil },
		Audit: func(r *http.Request, route api.Route, changes *access.Changes) {
			control.Audit(r.Context(), who, changes.Entry(r.Method+" "+route.Pattern, ""))
		},
	})
	return p, nil
}

// hostGroupsRoute tells, of what the route answers at a running server, the names of the host groups, with which grants are compared.
func hostGroupsRoute(db *confdb.DB) api.Route {
	return api.Route{
		Method: http.MethodGet, Pattern: "/api/configuration", Permission: api.Edit,
		Handler: api.JSON(func(r *http.Request) (any, error) {
			groups, err := db.HostGroups(r.Context())
			out := templateRows{Groups: []string{}}
			for _, g := range groups {
				out.Groups = append(out.Groups, g.Name)
			}
			return out, err
		}),
	}
}

// Close releases the folder.
func (p *People) Close() error {
	var all []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		all = append(all, p.closers[i].Close())
	}
	p.closers = nil
	return errors.Join(all...)
}
