package confcache

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tidemark/expr"
	"tidemark/model"
)

// maxTimeout is the longest time that a check may take, as Zabbix has it.
const maxTimeout = 10 * time.Minute

// collect expands what collectors need of an item; without macros it is shared. The key of i is expanded already, but for macros of the host and secret
// ones; from is the item before that.
func (h *hostBuilder) collect(i *model.Item, from *model.ItemConfig) error {
	written, timeout := from.Key, from.TimeoutText
	e := &expander{host: h, item: i}
	asked := e.text(written)
	e.errs = nil // what the key lacks was told with it
	e.changed = asked != i.Key
	e.noteOthers(from)
	if i.Collect == nil && timeout == "" && !e.changed && e.secrets == nil {
		return nil
	}
	c := model.Collect{}
	if i.Collect != nil {
		c = *i.Collect
	}
	if e.changed {
		c.Key, c.KeySecrets = asked, h.macros.secrets(written)
	}
	if timeout != "" {
		text := e.text(timeout)
		d, ok := expr.ParseDuration(text, false)
		if !ok || d < time.Second || d > maxTimeout {
			e.errs = append(e.errs, fmt.Errorf("timeout %q; expected 1s to 10m", text))
		}
		c.Timeout = d
	}
	for _, field := range []*string{
		&c.Username, &c.Password, &c.PublicKey, &c.PrivateKey, &c.SNMPOID, &c.IPMISensor, &c.JMXEndpoint,
	} {
		*field = e.text(*field)
	}
	c.Parameters = e.pairs(c.Parameters)
	if c.HTTP != nil {
		r := *c.HTTP
		for _, field := range []*string{
			&r.URL, &r.Posts, &r.StatusCodes, &r.Proxy, &r.CertFile, &r.KeyFile, &r.KeyPassword,
		} {
			*field = e.text(*field)
		}
		r.Query, r.Headers = e.pairs(r.Query), e.pairs(r.Headers)
		if e.changed {
			c.HTTP = &r
		}
	}
	if c.Web != nil {
		c.Web, c.Timeout = e.scenario(c.Web)
		e.changed = true
	}
	c.Secrets = e.secrets
	if e.changed || timeout != "" || c.Secrets != nil {
		i.Collect = &c
	}
	return errors.Join(e.errs...)
}

// expander expands the texts of one item and remembers whether any changed, and which secret macros they have.
type expander struct {
	host    *hostBuilder
	item    *model.Item
	names   *strings.Replacer
	changed bool
	secrets []model.Macro
	errs    []error
}

// noteOthers remembers the secret macros in what is expanded elsewhere: the formula or script, the steps, and how the interface is spoken to.
func (e *expander) noteOthers(from *model.ItemConfig) {
	h := e.host
	if !h.hasSecrets {
		return
	}
	for _, text := range [...]string{from.Params, from.Delay, from.HistoryText, from.TrendsText, from.AllowedHosts} {
		e.secrets = h.noteSecrets(e.secrets, text)
	}
	for i := range from.Steps {
		e.secrets = h.noteSecrets(e.secrets, from.Steps[i].FailValue)
		for _, text := range from.Steps[i].Params {
			e.secrets = h.noteSecrets(e.secrets, text)
		}
	}
	if from.Type == model.SNMPAgent || from.Type == model.IPMI {
		for _, m := range h.accessSecrets {
			if !slices.Contains(e.secrets, m) {
				e.secrets = append(e.secrets, m)
			}
		}
	}
}

func (e *expander) text(text string) string {
	if !strings.Contains(text, "{$") && !strings.Contains(text, "{HOST.") {
		return text
	}
	e.changed = true
	e.secrets = e.host.noteSecrets(e.secrets, text)
	out, err := e.host.macros.expand(text)
	if err != nil {
		e.errs = append(e.errs, err)
	}
	if !strings.Contains(out, "{HOST.") {
		return out
	}
	if e.names == nil {
		e.names = hostMacros(&e.host.entry.host, e.item)
	}
	return e.names.Replace(out)
}

func (e *expander) pairs(list []model.Pair) []model.Pair {
	uses := func(p model.Pair) bool { return strings.Contains(p.Name+p.Value, "{") }
	if !slices.ContainsFunc(list, uses) {
		return list
	}
	list = slices.Clone(list)
	for n := range list {
		list[n] = model.Pair{Name: e.text(list[n].Name), Value: e.text(list[n].Value)}
	}
	return list
}

// hostMacros replaces the macros of a host and of the interface that an item uses.
func hostMacros(h *model.Host, i *model.Item) *strings.Replacer {
	at := h.InterfaceFor(i)
	if at == nil {
		at = &model.Interface{}
	}
	return strings.NewReplacer(
		"{HOST.HOST}", h.Host, "{HOST.NAME}", h.Name, "{HOST.CONN}", at.Address, "{HOST.IP}", at.IP, "{HOST.DNS}", at.DNS, "{HOST.PORT}", at.Port,
	)
}
