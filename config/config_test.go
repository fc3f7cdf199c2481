package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const full = `
data: /var/lib/tidemark
http:
  listen: 0.0.0.0:443
  tls:
    certificate_file: cert.pem
    key_file: ${TEST_KEYS}/key.pem
  token_file: token
trapper:
  listen: ":10051"
autoregistration: true
storage:
  engine: dbengine
  durability: relaxed
  disk_space: 40GiB
  page_cache_size: 256MiB
  snapshots:
    every: 1d
    keep: 3
    at_quota: refuse_values
  hot_codec: lz4
  direct_io: "off"
  headroom:
    hold_at: 85%
    shrink: true
  recompress:
    codec: zstd:3
    older_than: 2d
    rate: 5MiB
    merge: auto
  query_log: 2MiB
  minimum_age: 30d
  minimum_ages: 365d=180d
  host_factor: 4
  tiers:
    minute_share: 20%
    hour_share: 0
agent:
  server: monitor.example:10051
  host: $${literal}
  interval: 500ms
  buffer: 16 MiB
  tls:
    connect: psk
    psk_identity: one
    psk_file: one.psk
proxy:
  server: monitor.example:10051
  name: branch
  refresh: 10s
  buffer: 1GiB
  buffer_age: 0
  keep: 1d
  page: 127.0.0.1:8480
  tls:
    connect: cert
    ca_file: ca.pem
    certificate_file: own.pem
    key_file: own.key
    server_subject: CN=monitor
collect:
  allowed_networks: 10.0.0.0/8
  denied_networks: ""
  ssl_folder: certs
  external_scripts: /usr/lib/zabbix/externalscripts
  java_gateway: 127.0.0.1:10052
standby:
  of: https://first.example:8420
  token_file: peer
  ca_file: authorities.pem
  advertise: https://second.example:8420
  wait: 20s
alerts_paused: true
`

func TestParse_full(t *testing.T) {
	t.Setenv("TEST_KEYS", "/keys")
	got, err := Parse("full.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Data:             "/var/lib/tidemark",
		HTTP:             HTTP{Listen: "0.0.0.0:443", CertificateFile: "cert.pem", KeyFile: "/keys/key.pem", TokenFile: "token"},
		Trapper:          Trapper{Listen: ":10051"},
		Autoregistration: true,
		Storage:          Storage{Engine: EngineDB, Mode: ModeAuto, Durability: DurabilityRelaxed, DiskSpaceBytes: 40 << 30, PageCacheBytes: 256 << 20, MinimumAge: 30 * 24 * time.Hour, MinimumAges: "365d=180d", MinuteShare: 20, HostFactor: 4, Snapshots: Snapshots{Every: 24 * time.Hour, Keep: 3, AtQuota: AtQuotaRefuse}, HotCodec: "lz4", DirectIO: DirectOff, Headroom: Headroom{HoldAt: 85, Shrink: true}, Recompress: Recompress{Codec: "zstd:3", OlderThan: 48 * time.Hour, RateBytes: 5 << 20, MergeBytes: MergeAuto}, QueryLogBytes: 2 << 20},
		Agent:            Agent{Server: "monitor.example:10051", Host: "${literal}", Interval: 500 * time.Millisecond, BufferBytes: 16 << 20, MongoPlans: 10 * time.Minute, TLS: AgentTLS{Connect: "psk", PSKIdentity: "one", PSKFile: "one.psk"}},
		Proxy:            Proxy{Server: "monitor.example:10051", Name: "branch", Refresh: 10 * time.Second, BufferBytes: 1 << 30, TLS: AgentTLS{Connect: "cert", CAFile: "ca.pem", CertificateFile: "own.pem", KeyFile: "own.key", ServerSubject: "CN=monitor"}, Keep: 24 * time.Hour, Page: "127.0.0.1:8480"},
		Collect:          Collect{AllowedNetworks: "10.0.0.0/8", SSLFolder: "certs", ExternalScripts: "/usr/lib/zabbix/externalscripts", JavaGateway: "127.0.0.1:10052"},
		Standby:          Standby{Of: "https://first.example:8420", TokenFile: "peer", CAFile: "authorities.pem", Advertise: "https://second.example:8420", Wait: 20 * time.Second},
		AlertsPaused:     true,
	}
	if !got.IsSet("http.tls.key_file") || got.IsSet("storage.dsn") {
		t.Errorf("IsSet is wrong: %v", got.set)
	}
	got.set = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParse_empty(t *testing.T) {
	for _, src := range []string{"", "\n", "# only a comment\n", "---\n", "http:\n", "{}"} {
		got, err := Parse("c.yaml", []byte(src))
		if err != nil {
			t.Errorf("%q: %v", src, err)
			continue
		}
		if !reflect.DeepEqual(got, Default()) {
			t.Errorf("%q: got %+v, want the defaults", src, got)
		}
	}
}

func TestParse_mistakes(t *testing.T) {
	tests := []struct {
		name, src string
		want      []string
	}{
		{"unknown key", "htpp:\n  listen: x\n", []string{"c:1:1: htpp: no such setting; did you mean http?"}},
		{"dash for underscore", "storage:\n  disk-space: 4GiB\n", []string{"c:2:3: storage.disk-space: no such setting; did you mean storage.disk_space?"}},
		{"key of a section", "listen: x\n", []string{"c:1:1: listen: no such setting; did you mean http.listen or trapper.listen?"}},
		{"nothing near", "http:\n  xyzzyxyzzy: 1\n", []string{"c:2:3: http.xyzzyxyzzy: no such setting; expected one of insecure, listen, tls, token_file"}},
		{"near the section of scrapes", "scrapes:\n", []string{"c:1:1: scrapes: no such setting; did you mean scrape?"}},
		{"nothing near at the top", "xyzzyxyzzy: 1\n", []string{"c:1:1: xyzzyxyzzy: no such setting; expected one of agent, alerts_paused, autoregistration, collect, configuration, data, http, proxy, scrape, standby, storage, trapper"}},
		{"wrong types", "autoregistration: maybe\nstorage:\n  disk_space: [1]\n  page_cache_size:\n    a: b\ndata:\n", []string{
			`c:1:19: autoregistration: found "maybe"; expected true or false`,
			"c:3:15: storage.disk_space: found a list; expected a value",
			"c:5:5: storage.page_cache_size: found a section; expected a value",
			"c:6:6: data: found nothing; expected a value",
		}},
		{"section as value", "http: 127.0.0.1:80\n", []string{`c:1:7: http: found "127.0.0.1:80"; expected the settings of http as key: value`}},
		{"sizes", "storage:\n  disk_space: 1GiB4\n  page_cache_size: 1MiB\n", []string{
			`c:2:15: storage.disk_space: found "1GiB4"; expected a size, such as 512MiB or 4GiB`,
			"c:3:20: storage.page_cache_size: found 1MiB; expected at least 32MiB",
		}},
		{"size below the minimum", "storage: {disk_space: 100MiB}\n", []string{"c:1:23: storage.disk_space: found 100MiB; expected 0 or at least 256MiB"}},
		{"size too big", "storage: {disk_space: 99999999TiB}\n", []string{`c:1:23: storage.disk_space: found "99999999TiB"; expected less than 8388608TiB`}},
		{"durations", "agent:\n  interval: 1\n", []string{`c:2:13: agent.interval: found "1"; expected a duration, such as 20ms, 1m30s or 31d`}},
		{"duration out of range", "agent:\n  interval: 2d\n", []string{"c:2:13: agent.interval: found 48h0m0s; expected 10ms to 1h"}},
		{"addresses", "http: {listen: 8420}\ntrapper: {listen: 'a:b'}\nagent: {server: 'h:70000'}\n", []string{
			`c:1:16: http.listen: found "8420"; expected host:port, such as 127.0.0.1:8420`,
			`c:2:19: trapper.listen: found "a:b"; expected host:port, such as 127.0.0.1:8420`,
			`c:3:17: agent.server: found "h:70000"; expected host:port, such as 127.0.0.1:8420`,
		}},
		{"shared with the embedded engine", "storage: {shared: true}\n", []string{`c:1:19: storage.shared: servers share a PostgreSQL database, and storage.engine is dbengine; expected engine postgres, or standby.of for the embedded engine`}},
		{"shared values alone", "storage: {engine: postgres, dsn: x, shared: true}\n", []string{`c:1:45: storage.shared: servers that share a database share their configuration too; expected configuration.engine postgres, and no configuration.dsn of its own`}},
		{"shared and relaxed", "storage: {engine: postgres, dsn: x, durability: relaxed, shared: true}\nconfiguration: {engine: postgres}\n", []string{`c:1:66: storage.shared: what a server acknowledges must be in the shared database; expected storage.durability group with it`}},
		{"a short lease", "storage: {lease: 1s}\n", []string{`c:1:18: storage.lease: found 1s; expected 2s to 5m`}},
		{"a lease alone", "storage: {lease: 20s}\n", []string{`c:1:18: storage.lease: found a lease, but storage.shared is not set; expected storage.shared: true or no lease`}},
		{"mode of PostgreSQL only", "storage: {mode: plain}\n", []string{`c:1:17: storage.mode: found mode plain, but storage.engine is dbengine; expected engine postgres or no mode`}},
		{"override", "storage: {override_history: 1m}\n", []string{`c:1:29: storage.override_history: found 1m0s; expected 0 or 1h to 9125d`}},
		{"early drop", "storage: {engine: postgres, dsn: x, early_drop: 20%}\n", []string{`c:1:49: storage.early_drop: found 20%; expected 0% (never) or 50% to 95%`}},
		{"room of the embedded engine", "storage: {database_space: 1GiB}\n", []string{`c:1:27: storage.database_space: it is for engine postgres, and storage.engine is dbengine, which storage.disk_space bounds`}},
		{"mode", "storage: {engine: postgres, dsn: x, mode: odd}\n", []string{`c:1:43: storage.mode: found "odd"; expected auto or plain or partitions or timescale`}},
		{"choice", "storage: {durability: none}\n", []string{`c:1:23: storage.durability: found "none"; expected group or relaxed`}},
		{"half of TLS", "http:\n  tls:\n    key_file: k\n", []string{"c:3:15: http.tls.key_file: expected both http.tls.certificate_file and http.tls.key_file, or none"}},
		{"postgres without dsn", "storage: {engine: postgres}\n", []string{"c:1:19: storage.engine: engine postgres: expected storage.dsn, such as postgres://user@host/database"}},
		{"dsn without postgres", "storage: {dsn: x}\n", []string{"c:1:16: storage.dsn: found a connection string, but storage.engine is dbengine; expected engine postgres or no dsn"}},
		{"twice", "data: a\ndata: b\n", []string{"c:2:1: data: set before at line 1; expected once"}},
		{"no variable", "data: ${TEST_NO_SUCH}\nagent:\n  host: ${TEST\n", []string{
			`c:1:7: data: the environment variable "TEST_NO_SUCH" is not set`,
			"c:3:9: agent.host: found ${ without }; expected ${NAME}, or $${ for a literal ${",
		}},
		{"alias", "data: &a x\nagent:\n  host: *a\n", []string{"c:3:9: agent.host: found an alias; expected a value"}},
		{"list", "- a\n", []string{"c:1:1: found a list; expected settings as key: value"}},
	}
	for _, tt := range tests {
		_, err := Parse("c", []byte(tt.src))
		var list Mistakes
		if !errors.As(err, &list) {
			t.Errorf("%s: error %v, want Mistakes", tt.name, err)
			continue
		}
		if got := strings.Split(err.Error(), "\n"); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

func TestParse_noYAML(t *testing.T) {
	tests := []struct{ src, want string }{
		{"data: 'a\n", "c:2:1: no YAML: found unexpected end of stream (while scanning a quoted scalar that begins at line 1)"},
		{"data:\n  x: [1\n", "c:3:1: no YAML: did not find expected ',' or ']' (while parsing a flow sequence that begins at line 2)"},
		{"data: a\n---\ndata: b\n", "c:1:1: found several YAML documents; expected one"},
	}
	for _, tt := range tests {
		if _, err := Parse("c", []byte(tt.src)); err == nil || err.Error() != tt.want {
			t.Errorf("%q: error %v, want %s", tt.src, err, tt.want)
		}
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("data: here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(path); err != nil || c.Data != "here" {
		t.Errorf("Load = %+v, %v", c, err)
	}
	if err := os.WriteFile(path, []byte("#"+strings.Repeat("x", MaxFileBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("Load of a big file: %v", err)
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "20ms": 20 * time.Millisecond, "1m30s": 90 * time.Second, "31d": 31 * 24 * time.Hour, "2w": 14 * 24 * time.Hour,
	} {
		if got, err := ParseDuration(text); got != want || err != nil {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "s", "1x", "1s2", "-1s", "1.5s", "99999999999999999w", "9223372036s9223372036s"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for _, n := range []int64{0, 1, 1023, 1024, 1 << 20, 4 << 30, 1<<30 + 1, 3 << 40} {
		if got, err := ParseSize(FormatSize(n)); got != n || err != nil {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", FormatSize(n), got, err, n)
		}
	}
}

func TestParseMerge(t *testing.T) {
	for text, want := range map[string]int64{"off": 0, "auto": MergeAuto, "1GiB": 1 << 30} {
		if got, err := ParseMerge(text); got != want || err != nil {
			t.Errorf("%s is read as %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "on", "-1"} {
		if got, err := ParseMerge(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		full, "", "a: [", "data: &a [*a]\n", "? [x]\n: y\n", "http: {tls: {key_file: ${HOME}}}", "---\n...\n---\n", "!!binary x",
		"<<: {data: x}\n", "storage:\n  disk_space: 99999999999999999999GiB\n", "\xff\xfe", "agent: {interval: 1s1s1s}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := Parse("c", src)
		if (c == nil) == (err == nil) {
			t.Fatalf("Parse gave %v and %v", c, err)
		}
		if err == nil {
			if err := c.Validate(); err != nil {
				t.Errorf("what Parse took is not valid: %v", err)
			}
			return
		}
		var list Mistakes
		if !errors.As(err, &list) || len(list) == 0 {
			t.Fatalf("error %v, want Mistakes", err)
		}
	})
}

// TestDocumentation checks that the page for users has every setting with its default.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../docs/user/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		if !strings.Contains(string(page), "`"+f.key+"`") {
			t.Errorf("docs/user/configuration.md does not mention %s", f.key)
		}
	}
	src := string(page)
	src = src[strings.Index(src, "```yaml")+len("```yaml"):]
	if _, err := Parse("configuration.md", []byte(src[:strings.Index(src, "```")])); err != nil {
		t.Errorf("the example is wrong: %v", err)
	}
}
