package server

import (
	"cmp"
	"net"
	"net/netip"
	"path/filepath"

	"tidemark/collectors"
	"tidemark/internal/guard"
)

// CollectOptions are the settings of checks that the server makes.
type CollectOptions struct {
	// Allowed, if not empty, are the only networks that HTTP agents, simple checks and the like may reach; Denied they may never.
	Allowed, Denied []netip.Prefix
	// SSLFolder holds certificates and keys that items name; empty is the folder ssl in the data folder.
	SSLFolder string
	// ExternalScripts is the folder of programs for external checks; empty is the folder externalscripts in the data folder.
	ExternalScripts string
	// JavaGateway is the address of a Zabbix Java gateway for JMX items; empty for none.
	JavaGateway string
	// Traps, if not nil, is the UDP socket for SNMP traps; Run closes it.
	Traps net.PacketConn
}

// collectorOptions are the settings of the collectors.
func (s *Server) collectorOptions() collectors.Options {
	o := s.o.Collect
	folder := o.SSLFolder
	if folder == "" {
		folder = filepath.Join(s.o.Data, "ssl")
	}
	return collectors.Options{
		Allowed: o.Allowed, Denied: o.Denied, OwnPorts: ports(s.o.HTTP), SSLFolder: folder, ExternalScripts: cmp.Or(o.ExternalScripts, filepath.Join(s.o.Data, "externalscripts")), JavaGateway: o.JavaGateway, ScriptWorker: s.o.ScriptWorker,
		Version: s.o.Version, Metrics: s.metrics,
	}
}

// rules are what checks and scripts must not reach.
func (s *Server) rules() guard.Options {
	o := s.collectorOptions()
	return o.Rules()
}

// openTraps makes the listener for SNMP traps; nil when there is no socket.
func (s *Server) openTraps() *collectors.Traps {
	if s.o.Collect.Traps == nil {
		return nil
	}
	return collectors.NewTraps(collectors.TrapOptions{Socket: s.o.Collect.Traps, Sink: s.preproc, Cache: s.cache, Log: s.logger, Metrics: s.metrics})
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
