// Package ipmi asks management controllers for their sensors over IPMI 2.0.
//
// What is due together at a controller is one session: the sensors' descriptions are remembered for a while, so that it is one question for
// each sensor. A controller that does not answer is an interface that is not available; one that refuses the user makes the items unsupported.
//
// Source of the meaning: the public Zabbix manual, "IPMI checks" and "Discovery of IPMI sensors".
package ipmi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect/poller"
	"tidemark/model"
	"tidemark/wire/ipmi"
)

const (
	// timeout bounds a call with all its sensors: controllers are slow.
	timeout = 30 * time.Second
	// maxBatch is how many items are one session.
	maxBatch = 128
	// knownFor is how long the descriptions of sensors are believed.
	knownFor = 10 * time.Minute
	// maxKnown bounds the descriptions that are remembered, of all controllers.
	maxKnown = 500_000
	// refusedFor is how long a user that was refused is not tried again: controllers lock users out, and have few sessions.
	refusedFor = time.Minute
	// maxRefused bounds the controllers for which that is remembered.
	maxRefused = 100_000
	// closeTimeout bounds the end of a session.
	closeTimeout = time.Second
)

// Options are the settings of a Checker.
type Options struct {
	// Resend is how long an answer is waited for before a request is sent again; zero is a second.
	Resend  time.Duration
	Metrics *metrics.Set
}

// Checker asks management controllers. It implements poller.Checker.
type Checker struct {
	o                      Options
	sent, resent, sessions *metrics.Counter

	mu    sync.Mutex
	known map[controllerKey]*sensors
	count int
	// refused are the controllers that refused a user, until when it is not tried again, and why.
	refused map[controllerKey]refusal
}

type refusal struct {
	until time.Time
	err   *ipmi.RefusedError
}

// controllerKey is a controller as a user sees it.
type controllerKey struct {
	address string
	access  model.IPMIAccess
}

// sensors are the descriptions of a controller's sensors. They are not changed once they are remembered.
type sensors struct {
	at         time.Time
	records    []*ipmi.Record
	thresholds [][6]*float64
}

// New returns a checker.
func New(o Options) *Checker {
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	c := &Checker{
		o: o, known: make(map[controllerKey]*sensors), refused: make(map[controllerKey]refusal),
		sent:     o.Metrics.GetOrCreateCounter("tidemark_ipmi_sent_packets_total"),
		resent:   o.Metrics.GetOrCreateCounter("tidemark_ipmi_resent_packets_total"),
		sessions: o.Metrics.GetOrCreateCounter("tidemark_ipmi_sessions_total"),
	}
	o.Metrics.GetOrCreateGauge("tidemark_ipmi_known_sensors", func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return float64(c.count)
	})
	o.Metrics.GetOrCreateGauge("tidemark_ipmi_known_sensors_limit", func() float64 { return maxKnown })
	return c
}

// Kind returns the kind of checks that a poller makes with the checker.
func (c *Checker) Kind() poller.Kind {
	return poller.Kind{Name: "ipmi", Types: []model.ItemType{model.IPMI}, Checker: c, MaxInFlight: 500, MaxPerHost: 1, MaxBatch: maxBatch, Timeout: timeout}
}

// Check implements poller.Checker. All tasks are of one host and address.
func (c *Checker) Check(ctx context.Context, tasks []*poller.Task, results []poller.Result) {
	err := c.check(ctx, tasks, results)
	if err == nil {
		return
	}
	outcome := poller.Unreachable
	var refused *ipmi.RefusedError
	if errors.As(err, &refused) {
		outcome = poller.NotSupported
	}
	text := []byte(explain(ctx, tasks[0].Address, err))
	for i := range results {
		if results[i].Text == nil {
			results[i] = poller.Result{Outcome: outcome, Text: text}
		}
	}
}

func explain(ctx context.Context, address string, err error) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return "the management controller at " + address + " did not answer in time"
	}
	return "management controller at " + address + ": " + err.Error()
}

var privileges = map[string]ipmi.Privilege{
	"": ipmi.User, "CALLBACK": ipmi.Callback, "USER": ipmi.User, "OPERATOR": ipmi.Operator, "ADMIN": ipmi.Administrator,
}

// check opens a session and asks for all tasks. The error is one of the controller; what was asked before it is in results.
func (c *Checker) check(ctx context.Context, tasks []*poller.Task, results []poller.Result) error {
	key := controllerKey{address: tasks[0].Address}
	if h := tasks[0].Host; h != nil && h.IPMI != nil {
		key.access = *h.IPMI
	}
	privilege, ok := privileges[key.access.Privilege]
	if !ok {
		return &ipmi.RefusedError{Reason: fmt.Sprintf("privilege %s is not used; expected CALLBACK, USER, OPERATOR or ADMIN", key.access.Privilege)}
	}
	switch key.access.AuthType {
	case "", "DEFAULT", "RMCP_PLUS":
	default:
		return &ipmi.RefusedError{Reason: fmt.Sprintf("authentication %s is of IPMI 1.5, which is not spoken; expected DEFAULT or RMCP_PLUS", key.access.AuthType)}
	}
	if err := c.wasRefused(key); err != nil {
		return err
	}
	s, err := ipmi.Open(ctx, ipmi.Options{
		Address: key.address, Username: key.access.Username, Password: key.access.Password, Privilege: privilege, Resend: c.o.Resend, OnSent: c.sent.Inc, OnResent: c.resent.Inc,
	})
	var refused *ipmi.RefusedError
	if errors.As(err, &refused) {
		c.remember(key, refused)
	}
	if err != nil {
		return err
	}
	c.sessions.Inc()
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		_ = s.Close(ending) // nothing depends on it: sessions end by themselves
	}()
	call := &call{checker: c, session: s, key: key}
	if err := call.learn(ctx, false); err != nil {
		return err
	}
	for i, t := range tasks {
		text, err := call.task(ctx, t)
		var fault *faultError
		switch {
		case errors.As(err, &fault):
			results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte(fault.reason)}
		case err != nil:
			return err
		default:
			results[i] = poller.Result{Outcome: poller.Value, Text: []byte(text)}
		}
	}
	return nil
}

// wasRefused returns why a user is not tried now; nil when it is.
func (c *Checker) wasRefused(key controllerKey) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.refused[key]; ok && time.Now().Before(r.until) {
		return r.err
	}
	delete(c.refused, key)
	return nil
}

func (c *Checker) remember(key controllerKey, err *ipmi.RefusedError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.refused) >= maxRefused {
		clear(c.refused)
	}
	c.refused[key] = refusal{time.Now().Add(refusedFor), err}
}

// faultError is a matter of one item.
type faultError struct{ reason string }

func (e *faultError) Error() string { return e.reason }

// call is one session with what is known of the controller.
type call struct {
	checker *Checker
	session *ipmi.Session
	key     controllerKey
	known   *sensors
	// fresh is set when known was read in this call.
	fresh bool
}

// learn sees to it that the descriptions of sensors are known; again reads them anew.
func (l *call) learn(ctx context.Context, again bool) error {
	c := l.checker
	c.mu.Lock()
	known := c.known[l.key]
	c.mu.Unlock()
	if known != nil && !again && time.Since(known.at) < knownFor {
		l.known = known
		return nil
	}
	records, err := l.session.Records(ctx)
	if err != nil {
		return err
	}
	next := &sensors{at: time.Now(), records: records, thresholds: make([][6]*float64, len(records))}
	for i, r := range records {
		if next.thresholds[i], err = l.session.Thresholds(ctx, r); err != nil {
			return err
		}
	}
	l.known, l.fresh = next, true
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.known[l.key]; old != nil {
		c.count -= len(old.records)
	}
	if c.count+len(records) > maxKnown {
		clear(c.known)
		c.count = 0
	}
	c.known[l.key] = next
	c.count += len(records)
	return nil
}

// task makes the value of an item.
func (l *call) task(ctx context.Context, t *poller.Task) (string, error) {
	if t.Item.CheckKey() == "ipmi.get" {
		return l.all(ctx)
	}
	name := ""
	if t.Item.Collect != nil {
		name = strings.TrimSpace(t.Item.Collect.IPMISensor)
	}
	if name == "" {
		return "", &faultError{"the item names no sensor; give it one, or the key ipmi.get"}
	}
	i := l.find(name)
	if i < 0 && !l.fresh {
		// It may be new.
		if err := l.learn(ctx, true); err != nil {
			return "", err
		}
		i = l.find(name)
	}
	if i < 0 {
		return "", &faultError{fmt.Sprintf("the management controller has no sensor %q; an item with the key ipmi.get lists them", name)}
	}
	r := l.known.records[i]
	state, err := l.read(ctx, r)
	switch {
	case err != nil:
		return "", err
	case state.Absent:
		return "", &faultError{fmt.Sprintf("sensor %s has no reading now: its part is not there, or it is switched off", name)}
	case !r.Threshold():
		return strconv.Itoa(int(state.Bits)), nil
	case !state.HasValue:
		return "", &faultError{fmt.Sprintf("sensor %s has readings that cannot be turned into a value", name)}
	}
	return plain(state.Value), nil
}

// read reads a sensor; what the controller refuses is a fault of the item.
func (l *call) read(ctx context.Context, r *ipmi.Record) (ipmi.State, error) {
	state, err := l.session.Read(ctx, r)
	var code *ipmi.CodeError
	var foreign *ipmi.OwnerError
	if errors.As(err, &code) || errors.As(err, &foreign) {
		err = &faultError{err.Error()}
	}
	return state, err
}

// plain is a value without the noise of its formula.
func plain(v float64) string { return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64) }

// find finds a sensor: by its id, or with the prefix name: by its full name.
func (l *call) find(text string) int {
	byName := strings.HasPrefix(text, "name:")
	want := strings.TrimPrefix(strings.TrimPrefix(text, "name:"), "id:")
	for i, r := range l.known.records {
		if !byName && r.ID == want || byName && r.Name() == want {
			return i
		}
	}
	return -1
}

// sensorJSON is a sensor in the value of ipmi.get.
type sensorJSON struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Sensor  numbered `json:"sensor"`
	Reading numbered `json:"reading"`
	State   numbered `json:"state"`
	// Value is a measurement, or the bits of states.
	Value     any         `json:"value,omitempty"`
	Units     string      `json:"units,omitempty"`
	Threshold *boundsJSON `json:"threshold,omitempty"`
}

type numbered struct {
	Type int    `json:"type"`
	Text string `json:"text"`
}

type boundsJSON struct {
	Lower levelsJSON `json:"lower"`
	Upper levelsJSON `json:"upper"`
}

type levelsJSON struct {
	NonCritical    *json.Number `json:"non_crit,omitempty"`
	Critical       *json.Number `json:"crit,omitempty"`
	NonRecoverable *json.Number `json:"non_recover,omitempty"`
}

// all is the value of ipmi.get: all sensors with what they read now.
func (l *call) all(ctx context.Context) (string, error) {
	list := make([]sensorJSON, 0, len(l.known.records))
	for i, r := range l.known.records {
		state, err := l.read(ctx, r)
		var fault *faultError
		if errors.As(err, &fault) {
			state, err = ipmi.State{Absent: true}, nil
		}
		if err != nil {
			return "", err
		}
		list = append(list, describe(r, state, &l.known.thresholds[i]))
	}
	text, err := json.Marshal(list)
	return string(text), err
}

func describe(r *ipmi.Record, state ipmi.State, levels *[6]*float64) sensorJSON {
	out := sensorJSON{
		ID: r.ID, Name: r.Name(), Units: r.Units, Sensor: numbered{int(r.Type), r.TypeName()}, Reading: numbered{int(r.Reading), r.ReadingName()},
		State: numbered{int(state.Bits), strings.Join(r.Texts(state.Bits), ", ")},
	}
	switch {
	case state.Absent:
		out.State = numbered{0, "unavailable"}
	case !r.Threshold():
		out.Value = state.Bits
	case state.HasValue:
		out.Value = json.Number(plain(state.Value))
	}
	if r.Threshold() {
		number := func(i int) *json.Number {
			if levels[i] == nil {
				return nil
			}
			n := json.Number(plain(*levels[i]))
			return &n
		}
		out.Threshold = &boundsJSON{
			Lower: levelsJSON{number(ipmi.LowerNonCritical), number(ipmi.LowerCritical), number(ipmi.LowerNonRecoverable)},
			Upper: levelsJSON{number(ipmi.UpperNonCritical), number(ipmi.UpperCritical), number(ipmi.UpperNonRecoverable)},
		}
	}
	return out
}
