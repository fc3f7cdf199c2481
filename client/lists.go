package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Page says which part of a list is asked for.
type Page struct {
	// Limit is how many entries, 1 to MaxPage; 0 is the server's choice of 100.
	Limit int
	// Cursor is Next of the page before, with the same filter; empty for the first one.
	Cursor string
}

// set puts what is given into a query.
func (p Page) set(query url.Values) {
	setText(query, "cursor", p.Cursor)
	if p.Limit != 0 {
		query.Set("limit", strconv.Itoa(p.Limit))
	}
}

func setText(query url.Values, name, text string) {
	if text != "" {
		query.Set(name, text)
	}
}

func setTime(query url.Values, name string, at time.Time) {
	if !at.IsZero() {
		query.Set(name, strconv.FormatInt(at.UnixMilli(), 10))
	}
}

// HostFilter says which hosts are listed. Zero fields do not filter.
type HostFilter struct {
	// Search must be in the name or the technical name, in any case of letters.
	Search string
	// Group is the name of the only host group.
	Group string
	// Editable leaves out hosts that the caller may not change.
	Editable bool
}

// Query is the filter as the route /api/hosts takes it.
func (f HostFilter) Query() url.Values {
	query := url.Values{}
	setText(query, "search", f.Search)
	setText(query, "group", f.Group)
	if f.Editable {
		query.Set("editable", "true")
	}
	return query
}

// ItemFilter says which items are listed. Zero fields do not filter.
type ItemFilter struct {
	// HostID is the id of the only host; HostName, its technical name, is for callers that do not know the id.
	HostID, HostName string
	// Search must be in the name or the key, in any case of letters. Key is the only key.
	Search, Key string
	// Group is the name of the only host group.
	Group string
}

// Query is the filter as the route /api/items takes it.
func (f ItemFilter) Query() url.Values {
	query := url.Values{}
	for name, text := range map[string]string{"host": f.HostID, "host_name": f.HostName, "search": f.Search, "key": f.Key, "group": f.Group} {
		setText(query, name, text)
	}
	return query
}

// ProblemFilter says which problems are listed. Zero fields do not filter.
type ProblemFilter struct {
	// Open leaves out problems that are over.
	Open bool
	// HostID is the id of the only host.
	HostID string
	// Severities are the only ones: not_classified, information, warning, average, high, disaster.
	Severities []string
	// Search must be in the problem's name, in any case of letters.
	Search string
	// From and To bound the time of the beginning, From included and To not; with one of them the other must be set too.
	From, To time.Time
}

// Query is the filter as the route /api/problems takes it.
func (f ProblemFilter) Query() url.Values {
	query := url.Values{}
	if f.Open {
		query.Set("open", "true")
	}
	setText(query, "host", f.HostID)
	setText(query, "severity", strings.Join(f.Severities, ","))
	setText(query, "search", f.Search)
	setTime(query, "from", f.From)
	setTime(query, "to", f.To)
	return query
}

// ValueFilter says which values of an item are listed.
type ValueFilter struct {
	// From and To bound the times, From included and To not. A zero From is the server's choice of an hour before To, a zero To is now.
	From, To time.Time
	// Newest lists the newest first.
	Newest bool
	// Search must be in the text, in any case of letters: for items of texts and logs.
	Search string
}

// Query is the filter as the route /api/values takes it, for an item.
func (f ValueFilter) Query(itemID string) url.Values {
	query := url.Values{"item": {itemID}}
	setTime(query, "from", f.From)
	setTime(query, "to", f.To)
	setText(query, "search", f.Search)
	if f.Newest {
		query.Set("order", "desc")
	}
	return query
}

// page asks for one page of a list.
func page[T any](ctx context.Context, c *Client, path string, query url.Values, p Page) (list T, err error) {
	p.set(query)
	err = c.Get(ctx, path, query, &list)
	return list, err
}

// all walks a list to its end, page by page. An error ends it and comes with a zero entry.
func all[T any](next func(Page) (entries []T, cursor string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		p := Page{Limit: 1000}
		for {
			entries, cursor, err := next(p)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if cursor == p.Cursor && cursor != "" {
				var none T
				yield(none, fmt.Errorf("the server answered the page behind %q with the same one again", cursor))
				return
			}
			if cursor == "" {
				return
			}
			p.Cursor = cursor
		}
	}
}

// Hosts returns a page of the hosts that the caller may see, by name.
func (c *Client) Hosts(ctx context.Context, f HostFilter, p Page) (HostList, error) {
	return page[HostList](ctx, c, "/api/hosts", f.Query(), p)
}

// AllHosts walks all hosts that fit, page by page.
func (c *Client) AllHosts(ctx context.Context, f HostFilter) iter.Seq2[Host, error] {
	return all(func(p Page) ([]Host, string, error) {
		list, err := c.Hosts(ctx, f, p)
		return list.Hosts, list.Next, err
	})
}

// Items returns a page of items with their last values.
func (c *Client) Items(ctx context.Context, f ItemFilter, p Page) (ItemList, error) {
	return page[ItemList](ctx, c, "/api/items", f.Query(), p)
}

// AllItems walks all items that fit, page by page.
func (c *Client) AllItems(ctx context.Context, f ItemFilter) iter.Seq2[Item, error] {
	return all(func(p Page) ([]Item, string, error) {
		list, err := c.Items(ctx, f, p)
		return list.Items, list.Next, err
	})
}

// Problems returns a page of problems, the newest first.
func (c *Client) Problems(ctx context.Context, f ProblemFilter, p Page) (ProblemList, error) {
	return page[ProblemList](ctx, c, "/api/problems", f.Query(), p)
}

// AllProblems walks all problems that fit, page by page, the newest first.
func (c *Client) AllProblems(ctx context.Context, f ProblemFilter) iter.Seq2[Problem, error] {
	return all(func(p Page) ([]Problem, string, error) {
		list, err := c.Problems(ctx, f, p)
		return list.Problems, list.Next, err
	})
}

// Values returns a page of an item's values exactly as they are stored, the oldest first unless the filter says otherwise.
func (c *Client) Values(ctx context.Context, itemID string, f ValueFilter, p Page) (ValueList, error) {
	return page[ValueList](ctx, c, "/api/values", f.Query(itemID), p)
}

// AllValues walks all values of an item that fit, page by page. A filter without bounds is walked up to the moment of the call.
func (c *Client) AllValues(ctx context.Context, itemID string, f ValueFilter) iter.Seq2[Reading, error] {
	if f.To.IsZero() { // a range that moves would have no end
		f.To = time.Now()
	}
	if f.From.IsZero() {
		f.From = f.To.Add(-time.Hour)
	}
	return all(func(p Page) ([]Reading, string, error) {
		list, err := c.Values(ctx, itemID, f, p)
		return list.Values, list.Next, err
	})
}

// ErrNoObject says that no host or item has the name that was looked for.
var ErrNoObject = errors.New("no such object")

// HostByName finds a host by its technical name, ErrNoObject when there is none that the caller may see.
func (c *Client) HostByName(ctx context.Context, name string) (Host, error) {
	for h, err := range c.AllHosts(ctx, HostFilter{Search: name}) {
		if err != nil {
			return h, err
		}
		if h.Host == name {
			return h, nil
		}
	}
	return Host{}, fmt.Errorf("the server has no host with the name %q: %w", name, ErrNoObject)
}

// ItemByKey finds an item of a host, by its technical name, and the key; ErrNoObject when there is none that the caller may see.
func (c *Client) ItemByKey(ctx context.Context, host, key string) (Item, error) {
	h, err := c.HostByName(ctx, host)
	if err != nil {
		return Item{}, err
	}
	for i, err := range c.AllItems(ctx, ItemFilter{HostID: h.ID, Search: key}) {
		if err != nil || i.Key == key {
			return i, err
		}
	}
	return Item{}, fmt.Errorf("host %q has no item with the key %q: %w", host, key, ErrNoObject)
}

// Acknowledge says of a problem that somebody has seen it; the message, of at most 2048 bytes, may be empty. The caller needs the role operator.
func (c *Client) Acknowledge(ctx context.Context, eventID, message string) error {
	yes := true
	_, err := c.UpdateProblems(ctx, ProblemsUpdate{EventIDs: []string{eventID}, Acknowledge: &yes, Message: message})
	return err
}

// UpdateProblems changes problems and returns the ids of those that it changed. The caller needs the role operator.
func (c *Client) UpdateProblems(ctx context.Context, u ProblemsUpdate) (changed []string, err error) {
	var answer ProblemsUpdated
	err = c.Call(ctx, http.MethodPost, "/api/problem-updates", u, &answer)
	return answer.EventIDs, err
}

// Overview returns the state of everything at a glance.
func (c *Client) Overview(ctx context.Context) (o Overview, err error) {
	err = c.Get(ctx, "/api/overview", nil, &o)
	return o, err
}
