// Package ssh makes SSH checks: it logs in to a host, runs a command, and takes what that prints as the value.
//
// Source of the meaning of the fields: the public Zabbix manual, "SSH checks".
package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/net/html/charset"

	"tidemark/collect/poller"
	"tidemark/expr"
	"tidemark/internal/guard"
	"tidemark/model"
)

// Options are the settings of a Checker.
type Options struct {
	// Rules say what must not be reached; nil allows everything.
	Rules *guard.Rules
	// Files holds the keys that items name; nil for none.
	Files fs.FS
	// KnownHosts is a file with the keys of hosts, as OpenSSH has it. While it does not exist every host key is taken.
	KnownHosts string
	// MaxOutputBytes bounds what a command may print; zero is 16 MiB.
	MaxOutputBytes int
}

// defaultTimeout is how long a check may take.
const defaultTimeout = 3 * time.Second

// Checker makes SSH checks. It implements poller.Checker.
type Checker struct {
	o      Options
	dialer net.Dialer
}

// New returns a checker.
func New(o Options) *Checker {
	if o.MaxOutputBytes <= 0 {
		o.MaxOutputBytes = 16 << 20
	}
	return &Checker{o: o, dialer: net.Dialer{Control: o.Rules.Control}}
}

// Kind returns the kind of checks that a poller makes with the checker.
func (c *Checker) Kind() poller.Kind {
	return poller.Kind{Name: "ssh", Types: []model.ItemType{model.SSH}, Checker: c, MaxInFlight: 200, MaxPerHost: 2, Timeout: defaultTimeout}
}

// Check implements poller.Checker.
func (c *Checker) Check(ctx context.Context, tasks []*poller.Task, results []poller.Result) {
	for i, t := range tasks {
		value, err := c.check(ctx, t)
		if err == nil {
			results[i] = poller.Result{Outcome: poller.Value, Text: value}
			continue
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errors.New("the host did not answer in time; a longer timeout can be set for the item")
		}
		results[i] = poller.Result{Outcome: poller.NotSupported, Text: []byte(err.Error())}
	}
}

// query is a check: ssh.run[name,<address>,<port>,<encoding>].
type query struct {
	address, encoding string
}

func parse(key, target string) (*query, error) {
	name, params := expr.SplitKey(key)
	if name != "ssh.run" || len(params) < 1 || len(params) > 5 || params[0] == "" {
		return nil, fmt.Errorf("key %s is not known; expected ssh.run[name,<address>,<port>,<encoding>]", name)
	}
	params = append(params, "", "", "", "")
	if params[1] != "" {
		target = params[1]
	}
	if target == "" {
		return nil, errors.New("the key has no address and the host no interface; give it one of both")
	}
	port := params[2]
	if port == "" {
		port = "22"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, fmt.Errorf("port %q; expected a number from 1 to 65535", port)
	}
	if params[4] != "" {
		return nil, errors.New("options for algorithms are not taken: those that are safe are offered")
	}
	return &query{net.JoinHostPort(strings.Trim(target, "[]"), port), params[3]}, nil
}

func (c *Checker) check(ctx context.Context, t *poller.Task) ([]byte, error) {
	target := ""
	if t.Interface != nil {
		target = t.Interface.Address
	}
	q, err := parse(t.Item.CheckKey(), target)
	if err != nil {
		return nil, err
	}
	if t.Item.Collect == nil || t.Item.Collect.Username == "" {
		return nil, errors.New("the item has no user name")
	}
	settings, err := c.settings(t.Item.Collect)
	if err != nil {
		return nil, err
	}
	out, err := c.run(ctx, q.address, settings, strings.ReplaceAll(t.Item.Params, "\r", ""))
	if err != nil {
		return nil, err
	}
	if q.encoding != "" {
		r, err := charset.NewReaderLabel(q.encoding, bytes.NewReader(out))
		if err != nil {
			return nil, fmt.Errorf("encoding %q is not known", q.encoding)
		}
		if out, err = io.ReadAll(io.LimitReader(r, int64(4*c.o.MaxOutputBytes))); err != nil {
			return nil, err
		}
	}
	return bytes.TrimRight(bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n")), "\r\n"), nil
}

// settings are how an item logs in.
func (c *Checker) settings(a *model.Collect) (*ssh.ClientConfig, error) {
	s := &ssh.ClientConfig{User: a.Username, HostKeyCallback: ssh.InsecureIgnoreHostKey()}
	if c.o.KnownHosts != "" {
		known, err := knownhosts.New(c.o.KnownHosts)
		switch {
		case err == nil:
			s.HostKeyCallback = known
		case !errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("known_hosts: %w", err)
		}
	}
	switch a.AuthType {
	case "", "PASSWORD":
		answer := func(_, _ string, questions []string, _ []bool) ([]string, error) {
			answers := make([]string, len(questions))
			for i := range answers {
				answers[i] = a.Password
			}
			return answers, nil
		}
		s.Auth = []ssh.AuthMethod{ssh.Password(a.Password), ssh.KeyboardInteractive(answer)}
	case "PUBLIC_KEY":
		if c.o.Files == nil {
			return nil, errors.New("this server has no folder with keys for items")
		}
		text, err := fs.ReadFile(c.o.Files, a.PrivateKey)
		if err != nil {
			return nil, fmt.Errorf("key %q is not in the server's folder for keys", a.PrivateKey)
		}
		signer, err := signer(text, a.Password)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", a.PrivateKey, err)
		}
		s.Auth = []ssh.AuthMethod{ssh.PublicKeys(signer)}
	default:
		return nil, fmt.Errorf("authentication of type %s is not known; expected PASSWORD or PUBLIC_KEY", a.AuthType)
	}
	return s, nil
}

// signer reads a private key; the password is that of the key, if it has one.
func signer(text []byte, password string) (ssh.Signer, error) {
	s, err := ssh.ParsePrivateKey(text)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return ssh.ParsePrivateKeyWithPassphrase(text, []byte(password))
	}
	return s, err
}

// run logs in, runs a command until ctx ends, and returns what it prints.
func (c *Checker) run(ctx context.Context, address string, settings *ssh.ClientConfig, command string) ([]byte, error) {
	nc, err := c.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	defer nc.Close()
	// The connection gets no deadline of its own: it could end a moment before ctx, and a command that was cut off would count as one that ended.
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, channels, requests, err := ssh.NewClientConn(nc, address, settings)
	if err != nil {
		// The library says the second when a server takes no further kind of authentication.
		if strings.Contains(err.Error(), "unable to authenticate") || strings.Contains(err.Error(), "unexpected message type 51") {
			return nil, errors.New("cannot log in: the host refuses the user name with this password or key")
		}
		return nil, fmt.Errorf("cannot log in: %w", err)
	}
	client := ssh.NewClient(conn, channels, requests)
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return nil, fmt.Errorf("cannot open a session: %w", err)
	}
	defer session.Close()
	out := &bounded{limit: c.o.MaxOutputBytes}
	session.Stdout = out
	if err := session.Run(command); err != nil {
		var exit *ssh.ExitError
		var missing *ssh.ExitMissingError
		// As in Zabbix, what a command prints counts, not how it ends.
		if !out.full && (ctx.Err() != nil || !errors.As(err, &exit) && !errors.As(err, &missing)) {
			return nil, fmt.Errorf("cannot run the command: %w", err)
		}
	}
	if out.full {
		return nil, fmt.Errorf("the command prints more than %d bytes", out.limit)
	}
	return out.text, nil
}

// bounded keeps what is written up to a limit.
type bounded struct {
	limit int
	text  []byte
	full  bool
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if len(b.text)+len(p) > b.limit {
		b.full = true
		return 0, io.ErrShortWrite
	}
	b.text = append(b.text, p...)
	return len(p), nil
}
