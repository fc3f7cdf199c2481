// Package config holds the settings of a process: one struct, its defaults, and the strict reader of its YAML file.
//
// Reading opens nothing but the file itself. Every mistake in a file is reported, each with line, column and what was
// expected there.
package config

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Limits and defaults of settings.
const (
	// MaxFileBytes bounds a configuration file.
	MaxFileBytes = 1 << 20
	// MinDiskSpaceBytes is the least that the store can work in.
	MinDiskSpaceBytes = 256 << 20
	// MinPageCacheBytes is the least that the page cache can work in.
	MinPageCacheBytes = 32 << 20
	// MinAgentBufferBytes is the least that the agent's buffer can work in.
	MinAgentBufferBytes = 1 << 20
	// MinAgentInterval is the shortest time between two measurements of an agent.
	MinAgentInterval = 10 * time.Millisecond
	// MaxAgentInterval is the longest.
	MaxAgentInterval = time.Hour
)

// Config is all settings of a process. Default gives the values that hold where a file and the flags say nothing.
type Config struct {
	// Data is the data folder.
	Data    string
	HTTP    HTTP
	Trapper Trapper
	// Autoregistration makes an unknown agent a host.
	Autoregistration bool
	Storage          Storage
	Configuration    Configuration
	Agent            Agent
	Proxy            Proxy
	Collect          Collect
	Scrape           Scrape
	Standby          Standby
	// AlertsPaused sends no alerts until somebody resumes them.
	AlertsPaused bool

	// set has the keys that were in the file.
	set map[string]position
}

// HTTP is the listener of the page and the APIs.
type HTTP struct {
	// Listen is host:port. A host that is no loopback address needs TLS, or Insecure.
	Listen string
	// CertificateFile and KeyFile, both or none, are PEM files; with them the listener speaks TLS.
	CertificateFile, KeyFile string
	// TokenFile has the token that API clients send; empty for none.
	TokenFile string
	// Insecure permits a listener elsewhere than on loopback without TLS.
	Insecure bool
}

// Trapper is the listener of the agent and sender protocol.
type Trapper struct {
	// Listen is host:port.
	Listen string
	// CAFile, CertificateFile and KeyFile, all or none, are PEM files: the authorities that sign agents' certificates, and the server's
	// own certificate with its key. Pre-shared keys need none of them.
	CAFile, CertificateFile, KeyFile string
}

// Where the configuration is.
const (
	ConfigurationSQLite   = "sqlite"
	ConfigurationPostgres = "postgres"
)

// Configuration is where hosts, templates, users, problems, events and alerts are kept.
type Configuration struct {
	// Engine is ConfigurationSQLite, ConfigurationPostgres, or empty: where they are, and for a new data folder its file.
	Engine string
	// DSN is the connection string of PostgreSQL; empty for that of the storage. Schema has the tables.
	DSN, Schema string
}

// The storage engines.
const (
	EngineDB       = "dbengine"
	EnginePostgres = "postgres"
)

// Mode says how tables of values are kept in PostgreSQL.
type Mode string

// The modes.
const (
	// ModeAuto takes what the database has, and for an empty one hypertables where TimescaleDB is created, else partitions.
	ModeAuto       Mode = "auto"
	ModePlain      Mode = "plain"
	ModePartitions Mode = "partitions"
	ModeTimescale  Mode = "timescale"
)

// Durability says when values that were acknowledged are safe.
type Durability string

// The durabilities.
const (
	// DurabilityGroup acknowledges after the fdatasync of a group of at most 20 ms.
	DurabilityGroup Durability = "group"
	// DurabilityRelaxed acknowledges after the write; the fdatasync follows within 1 s.
	DurabilityRelaxed Durability = "relaxed"
)

// The settings of direct I/O.
const (
	DirectAuto = "auto"
	DirectOff  = "off"
)

// Storage is where values are kept.
type Storage struct {
	// Engine is EngineDB or EnginePostgres.
	Engine string
	// DSN is the connection string of PostgreSQL; empty for dbengine.
	DSN string
	// OverrideHistory and OverrideTrends, if not zero, are how long values and trends of all items are kept.
	OverrideHistory, OverrideTrends time.Duration
	// Shared says that several servers use the database, of which one works; Lease is how long its right to do so lasts after each renewal.
	Shared bool
	Lease  time.Duration
	// Mode is how tables that are yet to be made are kept in PostgreSQL.
	Mode       Mode
	Durability Durability
	// DiskSpaceBytes bounds the store; zero stands for 4 GiB or 10 % of the free space, whichever is less.
	DiskSpaceBytes int64
	// DatabaseSpaceBytes is the room that PostgreSQL has where it is; zero asks the disk when that is this machine's. EarlyDrop is the percentage of its
	// use from which the oldest values go before their time; zero is never.
	DatabaseSpaceBytes int64
	EarlyDrop          int
	// PageCacheBytes bounds the memory for pages.
	PageCacheBytes int64
	Snapshots      Snapshots
	Recompress     Recompress
	Headroom       Headroom
	// HotCodec is how values are compressed when they are first written: none, lz4 or zstd:LEVEL.
	HotCodec string
	// DirectIO is auto, for file pairs to be written, and read as a whole, past the system's cache where the file system takes that, or off.
	DirectIO string
	// QueryLogBytes bounds the log of queries; 0 for none.
	QueryLogBytes int64
	// MinimumAge is how long values shall be kept in any case; there is a warning when the disk space does not reach for it. Zero for none.
	MinimumAge time.Duration
	// MinimumAges are those of items whose history is kept long, as ParseMinimumAges reads them.
	MinimumAges string
	// MinuteShare and HourShare are the parts of the disk space that summaries of minutes and hours may take, in percent; 0 for none of them.
	MinuteShare, HourShare int
	// HostFactor is how many times what other hosts have on average a host may have of the disk before its oldest values go first; 0 for no such bound.
	HostFactor int
}

// AtQuota says what gives way at the quota while snapshots hold files.
type AtQuota string

// What gives way.
const (
	AtQuotaDrop   AtQuota = "drop_oldest"
	AtQuotaRefuse AtQuota = "refuse_values"
)

// Headroom says what the store does when the file system that it is on fills up.
type Headroom struct {
	// HoldAt is the fullness in percent from which on the store stays as large as it is; zero for never.
	HoldAt int
	// Shrink deletes the oldest values until the fullness is below HoldAt.
	Shrink bool
}

// Recompress is the policy for old values.
type Recompress struct {
	// Codec is off, none, lz4 or zstd:LEVEL.
	Codec string
	// OlderThan is the age from which on, RateBytes how much is read and written a second.
	OlderThan time.Duration
	RateBytes int64
	// MergeBytes lets neighbours become one file pair as long as their files together take no more, as ParseMerge reads it.
	MergeBytes int64
}

// RecompressOff leaves old values as they are.
const RecompressOff = "off"

// Snapshots are those that the server makes by itself.
type Snapshots struct {
	// Every is the time between two; zero for none.
	Every time.Duration
	// Keep is how many are kept.
	Keep    int
	AtQuota AtQuota
}

// Standby is this server's part in a pair of primary and standby.
type Standby struct {
	// Of is the address of the primary that this server follows: host:port, or https://host:port; empty for a primary.
	Of string
	// TokenFile has the token that is sent to the other servers; empty for that of http.token_file.
	TokenFile string
	// CAFile has the certificates of the authorities of the other servers; empty for those of the system.
	CAFile string
	// Advertise is the address at which the others reach this server; empty for that of http.listen.
	Advertise string
	// Synchronous acknowledges nothing that no standby has on its disk, and Wait is for how long values wait for one before they are refused.
	Synchronous bool
	Wait        time.Duration
}

// Agent is the agent on this machine.
type Agent struct {
	// Server is the host:port of the server's agent protocol.
	Server string
	// Host is the name under which the server knows this machine; empty for the machine's host name.
	Host string
	// Interval is the time between two measurements.
	Interval time.Duration
	// BufferBytes bounds what waits on disk while the server is away.
	BufferBytes int64
	// MongoInterface is the network device on which MongoDB traffic is watched; empty watches none. MongoPorts are the servers' ports; none
	// means 27017.
	MongoInterface string
	MongoPorts     []uint16
	// MongoURI is the connection string of the MongoDB server on this machine, which is asked for its own counters; MongoURIFile is a file
	// that holds it. Both empty: it is not asked.
	MongoURI, MongoURIFile string
	// MongoLog is the server's JSON log file, from which slow requests are taken; empty for none.
	MongoLog string
	// MongoProfiler reads the profilers of the server's databases, where they are on.
	MongoProfiler bool
	// MongoInterval is that of all MongoDB statistics; zero means 10 s.
	MongoInterval time.Duration
	// MongoPlans is how often the server is asked for the plans of the dearest shapes; zero means never.
	MongoPlans time.Duration
	TLS        AgentTLS
}

// AgentTLS is how the agent protects its connections to the server.
type AgentTLS struct {
	// Connect is unencrypted, psk or cert.
	Connect string
	// PSKIdentity and PSKFile are the pre-shared key: its identity, and a file with one line of hexadecimal digits.
	PSKIdentity, PSKFile string
	// CAFile, CertificateFile and KeyFile are PEM files.
	CAFile, CertificateFile, KeyFile string
	// ServerIssuer and ServerSubject are what the server's certificate must have; empty for any.
	ServerIssuer, ServerSubject string
}

// Collect are the settings of checks that the server makes.
type Collect struct {
	// AllowedNetworks, if not empty, are the only networks that checks reach, DeniedNetworks those that they never do; with commas
	// between them.
	AllowedNetworks, DeniedNetworks string
	// SSLFolder holds certificates and keys that items name; empty for the folder ssl in the data folder.
	SSLFolder string
	// ExternalScripts is the folder of programs for external checks; empty for the folder externalscripts in the data folder.
	ExternalScripts string
	// JavaGateway is the address of a Zabbix Java gateway; empty for none.
	JavaGateway string
	// TrapListen is the UDP address for SNMP traps; empty for none.
	TrapListen string
}

// ConfigurationDSN is the connection string of the configuration; empty when it is in the data folder, or the folder says where it is.
func (c *Config) ConfigurationDSN() string {
	switch {
	case c.Configuration.Engine != ConfigurationPostgres:
		return ""
	case c.Configuration.DSN != "":
		return c.Configuration.DSN
	}
	return c.Storage.DSN
}

func (c *Config) checkConfiguration(wrong func(key, format string, args ...any)) {
	is := &c.Configuration
	if is.Engine == ConfigurationPostgres && c.ConfigurationDSN() == "" {
		wrong("configuration.engine", "engine postgres: expected configuration.dsn or storage.dsn, such as postgres://user@host/database")
	}
	if is.Engine != ConfigurationPostgres && is.DSN != "" {
		wrong("configuration.dsn", "found a connection string, but configuration.engine is not postgres; expected engine postgres or no dsn")
	}
	if is.Engine != ConfigurationPostgres && is.Schema != "" {
		wrong("configuration.schema", "found a schema, but configuration.engine is not postgres; expected engine postgres or no schema")
	}
	if is.Engine == ConfigurationPostgres && (c.Standby.Of != "" || c.Standby.Synchronous) {
		wrong("configuration.engine", "standbys copy the configuration from the primary's data folder; expected engine sqlite, or no standby")
	}
}

func checkConfigurationEngine(name string) error {
	if name == "" {
		return nil
	}
	return oneOf(ConfigurationSQLite, ConfigurationPostgres)(name)
}

// checkSchema accepts names that need no quotes.
func checkSchema(name string) error {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') || i >= 63 {
			return fmt.Errorf("found %.80q; expected a schema of at most 63 small letters, digits and underscores, such as tidemark", name)
		}
	}
	return nil
}

// Default returns the settings of a process without a file.
func Default() *Config {
	return &Config{
		Data:    "./data",
		HTTP:    HTTP{Listen: "127.0.0.1:8420"},
		Trapper: Trapper{Listen: "127.0.0.1:10051"},
		Storage: Storage{Engine: EngineDB, Mode: ModeAuto, Durability: DurabilityGroup, PageCacheBytes: 128 << 20, MinuteShare: 15, HourShare: 5, HostFactor: 2, Snapshots: Snapshots{Keep: 7, AtQuota: AtQuotaDrop}, Headroom: Headroom{HoldAt: 80}, HotCodec: "none", DirectIO: DirectAuto, Recompress: Recompress{Codec: RecompressOff, OlderThan: 24 * time.Hour, RateBytes: 20 << 20}, QueryLogBytes: 1 << 20},
		Agent:   Agent{Server: "127.0.0.1:10051", Interval: time.Second, BufferBytes: 64 << 20, MongoPlans: 10 * time.Minute, TLS: AgentTLS{Connect: "unencrypted"}},
		Proxy:   defaultProxy(),
		Standby: Standby{Wait: 10 * time.Second},
		Collect: Collect{DeniedNetworks: "169.254.0.0/16,fe80::/10,fd00:ec2::254"},
		set:     map[string]position{},
	}
}

// IsSet reports whether the file has a key, such as "http.listen".
func (c *Config) IsSet(key string) bool {
	_, ok := c.set[key]
	return ok
}

// Load reads a file over the defaults. The error is Mistakes if the file can be read but is wrong.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	src, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, src)
}

// Validate reports what is wrong with the settings, wherever they come from. The error is Mistakes.
func (c *Config) Validate() error {
	var list Mistakes
	wrong := func(key, format string, args ...any) {
		at := c.set[key]
		list = append(list, Mistake{Line: at.line, Column: at.column, Key: key, Text: fmt.Sprintf(format, args...)})
	}
	for i := range fields {
		f := &fields[i]
		if err := f.check(f.get(c)); err != nil {
			wrong(f.key, "%v", err)
		}
	}
	if (c.HTTP.CertificateFile == "") != (c.HTTP.KeyFile == "") {
		key := "http.tls.certificate_file"
		if c.HTTP.CertificateFile == "" {
			key = "http.tls.key_file"
		}
		wrong(key, "expected both http.tls.certificate_file and http.tls.key_file, or none")
	}
	if t := c.Trapper; t.CAFile+t.CertificateFile+t.KeyFile != "" && (t.CAFile == "" || t.CertificateFile == "" || t.KeyFile == "") {
		wrong("trapper.tls.ca_file", "expected all of trapper.tls.ca_file, trapper.tls.certificate_file and trapper.tls.key_file, or none")
	}
	if c.Storage.Engine == EnginePostgres && c.Storage.DSN == "" {
		wrong("storage.engine", "engine postgres: expected storage.dsn, such as postgres://user@host/database")
	}
	if c.Storage.Engine == EngineDB && c.Storage.DSN != "" {
		wrong("storage.dsn", "found a connection string, but storage.engine is %s; expected engine postgres or no dsn", c.Storage.Engine)
	}
	c.checkConfiguration(wrong)
	c.checkShared(wrong)
	checkTLS("agent.tls", &c.Agent.TLS, wrong)
	c.checkProxy(wrong)
	if c.Storage.Engine == EngineDB && c.Storage.Mode != ModeAuto {
		wrong("storage.mode", "found mode %s, but storage.engine is %s; expected engine postgres or no mode", c.Storage.Mode, c.Storage.Engine)
	}
	if c.Storage.Engine == EngineDB && (c.Storage.DatabaseSpaceBytes != 0 || c.Storage.EarlyDrop != 0) {
		key := "storage.database_space"
		if c.Storage.EarlyDrop != 0 {
			key = "storage.early_drop"
		}
		wrong(key, "it is for engine postgres, and storage.engine is %s, which storage.disk_space bounds", c.Storage.Engine)
	}
	if c.Standby.Of != "" && c.Storage.Engine != EngineDB {
		wrong("standby.of", "standbys are for the engine %s; PostgreSQL has a replication of its own", EngineDB)
	}
	if c.Standby.Synchronous && (c.Storage.Engine != EngineDB || c.Storage.Durability != DurabilityGroup) {
		wrong("standby.synchronous", "expected storage.engine %s and storage.durability %s with it", EngineDB, DurabilityGroup)
	}
	if c.Agent.MongoURI != "" && c.Agent.MongoURIFile != "" {
		wrong("agent.mongo.uri_file", "expected agent.mongo.uri or agent.mongo.uri_file, not both")
	}
	if len(list) == 0 {
		return nil
	}
	list.sort()
	return list
}

// checkShared reports what does not go with a database that servers share.
func (c *Config) checkShared(wrong func(key, format string, args ...any)) {
	switch {
	case !c.Storage.Shared && c.Storage.Lease != 0:
		wrong("storage.lease", "found a lease, but storage.shared is not set; expected storage.shared: true or no lease")
	case !c.Storage.Shared:
	case c.Storage.Engine != EnginePostgres:
		wrong("storage.shared", "servers share a PostgreSQL database, and storage.engine is %s; expected engine postgres, or standby.of for the embedded engine", c.Storage.Engine)
	case c.Configuration.Engine != ConfigurationPostgres || c.ConfigurationDSN() != c.Storage.DSN:
		wrong("storage.shared", "servers that share a database share their configuration too; expected configuration.engine %s, and no configuration.dsn of its own", ConfigurationPostgres)
	case c.Storage.Durability != DurabilityGroup:
		wrong("storage.shared", "what a server acknowledges must be in the shared database; expected storage.durability %s with it", DurabilityGroup)
	}
}
