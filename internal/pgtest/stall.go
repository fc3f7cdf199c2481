package pgtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// stallTime bounds how long Stall tries.
const stallTime = time.Minute

// Stall lets no commit of a server come back, until resume: commits wait for a replica that does not exist. The database of dsn gets a table stalled.
func Stall(dsn string) (resume func() error, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), stallTime)
	defer cancel()
	configure := func(sql string) error {
		_, err := Exec(dsn, sql)
		if err == nil {
			_, err = Exec(dsn, "SELECT pg_reload_conf()")
		}
		return err
	}
	if _, err := Exec(dsn, "CREATE TABLE IF NOT EXISTS stalled ()"); err != nil {
		return nil, err
	}
	if err := configure("ALTER SYSTEM SET synchronous_standby_names = 'nobody'"); err != nil {
		return nil, err
	}
	resume = func() error { return configure("ALTER SYSTEM RESET synchronous_standby_names") }
	if err := untilStalled(ctx, dsn); err != nil {
		return nil, errors.Join(err, resume())
	}
	return resume, nil
}

// untilStalled commits until a commit waits: the server takes a change of its settings at a moment of its own.
func untilStalled(ctx context.Context, dsn string) error {
	probe, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	probing, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for probing.Err() == nil {
			_, _ = probe.Exec(probing, "INSERT INTO stalled DEFAULT VALUES")
		}
	}()
	for waits := "0\n"; waits == "0\n" && err == nil; {
		waits, err = Exec(dsn, fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid = %d", probe.PgConn().PID()))
		if err == nil && ctx.Err() != nil {
			err = fmt.Errorf("commits do not wait: %w", ctx.Err())
		}
	}
	stop()
	<-ended
	_ = probe.Close(ctx) // it is broken
	return err
}
