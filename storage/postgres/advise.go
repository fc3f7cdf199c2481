package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Advice is one thing that should be changed, or that was looked at and is well.
type Advice struct {
	// Subject is the setting or the thing, Found what it is now.
	Subject string `json:"subject"`
	Found   string `json:"found"`
	// Fine says that nothing should be changed.
	Fine bool `json:"fine"`
	// Change is what to do, Gives what it will give; both empty if Fine.
	Change string `json:"change,omitempty"`
	Gives  string `json:"gives,omitempty"`
}

// facts are what advice is made from. Sizes are bytes; zero is unknown.
type facts struct {
	sharedBuffers, maxWAL, memory      int64
	checkpointTimeout                  int64 // seconds
	completion                         float64
	timed, requested                   int64
	fullPageWrites                     bool
	walCompression, synchronous        string
	effectiveCache, randomPageCost     float64
	dataDirectory                      string
	fileSystem                         string
	modes                              map[Mode]int
	plainBytes, tablesBytes, textBytes int64
	compression                        bool
	timescale                          string
}

// Advise looks at a database and says what to change and what that gives. It reads only.
func Advise(ctx context.Context, dsn string) ([]Advice, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("advise: %w", err)
	}
	config.RuntimeParams["application_name"] = "tidemark advise"
	config.RuntimeParams["default_transaction_read_only"] = "on"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("advise: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // it only read
	f, err := gatherFacts(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("advise: %w", err)
	}
	if sameMachine(config.Host) { // the same machine
		f.memory = machineMemory()
		f.fileSystem = fileSystemOf(f.dataDirectory)
	}
	return f.advise(), nil
}

func gatherFacts(ctx context.Context, conn *pgx.Conn) (*facts, error) {
	f := &facts{modes: map[Mode]int{}}
	var fullPage string
	err := conn.QueryRow(ctx, `SELECT pg_size_bytes(current_setting('shared_buffers')), pg_size_bytes(current_setting('max_wal_size')),
		extract(epoch FROM current_setting('checkpoint_timeout')::interval)::bigint, current_setting('checkpoint_completion_target')::float8, current_setting('full_page_writes'),
		current_setting('wal_compression'), current_setting('synchronous_commit'), pg_size_bytes(current_setting('effective_cache_size'))::float8,
		current_setting('random_page_cost')::float8, coalesce(current_setting('data_directory', true), '')`).
		Scan(&f.sharedBuffers, &f.maxWAL, &f.checkpointTimeout, &f.completion, &fullPage, &f.walCompression, &f.synchronous, &f.effectiveCache, &f.randomPageCost, &f.dataDirectory)
	if err != nil && strings.Contains(err.Error(), "data_directory") { // only superusers and pg_read_all_settings see it
		err = conn.QueryRow(ctx, `SELECT pg_size_bytes(current_setting('shared_buffers')), pg_size_bytes(current_setting('max_wal_size')),
			extract(epoch FROM current_setting('checkpoint_timeout')::interval)::bigint, current_setting('checkpoint_completion_target')::float8, current_setting('full_page_writes'),
			current_setting('wal_compression'), current_setting('synchronous_commit'), pg_size_bytes(current_setting('effective_cache_size'))::float8, current_setting('random_page_cost')::float8`).
			Scan(&f.sharedBuffers, &f.maxWAL, &f.checkpointTimeout, &f.completion, &fullPage, &f.walCompression, &f.synchronous, &f.effectiveCache, &f.randomPageCost)
	}
	if err != nil {
		return nil, err
	}
	f.fullPageWrites = fullPage == "on"
	caps, err := probe(ctx, conn)
	if err != nil {
		return nil, err
	}
	f.timescale, f.compression = caps.timescale, caps.compression()
	sql := "SELECT checkpoints_timed, checkpoints_req FROM pg_stat_bgwriter"
	if caps.version >= 170_000 {
		sql = "SELECT num_timed, num_requested FROM pg_stat_checkpointer"
	}
	if err := conn.QueryRow(ctx, sql).Scan(&f.timed, &f.requested); err != nil {
		return nil, err
	}
	return f, f.gatherTables(ctx, conn)
}

// gatherTables looks at the tables of values, if there are any.
func (f *facts) gatherTables(ctx context.Context, conn *pgx.Conn) error {
	var ours bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('tidemark_tables') IS NOT NULL").Scan(&ours); err != nil || !ours {
		return err
	}
	rows, err := conn.Query(ctx, `WITH RECURSIVE t(oid, mode, parent) AS (SELECT to_regclass(name)::oid, mode, parent FROM tidemark_tables
			UNION SELECT inhrelid, mode, parent FROM pg_inherits, t WHERE inhparent = t.oid)
		SELECT mode, parent IN ('history_text', 'history_log', 'history_str', 'history_bin'), sum(pg_total_relation_size(oid))::bigint FROM t WHERE oid IS NOT NULL GROUP BY 1, 2`)
	if err != nil {
		return err
	}
	var mode string
	var text bool
	var size int64
	_, err = pgx.ForEachRow(rows, []any{&mode, &text, &size}, func() error {
		f.modes[Mode(mode)]++
		f.tablesBytes += size
		if text {
			f.textBytes += size
		}
		if Mode(mode) == Plain {
			f.plainBytes += size
		}
		return nil
	})
	return err
}

// machineMemory is the memory of this machine; zero when it cannot be told.
func machineMemory() int64 {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// The magic numbers of file systems, from Linux' magic.h and OpenZFS.
const (
	btrfsMagic = 0x9123683e
	zfsMagic   = 0x2fc12fc1
)

// fileSystemOf names the copy-on-write file system that holds a folder; empty for another one, or when it cannot be told.
func fileSystemOf(dir string) string {
	var s syscall.Statfs_t
	if dir == "" {
		return ""
	}
	err := syscall.Statfs(dir, &s)
	if errors.Is(err, os.ErrPermission) { // the folder above may be looked at
		err = syscall.Statfs(filepath.Dir(dir), &s)
	}
	if err != nil {
		return ""
	}
	switch int64(s.Type) & 0xffffffff {
	case btrfsMagic:
		return "btrfs"
	case zfsMagic:
		return "zfs"
	}
	return ""
}

func sizeText(n int64) string {
	switch {
	case n >= 1<<30:
		return strconv.FormatFloat(float64(n)/(1<<30), 'f', 1, 64) + " GB"
	case n >= 1<<20:
		return strconv.FormatInt(n>>20, 10) + " MB"
	}
	return strconv.FormatInt(n>>10, 10) + " kB"
}
