package page

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidemark/model"
)

// TestGolden decodes columns written by the first version of the format, and by the first that knew repetitions. The files never change; a later encoder may
// write other bytes for the same values, but these must be read for ever.
func TestGolden(t *testing.T) {
	for name, columns := range map[string]int{"testdata/v1/columns.txt": 25, "testdata/v2/columns.txt": 5} {
		t.Run(name, func(t *testing.T) { checkGolden(t, name, columns) })
	}
}

func checkGolden(t *testing.T, name string, columns int) {
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	seen := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		b, err := hex.DecodeString(f[2])
		if err != nil {
			t.Fatal(err)
		}
		kind, name, want := f[0], f[1], f[3:]
		got, err := decodeGolden(kind, b, len(want))
		if err != nil {
			t.Errorf("%s %s: %v", kind, name, err)
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s %s: got %v; want %v", kind, name, got, want)
		}
		seen[kind+" "+name] = true
		if kind != "blobs" && strings.ReplaceAll(describe(b), " ", "_") != name {
			t.Errorf("%s %s: is %s", kind, name, describe(b))
		}
	}
	if lines.Err() != nil || len(seen) < columns {
		t.Errorf("%d golden columns: %v", len(seen), lines.Err())
	}
}

// decodeGolden returns the values of a column as the golden file has them.
func decodeGolden(kind string, b []byte, n int) (got []string, err error) {
	switch kind {
	case "uints", "floats":
		c := traceColumn{float: kind == "floats", v: make([]uint64, n)}
		v, err := c.decode(nil, b)
		for _, x := range v {
			if c.float {
				got = append(got, fmt.Sprintf("%016x", x))
			} else {
				got = append(got, strconv.FormatUint(x, 10))
			}
		}
		return got, err
	case "times":
		at, err := DecodeTimes(nil, b, n)
		for _, x := range at {
			got = append(got, strconv.FormatInt(x, 10))
		}
		return got, err
	case "blobs":
		spans, arena, err := DecodeBlobs(nil, nil, b, n)
		for _, s := range spans {
			got = append(got, strconv.Quote(string(model.SpanBytes(arena, s))))
		}
		return got, err
	}
	return nil, fmt.Errorf("kind %s", kind)
}
