package confdb

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"tidemark/model"
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

// TestTakeOver makes a copy that followed another database one that can be changed, with this program's schema.
func TestTakeOver(t *testing.T) {
	ctx := t.Context()
	d := open(t, t.TempDir())
	for _, older := range []bool{false, true} {
		if older { // what a primary of an earlier version had
			if _, err := d.sql.ExecContext(ctx, "DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)"); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.ReadOnly(ctx, true); err != nil {
			t.Fatal(err)
		}
		if err := d.ResetEvaluated(ctx, 1); !errors.Is(err, ErrReadOnly) {
			t.Errorf("a copy is changed: %v", err)
		}
		err := d.TakeOver(ctx)
		var version int64
		if err := d.sql.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version").Scan(&version); err != nil {
			t.Fatal(err)
		}
		newest, _ := newestMigration()
		if !older && err != nil || err == nil && version != newest { // a migration that was done before may fail when it is done again
			t.Errorf("older schema %v: version %d of %d, %v", older, version, newest, err)
		}
		if err := d.ResetEvaluated(ctx, 2); err != nil {
			t.Error(err)
		}
	}
}

// TestTranslateEvaluated sets the place once for each epoch, whatever was evaluated since.
func TestTranslateEvaluated(t *testing.T) {
	ctx := t.Context()
	d := open(t, t.TempDir())
	for _, step := range []struct {
		lsn, want int64
		epoch     uint64
		record    bool
	}{{500, 500, 2, false}, {0, 700, 0, true}, {500, 700, 2, false}, {90, 90, 3<<32 + 5, false}, {80, 90, 3<<32 + 5, false}} {
		var err error
		if step.record {
			err = d.Record(ctx, nil, nil, model.LSN(step.want))
		} else {
			err = d.TranslateEvaluated(ctx, model.LSN(step.lsn), step.epoch)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.Evaluated(ctx); err != nil || got != model.LSN(step.want) {
			t.Errorf("%+v: %d, %v", step, got, err)
		}
	}
}
