package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// get asks for path with a query and returns the answer.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (answer T, err error) {
	err = c.Get(ctx, path, query, &answer)
	return answer, err
}

// change sends a body, none if it is nil, and returns the answer.
func change[T any](ctx context.Context, c *Client, method, path string, body any) (answer T, err error) {
	err = c.Call(ctx, method, path, body, &answer)
	return answer, err
}

// remove deletes what is at path.
func (c *Client) remove(ctx context.Context, path string) error {
	return c.Call(ctx, http.MethodDelete, path, nil, nil)
}

func setCount(query url.Values, name string, n int) {
	if n != 0 {
		query.Set(name, strconv.Itoa(n))
	}
}

func setFlag(query url.Values, name string, yes bool) {
	if yes {
		query.Set(name, "true")
	}
}

// Host returns one host with its macros, inventory and metadata.
func (c *Client) Host(ctx context.Context, id string) (Host, error) {
	return get[Host](ctx, c, "/api/hosts/"+url.PathEscape(id), nil)
}

// Graphs returns the graphs of a host's templates with the items that they have on it; name is that of the only one, empty for all.
func (c *Client) Graphs(ctx context.Context, hostID, name string) (GraphList, error) {
	query := url.Values{}
	setText(query, "name", name)
	return get[GraphList](ctx, c, "/api/hosts/"+url.PathEscape(hostID)+"/graphs", query)
}

// Interfaces returns the interfaces of a host and whether they answer.
func (c *Client) Interfaces(ctx context.Context, hostID string) (InterfaceList, error) {
	return get[InterfaceList](ctx, c, "/api/hosts/"+url.PathEscape(hostID)+"/interfaces", nil)
}

// WebScenarios returns the web scenarios of a host with the ids of the items that have their values.
func (c *Client) WebScenarios(ctx context.Context, hostID string) (WebScenarioList, error) {
	return get[WebScenarioList](ctx, c, "/api/hosts/"+url.PathEscape(hostID)+"/webscenarios", nil)
}

// HostTLS returns how the connections of a host are protected, without keys; host "0" stands for agents that register themselves. The caller must be
// an administrator.
func (c *Client) HostTLS(ctx context.Context, hostID string) (TLSSettings, error) {
	return get[TLSSettings](ctx, c, "/api/hosts/"+url.PathEscape(hostID)+"/tls", nil)
}

// SetHostTLS says how the connections of a host shall be protected. The caller must be an administrator.
func (c *Client) SetHostTLS(ctx context.Context, hostID string, settings TLSSettings) (TLSSettings, error) {
	return change[TLSSettings](ctx, c, http.MethodPut, "/api/hosts/"+url.PathEscape(hostID)+"/tls", settings)
}

// SetHostProxy assigns a host to a proxy by its name; an empty name is the server itself. The caller must be an editor of all hosts.
func (c *Client) SetHostProxy(ctx context.Context, hostID, proxy string) (HostProxy, error) {
	return change[HostProxy](ctx, c, http.MethodPut, "/api/hosts/"+url.PathEscape(hostID)+"/proxy", HostProxy{Proxy: proxy})
}

// Item returns one item with its preprocessing and how long its values are kept.
func (c *Client) Item(ctx context.Context, id string) (Item, error) {
	return get[Item](ctx, c, "/api/items/"+url.PathEscape(id), nil)
}

// Chart returns columns for drawing of at most 200 items: every value, or average, least and largest per step. A zero to is now; points are per series,
// 1 to 4,000, 0 for the server's choice of 500.
func (c *Client) Chart(ctx context.Context, itemIDs []string, from, to time.Time, points int) (Chart, error) {
	query := url.Values{"items": {strings.Join(itemIDs, ",")}}
	setTime(query, "from", from)
	setTime(query, "to", to)
	setCount(query, "points", points)
	return get[Chart](ctx, c, "/api/chart", query)
}

// States returns when which value held: equal values one after the other are one state. A zero to is now.
func (c *Client) States(ctx context.Context, itemIDs []string, from, to time.Time) (StateList, error) {
	query := url.Values{"items": {strings.Join(itemIDs, ",")}}
	setTime(query, "from", from)
	setTime(query, "to", to)
	return get[StateList](ctx, c, "/api/states", query)
}

// Search finds hosts, items, triggers and pages by a text of 1 to 200 bytes; limit is 1 to 100, 0 for the server's choice of 20.
func (c *Client) Search(ctx context.Context, text string, limit int) (SearchAnswer, error) {
	query := url.Values{"q": {text}}
	setCount(query, "limit", limit)
	return get[SearchAnswer](ctx, c, "/api/search", query)
}

// OverviewHour returns the numbers of the overview in the last hour, every 30 s, the oldest first.
func (c *Client) OverviewHour(ctx context.Context) (HourList, error) {
	return get[HourList](ctx, c, "/api/overview/hour", nil)
}

// Queue returns the items that are late, and how busy each kind of checks is.
func (c *Client) Queue(ctx context.Context) (Queue, error) {
	return get[Queue](ctx, c, "/api/queue", nil)
}

// CheckNow asks for an item of a host, or for all of them, at once. The caller must be an editor.
func (c *Client) CheckNow(ctx context.Context, r CheckRequest) (CheckAnswer, error) {
	return change[CheckAnswer](ctx, c, http.MethodPost, "/api/check-now", r)
}

// RunCommand runs a command for a host, within a minute, and returns what it printed. The caller must be an administrator, and the agent must allow it.
func (c *Client) RunCommand(ctx context.Context, r CommandRequest) (CommandAnswer, error) {
	return change[CommandAnswer](ctx, c, http.MethodPost, "/api/commands", r)
}

// ScrapeTargets returns the jobs of scrapes and how the last scrape of each target went.
func (c *Client) ScrapeTargets(ctx context.Context) (ScrapeTargets, error) {
	return get[ScrapeTargets](ctx, c, "/api/scrape/targets", nil)
}

// Proxies returns the proxies and how they are doing. The caller must be an administrator.
func (c *Client) Proxies(ctx context.Context) (ProxyList, error) {
	return get[ProxyList](ctx, c, "/api/proxies", nil)
}

// SetProxy makes a proxy known, or changes its description and TLS settings. The caller must be an administrator.
func (c *Client) SetProxy(ctx context.Context, p NewProxy) (Proxy, error) {
	return change[Proxy](ctx, c, http.MethodPost, "/api/proxies", p)
}

// DeleteProxy removes a proxy; the server asks its hosts itself then. The caller must be an administrator.
func (c *Client) DeleteProxy(ctx context.Context, name string) error {
	return c.remove(ctx, "/api/proxies/"+url.PathEscape(name))
}
