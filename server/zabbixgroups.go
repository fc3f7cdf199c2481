package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tidemark/api"
	"tidemark/discovery/network"
	"tidemark/model"
)

// RenameGroup implements zabbix.Objects.
func (o zabbixObjects) RenameGroup(ctx context.Context, id uint64, name string) error {
	if err := o.groupFree(ctx, id, "renamed"); err != nil {
		return err
	}
	return o.changed(ctx, o.db.RenameHostGroup(ctx, id, name))
}

// DeleteGroup implements zabbix.Objects.
func (o zabbixObjects) DeleteGroup(ctx context.Context, id uint64) error {
	if err := o.groupFree(ctx, id, "deleted"); err != nil {
		return err
	}
	return o.changed(ctx, o.db.DeleteHostGroup(ctx, id))
}

// groupFree refuses to change a host group that something knows by its name: rights, actions and maintenances would not follow.
func (o zabbixObjects) groupFree(ctx context.Context, id uint64, what string) error {
	groups, err := o.db.HostGroups(ctx)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if g.ID != id {
			continue
		}
		if user := o.groupUser(g.Name); user != "" {
			return &api.Error{
				Status: http.StatusUnprocessableEntity, Code: "in_use",
				Message: fmt.Sprintf("the host group %q cannot be %s because %s names it; change that first", g.Name, what, user),
			}
		}
	}
	return nil
}

// groupUser returns what knows a host group by its name; empty for nothing.
func (o zabbixObjects) groupUser(group string) string {
	for _, g := range o.access.Groups() {
		for _, grant := range g.Grants {
			if grant.HostGroup == group {
				return fmt.Sprintf("the user group %q", g.Name)
			}
		}
	}
	config := o.alerting.alerter.Config()
	for i := range config.Maintenances {
		if slices.Contains(config.Maintenances[i].Groups, group) {
			return fmt.Sprintf("the maintenance %q", config.Maintenances[i].Name)
		}
	}
	for i := range config.Actions {
		for _, c := range config.Actions[i].Conditions {
			if c.Type == "host_group" && strings.EqualFold(c.Value, group) {
				return fmt.Sprintf("the action %q", config.Actions[i].Name)
			}
		}
	}
	discovery, _ := o.network.current()
	for i := range discovery.Actions {
		for _, operation := range discovery.Actions[i].Operations {
			if operation.Group == group {
				return fmt.Sprintf("the action %q of network discovery", discovery.Actions[i].Name)
			}
		}
	}
	return ""
}

// RenameTemplateGroup implements zabbix.Objects.
func (o zabbixObjects) RenameTemplateGroup(ctx context.Context, id uint64, name string) error {
	return o.changed(ctx, o.db.RenameTemplateGroup(ctx, id, name))
}

// DeleteTemplateGroup implements zabbix.Objects.
func (o zabbixObjects) DeleteTemplateGroup(ctx context.Context, id uint64) error {
	return o.changed(ctx, o.db.DeleteTemplateGroup(ctx, id))
}

// PutProxy implements zabbix.Objects.
func (o zabbixObjects) PutProxy(ctx context.Context, p model.Proxy) (model.ProxyID, error) {
	id, err := o.db.AddProxy(ctx, p)
	if err != nil {
		return 0, apiError(err)
	}
	return id, o.proxies.refresh(ctx)
}

// NetRules implements zabbix.Objects.
func (o zabbixObjects) NetRules() []network.Rule {
	c, _ := o.network.current()
	return c.Hidden().Rules
}

// ApplyNetRules implements zabbix.Objects.
func (o zabbixObjects) ApplyNetRules(ctx context.Context, c *network.Config) error {
	return o.network.Apply(ctx, c, false)
}

// DeleteNetRule implements zabbix.Objects.
func (o zabbixObjects) DeleteNetRule(ctx context.Context, name string) error {
	return apiError(o.network.Delete(ctx, "rule", name))
}

// DeleteProxy implements zabbix.Objects.
func (o zabbixObjects) DeleteProxy(ctx context.Context, name string) error {
	if err := o.proxyInUse(name); err != nil {
		return err
	}
	if err := o.changed(ctx, o.db.RemoveProxy(ctx, name)); err != nil {
		return err
	}
	return errors.Join(o.agents.refresh(ctx), o.proxies.refresh(ctx))
}

// Alerts implements zabbix.Objects.
func (o zabbixObjects) Alerts(ctx context.Context, f model.AlertFilter) ([]model.Alert, error) {
	return o.alerting.Alerts(ctx, f)
}
