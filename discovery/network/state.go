package network

import (
	"slices"
	"strings"
	"time"

	"tidemark/discovery"
	"tidemark/model"
)

// answer is what one check brought at one port of an address.
type answer struct {
	check int
	port  int
	up    bool
	value string
}

// MaxValueBytes bounds a value that is remembered.
const MaxValueBytes = 2048

// maxServices bounds the services that are remembered of one host.
const maxServices = 2000

// memory is what is known of the hosts of a rule. One goroutine uses it.
type memory struct {
	rule  *compiled
	hosts map[string]*model.NetHost
	// byIP finds a host by the addresses of its services.
	byIP map[string]*model.NetHost
}

func newMemory(rule *compiled, list []model.NetHost) *memory {
	m := &memory{rule: rule, hosts: make(map[string]*model.NetHost), byIP: make(map[string]*model.NetHost)}
	for i := range list {
		h := &list[i]
		m.hosts[h.Ident] = h
		for n := range h.Services {
			m.byIP[h.Services[n].IP] = h
		}
	}
	return m
}

// ident is what tells a host apart: the value of a check, or the address.
func (m *memory) ident(ip string, answers []answer) string {
	if m.rule.unique >= 0 {
		for _, a := range answers {
			if value := strings.TrimSpace(a.value); a.check == m.rule.unique && a.up && value != "" {
				return value
			}
		}
		// The check that tells did not answer now.
		if h := m.byIP[ip]; h != nil {
			return h.Ident
		}
	}
	return ip
}

// learn brings what an address answered to what is known, and returns the host with the events that this makes, or nil when there is no
// host. changed says whether it must be stored.
func (m *memory) learn(ip string, answers []answer, now time.Time) (h *model.NetHost, events []discovery.HostEvent, changed bool) {
	ident := m.ident(ip, answers)
	h = m.hosts[ident]
	if h == nil {
		if !slices.ContainsFunc(answers, func(a answer) bool { return a.up }) {
			return nil, nil, false
		}
		h = &model.NetHost{Rule: m.rule.Name, Ident: ident}
		m.hosts[ident] = h
	}
	m.byIP[ip] = h
	at := now.Unix()
	for _, a := range answers {
		list, wrote := m.service(h, ip, a, at)
		events, changed = append(events, list...), changed || wrote
	}
	up := slices.ContainsFunc(h.Services, func(s model.NetService) bool { return s.Up })
	status := statuses(h.ChangedAt == 0, h.Up, up)
	if len(status) > 1 {
		h.Up, h.ChangedAt, changed = up, at, true
	}
	for _, s := range status {
		events = append(events, discovery.HostEvent{
			Source: discovery.FromNetwork, IP: ip, Rule: m.rule.Name, Object: "host", Status: s, For: since(h.ChangedAt, at),
		})
	}
	return h, events, changed
}

// service brings one answer to what is known of a host.
func (m *memory) service(h *model.NetHost, ip string, a answer, at int64) (events []discovery.HostEvent, changed bool) {
	check := &m.rule.checks[a.check]
	i := slices.IndexFunc(h.Services, func(s model.NetService) bool { return s.IP == ip && s.Check == check.label && s.Port == a.port })
	if i < 0 {
		if !a.up || len(h.Services) >= maxServices {
			return nil, false
		}
		h.Services = append(h.Services, model.NetService{IP: ip, Check: check.label, Port: a.port})
		i = len(h.Services) - 1
	}
	s := &h.Services[i]
	status := statuses(s.ChangedAt == 0, s.Up, a.up)
	if len(status) > 1 {
		s.Up, s.ChangedAt, changed = a.up, at, true
	}
	if a.up && s.Value != a.value {
		s.Value, changed = a.value, true
	}
	for _, name := range status {
		events = append(events, discovery.HostEvent{
			Source: discovery.FromNetwork, IP: ip, Rule: m.rule.Name, Check: check.label, Service: check.Type, Port: a.port, Object: "service", Status: name,
			Value: s.Value, For: since(s.ChangedAt, at),
		})
	}
	return events, changed
}

// since is for how long something was as it is; what a proxy found may come late, and then it was not yet.
func since(changed, at int64) time.Duration { return time.Duration(max(0, at-changed)) * time.Second }

// statuses are the events of something that was up or down and now is: one of a change, and one that comes with each look.
func statuses(fresh, was, is bool) []string {
	switch {
	case is && (fresh || !was):
		return []string{"discovered", "up"}
	case is:
		return []string{"up"}
	case was:
		return []string{"lost", "down"}
	}
	return []string{"down"}
}

// forget drops what has been down since before a time.
func (m *memory) forget(before int64) {
	for ident, h := range m.hosts {
		if !h.Up && h.ChangedAt < before {
			delete(m.hosts, ident)
			for n := range h.Services {
				if ip := h.Services[n].IP; m.byIP[ip] == h {
					delete(m.byIP, ip)
				}
			}
		}
	}
}
