package rest

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"tidemark/api"
	"tidemark/catalog"
	"tidemark/model"
	"tidemark/query"
)

// formatItems gives entries their form, with last values.
func (a *API) formatItems(ctx context.Context, entries []model.Entry) ([]Item, error) {
	ids := make([]model.ItemID, len(entries))
	for i := range entries {
		ids[i] = entries[i].ID
	}
	values, err := a.options.Latest.Get(ctx, ids)
	if err != nil {
		return nil, err
	}
	configuration := a.options.Configuration()
	items := make([]Item, len(entries))
	for i := range entries {
		items[i] = a.formatItem(&entries[i], &values[i], configuration)
	}
	return items, nil
}

func (a *API) formatItem(e *model.Entry, v *query.LastValues, configuration Configuration) Item {
	item := Item{
		ID: formatID(e.ID), HostID: formatID(e.HostID), Host: e.Host, Key: e.Key, Name: e.Name, ValueType: e.ValueType.String(),
		Units: e.Units, Kind: "declared", Labels: labelMap(a.options.Catalog.OwnLabels(e.ID)),
		IntervalMS: e.Interval.Milliseconds(), Enabled: true, State: "ok",
		Last: formatReading(v.Last), Previous: formatReading(v.Previous),
	}
	if item.Name == "" {
		item.Name = e.Key
	}
	if v.Reason != "" {
		item.State, item.Error = "unsupported", v.Reason
	}
	if e.Kind == model.Configured {
		item.Kind = "configured"
		if c, ok := configuration.Item(e.ID); ok {
			item.Enabled, item.DiscoveredBy = c.Enabled, optionalID(c.DiscoveredBy)
			mapReading(item.Last, c)
			mapReading(item.Previous, c)
		}
	}
	return item
}

func (a *API) listItems(r *http.Request) (any, error) {
	p := readParams(r)
	limit := p.limit()
	filter := catalog.Filter{Host: p.host(), Text: p.text("search"), Limit: limit + 1, After: model.ItemID(p.cursorID("item"))}
	named := itemNames{host: p.text("host_name"), group: p.text("group"), key: p.values.Get("key")}
	if len(named.key) > maxKeyBytes {
		p.fail("key has %d bytes, expected at most %d", len(named.key), maxKeyBytes)
	}
	if p.err != nil {
		return nil, p.err
	}
	var entries []model.Entry
	var list ItemList
	if named == (itemNames{}) {
		entries, list.Total = a.options.Catalog.Search(filter)
	} else {
		entries, list.Total = a.namedItems(named, filter)
	}
	if len(entries) > limit {
		entries = entries[:limit]
		list.Next = encodeCursor("item", formatID(entries[limit-1].ID))
	}
	var err error
	list.Items, err = a.formatItems(r.Context(), entries)
	return list, err
}

// entry finds an item by the text of its id.
func (a *API) entry(what, text string) (model.Entry, error) {
	id, err := parseID(what, text)
	if err != nil {
		return model.Entry{}, err
	}
	e, ok := a.options.Catalog.Item(model.ItemID(id))
	if !ok {
		return e, api.NotFound(fmt.Sprintf("there is no item with id %d", id))
	}
	return e, nil
}

func (a *API) getItem(r *http.Request) (any, error) {
	e, err := a.entry("the item's id", r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	items, err := a.formatItems(r.Context(), []model.Entry{e})
	if err != nil {
		return nil, err
	}
	item := items[0]
	item.Description = &e.Help
	if c, ok := a.options.Configuration().Item(e.ID); ok {
		item.Description = &c.Description
		history, trends := c.History.Hours()/24, c.Trends.Hours()/24
		item.HistoryDays, item.TrendsDays = &history, &trends
		for _, s := range c.Steps {
			item.Steps = append(item.Steps, Step{Type: int(s.Type), Params: append([]string{}, s.Params...), OnFail: int(s.OnFail), FailValue: s.FailValue})
		}
	}
	return item, nil
}

// defaultPoints is what a chart of medium width can show.
const defaultPoints = 500

func (a *API) getChart(r *http.Request) (any, error) {
	p := readParams(r)
	now := a.options.Now().UnixNano()
	request := query.ChartRequest{Items: p.items("items", query.MaxChartItems), Points: int(p.number("points", defaultPoints, 1, query.MaxChartPoints))}
	if p.values.Get("from") == "" {
		p.values.Set("from", strconv.FormatInt(floorMillis(now-int64(time.Hour)), 10))
	}
	request.Range = p.timeRange(now)
	if p.err == nil && len(request.Items) == 0 {
		p.fail("items is missing, expected the ids of 1 to %d items", query.MaxChartItems)
	}
	if p.err != nil {
		return nil, p.err
	}
	chart, err := a.options.Querier.Chart(r.Context(), request)
	if err != nil {
		return nil, err
	}
	return formatChart(chart), nil
}

func formatChart(chart *query.Chart) Chart {
	out := Chart{
		From: floorMillis(chart.Range.From), To: floorMillis(chart.Range.To),
		StepMS: float64(chart.StepNanos) / 1e6, Series: make([]ChartSeries, 0, len(chart.Series)),
	}
	for i := range chart.Series {
		s := &chart.Series[i]
		series := ChartSeries{
			ID: formatID(s.Entry.ID), Host: s.Entry.Host, Key: s.Entry.Key, Name: s.Entry.Name, Units: s.Units, Labels: labelMap(s.Labels),
			ValueType: s.Entry.ValueType.String(), Source: "history", Rate: s.Rate, At: make([]int64, len(s.At)),
			Avg: append(Numbers{}, s.Avg...),
		}
		if series.Name == "" {
			series.Name = s.Entry.Key
		}
		if s.Trends {
			series.Source = "trends"
		}
		if s.Gathered {
			series.Min, series.Max = s.Min, s.Max
		}
		for n, at := range s.At {
			series.At[n] = floorMillis(at)
		}
		out.Series = append(out.Series, series)
	}
	return out
}
