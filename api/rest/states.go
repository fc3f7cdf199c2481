package rest

import (
	"context"
	"net/http"
	"slices"

	"tidemark/api"
	"tidemark/model"
)

const (
	maxStateItems = 20
	maxStates     = 1_000
	maxStateBytes = 200
)

func (a *API) stateRoutes() []api.Route {
	return []api.Route{{
		Method: http.MethodGet, Pattern: "/api/states", Permission: api.View, PerHost: true, Handler: a.handle((*API).listStates), Doc: &api.Doc{
			Summary: "When which value held: equal values one after the other become one state, with the text of the item's value map.", Answer: StateList{},
			Params: []api.Param{{Name: "items", Type: "string", About: "Ids with commas between, at most 20.", Required: true}, paramFrom, paramTo},
		},
	}}
}

func (a *API) listStates(r *http.Request) (any, error) {
	p := readParams(r)
	ids, span := p.items("items", maxStateItems), p.timeRange(a.options.Now().UnixNano())
	if p.err == nil && len(ids) == 0 {
		p.fail("items is missing, expected the ids of 1 to %d items", maxStateItems)
	}
	if p.err != nil {
		return nil, p.err
	}
	list := StateList{From: floorMillis(span.From), To: floorMillis(span.To), Items: []ItemStates{}}
	for _, id := range ids {
		if _, ok := a.options.Catalog.Item(id); !ok {
			continue
		}
		states, err := a.statesOf(r.Context(), id, span)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, states)
	}
	return list, nil
}

// statesOf reads from the newest value backwards, so that what is cut off is the past.
func (a *API) statesOf(ctx context.Context, id model.ItemID, span model.TimeRange) (ItemStates, error) {
	out := ItemStates{ID: formatID(id), States: []State{}}
	item, _ := a.options.Configuration().Item(id)
	begin := int64(0) // of the state that was read last
	for scanned := 0; span.From < span.To; {
		values, err := a.options.Querier.Values(ctx, id, span, maxLimit, true)
		if err != nil {
			return out, err
		}
		for i := range values {
			reading := formatReading(&values[i])
			if n := len(out.States); n > 0 && out.States[n-1].Value == cutText(reading.Value.V) {
				out.States[n-1].From, begin = reading.At, reading.At
				out.States[n-1].Count++
				continue
			}
			if len(out.States) == maxStates {
				out.Truncated = true
				break
			}
			mapReading(reading, item)
			state := State{From: reading.At, To: reading.At, Value: cutText(reading.Value.V), Mapped: reading.Value.Mapped, Count: 1}
			if len(out.States) > 0 {
				state.To = begin
			}
			begin = reading.At
			out.States = append(out.States, state)
		}
		if len(values) < maxLimit || out.Truncated {
			break
		}
		if scanned += len(values); scanned >= maxScanned {
			out.Truncated = true
			break
		}
		span.To = values[len(values)-1].At
	}
	slices.Reverse(out.States)
	return out, nil
}

func cutText(text string) string {
	if len(text) <= maxStateBytes {
		return text
	}
	end := maxStateBytes
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end] + "…"
}
