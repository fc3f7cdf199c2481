package mongodb

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"tidemark/model"
	"tidemark/sniff"
)

func logLines(t testing.TB) [][]byte {
	t.Helper()
	b, err := os.ReadFile("testdata/mongod.log")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
}

func TestDecodeLine(t *testing.T) {
	want := []string{
		"other",
		"slow 153ms reply 2048 docs 10 code 0 app shop-web",
		"slow 220ms reply 0 docs 1 code 0 app shop-web",
		"other",
		"slow 101ms reply 16000 docs 100 code 0 app  further",
		"slow 1s reply 150 docs 0 code 50 app ",
		"unread",
		"unread",
	}
	for i, line := range logLines(t) {
		var told sniff.Told
		got := [...]string{"other", "slow", "unread"}[DecodeLine(line, &told)]
		if got == "slow" {
			got += fmt.Sprintf(" %v reply %d docs %d code %d app %s", time.Duration(told.LatencyNanos), told.ReplyBytes, told.Documents, told.Code, told.Application)
			if told.Further {
				got += " further"
			}
		}
		if got != want[i] {
			t.Errorf("line %d: %s, want %s", i+1, got, want[i])
		}
	}
}

// TestSampled makes items of the log: the shapes are those of the wire, and no value is in them.
func TestSampled(t *testing.T) {
	s := sniff.NewSampled(100)
	for _, line := range logLines(t) {
		var told sniff.Told
		switch DecodeLine(line, &told) {
		case Slow:
			if !s.Add(&told) {
				t.Errorf("not counted: %s", line)
			}
		case Unread:
			s.Unread()
		}
	}
	items := sniff.NewSampledItems(10*time.Second, "127.0.0.1:27017", "log")
	got := map[string]uint64{}
	shapes := map[string]bool{}
	items.TakeSampled(s, 1e9, func(v sniff.ItemValue) {
		if v.Item.Labels.Get("sampled") != "log" || v.Item.Labels.Get("instance") != "127.0.0.1:27017 (log)" {
			t.Errorf("%s has labels %v", v.Item.Key, v.Item.Labels)
		}
		if strings.Contains(fmt.Sprint(*v.Item), "canary") {
			t.Errorf("a value is in %+v", *v.Item)
		}
		if shape := v.Item.Labels.Get("shape"); shape != "" {
			shapes[v.Item.Labels.Get("db")+"."+v.Item.Labels.Get("collection")+" "+shape] = true
		}
		if v.Item.Type == model.Uint {
			got[v.Item.Key] = v.Bits
		}
	})
	for _, want := range []string{
		"shop.users find {age: {$gt: ?}, email: ?} sort {created: -1} limit ?", "shop.users update {_id: ?} {$set: {name: ?}}",
		"shop.users find {age: {$lt: ?}}", "shop.users aggregate [{$match: {secret: ?}}]",
	} {
		if !shapes[want] {
			t.Errorf("no shape %q in %v", want, shapes)
		}
	}
	for key, want := range map[string]uint64{
		"mongo.sampled[127.0.0.1:27017 (log),told]": 4, "mongo.sampled[127.0.0.1:27017 (log),unread]": 2,
		"mongo.instance[127.0.0.1:27017 (log),requests]": 4, "mongo.instance[127.0.0.1:27017 (log),errors]": 1,
	} {
		if got[key] != want {
			t.Errorf("%s is %d, want %d", key, got[key], want)
		}
	}
}

func TestDecodeProfile(t *testing.T) {
	f := func(text string, want Verdict, millis int64) {
		t.Helper()
		var d bson.D
		if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
			t.Fatal(err)
		}
		raw, err := bson.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var told sniff.Told
		if got := DecodeProfile(raw, &told); got != want || got == Slow && told.LatencyNanos != millis*1e6 {
			t.Errorf("%s: %d, %d ns", text, got, told.LatencyNanos)
		}
		if want == Slow && !sniff.NewSampled(10).Add(&told) {
			t.Errorf("%s: not counted", text)
		}
	}
	const ts = `"ts":{"$date":"2026-01-02T03:04:06Z"},`
	f(`{`+ts+`"op":"query","ns":"shop.users","command":{"find":"users","filter":{"a":1},"$db":"shop"},"millis":7,"nreturned":3,"responseLength":400,"client":"10.0.0.7"}`, Slow, 7)
	f(`{`+ts+`"op":"update","ns":"shop.users","command":{"q":{"a":1},"u":{"$inc":{"b":1}},"multi":true,"upsert":false},"millis":9,"nModified":3}`, Slow, 9)
	f(`{`+ts+`"op":"remove","ns":"shop.users","command":{"q":{"a":1},"limit":0},"millis":2,"ndeleted":3}`, Slow, 2)
	f(`{`+ts+`"op":"insert","ns":"shop.users","command":{"insert":"users","ordered":true,"$db":"shop"},"millis":1,"ninserted":1}`, Slow, 1)
	f(`{`+ts+`"op":"query","ns":"shop.users","command":{"find":"users"},"millis":1}`, Slow, 1)
	f(`{`+ts+`"op":"command","ns":"shop.users","command":{"$truncated":"{ find: ..."},"millis":7}`, Unread, 0)
	f(`{`+ts+`"op":"query","ns":"shop.system.profile","appName":"`+Application+`","command":{"find":"system.profile"},"millis":7}`, Other, 0)
	f(`{"op":"query"}`, Other, 0)
}

// FuzzDecodeLine reads any line; nothing panics.
func FuzzDecodeLine(f *testing.F) {
	for _, line := range logLines(f) {
		f.Add(line)
	}
	s := sniff.NewSampled(100)
	f.Fuzz(func(t *testing.T, line []byte) {
		var told sniff.Told
		if DecodeLine(line, &told) == Slow {
			s.Add(&told)
		}
		if DecodeProfile(bson.Raw(line), &told) == Slow {
			s.Add(&told)
		}
	})
}
