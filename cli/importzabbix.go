package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tidemark/confdb"
	"tidemark/server"
	"tidemark/zabbixdb"
)

// zabbixFlags are the flags of import zabbix.
type zabbixFlags struct {
	importFlags
	dsn, dsnFile string
}

// zabbixReport is what became of a Zabbix database.
type zabbixReport struct {
	// Version is Zabbix's.
	Version string          `json:"version"`
	Counts  []confdb.Count  `json:"counts"`
	Remarks []confdb.Remark `json:"remarks"`
	// MoreRemarks counts the remarks beyond those that are listed.
	MoreRemarks int `json:"more_remarks,omitempty"`
	// Left is what cannot be taken, by kind.
	Left []zabbixdb.Left `json:"left"`
}

func importZabbixCommand() *cobra.Command {
	f := &zabbixFlags{}
	c := &cobra.Command{
		Use:   "zabbix --dsn postgres://…|mysql://… [--http ADDR | --data DIR]",
		Short: "Import the configuration of a Zabbix server out of its database",
		Long: "Import hosts, templates and what belongs to them, people, alerting, proxies and keys out of the database of Zabbix 6.0 to 7.0 on PostgreSQL, MySQL or MariaDB, into a running server\n" +
			"(--http) or into the data folder of a stopped one (--data). The database is only read, in one read-only transaction. The report says what was\n" +
			"taken, what was left, and why. Importing again takes what changed; when nothing did, nothing changes here. See docs/user/from-zabbix.md.",
		Example: "  tidemark import zabbix --dsn postgres://zabbix:secret@db1:5432/zabbix --data /var/lib/tidemark\n" +
			"  tidemark import zabbix --dsn-file dsn.txt --http 127.0.0.1:8420",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runImportZabbix(c, f) },
	}
	c.Flags().StringVar(&f.dsn, "dsn", "", "address of the database: postgres://user:password@host:port/database or mysql://user:password@host:port/database")
	c.Flags().StringVar(&f.dsnFile, "dsn-file", "", "file whose first line is the address, so that the password is not seen in the list of processes")
	c.Flags().StringVar(&f.http, "http", "", "address of a running server (default 127.0.0.1:8420 unless --data is given)")
	c.Flags().StringVar(&f.data, "data", "", "data folder of a stopped server")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the report as JSON")
	c.AddCommand(importHistoryCommand(), importIDsCommand())
	return c
}

// address is the database's.
func (f *zabbixFlags) address() (string, error) {
	switch {
	case f.dsn != "" && f.dsnFile != "", f.dsn == "" && f.dsnFile == "":
		return "", usagef("give --dsn or --dsn-file, the address of the Zabbix database, such as postgres://zabbix:password@host:5432/zabbix")
	case f.dsn != "":
		return f.dsn, nil
	}
	file, err := os.Open(f.dsnFile)
	if err != nil {
		return "", fmt.Errorf("--dsn-file: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil {
		return "", fmt.Errorf("--dsn-file: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line), nil
}

func runImportZabbix(c *cobra.Command, f *zabbixFlags) (err error) {
	if f.http != "" && f.data != "" {
		return usagef("give --http for a running server or --data for a stopped one, not both")
	}
	dsn, err := f.address()
	if err != nil {
		return err
	}
	ctx := c.Context()
	source, err := zabbixdb.Open(ctx, dsn)
	if err != nil {
		return fmt.Errorf("import zabbix: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	progress := &busy{w: c.ErrOrStderr()}
	source.Progress = progress.with
	defer progress.start()()
	report := &zabbixReport{Version: source.Version(), Counts: []confdb.Count{}, Remarks: []confdb.Remark{}}
	take := f.taker()
	settings, err := source.Settings(ctx)
	if err != nil {
		return fmt.Errorf("import zabbix: %w", err)
	}
	// Proxies come before the hosts that name them, all else behind the hosts that it names.
	if err := f.takeSettings(c, &zabbixdb.Settings{Proxies: settings.Proxies}, report); err != nil {
		return fmt.Errorf("import zabbix: proxies: %w", err)
	}
	settings.Proxies = nil
	err = source.Export(ctx, func(file zabbixdb.File) error {
		progress.say(file.Name)
		progress.with("the server takes " + file.Name)
		r, err := take(ctx, server.File{Name: file.Name + ".json", Source: file.Source})
		if err != nil {
			return err
		}
		report.add(r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("import zabbix: %w", err)
	}
	progress.say("people, alerting, keys")
	progress.with("the server takes people, alerting, keys")
	if err := f.takeSettings(c, settings, report); err != nil {
		return fmt.Errorf("import zabbix: people, alerting, keys: %w", err)
	}
	report.Left = source.Left()
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(report)
	}
	_, err = io.WriteString(c.OutOrStdout(), report.String())
	return err
}

// taker gives files to the server or its folder.
func (f *zabbixFlags) taker() func(context.Context, server.File) (*confdb.Report, error) {
	if f.data != "" {
		return func(ctx context.Context, file server.File) (*confdb.Report, error) {
			reports, err := server.ImportOffline(ctx, f.data, []server.File{file}, nil)
			if err != nil {
				return nil, err
			}
			return reports[0], nil
		}
	}
	address := cmp.Or(f.http, "127.0.0.1:8420")
	return func(ctx context.Context, file server.File) (*confdb.Report, error) {
		return importOver(ctx, address, file, false)
	}
}

// takeSettings gives the settings to the server or its folder.
func (f *zabbixFlags) takeSettings(c *cobra.Command, settings *zabbixdb.Settings, report *zabbixReport) error {
	if f.data != "" {
		part, err := server.ImportSettingsOffline(c.Context(), f.data, settings)
		if err == nil {
			report.add(part)
		}
		return err
	}
	part := &confdb.Report{}
	t := &target{http: f.http}
	err := t.call(c, http.MethodPost, "/api/import/zabbix", settings, part)
	report.add(part)
	return err
}

// add puts the report of one part to those before.
func (r *zabbixReport) add(part *confdb.Report) {
	for _, c := range part.Counts {
		at := slices.IndexFunc(r.Counts, func(have confdb.Count) bool { return have.Kind == c.Kind })
		if at < 0 {
			r.Counts = append(r.Counts, c)
			continue
		}
		have := &r.Counts[at]
		have.Created += c.Created
		have.Updated += c.Updated
		have.Unchanged += c.Unchanged
		have.Refused += c.Refused
	}
	r.Remarks = append(r.Remarks, part.Remarks...)
	r.MoreRemarks += part.MoreRemarks
}

// maxReasons bounds the reasons that a terminal shows; --json has all.
const maxReasons = 60

// String is the report for a terminal: what was taken, and reasons with how often they came and where first.
func (r *zabbixReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Zabbix %s\n", r.Version)
	for _, c := range r.Counts {
		fmt.Fprintf(&b, "  %s: %d created, %d updated, %d unchanged", c.Kind, c.Created, c.Updated, c.Unchanged)
		if c.Refused > 0 {
			fmt.Fprintf(&b, ", %d refused", c.Refused)
		}
		b.WriteByte('\n')
	}
	for _, l := range r.Left {
		fmt.Fprintf(&b, "  left: %d %s: %s\n", l.Count, l.Kind, l.Reason)
	}
	var reasons []string
	first, count := make(map[string]string), make(map[string]int)
	for _, m := range r.Remarks {
		if count[m.Reason] == 0 {
			first[m.Reason] = m.Path
			reasons = append(reasons, m.Reason)
		}
		count[m.Reason]++
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return count[b] - count[a] })
	for i, reason := range reasons {
		if i == maxReasons {
			fmt.Fprintf(&b, "  and %d more reasons; --json lists all\n", len(reasons)-i)
			break
		}
		more := ""
		if count[reason] > 1 {
			more = fmt.Sprintf(" and %d more", count[reason]-1)
		}
		fmt.Fprintf(&b, "  %s%s: %s\n", plainCell(first[reason]), more, plainCell(reason))
	}
	return b.String()
}
