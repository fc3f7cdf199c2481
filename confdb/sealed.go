package confdb

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// sealedPrefix begins a text that is sealed, with the version of how.
const sealedPrefix = "sealed:1:"

// sealer seals and opens secret texts in columns of the database. It reads or makes the key file when it is first needed.
//
// The nonce is made of the key, the place and the text (RFC 5297 has the idea), so that one text at one place always gives the same sealed
// text. Rows are compared with what an import or a discovery brings, and an unchanged secret must look unchanged. What it gives away is
// that two secrets of one name are equal.
type sealer struct {
	db  *DB
	box *box
	// said has the places whose secrets could not be opened, so that each is told once.
	said map[string]bool
}

// maxSaid bounds said.
const maxSaid = 1000

// open returns the key's box.
func (s *sealer) open(create bool) (*box, error) {
	if s.box != nil {
		return s.box, nil
	}
	b, err := s.db.openBox(create)
	if err != nil {
		return nil, fmt.Errorf("the key file for secrets, %s: %w", SecretFileName, err)
	}
	s.box = b
	return b, nil
}

// seal returns a sealed text; an empty or sealed one stays as it is.
func (s *sealer) seal(text, place string) (string, error) {
	if text == "" || strings.HasPrefix(text, sealedPrefix) {
		return text, nil
	}
	s.db.sealing.Lock()
	defer s.db.sealing.Unlock()
	b, err := s.open(true)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, b.nonceKey)
	fmt.Fprintf(mac, "%d %s %s", len(place), place, text)
	nonce := mac.Sum(nil)[:b.aead.NonceSize()]
	return sealedPrefix + base64.RawStdEncoding.EncodeToString(b.aead.Seal(nonce, nonce, []byte(text), []byte(place))), nil
}

// unseal returns the text that was sealed for a place; a text that is not sealed stays as it is.
func (s *sealer) unseal(text, place string) (string, error) {
	coded, ok := strings.CutPrefix(text, sealedPrefix)
	if !ok {
		return text, nil
	}
	s.db.sealing.Lock()
	defer s.db.sealing.Unlock()
	b, err := s.open(false)
	if err != nil {
		return "", err
	}
	raw, err := base64.RawStdEncoding.DecodeString(coded)
	if err != nil {
		return "", fmt.Errorf("secret of %s is damaged: %w", place, err)
	}
	opened, err := b.open(raw, place)
	return string(opened), err
}

// shown opens a text. One that cannot be opened is empty and logged: nothing else may suffer from it.
func (s *sealer) shown(text, place string) string {
	opened, err := s.unseal(text, place)
	if err == nil {
		return opened
	}
	s.db.sealing.Lock()
	said := s.said[place]
	if !said && len(s.said) < maxSaid {
		s.said[place] = true
	}
	s.db.sealing.Unlock()
	if !said {
		s.db.log.Error("a secret cannot be read and is empty until it is set again", "secret", place, "error", err)
	}
	return ""
}

func macroPlace(name string) string             { return "macro/" + name }
func alertObjectPlace(kind, name string) string { return "alert_object/" + kind + "/" + name }

// sealMacros seals the values of secret macros in a packed list; a list without any stays as it is, byte for byte.
func (s *sealer) sealMacros(packed string) (string, error) {
	if !strings.Contains(packed, `"s":true`) {
		return packed, nil
	}
	list, err := unpack[packedMacro](packed)
	if err != nil {
		return "", err
	}
	changed := false
	for i := range list {
		if !list[i].Secret {
			continue
		}
		sealed, err := s.seal(list[i].Value, macroPlace(list[i].Name))
		if err != nil {
			return "", err
		}
		changed = changed || sealed != list[i].Value
		list[i].Value = sealed
	}
	if !changed {
		return packed, nil
	}
	return pack(list), nil
}

// sealClear seals what earlier versions stored in the clear. It is looked for at each start.
func (d *DB) sealClear(ctx context.Context) error {
	// The room that the clear texts had is overwritten, not only given back.
	if d.postgres == nil {
		if _, err := d.sql.ExecContext(ctx, "PRAGMA secure_delete = ON"); err != nil {
			return d.wrap("seal secrets", err)
		}
	}
	return d.change(ctx, "seal secrets", func(c *change) error {
		return errors.Join(
			c.sealColumn(ctx, "hosts", "id", "macros", `macros LIKE '%"s":true%'`, func(_, text string) (string, error) { return d.secrets.sealMacros(text) }),
			c.sealColumn(ctx, "templates", "id", "macros", `macros LIKE '%"s":true%'`, func(_, text string) (string, error) { return d.secrets.sealMacros(text) }),
			c.sealColumn(ctx, "rule_prototypes", "id", "body", `body LIKE '%SECRET_TEXT%'`, func(_, text string) (string, error) { return d.secrets.sealPrototype(text, "") }),
			c.sealColumn(ctx, "global_macros", "name", "value", `secret = 1 AND value <> '' AND value NOT LIKE 'sealed:1:%'`,
				func(name, text string) (string, error) { return d.secrets.seal(text, macroPlace(name)) }),
			c.sealColumn(ctx, "alert_objects", "kind || '/' || name", "body", `body NOT LIKE 'sealed:1:%'`,
				func(key, text string) (string, error) { return d.secrets.seal(text, "alert_object/"+key) }),
		)
	})
}

// sealColumn seals a column of the rows that fit a condition. The names are constants of this file.
func (c *change) sealColumn(ctx context.Context, table, key, column, condition string, seal func(key, text string) (string, error)) error {
	sealed := make(map[string]string)
	err := c.query(ctx, func(r *sql.Rows) error {
		var name, text string
		if err := r.Scan(&name, &text); err != nil {
			return err
		}
		now, err := seal(name, text)
		if err == nil && now != text {
			sealed[name] = now
		}
		return err
	}, "SELECT CAST("+key+" AS TEXT), "+column+" FROM "+table+" WHERE "+condition)
	if err != nil {
		return fmt.Errorf("seal %s of %s: %w", column, table, err)
	}
	for name, text := range sealed {
		if err := c.exec(ctx, "UPDATE "+table+" SET "+column+" = ? WHERE CAST("+key+" AS TEXT) = ?", text, name); err != nil {
			return fmt.Errorf("seal %s of %s: %w", column, table, err)
		}
	}
	return nil
}
