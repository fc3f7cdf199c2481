package server

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"tidemark/collect/database"
	"tidemark/collect/httpagent"
	"tidemark/collect/icmp"
	"tidemark/collect/jmx"
	"tidemark/collect/poller"
	"tidemark/collect/script"
	"tidemark/collect/simple"
	"tidemark/collect/snmp"
	"tidemark/collect/ssh"
	"tidemark/internal/guard"
	scripts "tidemark/preproc/script"
)

// CollectOptions are the settings of checks that the server makes.
type CollectOptions struct {
	// Allowed, if not empty, are the only networks that HTTP agents, simple checks and the like may reach; Denied they may never.
	Allowed, Denied []netip.Prefix
	// SSLFolder holds certificates and keys that items name; empty is the folder ssl in the data folder.
	SSLFolder string
	// JavaGateway is the address of a Zabbix Java gateway for JMX items; empty for none.
	JavaGateway string
	// Traps, if not nil, is the UDP socket for SNMP traps; Run closes it.
	Traps net.PacketConn
}

// checks are the collectors that ask for values, besides those of agents.
type checks struct {
	kinds   []poller.Kind
	closers []io.Closer
}

// openChecks makes the collectors.
func (s *Server) openChecks() (*checks, error) {
	o := s.o.Collect
	rules := guard.New(s.rules())
	folder := o.SSLFolder
	if folder == "" {
		folder = filepath.Join(s.o.Data, "ssl")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
	}
	files, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	pinger := icmp.New(icmp.Options{Rules: rules, Metrics: s.metrics})
	web := httpagent.New(httpagent.Options{Rules: rules, Files: files.FS(), Agent: "Tidemark " + s.o.Version})
	devices := snmp.New(snmp.Options{Metrics: s.metrics})
	shells := ssh.New(ssh.Options{Rules: rules, Files: files.FS(), KnownHosts: filepath.Join(folder, "known_hosts")})
	c := &checks{
		kinds: []poller.Kind{
			devices.Kind(), web.Kind(), simple.New(simple.Options{Rules: rules, Pinger: pinger}).Kind(), shells.Kind(),
			database.New(database.Options{Rules: rules}).Kind(), jmx.New(jmx.Options{Gateway: o.JavaGateway}).Kind(),
		},
		closers: []io.Closer{devices, web, pinger, files},
	}
	if len(s.o.ScriptWorker) > 0 {
		// Processes of their own: a script that waits for a page must not keep values from their steps.
		runner := scripts.New(scripts.Options{Command: s.o.ScriptWorker, Workers: scriptWorkers, Rules: s.rules()})
		c.kinds = append(c.kinds, script.New(runner, scriptWorkers).Kind())
		c.closers = append(c.closers, runner)
	}
	return c, nil
}

// rules are what checks and scripts must not reach.
func (s *Server) rules() guard.Options {
	return guard.Options{Allowed: s.o.Collect.Allowed, Denied: s.o.Collect.Denied, OwnPorts: ports(s.o.HTTP)}
}

// scriptWorkers is how many script items run at once.
const scriptWorkers = 4

// Close ends what the collectors keep open. No check may be under way.
func (c *checks) Close() error {
	var errs []error
	for _, closer := range c.closers {
		errs = append(errs, closer.Close())
	}
	c.closers = nil
	return errors.Join(errs...)
}

// ports are the TCP ports of listeners.
func ports(list ...net.Listener) []uint16 {
	var out []uint16
	for _, l := range list {
		if l == nil {
			continue
		}
		if at, ok := l.Addr().(*net.TCPAddr); ok {
			out = append(out, uint16(at.Port))
		}
	}
	return out
}
