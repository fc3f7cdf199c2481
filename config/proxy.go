package config

import (
	"fmt"
	"time"
)

// Proxy is what stands between agents and a server.
type Proxy struct {
	// Server is the host:port of the server's agent protocol; of a passive proxy the addresses, networks and names from which the server asks, with
	// commas between.
	Server string
	// Passive has the proxy wait for the server to ask, at the trapper's address.
	Passive bool
	// RemoteCommands permits commands on the proxy's machine, which people run by the server.
	RemoteCommands bool
	// Name is what the server knows the proxy by; empty for the machine's host name.
	Name string
	// Refresh is how often the configuration is asked for.
	Refresh time.Duration
	// BufferBytes bounds what waits on disk while the server is away, BufferAge how old it becomes; zero for no limit of age.
	BufferBytes int64
	BufferAge   time.Duration
	TLS         AgentTLS
	// Keep is how long values are kept to be shown on a page of the proxy's own, at the address Page; zero for no page.
	Keep time.Duration
	Page string
}

const (
	// MinProxyBufferBytes is the least that a proxy's buffer can work in.
	MinProxyBufferBytes = 64 << 20
	minProxyRefresh     = time.Second
	maxProxyRefresh     = 24 * time.Hour
	minProxyBufferAge   = time.Hour
	maxProxyKeep        = 30 * 24 * time.Hour
)

// DefaultProxyListen is where a proxy serves its metrics when http.listen says nothing.
const DefaultProxyListen = "127.0.0.1:8421"

func defaultProxy() Proxy {
	return Proxy{Server: "127.0.0.1:10051", Refresh: time.Minute, BufferBytes: 4 << 30, BufferAge: 7 * 24 * time.Hour, TLS: AgentTLS{Connect: "unencrypted"}, Page: "127.0.0.1:8420"}
}

// proxyFields are the settings of a proxy.
var proxyFields = append([]field{
	setting("proxy.server", parseText, func(c *Config) *string { return &c.Proxy.Server }, anything),
	setting("proxy.passive", parseBool, func(c *Config) *bool { return &c.Proxy.Passive }, anything),
	setting("proxy.remote_commands", parseBool, func(c *Config) *bool { return &c.Proxy.RemoteCommands }, anything),
	setting("proxy.name", parseText, func(c *Config) *string { return &c.Proxy.Name }, checkProxyName),
	setting("proxy.refresh", ParseDuration, func(c *Config) *time.Duration { return &c.Proxy.Refresh }, checkRefresh),
	setting("proxy.buffer", ParseSize, func(c *Config) *int64 { return &c.Proxy.BufferBytes }, atLeast(MinProxyBufferBytes, false)),
	setting("proxy.buffer_age", ParseDuration, func(c *Config) *time.Duration { return &c.Proxy.BufferAge }, checkBufferAge),
	setting("proxy.keep", ParseDuration, func(c *Config) *time.Duration { return &c.Proxy.Keep }, checkKeepTime),
	setting("proxy.page", parseText, func(c *Config) *string { return &c.Proxy.Page }, checkAddress),
}, tlsFields("proxy.tls", func(c *Config) *AgentTLS { return &c.Proxy.TLS })...)

// tlsFields are the settings of connections to the server.
func tlsFields(section string, at func(*Config) *AgentTLS) []field {
	text := func(name string, to func(*AgentTLS) *string, check func(string) error) field {
		return setting(section+"."+name, parseText, func(c *Config) *string { return to(at(c)) }, check)
	}
	return []field{
		text("connect", func(t *AgentTLS) *string { return &t.Connect }, oneOf("unencrypted", "psk", "cert")),
		text("psk_identity", func(t *AgentTLS) *string { return &t.PSKIdentity }, anything),
		text("psk_file", func(t *AgentTLS) *string { return &t.PSKFile }, anything),
		text("ca_file", func(t *AgentTLS) *string { return &t.CAFile }, anything),
		text("certificate_file", func(t *AgentTLS) *string { return &t.CertificateFile }, anything),
		text("key_file", func(t *AgentTLS) *string { return &t.KeyFile }, anything),
		text("server_issuer", func(t *AgentTLS) *string { return &t.ServerIssuer }, anything),
		text("server_subject", func(t *AgentTLS) *string { return &t.ServerSubject }, anything),
	}
}

func checkProxyName(name string) error {
	if len(name) > 128 {
		return fmt.Errorf("found a name of %d bytes; expected at most 128", len(name))
	}
	return nil
}

func checkRefresh(d time.Duration) error {
	if d < minProxyRefresh || d > maxProxyRefresh {
		return fmt.Errorf("found %s; expected %s to %s", d, minProxyRefresh, maxProxyRefresh)
	}
	return nil
}

func checkBufferAge(d time.Duration) error {
	if d != 0 && d < minProxyBufferAge {
		return fmt.Errorf("found %s; expected 0 for no limit, or at least %s", d, minProxyBufferAge)
	}
	return nil
}

func checkKeepTime(d time.Duration) error {
	if d != 0 && (d < time.Hour || d > maxProxyKeep) {
		return fmt.Errorf("found %s; expected 0 for no page, or %s to %s", d, time.Hour, maxProxyKeep)
	}
	return nil
}

// checkProxy reports settings of a proxy that do not go together.
func (c *Config) checkProxy(wrong func(key, format string, args ...any)) {
	err := checkAddress(c.Proxy.Server)
	if !c.Proxy.Passive {
		if err != nil {
			wrong("proxy.server", "%s", err)
		}
		checkTLS("proxy.tls", &c.Proxy.TLS, wrong)
		return
	}
	if err == nil || c.Proxy.Server == "" {
		wrong("proxy.server", "found %q with proxy.passive; expected the addresses without port from which the server asks, such as 10.0.0.5", c.Proxy.Server)
	}
	if c.Proxy.TLS.Connect == "cert" {
		if t := &c.Trapper; t.CAFile == "" || t.CertificateFile == "" || t.KeyFile == "" {
			wrong("proxy.tls.connect", "found cert with proxy.passive; expected trapper.tls.ca_file, trapper.tls.certificate_file and trapper.tls.key_file with it")
		}
		return
	}
	checkTLS("proxy.tls", &c.Proxy.TLS, wrong)
}

// checkTLS reports what is missing for a kind of connection.
func checkTLS(section string, t *AgentTLS, wrong func(key, format string, args ...any)) {
	switch {
	case t.Connect == "psk" && (t.PSKIdentity == "" || t.PSKFile == ""):
		wrong(section+".connect", "found psk; expected %[1]s.psk_identity and %[1]s.psk_file with it", section)
	case t.Connect == "cert" && (t.CAFile == "" || t.CertificateFile == "" || t.KeyFile == ""):
		wrong(section+".connect", "found cert; expected %[1]s.ca_file, %[1]s.certificate_file and %[1]s.key_file with it", section)
	}
}
