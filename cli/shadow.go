package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
)

// shadowPlan is what the cutover does, as the API has it; Since is Unix seconds.
type shadowPlan struct {
	Since        int64    `json:"since"`
	Actions      []string `json:"actions"`
	Media        []string `json:"media"`
	Off          []string `json:"off"`
	Unable       []string `json:"unable"`
	OpenProblems int      `json:"open_problems"`
}

func shadowCommand() *cobra.Command {
	t := &target{}
	asJSON, yes := false, false
	c := &cobra.Command{
		Use: "shadow", Short: "Run beside a Zabbix server that alerts, compare both, and take over", Args: noArgs,
		Long: "In shadow mode no action of this server is in force: the Zabbix server beside it alerts, agents send to both. It begins with the first import of\n" +
			"actions (tidemark import zabbix) and ends with the cutover. See docs/user/from-zabbix.md.",
	}
	c.PersistentFlags().StringVar(&t.http, "http", "", "address of the running server (default "+defaultHTTP+")")
	c.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	cutover := &cobra.Command{
		Use: "cutover", Short: "Switch alerting on here: the actions and media types that wait for it", Args: noArgs,
		Long: "Ends shadow mode and switches on the actions and media types that were on in Zabbix. It says what it will do and asks twice; --yes asks nothing.\n" +
			"Switch Zabbix's actions off first, or people are told twice. Problems that are open already are told to nobody.",
		RunE: func(c *cobra.Command, _ []string) error { return runCutover(c, t, yes, asJSON) },
	}
	cutover.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.AddCommand(&cobra.Command{
		Use: "begin", Short: "Put all actions out of force until the cutover", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := t.call(c, http.MethodPost, "/api/shadow", nil, nil); err != nil {
				return err
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), "shadow mode is on: nobody is told of anything until 'tidemark shadow cutover'")
			return err
		},
	}, &cobra.Command{
		Use: "status", Short: "Say whether shadow mode is on, and what the cutover would do", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var plan shadowPlan
			if err := t.call(c, http.MethodGet, "/api/shadow/cutover", nil, &plan); err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(plan)
			}
			if plan.Since == 0 {
				fmt.Fprintln(c.OutOrStdout(), "shadow mode is off")
			} else {
				fmt.Fprintln(c.OutOrStdout(), "shadow mode is on since", time.Unix(plan.Since, 0).Format(time.DateTime))
			}
			return plan.print(c.OutOrStdout(), "would be switched on")
		},
	}, cutover, shadowReportCommand(t))
	return c
}

// print says what is switched on and what not.
func (p *shadowPlan) print(w io.Writer, on string) error {
	var b strings.Builder
	list := func(what string, names []string) {
		for _, name := range names {
			fmt.Fprintf(&b, "  %s %s\n", what, plainCell(name))
		}
	}
	if len(p.Actions)+len(p.Media) > 0 {
		fmt.Fprintf(&b, "%s:\n", on)
		list("action", p.Actions)
		list("media type", p.Media)
	}
	if len(p.Off) > 0 {
		b.WriteString("stays off, because it was off in Zabbix or was switched off here:\n")
		list("", p.Off)
	}
	if len(p.Unable) > 0 {
		b.WriteString("cannot send:\n")
		list("media type", p.Unable)
	}
	// With shadow mode off alerts go out as the actions say.
	if p.Since != 0 && p.OpenProblems > 0 {
		fmt.Fprintf(&b, "%d problems are open now; nobody is told of these here, neither that they began nor that they end\n", p.OpenProblems)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func runCutover(c *cobra.Command, t *target, yes, asJSON bool) error {
	var plan shadowPlan
	if err := t.call(c, http.MethodGet, "/api/shadow/cutover", nil, &plan); err != nil {
		return err
	}
	if plan.Since == 0 && len(plan.Actions)+len(plan.Media) == 0 {
		return fmt.Errorf("shadow mode is off and nothing waits for the cutover; alerting is as 'tidemark alert show' says")
	}
	if !yes {
		if f, ok := c.InOrStdin().(*os.File); !ok || !term.IsTerminal(f.Fd()) {
			return usagef("no terminal to ask on: give --yes")
		}
		if err := plan.print(c.ErrOrStderr(), "will be switched on"); err != nil {
			return err
		}
		answers := bufio.NewReader(io.LimitReader(c.InOrStdin(), 4096))
		for _, question := range []string{"Are Zabbix's actions switched off, so that nobody is told twice? (yes/no) ", "Alert from here on? (yes/no) "} {
			fmt.Fprint(c.ErrOrStderr(), question)
			line, _ := answers.ReadString('\n')
			if strings.TrimSpace(line) != "yes" {
				return fmt.Errorf("nothing was changed: the answer was not yes")
			}
		}
	}
	var done shadowPlan
	if err := t.call(c, http.MethodPost, "/api/shadow/cutover", nil, &done); err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(done)
	}
	fmt.Fprintln(c.OutOrStdout(), "shadow mode is over: this server alerts from now on")
	return done.print(c.OutOrStdout(), "switched on")
}
