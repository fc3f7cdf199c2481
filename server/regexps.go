package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"tidemark/api"
	"tidemark/confdb"
	"tidemark/internal/pcre"
	"tidemark/model"
)

// maxRegexpBody bounds a request with a global regular expression.
const maxRegexpBody = 1 << 20

// regexpRow is a global regular expression as the API shows it.
type regexpRow struct {
	model.GlobalRegexp
	// Default says that it comes with the program and nobody has put another in its place.
	Default bool `json:"default,omitempty"`
}

type regexpList struct {
	Regexps []regexpRow `json:"regexps"`
}

// regexpTest asks what an expression makes of a text.
type regexpTest struct {
	model.GlobalRegexp
	Text string `json:"text"`
}

// regexpRoutes are those of global regular expressions.
func (s *Server) regexpRoutes() []api.Route {
	name := api.Param{Name: "name", Type: "string", About: "Its name.", Required: true}
	return []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/regexps", Permission: api.View, Handler: api.JSON(s.listRegexps),
			Doc: &api.Doc{Summary: "Global regular expressions, one's own and those that come with the program.", Answer: regexpList{}},
		},
		{
			Method: http.MethodPut, Pattern: "/api/regexps/{name}", Permission: api.Edit, Handler: api.JSON(s.putRegexp), MaxBodyBytes: maxRegexpBody,
			Doc: &api.Doc{Summary: "Puts a global regular expression over one of the same name.", Body: model.GlobalRegexp{}, Answer: regexpRow{}, Params: []api.Param{name}},
		},
		{
			Method: http.MethodDelete, Pattern: "/api/regexps/{name}", Permission: api.Edit, Handler: api.JSON(s.deleteRegexp),
			Doc: &api.Doc{Summary: "Deletes a global regular expression; a default of that name is in force again.", Answer: struct{}{}, Params: []api.Param{name}},
		},
		{
			Method: http.MethodPost, Pattern: "/api/regexp-test", Permission: api.Edit, Handler: api.JSON(s.testRegexp), MaxBodyBytes: maxRegexpBody,
			Doc: &api.Doc{Summary: "Says whether a text fits a global regular expression, which need not be stored.", Body: regexpTest{}, Answer: regexpTested{}},
		},
	}
}

func (s *Server) listRegexps(r *http.Request) (any, error) {
	rows, err := s.allRegexps(r.Context())
	return regexpList{rows}, err
}

// allRegexps returns the global regular expressions by name: one's own, and the defaults that they do not replace.
func (s *Server) allRegexps(ctx context.Context) ([]regexpRow, error) {
	own, err := s.db.Regexps(ctx)
	if err != nil {
		return nil, err
	}
	rows := make(map[string]regexpRow)
	for _, g := range model.DefaultRegexps() {
		rows[g.Name] = regexpRow{g, true}
	}
	for _, g := range own {
		rows[g.Name] = regexpRow{GlobalRegexp: g}
	}
	byName := func(a, b regexpRow) int { return cmp.Compare(a.Name, b.Name) }
	return slices.SortedFunc(maps.Values(rows), byName), nil
}

func (s *Server) putRegexp(r *http.Request) (any, error) {
	var g model.GlobalRegexp
	if err := readStrictly(r.Body, &g); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if g.Name != "" && g.Name != name {
		return nil, api.BadRequest(fmt.Sprintf("the body has the name %.150q, the address %.150q", g.Name, name))
	}
	g.Name = name
	if err := s.db.PutRegexp(r.Context(), &g); err != nil {
		return nil, regexpError(err)
	}
	return regexpRow{GlobalRegexp: g}, s.refreshed(r.Context())
}

func (s *Server) deleteRegexp(r *http.Request) (any, error) {
	if err := s.db.DeleteRegexp(r.Context(), r.PathValue("name")); err != nil {
		return nil, regexpError(err)
	}
	return map[string]any{}, s.refreshed(r.Context())
}

// refreshed brings what was stored into force before the answer says so.
func (s *Server) refreshed(ctx context.Context) error {
	_, err := s.cache.Refresh(ctx)
	return err
}

func (s *Server) testRegexp(r *http.Request) (any, error) {
	var t regexpTest
	if err := readStrictly(r.Body, &t); err != nil {
		return nil, err
	}
	t.Name = cmp.Or(t.Name, "test")
	if err := t.Check(); err != nil {
		return nil, api.BadRequest(err.Error())
	}
	out := regexpTested{Matches: true, Each: []bool{}}
	for i := range t.Expressions {
		pattern, found := t.Expressions[i].Pattern()
		re, err := pcre.Compile(pattern)
		if err != nil {
			return nil, api.BadRequest(fmt.Sprintf("expression %d: %v", i+1, err))
		}
		ok, err := re.Match([]byte(t.Text))
		if err != nil {
			return nil, api.BadRequest(fmt.Sprintf("expression %d: %v", i+1, err))
		}
		out.Each = append(out.Each, ok == found)
		out.Matches = out.Matches && ok == found
	}
	return out, nil
}

// readStrictly reads a body in JSON; what it does not know is an error.
func readStrictly(body io.Reader, into any) error {
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return api.BadRequest("the body is not what is expected: " + err.Error())
	}
	return nil
}

func regexpError(err error) error {
	switch {
	case errors.Is(err, confdb.ErrInvalid):
		return api.BadRequest(err.Error())
	case errors.Is(err, confdb.ErrNotFound):
		return api.NotFound(err.Error())
	}
	return err
}
