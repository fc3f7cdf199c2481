// Package webscenario makes web scenarios: requests that are made one after another with common cookies and variables, each of which must
// be answered as expected, or the scenario ends there.
//
// The value of a scenario is one JSON text, out of which the items that people know (web.test.fail, web.test.time, …) are made as
// dependent items. Requests are those of HTTP agents, with the same rules of what must not be reached.
//
// Source of the meaning of the fields: the public Zabbix manual, "Web monitoring".
package webscenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/net/publicsuffix"

	"tidemark/collect/httpagent"
	"tidemark/collect/poller"
	"tidemark/internal/guard"
	"tidemark/internal/pcre"
	"tidemark/model"
)

const (
	// maxErrorRunes is the length of web.test.error, the longest text of its type in Zabbix.
	maxErrorRunes = 255
	// maxInFlight and maxPerHost are how many scenarios run at once.
	maxInFlight = 200
	maxPerHost  = 4
	// timeout bounds a scenario that says nothing of its own.
	timeout = time.Minute
)

// Requester makes requests; httpagent.Checker is one.
type Requester interface {
	Do(ctx context.Context, q httpagent.Query) (*httpagent.Answer, error)
}

// Checker makes web scenarios. It implements poller.Checker.
type Checker struct {
	requests             Requester
	steps, failed, retry *metrics.Counter
}

// New returns a checker; set, if not nil, takes its metrics.
func New(requests Requester, set *metrics.Set) *Checker {
	if set == nil {
		set = metrics.NewSet()
	}
	return &Checker{
		requests: requests,
		steps:    set.GetOrCreateCounter("tidemark_webscenario_steps_total"),
		failed:   set.GetOrCreateCounter("tidemark_webscenario_failed_steps_total"),
		retry:    set.GetOrCreateCounter("tidemark_webscenario_retried_steps_total"),
	}
}

// Kind returns the kind of checks that a poller makes with the checker.
func (c *Checker) Kind() poller.Kind {
	return poller.Kind{Name: "web scenario", Types: []model.ItemType{model.WebTest}, Checker: c, MaxInFlight: maxInFlight, MaxPerHost: maxPerHost, Timeout: timeout}
}

// Check implements poller.Checker.
func (c *Checker) Check(ctx context.Context, tasks []*poller.Task, results []poller.Result) {
	for i, t := range tasks {
		if t.Item.Collect == nil || t.Item.Collect.Web == nil {
			results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte("the web scenario has no steps")}
			continue
		}
		outcome := c.Run(ctx, t.Item.Collect.Web)
		outcome.Error = t.Item.Conceal(outcome.Error) // it becomes a value, which nobody else looks at
		text, err := json.Marshal(outcome)
		if err != nil {
			results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte(err.Error())}
			continue
		}
		results[i] = poller.Result{Outcome: poller.Value, Text: text}
	}
}

// Outcome is what a scenario brought.
type Outcome struct {
	// Fail is the number of the step that failed, from 1; zero for none. Error says why; empty for none.
	Fail  int    `json:"fail"`
	Error string `json:"error,omitempty"`
	// In is the mean of the download speeds of the steps, in bytes a second; nil when no step was answered.
	In *float64 `json:"in,omitempty"`
	// Steps has an entry for each step of the scenario; one that was not answered is empty.
	Steps []StepOutcome `json:"steps"`
}

// StepOutcome is what one step brought: bytes a second, seconds and the status of the answer.
type StepOutcome struct {
	In     *float64 `json:"in,omitempty"`
	Time   *float64 `json:"time,omitempty"`
	Status *int     `json:"rspcode,omitempty"`
}

// Run makes the requests of a scenario until one fails or ctx ends.
func (c *Checker) Run(ctx context.Context, w *model.WebScenario) Outcome {
	out := Outcome{Steps: make([]StepOutcome, len(w.Steps))}
	jar, err := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List})
	if err != nil {
		return Outcome{Fail: 1, Error: err.Error(), Steps: out.Steps}
	}
	r := &run{checker: c, scenario: w, jar: jar, variables: make(map[string]string)}
	if err := r.take(w.Variables, nil, true); err != nil {
		return Outcome{Fail: 1, Error: clip(err.Error()), Steps: out.Steps}
	}
	var speeds float64
	answered := 0
	for i := range w.Steps {
		c.steps.Inc()
		answer, err := r.step(ctx, &w.Steps[i])
		if answer != nil {
			speed, took, status := rate(answer), answer.Took.Seconds(), answer.Status
			out.Steps[i] = StepOutcome{In: &speed, Time: &took, Status: &status}
			speeds += speed
			answered++
		}
		if err != nil {
			c.failed.Inc()
			out.Fail, out.Error = i+1, clip(fmt.Sprintf("step %q: %v", w.Steps[i].Name, err))
			break
		}
	}
	if answered > 0 {
		mean := speeds / float64(answered)
		out.In = &mean
	}
	return out
}

// rate is the download speed of an answer in bytes a second.
func rate(a *httpagent.Answer) float64 {
	if a.Took <= 0 {
		return 0
	}
	return float64(a.ReceivedBytes) / a.Took.Seconds()
}

func clip(text string) string {
	if utf8.RuneCountInString(text) <= maxErrorRunes {
		return text
	}
	return string([]rune(text)[:maxErrorRunes-1]) + "…"
}

// run is one run of a scenario.
type run struct {
	checker   *Checker
	scenario  *model.WebScenario
	jar       http.CookieJar
	variables map[string]string
}

// step makes one request. The answer is nil when there was none.
func (r *run) step(ctx context.Context, s *model.WebStep) (*httpagent.Answer, error) {
	request, err := r.request(s)
	if err != nil {
		return nil, err
	}
	w := r.scenario
	q := httpagent.Query{Request: request, AuthType: w.AuthType, Username: r.fill(w.Username), Password: r.fill(w.Password), Jar: r.jar}
	var answer *httpagent.Answer
	for attempt := range max(1, w.Attempts) {
		if attempt > 0 {
			r.checker.retry.Inc()
		}
		limited, cancel := context.WithTimeout(ctx, s.Timeout)
		answer, err = r.checker.requests.Do(limited, q)
		cancel()
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return nil, explain(err)
	}
	return answer, r.judge(s, answer)
}

// judge says whether an answer is as expected, and takes the variables out of it.
func (r *run) judge(s *model.WebStep, a *httpagent.Answer) error {
	text := a.Body
	switch s.Retrieve {
	case "HEADERS":
		text = []byte(a.Head)
	case "BOTH":
		text = bytes.Join([][]byte{[]byte(a.Head), a.Body}, []byte("\r\n"))
	}
	if s.Required != "" {
		re, err := pcre.Compile(s.Required)
		if err != nil {
			return err
		}
		found, err := re.Match(text)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("required pattern %q was not found in what %s answered", s.Required, r.fill(s.URL))
		}
	}
	if !httpagent.Matches(s.StatusCodes, a.Status) {
		return fmt.Errorf("response code %d did not match any of the required status codes %q", a.Status, s.StatusCodes)
	}
	if err := r.take(r.scenario.Variables, text, false); err != nil {
		return err
	}
	// A step's variables hold from the next step on.
	return r.take(s.Variables, text, true)
}

// request makes the request of a step, its variables filled in.
func (r *run) request(s *model.WebStep) (*model.HTTPRequest, error) {
	w := r.scenario
	q := &model.HTTPRequest{
		URL: r.fill(s.URL), Query: r.fillAll(s.Query), Posts: r.fill(s.Posts), Method: http.MethodGet, PostType: "RAW", FollowRedirects: s.FollowRedirects,
		Retrieve: s.Retrieve, Proxy: w.Proxy, CertFile: w.CertFile, KeyFile: w.KeyFile, KeyPassword: w.KeyPassword, VerifyPeer: w.VerifyPeer, VerifyHost: w.VerifyHost,
	}
	if len(s.Form) > 0 {
		var fields []string
		for _, f := range r.fillAll(s.Form) {
			fields = append(fields, url.QueryEscape(f.Name)+"="+url.QueryEscape(f.Value))
		}
		q.Posts = strings.Join(fields, "&")
	}
	switch {
	case q.Posts != "":
		q.Method = http.MethodPost
	case s.Retrieve == "HEADERS":
		q.Method = http.MethodHead
	}
	// A step's headers stand for those of the scenario.
	headers := w.Headers
	if len(s.Headers) > 0 {
		headers = s.Headers
	}
	if w.Agent != "" {
		q.Headers = append(q.Headers, model.Pair{Name: "User-Agent", Value: w.Agent})
	}
	q.Headers = append(q.Headers, r.fillAll(headers)...)
	if size := len(q.URL) + len(q.Posts); size > maxFilledBytes {
		return nil, fmt.Errorf("with its variables the request has %d bytes; at most %d are sent", size, maxFilledBytes)
	}
	return q, nil
}

// explain says what to do, without the URL, which may hold a password.
func explain(err error) error {
	var refused *guard.Error
	var slow net.Error
	var asURL *url.Error
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return errors.New("the server did not answer in time; a longer timeout can be set for the step")
	case errors.As(err, &asURL):
		return asURL.Err
	}
	return err
}

// String is the outcome for people.
func (o Outcome) String() string {
	if o.Fail == 0 {
		return "all steps are as expected"
	}
	return "step " + strconv.Itoa(o.Fail) + ": " + o.Error
}
