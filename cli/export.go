package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"tidemark/confdb"
	"tidemark/server"
)

// exportFlags are the flags of export.
type exportFlags struct {
	client    serverClient
	data, out string
	options   confdb.ExportOptions
}

func exportCommand() *cobra.Command {
	f := &exportFlags{}
	c := &cobra.Command{
		Use:   "export (--template NAME | --host NAME | --all)… [--http ADDR | --data DIR]",
		Short: "Export templates and hosts in Zabbix's format (YAML)",
		Long: "Export templates and hosts with all that they define, as YAML that 'tidemark import' and Zabbix 6.0 or 7.0 take. What hosts inherit and what\n" +
			"discovery rules made is not part of it; values of secret macros are left out. The same objects always give the same bytes, so exports can be kept in git.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return writeExport(c, f) },
	}
	f.client.addTo(c.Flags())
	c.Flags().StringVar(&f.data, "data", "", "data folder of a stopped server")
	c.Flags().StringVarP(&f.out, "out", "o", "", "file to write; the terminal if not given")
	c.Flags().StringArrayVar(&f.options.Templates, "template", nil, "technical name of a template; may be repeated")
	c.Flags().StringArrayVar(&f.options.Hosts, "host", nil, "technical name of a host; may be repeated")
	c.Flags().BoolVar(&f.options.All, "all", false, "all templates and hosts")
	c.Flags().StringVar(&f.options.Version, "format", "7.0", "version of the format: 6.0 or 7.0")
	return c
}

func writeExport(c *cobra.Command, f *exportFlags) error {
	switch {
	case f.client.address != "" && f.data != "":
		return usagef("give --http for a running server or --data for a stopped one, not both")
	case len(f.options.Templates)+len(f.options.Hosts) == 0 && !f.options.All:
		return usagef("nothing to export; give --template NAME, --host NAME or --all")
	}
	text, err := exported(c.Context(), f)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if f.out == "" {
		_, err = c.OutOrStdout().Write(text)
		return err
	}
	if err := os.WriteFile(f.out, text, 0o644); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	_, err = fmt.Fprintf(c.ErrOrStderr(), "%d bytes written to %s\n", len(text), f.out)
	return err
}

func exported(ctx context.Context, f *exportFlags) ([]byte, error) {
	if f.data != "" {
		return server.ExportOffline(ctx, f.data, f.options, nil)
	}
	if f.client.address == "" {
		f.client.address = "127.0.0.1:8420"
	}
	q := url.Values{"template": f.options.Templates, "host": f.options.Hosts, "version": {f.options.Version}}
	if f.options.All {
		q.Set("all", "true")
	}
	answer, err := f.client.open(ctx, http.MethodGet, "/api/export?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}
