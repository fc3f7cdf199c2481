package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

// TestRepository saves twice, with and without encryption, restores, removes, and sees damage.
func TestRepository(t *testing.T) {
	ctx := context.Background()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, encrypted := range []bool{false, true} {
		data := dataFolder(t)
		dir := t.TempDir()
		r := &Repository{Store: FolderStore{Dir: dir}}
		if encrypted {
			r.Recipients = []age.Recipient{identity.Recipient()}
		}
		if _, err := r.Open(ctx, ""); err == nil {
			t.Error("an empty repository has a newest backup")
		}
		one := makeSnapshot(t, data, filepath.Join(t.TempDir(), "snap"), nil)
		saved, err := r.Save(ctx, one, "one", nil)
		if err != nil || saved.NewFiles != 3 || saved.Bytes != 11 {
			t.Fatalf("Save: %+v, %v", saved, err)
		}
		if _, err := r.Save(ctx, one, "one", nil); err == nil {
			t.Error("a name was taken twice")
		}
		write(t, filepath.Join(one.Dir, privateFile), "new")
		two := &Folder{Dir: one.Dir, manifest: &Manifest{Format: 1, CreatedAt: one.manifest.CreatedAt.Add(1), Files: one.manifest.Files}}
		other := &Repository{Store: FolderStore{Dir: t.TempDir()}, Recipients: r.Recipients}
		if _, err := other.Save(ctx, two, "two", nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("a file with another checksum was saved: %v", err)
		}
		write(t, filepath.Join(one.Dir, privateFile), "key")
		if saved, err = r.Save(ctx, two, "two", nil); err != nil || saved.NewFiles != 0 {
			t.Fatalf("the same again: %+v, %v", saved, err)
		}
		s, err := r.Open(ctx, "")
		if err != nil || s.Manifest().Name != "two" || s.Manifest().Encrypted != encrypted {
			t.Fatalf("the newest is %+v, %v", s.Manifest(), err)
		}
		if encrypted {
			if err := Restore(ctx, s, filepath.Join(t.TempDir(), "x"), nil); err == nil || !strings.Contains(err.Error(), "--identity") {
				t.Errorf("restored without the key: %v", err)
			}
			r.Identities = []age.Identity{identity}
		}
		restored(t, s)
		if removed, err := r.Keep(ctx, 1); err != nil || len(removed) != 1 || removed[0] != "one" {
			t.Errorf("Keep: %q, %v", removed, err)
		}
		restored(t, s)
		objects, err := os.ReadDir(filepath.Join(dir, "objects"))
		if err != nil || len(objects) != 3 {
			t.Fatalf("%d objects, %v", len(objects), err)
		}
		name := filepath.Join(dir, "objects", objects[0].Name())
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if encrypted == (string(content) == "aaaaa" || string(content) == "bbb" || string(content) == "key") {
			t.Errorf("encrypted %v, and the object is %.20q", encrypted, content)
		}
		content[len(content)-1] ^= 1
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := Verify(ctx, s, nil); err != nil || len(list) != 1 {
			t.Errorf("Verify of a damaged object: %v, %v", list, err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if list, err := Verify(ctx, s, nil); err != nil || len(list) != 1 {
			t.Errorf("Verify of a missing object: %v, %v", list, err)
		}
		if removed, err := r.Keep(ctx, 0); err != nil || len(removed) != 1 {
			t.Errorf("Keep none: %q, %v", removed, err)
		}
	}
}
