package alert

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tidemark/alert/media"
	"tidemark/model"
)

// The defaults of a media type.
const (
	groupWait      = 10 * time.Second
	groupInterval  = time.Minute
	attempts       = 10
	retryEvery     = 10 * time.Second
	maxRetryWait   = 10 * time.Minute
	sessions       = 4
	sendTimeout    = 30 * time.Second
	mailBytes      = 1 << 20
	webhookBytes   = 32 << 10
	heartbeatEvery = time.Minute
)

// plan is a configuration made ready for use. It does not change.
type plan struct {
	actions      []*compiledAction
	channels     map[string]*channel
	receivers    map[string]*Receiver
	maintenances []Maintenance
	url          string
}

// compiledAction is an action with its conditions.
type compiledAction struct {
	*Action
	rule        rule
	flapChanges int
	flapWithin  time.Duration
}

// commandAddress is the address of receivers by commands.
const commandAddress = "host"

// channel is a media type with its sender.
type channel struct {
	*Media
	sender   media.Sender
	problem  error // why it cannot send
	grouped  bool
	maxBytes int
	// macros are those of a script's parameters whose values are taken when the alert is made.
	macros []string
}

// Effort returns how many messages are sent at the same time, how often one is tried, and the wait before the second try, with the defaults for what is
// not set.
func (m *Media) Effort() (atOnce, tries int, wait time.Duration) {
	atOnce, tries, wait = cmp.Or(m.Sessions, sessions), cmp.Or(m.Attempts, attempts), m.RetryEvery.Or(retryEvery)
	if m.Command != nil {
		tries = 1
	}
	return atOnce, tries, wait
}

// runs reports whether the channel runs commands.
func (ch *channel) runs() bool { return ch != nil && ch.Command != nil }

func (p *plan) action(name string) *compiledAction {
	if i := slices.IndexFunc(p.actions, func(a *compiledAction) bool { return a.Name == name }); i >= 0 {
		return p.actions[i]
	}
	return nil
}

// compile checks a configuration and makes a plan of it. The plan holds what is right, also when there is an error, which names all
// that is wrong.
func compile(c *Config, o *Options) (*plan, error) {
	p := &plan{channels: make(map[string]*channel), receivers: make(map[string]*Receiver), url: strings.TrimSuffix(c.URL, "/")}
	var errs []error
	wrong := func(kind, name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", kind, name, err))
		}
	}
	if n := len(c.Media) + len(c.Receivers) + len(c.Actions) + len(c.Maintenances); n > maxObjects {
		errs = append(errs, fmt.Errorf("%d objects, expected at most %d", n, maxObjects))
	}
	for i := range c.Media {
		m := &c.Media[i]
		ch, err := m.compile(o)
		wrong(kindMedia, m.Name, errors.Join(checkName(m.Name, p.channels[m.Name] != nil), err))
		if err == nil {
			p.channels[m.Name] = ch
		}
	}
	for i := range c.Receivers {
		r := &c.Receivers[i]
		wrong(kindReceiver, r.Name, errors.Join(checkName(r.Name, p.receivers[r.Name] != nil), r.check(p)))
		p.receivers[r.Name] = r
	}
	for i := range c.Actions {
		a := &c.Actions[i]
		compiled, err := a.compile(p)
		wrong(kindAction, a.Name, errors.Join(checkName(a.Name, p.action(a.Name) != nil), err))
		if err == nil {
			p.actions = append(p.actions, compiled)
		}
	}
	for i := range c.Maintenances {
		m := &c.Maintenances[i]
		taken := slices.ContainsFunc(p.maintenances, func(o Maintenance) bool { return o.Name == m.Name })
		err := errors.Join(checkName(m.Name, taken), m.check())
		wrong(kindMaintenance, m.Name, err)
		if err == nil {
			p.maintenances = append(p.maintenances, *m)
		}
	}
	if c.Shadow != nil {
		p.actions = nil // checked, but not in force
	}
	if c.Heartbeat != nil {
		_, err := c.Heartbeat.hook()
		wrong("heartbeat", "", err)
	}
	return p, errors.Join(errs...)
}

func checkName(name string, taken bool) error {
	switch {
	case name == "" || len(name) > maxNameBytes:
		return fmt.Errorf("the name has %d bytes, expected 1 to %d", len(name), maxNameBytes)
	case taken:
		return errors.New("the name is used twice")
	}
	return nil
}

// compile checks a media type and makes its sender.
func (m *Media) compile(o *Options) (*channel, error) {
	ch := &channel{Media: m, grouped: !m.Ticket, maxBytes: m.MaxMessageBytes}
	count := 0
	for _, set := range []bool{m.Mail != nil, m.Webhook != nil, m.Script != nil, m.Zabbix != nil, m.Command != nil} {
		if set {
			count++
		}
	}
	if count != 1 {
		return nil, fmt.Errorf("%d of mail, webhook, script, zabbix_webhook and command are set, expected one", count)
	}
	if err := m.checkNumbers(); err != nil {
		return nil, err
	}
	var err error
	limit := webhookBytes
	switch {
	case m.Mail != nil:
		limit = mailBytes
		mail := &media.Mail{
			Server: m.Mail.Server, Security: m.Mail.Security, From: m.Mail.From, Hello: m.Mail.Hello, User: m.Mail.User,
			Password: m.Secrets["PASSWORD"], CAFile: m.Mail.CAFile, HTML: m.Mail.HTML,
		}
		ch.sender, err = mail, mail.Check()
	case m.Webhook != nil:
		ch.sender, err = m.Webhook.sender()
	case m.Script != nil:
		// Programs of the machine itself get every alert singly, as Zabbix calls them.
		script := &media.Script{Folder: o.ScriptFolder, Name: m.Script.Name, Arguments: m.Script.Arguments}
		ch.sender, err, ch.grouped = script, script.Check(), false
	case m.Command != nil:
		command := &media.Command{Line: m.Command.Line, Commander: o.Commands}
		ch.sender, err, ch.grouped = command, command.Check(), false
		if m.Attempts > 1 && err == nil {
			err = fmt.Errorf("attempts is %d, expected 1: a command is not run again", m.Attempts)
		}
	default:
		ch.sender, err = m.Zabbix.sender(m, o)
		ch.macros = m.Zabbix.macros()
	}
	if ch.maxBytes == 0 {
		ch.maxBytes = limit
	}
	return ch, err
}

func (m *Media) checkNumbers() error {
	texts := len(m.Problem.Subject) + len(m.Problem.Message) + len(m.Recovery.Subject) + len(m.Recovery.Message) + len(m.Update.Subject) + len(m.Update.Message)
	switch {
	case m.Attempts < 0 || m.Attempts > 100:
		return fmt.Errorf("attempts is %d, expected 1 to 100", m.Attempts)
	case m.Sessions < 0 || m.Sessions > 100:
		return fmt.Errorf("sessions is %d, expected 1 to 100", m.Sessions)
	case m.Timeout < 0 || m.Timeout > Duration(5*time.Minute):
		return fmt.Errorf("timeout is %s, expected 1s to 5m", time.Duration(m.Timeout))
	case m.GroupWait > Duration(time.Hour) || m.GroupInterval > Duration(24*time.Hour):
		return errors.New("group_wait or group_interval is too long, expected at most 1h and 1d")
	case m.RetryEvery > Duration(time.Hour):
		return fmt.Errorf("retry_every is %s, expected at most 1h", time.Duration(m.RetryEvery))
	case m.MaxMessageBytes != 0 && (m.MaxMessageBytes < 500 || m.MaxMessageBytes > mailBytes):
		return fmt.Errorf("max_message_bytes is %d, expected 500 to %d", m.MaxMessageBytes, mailBytes)
	case texts > maxTextBytes:
		return fmt.Errorf("the texts have %d bytes, expected at most %d", texts, maxTextBytes)
	}
	return nil
}

func (w *WebhookSettings) sender() (media.Sender, error) {
	allow, err := prefixes(w.Allow)
	if err != nil {
		return nil, err
	}
	body := w.Body
	if body == nil {
		body = map[string]any{"text": "{ALERT.SUBJECT}\n{ALERT.MESSAGE}"}
	}
	return media.NewWebhook(&media.Webhook{URL: w.URL, Method: w.Method, Headers: maps.Clone(w.Headers), Body: body, Expect: w.Expect, Allow: allow})
}

// check looks at a receiver.
func (r *Receiver) check(p *plan) error {
	if len(r.Media) > maxPeriods {
		return fmt.Errorf("%d media, expected at most %d", len(r.Media), maxPeriods)
	}
	for i := range r.Media {
		m := &r.Media[i]
		ch := p.channels[m.Media]
		switch {
		case ch == nil:
			return fmt.Errorf("media %d: %q is no media type", i+1, m.Media)
		case m.To == "" || len(m.To) > 2000:
			return fmt.Errorf("media %d: to has %d bytes, expected 1 to 2000", i+1, len(m.To))
		case ch.Mail != nil:
			if err := media.CheckRecipients(m.To); err != nil {
				return fmt.Errorf("media %d: to: %w", i+1, err)
			}
		case ch.Command != nil && m.To != commandAddress:
			return fmt.Errorf("media %d: to is %.40q, expected %s: a command runs on the host of the problem", i+1, m.To, commandAddress)
		}
	}
	return nil
}

// compile checks an action.
func (a *Action) compile(p *plan) (*compiledAction, error) {
	if len(a.Conditions) > MaxConditions {
		return nil, fmt.Errorf("%d conditions, expected at most %d", len(a.Conditions), MaxConditions)
	}
	compiled := &compiledAction{Action: a}
	compiled.flapChanges, compiled.flapWithin = a.Flapping.limits()
	var err error
	if compiled.rule, err = a.compileRule(); err != nil {
		return nil, err
	}
	switch {
	case len(a.Operations) == 0:
		return nil, errors.New("operations is empty, expected at least one")
	case a.StepDuration != 0 && time.Duration(a.StepDuration) < minStep:
		return nil, fmt.Errorf("step_duration is %s, expected at least %s", time.Duration(a.StepDuration), minStep)
	case compiled.flapChanges < 2 || compiled.flapChanges > maxChanges:
		return nil, fmt.Errorf("flapping.changes is %d, expected 2 to %d", compiled.flapChanges, maxChanges)
	case compiled.flapWithin > maxWithin || compiled.flapWithin < time.Second:
		return nil, fmt.Errorf("flapping.within is %s, expected 1s to %s", compiled.flapWithin, maxWithin)
	}
	for _, list := range []struct {
		name       string
		operations []Operation
		steps      bool
	}{{"operation", a.Operations, true}, {"recovery operation", a.Recovery, false}, {"update operation", a.Update, false}} {
		if len(list.operations) > MaxOperations {
			return nil, fmt.Errorf("%d %ss, expected at most %d", len(list.operations), list.name, MaxOperations)
		}
		for i := range list.operations {
			if err := list.operations[i].check(p, list.steps); err != nil {
				return nil, fmt.Errorf("%s %d: %w", list.name, i+1, err)
			}
		}
	}
	return compiled, nil
}

// check looks at an operation; only those of problems have steps.
func (o *Operation) check(p *plan, steps bool) error {
	for _, name := range o.Receivers {
		if p.receivers[name] == nil {
			return fmt.Errorf("%q is no receiver", name)
		}
	}
	for _, name := range o.Media {
		if p.channels[name] == nil {
			return fmt.Errorf("%q is no media type", name)
		}
	}
	switch {
	case !steps && (o.From != 0 || o.To != 0 || o.Duration != 0):
		return errors.New("from, to or duration is set, but only operations of problems have steps")
	case steps && o.Involved:
		return errors.New("involved is set, but at the problem nobody was told yet; name receivers")
	case len(o.Receivers) == 0 && !o.Involved:
		return errors.New("receivers is empty, expected names")
	case len(o.Receivers) > maxList:
		return fmt.Errorf("%d receivers, expected at most %d", len(o.Receivers), maxList)
	case o.From < 0 || o.From > maxStep || o.To < forEver || o.To > maxStep || o.To > 0 && o.To < o.From:
		return fmt.Errorf("steps %d to %d, expected 1 to %d in rising order, or -1 for ever", o.From, o.To, maxStep)
	case o.Duration != 0 && time.Duration(o.Duration) < minStep:
		return fmt.Errorf("duration is %s, expected at least %s", time.Duration(o.Duration), minStep)
	case o.If != "" && o.If != ifAcknowledged && o.If != ifNotAcknowledged:
		return fmt.Errorf("if is %.40q, expected acknowledged or not_acknowledged", o.If)
	case len(o.Subject)+len(o.Message) > maxTextBytes:
		return fmt.Errorf("the texts have %d bytes, expected at most %d", len(o.Subject)+len(o.Message), maxTextBytes)
	}
	return nil
}

// wants reports whether a receiver's medium takes an alert now.
func (m *ReceiverMedia) wants(severity model.Severity, now time.Time) bool {
	return !m.Disabled && (len(m.Severities) == 0 || slices.Contains(m.Severities, Severity(severity))) && m.When.Contain(now)
}
