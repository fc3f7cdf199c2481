package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"tidemark/api"
	"tidemark/model"
	"tidemark/standby"
	"tidemark/storage/dbengine"
)

// standbyAnswer is the answer to GET /api/standby.
type standbyAnswer struct {
	// Role is primary, standby or fenced.
	Role  standby.Role `json:"role"`
	Epoch uint64       `json:"epoch"`
	// FencedBy is the epoch of the server that took over; zero for none.
	FencedBy uint64 `json:"fenced_by"`
	// Primary is the address that a standby follows.
	Primary string `json:"primary"`
	// Synchronous says that nothing is acknowledged that no standby has; Refusal why values are refused.
	Synchronous bool   `json:"synchronous"`
	Refusal     string `json:"refusal"`
	// Lag is how far a standby is behind; null on a primary.
	Lag *standby.Lag `json:"lag"`
	// Standbys are those that follow a primary.
	Standbys []standby.Followed `json:"standbys"`
	// Node is this server's id, Peers the addresses of the other standbys of the primary that it follows.
	Node  string   `json:"node"`
	Peers []string `json:"peers"`
	// EpochText and FencedByText are epochs as people read them; empty for none.
	EpochText    string `json:"epoch_text"`
	FencedByText string `json:"fenced_by_text"`
}

// digestTimeout bounds the reading of all values.
const digestTimeout = 2 * time.Hour

func (s *Server) standbyRoutes() []api.Route {
	if s.replica == nil {
		const message = "this server keeps its values in PostgreSQL, which has a replication of its own; standbys are for the embedded engine"
		return []api.Route{
			otherStore(http.MethodGet, "/api/standby", api.View, message), otherStore(http.MethodPost, "/api/standby/promote", api.Administer, message),
			otherStore(http.MethodGet, "/api/storage/digest", api.View, message),
		}
	}
	r := s.replica
	routes := []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/standby", Permission: api.View, Handler: api.JSON(func(*http.Request) (any, error) { return r.show(), nil }),
			Doc: &api.Doc{Summary: "Whether this server is a primary or a standby, and how far standbys are behind.", Answer: standbyAnswer{}},
		},
		{
			Method: http.MethodGet, Pattern: "/api/standby/epoch", Permission: api.Public, Handler: api.JSON(r.tellEpoch),
			Doc: &api.Doc{
				Summary: "The epoch of this server, for one that knows its cluster.", Answer: standby.Known{},
				Params: []api.Param{{Name: "cluster", Type: "string", About: "The cluster's id.", Required: true}},
			},
		},
		{
			Method: http.MethodPost, Pattern: "/api/standby/promote", Permission: api.Administer, Handler: api.JSON(r.promote), Unaudited: true, Timeout: promoteTimeout,
			Doc: &api.Doc{Summary: "Makes a standby the primary.", Answer: Promoted{}},
		},
		{
			Method: http.MethodGet, Pattern: "/api/storage/digest", Permission: api.View, Handler: api.JSON(s.digest), Timeout: digestTimeout,
			Doc: &api.Doc{
				Summary: "A sum of all values in a range of time, the same whatever the codec.", Answer: digestAnswer{},
				Params: []api.Param{
					{Name: "from", Type: "integer", About: "Unix nanoseconds; all values without it."}, {Name: "to", Type: "integer", About: "Unix nanoseconds, not included."},
				},
			},
		},
	}
	routes = append(routes, api.Route{
		Method: http.MethodPost, Pattern: "/api/standby/fence", Permission: api.Administer, Handler: api.JSON(r.fence), Unaudited: true,
		Doc: &api.Doc{Summary: "For a promoted server: tells this one of the new epoch.", Body: standby.EpochRequest{}, Answer: standby.Known{}},
	})
	if r.source == nil {
		return routes
	}
	return append(routes, r.sourceRoutes()...)
}

// sourceRoutes are for standbys.
func (r *replica) sourceRoutes() []api.Route {
	return []api.Route{
		{
			Method: http.MethodPost, Pattern: "/api/standby/log", Permission: api.Administer, Handler: http.HandlerFunc(r.source.Log), Unaudited: true, Streaming: true,
			Doc: &api.Doc{Summary: "For standbys: the log behind a position, which acknowledges what is before it.", Body: standby.LogRequest{}, AnswerType: "application/octet-stream"},
		},
		{
			Method: http.MethodGet, Pattern: "/api/standby/configuration", Permission: api.Administer, Handler: http.HandlerFunc(r.source.Configuration), Streaming: true,
			Doc: &api.Doc{
				Summary: "For standbys: the pages of the configuration database that changed.", AnswerType: "application/octet-stream",
				Params: []api.Param{
					{Name: "cluster", Type: "string", About: "The cluster's id.", Required: true},
					{Name: "epoch", Type: "integer", About: "The standby's epoch.", Required: true},
					{Name: "standby", Type: "string", About: "The standby's id.", Required: true},
					{Name: "instance", Type: "string", About: "Whose version is named."},
					{Name: "version", Type: "integer", About: "The version that the standby has; 0 for none.", Required: true},
					{Name: "wait", Type: "string", About: "Wait for a change."},
				},
			},
		},
		{
			Method: http.MethodPost, Pattern: "/api/standby/handover", Permission: api.Administer, Handler: api.JSON(r.handOver), Unaudited: true,
			Doc: &api.Doc{Summary: "For a standby that is promoted: stops taking values and says where the log ends.", Body: standby.EpochRequest{}, Answer: standby.Moved{}},
		},
	}
}

func (r *replica) show() standbyAnswer {
	state := r.node.State()
	a := standbyAnswer{
		Role: state.Role, Epoch: state.Epoch, FencedBy: state.FencedBy, Synchronous: r.s.o.Synchronous, Standbys: []standby.Followed{}, Node: state.Node, Peers: []string{},
		EpochText: standby.EpochText(state.Epoch),
	}
	if a.Peers = append(a.Peers, state.Peers...); state.FencedBy > 0 {
		a.FencedByText = standby.EpochText(state.FencedBy)
	}
	if err := r.node.Refusal(); err != nil {
		a.Refusal = err.Error()
	}
	if r.follower != nil {
		lag := r.follower.Lag()
		a.Lag, a.Primary = &lag, state.Primary
	}
	if r.source != nil {
		a.Standbys = r.source.Followers()
		if a.Refusal == "" {
			a.Refusal = r.source.Alone()
		}
	}
	return a
}

func (r *replica) tellEpoch(q *http.Request) (any, error) {
	state := r.node.State()
	if q.URL.Query().Get("cluster") != state.Cluster {
		return nil, &api.Error{Status: http.StatusNotFound, Code: "cluster", Message: "this server is of another cluster"}
	}
	return r.known(&state), nil
}

// known is what others of the cluster are told.
func (r *replica) known(state *standby.State) standby.Known {
	k := standby.Known{Epoch: state.Epoch, Role: state.Role, FencedBy: state.FencedBy, Address: state.FencedAt}
	if state.Role == standby.Primary {
		k.Address = r.s.o.Peer.Own
	}
	return k
}

// epochRequest reads the body of a request that names cluster and epoch.
func (r *replica) epochRequest(q *http.Request) (standby.EpochRequest, error) {
	var in standby.EpochRequest
	if err := json.NewDecoder(q.Body).Decode(&in); err != nil {
		return in, api.BodyError(err)
	}
	if in.Cluster != r.node.State().Cluster {
		return in, &api.Error{Status: http.StatusConflict, Code: "cluster", Message: "this server is of another cluster"}
	}
	return in, nil
}

func (r *replica) fence(q *http.Request) (any, error) {
	in, err := r.epochRequest(q)
	if err != nil {
		return nil, err
	}
	if state := r.node.State(); in.Standby != "" && in.Standby == state.Node { // its own promotion
		return r.known(&state), nil
	}
	fence := r.node.Fence
	if r.source != nil {
		fence = r.source.Fence
	}
	if err := fence(in.Epoch, in.Address); err != nil {
		return nil, err
	}
	state := r.node.State()
	return standby.Known{Epoch: state.Epoch, Role: state.Role, FencedBy: state.FencedBy}, nil
}

// handOver fences this server for a standby and says where its log ends.
func (r *replica) handOver(q *http.Request) (any, error) {
	in, err := r.epochRequest(q)
	if err != nil {
		return nil, err
	}
	if err := r.source.HandOver(in); err != nil {
		return nil, err
	}
	lsn, err := r.s.engine.(*dbengine.DB).Sync(q.Context())
	return standby.Moved{LSN: uint64(lsn)}, err
}

// promoteTimeout bounds a promotion, most of which is the wait for what the primary still has.
const promoteTimeout = time.Minute

func (r *replica) promote(q *http.Request) (any, error) {
	if r.s.o.promote == nil {
		state := r.node.State()
		message := "this server is the primary already, with epoch " + standby.EpochText(state.Epoch)
		if state.Role == standby.Fenced {
			message = "this server is fenced; to make it a primary again stop it and run tidemark store promote with its data folder, which fences the other one"
		}
		return nil, &api.Error{Status: http.StatusConflict, Code: "primary", Message: message}
	}
	return r.s.o.promote(q.Context(), q.RemoteAddr)
}

// digest reads all values in a range of time.
func (s *Server) digest(r *http.Request) (any, error) {
	a := digestAnswer{From: -1 << 62, To: 1 << 62}
	for name, to := range map[string]*int64{"from": &a.From, "to": &a.To} {
		text := r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, api.BadRequest(fmt.Sprintf("%s: found %.40q, expected Unix nanoseconds", name, text))
		}
		*to = n
	}
	began := time.Now()
	d, lsn, err := digestOf(r.Context(), s.engine.(*dbengine.DB), model.TimeRange{From: a.From, To: a.To})
	a.Values, a.Digest, a.LSN, a.Seconds = d.Values, d.String(), uint64(lsn), time.Since(began).Seconds()
	return a, err
}

func digestOf(ctx context.Context, db *dbengine.DB, r model.TimeRange) (dbengine.Digest, model.LSN, error) {
	lsn := db.DurableLSN()
	d, err := db.Digest(ctx, r)
	return d, lsn, err
}
