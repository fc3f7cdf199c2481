package mongo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"tidemark/sniff"
	"tidemark/sniff/capture"
)

// rounds is how often the clients repeat their work.
const rounds = 60

// workload is a client's work; it returns what the driver told.
type workload func(t *testing.T, address string) *ledger

func TestRequests(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		server := startServer(t, host)
		t.Run("Go over "+host, func(t *testing.T) { proveRequests(t, server, goWork) })
		t.Run("Node over "+host, func(t *testing.T) { proveRequests(t, server, nodeWork) })
	}
}

// proveRequests compares what is sniffed while a client works with what its driver says: the requests and errors of every command on every
// namespace exactly, and the times. On a loaded machine a client may sleep between the reply's arrival and its own clock, so that the comparison of
// single times has several tries; that the wire's time lies within the driver's is always so.
func proveRequests(t *testing.T, server string, work workload) {
	const tries = 8
	var late error
	for range tries {
		late = proveRound(t, server, work)
		if t.Failed() || late == nil {
			return
		}
		t.Logf("once more: %v", late)
	}
	t.Error(late)
}

// proveRound returns how the times differ; everything else that differs fails the test.
func proveRound(t *testing.T, server string, work workload) error {
	dropDatabases(t, server)
	w := watch(t, server)
	exported := export(t, server)
	l := work(t, server)
	want := l.requests()
	eventually(t, fmt.Sprintf("%d requests are counted", want), func() bool { return w.requests.Load() >= want })
	eventually(t, fmt.Sprintf("%d requests are exported", want), func() bool {
		return exported(`tidemark_mongo_server_requests_total\{instance="`+regexp.QuoteMeta(server)+`",kind="load"\}`) == float64(want)
	})
	report := w.stop()
	if c := w.sniffer.Counters(); c.Source.Dropped > 0 || c.Flow.Gaps > 0 {
		t.Fatalf("the kernel dropped %d frames, %d gaps: the machine is too busy for this test", c.Source.Dropped, c.Flow.Gaps)
	}
	compareCounts(t, report, l)
	sniffed := 0.0
	for _, s := range report.Shapes {
		sniffed += s.TimeMillis
	}
	said := 0.0
	for _, v := range l.told {
		for _, ms := range v.Millis {
			said += ms
		}
	}
	if sniffed > said || sniffed == 0 {
		t.Errorf("the wire's times are %.3f ms, the driver's %.3f ms: those of the wire lie within", sniffed, said)
	}
	if sum := exported(`tidemark_mongo_request_duration_seconds_sum\{[^}]*\}`) * 1000; math.Abs(sum-sniffed) > 1e-3*sniffed {
		t.Errorf("the exporter's times are %.3f ms, those sniffed here %.3f ms", sum, sniffed)
	}
	return compareTimes(t, w.sniffer, report, l)
}

func compareCounts(t *testing.T, report sniff.Report, l *ledger) {
	t.Helper()
	seen := map[key]bool{}
	for _, c := range report.Commands {
		k := key{c.Namespace, c.Command}
		seen[k] = true
		v := l.told[k]
		if v == nil {
			t.Errorf("%s on %s: %d requests that the driver does not know of", c.Command, c.Namespace, c.Requests)
			continue
		}
		// Whether endSessions fails nobody asks.
		if c.Requests != v.Requests || c.Errors != v.Errors && c.Command != "endSessions" && c.Unacknowledged == 0 {
			t.Errorf("%s on %s: %d requests, %d errors; the driver says %d and %d", c.Command, c.Namespace, c.Requests, c.Errors, v.Requests, v.Errors)
		}
	}
	for k, v := range l.told {
		if !seen[k] {
			t.Errorf("%s on %s: the driver says %d requests, none was sniffed", k.Command, k.Namespace, v.Requests)
		}
	}
	if len(report.Monitoring) != 1 || report.Monitoring[0].Requests == 0 {
		t.Errorf("the drivers' own greetings are missing: %+v", report.Monitoring)
	}
	if report.Unmatched.Requests > 0 || len(report.Malformed) > 0 {
		t.Errorf("%d requests without reply, malformed %v", report.Unmatched.Requests, report.Malformed)
	}
}

// compareTimes compares the times of shapes that are all there is of a command on a namespace: the medians, or else the tenth percentiles. Where
// the machine is so busy that a client mostly waits for its turn before it looks at its clock, its quickest requests tell what the wire adds or leaves out.
func compareTimes(t *testing.T, s *sniff.Sniffer, report sniff.Report, l *ledger) error {
	t.Helper()
	shapes := map[key]int{}
	for _, r := range report.Shapes {
		shapes[key{r.Namespace, r.Command}]++
	}
	compared := 0
	for _, i := range s.Statistics().Instances() {
		for _, st := range i.Shapes {
			k := key{st.Shape.Namespace(), st.Shape.Command}
			v := l.told[k]
			if shapes[k] != 1 || v == nil || v.Requests != st.Requests || st.Requests < rounds {
				continue
			}
			compared++
			slices.Sort(v.Millis)
			median, quick := v.Millis[len(v.Millis)/2], v.Millis[len(v.Millis)/10]
			wireMedian, wireQuick := st.Latency.Quantile(0.5)/1e6, st.Latency.Quantile(0.1)/1e6
			if !near(wireMedian, median) && !near(wireQuick, quick) {
				return fmt.Errorf("%s on %s: the wire's median is %.3f ms, the driver's %.3f ms; the tenth percentiles are %.3f and %.3f ms", k.Command, k.Namespace, wireMedian, median, wireQuick, quick)
			}
		}
	}
	if compared < 2 {
		t.Errorf("only %d shapes could be compared", compared)
	}
	return nil
}

// near reports whether a driver's time is the wire's and at most a millisecond more, or a quarter where requests take many milliseconds. A sketch's
// quantiles are within 2 %.
func near(wire, driver float64) bool {
	more := driver - wire
	return more <= max(1, driver/4) && more >= -0.02*wire-0.01
}

// watched is a sniffer at work.
type watched struct {
	sniffer  *sniff.Sniffer
	requests atomic.Uint64
	cancel   context.CancelFunc
	done     chan error
	t        *testing.T
}

// watch sniffs loopback in this process.
func watch(t *testing.T, server string) *watched {
	t.Helper()
	ports := []uint16{netip.MustParseAddrPort(server).Port()}
	ring, err := capture.OpenRing(capture.RingOptions{Interface: "lo", Ports: ports, RingBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{done: make(chan error, 1), t: t}
	if w.sniffer, err = sniff.New(sniff.Options{Ports: ports}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go func() {
		defer ring.Close()
		w.done <- w.sniffer.Run(ctx, ring, sniff.RunOptions{Interval: 100e6, Tick: func(int64, int64) {
			n := uint64(0)
			for _, i := range w.sniffer.Statistics().Instances() {
				n += i.Total.Requests
			}
			w.requests.Store(n)
		}})
	}()
	t.Cleanup(cancel)
	return w
}

// stop ends the sniffing and returns what was met.
func (w *watched) stop() sniff.Report {
	w.cancel()
	if err := <-w.done; err != nil {
		w.t.Errorf("sniff: %v", err)
	}
	return w.sniffer.Report()
}

// export runs the tidemark's exporter.
func export(t *testing.T, server string) func(expression string) float64 {
	t.Helper()
	address := freeAddress(t, "127.0.0.1")
	_, port, _ := splitHostPort(server)
	run(t, tidemark, "mongo", "export", "-i", "lo", "--port", port, "--listen", address)
	return metrics(t, address)
}

// metrics waits for an exporter; what it returns gives the sum of the metrics that match an expression, NaN while there is none.
func metrics(t testing.TB, address string) func(expression string) float64 {
	t.Helper()
	read := func() string {
		answer, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return ""
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return string(text)
	}
	eventually(t, "the exporter answers", func() bool { return read() != "" })
	return func(expression string) float64 {
		found := regexp.MustCompile(`(?m)^`+expression+` (\S+)$`).FindAllStringSubmatch(read(), -1)
		if len(found) == 0 {
			return math.NaN()
		}
		sum := 0.0
		for _, m := range found {
			v, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				t.Errorf("metric %q: %v", m[0], err)
			}
			sum += v
		}
		return sum
	}
}

func splitHostPort(address string) (netip.Addr, string, error) {
	a, err := netip.ParseAddrPort(address)
	return a.Addr(), strconv.Itoa(int(a.Port())), err
}

// connect returns a client of the Go driver; one without a ledger calls itself otherwise.
func connect(t *testing.T, address string, l *ledger) *mongo.Client {
	t.Helper()
	o := options.Client().ApplyURI("mongodb://" + address + "/").SetAppName("go-admin")
	if l != nil {
		o.SetAppName("go-shop").SetMonitor(l.monitor())
	}
	client, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func dropDatabases(t *testing.T, address string) {
	t.Helper()
	client := connect(t, address, nil)
	for _, name := range []string{"shop", "nodeshop"} {
		if err := client.Database(name).Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// goWork is the work of the Go driver.
func goWork(t *testing.T, address string) *ledger {
	t.Helper()
	ctx := t.Context()
	l := newLedger()
	client := connect(t, address, l)
	db := client.Database("shop")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range rounds {
		_, err := db.Collection("users").InsertOne(ctx, bson.D{{Key: "_id", Value: i}, {Key: "name", Value: fmt.Sprint("user ", i)}, {Key: "age", Value: i}})
		must(err)
		must(db.Collection("users").FindOne(ctx, bson.D{{Key: "name", Value: fmt.Sprint("user ", i)}}).Err())
		_, err = db.Collection("users").UpdateOne(ctx, bson.D{{Key: "_id", Value: i}}, bson.D{{Key: "$set", Value: bson.D{{Key: "age", Value: i + 1}}}})
		must(err)
		_, err = db.Collection("users").CountDocuments(ctx, bson.D{{Key: "age", Value: i}})
		must(err)
	}
	var documents []any
	for i := range 300 {
		documents = append(documents, bson.D{{Key: "_id", Value: i}})
	}
	_, err := db.Collection("orders").InsertMany(ctx, documents)
	must(err)
	cursor, err := db.Collection("orders").Find(ctx, bson.D{}, options.Find().SetBatchSize(50))
	must(err)
	var all []bson.D
	must(cursor.All(ctx, &all))
	if len(all) != 300 {
		t.Errorf("%d documents", len(all))
	}
	if _, err := db.Collection("orders").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}); !mongo.IsDuplicateKeyError(err) {
		t.Errorf("a duplicate: %v", err)
	}
	if err := db.RunCommand(ctx, bson.D{{Key: "noSuchCommand", Value: 1}}).Err(); err == nil {
		t.Error("an unknown command does not fail")
	}
	_, err = db.Collection("orders").DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: 100}}}})
	must(err)
	must(client.Disconnect(ctx))

	// Writes that want no answer, on a client of their own: FerretDB answers them all the same.
	silent := connect(t, address, l)
	collection := silent.Database("shop").Collection("events", options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
	for i := range 5 {
		if _, err := collection.InsertOne(ctx, bson.D{{Key: "n", Value: i}}); err != nil {
			t.Fatal(err)
		}
	}
	must(silent.Disconnect(ctx))
	return l
}

// nodeWork is the work of the driver for Node.js.
func nodeWork(t *testing.T, address string) *ledger {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "node", "client.mjs", "mongodb://"+address+"/", strconv.Itoa(rounds)).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("node: %v\n%s", err, failed.Stderr)
		}
		t.Fatalf("node: %v", err)
	}
	var list []struct {
		Namespace, Command string
		told
	}
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("node wrote %q: %v", out, err)
	}
	l := newLedger()
	for _, v := range list {
		l.told[key{v.Namespace, v.Command}] = &v.told
	}
	return l
}
