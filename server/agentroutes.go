package server

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"tidemark/access"
	"tidemark/api"
	"tidemark/confdb"
	"tidemark/model"
)

// maxKeep bounds how long a replaced key stays good.
const maxKeep = 90 * 24 * time.Hour

// routes are those of TLS settings. Host 0 stands for agents that register themselves.
func (a *agentAccess) routes() []api.Route {
	id := api.Param{Name: "id", Type: "string", About: "Id of the host; 0 for agents that register themselves.", Required: true}
	return []api.Route{
		{
			Method: http.MethodGet, Pattern: "/api/hosts/{id}/tls", Permission: api.Administer, Handler: api.JSON(a.showTLS),
			Doc: &api.Doc{Summary: "How the connections of a host are protected; keys are not shown.", Answer: tlsSettings{}, Params: []api.Param{id}},
		},
		{
			Method: http.MethodPut, Pattern: "/api/hosts/{id}/tls", Permission: api.Administer, Handler: api.JSON(a.setTLS), Doc: &api.Doc{
				Summary: "Sets how the connections of a host are protected.", Answer: tlsSettings{}, Params: []api.Param{id}, Body: tlsSettings{},
			},
		},
	}
}

func hostOf(r *http.Request) (model.HostID, error) {
	n, err := strconv.ParseUint(r.PathValue("id"), 10, 63)
	if err != nil {
		return 0, api.BadRequest("host id " + strconv.Quote(r.PathValue("id")) + ": expected a number")
	}
	return model.HostID(n), nil
}

func (a *agentAccess) showTLS(r *http.Request) (any, error) {
	host, err := hostOf(r)
	if err != nil {
		return nil, err
	}
	return a.show(host), nil
}

var kindNames = []model.ConnectionKind{model.Unencrypted, model.PSK, model.Certificate}

func (a *agentAccess) show(host model.HostID) tlsSettings {
	t, ok := a.keys.HostTLS(host)
	if !ok {
		t = model.HostTLS{Connect: model.Unencrypted, Accept: model.Unencrypted}
	}
	out := tlsSettings{
		Connect: t.Connect.String(), PSKIdentity: t.Identity, OldPSKIdentity: t.OldIdentity, OldPSKUntil: t.OldUntil / int64(time.Millisecond),
		Issuer: t.Issuer, Subject: t.Subject,
	}
	for _, k := range kindNames {
		if t.Accept&k != 0 {
			out.Accept = append(out.Accept, k.String())
		}
	}
	return out
}

func (a *agentAccess) setTLS(r *http.Request) (any, error) {
	host, err := hostOf(r)
	if err != nil {
		return nil, err
	}
	var in tlsSettings
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, api.BodyError(err)
	}
	t, keep, err := decodeTLS(&in)
	if err != nil {
		return nil, api.BadRequest(err.Error())
	}
	t.HostID = host
	before := a.show(host)
	if err := a.set(r.Context(), t, keep); err != nil {
		return nil, err
	}
	after := a.show(host)
	access.Changed(r.Context(), fmt.Sprintf("TLS of host %d", host), before, after)
	return after, nil
}

func (a *agentAccess) set(ctx context.Context, t model.HostTLS, keep time.Duration) error {
	err := a.db.SetHostTLS(ctx, t, keep)
	switch {
	case errors.Is(err, confdb.ErrNotFound):
		return api.NotFound("no host has this id")
	case errors.Is(err, confdb.ErrInvalid):
		return api.BadRequest(err.Error())
	case err != nil:
		return err
	}
	return a.refresh(ctx)
}

func decodeTLS(in *tlsSettings) (t model.HostTLS, keep time.Duration, err error) {
	kinds := make(map[string]model.ConnectionKind, len(kindNames))
	for _, k := range kindNames {
		kinds[k.String()] = k
	}
	t = model.HostTLS{Identity: in.PSKIdentity, Issuer: in.Issuer, Subject: in.Subject}
	var ok bool
	if t.Connect, ok = kinds[in.Connect]; !ok {
		return t, 0, errors.New("connect is " + strconv.Quote(in.Connect) + ", expected unencrypted, psk or cert")
	}
	for _, name := range in.Accept {
		if kinds[name] == 0 {
			return t, 0, errors.New("accept has " + strconv.Quote(name) + ", expected unencrypted, psk or cert")
		}
		t.Accept |= kinds[name]
	}
	if t.Key, err = hex.DecodeString(in.PSK); err != nil {
		// Not the library's error, which shows a byte of the key.
		return t, 0, errors.New("psk: expected hexadecimal digits")
	}
	if in.Keep != "" {
		if keep, err = time.ParseDuration(in.Keep); err != nil || keep < 0 || keep > maxKeep {
			return t, 0, errors.New("keep is " + strconv.Quote(in.Keep) + ", expected up to 2160h, such as 24h")
		}
	}
	return t, keep, nil
}
