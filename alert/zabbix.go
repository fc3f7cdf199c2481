package alert

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"tidemark/alert/media"
	"tidemark/internal/yamlload"
)

// zabbixExport is what is read of Zabbix's export of media types, versions 4.4 to 7.4 (manual, "Media types", export).
type zabbixExport struct {
	Export struct {
		Version string            `yaml:"version"`
		Media   []zabbixMediaType `yaml:"media_types"`
	} `yaml:"zabbix_export"`
}

type zabbixMediaType struct {
	Name           string `yaml:"name"`
	Type           string `yaml:"type"`
	SMTPServer     string `yaml:"smtp_server"`
	SMTPPort       string `yaml:"smtp_port"`
	SMTPHelo       string `yaml:"smtp_helo"`
	SMTPEmail      string `yaml:"smtp_email"`
	SMTPSecurity   string `yaml:"smtp_security"`
	Authentication string `yaml:"smtp_authentication"`
	Username       string `yaml:"username"`
	Password       string `yaml:"password"`
	ContentType    string `yaml:"content_type"`
	MessageFormat  string `yaml:"message_format"`
	ScriptName     string `yaml:"script_name"`
	Script         string `yaml:"script"`
	Timeout        string `yaml:"timeout"`
	ProcessTags    string `yaml:"process_tags"`
	ShowMenu       string `yaml:"show_event_menu"`
	MenuURL        string `yaml:"event_menu_url"`
	MenuName       string `yaml:"event_menu_name"`
	MaxSessions    string `yaml:"max_sessions"`
	Attempts       string `yaml:"attempts"`
	Interval       string `yaml:"attempt_interval"`
	Status         string `yaml:"status"`
	Parameters     []struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
	} `yaml:"parameters"`
	Templates []struct {
		Source  string `yaml:"event_source"`
		Mode    string `yaml:"operation_mode"`
		Subject string `yaml:"subject"`
		Message string `yaml:"message"`
	} `yaml:"message_templates"`
}

// ImportZabbix reads media types from a Zabbix export in YAML or JSON. The remarks say what was not taken or does not work. The result is for
// Apply.
func ImportZabbix(text []byte) (c *Config, remarks []string, err error) {
	if len(text) > MaxConfigBytes {
		return nil, nil, fmt.Errorf("the export has %d bytes, expected at most %d: %w", len(text), MaxConfigBytes, ErrInvalid)
	}
	var export zabbixExport
	if err := yamlload.Load(text, &export); err != nil {
		return nil, nil, fmt.Errorf("read the export: %w: %w", ErrInvalid, err)
	}
	if export.Export.Version == "" {
		return nil, nil, fmt.Errorf("no zabbix_export with a version: %w", ErrInvalid)
	}
	c = &Config{}
	for i := range export.Export.Media {
		z := &export.Export.Media[i]
		m, more := z.media()
		for _, remark := range more {
			remarks = append(remarks, fmt.Sprintf("media type %q: %s", z.Name, remark))
		}
		if m != nil {
			c.Media = append(c.Media, *m)
		}
	}
	return c, remarks, nil
}

// media converts one media type; nil when it cannot be kept.
func (z *zabbixMediaType) media() (*Media, []string) {
	var remarks []string
	m := &Media{Name: z.Name, Disabled: z.Status == "DISABLED" || z.Status == "1"}
	switch strings.ToUpper(z.Type) {
	case "EMAIL", "0":
		remarks = z.mail(m)
	case "SCRIPT", "1":
		remarks = z.script(m)
	case "WEBHOOK", "4":
		remarks = z.webhook(m)
	default:
		return nil, []string{fmt.Sprintf("type %q is not supported; not taken", z.Type)}
	}
	for _, t := range z.Templates {
		if t.Source != "TRIGGERS" && t.Source != "0" && t.Source != "" {
			remarks = append(remarks, fmt.Sprintf("the message template of event source %s is not used; not taken", t.Source))
			continue
		}
		text := Text{Subject: t.Subject, Message: t.Message}
		switch t.Mode {
		case "RECOVERY", "1":
			m.Recovery = text
		case "UPDATE", "2":
			m.Update = text
		default:
			m.Problem = text
		}
	}
	if n, err := strconv.Atoi(z.Attempts); err == nil && n >= 1 && n <= 100 {
		m.Attempts = n
	}
	if n, err := strconv.Atoi(z.MaxSessions); err == nil && n >= 1 && n <= 100 {
		m.Sessions = n
	}
	if z.Interval != "" && m.RetryEvery.UnmarshalText([]byte(z.Interval)) != nil {
		remarks = append(remarks, fmt.Sprintf("attempt_interval is %.40q; the default is used", z.Interval))
	}
	return m, remarks
}

// Exports say yes and no in words, older tables in digits.
func yes(text string) bool { return strings.EqualFold(text, "YES") || text == "1" }

// secretNames are names of parameters that hold what nobody should read.
var secretNames = regexp.MustCompile(`(?i)(token|passw|secret|api_?key|auth_?key|private_?key|_key$|^key$)`)

// addressNames are names of parameters that hold addresses of hooks.
var addressNames = regexp.MustCompile(`(?i)(endpoint|webhook)`)

// placeholder is how exports say that a value is to be filled in.
var placeholder = regexp.MustCompile(`^<.*>$`)

func (z *zabbixMediaType) webhook(m *Media) (remarks []string) {
	hook := &ZabbixWebhook{Script: z.Script, Parameters: make(map[string]string), Tags: yes(z.ProcessTags)}
	m.Zabbix = hook
	if z.Timeout != "" && hook.Timeout.UnmarshalText([]byte(z.Timeout)) != nil {
		remarks = append(remarks, fmt.Sprintf("timeout is %.40q; %s is used", z.Timeout, scriptTimeout))
	}
	var fill []string
	for _, p := range z.Parameters {
		hook.Parameters[p.Name] = p.Value
		m.Ticket = m.Ticket || strings.Contains(p.Value, "{EVENT.ID}")
		open := placeholder.MatchString(p.Value)
		if open {
			fill = append(fill, p.Name)
		}
		// Addresses of hooks that are to be filled in are secrets too: they hold a token.
		secret := secretNames.MatchString(p.Name) || open && addressNames.MatchString(p.Name)
		if !secret || strings.Contains(p.Value, "{") {
			continue
		}
		if m.Secrets == nil {
			m.Secrets = make(map[string]string)
		}
		hook.Parameters[p.Name], m.Secrets[p.Name] = "{SECRET."+p.Name+"}", p.Value
		if open {
			m.Secrets[p.Name] = hidden // an import over a media type that is in use keeps what was filled in
		}
	}
	if m.Disabled {
		remarks = append(remarks, "it is disabled in the export; enable it when it is filled in")
	}
	if len(fill) > 0 {
		remarks = append(remarks, "fill in "+strings.Join(fill, ", "))
	}
	m.Ticket = m.Ticket || hook.Tags
	if m.Ticket {
		remarks = append(remarks, "each problem is sent by itself (ticket), because the script is told of single events; ticket: false groups them")
	}
	if yes(z.ShowMenu) {
		hook.Menu = &EventMenu{Name: z.MenuName, URL: z.MenuURL}
		if err := hook.Menu.check(); err != nil {
			hook.Menu = nil
			remarks = append(remarks, err.Error()+"; the link is not taken")
		}
	}
	return append(remarks, "only public addresses are reached; put networks of your own into allow")
}

func (z *zabbixMediaType) mail(m *Media) (remarks []string) {
	port := z.SMTPPort
	if port == "" {
		port = "25"
	}
	security := media.NoTLS
	switch strings.ToUpper(z.SMTPSecurity) {
	case "STARTTLS", "1":
		security = media.StartTLS
	case "SSL_OR_TLS", "2":
		security = media.TLS
	}
	from := z.SMTPEmail
	if !strings.Contains(from, "@") {
		remarks = append(remarks, fmt.Sprintf("smtp_email is %.60q, which is no address; tidemark@localhost is used", from))
		from = "tidemark@localhost"
	}
	m.Mail = &MailSettings{Server: net.JoinHostPort(z.SMTPServer, port), Security: security, From: from, Hello: z.SMTPHelo}
	// HTML is Zabbix's default in exports; 1 and HTML say so.
	format := strings.ToUpper(z.ContentType + z.MessageFormat)
	m.Mail.HTML = format == "" || format == "HTML" || format == "1"
	if auth := strings.ToUpper(z.Authentication); auth == "PASSWORD" || auth == "1" {
		m.Mail.User = z.Username
		m.Secrets = map[string]string{"PASSWORD": z.Password}
		if z.Password == "" {
			remarks = append(remarks, "the export has no password; set the secret PASSWORD")
		}
	}
	return remarks
}

// numbered are the names of a script's parameters in exports since 6.4, which are their places.
var numbered = regexp.MustCompile(`^[0-9]{1,3}$`)

func (z *zabbixMediaType) script(m *Media) (remarks []string) {
	m.Script = &ScriptSettings{Name: z.ScriptName}
	for _, p := range z.Parameters {
		if p.Name != "" && !numbered.MatchString(p.Name) {
			remarks = append(remarks, fmt.Sprintf("parameter %q has a name, expected a place; taken in the order of the file", p.Name))
		}
		m.Script.Arguments = append(m.Script.Arguments, p.Value)
	}
	return append(remarks, "put the script into the folder of alert scripts")
}
