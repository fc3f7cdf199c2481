package lease

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnreplicated means that a commit came back although the replicas in synchronous_standby_names may not have it: somebody ended its wait. On this
// server of PostgreSQL it is stored; if a replica takes its place it may be gone.
var ErrUnreplicated = errors.New("the wait of a commit for the replica of PostgreSQL was ended by somebody (pg_cancel_backend); it is written once more")

// Unreplicated reports whether a notice tells of that. PostgreSQL sends no error then, and its text is in the language of the server.
func Unreplicated(n *pgconn.Notice) bool { return n.Routine == "SyncRepWaitForLSN" }
