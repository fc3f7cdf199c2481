package cli

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/discovery/network"
	"tidemark/model"
)

func discoveryCommand() *cobra.Command {
	r := &remote{}
	c := &cobra.Command{
		Use: "discovery", Short: "Rules of network discovery, and actions on new hosts and agents",
		Long: "Rules say in which ranges of addresses hosts are looked for. Actions say what becomes of what they find, and of agents that register themselves.",
	}
	r.add(c)
	c.AddCommand(&cobra.Command{
		Use: "show", Short: "Print the rules and actions as JSON; secrets are hidden", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := r.call(c.Context(), http.MethodGet, "/api/network-discovery", nil, nil)
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}, applyDiscoveryCommand(r), &cobra.Command{
		Use: "remove KIND NAME", Short: "Remove a rule or an action", Example: "  tidemark discovery remove rule Office", Args: someArgs(2, 2, "rule or action, and a name"),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := r.call(c.Context(), http.MethodDelete, "/api/network-discovery/"+url.PathEscape(args[0])+"/"+url.PathEscape(args[1]), nil, nil)
			return said(c, r, err, text, "removed "+args[0]+" "+args[1])
		},
	}, &cobra.Command{
		Use: "status", Short: "Show how the work on each rule goes", Args: noArgs, RunE: func(c *cobra.Command, _ []string) error { return discoveryStatus(c, r) },
	}, &cobra.Command{
		Use: "hosts RULE", Short: "Show what a rule found", Args: someArgs(1, 1, "the name of a rule"),
		RunE: func(c *cobra.Command, args []string) error { return discoveredHosts(c, r, args[0]) },
	}, &cobra.Command{
		Use: "scan RULE", Short: "Have a rule look at once", Args: someArgs(1, 1, "the name of a rule"),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := r.call(c.Context(), http.MethodPost, "/api/network-discovery/scan", map[string]string{"rule": args[0]}, nil)
			return said(c, r, err, text, args[0]+" looks now; see 'tidemark discovery status'")
		},
	})
	return c
}

func applyDiscoveryCommand(r *remote) *cobra.Command {
	replace := false
	c := &cobra.Command{
		Use: "apply FILE", Short: "Put the rules and actions of a file over those of the same name", Args: someArgs(1, 1, "a file"),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := readBounded(args[0])
			if err != nil {
				return err
			}
			config, err := network.Parse(text)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			path := "/api/network-discovery"
			if replace {
				path += "?replace=true"
			}
			text, err = r.call(c.Context(), http.MethodPut, path, config, nil)
			return said(c, r, err, text, args[0]+" is in force")
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "delete the rules and actions that are not in the file")
	return c
}

func discoveryStatus(c *cobra.Command, r *remote) error {
	var list struct{ Rules []network.Status }
	text, err := r.call(c.Context(), http.MethodGet, "/api/network-discovery/status", nil, &list)
	if err != nil || r.asJSON {
		return said(c, r, err, text, "")
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tSTATE\tADDRESSES\tHOSTS\tUP\tLAST LOOK\tTOOK\tERROR")
	for _, s := range list.Rules {
		state, last, took := "waits", "-", fmt.Sprintf("%.1f s", s.LastSeconds)
		if s.LastAt == 0 {
			took = "-"
		}
		switch {
		case s.Disabled:
			state = "off"
		case s.Proxy != "":
			state, took = "by "+plainCell(s.Proxy), "-"
		case s.Running:
			state = fmt.Sprintf("looks, %d %%", 100*s.Done/max(1, s.Addresses))
		}
		if s.LastAt > 0 {
			last = time.Unix(s.LastAt, 0).Format(time.DateTime)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n", plainCell(s.Rule), state, s.Addresses, s.Hosts, s.Up, last, took, plainCell(s.Error))
	}
	return w.Flush()
}

// serviceCell shows a service with its address, and its port if it has one: a ping has none.
func serviceCell(s *model.NetService) string {
	if s.Port == 0 {
		return s.Check + " " + s.IP
	}
	return fmt.Sprintf("%s %s:%d", s.Check, s.IP, s.Port)
}

func discoveredHosts(c *cobra.Command, r *remote, rule string) error {
	var list struct {
		Hosts []struct {
			Ident, Host string
			Up          bool
			Services    []model.NetService
		}
		More int
	}
	text, err := r.call(c.Context(), http.MethodGet, "/api/network-discovery/hosts?"+url.Values{"rule": {rule}}.Encode(), nil, &list)
	if err != nil || r.asJSON {
		return said(c, r, err, text, "")
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FOUND\tSTATE\tHOST\tANSWERS")
	for _, h := range list.Hosts {
		state := "down"
		if h.Up {
			state = "up"
		}
		var answers []string
		for _, s := range h.Services {
			if s.Up {
				answers = append(answers, serviceCell(&s))
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", plainCell(h.Ident), state, plainCell(h.Host), plainCell(strings.Join(answers, ", ")))
	}
	if list.More > 0 {
		fmt.Fprintf(w, "%d more are not shown\n", list.More)
	}
	return w.Flush()
}
