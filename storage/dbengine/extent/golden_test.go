package extent

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGolden reads extents written by the first version of the format. Each file has the identity, the pages and the bytes
// in hex; it never changes. A later Build may write other bytes, but these must be read for ever.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/v1/*.txt")
	if err != nil || len(files) != 3 {
		t.Fatalf("golden files %v: %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		id, codec, pages, b := parseGolden(t, string(text))
		if n, got, err := Peek(b); err != nil || n != len(b) || got != id {
			t.Errorf("%s: Peek = %d, %v, %v", file, n, got, err)
		}
		if err := Verify(b, id); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		d, err := Parse(b, id)
		if err != nil {
			t.Fatal(err)
		}
		if d.Codec() != codec || d.Len() != len(pages) {
			t.Errorf("%s: %v with %d pages", file, d.Codec(), d.Len())
		}
		for i := range pages {
			if p, err := d.Page(i); err != nil || !equal(p, pages[i]) {
				t.Errorf("%s: page %d = %+v, %v; want %+v", file, i, p, err, pages[i])
			}
		}
	}
}

// parseGolden reads a golden file.
func parseGolden(t *testing.T, text string) (id Identity, codec Codec, pages []Page, b []byte) {
	t.Helper()
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		switch word {
		case "identity":
			_, err = fmt.Sscan(rest, &id.Generation, &id.File, &id.Sequence, &codec)
		case "page":
			var p Page
			_, err = fmt.Sscanf(rest, "%d %d %d %d %d %d %x %x", &p.Item, &p.Type, &p.Kind, &p.From, &p.To, &p.Count, &p.Times, &p.Values)
			pages = append(pages, p)
		case "bytes":
			var part []byte
			part, err = hex.DecodeString(rest)
			b = append(b, part...)
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return id, codec, pages, b
}
