package sniff

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/wire/sketch"
)

// The values of all intervals add up to what was sent; keys are distinct; sketches merge.
func TestItems(t *testing.T) {
	w := newWire(t)
	w.six = true
	w.open()
	w.ask(1, bson.D{{Key: "hello", Value: 1}, {Key: "client", Value: bson.D{{Key: "application", Value: bson.D{{Key: "name", Value: `shop, "web"`}}}}}, {Key: "$db", Value: "admin"}}, ok)
	for i := range uint32(40) {
		w.ask(10+i, find("users", bson.D{{Key: "a", Value: 1}}), ok)
		w.ask(100+i, find("orders", bson.D{{Key: "a", Value: 1}}), bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: 2}})
		w.now += 1e9
	}
	s, err := New(Options{Ports: []uint16{27017}})
	if err != nil {
		t.Fatal(err)
	}
	items := NewItems(10 * time.Second)
	sums := map[string]float64{}
	keys := map[string]*Item{}
	var latency, clients sketch.Sketch
	err = s.Run(context.Background(), &memory{frames: w.frames}, RunOptions{Interval: 10 * time.Second, Tick: func(_, to int64) {
		items.Take(s, to, func(v ItemValue) {
			if was := keys[v.Item.Key]; was != nil && was != v.Item {
				t.Errorf("%s is two items", v.Item.Key)
			}
			keys[v.Item.Key] = v.Item
			if v.Bytes != nil {
				var one sketch.Sketch
				if err := one.Decode(v.Bytes); err != nil || one.Count == 0 {
					t.Errorf("%s: %v", v.Item.Key, err)
				}
				if strings.HasPrefix(v.Item.Key, "mongo.shape") {
					latency.Merge(&one)
				}
				if strings.HasPrefix(v.Item.Key, "mongo.client") {
					clients.Merge(&one)
				}
				return
			}
			n := float64(v.Bits)
			if v.Item.Units == "s" {
				n = math.Float64frombits(v.Bits)
			}
			sums[v.Item.Key] += n
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	total := map[string]float64{}
	for key, n := range sums {
		name := key[:strings.IndexByte(key, '[')]
		total[name+" "+key[strings.LastIndexByte(key, ',')+1:]] += n
	}
	for key, want := range map[string]float64{
		"mongo.shape requests]": 80, "mongo.shape errors]": 40, "mongo.instance requests]": 80, "mongo.instance errors]": 40, "mongo.client requests]": 80,
		"mongo.instance monitoring]": 1, "mongo.client errors]": 40, "mongo.shape errors.2]": 40,
	} {
		if total[key] != want {
			t.Errorf("%s adds up to %v, want %v", key, total[key], want)
		}
	}
	if clients.Count != 80 || clients.Sum != latency.Sum {
		t.Errorf("clients have %d latencies, %d ns, want %d and %d ns", clients.Count, clients.Sum, latency.Count, latency.Sum)
	}
	if latency.Count != 80 || math.Abs(total["mongo.shape time]"]-total["mongo.instance time]"]) > 1e-9 {
		t.Errorf("%d latencies, time %v of shapes and %v of the instance", latency.Count, total["mongo.shape time]"], total["mongo.instance time]"])
	}
	for key, item := range keys {
		if strings.HasSuffix(key, ",errors.2]") && (item.Labels.Get("code") != "2" || item.Labels.Get("collection") != "orders" || item.Labels.Get("db") == "") {
			t.Errorf("%s: labels %v", key, item.Labels)
		}
		if strings.HasPrefix(key, "mongo.shape[") && (item.Labels.Get("shape") != "find {a: ?}" || !strings.Contains(key, ","+item.Labels.Get("fingerprint")+",") || !strings.HasPrefix(item.Name, item.Labels.Get("namespace")+" find")) {
			t.Errorf("%s: labels %v", key, item.Labels)
		}
		if strings.HasPrefix(key, "mongo.client[") && !strings.Contains(key, `"shop, \"web\""`) {
			t.Errorf("key %s", key)
		}
	}
}
