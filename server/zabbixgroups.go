package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tidemark/api"
	"tidemark/api/zabbix"
	"tidemark/confdb"
	"tidemark/discovery/network"
	"tidemark/model"
)

// RenameGroups implements zabbix.Objects.
func (o zabbixObjects) RenameGroups(ctx context.Context, list []zabbix.Group) error {
	ids := make([]uint64, 0, len(list))
	for _, g := range list {
		ids = append(ids, g.ID)
	}
	if err := o.groupsFree(ctx, ids, "renamed"); err != nil {
		return err
	}
	return o.changed(ctx, o.db.RenameHostGroups(ctx, groupNames(list)...))
}

func groupNames(list []zabbix.Group) []confdb.GroupName {
	names := make([]confdb.GroupName, 0, len(list))
	for _, g := range list {
		names = append(names, confdb.GroupName{ID: g.ID, Name: g.Name})
	}
	return names
}

// DeleteGroups implements zabbix.Objects.
func (o zabbixObjects) DeleteGroups(ctx context.Context, ids []uint64) error {
	if err := o.groupsFree(ctx, ids, "deleted"); err != nil {
		return err
	}
	return o.changed(ctx, o.db.DeleteHostGroups(ctx, ids...))
}

// groupsFree refuses to change host groups that something knows by their names: rights, actions and maintenances would not follow.
func (o zabbixObjects) groupsFree(ctx context.Context, ids []uint64, what string) error {
	groups, err := o.db.HostGroups(ctx)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if !slices.Contains(ids, g.ID) {
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

// RenameTemplateGroups implements zabbix.Objects.
func (o zabbixObjects) RenameTemplateGroups(ctx context.Context, list []zabbix.Group) error {
	return o.changed(ctx, o.db.RenameTemplateGroups(ctx, groupNames(list)...))
}

// DeleteTemplateGroups implements zabbix.Objects.
func (o zabbixObjects) DeleteTemplateGroups(ctx context.Context, ids []uint64) error {
	return o.changed(ctx, o.db.DeleteTemplateGroups(ctx, ids...))
}

// PutProxies implements zabbix.Objects.
func (o zabbixObjects) PutProxies(ctx context.Context, list []model.Proxy) ([]model.ProxyID, error) {
	ids, err := o.db.AddProxies(ctx, list)
	if err != nil {
		return nil, apiError(err)
	}
	return ids, o.proxies.refresh(ctx)
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

// DeleteNetRules implements zabbix.Objects.
func (o zabbixObjects) DeleteNetRules(ctx context.Context, names []string) error {
	return apiError(o.network.Delete(ctx, "rule", names...))
}

// DeleteProxies implements zabbix.Objects.
func (o zabbixObjects) DeleteProxies(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := o.proxyInUse(name); err != nil {
			return err
		}
	}
	if err := o.changed(ctx, o.db.RemoveProxy(ctx, names...)); err != nil {
		return err
	}
	return errors.Join(o.agents.refresh(ctx), o.proxies.refresh(ctx))
}

// Alerts implements zabbix.Objects.
func (o zabbixObjects) Alerts(ctx context.Context, f model.AlertFilter) ([]model.Alert, error) {
	return o.alerting.Alerts(ctx, f)
}
