package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tidemark/agent"
	"tidemark/confdb"
	"tidemark/config"
	"tidemark/internal/tlsdial"
	"tidemark/server"
)

// settings are the flags that several commands share. A flag that was given overrides the file.
type settings struct {
	file, data, http, trapper string
	diskSpace, durability     string
	autoregistration          bool
	agentServer, agentHost    string
	agentInterval             time.Duration
	mongo, mongoURI, mongoLog string
	tls                       config.AgentTLS
	// proxy has the flags that say how to connect to a server mean the proxy instead of the agent.
	proxy                     bool
	proxyName                 string
	proxyKeep                 time.Duration
	proxyPassive              bool
	proxyPage                 string
	standbyOf                 string
	standbyTokenFile          string
	replaceData, alertsPaused bool
	verbose                   bool
	flags                     *pflag.FlagSet
}

// addServer adds the flags of the server.
func (s *settings) addServer(f *pflag.FlagSet) {
	s.addCommon(f)
	f.StringVar(&s.http, "http", "", "address of the page and the APIs (default 127.0.0.1:8420)")
	f.StringVar(&s.trapper, "trapper", "", "address for agents and senders (default 127.0.0.1:10051)")
	f.StringVar(&s.diskSpace, "disk-space", "", "room for the store, such as 20GiB (default 4 GiB or 10 % of the free space, whichever is less)")
	f.StringVar(&s.durability, "durability", "", "group: answer after the disk has it; relaxed: up to a second before (default group)")
	f.BoolVar(&s.alertsPaused, "alerts-paused", false, "send no alerts until somebody resumes them on the page: for a server on a restored copy")
	f.BoolVar(&s.autoregistration, "autoregistration", false, "make a host of each unknown agent that asks for its list")
}

// addStandby adds the flags of a standby.
func (s *settings) addStandby(f *pflag.FlagSet) {
	f.StringVar(&s.standbyOf, "standby-of", "", "follow the server at this HTTP address, host:port or https://host:port, until promoted")
	f.StringVar(&s.standbyTokenFile, "standby-token-file", "", "file with the token that the other server asks for (default: that of http.token_file)")
	f.BoolVar(&s.replaceData, "replace-data", false, "with --standby-of: let the primary's data take the place of other data in the folder")
}

func (s *settings) addCommon(f *pflag.FlagSet) {
	s.flags = f
	f.StringVar(&s.file, "config", "", "configuration file (YAML)")
	f.StringVar(&s.data, "data", "", "data folder (default ./data)")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "log more")
}

// addAgent adds the flags of the agent.
func (s *settings) addAgent(f *pflag.FlagSet) {
	f.StringVar(&s.agentHost, "host", "", "name of this machine at the server (default: its host name)")
	f.StringVar(&s.mongo, "mongo", "", "watch MongoDB traffic on this network device, such as eth0, lo or any (needs root or CAP_NET_RAW)")
	s.addTLS(f)
	f.StringVar(&s.mongoLog, "mongo-log", "", "take slow requests from this JSON log of mongod, where the traffic is encrypted")
	f.StringVar(&s.mongoURI, "mongo-uri", "", "ask the MongoDB server on this machine for its own counters, such as mongodb://127.0.0.1:27017/ (a password is better kept in agent.mongo.uri_file)")
	f.DurationVar(&s.agentInterval, "interval", 0, "time between two measurements (default 1s)")
}

// addTLS adds the flags of connections to the server.
func (s *settings) addTLS(f *pflag.FlagSet) {
	f.StringVar(&s.tls.Connect, "tls-connect", "", "how to connect to the server: unencrypted, psk or cert (default unencrypted)")
	f.StringVar(&s.tls.PSKIdentity, "tls-psk-identity", "", "identity of the pre-shared key")
	f.StringVar(&s.tls.PSKFile, "tls-psk-file", "", "file with the pre-shared key in hexadecimal digits")
	f.StringVar(&s.tls.CAFile, "tls-ca-file", "", "file with the certificates of the authorities")
	f.StringVar(&s.tls.CertificateFile, "tls-cert-file", "", "file with the own certificate")
	f.StringVar(&s.tls.KeyFile, "tls-key-file", "", "file with the key of the own certificate")
	f.StringVar(&s.tls.ServerIssuer, "tls-server-cert-issuer", "", "issuer that the server's certificate must have")
	f.StringVar(&s.tls.ServerSubject, "tls-server-cert-subject", "", "subject that the server's certificate must have")
}

// addProxy adds the flags of a proxy.
func (s *settings) addProxy(f *pflag.FlagSet) {
	s.proxy = true
	s.addCommon(f)
	f.StringVar(&s.agentServer, "server", "", "the server's address for agents, host:port (default 127.0.0.1:10051)")
	f.BoolVar(&s.proxyPassive, "passive", false, "wait for the server to ask, at --trapper; --server is then where it may ask from, such as 10.0.0.5,10.1.0.0/16")
	f.StringVar(&s.proxyName, "name", "", "name of this proxy at the server (default: the machine's host name)")
	f.StringVar(&s.trapper, "trapper", "", "address for agents and senders (default 127.0.0.1:10051)")
	f.StringVar(&s.http, "http", "", "address of metrics and state (default "+config.DefaultProxyListen+")")
	f.DurationVar(&s.proxyKeep, "keep", 0, "keep values this long and show them on a page of the proxy's own, such as 24h (default none)")
	f.StringVar(&s.proxyPage, "page", "", "address of that page (default 127.0.0.1:8420)")
	s.addTLS(f)
}

// load reads the file and puts the flags over it.
func (s *settings) load() (*config.Config, error) {
	c := config.Default()
	if s.file != "" {
		var err error
		if c, err = config.Load(s.file); err != nil {
			return nil, usageError{err}
		}
	}
	server, secured := &c.Agent.Server, &c.Agent.TLS
	if s.proxy {
		server, secured = &c.Proxy.Server, &c.Proxy.TLS
	}
	texts := []struct {
		flag string
		to   *string
		from string
	}{
		{"data", &c.Data, s.data},
		{"http", &c.HTTP.Listen, s.http},
		{"trapper", &c.Trapper.Listen, s.trapper},
		{"server", server, s.agentServer},
		{"name", &c.Proxy.Name, s.proxyName},
		{"page", &c.Proxy.Page, s.proxyPage},
		{"host", &c.Agent.Host, s.agentHost},
		{"mongo", &c.Agent.MongoInterface, s.mongo},
		{"tls-connect", &secured.Connect, s.tls.Connect},
		{"tls-psk-identity", &secured.PSKIdentity, s.tls.PSKIdentity},
		{"tls-psk-file", &secured.PSKFile, s.tls.PSKFile},
		{"tls-ca-file", &secured.CAFile, s.tls.CAFile},
		{"tls-cert-file", &secured.CertificateFile, s.tls.CertificateFile},
		{"tls-key-file", &secured.KeyFile, s.tls.KeyFile},
		{"tls-server-cert-issuer", &secured.ServerIssuer, s.tls.ServerIssuer},
		{"tls-server-cert-subject", &secured.ServerSubject, s.tls.ServerSubject},
		{"mongo-log", &c.Agent.MongoLog, s.mongoLog},
		{"mongo-uri", &c.Agent.MongoURI, s.mongoURI},
		{"standby-of", &c.Standby.Of, s.standbyOf},
		{"standby-token-file", &c.Standby.TokenFile, s.standbyTokenFile},
	}
	for _, t := range texts {
		if s.flags.Changed(t.flag) {
			*t.to = t.from
		}
	}
	if s.flags.Changed("alerts-paused") {
		c.AlertsPaused = s.alertsPaused
	}
	if s.flags.Changed("autoregistration") {
		c.Autoregistration = s.autoregistration
	}
	if s.flags.Changed("durability") {
		c.Storage.Durability = config.Durability(s.durability)
	}
	if s.flags.Changed("passive") {
		c.Proxy.Passive = s.proxyPassive
	}
	if s.flags.Changed("keep") {
		c.Proxy.Keep = s.proxyKeep
	}
	if s.flags.Changed("interval") {
		c.Agent.Interval = s.agentInterval
	}
	if s.flags.Changed("disk-space") {
		size, err := config.ParseSize(s.diskSpace)
		if err != nil {
			return nil, usagef("--disk-space: %w", err)
		}
		c.Storage.DiskSpaceBytes = size
	}
	if err := c.Validate(); err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// logger writes to stderr.
func (s *settings) logger(w io.Writer) *slog.Logger {
	level := slog.LevelInfo
	if s.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// serverOptions opens the listeners and turns the settings into those of the server.
func serverOptions(c *config.Config, logger *slog.Logger) (server.Options, error) {
	token, err := readToken(c)
	if err != nil {
		return server.Options{}, err
	}
	collect, err := collectOptions(c)
	if err != nil {
		return server.Options{}, err
	}
	certificates, err := agentCertificates(c)
	if err != nil {
		return server.Options{}, err
	}
	peer, err := peerOptions(c, token)
	if err != nil {
		return server.Options{}, err
	}
	web, err := listenHTTP(c)
	if err != nil {
		return server.Options{}, err
	}
	trapper, err := listen(c.Trapper.Listen, "agents and senders (--trapper)")
	if err != nil {
		_ = web.Close()
		return server.Options{}, err
	}
	ages, err := config.ParseMinimumAges(c.Storage.MinimumAges)
	if err != nil { // it was checked when it was read
		return server.Options{}, errors.Join(err, web.Close(), trapper.Close())
	}
	if peer.Own = c.Standby.Advertise; peer.Own == "" && !listensEverywhere(web) {
		peer.Own = pageURL(c, web)
	}
	return server.Options{
		Data: c.Data, HTTP: web, Token: token, Trapper: trapper, Autoregistration: c.Autoregistration, Relaxed: c.Storage.Durability == config.DurabilityRelaxed,
		DiskSpaceBytes: c.Storage.DiskSpaceBytes, PageCacheBytes: c.Storage.PageCacheBytes,
		DatabaseSpaceBytes: c.Storage.DatabaseSpaceBytes, EarlyDrop: c.Storage.EarlyDrop,
		MinimumAge: c.Storage.MinimumAge, MinimumAges: ages, MinuteShare: tierShare(c.Storage.MinuteShare), HourShare: tierShare(c.Storage.HourShare), HostFactor: tierShare(c.Storage.HostFactor), Version: Version, Logger: logger,
		Snapshots: server.SnapshotOptions{
			Every: c.Storage.Snapshots.Every, Keep: c.Storage.Snapshots.Keep, Refuse: c.Storage.Snapshots.AtQuota == config.AtQuotaRefuse,
		},
		HotCodec:   c.Storage.HotCodec,
		Buffered:   c.Storage.DirectIO == config.DirectOff,
		Headroom:   server.HeadroomOptions{HoldAt: c.Storage.Headroom.HoldAt, Shrink: c.Storage.Headroom.Shrink},
		Recompress: recompressPolicy(c), QueryLogBytes: c.Storage.QueryLogBytes,
		ScriptWorker: scriptWorker(), DSN: c.Storage.DSN, Mode: storeMode(c), Configuration: server.ConfigurationPlace{Engine: c.Configuration.Engine, DSN: c.ConfigurationDSN(), Schema: c.Configuration.Schema}, OverrideHistory: c.Storage.OverrideHistory, OverrideTrends: c.Storage.OverrideTrends, Certificates: certificates,
		Collect: collect,
		Scrape:  c.Scrape.Jobs,
		Peer:    peer, Synchronous: c.Standby.Synchronous, Alone: c.Standby.Wait, AlertsPaused: c.AlertsPaused,
	}, nil
}

// storeMode is the mode of PostgreSQL's tables as the server takes it.
func storeMode(c *config.Config) string {
	if c.Storage.Mode == config.ModeAuto {
		return ""
	}
	return string(c.Storage.Mode)
}

// listensEverywhere reports whether a listener has no address of its own that others could be told.
func listensEverywhere(l net.Listener) bool {
	at, ok := l.Addr().(*net.TCPAddr)
	return ok && at.IP.IsUnspecified()
}

// pageURL is the address of the page as a browser takes it.
func pageURL(c *config.Config, l net.Listener) string {
	if c.HTTP.CertificateFile != "" {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// readToken reads the token that API clients send; empty when none is configured. A listener elsewhere than on loopback needs one,
// or an administrator, who cannot be there in a new folder.
func readToken(c *config.Config) (string, error) {
	if c.HTTP.TokenFile == "" {
		if c.Standby.Of != "" {
			return "", nil // the users come from the primary
		}
		if loopback(c.HTTP.Listen) || confdb.Exists(c.Data) || c.ConfigurationDSN() != "" {
			return "", nil // whether there is an administrator is seen when the folder is open
		}
		return "", noAdministrator(c)
	}
	return readTokenFile("http.token_file", c.HTTP.TokenFile)
}

// readTokenFile reads the file that a setting names.
func readTokenFile(setting, name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", setting, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 4096))
	if err != nil {
		return "", fmt.Errorf("%s: %w", setting, err)
	}
	const least = 16
	token := strings.TrimSpace(string(text))
	if len(token) < least {
		return "", usagef("%s %s: expected a token of at least %d characters", setting, name, least)
	}
	return token, nil
}

// agentCertificates reads the files for connections with certificates from and to agents; nil when none are configured.
func agentCertificates(c *config.Config) (*tls.Config, error) {
	t := c.Trapper
	if t.CertificateFile == "" {
		return nil, nil
	}
	certificate, err := tls.LoadX509KeyPair(t.CertificateFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("trapper.tls: %w", err)
	}
	text, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("trapper.tls.ca_file: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, usagef("trapper.tls.ca_file %s: expected certificates in PEM", t.CAFile)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: authorities, MinVersion: tls.VersionTLS12}, nil
}

// loopback reports whether an address is reached from this machine only.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// listenHTTP opens the listener of the page: with TLS where a certificate is configured, plain elsewhere than on loopback only when asked
// for.
func listenHTTP(c *config.Config) (net.Listener, error) {
	if c.HTTP.CertificateFile == "" {
		if !loopback(c.HTTP.Listen) && !c.HTTP.Insecure {
			return nil, usagef("http.listen %q is no loopback address: give http.tls.certificate_file and http.tls.key_file, or set http.insecure to send everything, the token too, in the clear", c.HTTP.Listen)
		}
		return listen(c.HTTP.Listen, "the page (--http)")
	}
	certificate, err := tls.LoadX509KeyPair(c.HTTP.CertificateFile, c.HTTP.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("http.tls: %w", err)
	}
	plain, err := listen(c.HTTP.Listen, "the page (--http)")
	if err != nil {
		return nil, err
	}
	return tls.NewListener(plain, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}), nil
}

func listen(address, what string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w; another tidemark may be running, or choose another port", what, err)
	}
	return l, nil
}

// agentOptions turns the settings into those of the agent.
func agentOptions(c *config.Config, logger *slog.Logger) (agent.Options, error) {
	uri, err := mongoURI(c)
	return agent.Options{
		Server: c.Agent.Server, Host: c.Agent.Host, Interval: c.Agent.Interval, BufferBytes: c.Agent.BufferBytes, Version: Version, Logger: logger,
		TLS:   tlsdial.Settings(c.Agent.TLS),
		Mongo: agent.Mongo{Interface: c.Agent.MongoInterface, Ports: c.Agent.MongoPorts, Interval: c.Agent.MongoInterval, URI: uri, Log: c.Agent.MongoLog, Profiler: c.Agent.MongoProfiler, Plans: c.Agent.MongoPlans},
	}, err
}

// spool is the agent's folder in the data folder.
func spool(data string) string { return filepath.Join(data, "spool") }

// emptyFolder reports whether a folder is not there or holds nothing.
func emptyFolder(dir string) bool {
	entries, err := os.ReadDir(dir)
	return errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0
}

// tierShare is a share of the disk space as the server takes it, where zero is the default.
func tierShare(percent int) int {
	if percent == 0 {
		return -1
	}
	return percent
}
