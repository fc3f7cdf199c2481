package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tidemark/api/rest"
	"tidemark/config"
)

// tokenFlags are the flags of the token and audit commands.
type tokenFlags struct {
	target
	user, role, expires string
	asJSON              bool
	search              string
	limit               int
}

func tokenCommand() *cobra.Command {
	f := &tokenFlags{}
	c := &cobra.Command{Use: "token", Short: "Make, list and revoke the tokens that let programs in", Args: noArgs}
	f.addFlags(c)
	create := &cobra.Command{
		Use: "create NAME --user USER", Short: "Make a token and print it; it cannot be shown again", Args: someArgs(1, 1, "a name"),
		RunE: func(c *cobra.Command, args []string) error { return createToken(c, f, args[0]) },
	}
	create.Flags().StringVar(&f.user, "user", "", "name of the user whose token it is")
	create.Flags().StringVar(&f.role, "role", "viewer", "what the token may do at most: viewer, operator, editor or administrator")
	create.Flags().StringVar(&f.expires, "expires", "90d", "for how long it is good, such as 12h or 90d; never for always")
	create.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	list := &cobra.Command{Use: "list", Short: "List tokens; their texts are not kept", Args: noArgs, RunE: func(c *cobra.Command, _ []string) error { return listTokens(c, f) }}
	list.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	revoke := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a token; it is refused at once", Args: someArgs(1, 1, "the id of a token"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.call(c, http.MethodDelete, "/api/tokens/"+url.PathEscape(args[0]), nil, nil); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "token %s is revoked\n", args[0])
			return nil
		},
	}
	c.AddCommand(create, list, revoke)
	return c
}

func createToken(c *cobra.Command, f *tokenFlags, name string) error {
	if f.user == "" {
		return usagef("--user is missing: expected the name of the user whose token it is")
	}
	body := rest.NewToken{Name: name, User: f.user, Role: f.role}
	if f.expires != "never" {
		d, err := parseAge(f.expires)
		if err != nil {
			return err
		}
		body.ExpiresAt = time.Now().Add(d).UnixMilli()
	}
	var made rest.MadeToken
	if err := f.call(c, http.MethodPost, "/api/tokens", body, &made); err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(made)
	}
	fmt.Fprintln(c.OutOrStdout(), made.Text)
	return nil
}

// parseAge reads a time in hours or days.
func parseAge(text string) (time.Duration, error) {
	var days float64
	var rest string
	if n, _ := fmt.Sscanf(text, "%f%s", &days, &rest); n == 2 && rest == "d" && days > 0 && days < 36500 {
		return time.Duration(days * 24 * float64(time.Hour)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, usagef("--expires %q: expected a time such as 12h or 90d, or never", text)
	}
	return d, nil
}

func showTime(millis *int64, none string) string {
	if millis == nil {
		return none
	}
	return time.UnixMilli(*millis).Format("2006-01-02 15:04")
}

func listTokens(c *cobra.Command, f *tokenFlags) error {
	var list rest.TokenList
	if err := f.call(c, http.MethodGet, "/api/tokens", nil, &list); err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(list)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tUSER\tROLE\tEXPIRES\tLAST USED")
	for _, t := range list.Tokens {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, plainCell(t.Name), plainCell(t.User), t.Role, showTime(t.ExpiresAt, "never"), showTime(t.UsedAt, "never"))
	}
	return w.Flush()
}

func auditCommand() *cobra.Command {
	f := &tokenFlags{}
	c := &cobra.Command{Use: "audit", Short: "Show who changed what", Args: noArgs}
	f.addFlags(c)
	list := &cobra.Command{Use: "list", Short: "List changes, the newest first", Args: noArgs, RunE: func(c *cobra.Command, _ []string) error { return listAudit(c, f) }}
	list.Flags().StringVar(&f.user, "actor", "", "name of the only user to list")
	list.Flags().StringVar(&f.search, "search", "", "a text that must be in the action or its object")
	f.limit = 100
	intFlag(list.Flags(), &f.limit, "limit", 1, 10_000, "at most so many, up to 10,000")
	list.Flags().BoolVar(&f.asJSON, "json", false, "print JSON, with what was before and after")
	c.AddCommand(list)
	return c
}

func listAudit(c *cobra.Command, f *tokenFlags) error {
	query := url.Values{"limit": {fmt.Sprint(f.limit)}}
	for name, value := range map[string]string{"actor": f.user, "search": f.search} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var list rest.AuditList
	if err := f.call(c, http.MethodGet, "/api/audit?"+query.Encode(), nil, &list); err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(list)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tWHO\tVIA\tFROM\tACTION\tOBJECT")
	for _, e := range list.Entries {
		at := time.UnixMilli(e.At).Format("2006-01-02 15:04:05")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", at, plainCell(e.Actor), plainCell(e.Via), plainCell(e.Address), plainCell(e.Action), plainCell(auditObject(&e)))
	}
	return w.Flush()
}

// auditObject is what was changed; of a command that was run, the command too.
func auditObject(e *rest.AuditEntry) string {
	var after struct {
		Command string `json:"command"`
	}
	if e.Action != "POST /api/commands" || json.Unmarshal(e.After, &after) != nil || after.Command == "" {
		return e.Object
	}
	return e.Object + ": " + after.Command
}

// sayFirstLink prints where the first administrator is made, as long as there is none.
func sayFirstLink(c *cobra.Command, key, page string, conf *config.Config) {
	if key == "" {
		return
	}
	everybody := "everybody on this machine is administrator"
	if conf.HTTP.TokenFile != "" {
		everybody = "only the token of http.token_file lets somebody in"
	}
	fmt.Fprintf(c.OutOrStdout(), "There is no administrator yet, and %s. Make the first one within 30 minutes at\n%s/welcome#%s\n", everybody, page, key)
}
