package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
)

// maxReportBytes bounds the report of an import.
const maxReportBytes = 16 << 20

// The structs below are a Zabbix 6.0 export in JSON, as far as the load needs one.
type export struct {
	Export exportBody `json:"zabbix_export"`
}

type exportBody struct {
	Version string        `json:"version"`
	Groups  []exportGroup `json:"groups"`
	Hosts   []exportHost  `json:"hosts"`
}

type exportGroup struct {
	UUID string `json:"uuid,omitempty"`
	Name string `json:"name"`
}

type exportHost struct {
	Host   string        `json:"host"`
	Name   string        `json:"name"`
	Groups []exportGroup `json:"groups"`
	Items  []exportItem  `json:"items"`
}

type exportItem struct {
	Name      string          `json:"name"`
	Type      string          `json:"type"`
	Key       string          `json:"key"`
	Delay     string          `json:"delay"`
	ValueType string          `json:"value_type"`
	Triggers  []exportTrigger `json:"triggers,omitempty"`
}

type exportTrigger struct {
	Expression string `json:"expression"`
	Name       string `json:"name"`
	Priority   string `json:"priority"`
}

// groupUUID is the uuid of the group that the hosts are in.
const groupUUID = "6f1d9c6e2b7a4c0e9d3f5a8b7c6d5e4f"

// Thresholds of the triggers; a walk is above lastLimit for about 2 % of the time.
const (
	lastLimit = 9800
	avgLimit  = 9700
)

// hostExport returns the export of host h with its items and triggers.
func hostExport(o *Options, h int) export {
	name := HostName(h)
	host := exportHost{Host: name, Name: name, Groups: []exportGroup{{Name: "Load"}}, Items: make([]exportItem, 0, o.Items)}
	triggers := 0
	for i := range o.Items {
		item := exportItem{Name: fmt.Sprintf("Load item %d", i+1), Type: "TRAP", Key: ItemKey(i), Delay: "0", ValueType: "FLOAT"}
		if o.Protocol == Agent {
			item.Type, item.Delay = "ZABBIX_ACTIVE", itemDelay(o)
		}
		text := IsString(i, o.Strings)
		if text {
			item.ValueType = "CHAR"
		}
		if math.Floor(float64(i+1)*o.Triggers) > math.Floor(float64(i)*o.Triggers) {
			item.Triggers = []exportTrigger{trigger(name, item.Key, triggers, text)}
			triggers++
		}
		host.Items = append(host.Items, item)
	}
	return export{exportBody{Version: "6.0", Groups: []exportGroup{{groupUUID, "Load"}}, Hosts: []exportHost{host}}}
}

// itemDelay is the interval that an active agent is told; the load keeps its own.
func itemDelay(o *Options) string {
	seconds := o.IntervalMin.Seconds()
	if o.NVPS > 0 {
		seconds = float64(o.Hosts) * float64(o.Items) / o.NVPS
	}
	return fmt.Sprintf("%ds", int(min(86_400, max(1, math.Round(seconds)))))
}

// trigger returns trigger number n of a host: two of three on the last value, the third on an average; of a text its last state.
func trigger(host, key string, n int, text bool) exportTrigger {
	if text {
		return exportTrigger{fmt.Sprintf(`last(/%s/%s)="state 9"`, host, key), key + " is in state 9", "INFO"}
	}
	if n%3 == 2 {
		return exportTrigger{fmt.Sprintf("avg(/%s/%s,5m)>%d", host, key, avgLimit), key + " is high on average", "WARNING"}
	}
	return exportTrigger{fmt.Sprintf("last(/%s/%s)>%d", host, key, lastLimit), key + " is high", "INFO"}
}

// importReport is what the server says of an import; see package confdb.
type importReport struct {
	Counts []struct {
		Kind    string `json:"kind"`
		Created int    `json:"created"`
		Updated int    `json:"updated"`
		Refused int    `json:"refused"`
	} `json:"counts"`
	Remarks []struct {
		Path   string `json:"path"`
		Reason string `json:"reason"`
	} `json:"remarks"`
}

// Provision creates the hosts, items and triggers that Run is going to feed, by importing one export per host through
// o.HTTP. Doing it again changes nothing. It prints a line of progress per 100 hosts and at the end, and fails when the
// server refuses anything.
func Provision(ctx context.Context, o Options, progress io.Writer) error {
	o, err := o.Check()
	if err != nil {
		return err
	}
	if progress == nil {
		progress = io.Discard
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var created, updated, done int
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(4, o.Hosts) {
		workers.Go(func() {
			for h := range next {
				r, err := postExport(ctx, &o, h)
				if err != nil {
					cancel(fmt.Errorf("provision host %s: %w", HostName(h), err))
					continue
				}
				mu.Lock()
				for _, c := range r.Counts {
					created, updated = created+c.Created, updated+c.Updated
				}
				if done++; done%100 == 0 || done == o.Hosts {
					_, _ = fmt.Fprintf(progress, "provisioned %d of %d hosts: %d objects created, %d updated\n", done, o.Hosts, created, updated)
				}
				mu.Unlock()
			}
		})
	}
feeding:
	for h := range o.Hosts {
		select {
		case next <- h:
		case <-ctx.Done():
			break feeding
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// postExport imports one host and checks the report.
func postExport(ctx context.Context, o *Options, h int) (importReport, error) {
	var report importReport
	body, err := json.Marshal(hostExport(o, h))
	if err != nil {
		return report, err
	}
	url := o.HTTP
	if !strings.Contains(url, "://") {
		url = "http://" + url
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(url, "/")+"/api/import", bytes.NewReader(body))
	if err != nil {
		return report, err
	}
	req.Header.Set("Content-Type", "application/json")
	if o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+o.Token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return report, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxReportBytes))
	if err != nil {
		return report, err
	}
	if resp.StatusCode != http.StatusOK {
		return report, fmt.Errorf("import: status %s: %.500s", resp.Status, answer)
	}
	if err := json.Unmarshal(answer, &report); err != nil {
		return report, fmt.Errorf("import: the answer is no report: %w", err)
	}
	return report, report.complaint()
}

// complaint returns what the server refused.
func (r *importReport) complaint() error {
	refused := 0
	for _, c := range r.Counts {
		refused += c.Refused
	}
	if refused == 0 && len(r.Counts) > 0 {
		return nil
	}
	if len(r.Remarks) > 0 {
		return fmt.Errorf("import: %d objects refused, first: %s: %s", refused, r.Remarks[0].Path, r.Remarks[0].Reason)
	}
	return fmt.Errorf("import: %d objects refused, %d kinds reported", refused, len(r.Counts))
}
