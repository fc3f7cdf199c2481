// Package collectors puts the collectors together for the processes that ask for values: the server and the proxy.
//
// It is the table of the kinds of checks, how an item becomes a task of the poller, and the listener for SNMP traps over a configuration.
package collectors

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/collect/database"
	"tidemark/collect/external"
	"tidemark/collect/httpagent"
	"tidemark/collect/icmp"
	"tidemark/collect/ipmi"
	"tidemark/collect/jmx"
	"tidemark/collect/poller"
	"tidemark/collect/script"
	"tidemark/collect/simple"
	"tidemark/collect/snmp"
	"tidemark/collect/ssh"
	"tidemark/collect/webscenario"
	"tidemark/internal/guard"
	scripts "tidemark/preproc/script"
)

// Options are the settings of the collectors that ask for values, besides those of agents.
type Options struct {
	// Allowed, if not empty, are the only networks that HTTP agents, simple checks and the like may reach; Denied they may never.
	// OwnPorts are this process' own TCP ports, which they may not reach either.
	Allowed, Denied []netip.Prefix
	OwnPorts        []uint16
	// SSLFolder holds certificates and keys that items name; it is created.
	SSLFolder string
	// ExternalScripts is the folder of programs for external checks; it need not exist.
	ExternalScripts string
	// JavaGateway is the address of a Zabbix Java gateway for JMX items; empty for none.
	JavaGateway string
	// ScriptWorker is the command of a process that runs JavaScript; empty: there are no script items.
	ScriptWorker []string
	// Version is what HTTP servers are told of this program.
	Version string
	Metrics *metrics.Set
}

// scriptWorkers is how many script items run at once.
const scriptWorkers = 4

// Rules are what checks and scripts must not reach.
func (o *Options) Rules() guard.Options {
	return guard.Options{Allowed: o.Allowed, Denied: o.Denied, OwnPorts: o.OwnPorts}
}

// Set are open collectors.
type Set struct {
	Kinds   []poller.Kind
	closers []io.Closer
}

// Open makes the collectors.
func Open(o Options) (*Set, error) {
	rules := guard.New(o.Rules())
	if err := os.MkdirAll(o.SSLFolder, 0o700); err != nil {
		return nil, err
	}
	files, err := os.OpenRoot(o.SSLFolder)
	if err != nil {
		return nil, err
	}
	pinger := icmp.New(icmp.Options{Rules: rules, Metrics: o.Metrics})
	web := httpagent.New(httpagent.Options{Rules: rules, Files: files.FS(), Agent: "Tidemark " + o.Version})
	scenarios := webscenario.New(web, o.Metrics)
	devices := snmp.New(snmp.Options{Metrics: o.Metrics})
	shells := ssh.New(ssh.Options{Rules: rules, Files: files.FS(), KnownHosts: filepath.Join(o.SSLFolder, "known_hosts")})
	s := &Set{
		Kinds: []poller.Kind{
			devices.Kind(), web.Kind(), scenarios.Kind(), simple.New(simple.Options{Rules: rules, Pinger: pinger}).Kind(), shells.Kind(),
			database.New(database.Options{Rules: rules}).Kind(), jmx.New(jmx.Options{Gateway: o.JavaGateway}).Kind(), ipmi.New(ipmi.Options{Metrics: o.Metrics}).Kind(),
			external.New(o.ExternalScripts).Kind(),
		},
		closers: []io.Closer{devices, web, pinger, files},
	}
	if len(o.ScriptWorker) > 0 {
		// Processes of their own: a script that waits for a page must not keep values from their steps.
		runner := scripts.New(scripts.Options{Command: o.ScriptWorker, Workers: scriptWorkers, Rules: o.Rules()})
		s.Kinds = append(s.Kinds, script.New(runner, scriptWorkers).Kind())
		s.closers = append(s.closers, runner)
	}
	return s, nil
}

// Close ends what the collectors keep open. No check may be under way.
func (s *Set) Close() error {
	var errs []error
	for _, closer := range s.closers {
		errs = append(errs, closer.Close())
	}
	s.closers = nil
	return errors.Join(errs...)
}
