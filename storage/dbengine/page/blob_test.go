package page

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tidemark/model"
)

func pack(texts []string) (arena []byte, spans []uint64) {
	arena = []byte("before")
	for _, s := range texts {
		spans = append(spans, model.Span(len(arena), len(s)))
		arena = append(arena, s...)
	}
	return arena, spans
}

func checkBlobs(t rapid.TB, texts []string) []byte {
	t.Helper()
	arena, spans := pack(texts)
	b := AppendBlobs(nil, arena, spans)
	got, out, err := DecodeBlobs([]uint64{7}, []byte("kept"), b, len(texts))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(texts)+1 || got[0] != 7 || !bytes.HasPrefix(out, []byte("kept")) {
		t.Fatal("what stood in the destination is gone")
	}
	for i, want := range texts {
		if s := string(model.SpanBytes(out, got[i+1])); s != want {
			t.Fatalf("text %d = %q; want %q", i, s, want)
		}
	}
	return b
}

func TestBlobs_roundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"", "a", "ok", "disk /dev/sda1 is full", strings.Repeat("x", 300)})
		text := rapid.OneOf(word, rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		checkBlobs(t, rapid.SliceOfN(text, 1, 60).Draw(t, "texts"))
	})
}

func TestBlobs_size(t *testing.T) {
	var same, log []string
	for i := range 500 {
		same = append(same, "Linux version 6.1.0-18-amd64")
		log = append(log, fmt.Sprintf("2026-11-30 09:%02d:%02d worker %d finished request in %d ms", i/60, i%60, i%7, i*37%1000))
	}
	if b := checkBlobs(t, same); len(b) > 40 {
		t.Errorf("a repeated text took %d bytes", len(b))
	}
	if b := checkBlobs(t, log); len(b) > 500*12 {
		t.Errorf("500 log lines took %d bytes", len(b))
	}
}

func TestDecodeBlobs_hostile(t *testing.T) {
	arena, spans := pack([]string{"one", "two", "one"})
	b := AppendBlobs(nil, arena, spans)
	for i := range b {
		if _, _, err := DecodeBlobs(nil, nil, b[:i], 3); err == nil {
			t.Errorf("cut to %d of %d bytes and not seen", i, len(b))
		}
	}
	// Lengths that add up to far more than is there.
	bad := []byte{blobUnique, 6, schemeConstant, 0x80, 0x80, 0x80, 0x80, 0x01, 'x'}
	if _, _, err := DecodeBlobs(nil, nil, bad, 3); err == nil {
		t.Error("a text of 128 MiB in one byte")
	}
}
