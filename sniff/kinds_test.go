package sniff

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/wire/mongo"
)

type kind struct {
	name  string
	build func(w *wire)
	want  map[string][3]uint64
}

func one(key string) map[string][3]uint64 { return map[string][3]uint64{key: {1, 0, 0}} }

func kinds(t testing.TB) []kind {
	many := make(bson.A, 3000)
	for i := range many {
		many[i] = fmt.Sprintf("value %d", i)
	}
	big := bson.D{{Key: "a", Value: bson.D{{Key: "$in", Value: many}}}}
	bigDoc := bson.D{{Key: "x", Value: strings.Repeat("x", 40_000)}}
	updates := kind1(t, "updates", bson.D{{Key: "q", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "b", Value: 1}}}}}})
	insert := bson.D{{Key: "insert", Value: "users"}, {Key: "$db", Value: "shop"}}
	del := bson.D{{Key: "delete", Value: "users"}, {Key: "$db", Value: "shop"}}
	hello := bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}, {Key: "maxAwaitTimeMS", Value: 10000}}
	return append(rareKinds(t), []kind{
		{"find", func(w *wire) { w.ask(1, find("users", bson.D{{Key: "a", Value: 1}}), ok) }, one("shop.users find")},
		{"IPv6", func(w *wire) { w.six = true; w.ask(1, find("users", nil), ok) }, one("shop.users find")},
		{"QinQ", func(w *wire) { w.tags = 2; w.ask(1, find("users", nil), ok) }, one("shop.users find")},
		{"database behind a large filter", func(w *wire) { w.most = 1448; w.ask(1, find("users", big), ok) }, one("shop.users find")},
		{"large filter in one segment", func(w *wire) { w.ask(1, find("users", big), ok) }, one("shop.users find")},
		{"header alone first", func(w *wire) {
			w.first = 16
			for i := range uint32(3) {
				w.ask(1+i, find("users", nil), ok)
			}
		}, map[string][3]uint64{"shop.users find": {3, 0, 0}}},
		{"four bytes first", func(w *wire) { w.first = 4; w.ask(1, find("users", nil), ok) }, one("shop.users find")},
		{"byte by byte", func(w *wire) { w.most = 1; w.ask(1, find("users", nil), ok) }, one("shop.users find")},
		{"sequence first", func(w *wire) {
			w.send(0, msg(t, 1, 0, 0, kind1(t, "documents", bigDoc, bigDoc), kind0(t, insert)))
			w.send(1, msg(t, 2, 1, 0, kind0(t, ok)))
		}, one("shop.users insert")},
		{"sequence first over segments", func(w *wire) {
			w.most = 1448
			w.send(0, msg(t, 1, 0, 0, kind1(t, "documents", bigDoc, bigDoc), kind0(t, insert)))
			w.send(1, msg(t, 2, 1, 0, kind0(t, ok)))
		}, one("shop.users insert")},
		{"checksum", func(w *wire) {
			w.send(0, msg(t, 1, 0, checksum, kind0(t, find("users", nil))))
			w.send(1, msg(t, 2, 1, checksum, kind0(t, ok)))
		}, one("shop.users find")},
		{"fire and forget", func(w *wire) {
			w.send(0, msg(t, 1, 0, moreToCome, kind0(t, insert), kind1(t, "documents", bigDoc)))
			w.ask(2, find("users", nil), ok)
		}, map[string][3]uint64{"shop.users insert": {1, 0, 1}, "shop.users find": {1, 0, 0}}},
		{"snappy over 16 KiB packed", func(w *wire) {
			noise := make([]byte, 60_000)
			x := uint32(1)
			for i := range noise {
				x = x*1664525 + 1013904223
				noise[i] = byte(x >> 24)
			}
			w.most = 1448
			w.send(0, snappy(msg(t, 1, 0, 0, kind0(t, insert), kind1(t, "documents", bson.D{{Key: "x", Value: noise}}))))
			w.send(1, snappy(msg(t, 2, 1, 0, kind0(t, ok))))
		}, one("shop.users insert")},
		{"packed command over 16 KiB", func(w *wire) {
			w.send(0, snappy(msg(t, 1, 0, 0, kind0(t, find("users", big)))))
			w.send(1, snappy(msg(t, 2, 1, 0, kind0(t, ok))))
		}, one("shop.users find")},
		{"errors", func(w *wire) {
			w.ask(1, find("users", nil), bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 2}, {Key: "codeName", Value: "BadValue"}})
			w.ask(2, insert, bson.D{{Key: "n", Value: 0}, {Key: "writeErrors", Value: bson.A{bson.D{{Key: "index", Value: 0}, {Key: "code", Value: 11000}}}}, {Key: "ok", Value: 1}})
			w.ask(3, insert, bson.D{{Key: "n", Value: 1}, {Key: "writeConcernError", Value: bson.D{{Key: "code", Value: 64}}}, {Key: "ok", Value: true}})
		}, map[string][3]uint64{"shop.users find": {1, 1, 0}, "shop.users insert": {2, 2, 0}}},
		{"explain", func(w *wire) {
			w.ask(1, bson.D{{Key: "explain", Value: bson.D{{Key: "find", Value: "users"}, {Key: "filter", Value: bson.D{{Key: "a", Value: 1}}}}}, {Key: "$db", Value: "shop"}}, ok)
		}, one("shop.users explain")},
		{"renameCollection", func(w *wire) {
			w.ask(1, bson.D{{Key: "renameCollection", Value: "shop.users"}, {Key: "to", Value: "shop.people"}, {Key: "$db", Value: "admin"}}, ok)
		}, one("shop.users renameCollection")},
		{"findandmodify", func(w *wire) {
			w.ask(1, bson.D{{Key: "findandmodify", Value: "users"}, {Key: "query", Value: bson.D{}}, {Key: "$db", Value: "shop"}}, ok)
		}, one("shop.users findAndModify")},
		{"aggregate on a database", func(w *wire) {
			w.ask(1, bson.D{{Key: "aggregate", Value: 1}, {Key: "pipeline", Value: bson.A{}}, {Key: "$db", Value: "shop"}}, ok)
		}, one("shop aggregate")},
		{"unknown command", func(w *wire) {
			w.ask(1, bson.D{{Key: "fooBar", Value: "users"}, {Key: "x", Value: 1}, {Key: "$db", Value: "shop"}}, ok)
		}, one("shop.users fooBar")},
		{"user management", func(w *wire) {
			w.ask(1, bson.D{{Key: "dropUser", Value: "somebody"}, {Key: "$db", Value: "shop"}}, ok)
			w.ask(2, bson.D{{Key: "createUser", Value: "somebody"}, {Key: "pwd", Value: "secret"}, {Key: "$db", Value: "shop"}}, ok)
		}, map[string][3]uint64{"shop dropUser": {1, 0, 0}, "shop createUser": {1, 0, 0}}},
		{"getMore by its own collection", func(w *wire) {
			w.ask(1, find("users", nil), cursorReply(77, "firstBatch", 2))
			w.ask(2, bson.D{{Key: "getMore", Value: int64(77)}, {Key: "collection", Value: "users"}, {Key: "$db", Value: "shop"}}, cursorReply(0, "nextBatch", 2))
		}, map[string][3]uint64{"shop.users find": {1, 0, 0}, "shop.users getMore": {1, 0, 0}}},
		{"bulkWrite", func(w *wire) {
			w.ask(1, bson.D{{Key: "bulkWrite", Value: 1}, {Key: "$db", Value: "admin"}}, ok,
				kind1(t, "ops", bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: bson.D{}}}, bson.D{{Key: "update", Value: 1}, {Key: "filter", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "updateMods", Value: bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}}}),
				kind1(t, "nsInfo", bson.D{{Key: "ns", Value: "shop.users"}}, bson.D{{Key: "ns", Value: "shop.orders"}}))
		}, one("shop.users bulkWrite")},
		{"update in a sequence", func(w *wire) {
			w.ask(1, bson.D{{Key: "update", Value: "users"}, {Key: "$db", Value: "shop"}}, ok, updates)
		}, one("shop.users update")},
		{"pipelined in one segment", func(w *wire) {
			w.segment(0, psh, append(message(mongo.OpInsert, 0, 0, legacy(0, "shop.users", doc(t, bigDoc)))[:0:0],
				append(message(mongo.OpDelete, 0, 0, legacy(0, "shop.users", numbers(1), doc(t, bson.D{{Key: "a", Value: 1}}))),
					message(mongo.OpQuery, 5, 9, legacy(0, "shop.$cmd", numbers(0, 0xffffffff), doc(t, bson.D{{Key: "getLastError", Value: 1}})))...)...))
			w.send(1, message(mongo.OpReply, 1, 5, append(numbers(0, 0, 0, 0, 1), doc(t, ok)...)))
		}, map[string][3]uint64{"shop.users delete": {1, 0, 1}, "shop getLastError": {1, 0, 0}}},
		{"OP_UPDATE", func(w *wire) {
			w.send(0, message(mongo.OpUpdate, 0, 0, legacy(0, "shop.users", numbers(3), doc(t, bson.D{{Key: "a", Value: 1}}), doc(t, bson.D{{Key: "$set", Value: bson.D{{Key: "b", Value: 1}}}}))))
		}, map[string][3]uint64{"shop.users update": {1, 0, 1}}},
		{"OP_QUERY wrapper and $err", func(w *wire) {
			q := bson.D{{Key: "$query", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "$orderby", Value: bson.D{{Key: "b", Value: -1}}}}
			w.send(0, message(mongo.OpQuery, 5, 3, legacy(0, "shop.users", numbers(0, 0), doc(t, q))))
			w.send(1, message(mongo.OpReply, 1, 5, append(numbers(mongo.ReplyQueryFailure, 0, 0, 0, 1), doc(t, bson.D{{Key: "$err", Value: "no"}})...)))
		}, map[string][3]uint64{"shop.users find": {1, 1, 0}}},
		{"OP_COMMAND", func(w *wire) {
			w.send(0, message(mongo.OpCommand, 5, 0, append([]byte("shop\x00find\x00"), append(doc(t, bson.D{{Key: "find", Value: "users"}}), doc(t, bson.D{})...)...)))
			w.send(1, message(mongo.OpCommandReply, 1, 5, append(doc(t, ok), doc(t, bson.D{})...)))
		}, one("shop.users find")},
		{"exhaust getMore", func(w *wire) {
			w.ask(1, find("users", nil), cursorReply(77, "firstBatch", 2))
			w.send(0, msg(t, 2, 0, exhaust, kind0(t, bson.D{{Key: "getMore", Value: int64(77)}, {Key: "collection", Value: "users"}, {Key: "$db", Value: "shop"}})))
			w.send(1, msg(t, 50, 2, moreToCome, kind0(t, cursorReply(77, "nextBatch", 2))))
			w.send(1, msg(t, 51, 50, moreToCome, kind0(t, cursorReply(77, "nextBatch", 2))))
			w.send(1, msg(t, 52, 51, 0, kind0(t, cursorReply(0, "nextBatch", 2))))
		}, map[string][3]uint64{"shop.users find": {1, 0, 0}, "shop.users getMore": {1, 0, 0}}},
		{"awaitable hello", func(w *wire) {
			w.send(0, msg(t, 9, 0, exhaust, kind0(t, hello)))
			w.send(1, msg(t, 10, 9, moreToCome, kind0(t, ok)))
			w.send(1, msg(t, 11, 10, moreToCome, kind0(t, ok)))
		}, map[string][3]uint64{}},
		{"request id 0 and all bits", func(w *wire) {
			w.ask(0, find("users", nil), ok)
			w.ask(0xffffffff, del, ok)
		}, map[string][3]uint64{"shop.users find": {1, 0, 0}, "shop.users delete": {1, 0, 0}}},
		{"sequence numbers wrap", func(w *wire) {
			for i := range uint32(4) {
				w.ask(1+i, find("users", nil), ok)
			}
		}, map[string][3]uint64{"shop.users find": {4, 0, 0}}},
	}...)
}

// TestKinds sends every kind of traffic through the whole sniffer: with the connection's beginning and without, on a known port and
// found by content.
func TestKinds(t *testing.T) {
	for _, k := range kinds(t) {
		t.Run(k.name, func(t *testing.T) {
			for _, opened := range []bool{true, false} {
				for _, ports := range [][]uint16{{27017}, nil} {
					w := newWire(t)
					if k.name == "sequence numbers wrap" {
						w.sequence = [2]uint32{^uint32(0) - 120, ^uint32(0) - 30}
					}
					if opened {
						w.open()
					}
					k.build(w)
					w.close()
					hard := k.name == "byte by byte" || k.name == "four bytes first"
					if hard && !opened {
						continue // nothing marks where a message begins
					}
					s := sniffed(t, w.frames, ports...)
					r := s.Report()
					if got := counts(r); !maps.Equal(got, k.want) {
						t.Errorf("opened %v, ports %v: %v, want %v", opened, ports, got, k.want)
					}
					if len(r.Malformed) > 0 || r.Unmatched.Replies+r.Unmatched.Requests > 0 || r.Gaps > 0 {
						t.Errorf("opened %v, ports %v: malformed %v, unmatched %+v, gaps %d", opened, ports, r.Malformed, r.Unmatched, r.Gaps)
					}
				}
			}
		})
	}
}

// A getMore counts for the shape that opened the cursor; statements of a bulk count each.
func TestKinds_shapes(t *testing.T) {
	for _, k := range kinds(t) {
		want := map[string]uint64{}
		switch k.name {
		case "getMore by its own collection", "exhaust getMore":
			want["shop.users find {}"] = 2
		case "cursor behind a large batch", "cursor behind a large batch over segments":
			want["shop.users find {}"] = 3
		case "bulkWrite over 16 KiB":
			want["shop.users insert"] = 1
			want["shop.orders delete {a: ?}"] = 1
		case "bulkWrite":
			want["shop.users insert"], want["shop.orders update {a: ?} {$inc: {n: ?}}"] = 1, 1
		case "OP_UPDATE":
			want["shop.users update {a: ?} {$set: {b: ?}} multi upsert"] = 1
		case "OP_QUERY wrapper and $err":
			want["shop.users find {a: ?} sort {b: -1}"] = 1
		case "database behind a large filter":
			want["shop.users find {a: {$in: [?]}}"] = 1
		case "explain":
			want["shop.users explain find {a: ?}"] = 1
		default:
			continue
		}
		w := newWire(t).open()
		k.build(w)
		got := map[string]uint64{}
		for _, s := range sniffed(t, w.frames, 27017).Report().Shapes {
			got[s.Namespace+" "+s.Shape] = s.Requests
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", k.name, got, want)
		}
	}
}

// Several servers are watched at once, one of them a client of another; each keeps its own statistics.
func TestSeveralPorts(t *testing.T) {
	client := newWire(t).open()
	client.ask(1, find("users", nil), ok)
	router := newWire(t)
	router.client, router.server, router.clientPort, router.serverPort = [4]byte{10, 0, 0, 2}, [4]byte{10, 0, 0, 3}, 27017, 27018
	router.sequence = [2]uint32{77, 88}
	router.open()
	router.ask(1, append(find("orders", nil), bson.E{Key: "shardVersion", Value: bson.D{}}), ok)
	direct := newWire(t)
	direct.server, direct.serverPort, direct.clientPort = [4]byte{10, 0, 0, 3}, 27018, 40001
	direct.sequence = [2]uint32{7, 8}
	direct.open()
	direct.ask(1, find("carts", nil), ok)
	frames := append(append(client.frames, router.frames...), direct.frames...)
	for _, ports := range [][]uint16{{27017, 27018}, nil} {
		s := sniffed(t, frames, ports...)
		r := s.Report()
		want := map[string][3]uint64{"shop.users find": {1, 0, 0}, "shop.carts find": {1, 0, 0}}
		if got := counts(r); !maps.Equal(got, want) || len(r.Cluster) != 1 || r.Cluster[0].Requests != 1 {
			t.Errorf("ports %v: %v, within the cluster %v", ports, got, r.Cluster)
		}
		if n := len(s.Statistics().Instances()); n != 2 {
			t.Errorf("%d servers", n)
		}
	}
}

// An encrypted connection is counted and nothing is guessed; the same client's plain connection is read.
func TestEncrypted(t *testing.T) {
	w := newWire(t).open()
	w.segment(0, psh, append([]byte{0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3}, make([]byte, 189)...))
	w.segment(1, psh, append([]byte{0x16, 3, 3, 0, 90, 2}, make([]byte, 89)...))
	for range 20 {
		w.segment(0, psh, append([]byte{0x17, 3, 3, 1, 0}, msg(t, 1, 0, 0, kind0(t, find("users", nil)))...))
	}
	plain := newWire(t)
	plain.clientPort = 40001
	plain.open().ask(1, find("users", nil), ok)
	for _, ports := range [][]uint16{{27017}, nil} {
		r := sniffed(t, append(w.frames, plain.frames...), ports...).Report()
		if r.EncryptedFlows != 1 || r.Flows != 1 || !maps.Equal(counts(r), one("shop.users find")) || len(r.Malformed) > 0 {
			t.Errorf("ports %v: %d encrypted, %d flows, %v, malformed %v", ports, r.EncryptedFlows, r.Flows, counts(r), r.Malformed)
		}
	}
}
