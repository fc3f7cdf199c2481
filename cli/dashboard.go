package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tidemark/dashboard"
)

// dashboardOptions are the flags of the commands about dashboards.
type dashboardOptions struct {
	remote
	replace bool
	out     string
}

// dashboardSteps is the server's answer to a plan and to an apply.
type dashboardSteps struct {
	Steps []dashboard.Step `json:"steps"`
}

func dashboardCommand() *cobra.Command {
	o := &dashboardOptions{}
	c := &cobra.Command{Use: "dashboard", Short: "List, export and apply dashboards"}
	o.add(c)
	list := &cobra.Command{Use: "list", Short: "Dashboards by name", Args: noArgs, RunE: func(c *cobra.Command, _ []string) error { return o.list(c) }}
	export := &cobra.Command{
		Use: "export [NAME…]", Short: "Write dashboards as YAML; all without names",
		Long:    "Write dashboards as YAML. Applying the file and exporting again gives the same bytes.",
		Example: "  tidemark dashboard export > dashboards.yaml",
		RunE:    func(c *cobra.Command, args []string) error { return o.export(c, args) },
	}
	export.Flags().StringVar(&o.out, "out", "", "write to this file instead of the standard output")
	plan := &cobra.Command{
		Use: "plan FILE", Short: "Say what applying a file would change, and change nothing", Args: someArgs(1, 1, "a file"),
		RunE: func(c *cobra.Command, args []string) error { return o.apply(c, args[0], true) },
	}
	apply := &cobra.Command{
		Use: "apply FILE", Short: "Save the dashboards of a file over those of the same name", Args: someArgs(1, 1, "a file"),
		Long: "Save the dashboards of a file over those of the same name, as new versions. Nothing is taken of a file that has a mistake.",
		RunE: func(c *cobra.Command, args []string) error { return o.apply(c, args[0], false) },
	}
	for _, sub := range []*cobra.Command{plan, apply} {
		sub.Flags().BoolVar(&o.replace, "replace", false, "delete every dashboard that is not in the file")
	}
	c.AddCommand(list, export, plan, apply)
	return c
}

func (o *dashboardOptions) list(c *cobra.Command) error {
	var answer struct {
		Dashboards []struct {
			ID, Name string
			Version  int
			SavedAt  int64  `json:"saved_at"`
			SavedBy  string `json:"saved_by"`
			Everyone bool
			Private  bool
			Groups   []string
			Owner    string
		}
	}
	text, err := o.call(c.Context(), http.MethodGet, "/api/dashboards", nil, &answer)
	if err != nil {
		return err
	}
	if o.asJSON {
		_, err := c.OutOrStdout().Write(append(text, '\n'))
		return err
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tVERSION\tSAVED\tBY\tOWNER\tSEEN BY")
	for _, d := range answer.Dashboards {
		seen := "who sees all hosts"
		switch {
		case d.Everyone:
			seen = "everyone"
		case d.Private:
			seen = "owner"
		}
		seen = strings.Join(append([]string{seen}, d.Groups...), ", ")
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", plainCell(d.Name), d.Version, localTime(d.SavedAt), plainCell(d.SavedBy), plainCell(d.Owner), plainCell(seen))
	}
	return w.Flush()
}

func (o *dashboardOptions) export(c *cobra.Command, names []string) error {
	path := "/api/dashboard-file"
	if len(names) > 0 {
		path += "?" + url.Values{"name": names}.Encode()
	}
	text, err := o.call(c.Context(), http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	if o.out != "" {
		return os.WriteFile(o.out, text, 0o644)
	}
	_, err = c.OutOrStdout().Write(text)
	return err
}

// readDashboards reads a file and finds its mistakes before the server does.
func readDashboards(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, dashboard.MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if _, err := dashboard.Parse(text); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

func (o *dashboardOptions) apply(c *cobra.Command, name string, plan bool) error {
	text, err := readDashboards(name)
	if err != nil {
		return err
	}
	method, path := http.MethodPut, "/api/dashboard-file"
	if plan {
		method, path = http.MethodPost, "/api/dashboard-file/plan"
	}
	if o.replace {
		path += "?replace=true"
	}
	var answer dashboardSteps
	sent, err := o.send(c.Context(), sending{method, path, "application/yaml", text}, &answer)
	if err != nil {
		return err
	}
	if o.asJSON {
		_, err := c.OutOrStdout().Write(append(sent, '\n'))
		return err
	}
	changes := 0
	for _, step := range answer.Steps {
		if step.What == "unchanged" {
			continue
		}
		changes++
		fmt.Fprintf(c.OutOrStdout(), "%s %s\n", step.What, plainCell(step.Name))
		for _, line := range step.Differences {
			fmt.Fprintf(c.OutOrStdout(), "  %s\n", plainCell(line))
		}
	}
	verb := "changed"
	if plan {
		verb = "would change"
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%d of %d dashboards %s\n", changes, len(answer.Steps), verb)
	return err
}
