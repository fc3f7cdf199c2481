// Package simple makes simple checks: whether a service answers and how quickly, what certificate it shows, and pings by a Pinger.
//
// Sources: the public Zabbix manual, "Simple checks" and "Implementation details of net.tcp.service"; the RFCs of the protocols.
package simple

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"tidemark/collect/poller"
	"tidemark/expr"
	"tidemark/internal/guard"
	"tidemark/model"
)

// Pinger makes the checks whose key begins with icmpping.
type Pinger interface {
	// Ping makes a check; target is the address to be used where the key has none. The error makes the item unsupported.
	Ping(ctx context.Context, key, target string) (string, error)
}

// Options are the settings of a Checker.
type Options struct {
	// Rules say what must not be reached; nil allows everything.
	Rules *guard.Rules
	// Pinger may be nil: pings are not supported then.
	Pinger Pinger
}

// Checker makes simple checks. It implements poller.Checker.
type Checker struct {
	o      Options
	dialer net.Dialer
}

const (
	// defaultTimeout is how long a service may take.
	defaultTimeout = 3 * time.Second
	// maxTimeout bounds a call; pings set their own end.
	maxTimeout = 10 * time.Minute
)

// New returns a checker.
func New(o Options) *Checker { return &Checker{o: o, dialer: net.Dialer{Control: o.Rules.Control}} }

// Kind returns the kind of checks that a poller makes with the checker.
func (c *Checker) Kind() poller.Kind {
	return poller.Kind{Name: "simple check", Types: []model.ItemType{model.SimpleCheck}, Checker: c, MaxPerHost: 16, Timeout: maxTimeout}
}

// Check implements poller.Checker.
func (c *Checker) Check(ctx context.Context, tasks []*poller.Task, results []poller.Result) {
	for i, t := range tasks {
		value, err := c.check(ctx, t)
		if err != nil {
			results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte(err.Error())}
			continue
		}
		results[i] = poller.Result{Outcome: poller.Value, Text: []byte(value)}
	}
}

func (c *Checker) check(ctx context.Context, t *poller.Task) (string, error) {
	key, target := t.Item.CheckKey(), ""
	if t.Interface != nil {
		target = t.Interface.Address
	}
	name, params := expr.SplitKey(key)
	if strings.HasPrefix(name, "icmpping") {
		if c.o.Pinger == nil {
			return "", errors.New("pings are switched off on this server")
		}
		return c.o.Pinger.Ping(ctx, key, target)
	}
	limit := t.Timeout
	if limit <= 0 {
		limit = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch name {
	case "net.tcp.service", "net.udp.service":
		took, err := c.service(ctx, name, params, target)
		if err != nil {
			return "", err
		}
		if took < 0 {
			return "0", nil
		}
		return "1", nil
	case "net.tcp.service.perf", "net.udp.service.perf":
		took, err := c.service(ctx, name, params, target)
		if err != nil {
			return "", err
		}
		if took < 0 {
			return "0", nil
		}
		// Never zero, which stands for a service that does not answer.
		return strconv.FormatFloat(max(took.Seconds(), 0.0001), 'f', 6, 64), nil
	case "web.certificate.get":
		return c.certificate(ctx, params)
	}
	return "", fmt.Errorf("key %s is not known; expected net.tcp.service, net.udp.service, web.certificate.get or icmpping", name)
}

// protocol is how a service is told from something else that listens.
type protocol struct {
	port string
	// talk reports whether the peer speaks the protocol; nil: a connection is enough.
	talk func(ctx context.Context, nc net.Conn) bool
}

func protocolOf(name string) (protocol, bool) {
	switch name {
	case "tcp":
		return protocol{}, true
	case "http":
		return protocol{port: "80"}, true
	case "https":
		return protocol{"443", talkHTTPS}, true
	case "ssh":
		return protocol{"22", talkSSH}, true
	case "smtp":
		return protocol{"25", greeting("QUIT\r\n", "220")}, true
	case "ftp":
		return protocol{"21", greeting("QUIT\r\n", "220")}, true
	case "pop":
		return protocol{"110", greeting("QUIT\r\n", "+OK")}, true
	case "nntp":
		return protocol{"119", greeting("QUIT\r\n", "200", "201")}, true
	case "imap":
		return protocol{"143", greeting("a1 LOGOUT\r\n", "* OK")}, true
	case "ldap":
		return protocol{"389", talkLDAP}, true
	case "telnet":
		return protocol{"23", talkTelnet}, true
	case "ntp":
		return protocol{"123", talkNTP}, true
	}
	return protocol{}, false
}

// service measures how long a service takes to answer; below zero when it does not. The error is one of the key.
func (c *Checker) service(ctx context.Context, key string, params []string, target string) (time.Duration, error) {
	network := "tcp"
	if strings.HasPrefix(key, "net.udp") {
		network = "udp"
	}
	if len(params) < 1 || len(params) > 3 {
		return 0, fmt.Errorf("%s has %d parameters, expected service, address and port", key, len(params))
	}
	params = append(params, "", "")
	p, ok := protocolOf(params[0])
	if !ok || (network == "udp") != (params[0] == "ntp") {
		if network == "udp" {
			return 0, fmt.Errorf("service %q is not known; expected ntp", params[0])
		}
		return 0, fmt.Errorf("service %q is not known; expected ssh, ldap, smtp, ftp, http, pop, nntp, imap, tcp, https or telnet", params[0])
	}
	if params[1] != "" {
		target = params[1]
	}
	if target == "" {
		return 0, errors.New("the key has no address and the host no interface; give it one of both")
	}
	port := params[2]
	if port == "" {
		port = p.port
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return 0, fmt.Errorf("port %q; expected a number from 1 to 65535", port)
	}
	start := time.Now()
	nc, err := c.dialer.DialContext(ctx, network, net.JoinHostPort(strings.Trim(target, "[]"), port))
	if err != nil {
		var refused *guard.Error
		if errors.As(err, &refused) {
			return 0, refused
		}
		return -1, nil
	}
	defer nc.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = nc.SetDeadline(deadline)
	}
	if p.talk != nil && !p.talk(ctx, nc) {
		return -1, nil
	}
	return time.Since(start), nil
}
