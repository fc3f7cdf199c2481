package alert

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tidemark/alert/media"
)

// hook makes the sender of heartbeats.
func (h *Heartbeat) hook() (*media.Webhook, error) {
	allow, err := prefixes(h.Allow)
	if err != nil {
		return nil, err
	}
	if every := h.Every.Or(heartbeatEvery); every < 5*time.Second || every > 24*time.Hour {
		return nil, fmt.Errorf("every is %s, expected 5s to 1d", every)
	}
	return media.NewWebhook(&media.Webhook{URL: h.URL, Method: http.MethodGet, Allow: allow})
}

// beat sends heartbeats until ctx ends, as long as alerting works: an outside watch raises the alarm when they stop.
func (a *Alerter) beat(ctx context.Context) {
	for ctx.Err() == nil {
		a.mu.Lock()
		settings, changed := a.config.Heartbeat, a.beats
		a.mu.Unlock()
		if settings == nil {
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		hook, err := settings.hook()
		if err != nil {
			a.options.Logger.Error("alerting: heartbeat", "error", err)
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		a.beatWith(ctx, hook, settings.Every.Or(heartbeatEvery), changed)
		hook.Close()
	}
}

// beatWith sends heartbeats with one setting until it changes.
func (a *Alerter) beatWith(ctx context.Context, hook *media.Webhook, every time.Duration, changed <-chan struct{}) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := a.beatOnce(ctx, hook); err != nil && ctx.Err() == nil {
			a.heartbeatFailures.Inc()
			a.options.Logger.Warn("alerting: no heartbeat was sent", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			return
		case <-ticker.C:
		}
	}
}

func (a *Alerter) beatOnce(ctx context.Context, hook *media.Webhook) error {
	if err := a.alive(); err != nil {
		return err
	}
	one, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if _, err := hook.Send(one, media.Message{}); err != nil {
		return err
	}
	a.heartbeats.Inc()
	return nil
}

// alive reports why no heartbeat may be sent.
func (a *Alerter) alive() error {
	if at := a.steppedAt.Load(); at != 0 && a.now()-at > 3*int64(idleTime) {
		return fmt.Errorf("alerting has not moved for %s", time.Duration(a.now()-at).Round(time.Second))
	}
	if at := a.failingSince.Load(); at != 0 {
		return errors.New("the state of alerting cannot be stored")
	}
	if a.options.Healthy != nil {
		return a.options.Healthy()
	}
	return nil
}
