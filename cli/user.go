package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"tidemark/api/rest"
)

// userFlags are the flags of the user commands.
type userFlags struct {
	target
	role         string // of add
	newRole      string // of set
	groups       []string
	allHosts     bool
	passwordFile string
	hash         string
	noPassword   bool
	asJSON       bool
}

func userCommand() *cobra.Command {
	f := &userFlags{}
	c := &cobra.Command{
		Use: "user", Short: "Add, list and change the people who may sign in", Args: noArgs,
		Long: "Look after users in a running server (--http, with the token of an administrator) or in the data folder of a stopped one (--data).",
	}
	f.addFlags(c)
	add := &cobra.Command{
		Use: "add NAME", Short: "Make a user; the password is asked for",
		Long: "Make a user. Without --group the role holds on all hosts; with it, on those that the user groups grant (tidemark user grant).\n" +
			"The first administrator closes the page for everybody else on this machine.",
		Args: someArgs(1, 1, "a name"), RunE: func(c *cobra.Command, args []string) error { return addUser(c, f, args[0]) },
	}
	add.Flags().StringVar(&f.role, "role", "viewer", "viewer, operator, editor or administrator")
	add.Flags().StringSliceVar(&f.groups, "group", nil, "user group; may be given several times")
	add.Flags().StringVar(&f.hash, "password-hash", "", "a bcrypt or argon2id hash instead of a password, such as from Zabbix's users.passwd")
	add.Flags().BoolVar(&f.noPassword, "no-password", false, "let the user in by tokens only")
	passwd := &cobra.Command{
		Use: "passwd NAME", Short: "Set a user's password and sign the user out everywhere", Args: someArgs(1, 1, "a name"),
		RunE: func(c *cobra.Command, args []string) error {
			return changeUser(c, f, args[0], true, func(*rest.UserBody) {})
		},
	}
	for _, with := range []*cobra.Command{add, passwd} {
		with.Flags().StringVar(&f.passwordFile, "password-file", "", "read the password from the first line of a file; - is standard input")
	}
	list := &cobra.Command{Use: "list", Short: "List users", Args: noArgs, RunE: func(c *cobra.Command, _ []string) error { return listUsers(c, f) }}
	list.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	disable := &cobra.Command{
		Use: "disable NAME", Short: "Keep a user out; sessions end at once, tokens are not accepted", Args: someArgs(1, 1, "a name"),
		RunE: func(c *cobra.Command, args []string) error {
			return changeUser(c, f, args[0], false, func(b *rest.UserBody) { b.Disabled = true })
		},
	}
	enable := &cobra.Command{
		Use: "enable NAME", Short: "Let a disabled user in again", Args: someArgs(1, 1, "a name"),
		RunE: func(c *cobra.Command, args []string) error {
			return changeUser(c, f, args[0], false, func(b *rest.UserBody) { b.Disabled = false })
		},
	}
	set := &cobra.Command{
		Use: "set NAME", Short: "Change a user's role and user groups; in force at once",
		Long: "Change what is given. --group replaces the user's groups and limits the role to what they grant; --all-hosts lets it hold on all hosts again.",
		Args: someArgs(1, 1, "a name"), RunE: func(c *cobra.Command, args []string) error { return setUser(c, f, args[0]) },
	}
	set.Flags().StringVar(&f.newRole, "role", "", "viewer, operator, editor or administrator (default: as it is)")
	set.Flags().StringSliceVar(&f.groups, "group", nil, "user group; may be given several times")
	set.Flags().BoolVar(&f.allHosts, "all-hosts", false, "let the role hold on all hosts")
	remove := &cobra.Command{
		Use: "delete NAME", Short: "Delete a user, with sessions and tokens", Args: someArgs(1, 1, "a name"),
		RunE: func(c *cobra.Command, args []string) error { return deleteUser(c, f, args[0]) },
	}
	grant := &cobra.Command{
		Use: "grant GROUP HOSTGROUP=ROLE…", Short: "Make or change a user group: what its users may do on the hosts of host groups",
		Args: someArgs(2, -1, "a user group and at least one HOSTGROUP=ROLE"), RunE: func(c *cobra.Command, args []string) error { return grantGroup(c, f, args) },
	}
	c.AddCommand(add, list, set, passwd, disable, enable, remove, grant)
	return c
}

// readPassword reads a new password: from a file, or from the terminal without showing it.
func readPassword(c *cobra.Command, f *userFlags) (string, error) {
	if f.passwordFile != "" {
		source := c.InOrStdin()
		if f.passwordFile != "-" {
			file, err := os.Open(f.passwordFile)
			if err != nil {
				return "", fmt.Errorf("--password-file: %w", err)
			}
			defer file.Close()
			source = file
		}
		line, err := bufio.NewReader(io.LimitReader(source, 4096)).ReadString('\n')
		if err != nil && line == "" {
			return "", usagef("--password-file %s: expected the password in its first line", f.passwordFile)
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
	terminal, ok := c.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(terminal.Fd()) {
		return "", usagef("no terminal to ask for the password: give --password-file, with - for standard input")
	}
	ask := func(prompt string) (string, error) {
		fmt.Fprint(c.ErrOrStderr(), prompt)
		text, err := term.ReadPassword(terminal.Fd())
		fmt.Fprintln(c.ErrOrStderr())
		return string(text), err
	}
	password, err := ask("Password (at least 10 characters): ")
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	again, err := ask("Again: ")
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	if password != again {
		return "", usagef("the two passwords are not the same")
	}
	return password, nil
}

func addUser(c *cobra.Command, f *userFlags, name string) error {
	body := rest.UserBody{Name: name, Role: f.role, Groups: f.groups, AllHosts: len(f.groups) == 0, PasswordHash: f.hash}
	if f.hash == "" && !f.noPassword {
		var err error
		if body.Password, err = readPassword(c, f); err != nil {
			return err
		}
	}
	var made rest.User
	if err := f.call(c, http.MethodPost, "/api/users", body, &made); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "user %s is made, with the role %s\n", made.Name, made.Role)
	return nil
}

func fetchUsers(c *cobra.Command, t *target) ([]rest.User, error) {
	var list rest.UserList
	err := t.call(c, http.MethodGet, "/api/users", nil, &list)
	return list.Users, err
}

func changeUser(c *cobra.Command, f *userFlags, name string, password bool, change func(*rest.UserBody)) error {
	users, err := fetchUsers(c, &f.target)
	if err != nil {
		return err
	}
	for _, u := range users {
		if !strings.EqualFold(u.Name, name) {
			continue
		}
		body := rest.UserBody{Name: u.Name, Role: u.Role, AllHosts: u.AllHosts, Groups: u.Groups, Disabled: u.Disabled}
		change(&body)
		if password {
			if body.Password, err = readPassword(c, f); err != nil {
				return err
			}
		}
		if err := f.call(c, http.MethodPut, "/api/users/"+u.ID, body, nil); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "user %s is changed\n", u.Name)
		return nil
	}
	return noUser(name)
}

func setUser(c *cobra.Command, f *userFlags, name string) error {
	role, groups := c.Flags().Changed("role"), c.Flags().Changed("group")
	if !role && !groups && !f.allHosts || groups && f.allHosts {
		return usagef("give --role, and --group or --all-hosts")
	}
	return changeUser(c, f, name, false, func(b *rest.UserBody) {
		if role {
			b.Role = f.newRole
		}
		if groups {
			b.Groups, b.AllHosts = f.groups, false
		}
		b.AllHosts = b.AllHosts || f.allHosts
	})
}

func deleteUser(c *cobra.Command, f *userFlags, name string) error {
	users, err := fetchUsers(c, &f.target)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(users, func(u rest.User) bool { return strings.EqualFold(u.Name, name) })
	if i < 0 {
		return noUser(name)
	}
	if err := f.call(c, http.MethodDelete, "/api/users/"+users[i].ID, nil, nil); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "user %s is deleted\n", users[i].Name)
	return nil
}

func noUser(name string) error {
	return fmt.Errorf("there is no user %q; tidemark user list shows those that there are", name)
}

func listUsers(c *cobra.Command, f *userFlags) error {
	users, err := fetchUsers(c, &f.target)
	if err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(c.OutOrStdout()).Encode(rest.UserList{Users: users})
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tROLE\tHOSTS\tSTATE\tSESSIONS")
	for _, u := range users {
		hosts, state := "all", "enabled"
		if !u.AllHosts {
			hosts = "by " + strings.Join(u.Groups, ", ")
		}
		if u.Disabled {
			state = "disabled"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\n", plainCell(u.Name), u.Role, plainCell(hosts), state, u.Sessions)
	}
	return w.Flush()
}

func grantGroup(c *cobra.Command, f *userFlags, args []string) error {
	body := rest.UserGroupBody{}
	for _, text := range args[1:] {
		at := strings.LastIndexByte(text, '=')
		if at < 1 {
			return usagef("%q: expected HOSTGROUP=ROLE, such as \"Linux servers=operator\"", text)
		}
		body.Grants = append(body.Grants, rest.Grant{HostGroup: text[:at], Role: text[at+1:]})
	}
	if err := f.call(c, http.MethodPut, "/api/user_groups/"+url.PathEscape(args[0]), body, nil); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "user group %s is in force\n", args[0])
	var have struct {
		HostGroups []string `json:"host_groups"`
	}
	if err := f.call(c, http.MethodGet, "/api/configuration", nil, &have); err != nil {
		return fmt.Errorf("look for the host groups: %w", err)
	}
	for _, g := range body.Grants {
		// A grant holds for the groups below it too.
		if !slices.ContainsFunc(have.HostGroups, func(name string) bool { return name == g.HostGroup || strings.HasPrefix(name, g.HostGroup+"/") }) {
			fmt.Fprintf(c.ErrOrStderr(), "there is no host group %s yet: what is granted on it holds once there is one\n", plainCell(g.HostGroup))
		}
	}
	return nil
}
