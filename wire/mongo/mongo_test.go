package mongo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/test/fuzztest"
)

var le = binary.LittleEndian

func doc(t testing.TB, d bson.D) []byte {
	t.Helper()
	b, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// message puts a header before a body.
func message(op Op, id, to uint32, body []byte) []byte {
	b := le.AppendUint32(nil, uint32(HeaderBytes+len(body)))
	b = le.AppendUint32(b, id)
	b = le.AppendUint32(b, to)
	b = le.AppendUint32(b, uint32(op))
	return append(b, body...)
}

func kind0(d []byte) []byte { return append([]byte{0}, d...) }

func kind1(name string, docs ...[]byte) []byte {
	inner := append([]byte(name), 0)
	for _, d := range docs {
		inner = append(inner, d...)
	}
	b := append([]byte{1}, le.AppendUint32(nil, uint32(4+len(inner)))...)
	return append(b, inner...)
}

func opMsg(flags uint32, sections ...[]byte) []byte {
	b := le.AppendUint32(nil, flags)
	for _, s := range sections {
		b = append(b, s...)
	}
	if flags&flagChecksum != 0 {
		b = append(b, 1, 2, 3, 4)
	}
	return message(OpMsg, 7, 0, b)
}

func legacyName(first uint32, ns string, rest ...[]byte) []byte {
	b := append(le.AppendUint32(nil, first), ns...)
	b = append(b, 0)
	for _, r := range rest {
		b = append(b, r...)
	}
	return b
}

func TestDecode_sectionsInAnyOrder(t *testing.T) {
	command := doc(t, bson.D{{Key: "insert", Value: "users"}, {Key: "$db", Value: "shop"}})
	one := doc(t, bson.D{{Key: "_id", Value: 1}})
	for name, b := range map[string][]byte{
		"body first":     opMsg(0, kind0(command), kind1("documents", one, one)),
		"sequence first": opMsg(0, kind1("documents", one, one), kind0(command)),
		"checksum":       opMsg(flagChecksum, kind1("documents", one, one), kind0(command)),
		"high flag bits": opMsg(1<<20, kind0(command), kind1("documents", one, one)),
	} {
		var m Message
		if err := Decode(b, &m); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !bytes.Equal(m.Body, command) || m.SequenceCount != 1 || string(m.Sequences[0].Identifier) != "documents" || !bytes.Equal(m.Sequences[0].Documents, append(bytes.Clone(one), one...)) {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestDecode_refuses(t *testing.T) {
	command := doc(t, bson.D{{Key: "ping", Value: 1}})
	good := opMsg(0, kind0(command))
	endless := bytes.Clone(opMsg(0, kind1("documents"), kind0(command)))
	le.PutUint32(endless[21:], 0) // a section of length 0: a walker that trusts it never moves on
	long := bytes.Clone(good)
	le.PutUint32(long[21:], 1<<31-1)
	for name, b := range map[string][]byte{
		"unknown required flag":   opMsg(4, kind0(command)),
		"two bodies":              opMsg(0, kind0(command), kind0(command)),
		"no body":                 opMsg(0, kind1("documents")),
		"section of length 0":     endless,
		"section past the end":    long,
		"unknown section":         opMsg(0, append([]byte{9}, command...)),
		"length below the header": append(le.AppendUint32(nil, 15), good[4:]...),
		"length over 48 MB":       append(le.AppendUint32(nil, MaxMessageBytes+1), good[4:]...),
		"unknown code":            message(1718503788, 1, 0, command),
		"kill cursors count":      message(OpKillCursors, 1, 0, []byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}),
		"negative reply count":    message(OpReply, 1, 1, append(make([]byte, 16), 0xff, 0xff, 0xff, 0xff)),
		"namespace without end":   message(OpQuery, 1, 0, []byte("\x00\x00\x00\x00shop.users")),
	} {
		var m Message
		if err := Decode(b, &m); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecode_legacy(t *testing.T) {
	query, update := doc(t, bson.D{{Key: "a", Value: 1}}), doc(t, bson.D{{Key: "$set", Value: bson.D{{Key: "b", Value: 2}}}})
	ints := func(v ...uint32) (b []byte) {
		for _, n := range v {
			b = le.AppendUint32(b, n)
		}
		return b
	}
	var m Message
	f := func(op Op, body []byte, check func() bool) {
		t.Helper()
		if err := Decode(message(op, 1, 0, body), &m); err != nil || !check() {
			t.Errorf("op %d: %v %+v", op, err, m)
		}
	}
	f(OpQuery, legacyName(2, "s.u", ints(3, 0xffffffff), query, update), func() bool {
		return m.Flags == QueryTailable && m.Skip == 3 && m.Limit == -1 && bytes.Equal(m.Body, query) && bytes.Equal(m.Second, update) && string(m.Namespace) == "s.u"
	})
	f(OpUpdate, legacyName(0, "s.u", ints(UpdateUpsert|UpdateMulti), query, update), func() bool {
		return m.Flags == UpdateUpsert|UpdateMulti && m.MoreToCome && bytes.Equal(m.Second, update)
	})
	f(OpDelete, legacyName(0, "s.u", ints(DeleteSingle), query), func() bool { return m.Flags == DeleteSingle && m.MoreToCome && bytes.Equal(m.Body, query) })
	f(OpInsert, legacyName(1, "s.u", query, query), func() bool { return m.MoreToCome && bytes.Equal(m.Body, query) })
	f(OpGetMore, legacyName(0, "s.u", ints(5, 9, 0)), func() bool { return m.CursorID == 9 })
	f(OpKillCursors, ints(0, 1, 8, 0), func() bool { return m.CursorID == 8 })
	f(OpReply, append(ints(ReplyQueryFailure, 4, 0, 0, 1), query...), func() bool {
		return m.CursorID == 4 && m.ReplyCount == 1 && m.ReplyFlags == ReplyQueryFailure && bytes.Equal(m.Body, query)
	})
	ping := doc(t, bson.D{{Key: "ping", Value: 1}})
	f(OpCommand, append([]byte("s\x00ping\x00"), append(bytes.Clone(query), ping...)...), func() bool { return bytes.Equal(m.Body, ping) })
	f(OpCommand, append([]byte("s\x00ping\x00"), append(bytes.Clone(ping), query...)...), func() bool { return bytes.Equal(m.Body, ping) })
}

// pack compresses a whole OP_MSG.
func pack(t testing.TB, compressor byte, plain []byte, declared int) []byte {
	t.Helper()
	body := plain[HeaderBytes:]
	var packed bytes.Buffer
	switch compressor {
	case compressorNone:
		packed.Write(body)
	case compressorSnappy:
		packed.Write(s2.EncodeSnappy(nil, body))
	case compressorZlib:
		w := zlib.NewWriter(&packed)
		_, _ = w.Write(body)
		w.Close()
	case compressorZstd:
		w, err := zstd.NewWriter(&packed)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(body)
		w.Close()
	}
	b := le.AppendUint32(nil, le.Uint32(plain[12:]))
	b = le.AppendUint32(b, uint32(declared))
	b = append(b, compressor)
	return message(OpCompressed, 7, 0, append(b, packed.Bytes()...))
}

func TestInflate(t *testing.T) {
	f, err := NewInflater(16 << 10)
	if err != nil {
		t.Fatal(err)
	}
	big := doc(t, bson.D{{Key: "insert", Value: "users"}, {Key: "$db", Value: "shop"}, {Key: "x", Value: bytes.Repeat([]byte("0123456789abcdefgh"), 9000)}})
	plain := opMsg(0, kind0(big))
	for compressor := byte(0); compressor <= maxCompressor; compressor++ {
		b := pack(t, compressor, plain, len(plain)-HeaderBytes)
		h, err := DecodeHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		for cut := HeaderBytes; cut <= len(b); cut += max(1, (len(b)-HeaderBytes)/50) {
			inner, body, err := f.Inflate(h, b[HeaderBytes:cut])
			if errors.Is(err, ErrShort) && cut < len(b) {
				continue
			}
			if err != nil || len(body) > 16<<10 || !bytes.HasPrefix(plain[HeaderBytes:], body) {
				t.Fatalf("compressor %d cut at %d of %d: %v, %d bytes, header %+v", compressor, cut, len(b), err, len(body), inner)
			}
		}
		_, body, err := f.Inflate(h, b[HeaderBytes:])
		if err != nil || len(body) != 16<<10 {
			t.Errorf("compressor %d: %v, %d bytes", compressor, err, len(body))
		}
	}
}

// A declared size that is a lie must cost neither memory nor trust.
func TestInflate_lies(t *testing.T) {
	f, err := NewInflater(16 << 10)
	if err != nil {
		t.Fatal(err)
	}
	plain := opMsg(0, kind0(doc(t, bson.D{{Key: "ping", Value: 1}})))
	for compressor := byte(0); compressor <= maxCompressor; compressor++ {
		for _, declared := range []int{0, 3, len(plain) - HeaderBytes + 1, MaxMessageBytes - HeaderBytes, MaxMessageBytes, 1<<32 - 1} {
			b := pack(t, compressor, plain, declared)
			h, _ := DecodeHeader(b)
			if _, body, err := f.Inflate(h, b[HeaderBytes:]); err == nil && len(body) > declared || err == nil && declared > len(plain) {
				t.Errorf("compressor %d, declared %d: %d bytes, %v", compressor, declared, len(body), err)
			}
		}
	}
	if cap(f.out) > 16<<10 {
		t.Errorf("%d bytes were allocated for a lie", cap(f.out))
	}
	b := pack(t, compressorNone, plain, len(plain)-HeaderBytes)
	b[HeaderBytes+8] = 77
	h, _ := DecodeHeader(b)
	if _, _, err := f.Inflate(h, b[HeaderBytes:]); !errors.Is(err, ErrCompressor) {
		t.Errorf("unknown compressor: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	command := doc(f, bson.D{{Key: "insert", Value: "users"}, {Key: "$db", Value: "shop"}})
	plain := opMsg(flagChecksum, kind1("documents", command), kind0(command))
	f.Add(plain)
	f.Add(message(OpReply, 1, 2, append(make([]byte, 20), command...)))
	f.Add(message(OpUpdate, 1, 0, legacyName(0, "s.u", make([]byte, 4), command, command)))
	f.Add(message(OpCommand, 1, 0, append([]byte("s\x00insert\x00"), command...)))
	for compressor := byte(0); compressor <= maxCompressor; compressor++ {
		f.Add(pack(f, compressor, plain, len(plain)-HeaderBytes))
	}
	inflater, err := NewInflater(4 << 10)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzztest.Within(t, 1<<20, func() {
			var m Message
			h, err := DecodeHeader(b)
			if err != nil {
				return
			}
			Plausible(h, b)
			body := b[HeaderBytes:min(len(b), h.Length)]
			if h.Op == OpCompressed {
				inner, plain, err := inflater.Inflate(h, body)
				if err != nil {
					return
				}
				if len(plain) > 4<<10 {
					t.Fatalf("%d bytes unpacked", len(plain))
				}
				h, body = inner, plain
			}
			_ = DecodeBody(h, body, &m)
			if len(m.Body) > len(b)+4<<10 || m.SequenceCount > MaxSequences {
				t.Errorf("body of %d bytes, %d sequences", len(m.Body), m.SequenceCount)
			}
		})
	})
}

func FuzzSnappy(f *testing.F) {
	f.Add(s2.EncodeSnappy(nil, bytes.Repeat([]byte("abcabcd"), 100)))
	f.Add([]byte{10, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzztest.Within(t, 8<<20, func() {
			out := make([]byte, 1000)
			got, err := snappy(b, out, false)
			size, lengthErr := s2.DecodedLen(b)
			if lengthErr != nil || size > 1000 || size == 0 {
				return
			}
			want, wantErr := s2.Decode(nil, b)
			if wantErr == nil && (err != nil || !bytes.HasPrefix(got, want)) && len(want) == size {
				t.Errorf("%d bytes, %v; the library gives %d", len(got), err, len(want))
			}
		})
	})
}

func TestIsNamespace(t *testing.T) {
	for name, want := range map[string]bool{
		"shop.users": true, "shop.$cmd": true, "$external.$cmd": true, "shop.ünïcode.x": true, "a.b c": true,
		"": false, "shop": false, ".users": false, "shop.": false, "sh op.users": false, "shop.us\x01ers": false, "\xff\xfe.users": false,
		strings.Repeat("d", 65) + ".users": false, "shop." + strings.Repeat("c", 400): false,
	} {
		if got := isNamespace([]byte(name)); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}
