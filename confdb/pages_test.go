package confdb

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// copyPages brings a copy up to date and returns how many pages that took.
func copyPages(t *testing.T, p *Pages, since uint64, to *DB) int {
	t.Helper()
	var b bytes.Buffer
	sum, err := p.Look(t.Context(), since, func(number uint32, content []byte) error {
		AppendPage(&b, number, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n := b.Len() / (4 + PageBytes)
	if err := to.WritePages(t.Context(), &b, n, sum); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPages keeps a copy equal while its original grows and shrinks; nothing else can change the copy.
func TestPages(t *testing.T) {
	ctx := t.Context()
	from, to := open(t, t.TempDir()), open(t, t.TempDir())
	if err := to.ReadOnly(ctx, true); err != nil {
		t.Fatal(err)
	}
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := from.sql.ExecContext(ctx, text, args...); err != nil {
			t.Fatal(err)
		}
	}
	count := func(d *DB) int {
		t.Helper()
		n := 0
		if err := d.sql.QueryRowContext(ctx, "SELECT count(*) FROM meta WHERE name LIKE 'copied-%'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	p := from.NewPages()
	whole := copyPages(t, p, 0, to)
	for round := range 4 {
		version := p.Version()
		for i := range 300 {
			exec("INSERT INTO meta (name, value) VALUES (?, ?)", fmt.Sprintf("copied-%d-%d-%0500d", round, i, 0), 1)
		}
		if round == 2 {
			exec("DELETE FROM meta WHERE name LIKE 'copied-%'")
			exec("VACUUM")
			exec("CREATE TABLE more (a INTEGER)") // a change of the schema is seen too
			version = 0
		}
		n := copyPages(t, p, version, to)
		exec("UPDATE meta SET value = value + 1 WHERE name = 'revision'") // one page, and not the first
		if again := copyPages(t, p, p.Version(), to); again != 1 {
			t.Errorf("round %d: %d pages of a small change", round, again)
		}
		if round == 0 && n >= whole || n == 0 {
			t.Errorf("round %d copies %d pages, all were %d", round, n, whole)
		}
		one, err := from.Sum(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := to.Sum(ctx); err != nil || one != two {
			t.Errorf("round %d: %+v, expected %+v; %v", round, two, one, err)
		}
		if count(from) != count(to) {
			t.Errorf("round %d: %d rows, expected %d", round, count(to), count(from))
		}
	}
	if changed, err := p.Changed(ctx); err != nil || changed {
		t.Errorf("changed %v, %v", changed, err)
	}
	if _, err := to.sql.ExecContext(ctx, "DELETE FROM meta"); err == nil {
		t.Error("the copy can be changed")
	} else if err := to.wrap("change", err); !errors.Is(err, ErrReadOnly) {
		t.Errorf("changing the copy gives %v", err)
	}
	if _, err := to.sql.ExecContext(ctx, "SELECT a FROM more"); err != nil {
		t.Error(err)
	}
}

// TestDB_WritePages_refuses leaves a copy as it was when what came is not what it should be.
func TestDB_WritePages_refuses(t *testing.T) {
	ctx := t.Context()
	d := open(t, t.TempDir())
	before, err := d.Sum(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	AppendPage(&page, 2, make([]byte, PageBytes))
	for name, c := range map[string]struct {
		sent []byte
		n    int
		sum  PageSum
	}{
		"another sum":     {page.Bytes(), 1, PageSum{before.Count, before.Hash}},
		"a page too far":  {page.Bytes(), 1, PageSum{1, before.Hash}},
		"cut off":         {page.Bytes()[:100], 1, before},
		"no pages":        {nil, 0, PageSum{}},
		"too many pages":  {nil, 1, PageSum{MaxPages + 1, 0}},
		"fewer than none": {nil, -1, before},
	} {
		if err := d.WritePages(ctx, bytes.NewReader(c.sent), c.n, c.sum); err == nil {
			t.Errorf("%s is taken", name)
		}
		if after, err := d.Sum(ctx); err != nil || after != before {
			t.Errorf("%s: %+v %v, expected %+v", name, after, err, before)
		}
	}
}
