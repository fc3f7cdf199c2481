package sniff

import (
	"bytes"
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/sniff/capture"
	"tidemark/sniff/flow"
	"tidemark/test/fuzztest"
)

// FuzzReport reads any bytes as a capture file, seeded by real ones: no panic, no hang, no more memory than allowed.
func FuzzReport(f *testing.F) {
	for _, path := range captures(f) {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text[:min(len(text), 6000)])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fuzztest.Within(t, 64<<20, func() {
			source, err := capture.NewFile(bytes.NewReader(text))
			if err != nil {
				return
			}
			s, err := New(Options{Shapes: 50, Flow: flow.Options{MaxBufferBytes: 1 << 20, MaxFlows: 100}})
			if err != nil {
				t.Fatal(err)
			}
			_ = s.ReadAll(source)
			if c := s.Counters(); c.Shapes > 50 || c.BufferBytes != 0 {
				t.Errorf("%d shapes, %d bytes held after the end", c.Shapes, c.BufferBytes)
			}
			s.Report()
		})
	})
}

// FuzzMessage sends any bytes as a message and its reply, whole and over segments: what is read must be the same.
func FuzzMessage(f *testing.F) {
	for _, k := range kinds(f) {
		w := newWire(f)
		k.build(w)
		var sent [2][]byte
		for i := range w.frames {
			s := &Sniffer{}
			if decodeFrame(w.frames[i], s) {
				sent[b2i(s.packet.SourcePort == 27017)] = append(sent[b2i(s.packet.SourcePort == 27017)], s.packet.Payload...)
			}
		}
		f.Add(sent[0][:min(len(sent[0]), 4000)], sent[1][:min(len(sent[1]), 4000)], uint16(100))
	}
	f.Add(msg(f, 1, 0, 0, kind0(f, find("users", bson.D{}))), msg(f, 2, 1, 0, kind0(f, ok)), uint16(7))
	f.Fuzz(func(t *testing.T, request, reply []byte, most uint16) {
		if len(request) > 1<<16 || len(reply) > 1<<16 {
			return
		}
		var texts [2]string
		for i, n := range []int{60_000, max(16, int(most))} {
			w := newWire(t).open()
			w.most = n
			w.send(0, request)
			w.send(1, reply)
			r := sniffed(t, w.frames, 27017).Report()
			for _, c := range r.Commands {
				texts[i] += c.Namespace + " " + c.Command + "\n"
			}
		}
		if texts[0] != texts[1] {
			t.Errorf("in one segment %q, in segments of %d bytes %q", texts[0], most, texts[1])
		}
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
