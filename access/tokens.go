package access

import (
	"context"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"time"

	"tidemark/model"
)

// tokenPrefix begins every token, so that people and scanners of repositories know what it is.
const tokenPrefix = "tmk_"

// NewToken makes a token of a user and returns its text, which cannot be shown again. t's name, user, role and expiry are read.
func (c *Control) NewToken(ctx context.Context, t *model.Token) (text string, err error) {
	texts, err := c.NewTokens(ctx, []*model.Token{t})
	if err != nil {
		return "", err
	}
	return texts[0], nil
}

// NewTokens is NewToken for several: all of them or, with an error, none. The texts are in the order of the list.
func (c *Control) NewTokens(ctx context.Context, list []*model.Token) (texts []string, err error) {
	now := c.o.Now()
	c.changing.Lock()
	defer c.changing.Unlock()
	if err := c.checkTokens(list, now); err != nil {
		return nil, err
	}
	for _, t := range list {
		text := newTokenText()
		t.Hash, t.CreatedAt, t.UsedAt = hashOf(text), now.UnixNano(), 0
		texts = append(texts, text)
	}
	if err := c.o.Store.PutToken(ctx, list...); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range list {
		stored := *t
		c.tokens[t.Hash] = &stored
	}
	return texts, nil
}

// checkTokens checks tokens that are to be made.
func (c *Control) checkTokens(list []*model.Token, now time.Time) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := slices.Collect(maps.Values(c.tokens))
	for _, t := range list {
		if err := checkName("token", t.Name); err != nil {
			return err
		}
		if t.Role < model.Viewer || t.Role > model.Administrator {
			return fmt.Errorf("token %s: %w; expected the role viewer, operator, editor or administrator", t.Name, ErrInvalid)
		}
		if t.ExpiresAt != 0 && t.ExpiresAt <= now.UnixNano() {
			return fmt.Errorf("token %s: %w; it would be over already at %v", t.Name, ErrInvalid, time.Unix(0, t.ExpiresAt).UTC().Format(time.RFC3339))
		}
		count := 0
		for _, other := range all {
			if other.User == t.User {
				count++
			}
		}
		u := c.users[t.User]
		switch {
		case u == nil:
			return fmt.Errorf("token %s: %w; there is no user %d", t.Name, ErrInvalid, t.User)
		case tokenNamed(all, t.User, t.Name) != nil:
			return fmt.Errorf("token %s: %w; the user has one of this name", t.Name, ErrInvalid)
		case count >= maxTokens:
			return fmt.Errorf("token %s: %w; %s has %d tokens, as many as can be", t.Name, ErrInvalid, u.Name, maxTokens)
		}
		all = append(all, t)
	}
	return nil
}

// tokenNamed finds the token of a user by its name; nil for none.
func tokenNamed(all []*model.Token, user model.UserID, name string) *model.Token {
	i := slices.IndexFunc(all, func(t *model.Token) bool { return t.User == user && t.Name == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

// TokenChange is what is to become of a token.
type TokenChange struct {
	ID uint64
	// Name stays when it is empty; ExpiresAt, in Unix nanoseconds and 0 for never, when it is negative.
	Name      string
	ExpiresAt int64
	// Renew gives it a new text; the old one is over.
	Renew bool
}

// ChangedToken is a token as it is after a change; Text is empty unless it was renewed.
type ChangedToken struct {
	model.Token
	Text string
}

// ChangeTokens changes tokens of a user, all of them or, with an error, none. A user that is zero stands for all.
func (c *Control) ChangeTokens(ctx context.Context, of model.UserID, list []TokenChange) ([]ChangedToken, error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	changed, old, err := c.changeTokens(of, list)
	if err != nil {
		return nil, err
	}
	stored := make([]*model.Token, 0, len(changed))
	for i := range changed {
		copied := changed[i].Token
		stored = append(stored, &copied)
	}
	if err := c.o.Store.PutToken(ctx, stored...); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, hash := range old {
		delete(c.tokens, hash)
	}
	for _, t := range stored {
		c.tokens[t.Hash] = t
	}
	c.endStreams()
	return changed, nil
}

// changeTokens returns tokens as they shall be, and their hashes so far.
func (c *Control) changeTokens(of model.UserID, list []TokenChange) (changed []ChangedToken, old [][32]byte, err error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var all []*model.Token // copies: those that there are change when all is stored
	for _, t := range c.tokens {
		copied := *t
		all = append(all, &copied)
	}
	for _, change := range list {
		i := slices.IndexFunc(all, func(t *model.Token) bool { return t.ID == change.ID && (of == 0 || t.User == of) })
		if i < 0 {
			return nil, nil, fmt.Errorf("token %d: %w", change.ID, ErrNotFound)
		}
		t := all[i]
		old = append(old, t.Hash)
		if change.Name != "" {
			if err := checkName("token", change.Name); err != nil {
				return nil, nil, err
			}
			if other := tokenNamed(all, t.User, change.Name); other != nil && other.ID != t.ID {
				return nil, nil, fmt.Errorf("token %s: %w; the user has one of this name", change.Name, ErrInvalid)
			}
			t.Name = change.Name
		}
		if change.ExpiresAt >= 0 {
			t.ExpiresAt = change.ExpiresAt
		}
		text := ""
		if change.Renew {
			text = newTokenText()
			t.Hash, t.UsedAt = hashOf(text), 0
		}
		changed = append(changed, ChangedToken{*t, text})
	}
	return changed, old, nil
}

// newTokenText returns 256 random bits with a check sum, so that a token that was not copied whole is told from one that was revoked.
func newTokenText() string {
	secret := newSecret()
	return fmt.Sprintf("%s%s%08x", tokenPrefix, secret, crc32.ChecksumIEEE([]byte(secret)))
}

// Whole reports whether a text is a token that was copied whole; other texts, such as the one of a token file, are not looked at.
func Whole(text string) bool {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok {
		return true
	}
	const sum = 8
	return len(rest) > sum && fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(rest[:len(rest)-sum]))) == rest[len(rest)-sum:]
}

// DeleteToken revokes a token; with a user that is not zero only one of that user.
func (c *Control) DeleteToken(ctx context.Context, id uint64, of model.UserID) (model.Token, error) {
	gone, err := c.DeleteTokens(ctx, of, id)
	if err != nil {
		return model.Token{}, err
	}
	return gone[0], nil
}

// DeleteTokens is DeleteToken for several: all of them or, with an error, none.
func (c *Control) DeleteTokens(ctx context.Context, of model.UserID, ids ...uint64) (gone []model.Token, err error) {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.mu.RLock()
	for _, id := range ids {
		found := false
		for _, t := range c.tokens {
			if t.ID == id && (of == 0 || t.User == of) {
				gone, found = append(gone, *t), true
			}
		}
		if !found && err == nil {
			err = fmt.Errorf("token %d: %w", id, ErrNotFound)
		}
	}
	c.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	if err := c.o.Store.DeleteToken(ctx, ids...); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range gone {
		delete(c.tokens, gone[i].Hash)
	}
	c.endStreams()
	return gone, nil
}
