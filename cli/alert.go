package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/alert"
	"tidemark/client"
	"tidemark/server"
)

// alertFlags are the flags of the alert commands.
type alertFlags struct {
	http    string
	data    string
	replace bool
	problem string
	state   string
	limit   int
	subject string
	message string
}

// alertTimeout bounds one call to the server; a test may wait for a slow mail server.
const alertTimeout = 6 * time.Minute

func alertCommand() *cobra.Command {
	f := &alertFlags{}
	c := &cobra.Command{Use: "alert", Short: "Say who is told of problems, try it, and list what was sent", Args: noArgs}
	c.PersistentFlags().StringVar(&f.http, "http", "127.0.0.1:8420", "address of the running server")
	apply := &cobra.Command{
		Use: "apply FILE", Short: "Put actions, receivers, media types and maintenances from a file into force",
		Long: "Put the objects of a file (YAML or JSON, see docs/user/alerts.md) over those of the same name. Nothing is taken of a file that has a mistake.",
		Args: someArgs(1, 1, "a file"),
		RunE: func(c *cobra.Command, args []string) error { return applyAlerts(c, f, args[0]) },
	}
	apply.Flags().StringVar(&f.data, "data", "", "data folder of a stopped server, instead of --http")
	apply.Flags().BoolVar(&f.replace, "replace", false, "delete every object that is not in the file")
	test := &cobra.Command{
		Use: "test MEDIA ADDRESS", Short: "Send a test message and show the answer", Args: someArgs(2, 2, "a media type and an address"),
		RunE: func(c *cobra.Command, args []string) error { return testAlert(c, f, args[0], args[1]) },
	}
	test.Flags().StringVar(&f.subject, "subject", "", "subject of the message")
	test.Flags().StringVar(&f.message, "message", "", "text of the message")
	list := &cobra.Command{
		Use: "list", Short: "List messages and their state, the newest first", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return listAlerts(c, f) },
	}
	list.Flags().StringVar(&f.problem, "problem", "", "id of the problem whose messages are listed")
	list.Flags().StringVar(&f.state, "state", "", "waiting, sent, failed, with commas between")
	f.limit = 100
	intFlag(list.Flags(), &f.limit, "limit", 1, 10_000, "at most so many")
	show := &cobra.Command{
		Use: "show", Short: "Show the configuration; secrets are hidden", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return showAlerts(c, f) },
	}
	importMedia := &cobra.Command{
		Use: "import FILE", Short: "Import media types from a Zabbix export", Args: someArgs(1, 1, "a file"),
		RunE: func(c *cobra.Command, args []string) error { return importMediaTypes(c, f, args[0]) },
	}
	c.AddCommand(apply, test, list, show, importMedia)
	return c
}

// callAlerts sends one request to the running server and returns the body of a good answer.
func callAlerts(ctx context.Context, f *alertFlags, method, path, kind string, body []byte) ([]byte, error) {
	c, err := newClient(ctx, f.http, &http.Client{Timeout: alertTimeout})
	if err != nil {
		return nil, err
	}
	text, err := c.Send(ctx, client.Request{Method: method, Path: path, Body: body, ContentType: kind})
	if err != nil {
		return nil, fmt.Errorf("alert: %w", toldBy(f.http, err))
	}
	return text, nil
}

// readAlertFile reads a file of alerting configuration.
func readAlertFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("alert: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, alert.MaxConfigBytes+1))
	if err == nil && len(text) > alert.MaxConfigBytes {
		err = fmt.Errorf("larger than %d MiB", alert.MaxConfigBytes>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("alert: read %s: %w", name, err)
	}
	return text, nil
}

func applyAlerts(c *cobra.Command, f *alertFlags, name string) error {
	text, err := readAlertFile(name)
	if err != nil {
		return err
	}
	if f.data != "" {
		if c.Flags().Changed("http") {
			return usagef("give --http for a running server or --data for a stopped one, not both")
		}
		if err := server.ApplyAlertsOffline(c.Context(), f.data, text, f.replace, nil); err != nil {
			return fmt.Errorf("alert: %w", err)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s is in force from the next start of the server on\n", name)
		return err
	}
	path := "/api/alerting"
	if f.replace {
		path += "?replace=true"
	}
	if _, err := callAlerts(c.Context(), f, http.MethodPut, path, "application/yaml", text); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s is in force\n", name)
	return err
}

func testAlert(c *cobra.Command, f *alertFlags, media, to string) error {
	body, err := json.Marshal(map[string]string{"media": media, "to": to, "subject": f.subject, "message": f.message})
	if err != nil {
		return err
	}
	text, err := callAlerts(c.Context(), f, http.MethodPost, "/api/alerting/test", "application/json", body)
	if err != nil {
		return err
	}
	var answer struct {
		Sent          bool
		Answer, Error string
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("alert: read the answer: %w", err)
	}
	if !answer.Sent {
		return fmt.Errorf("the message was not sent: %s", answer.Error)
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), strings.TrimSpace("sent: "+answer.Answer))
	return err
}

func listAlerts(c *cobra.Command, f *alertFlags) error {
	query := url.Values{"limit": {fmt.Sprint(f.limit)}}
	if f.problem != "" {
		query.Set("problem", f.problem)
	}
	if f.state != "" {
		query.Set("state", f.state)
	}
	text, err := callAlerts(c.Context(), f, http.MethodGet, "/api/alerts?"+query.Encode(), "", nil)
	if err != nil {
		return err
	}
	var list struct {
		Alerts []struct {
			CreatedAt                                        int64 `json:"created_at"`
			Kind, State, Receiver, Media, To, Subject, Error string
			Attempts                                         int
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("alert: read the answer: %w", err)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tKIND\tSTATE\tRECEIVER\tMEDIA\tTO\tSUBJECT\tERROR")
	for _, a := range list.Alerts {
		at := time.UnixMilli(a.CreatedAt).Format("2006-01-02 15:04:05")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", at, a.Kind, a.State, plainCell(a.Receiver), plainCell(a.Media), plainCell(a.To), plainCell(a.Subject), plainCell(a.Error))
	}
	return w.Flush()
}

// plainCell keeps control characters of names out of the terminal.
func plainCell(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

func showAlerts(c *cobra.Command, f *alertFlags) error {
	text, err := callAlerts(c.Context(), f, http.MethodGet, "/api/alerting", "", nil)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return fmt.Errorf("alert: read the answer: %w", err)
	}
	_, err = fmt.Fprintln(c.OutOrStdout(), out.String())
	return err
}

func importMediaTypes(c *cobra.Command, f *alertFlags, name string) error {
	text, err := readAlertFile(name)
	if err != nil {
		return err
	}
	answer, err := callAlerts(c.Context(), f, http.MethodPost, "/api/alerting/import", "application/yaml", text)
	if err != nil {
		return err
	}
	var report struct{ Remarks []string }
	if err := json.Unmarshal(answer, &report); err != nil {
		return fmt.Errorf("alert: read the answer: %w", err)
	}
	fmt.Fprintf(c.OutOrStdout(), "%s is imported\n", name)
	for _, remark := range report.Remarks {
		fmt.Fprintln(c.OutOrStdout(), plainCell(remark))
	}
	return nil
}
