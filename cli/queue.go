package cli

import (
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

func queueCommand() *cobra.Command {
	r := &remote{}
	details := false
	c := &cobra.Command{
		Use: "queue", Short: "Show items that are late, and how busy each kind of checks is", Args: noArgs,
		Long: "Show how many items should have been asked for and were not yet, by type and by how late they are, and how much of the room for\n" +
			"checks is in use. With --details the items are listed, those that are late the longest first.",
		RunE: func(c *cobra.Command, _ []string) error { return showQueue(c, r, details) },
	}
	r.add(c)
	c.Flags().BoolVar(&details, "details", false, "list the items, at most 1,000")
	return c
}

func showQueue(c *cobra.Command, r *remote, details bool) error {
	var answer struct {
		Late  int
		Types []struct {
			Type   string
			Delays [6]int
		}
		Kinds []struct {
			Kind           string
			Limit, Waiting int
			InFlight       int     `json:"in_flight"`
			Busy           float64 `json:"busy_percent"`
		}
		Items []struct {
			Host, Key string
			DueAt     int64 `json:"due_at"`
		}
	}
	text, err := r.call(c.Context(), http.MethodGet, "/api/queue", nil, &answer)
	if err != nil {
		return err
	}
	if r.asJSON {
		_, err := c.OutOrStdout().Write(text)
		return err
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	if details {
		fmt.Fprintln(w, "LATE BY\tHOST\tKEY")
		for _, i := range answer.Items {
			fmt.Fprintf(w, "%s\t%s\t%s\n", time.Since(time.UnixMilli(i.DueAt)).Round(time.Second), plainCell(i.Host), plainCell(i.Key))
		}
		return w.Flush()
	}
	fmt.Fprintln(w, "TYPE\t5 s\t10 s\t30 s\t1 min\t5 min\tOVER 10 min")
	for _, t := range answer.Types {
		d := t.Delays
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", t.Type, d[0], d[1], d[2], d[3], d[4], d[5])
	}
	fmt.Fprintf(w, "\nlate by more than 6 s: %d\n\n", answer.Late)
	fmt.Fprintln(w, "CHECKS\tBUSY\tUNDER WAY\tAT MOST\tWAITING")
	for _, k := range answer.Kinds {
		fmt.Fprintf(w, "%s\t%.1f %%\t%d\t%d\t%d\n", k.Kind, k.Busy, k.InFlight, k.Limit, k.Waiting)
	}
	return w.Flush()
}

func checkCommand() *cobra.Command {
	r := &remote{}
	c := &cobra.Command{Use: "check", Short: "Ask for values at once"}
	r.add(c)
	c.AddCommand(&cobra.Command{
		Use: "now HOST [KEY]", Short: "Ask for an item of a host, or for all of them, at once",
		Long: "Ask for an item of a host at once, whatever its interval says; without KEY for all items of the host that the server or its proxy asks for. A\n" +
			"dependent item is had by asking for its master item.",
		Args: someArgs(1, 2, "a host and, if only one item is meant, its key"),
		RunE: func(c *cobra.Command, args []string) error { return checkNow(c, r, args) },
	})
	return c
}

func checkNow(c *cobra.Command, r *remote, args []string) error {
	body := map[string]string{"host": args[0]}
	if len(args) == 2 {
		body["key"] = args[1]
	}
	var answer checkAnswer
	text, err := r.call(c.Context(), http.MethodPost, "/api/check-now", body, &answer)
	if err != nil {
		return err
	}
	if r.asJSON {
		_, err := c.OutOrStdout().Write(text)
		return err
	}
	_, err = fmt.Fprint(c.OutOrStdout(), answer.String())
	return err
}

// checkAnswer says what is asked for at once.
type checkAnswer struct {
	Items        int
	Proxy        string
	ByServer     int      `json:"by_server"`
	NotAsked     int      `json:"not_asked"`
	NotAskedKeys []string `json:"not_asked_keys"`
}

// String implements fmt.Stringer; it ends with a line break.
func (a *checkAnswer) String() string {
	out := fmt.Sprintf("asked for %s now\n", counted(a.Items, "item"))
	if a.Proxy != "" {
		out = fmt.Sprintf("asked for %s by proxy %s within seconds", counted(a.Items-a.ByServer, "item"), plainCell(a.Proxy))
		if a.ByServer > 0 {
			out += fmt.Sprintf(", for %s by the server now", counted(a.ByServer, "item"))
		}
		out += "\n"
	}
	if a.NotAsked == 0 {
		return out
	}
	keys := make([]string, 0, len(a.NotAskedKeys)+1)
	for _, k := range a.NotAskedKeys {
		keys = append(keys, plainCell(k))
	}
	if len(keys) < a.NotAsked {
		keys = append(keys, "…")
	}
	return out + fmt.Sprintf("not asked for %s, whose values are sent, come of a scenario of a proxy, or which cannot be asked for in their state: %s\n",
		counted(a.NotAsked, "item"), strings.Join(keys, ", "))
}
