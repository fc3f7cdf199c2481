package client

import (
	"context"
	"net/http"
)

// Standby returns whether the server is a primary or a standby, and how far standbys are behind.
func (c *Client) Standby(ctx context.Context) (Standby, error) {
	return get[Standby](ctx, c, "/api/standby", nil)
}

// Promote makes a standby the primary. The caller must be an administrator.
func (c *Client) Promote(ctx context.Context) (Promoted, error) {
	return change[Promoted](ctx, c, http.MethodPost, "/api/standby/promote", nil)
}

// Lease returns whether servers share the database, and which of them works.
func (c *Client) Lease(ctx context.Context) (Lease, error) {
	return get[Lease](ctx, c, "/api/lease", nil)
}

// HandOver gives the work to the server that waits; the one that is called waits then. IsNotFound for a server that shares its database with no other
// one. The caller must be an administrator.
func (c *Client) HandOver(ctx context.Context) (Lease, error) {
	return change[Lease](ctx, c, http.MethodPost, "/api/lease/handover", nil)
}

// Shadow returns whether another server alerts and this one only watches.
func (c *Client) Shadow(ctx context.Context) (ShadowState, error) {
	return get[ShadowState](ctx, c, "/api/shadow", nil)
}

// StartShadow puts all actions out of force until CutOver. The caller must be an editor of all hosts.
func (c *Client) StartShadow(ctx context.Context) (ShadowState, error) {
	return change[ShadowState](ctx, c, http.MethodPost, "/api/shadow", nil)
}

// PlanCutOver returns what CutOver would switch on.
func (c *Client) PlanCutOver(ctx context.Context) (ShadowPlan, error) {
	return get[ShadowPlan](ctx, c, "/api/shadow/cutover", nil)
}

// CutOver ends shadow mode: it switches the actions and media types on that wait for it. The caller must be an editor of all hosts.
func (c *Client) CutOver(ctx context.Context) (ShadowPlan, error) {
	return change[ShadowPlan](ctx, c, http.MethodPost, "/api/shadow/cutover", nil)
}
