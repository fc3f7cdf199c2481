package confdb

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tidemark/model"
)

// TestPutGlobalMacro makes, changes and deletes macros one by one, keeps what is secret, and refuses what is none.
func TestPutGlobalMacro(t *testing.T) {
	d, ctx := open(t, t.TempDir()), context.Background()
	if before, err := d.PutGlobalMacro(ctx, model.Macro{Name: "{$A}", Value: "one"}, false); err != nil || before != nil {
		t.Fatalf("a new macro: %v, before %v", err, before)
	}
	if before, err := d.PutGlobalMacro(ctx, model.Macro{Name: "{$A}", Value: "hidden", Secret: true}, false); err != nil || before == nil || before.Value != "one" {
		t.Fatalf("a changed macro: %v, before %v", err, before)
	}
	if _, err := d.PutGlobalMacro(ctx, model.Macro{Name: "{$A}", Secret: true}, true); err != nil {
		t.Fatalf("a secret that keeps its value: %v", err)
	}
	if _, err := d.PutGlobalMacro(ctx, model.Macro{Name: `{$B:"a/b"}`, Value: "two"}, false); err != nil {
		t.Fatal(err)
	}
	list, err := d.GlobalMacros(ctx)
	if want := []model.Macro{{Name: "{$A}", Value: "hidden", Secret: true}, {Name: `{$B:"a/b"}`, Value: "two"}}; err != nil || len(list) != 2 || list[0] != want[0] || list[1] != want[1] {
		t.Errorf("macros: %v %v, want %v", list, err, want)
	}
	for _, wrong := range []struct {
		macro model.Macro
		keep  bool
	}{
		{model.Macro{Name: "A"}, false},
		{model.Macro{Name: "{$}"}, false},
		{model.Macro{Name: "{$a b}"}, false},
		{model.Macro{Name: "{$" + strings.Repeat("A", 255) + "}"}, false},
		{model.Macro{Name: "{$C}", Value: strings.Repeat("x", 2049)}, false},
		{model.Macro{Name: "{$A}"}, true},                     // it would be shown
		{model.Macro{Name: "{$C}", Secret: true}, true},       // it is not there
		{model.Macro{Name: `{$B:"a/b"}`, Secret: true}, true}, // it is not secret
	} {
		if _, err := d.PutGlobalMacro(ctx, wrong.macro, wrong.keep); !errors.Is(err, ErrInvalid) {
			t.Errorf("%.20v, keep %v: %v, want ErrInvalid", wrong.macro, wrong.keep, err)
		}
	}
	if _, err := d.DeleteGlobalMacro(ctx, "{$A}"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DeleteGlobalMacro(ctx, "{$A}"); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted twice: %v, want ErrNotFound", err)
	}
}
