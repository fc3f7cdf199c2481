package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/model"
	"tidemark/storage"
	"tidemark/zabbixdb"
)

// shadowDifference is a problem that both servers do not see alike.
type shadowDifference struct {
	Kind string `json:"kind"`
	zabbixdb.Problem
	HereBegan int64  `json:"here_began,omitempty"`
	HereEnded int64  `json:"here_ended,omitempty"`
	Reason    string `json:"reason"`
}

// shadowItem is an item whose hours differ.
type shadowItem struct {
	Host         string `json:"host"`
	Key          string `json:"key"`
	Hours        int    `json:"hours"`
	MissingHere  int    `json:"missing_here"`
	MissingThere int    `json:"missing_in_zabbix"`
	OtherCount   int    `json:"other_count"`
	OtherValues  int    `json:"other_values"`
	Reason       string `json:"reason"`
}

// shadowReport is how alike both servers are.
type shadowReport struct {
	From         string             `json:"from"`
	To           string             `json:"to"`
	Same         int                `json:"same_problems"`
	Problems     []shadowDifference `json:"problems"`
	SameItems    int                `json:"same_items"`
	EmptyItems   int                `json:"empty_items"`
	MissingItems int                `json:"missing_items"`
	Hours        int                `json:"hours"`
	Items        []shadowItem       `json:"items"`
	// Days count problems by the day on which they began.
	Days []shadowDay `json:"days"`
}

type shadowDay struct {
	Day        string `json:"day"`
	Same       int    `json:"same"`
	Other      int    `json:"other"`
	OnlyZabbix int    `json:"only_zabbix"`
	OnlyHere   int    `json:"only_here"`
}

type reportFlags struct {
	zabbixFlags
	target    *target
	since     time.Duration
	tolerance time.Duration
	problems  bool
}

// maxShadowLines bounds each list on a terminal; --json has all.
const maxShadowLines = 40

func shadowReportCommand(t *target) *cobra.Command {
	f := &reportFlags{target: t}
	c := &cobra.Command{
		Use: "report --dsn postgres://…|mysql://…", Short: "Compare problems and trends of both servers, and name each difference with its likely reason",
		Long: "Reads what Zabbix saw out of its database, which is only read, and compares it with what was seen here: problems of triggers by host and trigger, and\n" +
			"the whole hours of numeric items by count and range of values. Ask again as time goes on, with --since as long as shadow mode lasts.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runShadowReport(c, f) },
	}
	c.Flags().StringVar(&f.dsn, "dsn", "", "address of Zabbix's database: postgres://user:password@host:port/database or mysql://user:password@host:port/database")
	c.Flags().StringVar(&f.dsnFile, "dsn-file", "", "file whose first line is the address, so that the password is not seen in the list of processes")
	c.Flags().DurationVar(&f.since, "since", 24*time.Hour, "how far back")
	c.Flags().DurationVar(&f.tolerance, "tolerance", 2*time.Minute, "by how much the times of one problem may differ")
	c.Flags().BoolVar(&f.problems, "problems-only", false, "leave trends out")
	return c
}

func runShadowReport(c *cobra.Command, f *reportFlags) (err error) {
	dsn, err := f.address()
	if err != nil {
		return err
	}
	if f.since < time.Minute || f.tolerance < 0 {
		return usagef("--since %s --tolerance %s: expected at least a minute and not less than none", f.since, f.tolerance)
	}
	f.asJSON, _ = c.Flags().GetBool("json")
	ctx := c.Context()
	source, err := zabbixdb.Open(ctx, dsn)
	if err != nil {
		return fmt.Errorf("shadow report: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	to := time.Now().Add(-f.tolerance)
	r := model.TimeRange{From: to.Add(-f.since).UnixNano(), To: to.UnixNano()}
	report := &shadowReport{
		From: time.Unix(0, r.From).Format(time.RFC3339), To: time.Unix(0, r.To).Format(time.RFC3339), Problems: []shadowDifference{}, Items: []shadowItem{}, Days: []shadowDay{},
	}
	if err := f.compareProblems(c, source, r, report); err != nil {
		return fmt.Errorf("shadow report: %w", err)
	}
	if !f.problems {
		if err := f.compareTrends(c, source, dsn, r, report); err != nil {
			return fmt.Errorf("shadow report: %w", err)
		}
	}
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(report)
	}
	return report.print(c.OutOrStdout())
}

// compare asks the server.
func (f *reportFlags) compare(c *cobra.Command, r model.TimeRange, body map[string]any) (*shadowReport, error) {
	body["from"], body["to"], body["tolerance"] = r.From, r.To, int64(f.tolerance)
	part := &shadowReport{}
	return part, f.target.call(c, http.MethodPost, "/api/shadow/compare", body, part)
}

func (f *reportFlags) compareProblems(c *cobra.Command, source *zabbixdb.Source, r model.TimeRange, report *shadowReport) error {
	// Those from before the range too, which may be the partners of problems at its begin.
	problems, err := source.Problems(c.Context(), r)
	if err != nil {
		return err
	}
	if problems == nil {
		problems = []zabbixdb.Problem{}
	}
	part, err := f.compare(c, r, map[string]any{"problems": problems})
	if err != nil {
		return err
	}
	report.Same, report.Problems = part.Same, part.Problems
	if err := explain(c.Context(), source, report.Problems); err != nil {
		return err
	}
	report.Days = daysOf(problems, report.Problems)
	return nil
}

// explain asks Zabbix why it was quiet where a problem is only here.
func explain(ctx context.Context, source *zabbixdb.Source, list []shadowDifference) error {
	type name struct{ host, trigger string }
	known := make(map[name]string)
	for i := range list {
		d := &list[i]
		if d.Kind != "only_here" {
			continue
		}
		n := name{d.Host, d.Trigger}
		if known[n] == "" {
			reason, err := source.WhyQuiet(ctx, d.Host, d.Trigger)
			if err != nil {
				return err
			}
			known[n] = reason
		}
		d.Reason = known[n]
	}
	return nil
}

// daysOf counts by day; all are Zabbix's problems.
func daysOf(all []zabbixdb.Problem, differences []shadowDifference) []shadowDay {
	byDay := make(map[string]*shadowDay)
	day := func(at int64) *shadowDay {
		name := time.Unix(0, at).Format(time.DateOnly)
		if byDay[name] == nil {
			byDay[name] = &shadowDay{Day: name}
		}
		return byDay[name]
	}
	for i := range all {
		day(all[i].Began).Same++
	}
	for i := range differences {
		d := day(differences[i].Began)
		switch differences[i].Kind {
		case "only_here":
			d.OnlyHere++
			continue
		case "only_zabbix":
			d.OnlyZabbix++
		default:
			d.Other++
		}
		d.Same--
	}
	list := []shadowDay{}
	for _, d := range byDay {
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b shadowDay) int { return strings.Compare(a.Day, b.Day) })
	return list
}

func (f *reportFlags) compareTrends(c *cobra.Command, source *zabbixdb.Source, dsn string, r model.TimeRange, report *shadowReport) error {
	var items []zabbixdb.Item
	if err := source.Items(c.Context(), func(i zabbixdb.Item) error { items = append(items, i); return nil }); err != nil {
		return err
	}
	// Whole hours; Zabbix writes one when a value of the next has come.
	r.From = storage.HourOf(r.From + storage.Hour - 1)
	r.To = storage.HourOf(min(r.To, time.Now().Add(-time.Hour).UnixNano()))
	if r.From >= r.To {
		return nil
	}
	progress := newProgressLine(c.ErrOrStderr())
	return zabbixdb.CompareTrends(c.Context(), dsn, items, r, func(list []zabbixdb.ComparedItem, done, total int) error {
		part, err := f.compare(c, r, map[string]any{"items": list})
		if err != nil {
			return err
		}
		report.SameItems += part.SameItems
		report.EmptyItems += part.EmptyItems
		report.MissingItems += part.MissingItems
		report.Hours += part.Hours
		report.Items = append(report.Items, part.Items...)
		progress.say(int64(done), int64(total), "of the items are compared")
		return nil
	})
}

// print is the report for a terminal.
func (r *shadowReport) print(out io.Writer) error {
	fmt.Fprintf(out, "from %s to %s\n", r.From, r.To)
	fmt.Fprintf(out, "problems: %d alike, %d different\n", r.Same, len(r.Problems))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(r.Days) > 0 {
		fmt.Fprintln(w, "DAY\tALIKE\tOTHER TIME OR SEVERITY\tONLY IN ZABBIX\tONLY HERE")
		for _, d := range r.Days {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", d.Day, d.Same, d.Other, d.OnlyZabbix, d.OnlyHere)
		}
	}
	names := map[string]string{"only_zabbix": "only in Zabbix", "only_here": "only here", "begin": "begins at another time", "end": "ends at another time", "severity": "other severity"}
	for i, d := range r.Problems {
		if i == maxShadowLines {
			fmt.Fprintf(w, "and %d more; --json lists all\n", len(r.Problems)-i)
			break
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n  %s\n", time.Unix(0, d.Began).Format(time.DateTime), names[d.Kind], plainCell(d.Host), plainCell(d.Name), plainCell(d.Reason))
	}
	fmt.Fprintf(w, "items: %d alike, %d different, %d with nothing to compare, %d not here; %d hours compared\n", r.SameItems, len(r.Items), r.EmptyItems, r.MissingItems, r.Hours)
	for i, d := range r.Items {
		if i == maxShadowLines {
			fmt.Fprintf(w, "and %d more; --json lists all\n", len(r.Items)-i)
			break
		}
		fmt.Fprintf(w, "%s: %s: of %d hours %d are missing here, %d in Zabbix, %d have another count, %d other values\n  %s\n", plainCell(d.Host), plainCell(d.Key), d.Hours,
			d.MissingHere, d.MissingThere, d.OtherCount, d.OtherValues, plainCell(d.Reason))
	}
	return w.Flush()
}
