package server

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/catalog"
	"tidemark/confcache"
	"tidemark/internal/vfs"
	"tidemark/model"
	"tidemark/preproc"
	"tidemark/storage"
	"tidemark/valuecache"
)

// noHistory has no values.
type noHistory struct{}

func (noHistory) Read(context.Context, storage.Query, func(*model.Columns) error) error { return nil }

// keeping hands batches to the value cache and remembers the newest value of each item as text.
type keeping struct {
	mu     sync.Mutex
	values *valuecache.Cache
	newest map[model.ItemID]string
	also   func(*model.Batch)
}

func (k *keeping) Put(_ context.Context, b *model.Batch) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, id := range b.Items {
		switch b.Types[i] {
		case model.Float, model.Uint:
			k.newest[id] = b.Types[i].String() + " " + strconv.FormatFloat(b.Float(i), 'g', -1, 64)
		default:
			k.newest[id] = b.Types[i].String() + " " + string(b.Bytes(i))
		}
	}
	k.values.Add(b)
	k.also(b)
	b.Finish(nil)
	return nil
}

// TestPolling takes a value the whole way: a trapper item, a calculated item of it, a dependent item of that, an internal item.
func TestPolling(t *testing.T) {
	item := func(id model.ItemID, key string, kind model.ItemType, vt model.ValueType) model.ItemConfig {
		return model.ItemConfig{Item: model.Item{ID: id, HostID: 1, Key: key, Type: kind, ValueType: vt, Delay: "10s", Enabled: true}}
	}
	list := []model.ItemConfig{
		item(1, "in", model.Trapper, model.Uint), item(2, "double", model.Calculated, model.Uint), item(3, "text", model.Dependent, model.Text),
		item(4, "zabbix[items]", model.Internal, model.Uint), item(5, "all", model.Calculated, model.Uint), item(6, "broken", model.Calculated, model.Uint),
		item(7, "zabbix[items_unsupported]", model.Internal, model.Uint),
	}
	list[1].Params, list[4].Params, list[5].Params = "last(//in)*2", "sum(last_foreach(/*/in))+count(last_foreach(/*/double))", "last(//none)"
	list[2].MasterKey, list[2].Delay = "double", "0"
	c, err := catalog.Open(t.Context(), vfs.OS{}, t.TempDir(), catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	synctest.Test(t, func(t *testing.T) {
		cache := confcache.New(hostSource{{Host: model.Host{ID: 1, Host: "h", Enabled: true}, Items: list}}, confcache.Options{})
		if _, err := cache.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		names := &namedItems{definitions: newDefinitions(cache, c)}
		values := valuecache.New(valuecache.Options{History: noHistory{}})
		sink := &keeping{values: values, newest: map[model.ItemID]string{}}
		processor := preproc.New(preproc.Options{Items: names.definitions, Sink: sink})
		p := newPolling(pollingOptions{
			sink: processor, names: names, values: values, version: "1", started: time.Now(), metrics: metrics.NewSet(), logger: slog.New(slog.DiscardHandler),
		})
		sink.also = p.Observe
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = p.Run(ctx) })
		// The cache keeps what somebody asks for only, as it does once a formula was due.
		values.Ask(1, model.Uint, 0, 1)
		for range 12 {
			b := model.NewBatch()
			b.AppendString(1, time.Now().UnixNano(), model.Raw, "21")
			if err := processor.Put(ctx, b); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		cancel()
		running.Wait()
		var got []string
		for id, v := range sink.newest {
			got = append(got, string(rune('0'+id))+" "+v)
		}
		slices.Sort(got)
		want := []string{
			"1 unsigned 21", "2 unsigned 42", "3 text 42", "4 unsigned 7", "5 unsigned 22",
			"6 unsupported the formula cannot be evaluated: item //none does not exist", "7 unsigned 1",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
