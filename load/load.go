// Package load feeds a server as many Zabbix senders or active agents would, and measures what it does.
//
// What is sent follows from host, item and sequence number alone ([Walk], [Schedule]), so that a checker can compute
// again what must be stored.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"tidemark/wire/zbx"
)

// Protocol says how values are sent.
type Protocol string

// The protocols.
const (
	// Sender sends `sender data` with host and key in each row, as zabbix_sender does.
	Sender Protocol = "sender"
	// Agent asks for its active checks and sends `agent data` with itemids and a session, as agent 2 does.
	Agent Protocol = "agent"
)

// Options say what to send.
type Options struct {
	// Server is the agent protocol address, HTTP the address of the REST API, which only Provision needs.
	Server, HTTP string
	// Token is sent to HTTP; empty for a server that has no administrator yet.
	Token string
	// Hosts is how many hosts send, at most 100,000; Items how many items each has, at most 100,000.
	Hosts, Items int
	// NVPS is how many values all hosts together send per second. Zero: each item has an interval of its own between
	// IntervalMin and IntervalMax.
	NVPS                     float64
	IntervalMin, IntervalMax time.Duration
	// Seconds is how long values are made; zero sends until the context ends. What has been made is sent out after
	// that, for at most Drain.
	Seconds float64
	// Drain is zero for 60 s.
	Drain time.Duration
	// Finish has a request that is under way when the context ends repeated until it is answered, for at most Drain, so that what was stored is known.
	Finish   bool
	Protocol Protocol
	// Triggers is how many triggers per item Provision makes, 0 to 1.
	Triggers float64
	// Strings is the share of the items that are texts, 0 to 1: one of ten states each.
	Strings float64
	// Connections bounds how many are open at once; zero is 128.
	Connections int
	// BatchRows bounds the values of one request; zero is 250 for Sender, as zabbix_sender does, and 1,000 for Agent.
	BatchRows int
	// Timeout is how long one request may take; zero is 30 s.
	Timeout time.Duration
	// Start is the time of the first value; zero is now.
	Start time.Time
}

// Check returns what is wrong with the options, with defaults filled in otherwise.
func (o Options) Check() (Options, error) {
	if o.Protocol == "" {
		o.Protocol = Sender
	}
	orInt := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	orInt(&o.Connections, 128)
	orInt(&o.BatchRows, map[Protocol]int{Sender: 250, Agent: 1000}[o.Protocol])
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Drain <= 0 {
		o.Drain = time.Minute
	}
	const most, maxSeconds = 100_000, 366 * 24 * 3600
	switch {
	case o.Protocol != Sender && o.Protocol != Agent:
		return o, fmt.Errorf("protocol is %q, expected sender or agent", o.Protocol)
	case o.Hosts < 1 || o.Hosts > most:
		return o, fmt.Errorf("hosts is %d, expected 1 to %d", o.Hosts, most)
	case o.Items < 1 || o.Items > most:
		return o, fmt.Errorf("items is %d, expected 1 to %d for each host", o.Items, most)
	case !(o.NVPS >= 0 && o.NVPS <= 1e8): // NaN neither
		return o, fmt.Errorf("nvps is %v, expected 0 to 100000000", o.NVPS)
	case o.NVPS == 0 && (o.IntervalMin < time.Millisecond || o.IntervalMax < o.IntervalMin):
		return o, fmt.Errorf("neither nvps nor an interval is given; expected --nvps above 0, such as --nvps 1000, or --interval, such as 4s-7s, at least 1ms")
	case !(o.Triggers >= 0 && o.Triggers <= 1):
		return o, fmt.Errorf("triggers is %v, expected 0 to 1 for each item", o.Triggers)
	case !(o.Strings >= 0 && o.Strings <= 1):
		return o, fmt.Errorf("strings is %v, expected 0 to 1 of the items", o.Strings)
	case !(o.Seconds >= 0 && o.Seconds <= maxSeconds):
		return o, fmt.Errorf("seconds is %v, expected 0 to %d, a year", o.Seconds, maxSeconds)
	}
	return o, nil
}

// HostName returns the technical name of host h, from 0: load-0001.
func HostName(h int) string { return fmt.Sprintf("load-%04d", h+1) }

// ItemKey returns the key of item i, from 0: load.item[1].
func ItemKey(i int) string { return fmt.Sprintf("load.item[%d]", i+1) }

// Report is what was sent and how the server took it.
type Report struct {
	// Sent values were answered; Processed and Failed are the server's counts.
	Sent      uint64  `json:"sent"`
	Processed uint64  `json:"processed"`
	Failed    uint64  `json:"failed"`
	Seconds   float64 `json:"seconds"`
	// NVPS is Processed per second: of runs of 3 s and more what was answered from the second tick, when all hosts send, until
	// values are made no more, so that neither the first nor the last round counts as time without values.
	NVPS      float64 `json:"nvps"`
	LatencyMS Latency `json:"latency_ms"`
	// CPUSeconds is what the load itself took.
	CPUSeconds float64 `json:"cpu_seconds"`

	// Start is the time of the first value. PerHost is how many values of each host were answered, in the order of
	// its Schedule; Retries how many requests were sent again.
	Start   time.Time `json:"-"`
	PerHost []uint64  `json:"-"`
	Retries uint64    `json:"-"`
}

// Latency is from the connect of a request to its answer, in milliseconds. The percentiles are at most 5 % too high.
type Latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// steadyFrom is the shortest run, in seconds, whose rate leaves out the rounds that begin and end it.
const steadyFrom = 3

// tally is what all hosts add to.
type tally struct {
	from, until time.Time // the steady part, empty in short and endless runs

	mu        sync.Mutex
	steady    uint64 // values processed in the steady part
	counts    zbx.Counts
	retries   uint64
	latencies histogram
}

func newTally(o *Options) *tally {
	t := &tally{}
	if o.Seconds >= steadyFrom && time.Since(o.Start) < tick { // values of the past are sent at once
		t.from, t.until = o.Start.Add(tick), o.Start.Add(time.Duration(o.Seconds*float64(time.Second)))
	}
	return t
}

// nvps is the rate of the steady part, or of all elapsed seconds where there is none.
func (t *tally) nvps(elapsed float64) float64 {
	if seconds := t.until.Sub(t.from).Seconds(); seconds > 0 && elapsed > seconds {
		return float64(t.steady) / seconds
	}
	return float64(t.counts.Processed) / elapsed
}

func (t *tally) add(c zbx.Counts, latency time.Duration) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.After(t.from) && now.Before(t.until) {
		t.steady += c.Processed
	}
	t.counts.Processed += c.Processed
	t.counts.Failed += c.Failed
	t.counts.Total += c.Total
	t.latencies.add(latency)
}

func (t *tally) retry() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retries++
}

// ErrUnfinished is returned with the report when the server did not take everything in time.
var ErrUnfinished = errors.New("not everything was sent before the time for sending out ended")

// Run sends values until o.Seconds are over or ctx ends, prints a line of progress each second, and reports. A request
// whose connection breaks is sent again, with the same times and ids, so that a restart of the server loses nothing.
func Run(ctx context.Context, o Options, progress io.Writer) (Report, error) {
	o, err := o.Check()
	if err != nil {
		return Report{}, err
	}
	cpu := cpuSeconds()
	started := time.Now()
	if o.Start.IsZero() {
		o.Start = started
	}
	t := newTally(&o)
	slots := make(chan struct{}, o.Connections)
	reporting, stop := context.WithCancel(context.Background())
	var reporter sync.WaitGroup
	reporter.Go(func() { t.print(reporting, progress, started) })

	hosts := make([]*host, o.Hosts)
	errs := make([]error, o.Hosts)
	var sending sync.WaitGroup
	for h := range hosts {
		hosts[h] = newHost(&o, h, t, slots)
		sending.Go(func() { errs[h] = hosts[h].run(ctx) })
	}
	sending.Wait()
	elapsed := time.Since(started).Seconds()
	stop()
	reporter.Wait()

	r := Report{
		Sent: t.counts.Total, Processed: t.counts.Processed, Failed: t.counts.Failed, Seconds: elapsed,
		NVPS: t.nvps(elapsed), LatencyMS: t.latencies.latency(), CPUSeconds: cpuSeconds() - cpu,
		Start: o.Start, Retries: t.retries,
	}
	for _, h := range hosts {
		r.PerHost = append(r.PerHost, h.answered)
	}
	return r, errors.Join(firstErrors(errs)...)
}

// firstErrors keeps the first three errors: a thousand hosts that cannot connect say all the same.
func firstErrors(errs []error) []error {
	var kept []error
	more := 0
	for _, err := range errs {
		switch {
		case err == nil:
		case len(kept) < 3:
			kept = append(kept, err)
		default:
			more++
		}
	}
	if more > 0 {
		kept = append(kept, fmt.Errorf("and %d more hosts", more))
	}
	return kept
}

// print writes a line each second until ctx ends.
func (t *tally) print(ctx context.Context, w io.Writer, started time.Time) {
	if w == nil {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		t.mu.Lock()
		c, retries, l := t.counts, t.retries, t.latencies.latency()
		t.mu.Unlock()
		// Progress that nobody reads must not end the run.
		_, _ = fmt.Fprintf(w, "%4.0f s: sent %d, processed %d, failed %d, %d values/s, p99 %.1f ms, %d retries\n",
			time.Since(started).Seconds(), c.Total, c.Processed, c.Failed, c.Processed-before, l.P99, retries)
		before = c.Processed
	}
}

// cpuSeconds is the processor time of this process so far.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
