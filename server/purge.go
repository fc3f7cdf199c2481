package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"tidemark/access"
	"tidemark/api"
	"tidemark/model"
	"tidemark/storage"
)

const (
	// purgeTime is how long the token of a purge is good.
	purgeTime = 5 * time.Minute
	// maxPurges bounds the purges that wait for their second request; the oldest go.
	maxPurges = 100
)

// purges are those that were asked for once.
type purges struct {
	mu      *sync.Mutex
	waiting map[string]waitingPurge
}

type waitingPurge struct {
	host, key, who string
	until          time.Time
}

func newPurges() purges { return purges{mu: &sync.Mutex{}, waiting: make(map[string]waitingPurge)} }

// ask notes a purge and returns its token.
func (p *purges) ask(w waitingPurge) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := ""
	for token, have := range p.waiting {
		if time.Now().After(have.until) {
			delete(p.waiting, token)
		} else if oldest == "" || have.until.Before(p.waiting[oldest].until) {
			oldest = token
		}
	}
	if len(p.waiting) >= maxPurges {
		delete(p.waiting, oldest)
	}
	token := rand.Text()
	p.waiting[token] = w
	return token
}

// take uses a token up. It must be the same purge by the same person.
func (p *purges) take(token string, w waitingPurge) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	have, ok := p.waiting[token]
	if !ok || have.host != w.host || have.key != w.key || have.who != w.who || time.Now().After(have.until) {
		return false
	}
	delete(p.waiting, token)
	return true
}

func (c *configurator) purge(r *http.Request) (any, error) {
	var in purgeRequest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, api.BodyError(err)
	}
	h, ok := c.server.cache.Snapshot().Host(in.Host)
	if !ok {
		return nil, api.NotFound(fmt.Sprintf("there is no host %.130q", in.Host))
	}
	ids := c.server.catalog.HostItems(h.ID)
	confirm, object := h.Host, "history of host "+h.Host
	if in.Key != "" {
		e, ok := c.server.catalog.ByKey(h.ID, in.Key)
		if !ok {
			return nil, api.NotFound(fmt.Sprintf("the host %s has no item with the key %.200q", h.Host, in.Key))
		}
		ids, confirm, object = []model.ItemID{e.ID}, e.Key, "history of item "+e.Key+" of host "+h.Host
	}
	w := waitingPurge{host: in.Host, key: in.Key, until: time.Now().Add(purgeTime)}
	if who := access.From(r.Context()); who != nil {
		w.who = fmt.Sprint(uint64(who.User), who.Name)
	}
	if in.Token == "" {
		access.Changed(r.Context(), object+": asked to be deleted, not yet confirmed", nil, nil)
		return purgeAnswer{Items: len(ids), Token: c.purges.ask(w), Confirm: confirm, ExpiresAt: w.until.UnixMilli()}, nil
	}
	if in.Confirm != confirm {
		return nil, api.BadRequest(fmt.Sprintf("confirm is %.200q, expected %q: nothing was deleted", in.Confirm, confirm))
	}
	if !c.purges.take(in.Token, w) {
		return nil, &api.Error{Status: http.StatusConflict, Code: "expired", Message: "the token is not good for this, or not any more: nothing was deleted; ask for the deletion again"}
	}
	if err := c.server.purgeItems(r.Context(), h, ids); err != nil {
		return nil, err
	}
	access.Changed(r.Context(), object+" deleted", map[string]int{"items": len(ids)}, nil)
	c.server.logger.Info("history deleted on request", "host", h.Host, "key", in.Key, "items", len(ids))
	return purgeAnswer{Items: len(ids), Purged: true}, nil
}

// purgeItems makes the history of items unreadable at once: the items get new ids, under which there are no values, and the old ids are tombstones.
// The bytes are freed with the files, or partitions, that hold them, as those of deleted items are.
func (s *Server) purgeItems(ctx context.Context, h *model.Host, ids []model.ItemID) error {
	// A purge that is begun is ended, whoever asked for it is gone or not.
	ctx = context.WithoutCancel(ctx)
	configured, err := s.db.Purge(ctx, h.ID, ids)
	if err != nil {
		return err
	}
	if len(configured) > 0 {
		if _, err := s.cache.Refresh(ctx); err != nil {
			return err
		}
	}
	return s.renewDeclared(ctx, h, ids)
}

// renewDeclared gives declared items new ids.
func (s *Server) renewDeclared(ctx context.Context, h *model.Host, ids []model.ItemID) error {
	entries, err := s.catalog.Renew(ctx, h.ID, ids)
	if err != nil || len(entries) == 0 {
		return err
	}
	s.definitions.forget(ids)
	var defs []storage.ItemDefinition
	for _, e := range entries {
		if item, ok := s.definitions.Item(e.ID); ok {
			defs = append(defs, definition(s.classes, item))
		}
	}
	if err := s.engine.Define(ctx, defs); err != nil {
		return err
	}
	s.preproc.Forget(ids)
	s.latest.Sweep(func(id model.ItemID) bool { _, ok := s.catalog.Item(id); return ok })
	return errors.Join(s.evaluator.ItemsChanged(ctx, h.Host), s.expireSeries(ctx))
}
