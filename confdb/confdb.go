// Package confdb keeps the configuration objects (hosts, templates, items, triggers, macros, value maps), the events
// and the problems in one database: the SQLite file config.db in the data folder, or tables in PostgreSQL. Statements are
// written for SQLite; package pgdriver makes them PostgreSQL's.
//
// The objects are stored as they were configured: templates once, and for every host that is linked to one only the
// identities of what it inherits (see docs/design/0014-configuration.md). Every change raises a revision; a host carries
// the revision at which it last changed, so that a configuration cache reads only what is new.
package confdb

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"tidemark/confdb/pgdriver"
	"tidemark/model"
)

// FileName is the name of the database in the data folder.
const FileName = "config.db"

//go:embed migrations/*.sql
var migrations embed.FS

// Errors that callers tell apart.
var (
	// ErrInUse says that another process holds the database.
	ErrInUse = errors.New("in use by another tidemark; stop it or use --http")
	// ErrDamaged says that the database's file is damaged; Rebuild makes a new one of what can be read.
	ErrDamaged = errors.New("damaged")
	// ErrNotFound says that the named object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrInvalid says that an object cannot be stored as it is.
	ErrInvalid = errors.New("invalid")
	// ErrReadOnly says that this is a copy, which follows another server's database.
	ErrReadOnly error = readOnlyError{}
	// ErrAway says that PostgreSQL cannot be reached. The next call tries again.
	ErrAway = errors.New("cannot be reached")
	// ErrClosed says that the database was closed before.
	ErrClosed = errors.New("config database is closed")
)

type readOnlyError struct{}

// Error implements error.
func (readOnlyError) Error() string {
	return "this server is a standby, or fenced: its configuration cannot be changed here; change it at the primary"
}

// Unavailable says that another server can do what this one cannot.
func (readOnlyError) Unavailable() {}

// IDs gives the ids of new items; the catalog does.
type IDs interface {
	// NextItemID returns an id that was never given before.
	NextItemID() (model.ItemID, error)
}

// Options of Open.
type Options struct {
	// DSN names a PostgreSQL database that has the configuration; empty: as the folder's PlaceFileName says, else the file
	// config.db has it. Schema is where its tables are; empty: DefaultSchema.
	DSN, Schema string
	// Session, if not nil, is called with each new connection to PostgreSQL before it is used: servers that share the database make sure that they still may.
	Session func(context.Context, *pgx.Conn) error
	// IDs gives item ids. It is needed as soon as an item is created.
	IDs IDs
	// Logger is where migrations and refused objects are told; nil: nowhere.
	Logger *slog.Logger
	// Metrics takes the package's metrics; nil: none.
	Metrics *metrics.Set
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// DB is the open database. Its methods may be called from several goroutines; they take turns.
type DB struct {
	sql *sql.DB
	// path names the database in errors; dir is the data folder.
	path, dir string
	// postgres makes the connections to PostgreSQL; nil for SQLite.
	postgres *pgdriver.Connector
	ids      IDs
	log      *slog.Logger
	now      func() time.Time
	changed  chan struct{}

	changes, imports *metrics.Counter
	// away says that PostgreSQL could not be reached at the last try.
	away atomic.Bool

	// secrets seals and opens secret texts; sealing guards what it holds.
	secrets *sealer
	sealing sync.Mutex

	mu sync.Mutex
	// definitions are the templates' items and triggers, decoded; nil after a change of any template.
	definitions *definitions
	// declared is what each host's agent declared last, see Declared.
	declared map[model.HostID][]model.Item
	closed   bool

	// planning is held while a large plan is made.
	planning sync.Mutex
}

// Open opens or creates config.db in dir, which must exist, brings its schema up to date and takes its lock for as long
// as it is open. A database that another process holds is ErrInUse. With a DSN the tables are in PostgreSQL, and the folder
// has only the key of the secrets.
func Open(ctx context.Context, dir string, o Options) (*DB, error) {
	if err := findPlace(dir, &o); err != nil {
		return nil, err
	}
	d, err := openAt(ctx, dir, o)
	if err == nil && d.postgres != nil {
		err = writePlace(dir, place{o.DSN, o.Schema})
	}
	if err != nil && d != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, err
}

// openAt opens the database that the options name, whatever the folder says.
func openAt(ctx context.Context, dir string, o Options) (*DB, error) {
	d := &DB{
		path: filepath.Join(dir, FileName), dir: dir, ids: o.IDs, log: o.Logger, now: o.Now, changed: make(chan struct{}, 1),
		declared: make(map[model.HostID][]model.Item),
	}
	d.secrets = &sealer{db: d, said: make(map[string]bool)}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.now == nil {
		d.now = time.Now
	}
	set := o.Metrics
	if set == nil {
		set = metrics.NewSet()
	}
	d.changes = set.GetOrCreateCounter("tidemark_confdb_changes_total")
	d.imports = set.GetOrCreateCounter("tidemark_confdb_imports_total")
	set.GetOrCreateGauge("tidemark_confdb_away", func() float64 {
		if d.away.Load() {
			return 1
		}
		return 0
	})
	if err := removePlans(dir); err != nil {
		d.log.Warn("copies that an interrupted plan left could not be removed", "error", err)
	}
	if err := d.connect(o); err != nil {
		return nil, err
	}
	// The exclusive lock belongs to a connection, so there can be only one.
	d.sql.SetMaxOpenConns(1)
	d.sql.SetMaxIdleConns(1)
	d.sql.SetConnMaxLifetime(0)
	d.sql.SetConnMaxIdleTime(0)
	if err := d.prepare(ctx); err != nil {
		return nil, errors.Join(d.wrap("open", err), d.sql.Close())
	}
	if err := d.sealClear(ctx); err != nil {
		if errors.Is(err, ErrDamaged) || errors.Is(err, ErrInUse) || ctx.Err() != nil {
			return nil, errors.Join(err, d.sql.Close())
		}
		// A start must be possible with a key file that cannot be used, and on a full disk.
		d.log.Error("secrets that an earlier version stored in the clear could not be sealed; it is tried again at the next start", "error", err)
	}
	return d, nil
}

func (d *DB) connect(o Options) (err error) {
	if o.DSN != "" {
		return d.connectPostgres(o)
	}
	if d.sql, err = sql.Open("sqlite", dataSource(d.path)); err != nil {
		return fmt.Errorf("open %s: %w", d.path, err)
	}
	return nil
}

func (d *DB) prepare(ctx context.Context) error {
	if d.postgres != nil {
		return d.preparePostgres(ctx)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	// A reading statement takes the exclusive lock; without it a second process would fail somewhere later.
	var n int
	if err := d.sql.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&n); err != nil {
		return err
	}
	return d.migrate(ctx, goose.DialectSQLite3, d.sql, files)
}

// dataSource names the database with its pragmas. The write-ahead log is on: a commit is one write and one sync instead
// of the three of a rollback journal, and events are committed every second. In exclusive locking mode it needs no shared
// memory file, which a full disk has no room for, and closing folds it back, so a stopped server's folder has one file.
//
// The mode must be set before the file is read. The driver runs pragmas in alphabetical order and takes them as they are,
// so the quotes put it first.
func dataSource(path string) string {
	q := url.Values{}
	for _, pragma := range []string{
		`"locking_mode"(EXCLUSIVE)`, "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)",
		"cache_size(-16384)", "temp_store(MEMORY)", "journal_size_limit(67108864)",
	} {
		q.Add("_pragma", pragma)
	}
	q.Set("_txlock", "immediate")
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

func (d *DB) migrate(ctx context.Context, dialect goose.Dialect, db *sql.DB, files fs.FS) error {
	p, err := goose.NewProvider(dialect, db, files,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()), goose.WithAllowOutofOrder(true))
	if err != nil {
		return err
	}
	if err := d.refuseNewer(ctx, p); err != nil {
		return err
	}
	done, err := p.Up(ctx)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if len(done) > 0 && done[0].Source.Version == 1 {
		level = slog.LevelDebug // a new database is nothing to tell
	}
	for _, m := range done {
		d.log.Log(ctx, level, "migrated the configuration database", "file", d.path, "version", m.Source.Version)
	}
	return nil
}

// newestMigration is the version of the schema that this program has.
func newestMigration() (version int64, err error) {
	files, err := migrations.ReadDir("migrations")
	for _, f := range files {
		number, _, _ := strings.Cut(f.Name(), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", f.Name(), err)
		}
		version = max(version, n)
	}
	return version, err
}

// refuseNewer keeps an older program from writing into the database of a newer one.
func (d *DB) refuseNewer(ctx context.Context, p *goose.Provider) error {
	version, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	if version > newest {
		return fmt.Errorf("its schema is version %d and this program knows up to %d; use a newer program", version, newest)
	}
	return nil
}

// mistaken reports whether an error is of what was asked for and not of the database: whoever reads it need not know where that is.
func mistaken(err error) bool {
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrConflict) || errors.Is(err, ErrFile) || errors.Is(err, ErrPlanning)
}

// wrap names the database in an error and tells a refused lock from all else.
func (d *DB) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	if mistaken(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	if d.postgres != nil {
		return d.wrapPostgres(what, err)
	}
	var s *sqlite.Error
	if errors.As(err, &s) {
		if code := s.Code() & 0xff; code == sqlitelib.SQLITE_BUSY || code == sqlitelib.SQLITE_LOCKED {
			return fmt.Errorf("%s is %w", d.path, ErrInUse)
		} else if code == sqlitelib.SQLITE_CORRUPT || code == sqlitelib.SQLITE_NOTADB {
			return fmt.Errorf("%s is %w: %s: %w", d.path, ErrDamaged, what, err)
		} else if code == sqlitelib.SQLITE_READONLY {
			return ErrReadOnly
		}
	}
	return fmt.Errorf("%s: %s: %w", d.path, what, diskFull(err))
}

// Close closes the database and gives its lock back. A second call does nothing.
func (d *DB) Close() error {
	d.mu.Lock()
	closed := d.closed
	d.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	return d.wrap("close", d.sql.Close())
}

// Changed delivers at least once after each change of hosts, items, triggers or macros; several may come as one.
func (d *DB) Changed() <-chan struct{} { return d.changed }

// MaxItemID returns the largest id of an item; zero for none.
func (d *DB) MaxItemID(ctx context.Context) (model.ItemID, error) {
	var n uint64
	err := d.sql.QueryRowContext(ctx, `SELECT coalesce(max(id), 0) FROM (SELECT max(item_id) AS id FROM items UNION ALL
		SELECT max(item_id) FROM rule_items UNION ALL SELECT max(item_id) FROM discovered_items) AS largest`).Scan(&n)
	return model.ItemID(n), d.wrap("read the largest item id", err)
}

// Revision returns the number of the newest change.
func (d *DB) Revision(ctx context.Context) (uint64, error) {
	var n uint64
	err := d.sql.QueryRowContext(ctx, "SELECT value FROM meta WHERE name = 'revision'").Scan(&n)
	return n, d.wrap("read revision", err)
}
