// Package jmx makes JMX checks through a Zabbix Java gateway, which speaks JMX and is asked by a frame of Zabbix's protocol.
//
// Source: the public Zabbix manual, "Java gateway"; docs/protocol/zabbix.md for frames.
package jmx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"tidemark/collect/poller"
	"tidemark/model"
	"tidemark/wire/zbx"
)

// Options are the settings of a Checker.
type Options struct {
	// Gateway is the address of the Java gateway, "host:port"; empty makes every item unsupported.
	Gateway string
}

const (
	// maxAnswerBytes bounds an answer.
	maxAnswerBytes = 16 << 20
	// maxBatch bounds the items of one request.
	maxBatch = 128
	// timeout is how long a request may take; the gateway has 3 s of its own for each connection.
	timeout = 10 * time.Second
)

// Checker makes JMX checks. It implements poller.Checker.
type Checker struct {
	o      Options
	dialer net.Dialer
}

// New returns a checker.
func New(o Options) *Checker { return &Checker{o: o} }

// Kind returns the kind of checks that a poller makes with the checker.
func (c *Checker) Kind() poller.Kind {
	return poller.Kind{Name: "jmx", Types: []model.ItemType{model.JMX}, Checker: c, MaxInFlight: 100, MaxPerHost: 1, MaxBatch: maxBatch, Timeout: timeout}
}

// target is what items must have in common to be asked for together.
type target struct{ endpoint, username, password string }

func targetOf(t *poller.Task) target {
	to := target{endpoint: "service:jmx:rmi:///jndi/rmi://{HOST.CONN}:{HOST.PORT}/jmxrmi"}
	if a := t.Item.Collect; a != nil {
		to.username, to.password = a.Username, a.Password
		if a.JMXEndpoint != "" {
			to.endpoint = a.JMXEndpoint
		}
	}
	if t.Interface != nil {
		to.endpoint = strings.NewReplacer("{HOST.CONN}", t.Interface.Address, "{HOST.PORT}", t.Interface.Port).Replace(to.endpoint)
	}
	return to
}

// Check implements poller.Checker.
func (c *Checker) Check(ctx context.Context, tasks []*poller.Task, results []poller.Result) {
	var order []target
	groups := make(map[target][]int)
	for i, t := range tasks {
		to := targetOf(t)
		if groups[to] == nil {
			order = append(order, to)
		}
		groups[to] = append(groups[to], i)
	}
	for _, to := range order {
		keys := make([]string, len(groups[to]))
		for n, i := range groups[to] {
			keys[n] = tasks[i].Item.CheckKey()
		}
		answers, outcome, why := c.ask(ctx, to, keys)
		for n, i := range groups[to] {
			if why != "" {
				results[i] = poller.Result{Outcome: outcome, Text: []byte(why)}
				continue
			}
			results[i] = answers[n]
		}
	}
}

// request and answer are those of the gateway.
type request struct {
	Request  string   `json:"request"`
	Endpoint string   `json:"jmx_endpoint"`
	Username string   `json:"username,omitempty"`
	Password string   `json:"password,omitempty"`
	Keys     []string `json:"keys"`
}

type answer struct {
	Response string `json:"response"`
	Error    string `json:"error"`
	Data     []struct {
		Value *string `json:"value"`
		Error string  `json:"error"`
	} `json:"data"`
}

// ask asks for keys; why is the reason when that fails as a whole.
func (c *Checker) ask(ctx context.Context, to target, keys []string) (list []poller.Result, outcome poller.Outcome, why string) {
	if c.o.Gateway == "" {
		return nil, poller.NotSupported, "this server has no Java gateway; set collect.java_gateway to the address of one"
	}
	body, err := json.Marshal(request{"java gateway jmx", to.endpoint, to.username, to.password, keys})
	if err != nil {
		return nil, poller.NotSupported, err.Error()
	}
	text, err := c.exchange(ctx, body)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, poller.Unreachable, "the Java gateway did not answer in time"
		}
		return nil, poller.Unreachable, fmt.Sprintf("the Java gateway at %s cannot be asked: %v", c.o.Gateway, err)
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, poller.Unreachable, fmt.Sprintf("the answer of the Java gateway cannot be read: %v", err)
	}
	switch {
	case a.Response != "success" && a.Error != "":
		return nil, poller.Unreachable, "the Java gateway says: " + a.Error
	case a.Response != "success" || len(a.Data) != len(keys):
		return nil, poller.Unreachable, fmt.Sprintf("the Java gateway answers %q with %d values, expected success with %d", a.Response, len(a.Data), len(keys))
	}
	list = make([]poller.Result, len(keys))
	for i, d := range a.Data {
		switch {
		case d.Value != nil:
			list[i] = poller.Result{Outcome: poller.Value, Text: []byte(*d.Value)}
		case d.Error != "":
			list[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte(d.Error)}
		default:
			list[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte("the Java gateway gives neither a value nor a reason")}
		}
	}
	return list, poller.Value, ""
}

func (c *Checker) exchange(ctx context.Context, body []byte) ([]byte, error) {
	nc, err := c.dialer.DialContext(ctx, "tcp", c.o.Gateway)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := nc.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if _, err := nc.Write(zbx.AppendFrame(nil, body)); err != nil {
		return nil, err
	}
	r := zbx.FrameReader{MaxBodyBytes: maxAnswerBytes, MaxInflatedBytes: maxAnswerBytes}
	_, text, err := r.Read(nc)
	return text, err
}
