package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/internal/vfs"
	"tidemark/storage/lease"
)

// Mode says how the tables of values are kept.
type Mode string

// The modes. Auto takes what a database has, and for an empty one Timescale where the extension is created, else Partitions.
const (
	Auto       Mode = ""
	Plain      Mode = "plain"
	Partitions Mode = "partitions"
	Timescale  Mode = "timescale"
)

// Durability says when a batch counts as durable.
type Durability uint8

// The durabilities.
const (
	// Group finishes completions after the fdatasync of the spool that serves all who wait.
	Group Durability = iota
	// Relaxed finishes them after write(2); fdatasync follows within a second. A power cut may lose that second.
	Relaxed
)

// Class is a retention class. Zero durations keep for ever.
type Class struct {
	History, Trends time.Duration
}

const (
	// MaxClasses bounds the retention classes.
	MaxClasses = 16
	// MinSpoolBytes is the smallest spool that Open takes.
	MinSpoolBytes = 1 << 20
)

// Options configure an engine. SpoolDir is needed.
type Options struct {
	// FS holds the spool; nil is the system's files.
	FS vfs.FS
	// SpoolDir is the folder of the spool, which is created.
	SpoolDir string
	// SpoolBytes bounds what is accepted while the database is away; zero means 1 GiB.
	SpoolBytes int64
	// PendingBytes bounds the memory for values that are not in the database yet; zero means 128 MiB.
	PendingBytes int64
	// Term, if not nil, is this server's right to write to a database that it shares with others: values are acknowledged once they are committed, nothing
	// waits in a spool, and each transaction ends with an error when the term is over. Durability does not count then.
	Term *lease.Term
	// Mode is how tables that are yet to be made are kept.
	Mode       Mode
	Durability Durability
	// FlushDelay is how long values are gathered for one transaction; zero means 500 ms.
	FlushDelay time.Duration
	// QueryTimeout bounds each statement that reads; zero means 30 s. WriteTimeout each that writes; zero means 60 s.
	QueryTimeout, WriteTimeout time.Duration
	// ConnectTimeout is how long Open tries to reach the database; zero means 30 s.
	ConnectTimeout time.Duration
	// Connections bounds the connections for reading; zero means 4.
	Connections int
	// Classes are the retention classes that ItemDefinition.Class names; none means one class without limits.
	Classes []Class
	// SizeBytes bounds all tables of values together by dropping the oldest partitions; zero is no bound.
	SizeBytes int64
	// RoomBytes is what the database and its write-ahead log may take where they are; zero asks the disk when it is this machine's.
	RoomBytes int64
	// EarlyDropPercent is the use of that room from which the oldest partitions or chunks of history are dropped before their time, but for values
	// younger than MinimumAge; zero is never.
	EarlyDropPercent int
	MinimumAge       time.Duration
	// PartitionBytes is what one partition should stay below; zero means 8 GiB.
	PartitionBytes int64
	// Now returns Unix nanoseconds; nil means the system's clock. Retention and partitions look at it.
	Now func() int64
	// Metrics gets the engine's metrics; nil for none. Logger is told of trouble; nil discards.
	Metrics *metrics.Set
	Logger  *slog.Logger

	// segmentBytes is one file of the spool, partitionStep the first step of history in seconds, flushRows one transaction; tests set
	// smaller ones.
	segmentBytes  int64
	partitionStep int32
	flushRows     int
}

func (o *Options) setDefaults() error {
	setDefault := func(v *int64, to int64) {
		if *v == 0 {
			*v = to
		}
	}
	setDefault(&o.SpoolBytes, 1<<30)
	setDefault(&o.PendingBytes, 128<<20)
	setDefault(&o.PartitionBytes, 8<<30)
	setDefault(&o.segmentBytes, min(max(o.SpoolBytes/16, 1<<20), 16<<20))
	setDefault((*int64)(&o.FlushDelay), int64(500*time.Millisecond))
	setDefault((*int64)(&o.QueryTimeout), int64(30*time.Second))
	setDefault((*int64)(&o.WriteTimeout), int64(time.Minute))
	setDefault((*int64)(&o.ConnectTimeout), int64(30*time.Second))
	if o.partitionStep == 0 {
		o.partitionStep = maxStep
	}
	if o.flushRows == 0 {
		o.flushRows = 20_000
	}
	if o.Connections == 0 {
		o.Connections = 4
	}
	if len(o.Classes) == 0 {
		o.Classes = []Class{{}}
	}
	if o.FS == nil {
		o.FS = vfs.OS{}
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o.check()
}

func (o *Options) check() error {
	switch {
	case o.SpoolDir == "":
		return errors.New("no folder for the spool")
	case o.SpoolBytes < MinSpoolBytes:
		return fmt.Errorf("spool: %d bytes, expected at least %d", o.SpoolBytes, MinSpoolBytes)
	case len(o.Classes) > MaxClasses:
		return fmt.Errorf("retention classes: %d, expected at most %d", len(o.Classes), MaxClasses)
	case o.Mode != Auto && o.Mode != Plain && o.Mode != Partitions && o.Mode != Timescale:
		return fmt.Errorf("mode: %q, expected %s, %s or %s", o.Mode, Plain, Partitions, Timescale)
	}
	if o.EarlyDropPercent < 0 || o.EarlyDropPercent > 99 || o.RoomBytes < 0 || o.MinimumAge < 0 {
		return fmt.Errorf("early drop at %d %% of %d bytes, minimum age %v; expected 0 to 99 %% and nothing below zero", o.EarlyDropPercent, o.RoomBytes, o.MinimumAge)
	}
	return checkClasses(o.Classes)
}
