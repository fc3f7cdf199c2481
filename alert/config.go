package alert

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"tidemark/internal/yamlload"
	"tidemark/model"
)

// Limits of a configuration.
const (
	// MaxConfigBytes bounds a file of alerting configuration.
	MaxConfigBytes = 1 << 20
	// MaxConditions bounds those of an action, MaxOperations its operations of each kind.
	MaxConditions = 50
	MaxOperations = 50
	maxObjects    = 1000
	maxList       = 1000
	maxNameBytes  = 255
	maxTextBytes  = 64 << 10
	maxStep       = 10_000
	minStep       = 10 * time.Second
)

// hidden stands for a secret in everything that is shown; put back, it keeps the stored secret.
const hidden = "********"

// Config is everything that alerting is told: the form of its file and of its interface.
type Config struct {
	// URL is the address of the page for people, for {EVENT.URL}.
	URL          string        `yaml:"url,omitempty" json:"url,omitempty"`
	Media        []Media       `yaml:"media,omitempty" json:"media,omitempty"`
	Receivers    []Receiver    `yaml:"receivers,omitempty" json:"receivers,omitempty"`
	Actions      []Action      `yaml:"actions,omitempty" json:"actions,omitempty"`
	Maintenances []Maintenance `yaml:"maintenances,omitempty" json:"maintenances,omitempty"`
	Heartbeat    *Heartbeat    `yaml:"heartbeat,omitempty" json:"heartbeat,omitempty"`
	// Shadow, if not nil, keeps all actions out of force. It is shown, and not taken from a file: see Alerter.BeginShadow and Cutover.
	Shadow *Shadow `yaml:"shadow,omitempty" json:"shadow,omitempty"`
}

// Heartbeat asks an outside address regularly, which raises the alarm when that stops.
type Heartbeat struct {
	URL string `yaml:"url" json:"url"`
	// Every is the time between two beats; zero is one minute.
	Every Duration `yaml:"every,omitempty" json:"every,omitempty"`
	// Allow are networks that may be reached although they are not public.
	Allow []string `yaml:"allow,omitempty" json:"allow,omitempty"`
}

// Media is a way to reach people or machines. Exactly one of Mail, Webhook, Script, Zabbix and Command is set.
type Media struct {
	Name     string `yaml:"name" json:"name"`
	Disabled bool   `yaml:"disabled,omitempty" json:"disabled,omitempty"`
	// AwaitsCutover says that it is off until shadow mode ends, Origin where it was imported from.
	AwaitsCutover bool   `yaml:"awaits_cutover,omitempty" json:"awaits_cutover,omitempty"`
	Origin        string `yaml:"origin,omitempty" json:"origin,omitempty"`

	Mail    *MailSettings    `yaml:"mail,omitempty" json:"mail,omitempty"`
	Webhook *WebhookSettings `yaml:"webhook,omitempty" json:"webhook,omitempty"`
	Script  *ScriptSettings  `yaml:"script,omitempty" json:"script,omitempty"`
	// Zabbix is a webhook in JavaScript, as Zabbix has them.
	Zabbix *ZabbixWebhook `yaml:"zabbix_webhook,omitempty" json:"zabbix_webhook,omitempty"`
	// Command has the agent of the problem's host run a command, once.
	Command *CommandSettings `yaml:"command,omitempty" json:"command,omitempty"`

	// Ticket media get every problem and every recovery in a message of its own.
	Ticket bool `yaml:"ticket,omitempty" json:"ticket,omitempty"`
	// GroupWait is how long the first message waits for company, GroupInterval the shortest time between two messages to one address.
	GroupWait     Duration `yaml:"group_wait,omitempty" json:"group_wait,omitempty"`
	GroupInterval Duration `yaml:"group_interval,omitempty" json:"group_interval,omitempty"`
	// MaxMessageBytes bounds the text of one message.
	MaxMessageBytes int `yaml:"max_message_bytes,omitempty" json:"max_message_bytes,omitempty"`
	// Attempts is how often a message is tried, RetryEvery the wait before the second attempt; it doubles each time.
	Attempts   int      `yaml:"attempts,omitempty" json:"attempts,omitempty"`
	RetryEvery Duration `yaml:"retry_every,omitempty" json:"retry_every,omitempty"`
	// Sessions is how many messages are sent at the same time, Timeout how long one may take.
	Sessions int      `yaml:"sessions,omitempty" json:"sessions,omitempty"`
	Timeout  Duration `yaml:"timeout,omitempty" json:"timeout,omitempty"`
	// Secrets are the values of {SECRET.NAME}; they are never shown.
	Secrets map[string]string `yaml:"secrets,omitempty" json:"secrets,omitempty"`
	// Problem, Recovery and Update replace the texts that are built in.
	Problem  Text `yaml:"problem,omitempty" json:"problem,omitzero"`
	Recovery Text `yaml:"recovery,omitempty" json:"recovery,omitzero"`
	Update   Text `yaml:"update,omitempty" json:"update,omitzero"`
}

// Text is the subject and the message of an alert, with macros.
type Text struct {
	Subject string `yaml:"subject,omitempty" json:"subject,omitempty"`
	Message string `yaml:"message,omitempty" json:"message,omitempty"`
}

// MailSettings are those of media.Mail; the password is the secret PASSWORD.
type MailSettings struct {
	Server   string `yaml:"server" json:"server"`
	Security string `yaml:"security,omitempty" json:"security,omitempty"`
	From     string `yaml:"from" json:"from"`
	Hello    string `yaml:"hello,omitempty" json:"hello,omitempty"`
	User     string `yaml:"user,omitempty" json:"user,omitempty"`
	CAFile   string `yaml:"ca_file,omitempty" json:"ca_file,omitempty"`
	HTML     bool   `yaml:"html,omitempty" json:"html,omitempty"`
}

// WebhookSettings are those of media.Webhook.
type WebhookSettings struct {
	URL     string            `yaml:"url" json:"url"`
	Method  string            `yaml:"method,omitempty" json:"method,omitempty"`
	Headers map[string]string `yaml:"headers,omitempty" json:"headers,omitempty"`
	Body    any               `yaml:"body,omitempty" json:"body,omitempty"`
	Expect  string            `yaml:"expect,omitempty" json:"expect,omitempty"`
	Allow   []string          `yaml:"allow,omitempty" json:"allow,omitempty"`
}

// ScriptSettings are those of media.Script.
type ScriptSettings struct {
	Name      string   `yaml:"name" json:"name"`
	Arguments []string `yaml:"arguments,omitempty" json:"arguments,omitempty"`
}

// CommandSettings are those of media.Command.
type CommandSettings struct {
	Line string `yaml:"line" json:"line"`
}

// ZabbixWebhook is a webhook in JavaScript as Zabbix exports it.
type ZabbixWebhook struct {
	// Script is the body of a function of one argument, value: the parameters as a JSON object of texts.
	Script     string            `yaml:"script" json:"script"`
	Parameters map[string]string `yaml:"parameters,omitempty" json:"parameters,omitempty"`
	// Timeout is how long the script may run; zero is 30 seconds.
	Timeout Duration `yaml:"timeout,omitempty" json:"timeout,omitempty"`
	// Tags says that what the script returns has tags for the event.
	Tags bool `yaml:"tags,omitempty" json:"tags,omitempty"`
	// Menu is a link that problems get, made of those tags.
	Menu *EventMenu `yaml:"menu,omitempty" json:"menu,omitempty"`
	// Allow are networks that the script may reach although they are not public.
	Allow []string `yaml:"allow,omitempty" json:"allow,omitempty"`
}

// EventMenu is a link of a problem; both texts may hold {EVENT.TAGS.name} and {EVENT.ID}.
type EventMenu struct {
	Name string `yaml:"name" json:"name"`
	URL  string `yaml:"url" json:"url"`
}

// Receiver is a person, a team or a machine that is told.
type Receiver struct {
	Name  string          `yaml:"name" json:"name"`
	Media []ReceiverMedia `yaml:"media" json:"media"`
	// Origin is where it was imported from.
	Origin string `yaml:"origin,omitempty" json:"origin,omitempty"`
}

// ReceiverMedia is one way to reach a receiver.
type ReceiverMedia struct {
	Media string `yaml:"media" json:"media"`
	To    string `yaml:"to" json:"to"`
	// Severities, if not empty, are the only ones that are sent here.
	Severities []Severity `yaml:"severities,omitempty" json:"severities,omitempty"`
	// When, in Zabbix's form "1-5,09:00-18:00;6-7,10:00-16:00", is when messages are wanted; empty is always.
	When     Periods `yaml:"when,omitempty" json:"when,omitempty"`
	Disabled bool    `yaml:"disabled,omitempty" json:"disabled,omitempty"`
}

// Duration is a time.Duration in the form "90s", "5m", "1h", "1d" or a number of seconds.
type Duration time.Duration

// Or returns the duration, or another when it is zero.
func (d Duration) Or(other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return time.Duration(d)
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	unit := time.Second
	if s != "" {
		if u, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[s[len(s)-1]]; ok {
			unit, s = u, s[:len(s)-1]
		}
	}
	n, err := parseNumber(s, int(10*365*24*time.Hour/unit))
	if err != nil {
		return fmt.Errorf("%.40q is no duration, expected 90s, 5m, 1h or 1d, at most ten years", text)
	}
	*d = Duration(time.Duration(n) * unit)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) {
	t := time.Duration(d)
	for _, u := range []struct {
		length time.Duration
		letter string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if t != 0 && t%u.length == 0 {
			return fmt.Appendf(nil, "%d%s", t/u.length, u.letter), nil
		}
	}
	return fmt.Appendf(nil, "%ds", t/time.Second), nil
}

// parseNumber reads decimal digits up to a limit.
func parseNumber(s string, most int) (int, error) {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || n > most {
			return 0, errors.New("no number")
		}
		n = n*10 + int(s[i]-'0')
	}
	if s == "" || n > most {
		return 0, errors.New("no number")
	}
	return n, nil
}

// Severity is a model.Severity by name.
type Severity model.Severity

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Severity) UnmarshalText(text []byte) error {
	v, ok := parseSeverity(string(text))
	if !ok {
		return fmt.Errorf("%.40q is no severity, expected not classified, information, warning, average, high or disaster", text)
	}
	*s = Severity(v)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (s Severity) MarshalText() ([]byte, error) { return []byte(model.Severity(s).String()), nil }

func parseSeverity(name string) (model.Severity, bool) {
	for s := model.NotClassified; s <= model.Disaster; s++ {
		if strings.EqualFold(strings.ReplaceAll(name, "_", " "), s.String()) {
			return s, true
		}
	}
	return 0, false
}

// Parse reads a file of alerting configuration, YAML or JSON, strictly. References between objects are looked at when it is applied.
func Parse(text []byte) (*Config, error) {
	if len(text) > MaxConfigBytes {
		return nil, fmt.Errorf("the alerting configuration has %d bytes, expected at most %d", len(text), MaxConfigBytes)
	}
	c := &Config{}
	if err := yamlload.Load(text, c, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("read the alerting configuration: %w", err)
	}
	return c, nil
}

// The kinds of stored objects.
const (
	kindMedia, kindReceiver, kindAction, kindMaintenance, kindSettings = "media", "receiver", "action", "maintenance", "settings"
)

// settings is what a Config has besides its lists, stored as one object.
type settings struct {
	URL       string     `json:"url,omitempty"`
	Heartbeat *Heartbeat `json:"heartbeat,omitempty"`
	Shadow    *Shadow    `json:"shadow,omitempty"`
}

// objects returns the configuration as it is stored.
func (c *Config) objects() ([]model.AlertObject, error) {
	var list []model.AlertObject
	var failure error
	add := func(kind, name string, value any) {
		body, err := json.Marshal(value)
		if err != nil {
			failure = errors.Join(failure, fmt.Errorf("%s %q: %w", kind, name, err))
		}
		list = append(list, model.AlertObject{Kind: kind, Name: name, Body: body})
	}
	for i := range c.Media {
		add(kindMedia, c.Media[i].Name, &c.Media[i])
	}
	for i := range c.Receivers {
		add(kindReceiver, c.Receivers[i].Name, &c.Receivers[i])
	}
	for i := range c.Actions {
		add(kindAction, c.Actions[i].Name, &c.Actions[i])
	}
	for i := range c.Maintenances {
		add(kindMaintenance, c.Maintenances[i].Name, &c.Maintenances[i])
	}
	if c.URL != "" || c.Heartbeat != nil || c.Shadow != nil {
		add(kindSettings, "", &settings{URL: c.URL, Heartbeat: c.Heartbeat, Shadow: c.Shadow})
	}
	return list, failure
}

// configOf is the reverse of objects.
func configOf(list []model.AlertObject) (*Config, error) {
	c := &Config{}
	for _, o := range list {
		var err error
		switch o.Kind {
		case kindMedia:
			err = decodeInto(&c.Media, o.Body)
		case kindReceiver:
			err = decodeInto(&c.Receivers, o.Body)
		case kindAction:
			err = decodeInto(&c.Actions, o.Body)
		case kindMaintenance:
			err = decodeInto(&c.Maintenances, o.Body)
		case kindSettings:
			var s settings
			err = json.Unmarshal(o.Body, &s)
			c.URL, c.Heartbeat, c.Shadow = s.URL, s.Heartbeat, s.Shadow
		}
		if err != nil {
			return nil, fmt.Errorf("stored %s %q: %w", o.Kind, o.Name, err)
		}
	}
	return c, nil
}

func decodeInto[T any](list *[]T, body []byte) error {
	var v T
	err := json.Unmarshal(body, &v)
	*list = append(*list, v)
	return err
}

// merge returns the configuration with the objects of another put over those of the same name. Secrets shown as hidden keep their value.
func (c *Config) merge(more *Config) *Config {
	out := &Config{
		URL: c.URL, Heartbeat: c.Heartbeat, Shadow: c.Shadow,
		Media:        mergeList(c.Media, more.Media, func(m *Media) string { return m.Name }),
		Receivers:    mergeList(c.Receivers, more.Receivers, func(r *Receiver) string { return r.Name }),
		Actions:      mergeList(c.Actions, more.Actions, func(a *Action) string { return a.Name }),
		Maintenances: mergeList(c.Maintenances, more.Maintenances, func(m *Maintenance) string { return m.Name }),
	}
	if more.URL != "" {
		out.URL = more.URL
	}
	if more.Heartbeat != nil {
		out.Heartbeat = more.Heartbeat
	}
	for i := range out.Media {
		m := &out.Media[i]
		old := slices.IndexFunc(c.Media, func(o Media) bool { return o.Name == m.Name })
		m.Secrets = maps.Clone(m.Secrets)
		for name, value := range m.Secrets {
			switch {
			case value != hidden:
			case old < 0:
				m.Secrets[name] = "" // there is nothing that it could keep
			default:
				m.Secrets[name] = c.Media[old].Secrets[name]
			}
		}
	}
	return out
}

func mergeList[T any](old, puts []T, name func(*T) string) []T {
	out := slices.Clone(old)
	for i := range puts {
		at := slices.IndexFunc(out, func(o T) bool { return name(&o) == name(&puts[i]) })
		if at < 0 {
			out = append(out, puts[i])
		} else {
			out[at] = puts[i]
		}
	}
	return out
}

// shown is the configuration without its secrets.
func (c *Config) shown() *Config {
	out := *c
	out.Media = slices.Clone(c.Media)
	for i := range out.Media {
		secrets := maps.Clone(out.Media[i].Secrets)
		for name := range secrets {
			secrets[name] = hidden
		}
		out.Media[i].Secrets = secrets
	}
	return &out
}

// prefixes reads networks; a single address is a network of its own.
func prefixes(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			addr, addrErr := netip.ParseAddr(text)
			if addrErr != nil {
				return nil, fmt.Errorf("allow: %.60q is no network, expected 10.0.0.0/8 or 10.1.2.3", text)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		out = append(out, p)
	}
	return out, nil
}
