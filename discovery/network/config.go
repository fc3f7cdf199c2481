package network

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"tidemark/discovery"
	"tidemark/internal/yamlload"
	"tidemark/model"
)

// MaxConfigBytes bounds a configuration that is read.
const MaxConfigBytes = 4 << 20

// Config are rules, and actions on what they find and on agents that register themselves.
type Config struct {
	Rules   []Rule             `yaml:"rules,omitempty" json:"rules"`
	Actions []discovery.Action `yaml:"actions,omitempty" json:"actions"`
}

// The kinds of stored objects.
const (
	kindRule   = "rule"
	kindAction = "action"
)

// Parse reads a configuration in YAML or JSON and checks it.
func Parse(text []byte) (*Config, error) {
	if len(text) > MaxConfigBytes {
		return nil, fmt.Errorf("the configuration of discovery has %d bytes; expected at most %d", len(text), MaxConfigBytes)
	}
	c := &Config{}
	if err := yamlload.Load(text, c, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("read the configuration of discovery: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return c, nil
}

// Check reports the first mistake.
func (c *Config) Check() error {
	if err := CheckRules(c.Rules); err != nil {
		return err
	}
	_, err := discovery.CompileActions(c.Actions)
	return err
}

// With returns c with the rules and actions of more over those of the same name, sorted by name.
func (c *Config) With(more *Config) *Config {
	out := &Config{Rules: slices.Clone(more.Rules), Actions: slices.Clone(more.Actions)}
	for _, r := range c.Rules {
		if !slices.ContainsFunc(out.Rules, func(o Rule) bool { return o.Name == r.Name }) {
			out.Rules = append(out.Rules, r)
		}
	}
	for _, a := range c.Actions {
		if !slices.ContainsFunc(out.Actions, func(o discovery.Action) bool { return o.Name == a.Name }) {
			out.Actions = append(out.Actions, a)
		}
	}
	out.sort()
	return out
}

func (c *Config) sort() {
	slices.SortFunc(c.Rules, func(a, b Rule) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Actions, func(a, b discovery.Action) int { return strings.Compare(a.Name, b.Name) })
}

// Without returns c without one object, and whether there was one.
func (c *Config) Without(kind, name string) (*Config, bool) {
	out := &Config{
		Rules:   slices.DeleteFunc(slices.Clone(c.Rules), func(r Rule) bool { return kind == kindRule && r.Name == name }),
		Actions: slices.DeleteFunc(slices.Clone(c.Actions), func(a discovery.Action) bool { return kind == kindAction && a.Name == name }),
	}
	return out, len(out.Rules)+len(out.Actions) < len(c.Rules)+len(c.Actions)
}

// Objects returns the configuration as it is stored.
func (c *Config) Objects() ([]model.AlertObject, error) {
	var list []model.AlertObject
	add := func(kind, name string, value any) error {
		body, err := json.Marshal(value)
		list = append(list, model.AlertObject{Kind: kind, Name: name, Body: body})
		return err
	}
	for i := range c.Rules {
		if err := add(kindRule, c.Rules[i].Name, &c.Rules[i]); err != nil {
			return nil, err
		}
	}
	for i := range c.Actions {
		if err := add(kindAction, c.Actions[i].Name, &c.Actions[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// FromObjects reads what was stored. What cannot be read is left out, with its error among the answers.
func FromObjects(list []model.AlertObject) (*Config, []error) {
	c := &Config{}
	var errs []error
	for _, o := range list {
		var err error
		switch o.Kind {
		case kindRule:
			var r Rule
			if err = json.Unmarshal(o.Body, &r); err == nil {
				err = CheckRules([]Rule{r})
			}
			if err == nil {
				c.Rules = append(c.Rules, r)
			}
		case kindAction:
			var a discovery.Action
			if err = json.Unmarshal(o.Body, &a); err == nil {
				_, err = discovery.CompileActions([]discovery.Action{a})
			}
			if err == nil {
				c.Actions = append(c.Actions, a)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", o.Kind, o.Name, err))
		}
	}
	c.sort()
	return c, errs
}

// hidden stands for a secret that is not shown. Where it comes back, the secret stays.
const hidden = "********"

// secrets calls f with each secret of the configuration and the place where it is, copying what f may change.
func (c *Config) secrets(f func(place string, secret *string)) *Config {
	snmp := func(place string, s *discovery.SNMP) *discovery.SNMP {
		if s == nil {
			return nil
		}
		own := *s
		f(place+"/community", &own.Community)
		f(place+"/auth", &own.AuthPassphrase)
		f(place+"/priv", &own.PrivPassphrase)
		return &own
	}
	out := &Config{Rules: slices.Clone(c.Rules), Actions: slices.Clone(c.Actions)}
	for i := range out.Rules {
		r := &out.Rules[i]
		r.Checks = slices.Clone(r.Checks)
		for n := range r.Checks {
			k := &r.Checks[n]
			k.SNMP = snmp(fmt.Sprintf("rule/%s/%d/%s/%s", r.Name, n, k.Type, k.Key), k.SNMP)
		}
	}
	for i := range out.Actions {
		a := &out.Actions[i]
		a.Operations = slices.Clone(a.Operations)
		for n := range a.Operations {
			o := &a.Operations[n]
			place := fmt.Sprintf("action/%s/%d/%s/%s", a.Name, n, o.Type, o.Identity)
			f(place, &o.PSK)
			if o.Interface != nil {
				own := *o.Interface
				own.SNMP = snmp(place, own.SNMP)
				o.Interface = &own
			}
		}
	}
	return out
}

// Hidden returns the configuration without its secrets. Macros are none.
func (c *Config) Hidden() *Config {
	out := c.secrets(func(_ string, s *string) {
		if *s != "" && !strings.HasPrefix(*s, "{$") {
			*s = hidden
		}
	})
	if out.Rules == nil {
		out.Rules = []Rule{}
	}
	if out.Actions == nil {
		out.Actions = []discovery.Action{}
	}
	return out
}

// WithSecretsOf puts the secrets of an older configuration where c has them hidden. The error names one that is not known.
func (c *Config) WithSecretsOf(old *Config) (*Config, error) {
	have := make(map[string]string)
	old.secrets(func(place string, s *string) { have[place] = *s })
	var err error
	out := c.secrets(func(place string, s *string) {
		if *s != hidden {
			return
		}
		if have[place] == "" {
			err = fmt.Errorf("%s is hidden, and there is no secret of before at its place; give it", place)
		}
		*s = have[place]
	})
	return out, err
}
