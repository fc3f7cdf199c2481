package requests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tidemark/catalog"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/query"
	"tidemark/storage"
	"tidemark/storage/memory"
	"tidemark/wire/sketch"
)

const (
	testInterval = 10 * time.Second
	testAddress  = "[::1]:27017"
)

// testStore is an agent that declares items and stores their values.
type testStore struct {
	tb      testing.TB
	catalog *catalog.Catalog
	engine  storage.Engine
	now     time.Time
	batch   *model.Batch
}

func newTestStore(tb testing.TB, engine storage.Engine, now time.Time) *testStore {
	tb.Helper()
	mem := vfs.NewMem()
	if err := mem.MkdirAll("/data"); err != nil {
		tb.Fatal(err)
	}
	c, err := catalog.Open(tb.Context(), mem, "/data/catalog", catalog.Options{MaxDeclared: 50_000})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	if err := c.Apply(tb.Context(), catalog.Change{Hosts: []catalog.HostName{{ID: 1, Name: "db 1"}, {ID: 2, Name: "other"}}}); err != nil {
		tb.Fatal(err)
	}
	if engine == nil {
		engine = memory.New(memory.Options{Now: func() int64 { return now.UnixNano() }})
	}
	return &testStore{tb: tb, catalog: c, engine: engine, now: now, batch: model.NewBatch()}
}

func (s *testStore) reader() *Reader {
	q := query.New(s.engine, s.catalog, query.Options{Now: func() time.Time { return s.now }})
	return New(q, s.catalog)
}

// declare makes the items of a thing.
func (s *testStore) declare(prefix string, l model.Labels, measures ...string) []model.ItemID {
	s.tb.Helper()
	var decls []catalog.Declaration
	for _, m := range measures {
		t := model.Uint
		switch m {
		case "time":
			t = model.Float
		case "latency":
			t = model.Binary
		}
		decls = append(decls, catalog.Declaration{Key: prefix + "," + m + "]", ValueType: t, Labels: l, Interval: testInterval})
	}
	entries, _, err := s.catalog.Declare(s.tb.Context(), 1, "db 1", decls)
	if err != nil {
		s.tb.Fatal(err)
	}
	ids := make([]model.ItemID, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	return ids
}

// declareInstance makes an instance's items: all measures in their order.
func (s *testStore) declareInstance() []model.ItemID {
	return s.declare(`mongo.instance["`+testAddress+`"`, model.Labels{{Name: "instance", Value: testAddress}}, measureNames[:]...)
}

func (s *testStore) declareShape(fingerprint, collection, command string) []model.ItemID {
	return s.declare(fmt.Sprintf(`mongo.shape["%s",%s`, testAddress, fingerprint), model.Labels{
		{Name: "collection", Value: collection},
		{Name: "command", Value: command},
		{Name: "db", Value: "shop"},
		{Name: "instance", Value: testAddress},
		{Name: "shape", Value: command + " {a" + fingerprint + ": ?}"},
	}, measureNames[:]...)
}

func (s *testStore) declareClient(application, client string) []model.ItemID {
	return s.declare(fmt.Sprintf(`mongo.client["%s",%s,%s`, testAddress, application, client), model.Labels{
		{Name: "application", Value: application}, {Name: "client", Value: client}, {Name: "instance", Value: testAddress},
	}, "requests", "errors", "time", "bytes.in", "bytes.out")
}

// put stores the statistics of one interval under the items that declare gave.
func (s *testStore) put(ids []model.ItemID, at int64, sums *Sums) {
	for m, id := range ids {
		switch {
		case m == int(timeMeasure):
			s.batch.AppendFloat(id, at, sums.Seconds)
		case m == int(latencyMeasure):
			if sums.Latency != nil {
				s.batch.AppendBytes(id, at, model.Binary, sums.Latency.Append(nil))
			}
		default:
			s.batch.AppendUint(id, at, *sums.amount(measure(m)))
		}
	}
	if s.batch.Len() > 50_000 {
		s.flush()
	}
}

func (s *testStore) flush() {
	if _, err := s.engine.Append(context.Background(), s.batch); err != nil {
		s.tb.Fatal(err)
	}
	s.batch.Reset()
}

// randomSums are the statistics of n requests that take about mean nanoseconds.
func randomSums(random *rand.Rand, n int, mean float64) *Sums {
	s := &Sums{Requests: uint64(n), Errors: uint64(random.IntN(n + 1)), BytesIn: random.Uint64N(5000), BytesOut: random.Uint64N(90_000), Documents: random.Uint64N(99), Latency: new(sketch.Sketch)}
	for range n {
		v := int64(mean * random.ExpFloat64())
		s.Latency.Add(v)
		s.Seconds += float64(v) / 1e9
	}
	return s
}
