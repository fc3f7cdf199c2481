package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/client"
)

// getOptions say what is listed, and how much of it.
type getOptions struct {
	remote
	host, search, group, severity, cursor string
	limit                                 int
	all                                   bool
	from, to                              string
	newest                                bool
}

func getCommand() *cobra.Command {
	o := &getOptions{}
	c := &cobra.Command{
		Use: "get", Short: "List problems, hosts, items or values of a running server",
		Long: "List what a running server has, as a table or with --json as the server's answer. Lists come in pages: --limit says how long one is, and\n" +
			"where it ends the next one begins with --cursor.",
	}
	o.add(c)
	c.PersistentFlags().IntVar(&o.limit, "limit", 100, "at most so many, 1 to 10,000")
	c.PersistentFlags().StringVar(&o.cursor, "cursor", "", "begin where the page before ended")
	problems := &cobra.Command{
		Use: "problems", Short: "Problems, the newest first; those that are open", Args: noArgs,
		Example: "  tidemark get problems --severity high,disaster --json",
		RunE:    func(c *cobra.Command, _ []string) error { return o.getProblems(c) },
	}
	problems.Flags().BoolVar(&o.all, "all", false, "those that are over too")
	problems.Flags().StringVar(&o.severity, "severity", "", "names of severities with commas between")
	hosts := &cobra.Command{Use: "hosts", Short: "Hosts by name", Args: noArgs, RunE: func(c *cobra.Command, _ []string) error { return o.getHosts(c) }}
	hosts.Flags().StringVar(&o.group, "group", "", "name of the only host group to list")
	items := &cobra.Command{Use: "items", Short: "Items with their last values", Args: noArgs, RunE: func(c *cobra.Command, _ []string) error { return o.getItems(c) }}
	values := &cobra.Command{
		Use: "values HOST KEY", Short: "Every stored value of an item, exactly as stored", Args: someArgs(2, 2, "a host and the key of an item"),
		Long:    "List every stored value of an item, the oldest first. --from and --to are times in RFC 3339 form, or how long ago, such as 1h; without them the last hour.",
		Example: "  tidemark get values db1 'system.cpu.load[all,avg1]' --from 10m\n  tidemark get values db1 agent.ping --newest --limit 1 --json",
		RunE:    func(c *cobra.Command, args []string) error { return o.getValues(c, args[0], args[1]) },
	}
	values.Flags().StringVar(&o.from, "from", "1h", "begin of the range, included")
	values.Flags().StringVar(&o.to, "to", "", "end of the range, not included (default now)")
	values.Flags().BoolVar(&o.newest, "newest", false, "the newest first")
	for _, sub := range []*cobra.Command{problems, items} {
		sub.Flags().StringVar(&o.host, "host", "", "technical name of the only host to list")
	}
	for _, sub := range []*cobra.Command{problems, hosts, items} {
		sub.Flags().StringVar(&o.search, "search", "", "a text that must occur, in any case of letters")
	}
	c.AddCommand(problems, hosts, items, values)
	return c
}

// list asks for a page and prints the server's answer, or has a table of it printed.
func (o *getOptions) list(c *cobra.Command, path string, query url.Values, into any, table func(io.Writer)) error {
	if o.limit < 1 || o.limit > 10_000 {
		return usagef("--limit %d: expected 1 to 10,000", o.limit)
	}
	query.Set("limit", strconv.Itoa(o.limit))
	for name, value := range map[string]string{"search": o.search, "cursor": o.cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	text, err := o.call(c.Context(), http.MethodGet, path+"?"+query.Encode(), nil, into)
	if err != nil {
		return err
	}
	if o.asJSON {
		_, err := c.OutOrStdout().Write(append(text, '\n'))
		return err
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	table(w)
	return w.Flush()
}

// more says how to have the next page.
func more(c *cobra.Command, next string) {
	if next != "" {
		fmt.Fprintf(c.ErrOrStderr(), "there is more: --cursor %s\n", plainCell(next))
	}
}

// hostFilter puts the id of the host that was named into a query.
func (o *getOptions) hostFilter(ctx context.Context, query url.Values) error {
	if o.host == "" {
		return nil
	}
	id, err := o.hostID(ctx, o.host)
	if err != nil {
		return err
	}
	query.Set("host", id)
	return nil
}

func localTime(millis int64) string {
	return time.UnixMilli(millis).Format("2006-01-02 15:04:05")
}

func (o *getOptions) getProblems(c *cobra.Command) error {
	filter := client.ProblemFilter{Open: !o.all}
	if o.severity != "" {
		filter.Severities = strings.Split(o.severity, ",")
	}
	query := filter.Query()
	if err := o.hostFilter(c.Context(), query); err != nil {
		return err
	}
	var list client.ProblemList
	return o.list(c, "/api/problems", query, &list, func(w io.Writer) {
		fmt.Fprintln(w, "ID\tSINCE\tUNTIL\tSEVERITY\tHOST\tPROBLEM\tSEEN")
		for _, p := range list.Problems {
			until, seen := "", ""
			if p.RecoveredAt != nil {
				until = localTime(*p.RecoveredAt)
			}
			if p.Acknowledged {
				seen = "yes"
			}
			switch {
			case p.Suppression == nil:
			case p.Suppression.Until == nil:
				seen = strings.TrimSpace(seen + " suppressed")
			default:
				seen = strings.TrimSpace(seen + " suppressed until " + localTime(*p.Suppression.Until))
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.EventID, localTime(p.At), until, p.Severity, plainCell(p.Host), plainCell(p.Name), seen)
		}
		more(c, list.Next)
	})
}

func (o *getOptions) getHosts(c *cobra.Command) error {
	var list client.HostList
	return o.list(c, "/api/hosts", client.HostFilter{Group: o.group}.Query(), &list, func(w io.Writer) {
		fmt.Fprintln(w, "HOST\tNAME\tSTATE\tPROBLEMS\tITEMS\tLAST SEEN")
		for _, h := range list.Hosts {
			state, seen := h.State, "never"
			if !h.Enabled {
				state = "disabled"
			}
			if h.LastSeen != nil {
				seen = localTime(*h.LastSeen)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\n", plainCell(h.Host), plainCell(h.Name), state, h.Problems, h.Items, seen)
		}
		more(c, list.Next)
	})
}

// shownReading is a value as tables have it; nil is none.
func shownReading(r *client.Reading) string {
	if r == nil {
		return ""
	}
	switch r.Value.Mapped {
	case "", r.Value.V:
		return plainCell(r.Value.V)
	}
	return plainCell(r.Value.Mapped + " (" + r.Value.V + ")")
}

func (o *getOptions) getItems(c *cobra.Command) error {
	query := client.ItemFilter{}.Query()
	if err := o.hostFilter(c.Context(), query); err != nil {
		return err
	}
	var list client.ItemList
	return o.list(c, "/api/items", query, &list, func(w io.Writer) {
		fmt.Fprintln(w, "ID\tHOST\tKEY\tLAST VALUE\tUNITS\tSTATE")
		for _, i := range list.Items {
			fmt.Fprintf(w, "%s\t%s\t%s\t%.60s\t%s\t%s\n", i.ID, plainCell(i.Host), plainCell(i.Key), shownReading(i.Last), plainCell(i.Units), plainCell(cmp.Or(i.Error, i.State)))
		}
		more(c, list.Next)
	})
}

// itemID finds an item by host and key.
func (o *getOptions) itemID(ctx context.Context, host, key string) (string, error) {
	c, err := newClient(ctx, o.http, nil)
	if err != nil {
		return "", err
	}
	i, err := c.ItemByKey(ctx, host, key)
	if errors.Is(err, client.ErrNoObject) {
		return "", fmt.Errorf("%w; 'tidemark get items --host HOST' lists them", err)
	}
	if err != nil {
		return "", toldBy(o.http, err)
	}
	return i.ID, nil
}

// parseMoment reads a time in RFC 3339 form, or how long ago.
func parseMoment(flag, text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, usagef("--%s %q: expected a time such as 2026-01-31T08:00:00Z, or how long ago, such as 90m", flag, text)
	}
	return at, nil
}

func (o *getOptions) getValues(c *cobra.Command, host, key string) error {
	now := time.Now()
	from, err := parseMoment("from", o.from, now)
	if err != nil {
		return err
	}
	filter := client.ValueFilter{From: from, Newest: o.newest}
	if o.to != "" {
		if filter.To, err = parseMoment("to", o.to, now); err != nil {
			return err
		}
	}
	id, err := o.itemID(c.Context(), host, key)
	if err != nil {
		return err
	}
	var list client.ValueList
	return o.list(c, "/api/values", filter.Query(id), &list, func(w io.Writer) {
		for _, v := range list.Values {
			fmt.Fprintf(w, "%s\t%s\n", time.UnixMilli(v.At).Format("2006-01-02 15:04:05.000"), shownReading(&v))
		}
		more(c, list.Next)
	})
}
