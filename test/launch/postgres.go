package launch

import (
	"testing"

	"tidemark/internal/pgtest"
)

// Postgres starts a private PostgreSQL on a socket, which is removed when the test ends.
func Postgres(t testing.TB, settings ...string) *pgtest.Cluster {
	t.Helper()
	c, err := pgtest.Start(settings...)
	return kept(t, c, err)
}

// PostgresOn starts one that listens on an address too.
func PostgresOn(t testing.TB, address string, settings ...string) *pgtest.Cluster {
	t.Helper()
	c, err := pgtest.StartOn(address, settings...)
	return kept(t, c, err)
}

func kept(t testing.TB, c *pgtest.Cluster, err error) *pgtest.Cluster {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	return c
}
