package preproc

import (
	"time"

	"tidemark/model"
)

// hostClock remembers that a host's values were dated ahead.
type hostClock struct {
	// aheadNanos is the largest distance since the last report.
	aheadNanos int64
	// seenAt is the last arrival of such a value, reportedAt the last report, both Unix nanoseconds.
	seenAt, reportedAt int64
}

const (
	// clockReportEvery spaces the reports of one host.
	clockReportEvery = 10 * time.Second
	// clockGoodAfter is how long a host must send no future value until it is reported right again.
	clockGoodAfter = time.Minute
	// maxClocks bounds the table; more hosts than this are counted but get no report.
	maxClocks = 100_000
)

// clockAhead notes that a value of the host was dated ahead by nanos at its arrival.
func (p *Processor) clockAhead(host model.HostID, nanos, arrivedAt int64) {
	p.clockMu.Lock()
	defer p.clockMu.Unlock()
	c, ok := p.clocks[host]
	if !ok && len(p.clocks) >= maxClocks {
		return
	}
	c.aheadNanos = max(c.aheadNanos, nanos)
	c.seenAt = arrivedAt
	p.clocks[host] = c
}

// reportClocks adds a row of the host's clock item to b when there is news for the host of item. A batch usually comes
// from one host, so looking at its last row's host is enough: the next batch brings the others.
func (p *Processor) reportClocks(b *model.Batch, item *model.Item) {
	if item == nil {
		return
	}
	p.clockMu.Lock()
	defer p.clockMu.Unlock()
	c, ok := p.clocks[item.HostID]
	if !ok || b.ArrivedAt-c.reportedAt < int64(clockReportEvery) {
		return
	}
	good := b.ArrivedAt-c.seenAt >= int64(clockGoodAfter)
	if c.aheadNanos == 0 && !good {
		return
	}
	if report, ok := p.items.ItemByKey(item.HostID, ClockKey); ok {
		seconds := float64(c.aheadNanos) / float64(time.Second)
		if good {
			seconds = 0
		}
		b.AppendFloat(report.ID, b.ArrivedAt, seconds)
	}
	if good {
		delete(p.clocks, item.HostID)
		return
	}
	c.aheadNanos, c.reportedAt = 0, b.ArrivedAt
	p.clocks[item.HostID] = c
}
