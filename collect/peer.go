package collect

import (
	"crypto/sha256"

	"tidemark/model"
)

// Peer is what is known of the other end of a connection by which values come.
type Peer struct {
	// Kind is how the connection is protected.
	Kind model.ConnectionKind
	// Identity and KeySum are those of the pre-shared key: its identity, and the SHA-256 sum of it.
	Identity string
	KeySum   [sha256.Size]byte
	// Issuer and Subject are the names of the certificate as RFC 4514 writes them.
	Issuer, Subject string
}
