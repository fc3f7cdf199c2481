package rest

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tidemark/model"
	"tidemark/query"
)

// maxScanned bounds the values that one request with a filter looks at; the next page goes on from there.
const maxScanned = 100_000

// valueRequest is what is asked for of one item.
type valueRequest struct {
	limit      int
	span       model.TimeRange
	descending bool
	search     string
	level      int
}

// levels are the words for how bad a line of a log is, from harmless to bad.
var levels = []string{"debug", "information", "warning", "error"}

var (
	errorWords   = regexp.MustCompile(`(?i)\b(fatal|crit|critical|emerg|emergency|panic|alert|err|error|errors|fail|failed|failure|severe|exception)\b`)
	warningWords = regexp.MustCompile(`(?i)\b(warn|warning|deprecated)\b`)
	debugWords   = regexp.MustCompile(`(?i)\b(debug|trace|verbose)\b`)
)

// levelBytes is how much of a line is looked at for words.
const levelBytes = 400

// levelOf is how bad a line of a log is: by the severity of a Windows event, which is Zabbix's number, else by its first words.
func levelOf(text string, severity uint32) int {
	switch severity {
	case 2, 7:
		return 2
	case 4, 9:
		return 3
	case 1, 8:
		return 1
	case 10:
		return 0
	}
	head := text[:min(len(text), levelBytes)]
	switch {
	case errorWords.MatchString(head):
		return 3
	case warningWords.MatchString(head):
		return 2
	case debugWords.MatchString(head):
		return 0
	}
	return 1
}

// levelOfValue is the level of a log line or a text, nothing for other values.
func levelOfValue(v *Value) (level int, ok bool) {
	switch {
	case v.Log != nil:
		return levelOf(v.V, v.Log.Severity), true
	case v.T == model.Text.String() || v.T == model.LogEntry.String():
		return levelOf(v.V, 0), true
	}
	return 0, false
}

func readValueRequest(p *params, now int64) valueRequest {
	q := valueRequest{limit: p.limit(), span: p.timeRange(now), search: strings.ToLower(p.text("search"))}
	order := p.text("order")
	if order != "" && order != "asc" && order != "desc" {
		p.fail("order is %.40q, expected asc or desc", order)
	}
	q.descending = order == "desc"
	if word := p.values.Get("level"); word != "" {
		if q.level = slices.Index(levels, word); q.level < 0 {
			p.fail("level is %.40q, expected debug, information, warning or error", word)
		}
	}
	if after := p.cursor("value", 1); after != nil {
		at, err := strconv.ParseInt(after[0], 10, 64)
		switch {
		case err != nil:
			p.fail("cursor does not hold a time")
		case q.descending:
			q.span.To = min(q.span.To, at)
		default:
			q.span.From = max(q.span.From, at+1)
		}
	}
	return q
}

func (a *API) listValues(r *http.Request) (any, error) {
	p := readParams(r)
	request := readValueRequest(p, a.options.Now().UnixNano())
	if p.err != nil {
		return nil, p.err
	}
	e, err := a.entry("item", p.text("item"))
	if err != nil {
		return nil, err
	}
	items, err := a.formatItems(r.Context(), []model.Entry{e})
	if err != nil {
		return nil, err
	}
	values, next, err := a.findValues(r.Context(), e.ID, request)
	if err != nil {
		return nil, err
	}
	mapped, _ := a.options.Configuration().Item(e.ID)
	list := ValueList{Item: items[0], Values: make([]Reading, 0, len(values))}
	if next != 0 {
		list.Next = encodeCursor("value", strconv.FormatInt(next, 10))
	}
	for i := range values {
		reading := formatReading(&values[i])
		mapReading(reading, mapped)
		if level, ok := levelOfValue(&reading.Value); ok {
			reading.Value.Level = levels[level]
		}
		list.Values = append(list.Values, *reading)
	}
	return list, nil
}

// findValues returns a page of values and the time that the next one goes on from, zero for the end. With a filter a page may be shorter than
// its limit and not be the last.
func (a *API) findValues(ctx context.Context, item model.ItemID, q valueRequest) (found []query.Value, next int64, err error) {
	filtered := q.search != "" || q.level > 0
	page := q.limit + 1
	if filtered {
		page = maxLimit
	}
	for scanned := 0; q.span.From < q.span.To; {
		values, err := a.options.Querier.Values(ctx, item, q.span, page, q.descending)
		if err != nil {
			return nil, 0, err
		}
		for i := range values {
			if len(found) == q.limit {
				return found, found[q.limit-1].At, nil
			}
			if !filtered || q.takes(&values[i]) {
				found = append(found, values[i])
			}
		}
		if scanned += len(values); len(values) < page {
			return found, 0, nil
		}
		last := values[len(values)-1].At
		if scanned >= maxScanned {
			return found, last, nil
		}
		if q.descending {
			q.span.To = last
		} else {
			q.span.From = last + 1
		}
	}
	return found, 0, nil
}

// takes reports whether a value fits the filter.
func (q *valueRequest) takes(v *query.Value) bool {
	shown := formatValue(v)
	if level, ok := levelOfValue(&shown); q.level > 0 && (!ok || level < q.level) {
		return false
	}
	return q.search == "" || strings.Contains(strings.ToLower(shown.V), q.search)
}
