package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"tidemark/discovery"
	"tidemark/discovery/network"
	"tidemark/expr"
	"tidemark/wire/proxyconfig"
	"tidemark/wire/zbx"
)

// maxFinds bounds the rows of network discovery that wait for the server. While there are more, looks wait.
const maxFinds = 100_000

// finds are what network discovery found and the server does not know yet. They are kept in memory: each look tells everything anew. It
// implements network.Reporter.
type finds struct {
	mu   sync.Mutex
	rows []zbx.ProxyFind
	// freed is closed when there is room again.
	freed chan struct{}
}

func (f *finds) measure(set *metrics.Set) {
	set.NewGauge("tidemark_proxy_finds", func() float64 { f.mu.Lock(); defer f.mu.Unlock(); return float64(len(f.rows)) })
	set.NewGauge("tidemark_proxy_finds_limit", func() float64 { return maxFinds })
}

// Report implements network.Reporter. Rules and checks have the server's numbers as names.
func (f *finds) Report(ctx context.Context, l *network.Look) error {
	rows, err := findRows(l)
	if err != nil {
		return err
	}
	for {
		f.mu.Lock()
		if len(f.rows) == 0 || len(f.rows)+len(rows) <= maxFinds {
			f.rows = append(f.rows, rows...)
			f.mu.Unlock()
			return nil
		}
		if f.freed == nil {
			f.freed = make(chan struct{})
		}
		freed := f.freed
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-freed:
		}
	}
}

// findRows are the rows of one address: one for each answer, and the one that ends it.
func findRows(l *network.Look) ([]zbx.ProxyFind, error) {
	rule, err := strconv.ParseUint(l.Rule, 10, 63)
	if err != nil {
		return nil, fmt.Errorf("rule %q has no number", l.Rule)
	}
	end := zbx.ProxyFind{At: l.At.Unix(), Rule: rule, IP: l.Address.String(), DNS: l.DNS, Down: !l.Up()}
	rows := make([]zbx.ProxyFind, 0, len(l.Answers)+1)
	for _, a := range l.Answers {
		row := end
		if row.Check, err = strconv.ParseUint(a.Check, 10, 63); err != nil {
			return nil, fmt.Errorf("check %q has no number", a.Check)
		}
		row.Port, row.Value, row.Down = a.Port, a.Value, !a.Up
		rows = append(rows, row)
	}
	return append(rows, end), nil
}

// waiting returns the first rows, at most limit, cut behind an address where that is possible.
func (f *finds) waiting(limit int) []zbx.ProxyFind {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(limit, len(f.rows))
	for end := n; end > 0 && n < len(f.rows); end-- {
		if f.rows[end-1].Check == 0 {
			n = end
			break
		}
	}
	return f.rows[:n:n]
}

// told drops the first rows, which the server has.
func (f *finds) told(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows = f.rows[n:]; len(f.rows) == 0 {
		f.rows = nil
	}
	if n > 0 && f.freed != nil {
		close(f.freed)
		f.freed = nil
	}
}

// minLook is the least time from one look to the next.
const minLook = 10 * time.Second

// networkRules turns the rules that the server gave into those of the scanner. One that cannot be worked off is left out and logged.
func networkRules(list []proxyconfig.Rule, expand func(string) string, logger *slog.Logger) []network.Rule {
	var rules []network.Rule
	for i := range list {
		r := &list[i]
		every, ok := expr.ParseDuration(expand(r.Delay), false)
		if !ok {
			logger.Warn("a rule of network discovery is not worked off", "rule", r.Name, "error", fmt.Sprintf("its interval %q cannot be read", r.Delay))
			continue
		}
		out := network.Rule{Name: strconv.FormatUint(r.ID, 10), Ranges: r.Ranges, Delay: max(every, minLook).String()}
		for n := range r.Checks {
			k := &r.Checks[n]
			out.Checks = append(out.Checks, network.Check{Name: strconv.FormatUint(k.ID, 10), Type: k.Type, Key: expand(k.Key), Ports: k.Ports, SNMP: discovery.SNMPOf(k.SNMP)})
			if k.Type != "agent" && k.Type != "snmp" {
				out.Checks[n].Key = ""
			}
		}
		if err := network.CheckRules([]network.Rule{out}); err != nil {
			logger.Warn("a rule of network discovery is not worked off", "rule", r.Name, "error", err)
			continue
		}
		rules = append(rules, out)
	}
	return rules
}
