package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// The parameters of argon2id: RFC 9106, with the memory that OWASP names as the least, because a login must be possible on a small machine
// that is full of values.
const (
	argonMemoryKiB = 19 * 1024
	argonPasses    = 2
	argonLanes     = 1
	saltBytes      = 16
	keyBytes       = 32
)

// The bounds of hashes that are taken from elsewhere: more would let an administrator stop the server by a mistake.
const (
	maxArgonMemoryKiB = 128 * 1024
	maxArgonPasses    = 10
	maxArgonLanes     = 8
	maxBcryptCost     = 14
)

// The bounds of a password.
const (
	minPasswordChars = 10
	maxPasswordBytes = 1024
)

const (
	// maxHashing is how many passwords are hashed at the same time, so that a flood of logins cannot take the memory.
	maxHashing = 2
	// maxWaiting is how many wait for that; more are turned away.
	maxWaiting = 32
)

// hasher hashes and compares passwords, a bounded number at a time.
type hasher struct {
	places  chan struct{}
	waiting atomic.Int64
	// nobody is a hash that no password has; comparing with it takes as long as with a real one.
	nobody string
}

func newHasher() *hasher {
	zero := make([]byte, keyBytes)
	return &hasher{places: make(chan struct{}, maxHashing), nobody: phc(argonMemoryKiB, argonPasses, argonLanes, make([]byte, saltBytes), zero)}
}

// enter waits for a place.
func (h *hasher) enter(ctx context.Context) error {
	if h.waiting.Add(1) > maxWaiting {
		h.waiting.Add(-1)
		return &LimitedError{After: sweepInterval * 4}
	}
	defer h.waiting.Add(-1)
	select {
	case h.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *hasher) leave() { <-h.places }

// hash returns the hash of a new password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer h.leave()
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	key := argon2.IDKey([]byte(password), salt, argonPasses, argonMemoryKiB, argonLanes, keyBytes)
	return phc(argonMemoryKiB, argonPasses, argonLanes, salt, key), nil
}

// phc writes a hash in the form of the password hashing competition.
func phc(memory uint32, passes uint32, lanes uint8, salt, key []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memory, passes, lanes, b64.EncodeToString(salt), b64.EncodeToString(key))
}

// check compares a password with a hash; an empty hash fits none. weak says that the hash should be made anew.
func (h *hasher) check(ctx context.Context, password, hash string) (ok, weak bool, err error) {
	if err := h.enter(ctx); err != nil {
		return false, false, err
	}
	defer h.leave()
	if hash == "" {
		hash = h.nobody
	}
	if strings.HasPrefix(hash, "$2") {
		return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil, true, nil
	}
	a, err := parseArgon(hash)
	if err != nil {
		return false, false, err
	}
	key := argon2.IDKey([]byte(password), a.salt, a.passes, a.memory, a.lanes, uint32(len(a.key))) //nolint:gosec // parseArgon bounds it
	weak = a.memory < argonMemoryKiB || a.passes < argonPasses || len(a.key) < keyBytes
	return subtle.ConstantTimeCompare(key, a.key) == 1, weak, nil
}

type argon struct {
	memory, passes uint32
	lanes          uint8
	salt, key      []byte
}

// parseArgon reads an argon2id hash whose cost is within bounds.
func parseArgon(hash string) (argon, error) {
	var a argon
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return a, fmt.Errorf("password hash: %w; expected argon2id ($argon2id$v=19$m=…,t=…,p=…$salt$key) or bcrypt ($2y$…)", ErrInvalid)
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &a.memory, &a.passes, &a.lanes); err != nil || n != 3 {
		return a, fmt.Errorf("password hash: %w; its parameters are %.40q, expected m=…,t=…,p=…", ErrInvalid, parts[3])
	}
	if a.memory > maxArgonMemoryKiB || a.passes < 1 || a.passes > maxArgonPasses || a.lanes < 1 || a.lanes > maxArgonLanes || a.memory < 8*uint32(a.lanes) {
		return a, fmt.Errorf("password hash: %w; its cost is outside of m ≤ %d, t ≤ %d, p ≤ %d", ErrInvalid, maxArgonMemoryKiB, maxArgonPasses, maxArgonLanes)
	}
	var err error
	if a.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil || len(a.salt) < 8 || len(a.salt) > 64 {
		return a, fmt.Errorf("password hash: %w; expected a salt of 8 to 64 bytes in base64", ErrInvalid)
	}
	if a.key, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(a.key) < 16 || len(a.key) > 64 {
		return a, fmt.Errorf("password hash: %w; expected a key of 16 to 64 bytes in base64", ErrInvalid)
	}
	return a, nil
}

// CheckHash reports whether a hash that comes from elsewhere can be used.
func CheckHash(hash string) error {
	if strings.HasPrefix(hash, "$2") {
		cost, err := bcrypt.Cost([]byte(hash))
		if err != nil {
			return fmt.Errorf("password hash: %w: %w", ErrInvalid, err)
		}
		if cost > maxBcryptCost {
			return fmt.Errorf("password hash: %w; its bcrypt cost is %d, at most %d", ErrInvalid, cost, maxBcryptCost)
		}
		return nil
	}
	_, err := parseArgon(hash)
	return err
}

// checkPassword reports what is wrong with a new password.
func checkPassword(name, password string) error {
	switch n := utf8.RuneCountInString(password); {
	case !utf8.ValidString(password):
		return fmt.Errorf("password: %w; expected UTF-8", ErrInvalid)
	case n < minPasswordChars:
		return fmt.Errorf("password: %w; it has %d characters, expected at least %d", ErrInvalid, n, minPasswordChars)
	case len(password) > maxPasswordBytes:
		return fmt.Errorf("password: %w; it has %d bytes, expected at most %d", ErrInvalid, len(password), maxPasswordBytes)
	case strings.EqualFold(password, name):
		return fmt.Errorf("password: %w; it is the user's name", ErrInvalid)
	}
	return nil
}

// hashOf is what is kept of a session's or token's text. It is random enough that nothing slower is needed.
func hashOf(text string) [32]byte { return sha256.Sum256([]byte(text)) }

// newSecret returns 256 random bits as text.
func newSecret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
