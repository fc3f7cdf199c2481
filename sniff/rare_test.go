package sniff

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/wire/mongo"
)

// packed packs a message with a compressor (0: none, 1: snappy, 2: zlib, 3: zstd); its size is told wrong by off.
func packed(t testing.TB, compressor byte, off int, plain []byte) []byte {
	t.Helper()
	body := plain[mongo.HeaderBytes:]
	b := append([]byte(nil), plain[12:16]...)
	b = append(le.AppendUint32(b, uint32(len(body)+off)), compressor)
	var out bytes.Buffer
	switch compressor {
	case 0:
		out.Write(body)
	case 1:
		out.Write(s2.EncodeSnappy(nil, body))
	case 2:
		z := zlib.NewWriter(&out)
		if _, err := z.Write(body); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
	case 3:
		z, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(z.EncodeAll(body, nil))
	}
	return message(mongo.OpCompressed, le.Uint32(plain[4:]), le.Uint32(plain[8:]), append(b, out.Bytes()...))
}

// opReply builds an OP_REPLY.
func opReply(t testing.TB, id, to, flags uint32, cursor int64, docs ...bson.D) []byte {
	t.Helper()
	body := numbers(flags, uint32(cursor), uint32(cursor>>32), 0, uint32(len(docs)))
	for _, d := range docs {
		body = append(body, doc(t, d)...)
	}
	return message(mongo.OpReply, id, to, body)
}

// opQuery builds an OP_QUERY.
func opQuery(t testing.TB, id, flags uint32, namespace string, query bson.D) []byte {
	t.Helper()
	return message(mongo.OpQuery, id, 0, legacy(flags, namespace, numbers(0, 0xffffffff), doc(t, query)))
}

func on(key string, value any, more ...bson.E) bson.D {
	return append(bson.D{{Key: key, Value: value}}, append(more, bson.E{Key: "$db", Value: "shop"})...)
}

// largeBatch is the first reply of a cursor whose id comes behind a batch of 200 kB, as servers write it.
func largeBatch(id int64) bson.D {
	var docs bson.A
	for i := range 100 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "x", Value: strings.Repeat("x", 2000)}})
	}
	return bson.D{{Key: "cursor", Value: bson.D{{Key: "firstBatch", Value: docs}, {Key: "id", Value: id}, {Key: "ns", Value: "shop.users"}}}, {Key: "ok", Value: 1.0}}
}

func readAllOf(w *wire) {
	w.ask(1, find("users", nil), largeBatch(77))
	w.ask(2, on("getMore", int64(77), bson.E{Key: "collection", Value: "users"}), cursorReply(77, "nextBatch", 2))
	w.ask(3, on("getMore", int64(77), bson.E{Key: "collection", Value: "users"}), cursorReply(0, "nextBatch", 2))
}

// rareKinds are kinds of traffic that few servers see, and some that only old ones do.
func rareKinds(t testing.TB) []kind {
	kinds := append(rareCommands(t), rareLegacy(t)...)
	for compressor, name := range []string{"no compressor", "snappy", "zlib", "zstd"} {
		kinds = append(kinds, kind{name, func(w *wire) {
			w.send(0, packed(t, byte(compressor), 0, msg(t, 1, 0, 0, kind0(t, find("users", nil)))))
			w.send(1, packed(t, byte(compressor), 0, msg(t, 2, 1, 0, kind0(t, bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 2}}))))
			// Each end decides for each message.
			w.send(0, msg(t, 3, 0, 0, kind0(t, find("users", nil))))
			w.send(1, packed(t, byte(compressor), 0, msg(t, 4, 3, 0, kind0(t, ok))))
			w.send(0, packed(t, byte(compressor), 0, opQuery(t, 5, 0, "shop.$cmd", bson.D{{Key: "count", Value: "users"}})))
			w.send(1, packed(t, byte(compressor), 0, opReply(t, 6, 5, 0, 0, ok)))
		}, map[string][3]uint64{"shop.users find": {2, 1, 0}, "shop.users count": {1, 0, 0}}})
	}
	return kinds
}

func rareCommands(t testing.TB) []kind {
	insert := on("insert", "users")
	first, second := kind1(t, "documents", bson.D{{Key: "a", Value: 1}}), kind1(t, "more", bson.D{{Key: "b", Value: 1}})
	ops := []bson.D{{{Key: "insert", Value: 0}, {Key: "document", Value: bson.D{{Key: "x", Value: strings.Repeat("x", 12_000)}}}}, {{Key: "delete", Value: 1}, {Key: "filter", Value: bson.D{{Key: "a", Value: 1}}}}}
	for range 9 {
		ops = append(ops, ops[0])
	}
	bulk := bson.D{{Key: "bulkWrite", Value: 1}, {Key: "$db", Value: "admin"}}
	names := []bson.D{{{Key: "ns", Value: "shop.users"}}, {{Key: "ns", Value: "shop.orders"}}}
	failed := bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "firstBatch", Value: bson.A{bson.D{{Key: "ok", Value: 1}}, bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 11000}}}}}}, {Key: "nErrors", Value: 1}, {Key: "ok", Value: 1}}
	twice := bson.A{bson.D{{Key: "code", Value: 11000}}, bson.D{{Key: "code", Value: 121}}}
	return []kind{
		{"cursor behind a large batch", readAllOf, map[string][3]uint64{"shop.users find": {1, 0, 0}, "shop.users getMore": {2, 0, 0}}},
		{"cursor behind a large batch over segments", func(w *wire) { w.most = 1448; readAllOf(w) }, map[string][3]uint64{"shop.users find": {1, 0, 0}, "shop.users getMore": {2, 0, 0}}},
		{"sections around the command", func(w *wire) {
			w.send(0, msg(t, 1, 0, checksum, first, kind0(t, insert), second))
			w.send(1, msg(t, 2, 1, checksum, kind0(t, ok)))
		}, one("shop.users insert")},
		{"checksum without an answer", func(w *wire) {
			w.send(0, msg(t, 1, 0, checksum|moreToCome, first, kind0(t, insert)))
			w.ask(2, find("users", nil), ok)
		}, map[string][3]uint64{"shop.users insert": {1, 0, 1}, "shop.users find": {1, 0, 0}}},
		{"bulkWrite over 16 KiB", func(w *wire) {
			w.most = 1448
			w.ask(1, bulk, ok, kind1(t, "ops", ops...), kind1(t, "nsInfo", names...))
		}, one("shop.users bulkWrite")},
		{"bulkWrite over 16 KiB in one segment, names first", func(w *wire) {
			w.send(0, msg(t, 1, 0, 0, kind1(t, "nsInfo", names...), kind1(t, "ops", ops...), kind0(t, bulk)))
			w.send(1, msg(t, 2, 1, 0, kind0(t, ok)))
		}, one("shop.users bulkWrite")},
		{"bulkWrite in one document, with errors", func(w *wire) {
			w.ask(1, bson.D{{Key: "bulkWrite", Value: 1}, {Key: "ops", Value: ops[1:2]}, {Key: "nsInfo", Value: names}, {Key: "$db", Value: "admin"}}, failed)
			w.ask(2, bson.D{{Key: "bulkWrite", Value: 1}, {Key: "ops", Value: ops[1:2]}, {Key: "nsInfo", Value: names}, {Key: "$db", Value: "admin"}}, bson.D{{Key: "nErrors", Value: 0}, {Key: "ok", Value: 1}})
		}, map[string][3]uint64{"shop.orders bulkWrite": {2, 1, 0}}},
		{"many errors of one request", func(w *wire) {
			w.ask(1, insert, bson.D{{Key: "n", Value: 0}, {Key: "writeErrors", Value: twice}, {Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}}}, {Key: "ok", Value: 1}}, first)
			w.ask(2, insert, bson.D{{Key: "writeErrors", Value: bson.A{}}, {Key: "ok", Value: int64(1)}}, first)
		}, map[string][3]uint64{"shop.users insert": {2, 1, 0}}},
		{"namespaces by each command's rule", func(w *wire) {
			w.ask(1, on("getMore", int64(5), bson.E{Key: "collection", Value: "$cmd.aggregate"}), ok)
			w.ask(2, on("explain", bson.D{{Key: "aggregate", Value: 1}, {Key: "pipeline", Value: bson.A{}}}), ok)
			w.ask(3, on("explain", bson.D{{Key: "update", Value: "users"}, {Key: "updates", Value: bson.A{}}}, bson.E{Key: "verbosity", Value: "queryPlanner"}), ok)
			w.ask(4, on("killCursors", "users", bson.E{Key: "cursors", Value: bson.A{int64(1)}}), ok)
			w.ask(5, on("listCollections", 1, bson.E{Key: "filter", Value: bson.D{}}), ok)
			w.ask(6, on("dataSize", "shop.users"), ok)
			w.ask(7, on("eval", "return db.users.find({secret: 1})"), ok)
			w.ask(8, on("mapreduce", "users", bson.E{Key: "map", Value: "f"}), ok)
		}, map[string][3]uint64{
			"shop.$cmd.aggregate getMore": {1, 0, 0}, "shop explain": {1, 0, 0}, "shop.users explain": {1, 0, 0}, "shop.users killCursors": {1, 0, 0},
			"shop listCollections": {1, 0, 0}, "shop.users dataSize": {1, 0, 0}, "shop eval": {1, 0, 0}, "shop.users mapReduce": {1, 0, 0},
		}},
		{"a hundred requests at once", func(w *wire) {
			for i := range uint32(100) {
				w.send(0, msg(t, 1+i, 0, 0, kind0(t, find("users", nil))))
			}
			for i := range uint32(100) {
				w.send(1, msg(t, 1000+i, 100-i, 0, kind0(t, ok)))
			}
		}, map[string][3]uint64{"shop.users find": {100, 0, 0}}},
	}
}

func rareLegacy(t testing.TB) []kind {
	// A stored document may have the fields that would say how a command ended.
	stored := bson.D{
		{Key: "ok", Value: 0},
		{Key: "err", Value: "a note"},
		{Key: "code", Value: 7},
		{Key: "n", Value: 99},
		{Key: "writeErrors", Value: bson.A{bson.D{}}},
		{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(66)}}},
		{Key: "nErrors", Value: 3},
	}
	getMore := func(id uint32) []byte {
		return message(mongo.OpGetMore, id, 0, legacy(0, "shop.users", numbers(0, 55, 0)))
	}
	return []kind{
		{"stored documents that look like errors", func(w *wire) {
			w.send(0, opQuery(t, 1, 0, "shop.users", bson.D{}))
			w.send(1, opReply(t, 2, 1, 8, 55, stored, stored))
			w.send(0, getMore(3))
			w.send(1, opReply(t, 4, 3, 8, 0, stored))
		}, map[string][3]uint64{"shop.users find": {1, 0, 0}, "shop.users getMore": {1, 0, 0}}},
		{"errors of the old operations", func(w *wire) {
			w.send(0, opQuery(t, 1, 0, "shop.users", bson.D{}))
			w.send(1, opReply(t, 2, 1, 0, 0, bson.D{{Key: "$err", Value: "no"}, {Key: "code", Value: 13}}))
			w.send(0, getMore(3))
			w.send(1, opReply(t, 4, 3, mongo.ReplyCursorNotFound, 0))
			w.send(0, message(mongo.OpInsert, 0, 0, legacy(1, "shop.users", doc(t, stored), doc(t, stored))))
			w.send(0, opQuery(t, 5, 0, "shop.$cmd", bson.D{{Key: "getlasterror", Value: 1}}))
			w.send(1, opReply(t, 6, 5, 8, 0, bson.D{{Key: "err", Value: "duplicate"}, {Key: "code", Value: 11000}, {Key: "n", Value: 0}, {Key: "ok", Value: 1}}))
		}, map[string][3]uint64{"shop.users find": {1, 1, 0}, "shop.users getMore": {1, 1, 0}, "shop.users insert": {1, 0, 1}, "shop getLastError": {1, 1, 0}}},
		{"exhaust of OP_QUERY", func(w *wire) {
			w.send(0, opQuery(t, 1, 1<<6, "shop.users", bson.D{}))
			for i := range uint32(3) {
				w.send(1, opReply(t, 11+i, max(1, (10+i)*min(i, 1)), 8, int64(2-i), stored))
			}
			w.send(0, opQuery(t, 2, 0, "shop.users", bson.D{}))
			w.send(1, opReply(t, 20, 2, 8, 0, stored))
		}, map[string][3]uint64{"shop.users find": {2, 0, 0}}},
		{"deletes, cursors and an old group", func(w *wire) {
			w.send(0, message(mongo.OpDelete, 0, 0, legacy(0, "shop.users", numbers(1), doc(t, bson.D{{Key: "a", Value: 1}}))))
			w.send(0, message(mongo.OpKillCursors, 9, 0, numbers(0, 2, 1, 0, 2, 0)))
			w.send(0, opQuery(t, 3, 0, "shop.$cmd", bson.D{{Key: "group", Value: bson.D{{Key: "ns", Value: "users"}, {Key: "initial", Value: bson.D{}}}}}))
			w.send(1, opReply(t, 4, 3, 8, 0, ok))
		}, map[string][3]uint64{"shop.users delete": {1, 0, 1}, " killCursors": {1, 0, 0}, "shop.users group": {1, 0, 0}}},
		{"OP_COMMAND, metadata first", func(w *wire) {
			w.send(0, message(mongo.OpCommand, 5, 9, append([]byte("shop\x00count\x00"), append(doc(t, bson.D{}), doc(t, bson.D{{Key: "count", Value: "users"}})...)...)))
			w.send(1, message(mongo.OpCommandReply, 1, 5, append(doc(t, bson.D{}), doc(t, bson.D{{Key: "ok", Value: 0}, {Key: "code", Value: 2}})...)))
		}, map[string][3]uint64{"shop.users count": {1, 1, 0}}},
		{"the first request of a client has number 0", func(w *wire) {
			w.send(0, opQuery(t, 0, 0, "shop.$cmd", bson.D{{Key: "count", Value: "users"}}))
			w.send(1, opReply(t, 1, 0, 8, 0, bson.D{{Key: "n", Value: 5}, {Key: "ok", Value: 1}}))
		}, one("shop.users count")},
	}
}

// A packed message that lies about its size is counted as what it is, its reply is expected, and what follows is read.
func TestPacked_wrongSize(t *testing.T) {
	for compressor := range byte(5) {
		for _, off := range []int{1, 40, 47_000_000, 0x7fff0000, -1, -20} {
			w := newWire(t).open()
			w.send(0, packed(t, compressor, off, msg(t, 1, 0, 0, kind0(t, find("users", nil)))))
			w.send(1, packed(t, compressor, off, msg(t, 2, 1, 0, kind0(t, ok))))
			w.ask(3, find("carts", nil), ok)
			w.close()
			r := sniffed(t, w.frames, 27017).Report()
			if got := counts(r); !maps.Equal(got, one("shop.carts find")) {
				t.Errorf("compressor %d, %d bytes off: %v", compressor, off, got)
			}
			if len(r.Malformed) == 0 || r.Unmatched.Requests+r.Unmatched.Replies > 0 {
				t.Errorf("compressor %d, %d bytes off: malformed %v, unmatched %+v", compressor, off, r.Malformed, r.Unmatched)
			}
		}
	}
}

// TLS is told on the ports that people use, also where the capture begins in the middle of a connection.
func TestEncrypted_middle(t *testing.T) {
	for _, port := range []uint16{27017, 27125, 9999} {
		w := newWire(t)
		w.serverPort = port
		w.segment(1, psh, bytes.Repeat([]byte{0x5a}, 700)) // within a record
		for range 3 {
			w.segment(0, psh, append([]byte{0x17, 3, 3, 0, 200}, bytes.Repeat([]byte{0xa5}, 200)...))
			w.segment(1, psh, append([]byte{0x17, 3, 3, 1, 0}, bytes.Repeat([]byte{0x5a}, 256)...))
		}
		want := map[string]uint64{"27017 []": 1, "27125 []": 1, "9999 []": 0, "27017 [27017]": 1, "27125 [27125]": 1, "9999 [9999]": 1}
		for _, ports := range [][]uint16{nil, {port}} {
			r := sniffed(t, w.frames, ports...).Report()
			if key := fmt.Sprint(port, " ", ports); r.EncryptedFlows != want[key] || r.Flows != 0 || len(r.Malformed) > 0 {
				t.Errorf("%s: %d encrypted, %d flows, malformed %v", key, r.EncryptedFlows, r.Flows, r.Malformed)
			}
		}
	}
}

// Fragments are counted, and cost the requests in them only.
func TestFragments(t *testing.T) {
	w := newWire(t).open()
	w.ask(1, find("users", nil), ok)
	w.ask(2, find("carts", nil), ok)
	w.ask(3, find("users", nil), ok)
	w.close()
	f := w.frames[5].data // the second request
	be.PutUint16(f[20:], 0x2000)
	rest := bytes.Clone(f)
	be.PutUint16(rest[20:], 10)
	w.frames[5].data = f
	frames := append(append(append([]wireFrame(nil), w.frames[:6]...), wireFrame{data: rest, wire: len(rest), at: w.frames[5].at, link: w.frames[5].link}), w.frames[6:]...)
	for _, ports := range [][]uint16{{27017}, nil} {
		r := sniffed(t, frames, ports...).Report()
		if got := counts(r); !maps.Equal(got, map[string][3]uint64{"shop.users find": {2, 0, 0}}) || r.Malformed["fragment"] != 2 || r.Gaps != 1 || r.Unmatched.Replies != 1 {
			t.Errorf("ports %v: %v, malformed %v, %d gaps, unmatched %+v", ports, got, r.Malformed, r.Gaps, r.Unmatched)
		}
	}
}
