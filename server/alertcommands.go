package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"tidemark/access"
	"tidemark/alert"
	"tidemark/alert/media"
	"tidemark/api"
	"tidemark/collectors"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// commandPause is the least time between two runs of one remedy on one host by actions: many problems of a host have one remedy, and a trigger that
// changes again and again must not run it all the time. It is less than the minute after which a next step may name the command again, so that a step
// that was a little late does not keep the next one from running.
const commandPause = 50 * time.Second

// alertCommands runs the commands of media types. It implements media.Commander.
type alertCommands struct {
	server *Server
	mu     sync.Mutex
	// ran is when commands were last run, younger than commandPause.
	ran map[ranCommand]time.Time
}

type ranCommand struct {
	host   model.HostID
	remedy string
}

// free reports whether a remedy may be run on a host now, and remembers that it is.
func (c *alertCommands) free(host model.HostID, remedy string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.ran, func(_ ranCommand, at time.Time) bool { return now.Sub(at) >= commandPause })
	if _, ran := c.ran[ranCommand{host, remedy}]; ran {
		return false
	}
	if c.ran == nil {
		c.ran = make(map[ranCommand]time.Time)
	}
	c.ran[ranCommand{host, remedy}] = now
	return true
}

// RunCommand implements media.Commander. Who asks hosts passes it on: the server, or the proxy of the host.
func (c *alertCommands) RunCommand(ctx context.Context, id model.HostID, remedy, line string) (string, error) {
	s := c.server
	h, ok := s.cache.Snapshot().HostByID(id)
	switch {
	case !ok:
		return "", fmt.Errorf("host %d is not there any more: %w", id, media.ErrSettings)
	case !h.Enabled:
		return "", fmt.Errorf("host %s is disabled: %w", h.Host, media.ErrSettings)
	}
	select {
	case s.commands <- struct{}{}:
		defer func() { <-s.commands }()
	case <-ctx.Done():
		return "", fmt.Errorf("other commands are waited for, %d of them; the command was not run", commandsAtOnce)
	}
	// It is stored here that the command is about to be run. A standby that took over without knowing that would run it again.
	if s.replica != nil && s.replica.source != nil {
		if err := s.replica.source.Confirmed(ctx); err != nil {
			return "", fmt.Errorf("the command was not run: %w", err)
		}
	}
	if !c.free(id, remedy, time.Now()) {
		return "", fmt.Errorf("the command ran on host %s less than %s ago; it was not run again: %w", h.Host, commandPause, media.ErrHeld)
	}
	c.note(ctx, h, line)
	if h.Proxy == 0 {
		return collectors.RunOnAgent(ctx, s.agentChecker, h, line)
	}
	return s.proxies.command(ctx, h, zbx.OnAgent, line)
}

// note writes into the audit log what is run, whatever becomes of it.
func (c *alertCommands) note(ctx context.Context, h *model.Host, line string) {
	_, after := access.Difference(nil, map[string]string{"on": "agent", "command": line})
	c.server.logger.Info("an action runs a command", "host", h.Host, "command", line)
	c.server.access.Audit(ctx, nil, model.AuditEntry{Via: "action", Action: "run command", Object: "command for host " + h.Host, After: after})
}

// mayHaveCommands refuses a configuration that adds or changes commands unless an administrator brings it.
func (a alerting) mayHaveCommands(ctx context.Context, config *alert.Config) error {
	if access.From(ctx).MostRole() >= model.Administrator {
		return nil
	}
	known := a.alerter.Config()
	for i := range config.Media {
		m := &config.Media[i]
		if m.Command != nil && !hasMedia(known, m) {
			return &api.Error{
				Status: http.StatusForbidden, Code: "denied",
				Message: "media type " + strconv.Quote(m.Name) + " runs commands; only administrators add and change such media types",
			}
		}
	}
	return nil
}

// hasMedia reports whether a configuration has a media type just so.
func hasMedia(c *alert.Config, m *alert.Media) bool {
	want, err := json.Marshal(m)
	if err != nil {
		return false
	}
	for i := range c.Media {
		if have, err := json.Marshal(&c.Media[i]); err == nil && c.Media[i].Name == m.Name && string(have) == string(want) {
			return true
		}
	}
	return false
}

var _ media.Commander = (*alertCommands)(nil)
