package server

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidemark/confdb"
	"tidemark/model"
)

// everyType are all item types of Zabbix 7.0.
func everyType() []model.ItemType {
	return []model.ItemType{0, 2, 3, 5, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22}
}

type itemIDCounter struct{ last model.ItemID }

func (c *itemIDCounter) NextItemID() (model.ItemID, error) {
	c.last++
	return c.last, nil
}

// TestTemplates_count counts how many of the templates in the folder TIDEMARK_TEMPLATES, or of the built-in ones, import whole: every object is taken, and every remark
// is about what the file itself lacks. It counts once without and once with the rule that an item type without a collector is not supported, and
// prints the remarks by frequency. docs/design/0031-community-templates.md has the result for 200 public ones.
func TestTemplates_count(t *testing.T) {
	dir := os.Getenv("TIDEMARK_TEMPLATES")
	if dir == "" {
		dir = "templates" // those that come with the product
	}
	files, whole, collected := 0, 0, 0
	reasons := make(map[string]int)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		name := strings.TrimPrefix(path, dir+"/")
		if remarks := importRemarks(t, src, everyType()); len(remarks) == 0 {
			whole++
		} else {
			for _, r := range remarks {
				t.Logf("%s: %s", name, r)
			}
		}
		remarks := importRemarks(t, src, collectedTypes())
		if len(remarks) == 0 {
			collected++
		}
		once := make(map[string]bool)
		for _, r := range remarks {
			once[kindOfRemark(r)] = true
		}
		for r := range once {
			reasons[r]++
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Fatalf("%d files in %s: %v", files, dir, err)
	}
	t.Logf("%d files: %d import whole (%.1f %%), %d with the rule of collectors (%.1f %%)", files, whole, 100*float64(whole)/float64(files),
		collected, 100*float64(collected)/float64(files))
	for _, r := range slices.SortedFunc(maps.Keys(reasons), func(a, b string) int { return reasons[b] - reasons[a] }) {
		t.Logf("%4d files: %s", reasons[r], r)
	}
	if 100*whole < 95*files {
		t.Errorf("%d of %d files import whole, want 95 %%", whole, files)
	}
}

// importRemarks imports a file into an empty database and returns what was not taken or will not work.
func importRemarks(t *testing.T, src []byte, types []model.ItemType) []string {
	t.Helper()
	db, err := confdb.Open(context.Background(), t.TempDir(), confdb.Options{IDs: &itemIDCounter{}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	report, err := db.Import(context.Background(), "template", src, confdb.ImportOptions{Collected: types})
	if err != nil {
		return []string{err.Error()}
	}
	var list []string
	for _, r := range report.Remarks {
		if !strings.Contains(r.Reason, "neither in the file nor known") {
			list = append(list, r.Path+": "+r.Reason)
		}
	}
	return list
}

var variable = regexp.MustCompile(`"[^"]*"|\d+|line \d+`)

// kindOfRemark leaves out what differs from file to file.
func kindOfRemark(r string) string {
	if i := strings.LastIndex(r, ": "); i >= 0 && strings.Contains(r, "no collector") {
		r = r[i+2:]
	} else if i := strings.Index(r, ": "); i >= 0 {
		r = r[i+2:]
	}
	return variable.ReplaceAllString(r, "…")
}
