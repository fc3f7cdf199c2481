package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is one setting of the file.
type field struct {
	key string
	// set stores a value that parse has read; get returns it.
	parse func(text string) (any, error)
	set   func(*Config, any)
	get   func(*Config) any
	// check reports a value that parses but cannot be.
	check func(any) error
}

// setting makes a field out of a pointer into the struct.
func setting[T any](key string, parse func(string) (T, error), at func(*Config) *T, check func(T) error) field {
	return field{
		key:   key,
		parse: func(text string) (any, error) { return parse(text) },
		set:   func(c *Config, v any) { *at(c) = v.(T) },
		get:   func(c *Config) any { return *at(c) },
		check: func(v any) error { return check(v.(T)) },
	}
}

func anything[T any](T) error { return nil }

// fields are all settings, in the order of the documentation.
var fields = slices.Concat([]field{
	setting("data", parseText, func(c *Config) *string { return &c.Data }, filled("a folder")),
	setting("http.listen", parseText, func(c *Config) *string { return &c.HTTP.Listen }, checkAddress),
	setting("http.tls.certificate_file", parseText, func(c *Config) *string { return &c.HTTP.CertificateFile }, anything),
	setting("http.tls.key_file", parseText, func(c *Config) *string { return &c.HTTP.KeyFile }, anything),
	setting("http.token_file", parseText, func(c *Config) *string { return &c.HTTP.TokenFile }, anything),
	setting("http.insecure", parseBool, func(c *Config) *bool { return &c.HTTP.Insecure }, anything),
	setting("trapper.listen", parseText, func(c *Config) *string { return &c.Trapper.Listen }, checkAddress),
	setting("trapper.tls.ca_file", parseText, func(c *Config) *string { return &c.Trapper.CAFile }, anything),
	setting("trapper.tls.certificate_file", parseText, func(c *Config) *string { return &c.Trapper.CertificateFile }, anything),
	setting("trapper.tls.key_file", parseText, func(c *Config) *string { return &c.Trapper.KeyFile }, anything),
	setting("autoregistration", parseBool, func(c *Config) *bool { return &c.Autoregistration }, anything),
	setting("storage.engine", parseText, func(c *Config) *string { return &c.Storage.Engine }, oneOf(EngineDB, EnginePostgres)),
	setting("storage.dsn", parseText, func(c *Config) *string { return &c.Storage.DSN }, anything),
	setting("configuration.engine", parseText, func(c *Config) *string { return &c.Configuration.Engine }, checkConfigurationEngine),
	setting("configuration.dsn", parseText, func(c *Config) *string { return &c.Configuration.DSN }, anything),
	setting("configuration.schema", parseText, func(c *Config) *string { return &c.Configuration.Schema }, checkSchema),
	setting("storage.mode", parseMode, func(c *Config) *Mode { return &c.Storage.Mode }, oneOf(ModeAuto, ModePlain, ModePartitions, ModeTimescale)),
	setting("storage.shared", parseBool, func(c *Config) *bool { return &c.Storage.Shared }, anything),
	setting("storage.lease", ParseDuration, func(c *Config) *time.Duration { return &c.Storage.Lease }, checkLease),
	setting("storage.override_history", ParseDuration, func(c *Config) *time.Duration { return &c.Storage.OverrideHistory }, checkOverride),
	setting("storage.override_trends", ParseDuration, func(c *Config) *time.Duration { return &c.Storage.OverrideTrends }, checkOverride),
	setting("storage.durability", parseDurability, func(c *Config) *Durability { return &c.Storage.Durability },
		oneOf(DurabilityGroup, DurabilityRelaxed)),
	setting("storage.disk_space", ParseSize, func(c *Config) *int64 { return &c.Storage.DiskSpaceBytes },
		atLeast(MinDiskSpaceBytes, true)),
	setting("storage.database_space", ParseSize, func(c *Config) *int64 { return &c.Storage.DatabaseSpaceBytes }, atLeast(MinDiskSpaceBytes, true)),
	setting("storage.early_drop", parsePercent, func(c *Config) *int { return &c.Storage.EarlyDrop }, checkEarlyDrop),
	setting("storage.page_cache_size", ParseSize, func(c *Config) *int64 { return &c.Storage.PageCacheBytes },
		atLeast(MinPageCacheBytes, false)),
	setting("storage.snapshots.every", ParseDuration, func(c *Config) *time.Duration { return &c.Storage.Snapshots.Every }, checkEvery),
	setting("storage.snapshots.keep", parseCount, func(c *Config) *int { return &c.Storage.Snapshots.Keep }, checkKeep),
	setting("storage.snapshots.at_quota", parseAtQuota, func(c *Config) *AtQuota { return &c.Storage.Snapshots.AtQuota },
		oneOf(AtQuotaDrop, AtQuotaRefuse)),
	setting("collect.allowed_networks", parseText, func(c *Config) *string { return &c.Collect.AllowedNetworks }, checkNetworks),
	setting("collect.denied_networks", parseText, func(c *Config) *string { return &c.Collect.DeniedNetworks }, checkNetworks),
	setting("collect.trap_listen", parseText, func(c *Config) *string { return &c.Collect.TrapListen }, checkOptionalAddress),
	setting("collect.java_gateway", parseText, func(c *Config) *string { return &c.Collect.JavaGateway }, checkOptionalAddress),
	setting("collect.external_scripts", parseText, func(c *Config) *string { return &c.Collect.ExternalScripts }, anything),
	setting("collect.ssl_folder", parseText, func(c *Config) *string { return &c.Collect.SSLFolder }, anything),
	setting("storage.minimum_age", ParseDuration, func(c *Config) *time.Duration { return &c.Storage.MinimumAge }, checkAge),
	setting("storage.minimum_ages", parseText, func(c *Config) *string { return &c.Storage.MinimumAges }, checkAges),
	setting("storage.tiers.minute_share", parsePercent, func(c *Config) *int { return &c.Storage.MinuteShare }, checkShare),
	setting("storage.tiers.hour_share", parsePercent, func(c *Config) *int { return &c.Storage.HourShare }, checkShare),
	setting("storage.host_factor", parseCount, func(c *Config) *int { return &c.Storage.HostFactor }, checkHostFactor),
	setting("storage.headroom.hold_at", parsePercent, func(c *Config) *int { return &c.Storage.Headroom.HoldAt }, checkHoldAt),
	setting("storage.headroom.shrink", parseBool, func(c *Config) *bool { return &c.Storage.Headroom.Shrink }, anything),
	setting("storage.hot_codec", parseText, func(c *Config) *string { return &c.Storage.HotCodec }, checkHotCodec),
	setting("storage.direct_io", parseText, func(c *Config) *string { return &c.Storage.DirectIO }, oneOf(DirectAuto, DirectOff)),
	setting("storage.recompress.codec", parseText, func(c *Config) *string { return &c.Storage.Recompress.Codec }, checkCodec),
	setting("storage.recompress.older_than", ParseDuration, func(c *Config) *time.Duration { return &c.Storage.Recompress.OlderThan }, anything),
	setting("storage.recompress.merge", ParseMerge, func(c *Config) *int64 { return &c.Storage.Recompress.MergeBytes }, anything),
	setting("storage.recompress.rate", ParseSize, func(c *Config) *int64 { return &c.Storage.Recompress.RateBytes }, atLeast(1<<20, true)),
	setting("storage.query_log", ParseSize, func(c *Config) *int64 { return &c.Storage.QueryLogBytes }, atLeast(64<<10, true)),
	setting("standby.of", parseText, func(c *Config) *string { return &c.Standby.Of }, anything),
	setting("standby.token_file", parseText, func(c *Config) *string { return &c.Standby.TokenFile }, anything),
	setting("standby.ca_file", parseText, func(c *Config) *string { return &c.Standby.CAFile }, anything),
	setting("standby.advertise", parseText, func(c *Config) *string { return &c.Standby.Advertise }, anything),
	setting("standby.synchronous", parseBool, func(c *Config) *bool { return &c.Standby.Synchronous }, anything),
	setting("standby.wait", ParseDuration, func(c *Config) *time.Duration { return &c.Standby.Wait }, checkWait),
	setting("alerts_paused", parseBool, func(c *Config) *bool { return &c.AlertsPaused }, anything),
	setting("agent.server", parseText, func(c *Config) *string { return &c.Agent.Server }, checkAddress),
	setting("agent.host", parseText, func(c *Config) *string { return &c.Agent.Host }, anything),
	setting("agent.mongo.interface", parseText, func(c *Config) *string { return &c.Agent.MongoInterface }, anything),
	setting("agent.mongo.ports", parsePorts, func(c *Config) *[]uint16 { return &c.Agent.MongoPorts }, anything),
	setting("agent.mongo.uri", parseText, func(c *Config) *string { return &c.Agent.MongoURI }, anything),
	setting("agent.mongo.uri_file", parseText, func(c *Config) *string { return &c.Agent.MongoURIFile }, anything),
	setting("agent.mongo.log", parseText, func(c *Config) *string { return &c.Agent.MongoLog }, anything),
	setting("agent.mongo.profiler", parseBool, func(c *Config) *bool { return &c.Agent.MongoProfiler }, anything),
	setting("agent.mongo.interval", ParseDuration, func(c *Config) *time.Duration { return &c.Agent.MongoInterval }, checkMongoInterval),
	setting("agent.mongo.plans", ParseDuration, func(c *Config) *time.Duration { return &c.Agent.MongoPlans }, checkMongoPlans),
	setting("agent.interval", ParseDuration, func(c *Config) *time.Duration { return &c.Agent.Interval }, checkInterval),
	setting("agent.buffer", ParseSize, func(c *Config) *int64 { return &c.Agent.BufferBytes },
		atLeast(MinAgentBufferBytes, false)),
}, tlsFields("agent.tls", func(c *Config) *AgentTLS { return &c.Agent.TLS }), proxyFields)

func parseText(text string) (string, error) { return text, nil }

// parsePorts reads one or several port numbers with commas between them.
func parsePorts(text string) ([]uint16, error) {
	var ports []uint16
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(part), 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("found %q; expected port numbers from 1 to 65535 with commas between them, such as 27017,27018", text)
		}
		ports = append(ports, uint16(n))
	}
	return ports, nil
}

func parseDurability(text string) (Durability, error) { return Durability(text), nil }

func parseMode(text string) (Mode, error) { return Mode(text), nil }

func parseAtQuota(text string) (AtQuota, error) { return AtQuota(text), nil }

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("found %.60q; expected a whole number", text)
	}
	return n, nil
}

// MaxTierShare is the most that a tier may take of the disk space, in percent.
const MaxTierShare = 40

// parsePercent reads a whole number of percent, with or without the sign.
// MergeAuto is the Recompress.MergeBytes that follows from the disk space.
const MergeAuto = -1

// ParseMerge reads off (0), auto (MergeAuto), or a size.
func ParseMerge(text string) (int64, error) {
	switch text {
	case RecompressOff:
		return 0, nil
	case "auto":
		return MergeAuto, nil
	}
	n, err := ParseSize(text)
	if err != nil {
		return 0, fmt.Errorf("found %.40q; expected off, auto, or a size such as 1GiB", text)
	}
	return n, nil
}

func parsePercent(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(text, "%")))
	if err != nil {
		return 0, fmt.Errorf("found %.60q; expected a whole number of percent, such as 15%%", text)
	}
	return n, nil
}

func checkHostFactor(n int) error {
	if n < 0 || n > 1000 {
		return fmt.Errorf("found %d; expected 1 to 1000, or 0 for no bound", n)
	}
	return nil
}

// checkHoldAt keeps away from marks that nearly every disk is past.
func checkHoldAt(n int) error {
	if n != 0 && (n < 50 || n > 99) {
		return fmt.Errorf("found %d%%; expected 50%% to 99%%, or 0%% for never", n)
	}
	return nil
}

// checkHotCodec accepts what the engine's ParseCodec does: values have to be written somehow.
func checkHotCodec(text string) error {
	if text == RecompressOff || checkCodec(text) != nil {
		return fmt.Errorf("found %.40q; expected none, lz4, or zstd:1 to zstd:22", text)
	}
	return nil
}

// checkCodec accepts what the engine's ParseCodec does, and off.
func checkCodec(text string) error {
	level, zstd := strings.CutPrefix(text, "zstd:")
	if n, err := strconv.Atoi(level); zstd && err == nil && n >= 1 && n <= 22 {
		return nil
	}
	if text == RecompressOff || text == "none" || text == "lz4" {
		return nil
	}
	return fmt.Errorf("found %.40q; expected off, none, lz4, or zstd:1 to zstd:22", text)
}

// MaxSnapshots bounds the snapshots that are kept.
const MaxSnapshots = 1000

func checkKeep(n int) error {
	if n < 1 || n > MaxSnapshots {
		return fmt.Errorf("found %d; expected 1 to %d", n, MaxSnapshots)
	}
	return nil
}

func checkEvery(d time.Duration) error {
	if d != 0 && d < time.Minute {
		return fmt.Errorf("found %s; expected 0 for none, or at least 1m", d)
	}
	return nil
}

func checkLease(d time.Duration) error {
	if d != 0 && (d < 2*time.Second || d > 5*time.Minute) {
		return fmt.Errorf("found %s; expected 2s to 5m", d)
	}
	return nil
}

func checkAge(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("found %s; expected 0 for none, or a time such as 30d", d)
	}
	return nil
}

// The bounds of standby.wait.
const (
	MinStandbyWait = time.Second
	MaxStandbyWait = 10 * time.Minute
)

func checkWait(d time.Duration) error {
	if d < MinStandbyWait || d > MaxStandbyWait {
		return fmt.Errorf("found %s; expected %s to %s", d, MinStandbyWait, MaxStandbyWait)
	}
	return nil
}

func checkShare(n int) error {
	if n < 0 || n > MaxTierShare {
		return fmt.Errorf("found %d%%; expected 0%% (no such tier) to %d%%", n, MaxTierShare)
	}
	return nil
}

// checkEarlyDrop permits 0 for never; below a half there is no want of room, and above 95 % a day may not fit any more.
func checkEarlyDrop(n int) error {
	if n != 0 && (n < 50 || n > 95) {
		return fmt.Errorf("found %d%%; expected 0%% (never) or 50%% to 95%%", n)
	}
	return nil
}

func parseBool(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("found %.60q; expected true or false", text)
}

func filled(what string) func(string) error {
	return func(text string) error {
		if text == "" {
			return fmt.Errorf("found nothing; expected %s", what)
		}
		return nil
	}
}

func oneOf[T ~string](names ...T) func(T) error {
	return func(v T) error {
		list := make([]string, len(names))
		for i, name := range names {
			if v == name {
				return nil
			}
			list[i] = string(name)
		}
		return fmt.Errorf("found %.60q; expected %s", string(v), strings.Join(list, " or "))
	}
}

// checkAddress accepts host:port with a number as port; the host may be empty for all addresses.
func checkAddress(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || strings.ContainsAny(host, " /\t") {
		return fmt.Errorf("found %.100q; expected host:port, such as 127.0.0.1:8420", text)
	}
	return nil
}

// checkOptionalAddress is checkAddress, or nothing.
func checkOptionalAddress(text string) error {
	if text == "" {
		return nil
	}
	return checkAddress(text)
}

// checkNetworks accepts networks and addresses with commas between them.
func checkNetworks(text string) error {
	_, err := ParseNetworks(text)
	return err
}

// checkOverride permits what Zabbix does, an hour to 25 years, and 0 for none.
func checkOverride(d time.Duration) error {
	if d != 0 && (d < time.Hour || d > 25*365*24*time.Hour) {
		return fmt.Errorf("found %s; expected 0 or 1h to 9125d", d)
	}
	return nil
}

func checkInterval(d time.Duration) error {
	if d < MinAgentInterval || d > MaxAgentInterval {
		return fmt.Errorf("found %s; expected 10ms to 1h", d)
	}
	return nil
}

func checkMongoPlans(d time.Duration) error {
	if d != 0 && (d < 10*time.Second || d > 24*time.Hour) {
		return fmt.Errorf("%s is out of range; expected 0s for never, or 10s to 24h", d)
	}
	return nil
}

func checkMongoInterval(d time.Duration) error {
	if d != 0 && d < time.Second || d > MaxAgentInterval || d%time.Second != 0 {
		return fmt.Errorf("found %s; expected whole seconds from 1s to 1h", d)
	}
	return nil
}

// atLeast accepts sizes from a minimum on, and zero if it stands for a default.
func atLeast(bytes int64, zero bool) func(int64) error {
	return func(n int64) error {
		if n >= bytes || zero && n == 0 {
			return nil
		}
		expected := "at least " + FormatSize(bytes)
		if zero {
			expected = "0 or " + expected
		}
		return fmt.Errorf("found %s; expected %s", FormatSize(n), expected)
	}
}

// sizeUnits are in the order in which FormatSize tries them.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"KB", 1e3},
	{"kB", 1e3},
	{"B", 1},
}

// ParseSize reads a size: a whole number with KiB, MiB, GiB, TiB (powers of 1024), KB, MB, GB, TB (powers of 1000), B, or
// no unit for bytes.
func ParseSize(text string) (int64, error) {
	wrong := fmt.Errorf("found %.60q; expected a size, such as 512MiB or 4GiB", text)
	number, unit := text, int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = strings.TrimRight(rest, " "), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil {
		return 0, wrong
	}
	if int64(n) > math.MaxInt64/unit {
		return 0, fmt.Errorf("found %.60q; expected less than 8388608TiB", text)
	}
	return int64(n) * unit, nil
}

// FormatSize writes a size so that ParseSize reads it back.
func FormatSize(n int64) string {
	for _, u := range sizeUnits[:4] {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// durationUnits are in the order in which ParseDuration tries them: ms before m and s.
var durationUnits = []struct {
	name string
	unit time.Duration
}{
	{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}, {"w", 7 * 24 * time.Hour},
}

var errDuration = errors.New("expected a duration, such as 20ms, 1m30s or 31d")

// ParseDuration reads whole numbers with the units ms, s, m, h, d (24 h) and w (7 d), one after the other; the bare 0 is
// zero.
func ParseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	wrong := fmt.Errorf("found %.60q; %w", text, errDuration)
	var sum time.Duration
	rest := text
	for first := true; first || rest != ""; first = false {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.ParseUint(rest[:digits], 10, 63)
		if err != nil {
			return 0, wrong
		}
		rest = rest[digits:]
		unit := time.Duration(0)
		for _, u := range durationUnits {
			if after, ok := strings.CutPrefix(rest, u.name); ok {
				unit, rest = u.unit, after
				break
			}
		}
		if unit == 0 || n > uint64((math.MaxInt64-sum)/unit) {
			return 0, wrong
		}
		sum += time.Duration(n) * unit
	}
	return sum, nil
}
