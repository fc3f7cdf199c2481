package agent

import (
	"os"
	"strings"
	"testing"

	"tidemark/model"
	"tidemark/sniff/capture"
)

// TestMongo turns a capture into declared items with values, and drops it for a server that takes none.
func TestMongo(t *testing.T) {
	for _, tidemark := range []bool{true, false} {
		a, err := Open(t.Context(), t.TempDir(), Options{Server: "127.0.0.1:1", Host: "db1"})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if err := a.state.setTidemark(tidemark); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open("../sniff/testdata/crud_go.pcap")
		if err != nil {
			t.Fatal(err)
		}
		source, err := capture.NewFile(file)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		if err := a.sniffMongo(t.Context(), source, []uint16{27117}); err != nil {
			t.Fatal(err)
		}
		rows := a.buffer.take(nil, 10_000)
		if !tidemark {
			if len(rows) != 0 {
				t.Errorf("%d rows for a server that takes no declared items", len(rows))
			}
			continue
		}
		requests, sketches := uint64(0), 0
		for _, r := range rows {
			if r.item.declaration == nil {
				t.Fatalf("%s has no declaration", r.item.key)
			}
			if strings.HasPrefix(r.item.key, "mongo.instance[") && strings.HasSuffix(r.item.key, ",requests]") {
				requests += r.value.Bits
			}
			if r.item.declaration.Type == model.Binary {
				sketches++
			}
		}
		if requests != 32 || sketches == 0 {
			t.Errorf("%d requests and %d sketches in %d rows, want the capture's 32 requests", requests, sketches, len(rows))
		}
	}
}
