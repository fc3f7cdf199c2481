package snmp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/gosnmp/gosnmp"

	"tidemark/collect/poller"
	"tidemark/model"
)

// sessionKey is what tasks must have in common to share a session.
type sessionKey struct {
	address string
	access  model.SNMPAccess
}

// session is a socket to a device. It serves one call at a time.
type session struct {
	*gosnmp.GoSNMP
	key sessionKey
	// limit is how long one request may take.
	limit time.Duration
}

// session returns a session for a task, kept or new.
func (c *Checker) session(ctx context.Context, t *poller.Task) (*session, error) {
	if t.Interface == nil || t.Interface.SNMP == nil {
		return nil, errors.New("the host's interface has no SNMP settings")
	}
	key := sessionKey{t.Address, *t.Interface.SNMP}
	limit := c.limit(t)
	c.mu.Lock()
	list := c.idle[key]
	if n := len(list); n > 0 {
		s := list[n-1]
		if c.idle[key] = list[:n-1]; n == 1 {
			delete(c.idle, key)
		}
		c.count--
		c.mu.Unlock()
		s.Context, s.Timeout, s.limit = ctx, limit, limit
		return s, nil
	}
	c.mu.Unlock()
	return c.connect(ctx, key, limit)
}

// limit is how long one request of a task may take.
func (c *Checker) limit(t *poller.Task) time.Duration {
	if t.Item.Collect != nil && t.Item.Collect.Timeout > 0 {
		return t.Item.Collect.Timeout
	}
	return c.o.Timeout
}

// giveBack keeps a session whose device answered.
func (c *Checker) giveBack(s *session, good bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !good || c.closed || c.count >= maxIdle {
		_ = s.Close()
		return
	}
	s.Context = context.Background()
	c.idle[s.key] = append(c.idle[s.key], s)
	c.count++
}

// connect makes a session.
func (c *Checker) connect(ctx context.Context, key sessionKey, limit time.Duration) (*session, error) {
	host, port, err := net.SplitHostPort(key.address)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %q: %w", port, err)
	}
	g := &gosnmp.GoSNMP{
		Target: host, Port: uint16(number), Transport: "udp", Context: ctx, Timeout: limit, Retries: retries, MaxOids: maxBatch,
		MaxRepetitions: uint32(min(max(key.access.MaxRepetitions, 0), maxRepetitions)),
		OnSent:         func(*gosnmp.GoSNMP) { c.requests.Inc() },
		OnRetry:        func(*gosnmp.GoSNMP) { c.timeouts.Inc() },
	}
	if g.MaxRepetitions == 0 {
		g.MaxRepetitions = defaultRepetitions
	}
	if err := Configure(g, &key.access); err != nil {
		return nil, err
	}
	if err := g.Connect(); err != nil {
		return nil, fmt.Errorf("device %s: %w", key.address, err)
	}
	return &session{GoSNMP: g, key: key, limit: limit}, nil
}

// Configure sets version and credentials.
func Configure(g *gosnmp.GoSNMP, a *model.SNMPAccess) error {
	switch a.Version {
	case "SNMPV1":
		g.Version, g.Community = gosnmp.Version1, a.Community
		return nil
	case "SNMPV2", "":
		g.Version, g.Community = gosnmp.Version2c, a.Community
		return nil
	case "SNMPV3":
	default:
		return fmt.Errorf("SNMP version %q is not known; expected SNMPV1, SNMPV2 or SNMPV3", a.Version)
	}
	security, flags, err := usm(a)
	if err != nil {
		return err
	}
	g.Version, g.SecurityModel, g.MsgFlags, g.SecurityParameters, g.ContextName = gosnmp.Version3, gosnmp.UserSecurityModel, flags, security, a.Context
	return nil
}

var authProtocols = map[string]gosnmp.SnmpV3AuthProtocol{
	"": gosnmp.MD5, "MD5": gosnmp.MD5, "SHA1": gosnmp.SHA, "SHA224": gosnmp.SHA224, "SHA256": gosnmp.SHA256, "SHA384": gosnmp.SHA384, "SHA512": gosnmp.SHA512,
}

var privProtocols = map[string]gosnmp.SnmpV3PrivProtocol{
	"": gosnmp.DES, "DES": gosnmp.DES, "AES128": gosnmp.AES, "AES192": gosnmp.AES192, "AES256": gosnmp.AES256, "AES192C": gosnmp.AES192C, "AES256C": gosnmp.AES256C,
}

// minPassphrase is what RFC 3414 asks for.
const minPassphrase = 8

// usm makes the security settings of version 3.
func usm(a *model.SNMPAccess) (*gosnmp.UsmSecurityParameters, gosnmp.SnmpV3MsgFlags, error) {
	p := &gosnmp.UsmSecurityParameters{UserName: a.SecurityName, AuthenticationProtocol: gosnmp.NoAuth, PrivacyProtocol: gosnmp.NoPriv}
	flags := gosnmp.NoAuthNoPriv
	if a.SecurityName == "" {
		return nil, 0, errors.New("SNMP version 3 needs a security name")
	}
	switch a.SecurityLevel {
	case "NOAUTHNOPRIV", "":
		return p, flags | gosnmp.Reportable, nil
	case "AUTHNOPRIV":
		flags = gosnmp.AuthNoPriv
	case "AUTHPRIV":
		flags = gosnmp.AuthPriv
	default:
		return nil, 0, fmt.Errorf("security level %q is not known; expected NOAUTHNOPRIV, AUTHNOPRIV or AUTHPRIV", a.SecurityLevel)
	}
	var ok bool
	if p.AuthenticationProtocol, ok = authProtocols[a.AuthProtocol]; !ok {
		return nil, 0, fmt.Errorf("authentication protocol %q is not known; expected MD5, SHA1, SHA224, SHA256, SHA384 or SHA512", a.AuthProtocol)
	}
	if len(a.AuthPassphrase) < minPassphrase {
		return nil, 0, fmt.Errorf("the authentication passphrase has fewer than %d characters", minPassphrase)
	}
	p.AuthenticationPassphrase = a.AuthPassphrase
	if flags == gosnmp.AuthPriv {
		if p.PrivacyProtocol, ok = privProtocols[a.PrivProtocol]; !ok {
			return nil, 0, fmt.Errorf("privacy protocol %q is not known; expected DES, AES128, AES192, AES256, AES192C or AES256C", a.PrivProtocol)
		}
		if len(a.PrivPassphrase) < minPassphrase {
			return nil, 0, fmt.Errorf("the privacy passphrase has fewer than %d characters", minPassphrase)
		}
		p.PrivacyPassphrase = a.PrivPassphrase
	}
	return p, flags | gosnmp.Reportable, nil
}
