package media

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tidemark/model"
)

const (
	// maxSourceBytes bounds a script, maxParameters its parameters: about ten times of what Zabbix's own media types have.
	maxSourceBytes = 128 << 10
	maxParameters  = 500
	// maxTags bounds the tags that a script may add to one event, maxTagBytes a name or value, as Zabbix does.
	maxTags     = 100
	maxTagBytes = 255
	// minSecretBytes is the shortest text that is looked for in what a script says, to hide it.
	minSecretBytes = 4
	hiddenText     = "********"
)

// Job is a script that is to be run.
type Job struct {
	// Source is the body of a function of one argument, value, which is Value.
	Source string
	Value  []byte
	// Timeout is how long it may run.
	Timeout time.Duration
	// Allow are networks that its requests may reach although they are not public.
	Allow []netip.Prefix
}

// Runner runs scripts where they can do no harm. It returns what the script returned and what it wrote to its log.
type Runner interface {
	RunWebhook(ctx context.Context, j Job) (value []byte, log string, err error)
}

// JavaScript sends messages by a webhook script in Zabbix's form: it gets its parameters as one JSON object of texts, uses HttpRequest, and throws
// when it fails.
type JavaScript struct {
	Source string
	// Parameters may hold macros in their values.
	Parameters map[string]string
	// Timeout is how long one run may take.
	Timeout time.Duration
	// Allow are networks that the script may reach although they are not public.
	Allow []netip.Prefix
	// Tags says that the script returns tags for the event: {"tags": {"name": "value"}}.
	Tags bool
	// Secrets are texts that never appear in what the script says.
	Secrets []string
	// Runner runs it; nil when scripts are switched off.
	Runner Runner
}

// Check reports what is wrong with the settings.
func (s *JavaScript) Check() error {
	switch {
	case strings.TrimSpace(s.Source) == "":
		return fmt.Errorf("script is empty: %w", ErrSettings)
	case len(s.Source) > maxSourceBytes:
		return fmt.Errorf("script has %d bytes, expected at most %d: %w", len(s.Source), maxSourceBytes, ErrSettings)
	case len(s.Parameters) > maxParameters:
		return fmt.Errorf("%d parameters, expected at most %d: %w", len(s.Parameters), maxParameters, ErrSettings)
	}
	return nil
}

// Send implements Sender. Its answer has what the script wrote to its log too, for whoever tries it.
func (s *JavaScript) Send(ctx context.Context, m Message) (string, error) {
	value, log, err := s.run(ctx, &m)
	answer := s.told(value)
	if log = s.told([]byte(log)); log != "" {
		answer = strings.TrimSpace(answer + "\n\nLog of the script:\n" + log)
	}
	return answer, err
}

// SendTagged sends a message and returns the tags that the script has for the event.
func (s *JavaScript) SendTagged(ctx context.Context, m Message) (answer string, tags []model.Tag, err error) {
	value, _, err := s.run(ctx, &m)
	if err != nil || !s.Tags {
		return s.told(value), nil, err
	}
	return s.told(value), tagsOf(value), nil
}

func (s *JavaScript) run(ctx context.Context, m *Message) (value []byte, log string, err error) {
	if s.Runner == nil {
		return nil, "", fmt.Errorf("scripts are switched off on this server: %w", ErrSettings)
	}
	parameters := make(map[string]string, len(s.Parameters))
	for name, text := range s.Parameters {
		parameters[name] = m.expand(text)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(parameters); err != nil {
		return nil, "", fmt.Errorf("parameters: %w: %w", err, ErrSettings)
	}
	if b.Len() > maxRequestBytes {
		return nil, "", fmt.Errorf("the parameters have %d bytes, expected at most %d: %w", b.Len(), maxRequestBytes, ErrSettings)
	}
	value, log, err = s.Runner.RunWebhook(ctx, Job{Source: s.Source, Value: bytes.TrimSpace(b.Bytes()), Timeout: s.Timeout, Allow: s.Allow})
	if err != nil {
		err = errors.New(s.told([]byte(err.Error())))
	}
	return value, log, err
}

// told makes what a script says fit for people, without secrets.
func (s *JavaScript) told(text []byte) string {
	for _, secret := range s.Secrets {
		if len(secret) >= minSecretBytes {
			text = bytes.ReplaceAll(text, []byte(secret), []byte(hiddenText))
		}
	}
	return shorten(text)
}

// tagsOf reads the tags out of what a script returned. What is not in the form is left out: the message was sent all the same.
func tagsOf(value []byte) []model.Tag {
	var result struct {
		Tags map[string]any `json:"tags"`
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber() // long ids keep their digits
	if decoder.Decode(&result) != nil {
		return nil
	}
	var list []model.Tag
	for name, v := range result.Tags {
		text := ""
		switch v := v.(type) {
		case string:
			text = v
		case json.Number:
			text = v.String()
		case bool:
			text = fmt.Sprint(v)
		default:
			continue
		}
		if name = oneLine(name, maxTagBytes); name != "" && utf8.ValidString(name) {
			list = append(list, model.Tag{Name: name, Value: oneLine(text, maxTagBytes)})
		}
	}
	slices.SortFunc(list, func(x, y model.Tag) int { return strings.Compare(x.Name, y.Name) })
	return list[:min(len(list), maxTags)]
}
