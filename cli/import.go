package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/client"
	"tidemark/confdb"
	"tidemark/server"
)

// importFlags are the flags of import.
type importFlags struct {
	data, http string
	asJSON     bool
	plan       bool
}

func importCommand() *cobra.Command {
	f := &importFlags{}
	c := &cobra.Command{
		Use:   "import FILE… [--http ADDR | --data DIR]",
		Short: "Import hosts and templates from Zabbix exports (YAML or JSON)",
		Long: "Import hosts, items, triggers and templates from files in Zabbix's export format, versions 5.4 to 7.4, into a running server (--http) or\n" +
			"into the data folder of a stopped one (--data). The report says what was taken and what was not, with the reason. Importing a file again changes nothing.",
		Args: someArgs(1, -1, "at least one file"),
		RunE: func(c *cobra.Command, args []string) error { return runImport(c, f, args) },
	}
	c.Flags().StringVar(&f.http, "http", "", "address of a running server (default 127.0.0.1:8420 unless --data is given)")
	c.Flags().StringVar(&f.data, "data", "", "data folder of a stopped server")
	c.Flags().BoolVar(&f.plan, "plan", false, "show what would be created and changed, and change nothing; of a running server")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the reports as JSON")
	c.AddCommand(importZabbixCommand())
	return c
}

func runImport(c *cobra.Command, f *importFlags, names []string) error {
	if f.http != "" && f.data != "" {
		return usagef("give --http for a running server or --data for a stopped one, not both")
	}
	if f.plan && f.data != "" {
		return usagef("--plan asks a running server: give --http instead of --data")
	}
	files := make([]server.File, 0, len(names))
	for _, name := range names {
		text, err := readBounded(name)
		if err != nil {
			return err
		}
		files = append(files, server.File{Name: name, Source: text})
	}
	reports, err := importFiles(c, f, files)
	for _, r := range reports {
		if err := printReport(c.OutOrStdout(), r, f.asJSON); err != nil {
			return err
		}
	}
	return err
}

func importFiles(c *cobra.Command, f *importFlags, files []server.File) ([]*confdb.Report, error) {
	if f.data != "" {
		return server.ImportOffline(c.Context(), f.data, files, nil)
	}
	address := f.http
	if address == "" {
		address = "127.0.0.1:8420"
	}
	var reports []*confdb.Report
	for _, file := range files {
		r, err := importOver(c.Context(), address, file, f.plan)
		if err != nil {
			return reports, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// readBounded reads a file of at most confdb.MaxImportBytes.
func readBounded(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, confdb.MaxImportBytes+1))
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	if len(text) > confdb.MaxImportBytes {
		return nil, fmt.Errorf("import %s: larger than %d MiB; export in parts", name, confdb.MaxImportBytes>>20)
	}
	return text, nil
}

// importOver sends one file to a running server, which imports it or says what it would do.
func importOver(ctx context.Context, address string, file server.File, plan bool) (*confdb.Report, error) {
	path := "/api/import"
	if plan {
		path = "/api/configuration/plan"
	}
	kind := "application/yaml"
	if strings.HasSuffix(file.Name, ".json") {
		kind = "application/json"
	}
	c, err := newClient(ctx, address, &http.Client{Timeout: 5 * time.Minute})
	if err != nil {
		return nil, err
	}
	body, err := c.Send(ctx, client.Request{Method: http.MethodPost, Path: path, Body: file.Source, ContentType: kind})
	if e, ok := errors.AsType[*client.Error](err); ok {
		// The server does not know the file's name and says import.yaml.
		message := strings.TrimPrefix(strings.TrimPrefix(refusal(e).Error(), "import import.yaml: "), "import import.json: ")
		return nil, fmt.Errorf("import %s: %s", file.Name, message)
	}
	if err != nil {
		return nil, fmt.Errorf("import %s: %w; for a stopped one use --data", file.Name, toldBy(address, err))
	}
	report := &confdb.Report{}
	into := any(report)
	if plan {
		into = &struct{ Report *confdb.Report }{report}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return nil, fmt.Errorf("import %s: read the report: %w", file.Name, err)
	}
	report.File = file.Name
	return report, nil
}

func printReport(w io.Writer, r *confdb.Report, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := fmt.Fprint(w, r.String())
	return err
}
