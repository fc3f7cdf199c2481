package confdb

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// SecretFileName is the file beside the database whose key encrypts the secrets in it: 32 random bytes in hexadecimal,
// readable by its owner only. Without it the secrets are lost, and a copy of the database alone gives none away.
const SecretFileName = "secret.key"

const secretBytes = 32

// box encrypts secrets.
type box struct {
	aead cipher.AEAD
	// nonceKey makes the nonces of texts that are sealed the same each time.
	nonceKey []byte
}

// openBox reads the key. With create it makes it when there is none.
func (d *DB) openBox(create bool) (*box, error) {
	path := filepath.Join(d.dir, SecretFileName)
	key, err := readSecret(path)
	if create && errors.Is(err, fs.ErrNotExist) {
		key, err = makeSecret(path)
	}
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("tidemark nonces of sealed texts"))
	return &box{aead, mac.Sum(nil)}, nil
}

func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others (mode %04o): %w; run chmod 600 on it", path, info.Mode().Perm(), ErrInvalid)
	}
	text, err := io.ReadAll(io.LimitReader(f, 4*secretBytes))
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != secretBytes {
		return nil, fmt.Errorf("%s: %w; expected %d hexadecimal digits", path, ErrInvalid, 2*secretBytes)
	}
	return key, nil
}

// Secret returns the key in hexadecimal digits; empty when there is none yet.
func (d *DB) Secret() (string, error) {
	key, err := readSecret(filepath.Join(d.dir, SecretFileName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return hex.EncodeToString(key), err
}

// SecretPrint returns what tells the key in a data folder from others and does not give it away; empty when there is none. With create it makes the key.
func SecretPrint(dir string, create bool) (string, error) {
	path := filepath.Join(dir, SecretFileName)
	key, err := readSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		if !create {
			return "", nil
		}
		key, err = makeSecret(path)
	}
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("tidemark name of a key"))
	return hex.EncodeToString(mac.Sum(nil)[:16]), nil
}

// PutSecret replaces the key by that of the database which this one is a copy of.
func (d *DB) PutSecret(text string) error {
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != secretBytes {
		return fmt.Errorf("the key for secrets has %d characters: %w; expected %d hexadecimal digits", len(text), ErrInvalid, 2*secretBytes)
	}
	d.sealing.Lock()
	defer d.sealing.Unlock()
	d.secrets.box = nil
	return writeSecret(filepath.Join(d.dir, SecretFileName), key)
}

func makeSecret(path string) ([]byte, error) {
	key := make([]byte, secretBytes)
	// Read never fails.
	_, _ = rand.Read(key)
	return key, writeSecret(path, key)
}

// writeSecret writes a key under another name first, so that a crash leaves no half of one.
func writeSecret(path string, key []byte) error {
	partial := path + ".new"
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	if err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(partial, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// seal encrypts a secret for one place; nothing stays nothing.
func (b *box) seal(secret []byte, place string) []byte {
	if len(secret) == 0 {
		return []byte{}
	}
	nonce := make([]byte, b.aead.NonceSize(), b.aead.NonceSize()+len(secret)+b.aead.Overhead())
	_, _ = rand.Read(nonce)
	return b.aead.Seal(nonce, nonce, secret, []byte(place))
}

// open decrypts what seal made for the same place.
func (b *box) open(sealed []byte, place string) ([]byte, error) {
	if len(sealed) == 0 {
		return nil, nil
	}
	if b == nil {
		return nil, fmt.Errorf("secret of %s: there is no key to open it", place)
	}
	n := b.aead.NonceSize()
	if len(sealed) < n {
		return nil, fmt.Errorf("secret of %s is cut", place)
	}
	secret, err := b.aead.Open(nil, sealed[:n], sealed[n:], []byte(place))
	if err != nil {
		return nil, fmt.Errorf("secret of %s does not fit %s; was the key file replaced?", place, SecretFileName)
	}
	return secret, nil
}
